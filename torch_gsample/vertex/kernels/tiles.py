"""Edges in product order: by tiles of vertices, then by type."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from torch_gsample.codegen.cpp_relations import TILE
from torch_gsample.vertex.kernels.layouts import Layouts

#: Pairs per block of a sum of outer products, and the target number of blocks,
#: which is the number of matrices in memory.
_PAIRS, _BLOCKS = 256, 128


@dataclass(frozen=True)
class EdgeGroups:
    """Edges in groups, and groups in tiles or blocks.

    Unlike in a :class:`~torch_gsample.CSC`, ``indptr`` is by tile, not by
    vertex.

    Args:
        indptr (torch.Tensor): The first edge of each tile.
        indices (torch.Tensor): ``[num_edges]``, the rows to sum.
        code (torch.Tensor): ``[num_edges]``, the group of each edge.
        order (torch.Tensor): Tiles in descending order of edges.
        count (torch.Tensor): ``[num_edges]``, the number of in-edges of the
            same type at each edge's destination.
        num_groups (int): The number of groups.
        type (torch.Tensor): The type of each block.
    """

    indptr: Tensor
    indices: Tensor
    code: Tensor
    order: Tensor
    count: Tensor
    num_groups: int
    type: Tensor

    def scale(self, dtype: torch.dtype) -> Tensor:
        """Returns the factor of each edge in a mean."""
        return self.count.to(dtype).reciprocal_()


class Tiles:
    """The edges of a graph for products by type, in both directions.

    Args:
        graph (Layouts): The graph.
        each (torch.Tensor): int64 ``[num_edges]``, the type of each edge, in
            the order of in-edges.
    """

    def __init__(self, graph: Layouts, each: Tensor):
        layout = graph.incoming
        self._graph, self._dtype = graph, layout.indptr.dtype
        self.num_types = int(each.max()) + 1 if each.numel() else 0
        self._each = each.to(self._dtype)
        #: Rows of sources and of destinations.
        self.rows = graph.num_sources, graph.num_destinations
        key = each * graph.num_destinations + layout.col(torch.int64)
        _, place, counts = key.unique(return_inverse=True, return_counts=True)
        self._count = counts.to(self._dtype)[place]

    @cached_property
    def incoming(self) -> EdgeGroups:
        """Groups of a destination and a type, in tiles of destinations."""
        return self._tiles(*self._ends(False))

    @cached_property
    def outgoing(self) -> EdgeGroups:
        """Groups of a source and a type, in tiles of sources."""
        return self._tiles(*self._ends(True))

    @cached_property
    def blocks(self) -> tuple[EdgeGroups, bool]:
        """Groups of one type in each block, and whether they are of sources.

        The side with fewer groups is used, because each group is a row of a
        product.
        """
        of_sources = self.outgoing.num_groups < self.incoming.num_groups
        return self._blocks(*self._ends(of_sources)), of_sources

    def _ends(self, of_sources: bool) -> tuple[Tensor, Tensor, int]:
        """Returns vertex and neighbour of each edge, and the vertices."""
        layout = self._graph.incoming
        ends = layout.col(torch.int64), layout.indices.long()
        if of_sources:
            ends = ends[1], ends[0]
        return *ends, self.rows[not of_sources]

    def _tiles(self, row: Tensor, other: Tensor, num_rows: int) -> EdgeGroups:
        codes = max(1, self.num_types) * TILE
        key = row // TILE * codes + self._each * TILE + row % TILE
        key, order = torch.sort(key, stable=True)
        tiles = torch.arange(-(-num_rows // TILE) + 1, device=key.device)
        indptr = torch.searchsorted(key, tiles * codes)
        new = key.diff() != 0
        return self._grouped(
            *(indptr, other[order], key % codes, self._count[order]),
            *(int(new.sum()) + min(1, key.numel()), tiles),
        )

    def _blocks(self, row: Tensor, other: Tensor, num_rows: int) -> EdgeGroups:
        num_rows = max(1, num_rows)
        key = self._each.long() * num_rows + row
        key, order = torch.sort(key, stable=True)
        groups, counts = key.unique_consecutive(return_counts=True)
        size = max(_PAIRS, -(-groups.numel() // _BLOCKS))
        type_ = groups // num_rows
        bounds = torch.arange(self.num_types, device=key.device)
        number = torch.arange(groups.numel(), device=key.device)
        number = number - torch.searchsorted(type_, bounds)[type_]
        first = number % size == 0
        starts = (counts.cumsum(0) - counts)[first]
        indptr = torch.cat([starts, starts.new_tensor([key.numel()])])
        return self._grouped(
            *(indptr, other[order], key % num_rows, self._count[order]),
            *(groups.numel(), type_[first]),
        )

    def _grouped(
        self,
        indptr: Tensor,
        indices: Tensor,
        code: Tensor,
        count: Tensor,
        groups: int,
        type_: Tensor,
    ) -> EdgeGroups:
        order = torch.argsort(indptr.diff(), descending=True, stable=True)
        indptr, indices, code, order = (
            x.to(self._dtype) for x in (indptr, indices, code, order)
        )
        return EdgeGroups(indptr, indices, code, order, count, groups, type_)
