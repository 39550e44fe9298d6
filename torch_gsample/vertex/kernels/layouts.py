"""Layouts of a graph for kernels, cached with the graph."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torch_gsample.adjacency import naming_edges, read_adjacency
from torch_gsample.block import Block
from torch_gsample.csc import CSC
from torch_gsample.ops._check import INDEX_DTYPES
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.vertex.kernels.graph_cache import known_of
from torch_gsample.vertex.kernels.layout import Layout, Loops, sort_edges


class Layouts:
    """The edges of a call in the layouts of both directions.

    Unlike in a :class:`~torch_gsample.Graph`, sources and destinations have
    separate ids, and there may be rows of edge features without an edge.

    Args:
        incoming (Layout): The in-edges of destinations.
        num_edges (int): Rows of edge features.
    """

    def __init__(self, incoming: Layout, num_edges: int):
        self.incoming, self.num_edges = incoming, num_edges
        #: Cached results for the last edge types, by function.
        self.by_type: dict[Any, Any] = {}
        #: Tiles of edges, by their size.
        self.tiles: dict[int, Any] = {}

    @property
    def num_sources(self) -> int:
        """Number of source vertices."""
        return self.incoming.num_rows

    @property
    def num_destinations(self) -> int:
        """Number of destination vertices."""
        return self.incoming.indptr.numel() - 1

    @cached_property
    def outgoing(self) -> Layout:
        """The out-edges of sources."""
        return self.incoming.transposed()

    @cached_property
    def turned(self) -> 'Layouts':
        """The edges in the other direction."""
        made = Layouts(self.outgoing, self.num_edges)
        made.outgoing = self.incoming
        return made


class BlockLayout(Layout):
    """The edges of each vertex of a block.

    Fan-outs bound degrees, so no order of vertices is faster.
    """

    order = None


class BlockLayouts(Layouts):
    """The edges of a block in the layouts of both directions.

    Args:
        block (Block): The block, with its transposed order.
        loops (Loops): Treatment of self-loops.
    """

    def __init__(self, block: Block, loops: Loops):
        num_edges, csc = block.num_edges, block.csc
        self._block = block if loops == Loops.KEEP else None
        if loops != Loops.KEEP:
            csc = _without_loops(csc)
        if loops == Loops.REPLACE:
            csc = _with_loops(csc, min(block.size), num_edges)
            num_edges += min(block.size)
        super().__init__(BlockLayout.of(csc), num_edges)

    @cached_property
    def outgoing(self) -> Layout:
        """The out-edges of sources."""
        if self._block is None:
            return self.incoming.transposed()
        return BlockLayout.of(self._block.transposed)


def _without_loops(csc: CSC) -> CSC:
    """Returns columns without edges from a vertex to itself."""
    kept = csc.indices != csc.col()
    if bool(kept.all()):
        return csc
    indptr = torch.cat(
        [csc.indptr[:1], kept.cumsum(0, dtype=csc.indptr.dtype)]
    )
    edge_id = kept.nonzero().view(-1)
    indices = csc.indices[edge_id]
    if csc.edge_id is not None:
        edge_id = csc.edge_id[edge_id]
    return CSC(
        *(indptr[csc.indptr], indices, csc.num_rows),
        edge_id.to(csc.indptr.dtype),
        checked=True,
    )


def _with_loops(csc: CSC, count: int, first: int) -> CSC:
    """Returns columns that end with a loop: the first ``count`` of them.

    ``edge_id`` of the first loop is ``first``.
    """
    ids = torch.arange(csc.num_cols + 1, dtype=csc.indptr.dtype)
    ids = ids.to(csc.indptr.device)
    before = ids.clamp(max=count)  # loops of earlier columns
    indptr = csc.indptr + before
    place = torch.repeat_interleave(
        before[:-1], csc.indptr.diff(), output_size=csc.num_edges
    )
    edges = torch.arange(csc.num_edges, dtype=ids.dtype, device=ids.device)
    place = (place + edges).long()
    ends = indptr[1 : count + 1].long() - 1
    indices = csc.indices.new_empty(csc.num_edges + count)
    indices[place] = csc.indices
    indices[ends] = ids[:count].to(csc.indices.dtype)
    edge_id = indptr.new_empty(csc.num_edges + count)
    edge_id[place] = edges if csc.edge_id is None else csc.edge_id.to(ids)
    edge_id[ends] = first + ids[:count]
    return CSC(indptr, indices, csc.num_rows, edge_id, checked=True)


def _read_block(block: Block) -> list[Tensor]:
    """Returns the tensors of a block, and caches its layout."""
    known = known_of(block.tensors)
    if _BLOCK not in known:
        # A copy: the cache must not hold the tensors whose end it awaits.
        known[_BLOCK] = Block(block.edges, block.level)
    return block.tensors


#: The cache key of a tensor's block.
_BLOCK = ('block',)


def known_block(block: Block) -> Tensor:
    """Returns the edges of a block, whose layouts are those of the block."""
    known_of([block.edge_index]).setdefault(
        _BLOCK, Block(block.edges, block.level)
    )
    return block.edge_index


def read_graph(graph: Any) -> tuple[list[Tensor], tuple[int, int] | None]:
    """Returns the tensors of a graph, and its size if known.

    Args:
        graph (Any): A ``SparseSample``, a ``Block``, or a format of
            :func:`~torch_gsample.adjacency.read_adjacency`; rows of matrices
            are destinations, as in PyG's ``adj_t``.

    Returns:
        Tuple[List[torch.Tensor], Tuple[int, int], optional]: ``[edge_index]``
        or ``[indptr, indices, edge_id]``, and the numbers of sources and
        destinations.

    Raises:
        TypeError: If it is not a graph.
        ValueError: If it has another shape.
    """
    if _is_plain(graph):  # first: for few vertices, Python takes longest
        return [graph], None
    if isinstance(graph, Block):
        return _read_block(graph), graph.size
    if isinstance(graph, SparseSample):
        columns, shape = graph.csc, graph.shape
        tensors = [columns.indptr, columns.indices, columns.edge_id]
        return [t for t in tensors if t is not None], shape
    edges = read_adjacency('vertex_program', 'graph', graph, transposed=True)
    if edges.layout == 'csc':
        tensors = [edges.col, edges.row, edges.edge_id]
        return [t for t in tensors if t is not None], edges.shape
    if isinstance(graph, Tensor) and graph.layout == torch.strided:
        as_tensor = getattr(graph, 'as_tensor', None)  # of an EdgeIndex
        return [graph if as_tensor is None else as_tensor()], edges.shape
    return [edges.edge_index()], edges.shape


def _is_plain(graph: Any) -> bool:
    """Whether a graph is a tensor of edges as kernels read them."""
    return (
        type(graph) is Tensor
        and graph.layout == torch.strided
        and graph.dtype in INDEX_DTYPES
        and graph.dim() == 2
        and graph.shape[0] == 2
    )


def layouts_of(
    tensors: Sequence[Tensor],
    num_sources: int,
    num_destinations: int,
    loops: Loops = Loops.KEEP,
) -> Layouts:
    """Returns the layouts of a graph, computed once for its tensors.

    Args:
        tensors (Sequence[torch.Tensor]): A result of :func:`read_graph`.
        num_sources (int): Number of sources.
        num_destinations (int): Number of destinations.
        loops (Loops, optional): Treatment of self-loops.

    Raises:
        IndexError: If a vertex is out of range.
        ValueError: If pointers are malformed.
    """
    known = known_of(tensors)
    key = num_sources, num_destinations, loops
    graph: Layouts | None = known.get(key)
    if graph is None:
        block = known.get(_BLOCK)
        if isinstance(block, Block) and block.size == key[:2]:
            graph = BlockLayouts(block, loops)
        else:
            graph = _make(tensors, num_sources, num_destinations, loops)
        known[key] = graph
    return graph


def _make(
    tensors: Sequence[Tensor], num_sources: int, num_dst: int, loops: Loops
) -> Layouts:
    edge_id: Tensor | None
    if len(tensors) == 1:
        found = sort_edges(tensors[0], num_sources, num_dst, loops)
        if found is not None:
            return Layouts(*found)
    if len(tensors) > 1:
        # The cache must not hold the tensors that are its keys.
        indptr, indices, *rest = (tensor.detach() for tensor in tensors)
        edge_id = rest[0] if rest else None
        csc = CSC.from_compressed(
            indptr, indices, num_sources, num_dst, edge_id=edge_id
        )
        num_edges = indices.numel()
        if loops == Loops.KEEP:
            return Layouts(Layout.of(csc), num_edges)
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
    with naming_edges('vertex_program', 'graph'):
        csc = CSC.from_coo(row, col, num_sources, num_dst)
    if edge_id is not None:
        csc = replace(csc, edge_id=csc.in_columns(edge_id))
    return Layouts(Layout.of(csc), num_edges)


def _narrow(
    row: Tensor, col: Tensor, num_sources: int, num_dst: int
) -> tuple[Tensor, Tensor]:
    """Converts ends of edges to int32, if all are valid and fit.

    This halves the memory for building a layout. Values out of range stay, for
    the error that names them.
    """
    for index, size in ((row, num_sources), (col, num_dst)):
        if index.dtype == torch.int32 or not index.numel():
            return row, col
        low, high = (int(x) for x in index.aminmax())
        if low < 0 or high >= min(size, torch.iinfo(torch.int32).max):
            return row, col
    return row.int(), col.int()
