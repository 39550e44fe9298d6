"""The arguments of ``propagate`` and their rows."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.vertex.capture.nodes import NotCaptured

#: Types of arguments other than tensors.
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Argument:
    """The description of an argument, or of one item of a pair.

    Args:
        name (str): Its name.
        place (int, optional): Its position in a pair.
        shape (Tuple[int, ...]): Its shape, with 0 for the dimension of rows.
        dtype (torch.dtype): Its dtype.
        row (int, optional): The dimension of its rows.
        rows (str): The owner of rows: ``'0'`` and ``'1'`` are the first and
            the second end of edges, ``'01'`` both, ``'E'`` edges.
    """

    name: str
    place: int | None
    shape: tuple[int, ...]
    dtype: torch.dtype
    row: int | None
    rows: str


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, the key of its program.

    Args:
        tensors (Tuple[Argument, ...]): The tensors.
        plain (Tuple): Names and values of other arguments.
        pairs (Tuple[str, ...]): The names of pairs.
        is_square (bool): Whether both ends are the same vertices.
        has_size (Tuple[bool, bool]): Which numbers of vertices are passed.
    """

    tensors: tuple[Argument, ...]
    plain: tuple
    pairs: tuple[tuple[str, type], ...]
    is_square: bool
    has_size: tuple[bool, bool]


class Reading:
    """Reads the arguments of a call like PyG's ``collect``.

    Args:
        method (str): ``'propagate'`` or ``'edge_updater'``.
        layer (MessagePassing): The layer.
        graph (torch.Tensor): ``[2, num_edges]``.
        size (List[int, optional]): The known numbers of nodes.
        kwargs (Dict[str, Any]): The arguments.
    """

    def __init__(
        self, method: str, layer: Any, graph: Tensor, size: Any, kwargs: Any
    ):
        self._layer, self._edges = layer, graph.shape[1]
        self.sizes: list[int | None] = list(size)
        self.given = tuple(n is not None for n in size)
        #: The tensors by name and position.
        self.inputs: dict[tuple[str, int | None], Tensor] = {}
        self._found: list[Argument] = []
        plain: list[tuple[str, int | None, Any]] = []
        pairs: list[tuple[str, type]] = []
        is_edges = method == 'edge_updater'
        used = set(layer._edge_user_args if is_edges else layer._user_args)
        end = 1 if layer.flow == 'source_to_target' else 0
        is_square = False
        bare: list[tuple[str, Tensor]] = []
        for name in sorted(kwargs):
            value = kwargs[name]
            ends = [
                i
                for i, suffix in ((end, '_i'), (1 - end, '_j'))
                if name + suffix in used
            ]
            if isinstance(value, (tuple, list)) and ends:
                if len(value) != 2:
                    raise NotCaptured(f'{name!r} is not a pair')
                pairs.append((name, type(value)))
                for place, x in enumerate(value):
                    self._add(name, place, x, str(place), plain)
                continue
            rows = ''.join(str(i) for i in sorted(ends))
            is_square = is_square or rows == '01'
            if not rows and isinstance(value, Tensor):
                bare.append((name, value))
                continue
            self._add(name, None, value, rows, plain)
        if None in self.sizes:
            is_square = True
            known = next((n for n in self.sizes if n is not None), None)
            if known is None:
                raise NotCaptured(
                    'no argument determines the number of vertices'
                )
            self.sizes = [known, known]
        elif self.sizes[0] == self.sizes[1]:
            # A message may count rows of either end, and with a pair, PyG
            # reads the first at "_j" whatever the flow.
            is_square = True
        if is_square and self.sizes[0] != self.sizes[1]:
            raise NotCaptured('sources and destinations of different lengths')
        for name, value in bare:
            of_all = is_square and self._is_of_vertices(value)
            self._add(name, None, value, '01' if of_all else '', plain)
        given: Any = self.given
        self.key = Arguments(
            *(tuple(self._found), tuple(plain), tuple(pairs)),
            *(is_square, given),
        )

    def _add(
        self, name: str, place: int | None, x: Any, rows: str, plain: list
    ) -> None:
        if isinstance(x, _PLAIN):
            plain.append((name, place, x))
            return
        if not isinstance(x, Tensor) or x.layout != torch.strided:
            raise NotCaptured(f'{name!r} is a {type(x).__name__}')
        row: int | None = None
        if rows:
            row = self._layer.node_dim % max(x.dim(), 1)
            for end in rows:
                self._see(name, int(end), x.shape[row])
        elif x.dim() and x.shape[0] == self._edges:
            row, rows = 0, 'E'
        elif self._edges in x.shape:
            raise NotCaptured(f'{name!r} has no row for each edge')
        shape = list(x.shape)
        if row is not None:
            shape[row] = 0
        self.inputs[name, place] = x
        self._found.append(
            Argument(name, place, tuple(shape), x.dtype, row, rows)
        )

    def _is_of_vertices(self, x: Tensor) -> bool:
        """Whether the rows of an argument without end are all vertices."""
        if not x.dim() or x.shape[0] == self._edges:
            return False
        return x.shape[self._layer.node_dim % x.dim()] == self.sizes[0]

    def _see(self, name: str, end: int, rows: int) -> None:
        if self.sizes[end] is None:
            self.sizes[end] = rows
        elif self.sizes[end] != rows:
            raise NotCaptured(
                f'{name!r} has {rows} rows, others {self.sizes[end]}'
            )
