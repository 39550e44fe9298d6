"""The hops that a layer reads: a block for each of its propagations.

A layer of K propagations computes the rows of a hop from those K hops
further. Each propagation runs on the block whose rows the next one reads.
"""

import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from torch_gsample.block import Block, Blocks
from torch_gsample.fusion.forms import PlanError
from torch_gsample.fusion.rows import Origin, plain
from torch_gsample.fusion.sized_rows import SizedRows
from torch_gsample.torch_private import without_functorch
from torch_gsample.vertex.kernels.layouts import known_block
from torch_gsample.vertex.nn.fusible import both_ends


class Hops:
    """The blocks of a layer's propagations in a call.

    Args:
        block (Callable): Returns the block of a level.
        level (int): The last hop whose nodes the layer computes.
        count (int): Its number of propagations; with 1, all of them compute
            the rows of ``level``.
        given (torch.Tensor): The edges that the layer gets.
        has_all (bool): Whether these are all edges, and sizes those of the
            whole batch.
    """

    def __init__(
        self,
        block: Callable[[int], Block],
        level: int,
        count: int,
        given: Tensor,
        has_all: bool,
    ):
        self._block, self._level, self._left = block, level, count
        self._given, self._has_all = given, has_all
        #: The block that the first propagation reads.
        self.first = block(level + count - 1)
        rows = self.first.edges.num_src[-1] if has_all else self.first.num_src
        self._num_rows = rows
        self._kind = SizedRows if has_all else None

    def origin(self, layer: Any) -> Origin:
        """Returns the origin of the rows that a propagation computes."""
        return Origin(layer, self._num_rows, self._kind)

    def destinations(
        self, layer: Any, edge_index: Any, values: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        """Returns the arguments of ``propagate`` for the next block.

        Vertex values that messages read become pairs, with the first rows as
        destinations. Values of edges are cut. Others do not change: if that is
        wrong, the layer fails its trial, by an error or a difference.

        Args:
            layer (MessagePassing): The layer.
            edge_index (Any): Its edges.
            values (Dict[str, Any]): The other arguments.

        Raises:
            PlanError: If they are not those of the block.
        """
        self._left = max(self._left - 1, 0)
        block = self._block(self._level + self._left)
        return self._narrowed(layer, edge_index, values, block)

    def to_update(
        self, layer: Any, edge_index: Any, values: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the arguments of ``edge_updater`` for the next block."""
        if not self._has_all:
            return edge_index, values
        block = self._block(self._level + max(self._left - 1, 0))
        return self._narrowed(layer, edge_index, values, block)

    def _narrowed(
        self, layer: Any, edge_index: Any, values: dict[str, Any], block: Block
    ) -> tuple[Tensor, dict[str, Any]]:
        if edge_index is self._given:
            edges = known_block(block)
            cut: Any = slice(block.num_edges)
        else:
            edges, cut = self._own(layer, edge_index, block)
        size, num_edges = values.pop('size', None), edge_index.shape[1]
        if size is not None and set(size) != {self._num_rows}:
            raise PlanError(f'messages go from {size[0]} to {size[1]} rows')
        out: dict[str, Any] = {**values, 'size': block.size}
        for name, value in values.items():
            if _is_of_ends(layer, name):
                out[name] = _ends(layer, value, block)
            elif _has_length(value, num_edges) and num_edges > edges.shape[1]:
                out[name] = value[cut]
        return edges, out

    def _own(
        self, layer: Any, edge_index: Any, block: Block
    ) -> tuple[Tensor, Tensor]:
        """Returns a layer's own edges to a block's destinations.

        Also returns their positions.
        """
        if not self._has_all or not isinstance(edge_index, Tensor):
            raise PlanError('its messages have edges of its own')
        target = int(layer.flow == 'source_to_target')
        cut = (edge_index[target] < block.num_dst).nonzero().view(-1)
        edges = edge_index.index_select(1, cut)
        if (edges[1 - target] >= block.num_src).any():
            raise PlanError('its own edges come from beyond its block')
        return edges, cut

    def norm(
        self,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Returns the result of PyG's ``gcn_norm`` on the whole batch.

        Edges are sorted by destination, loops among them.
        """
        if edge_index is not self._given:
            raise PlanError('it normalises edges of its own')
        edges = self.first.edges
        known = _normalized.setdefault(edges, {})
        key = args, *sorted(kwargs.items())
        if edge_weight is not None:
            made = _normed(edges, edge_index, edge_weight, *args, **kwargs)
        elif key in known:
            made = known[key]
        else:
            with torch.inference_mode(False), without_functorch():
                made = _normed(edges, edge_index, None, *args, **kwargs)
            known[key] = made
        self._given, weight, blocks = made
        if blocks is not None:
            self._block = blocks.level
        return self._given, weight


#: Known properties of normalised edges of a batch; without weights, the
#: result.
_normalized: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def _normed(
    edges: Any, edge_index: Tensor, weight: Any, *args: Any, **kwargs: Any
) -> tuple[Tensor, Tensor, Blocks | None]:
    """Returns edges, their weights, and their blocks if there are loops."""
    count = edges.num_dst[-1]
    normed, weight = gcn_norm(edge_index, weight, count, *args, **kwargs)
    if normed is edge_index:
        return edge_index, weight, None
    known = _normalized[edges]
    if _LOOPS not in known:
        with torch.inference_mode(False), without_functorch():
            looped, order = edges.made(normed)
            known[_LOOPS] = Blocks.of_relation(looped), order
    blocks, order = known[_LOOPS]
    return blocks.edges[None].edge_index, weight[order], blocks


#: The key of edges with loops, and their order.
_LOOPS = ('loops',)


def with_norm(forward: Any, norm: Callable[..., Any]) -> Any:
    """Returns a layer's ``forward`` with another function for ``gcn_norm``.

    A copy of its function, as other threads may call the layer.
    """
    names = names_of_norm(forward)
    if not names:
        return forward
    function = forward.__func__
    out = types.FunctionType(
        function.__code__,
        {**function.__globals__, **dict.fromkeys(names, norm)},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    out.__kwdefaults__ = function.__kwdefaults__
    return types.MethodType(out, forward.__self__)


def names_of_norm(forward: Any) -> list[str]:
    """Returns the names by which ``forward`` calls PyG's ``gcn_norm``."""
    function = getattr(forward, '__func__', None)
    if not isinstance(function, types.FunctionType):
        return []
    known = function.__globals__
    names = function.__code__.co_names
    return [name for name in names if known.get(name) is gcn_norm]


def without_norm(*args: Any, **kwargs: Any) -> Any:
    """Replaces ``gcn_norm`` in a call without all edges."""
    raise PlanError('it needs the in-degrees of its sources')


def _is_of_ends(layer: Any, name: str) -> bool:
    read = *layer._user_args, *layer._edge_user_args
    return not {f'{name}_i', f'{name}_j'}.isdisjoint(read)


def _has_length(value: Any, count: int) -> bool:
    return isinstance(value, Tensor) and value.shape[:1] == (count,)


def _ends(layer: Any, value: Any, block: Block) -> Any:
    """Returns vertex values of sources and destinations."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return tuple(
            _first(layer, x, count) if isinstance(x, Tensor) else x
            for x, count in zip(value, block.size, strict=True)
        )
    if not isinstance(value, Tensor):
        return value
    value = _first(layer, value, block.num_src)
    if layer.node_dim % value.dim() == 0:
        return both_ends(value, block.num_dst)
    return value, _first(layer, value, block.num_dst)


def _first(layer: Any, value: Tensor, count: int) -> Tensor:
    value = plain(value)
    dim = layer.node_dim % value.dim()
    if value.shape[dim] < count:
        raise PlanError(f'it reads {count} rows of {value.shape[dim]}')
    return value if value.shape[dim] == count else value.narrow(dim, 0, count)
