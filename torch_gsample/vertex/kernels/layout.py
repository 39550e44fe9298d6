"""The edges of one direction in a layout for kernels."""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.codegen import pieces
from torch_gsample.codegen.pieces import Pieces
from torch_gsample.csc import CSC
from torch_gsample.ops.formats import sort_by_column

_INT32_MAX = torch.iinfo(torch.int32).max
#: Edges that one thread sorts and runs, at most.
FEW = 1 << 15
#: On a CPU, the share of a graph's edges that are a hub's, at least.
_SHARE = 64
_sort = torch.ops.gsample.sort_edges.default
_transpose = torch.ops.gsample.transpose_columns.default


class Loops(IntEnum):
    """Treatment of self-loops."""

    KEEP = 0
    REMOVE = 1
    #: Removed, then one for each vertex: edge row ``num_edges + v``.
    REPLACE = 2


@dataclass(frozen=True, eq=False)
class Layout(CSC):
    """The edges of each vertex, and the order of vertices in kernels.

    ``edge_id`` is the row of an edge in edge features.

    Args:
        most (int, optional): The largest degree, if known.
    """

    most: int | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, csc: CSC) -> 'Layout':
        """Returns the layout of columns, in one dtype."""
        dtype = csc.indptr.dtype  # the widest dtype
        edge_id = None if csc.edge_id is None else csc.edge_id.to(dtype)
        indices = csc.indices.to(dtype)
        return cls(csc.indptr, indices, csc.num_rows, edge_id, checked=True)

    @cached_property
    def order(self) -> Tensor | None:
        """Vertices by descending degree, if this is faster.

        Degrees are rounded to powers of two. Vertices of a class keep their
        order, as vertices with close ids are often neighbours in the graph.
        """
        if self.num_edges < FEW:
            return None
        classes = (self.degree() + 1).to(torch.float32).log2().to(torch.int8)
        order = torch.argsort(classes, descending=True, stable=True)
        return order.to(self.indptr.dtype)

    @cached_property
    def has_hubs(self) -> bool:
        """Whether sums of a vertex are in several pieces."""
        piece = pieces.PIECE
        return self.num_edges > piece and self._largest > piece

    @cached_property
    def _largest(self) -> int:
        return int(self.degree().max()) if self.most is None else self.most

    @cached_property
    def hubs(self) -> Pieces | None:
        """The first vertices of the order, in pieces of their edges."""
        return (
            None if self.order is None else Pieces.of(self.indptr, self.order)
        )

    def split(self, threads: int) -> 'SplitHubs | None':
        """Returns the hubs that CPU threads share, if a thread would wait.

        Args:
            threads (int): Their number.
        """
        share = self.num_edges // max(threads, 1)
        if self.order is None or not self.has_hubs or self._largest <= share:
            return None
        return self._split

    @cached_property
    def _split(self) -> 'SplitHubs':
        assert self.order is not None
        share = max(self.num_edges // _SHARE, pieces.PIECE)
        least = 1 << share.bit_length() - 1
        hubs = Pieces.of(self.indptr, self.order, least)
        return SplitHubs.of(self, self.order, hubs)

    def transposed(self) -> 'Layout':
        """Returns the edges in the other direction.

        As :meth:`transpose`, without checks, which take longer than sorting
        few edges.
        """
        kind, dtype = type(self), self.indptr.dtype
        is_narrow = dtype == torch.int32 and self.indptr.is_cpu
        if is_narrow and self.num_edges < FEW:
            indptr, indices, edge_id, most = _transpose(
                self.indptr, self.indices, self.edge_id, self.num_rows
            )
            size, most = self.num_cols, int(most)
            return kind(
                indptr, indices, size, edge_id, checked=True, most=most
            )
        vertices = torch.arange(
            self.num_cols, dtype=dtype, device=self.indptr.device
        )
        col = torch.repeat_interleave(
            vertices, self.degree(), output_size=self.num_edges
        )
        indptr, indices, order = sort_by_column(
            col, self.indices, self.num_cols, self.num_rows, dtype
        )
        if self.edge_id is None:
            edge_id = order.to(dtype)
        else:
            edge_id = self.edge_id.index_select(0, order)
        return kind(indptr, indices, self.num_cols, edge_id, checked=True)

    def degree(self, dtype: torch.dtype | None = None) -> Tensor:
        """Returns the number of edges of each vertex, computed once."""
        dtype = dtype or self.indptr.dtype
        if dtype not in self._degrees:
            if dtype == self.indptr.dtype:  # diff() takes three times longer
                degree = self.indptr[1:] - self.indptr[:-1]
            else:
                degree = self.degree().to(dtype)
            self._degrees[dtype] = degree
        return self._degrees[dtype]

    @cached_property
    def _degrees(self) -> dict[torch.dtype, Tensor]:
        return {}

    def scatter(self, value: Tensor, num_rows: int) -> Tensor:
        """Scatters values of the edges to the rows of edge features."""
        if self.edge_id is None:
            return value
        out = value.new_zeros((num_rows, *value.shape[1:]))
        return out.index_copy(0, self.edge_id.long(), value)


class SplitHubs(NamedTuple):
    """The edges of hubs, by piece, for CPU threads.

    Args:
        pieces (Pieces): The hubs.
        graph (Tuple[torch.Tensor, ...]): Pointers of pieces, and the neighbour
            and row in features of each edge.
        edge (torch.Tensor): int64, these rows.
        order (torch.Tensor): The other vertices.
    """

    pieces: Pieces
    graph: tuple[Tensor, Tensor, Tensor]
    edge: Tensor
    order: Tensor

    @classmethod
    def of(cls, layout: Layout, order: Tensor, hubs: Pieces) -> 'SplitHubs':
        """Copies the indices of the edges of hubs."""
        size = (hubs.last - hubs.first).long()
        indptr = torch.cat([size.new_zeros(1), size.cumsum(0)])
        shift = hubs.first - indptr[:-1]
        at = torch.repeat_interleave(shift, size) + torch.arange(
            int(indptr[-1])
        )
        edge = at if layout.edge_id is None else layout.edge_id[at].long()
        dtype = layout.indptr.dtype
        graph = indptr.to(dtype), layout.indices[at], edge.to(dtype)
        return cls(hubs, graph, edge, order[hubs.vertices.numel() :])


def sort_edges(
    edge_index: Tensor, num_rows: int, num_cols: int, loops: Loops
) -> tuple[Layout, int] | None:
    """Returns the layout of in-edges, and the rows of features of edges.

    Args:
        edge_index (torch.Tensor): ``[2, num_edges]``.
        num_rows (int): Number of sources.
        num_cols (int): Number of destinations.
        loops (Loops): Treatment of self-loops.

    Returns:
        Tuple[Layout, int], optional: None if there are many edges, if they are
        on a GPU, or if a vertex is out of range.
    """
    size = edge_index.shape[1]
    most = max(num_rows, num_cols)
    if size >= FEW or most >= _INT32_MAX - FEW or not edge_index.is_cpu:
        return None
    indptr, indices, edge_id, degree, most = _sort(
        edge_index.detach().contiguous(), num_rows, num_cols, int(loops)
    )
    most = int(most)
    if most < 0:
        return None
    layout = Layout(
        indptr, indices, num_rows, edge_id, checked=True, most=most
    )
    layout._degrees[degree.dtype] = degree
    if loops == Loops.REPLACE:
        size += min(num_rows, num_cols)
    return layout, size
