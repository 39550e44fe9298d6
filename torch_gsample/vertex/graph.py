"""The layouts of a graph that kernels run over, kept as long as the graph."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torch_gsample.formats import CSC
from torch_gsample.snapshot import Snapshot, add_keeper
from torch_gsample.sparse_sample import SparseSample


class Loops(IntEnum):
    """What is done with edges from a vertex to itself."""

    KEEP = 0
    REMOVE = 1
    #: Removed, then one for each vertex: edge row ``num_edges + v``.
    REPLACE = 2


@dataclass(frozen=True)
class Layout:
    """The edges of each vertex, one after the other.

    Args:
        indptr (torch.Tensor): ``[num_vertices + 1]``.
        indices (torch.Tensor): ``[num_edges]``, the neighbours.
        edge_id (torch.Tensor, optional): ``[num_edges]``, the row of an edge
            in edge features; its position if not given.
        num_neighbors (int): How many neighbours there can be.
    """

    indptr: Tensor
    indices: Tensor
    edge_id: Tensor | None
    num_neighbors: int
    _degrees: dict[torch.dtype, Tensor] = field(
        default_factory=dict, compare=False
    )

    @cached_property
    def order(self) -> Tensor | None:
        """Vertices by descending degree, if that pays.

        Degrees count by powers of two: vertices of a class stay in their
        order, as neighbours in numbers are often neighbours in the graph.
        """
        if self.indices.numel() < _SMALL:
            return None
        degree = self.indptr.diff()
        classes = (degree + 1).to(torch.float32).log2().to(torch.int8)
        order = torch.argsort(classes, descending=True, stable=True)
        return order.to(self.indptr.dtype)

    def degree(self, dtype: torch.dtype) -> Tensor:
        """Returns the number of edges of each vertex."""
        if dtype not in self._degrees:
            self._degrees[dtype] = self.indptr.diff().to(dtype)
        return self._degrees[dtype]

    def vertex(self) -> Tensor:
        """Returns the vertex of each edge, int64 ``[num_edges]``."""
        vertices = torch.arange(
            self.indptr.numel() - 1, device=self.indptr.device
        )
        return vertices.repeat_interleave(self.indptr.diff())

    def scatter(self, value: Tensor, num_rows: int) -> Tensor:
        """Returns values of its edges in the rows of edge features."""
        if self.edge_id is None:
            return value
        out = value.new_zeros((num_rows, *value.shape[1:]))
        return out.index_copy(0, self.edge_id.long(), value)


#: Edges of a graph that one thread works through.
_SMALL = 1 << 15


class Graph:
    """A graph in the layouts of both directions.

    Args:
        incoming (Layout): The in-edges of destinations.
        num_edges (int): Rows of edge features.
    """

    def __init__(self, incoming: Layout, num_edges: int):
        self.incoming, self.num_edges = incoming, num_edges
        #: What was made of the last types of edges, by what makes it.
        self.by_type: dict[Any, Any] = {}

    @property
    def num_sources(self) -> int:
        """Number of vertices that edges come from."""
        return self.incoming.num_neighbors

    @property
    def num_destinations(self) -> int:
        """Number of vertices that edges go to."""
        return self.incoming.indptr.numel() - 1

    @cached_property
    def outgoing(self) -> Layout:
        """The out-edges of sources."""
        layout = self.incoming
        csc = CSC.from_coo(
            layout.vertex().to(layout.indices.dtype),
            layout.indices,
            self.num_destinations,
            self.num_sources,
            index_dtype=layout.indices.dtype,
        )
        assert csc.perm is not None
        edge_id = csc.perm
        if layout.edge_id is not None:
            edge_id = layout.edge_id[edge_id]
        return _layout(csc, edge_id)


def read_graph(graph: Any) -> tuple[list[Tensor], tuple[int, int] | None]:
    """Returns the tensors of a graph, and its size if it says it.

    Args:
        graph (Any): A ``SparseSample``, ``edge_index``, ``EdgeIndex`` or
            ``SparseTensor`` (the transposed adjacency, as in PyG).

    Returns:
        Tuple[List[torch.Tensor], Tuple[int, int], optional]: ``[edge_index]``
        or ``[indptr, indices, edge_id]``, and the numbers of sources and
        destinations.

    Raises:
        TypeError: If it is no graph.
        ValueError: If it has another shape.
    """
    if isinstance(graph, SparseSample):
        layout = graph.csc
        rest = [] if layout.perm is None else [layout.perm]
        return [layout.indptr, layout.indices, *rest], graph.shape
    if isinstance(graph, Tensor) and graph.layout == torch.sparse_csr:
        rows, cols = graph.shape
        return [graph.crow_indices(), graph.col_indices()], (cols, rows)
    if isinstance(graph, Tensor):
        data = getattr(graph, '_data', graph)  # of an EdgeIndex
        size = getattr(graph, '_sparse_size', None)
        if data.dim() != 2 or data.shape[0] != 2:
            raise ValueError(
                f"vertex_program: 'graph' must be an edge_index of shape "
                f'[2, num_edges] (got {list(data.shape)})'
            )
        if data.dtype not in (torch.int32, torch.int64):
            raise TypeError(
                f"vertex_program: 'graph' must hold int32 or int64 (got "
                f'{data.dtype})'
            )
        known = size is not None and None not in size
        return [data], (size[0], size[1]) if known else None  # type: ignore
    if callable(getattr(graph, 'csr', None)):  # a SparseTensor
        indptr, indices, _ = graph.csr()
        rows, cols = graph.sparse_sizes()
        return [indptr, indices], (cols, rows)
    raise TypeError(
        f"vertex_program: 'graph' must be a SparseSample, edge_index, "
        f'EdgeIndex or SparseTensor (got {type(graph).__name__})'
    )


class _Cache:
    """Graphs by the tensors that they were made of.

    A graph goes with its tensors, and is made again when they changed, as far
    as a :class:`~torch_gsample.snapshot.Snapshot` notices.
    """

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[Snapshot, dict[tuple, Graph]]] = {}

    def of(self, tensors: Sequence[Tensor]) -> dict[tuple, Graph]:
        """Returns what is known of some tensors."""
        key = tuple(map(id, tensors))
        if any(tensor.is_inference() for tensor in tensors):
            return {}  # these have no version
        found = self._known.get(key)
        if found is None:
            for tensor in tensors:
                weakref.finalize(tensor, self._known.pop, key, None)
        if found is None or not found[0].holds(tensors):
            found = self._known[key] = Snapshot(tensors), {}
        return found[1]

    def forget(self) -> None:
        """Drops all graphs."""
        for _, graphs in list(self._known.values()):
            graphs.clear()


_cache = add_keeper(_Cache())


def graph_of(
    tensors: Sequence[Tensor],
    num_sources: int,
    num_destinations: int,
    loops: Loops = Loops.KEEP,
) -> Graph:
    """Returns a graph, made once of its tensors.

    Args:
        tensors (Sequence[torch.Tensor]): Of :func:`read_graph`.
        num_sources (int): Number of sources.
        num_destinations (int): Number of destinations.
        loops (Loops, optional): What is done with loops.

    Raises:
        IndexError: If a vertex is out of range.
        ValueError: If pointers are malformed.
    """
    known = _cache.of(tensors)
    key = num_sources, num_destinations, loops
    graph = known.get(key)
    if graph is None:
        graph = _make(tensors, num_sources, num_destinations, loops)
        known[key] = graph
    return graph


def _make(
    tensors: Sequence[Tensor], num_sources: int, num_dst: int, loops: Loops
) -> Graph:
    edge_id: Tensor | None
    if len(tensors) > 1:
        indptr, indices = tensors[:2]
        csc = CSC.from_compressed(indptr, indices, num_sources, num_dst)
        edge_id = tensors[2] if len(tensors) > 2 else None
        num_edges = indices.numel()
        if loops == Loops.KEEP:
            return Graph(_layout(csc, edge_id), num_edges)
        row, col = csc.indices.long(), csc.col().long()
    else:
        (row, col), edge_id = tensors[0], None
        num_edges = row.numel()
    if loops != Loops.KEEP:
        row, col = _narrow(row, col, num_sources, num_dst)
        kept = (row != col).nonzero().view(-1)
        row, col = row[kept], col[kept]
        edge_id = kept if edge_id is None else edge_id.long()[kept]
        del kept
    if loops == Loops.REPLACE:
        vertices = torch.arange(
            min(num_sources, num_dst), dtype=row.dtype, device=row.device
        )
        row, col = torch.cat([row, vertices]), torch.cat([col, vertices])
        assert edge_id is not None
        edge_id = torch.cat([edge_id, num_edges + vertices.long()])
        num_edges += vertices.numel()
    csc = CSC.from_coo(row, col, num_sources, num_dst)
    assert csc.perm is not None
    edge_id = csc.perm if edge_id is None else edge_id[csc.perm]
    return Graph(_layout(csc, edge_id), num_edges)


def _narrow(
    row: Tensor, col: Tensor, num_sources: int, num_dst: int
) -> tuple[Tensor, Tensor]:
    """Returns ends of edges as int32, if all are vertices and can be.

    Half the memory is taken while a layout is made. What is out of range stays
    so, for the error that names it.
    """
    for index, size in ((row, num_sources), (col, num_dst)):
        if index.dtype == torch.int32 or not index.numel():
            return row, col
        low, high = (int(x) for x in index.aminmax())
        if low < 0 or high >= min(size, torch.iinfo(torch.int32).max):
            return row, col
    return row.int(), col.int()


def _layout(csc: CSC, edge_id: Tensor | None) -> Layout:
    dtype = csc.indptr.dtype  # as wide as any
    if edge_id is not None:
        edge_id = edge_id.to(dtype)
    return Layout(csc.indptr, csc.indices.to(dtype), edge_id, csc.num_rows)
