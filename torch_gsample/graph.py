"""The graph that operators and samplers read: types, and edges by relation."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import placement
from torch_gsample.adjacency import read_adjacency
from torch_gsample.csc import CSC
from torch_gsample.graph_types import GraphTypes
from torch_gsample.ops import _check
from torch_gsample.ops.formats import cumulate_argument

__all__ = ['CSC', 'Graph']


@dataclass(frozen=True, eq=False)
class Graph(GraphTypes):
    """A graph: node types and the edges of each relation.

    The constructor checks the tensors and converts columns to common dtypes. A
    graph is immutable afterwards, so operators need no checks.

    Args:
        node_types (Tuple[str, ...]): The node types; :obj:`None` in a
            homogeneous graph.
        edge_types (Tuple[Tuple[str, str, str], ...]): The relations; likewise
            :obj:`None`.
        num_nodes (Tuple[int, ...]): Number of nodes of each type.
        columns (Tuple[CSC, ...]): The edges of each relation.
        is_transposed (bool, optional): Whether columns are the sources of a
            relation and rows its destinations.

    Attributes:
        ends (Tuple[int, ...]): For each relation, the positions in
            ``node_types`` of the types of its rows and columns.
        tensors (Tuple[torch.Tensor, ...]): For each relation ``indptr`` and
            ``indices`` and, if any has weights or times, ``cum_weight`` and
            ``edge_time``, or an empty tensor for relations without.

    Raises:
        IndexError: If a node of an edge is out of range.
        ValueError: If columns are malformed or do not match the types.

    Example:
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> Graph.from_edge_index(edge_index)
        Graph(num_nodes=3, num_edges=3)
    """

    columns: tuple[CSC, ...]
    tensors: tuple[Tensor, ...] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.columns) != len(self.edge_types):
            raise ValueError(
                f"Graph: 'columns' must have one item for each of "
                f'{len(self.edge_types)} edge types (got '
                f'{len(self.columns)})'
            )
        columns = [self._checked(t, csc) for t, csc in self.items()]
        self._set('columns', _common_dtypes(columns))
        self._set('tensors', self._read_tensors())

    def _checked(self, edge_type: Any, csc: CSC) -> CSC:
        name = 'the graph' if edge_type is None else f'{edge_type}'
        rows, cols = self.row_and_column_type(edge_type)
        want = self.counts[rows], self.counts[cols]
        got = csc.num_rows, csc.num_cols
        if not is_compiling() and got != want:
            raise ValueError(
                f'Graph: {name} must have {want[0]} rows and {want[1]} '
                f'columns, one for each node (got {got[0]} and {got[1]})'
            )
        return csc.check(name)

    def _read_tensors(self) -> tuple[Tensor, ...]:
        none = None
        if self.is_weighted or self.is_temporal:
            none = torch.empty(0, dtype=torch.int64, device=self.device)
        tensors: list[Tensor] = []
        for c in self.columns:
            tensors += [c.indptr, c.indices]
            if none is not None:
                tensors += [
                    none if value is None else _check.as_int64(value)
                    for value in (c.cum_weight, c.edge_time)
                ]
        return tuple(map(_check.contiguous, tensors))

    # Constructors ############################################################

    @classmethod
    def from_csc(cls, columns: CSC) -> 'Graph':
        """Creates a homogeneous graph from its columns."""
        return cls((None,), (None,), (columns.num_cols,), (columns,))

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        is_sorted: bool = False,
        index_dtype: torch.dtype | None = None,
    ) -> 'Graph':
        """Creates a homogeneous graph from PyG's ``edge_index``.

        Args:
            edge_index (torch.Tensor): int32 or int64 ``[2, num_edges]``,
                sources and destinations.
            num_nodes (int, optional): Number of nodes; default: the highest
                node of an edge plus one.
            is_sorted (bool, optional): Whether edges are already sorted by
                destination.
            index_dtype (torch.dtype, optional): int32 or int64; default: int32
                if it suffices.

        Raises:
            IndexError: If a node is out of range.
            TypeError: If ``num_nodes`` is not an integer.
            ValueError: If the shape is wrong, or ``is_sorted`` is set and
                edges are not sorted.
        """
        edges = read_adjacency(
            'Graph.from_edge_index', 'edge_index', edge_index
        )
        if num_nodes is None:
            num_nodes = max(edges.sizes)
        elif not isinstance(num_nodes, Integral):
            raise TypeError(
                f"Graph.from_edge_index: 'num_nodes' must be an integer (got "
                f'{num_nodes!r})'
            )
        return cls.from_csc(
            edges.csc(
                num_nodes,
                num_nodes,
                is_sorted=is_sorted,
                index_dtype=index_dtype,
            )
        )

    # Types and sizes #########################################################

    @property
    def num_edges(self) -> int:
        """Number of edges of all relations."""
        return sum(csc.num_edges for csc in self.columns)

    @property
    def is_weighted(self) -> bool:
        """Whether a relation has weights."""
        return any(csc.cum_weight is not None for csc in self.columns)

    @property
    def is_temporal(self) -> bool:
        """Whether a relation has times."""
        return any(csc.edge_time is not None for csc in self.columns)

    def items(self) -> Iterator[tuple[Any, CSC]]:
        """Returns pairs of edge type and columns."""
        return zip(self.edge_types, self.columns, strict=True)

    def __getitem__(self, edge_type: Any) -> CSC:
        """Returns the columns of an edge type.

        Raises:
            KeyError: If there is no such type.
        """
        if edge_type not in self.edge_types:
            raise KeyError(
                f'Graph: {edge_type!r} must be one of {self.edge_types}'
            )
        return self.columns[self.edge_types.index(edge_type)]

    def has_edge(self, edge_type: Any, row: int, col: int, edge: int) -> bool:
        """Returns whether an edge of the original graph has these ends.

        Args:
            edge_type (Tuple[str, str, str], optional): The edge type.
            row (int): The row.
            col (int): The column.
            edge (int): The id of the edge in the original graph.
        """
        csc = self[edge_type]
        part = slice(int(csc.indptr[col]), int(csc.indptr[col + 1]))
        if csc.edge_id is None:
            ids = torch.arange(part.start, part.stop)
        else:
            ids = csc.edge_id[part]
        return bool(((ids == edge) & (csc.indices[part] == row)).any())

    # Weights and times #######################################################

    def with_weights(
        self,
        weights: Mapping[Any, Tensor],
        name: str = 'weight',
        op: str = 'Graph.with_weights',
    ) -> 'Graph':
        """Returns the graph with weights of edges.

        Args:
            weights (Dict[Tuple[str, str, str], torch.Tensor]): The weight of
                each original edge, by edge type. Missing relations are sampled
                uniformly.
            name (str, optional): Name of the weights in errors.
            op (str, optional): Name of the operation in errors.

        Raises:
            TypeError: If ``weights`` is not a dictionary.
            ValueError: If a weight is negative, infinite or NaN, or their
                number is not the number of edges.
        """
        _check_by_type(op, 'weights', weights)
        columns = []
        for edge_type, csc in self.items():
            if edge_type in weights:
                cum_weight = cumulate_argument(
                    op, name, csc.indptr, weights[edge_type], csc.edge_id
                )
                csc = replace(csc, cum_weight=cum_weight)
            columns.append(csc)
        return replace(self, columns=tuple(columns))

    def with_times(
        self,
        edge_time: Mapping[Any, Tensor],
        node_time: Mapping[Any, Tensor] | None = None,
        *,
        is_sorted: bool = False,
        name: str = 'Graph.with_times',
    ) -> 'Graph':
        """Returns the graph with times, and with columns sorted by them.

        An edge exists from the later one of its own time and its row's time.

        Args:
            edge_time (Dict[Tuple[str, str, str], torch.Tensor]): int64, the
                time of each original edge, by edge type.
            node_time (Dict[str, torch.Tensor], optional): int64, the time of
                each node, by node type.
            is_sorted (bool, optional): Whether columns are already sorted by
                time.
            name (str, optional): Name of the function in errors.

        Raises:
            TypeError: If ``edge_time`` is not a dictionary.
            ValueError: If there are already weights, or ``is_sorted`` is set
                and columns are not sorted.
        """
        _check_by_type(name, 'edge_time', edge_time)
        columns = []
        for edge_type, csc in self.items():
            rows, _ = self.row_and_column_type(edge_type)
            parts = []
            if edge_type in edge_time:
                parts.append(csc.in_columns(edge_time[edge_type]))
            if node_time is not None and rows in node_time:
                parts.append(node_time[rows][csc.indices])
            if parts:
                time = parts[0] if len(parts) == 1 else torch.maximum(*parts)
                csc = _with_time(csc, time, is_sorted, name)
            columns.append(csc)
        return replace(self, columns=tuple(columns))

    # Placement ##############################################################

    @property
    def device(self) -> torch.device:
        """The device that samples from the graph."""
        if not self.columns:
            return torch.device('cpu')
        return self.columns[0].indptr.device

    @property
    def location(self) -> Literal['cpu', 'pinned', 'gpu']:
        """The memory of the edges."""
        if not self.columns:
            return 'cpu'
        indices = self.columns[0].indices
        if indices.is_cuda:
            return 'gpu'
        return 'pinned' if placement.is_pinned(indices) else 'cpu'

    def map(self, function: Callable[[CSC], CSC]) -> 'Graph':
        """Returns the graph with a function applied to each relation."""
        return replace(self, columns=tuple(map(function, self.columns)))

    def to(self, device: torch.device | str) -> 'Graph':
        """Returns a copy of the graph on a device."""
        return self.map(lambda csc: csc.to(device))

    def pin(self) -> 'Graph':
        """Returns the graph in pinned memory, for access by GPUs."""
        return self.map(CSC.pin)

    def place(self, where: placement.Placement) -> 'Graph':
        """Returns a copy of the graph placed for a GPU; see CSC.place."""
        return self.map(lambda csc: csc.place(where))

    def transpose(self) -> 'Graph':
        """Returns the graph whose columns list out-neighbours.

        Raises:
            ValueError: If there are weights or times, which are stored by
                column.
        """
        columns = tuple(csc.transpose() for csc in self.columns)
        return replace(
            self, columns=columns, is_transposed=not self.is_transposed
        )

    def share_memory_(self) -> 'Graph':
        """Moves the tensors to shared memory."""
        for csc in self.columns:
            csc.share_memory_()
        return self

    def __repr__(self) -> str:
        nodes: Any = self.num_nodes[0] if self.num_nodes else 0
        edges: Any = self.num_edges
        if self.is_hetero:
            nodes = dict(zip(self.node_types, self.num_nodes, strict=True))
            edges = {t: csc.num_edges for t, csc in self.items()}
        return f'Graph(num_nodes={nodes}, num_edges={edges})'


def _check_by_type(op: str, key: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{op}: '{key}' must be a dictionary by edge type, such as "
            f'{{None: {key}}} of a homogeneous graph (got '
            f'{type(value).__name__})'
        )


def _common_dtypes(columns: list[CSC]) -> tuple[CSC, ...]:
    """Widens indices so that all relations have the same dtypes."""
    indices = _widest([csc.indices.dtype for csc in columns])
    indptr = _widest([indices, *[csc.indptr.dtype for csc in columns]])
    return tuple(
        csc
        if (csc.indptr.dtype, csc.indices.dtype) == (indptr, indices)
        else replace(
            csc, indptr=csc.indptr.to(indptr), indices=csc.indices.to(indices)
        )
        for csc in columns
    )


def _widest(dtypes: list[torch.dtype]) -> torch.dtype:
    return torch.int64 if torch.int64 in dtypes else torch.int32


def _with_time(csc: CSC, time: Tensor, is_sorted: bool, name: str) -> CSC:
    descends = time[1:] < time[:-1]
    starts = csc.indptr[1:-1].long()
    starts = starts[(starts > 0) & (starts < csc.num_edges)]
    descends[starts - 1] = False
    if bool(descends.any()):
        if is_sorted:
            raise ValueError(
                f"{name}: with 'is_sorted', edges must be sorted by time for "
                'each destination (they are not)'
            )
        csc, order = csc.sort_columns(time)
        time = time[order]
    return replace(csc, edge_time=time)
