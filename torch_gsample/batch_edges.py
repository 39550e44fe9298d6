"""The edges of a batch in the order of hops.

Each hop has all in-edges of its columns, so that the edges of the first hops
are a prefix: what :mod:`torch_gsample.block` makes blocks of.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch_geometric.utils.sparse import index2ptr

from torch_gsample.csc import CSC
from torch_gsample.torch_private import is_transformed

_INT32_MAX = torch.iinfo(torch.int32).max


class BatchEdges:
    """The edges of a batch (of one relation) in the order of hops.

    Args:
        edge_index (torch.Tensor, optional): int64 ``[2, num_edges]``, sources
            and destinations as local ids; made of ``csc`` if not given.
        num_src (Sequence[int]): New sources of each hop, ``[L + 1]``.
        num_dst (Sequence[int]): New destinations of each hop, ``[L + 1]``.
        num_edges (Sequence[int]): Edges of each hop, ``[L]``.
        by_column (bool, optional): Whether destinations ascend; in padded
            batches they do not.
        csc (CSC, optional): The columns of all edges, if they are known.
    """

    def __init__(
        self,
        edge_index: Tensor | None,
        num_src: Sequence[int],
        num_dst: Sequence[int],
        num_edges: Sequence[int],
        by_column: bool = True,
        csc: CSC | None = None,
    ):
        self._edge_index, self.by_column = edge_index, by_column
        self.counts = tuple(num_src), tuple(num_dst), tuple(num_edges)
        self._made: Tensor | None = None
        self._transposed: dict[tuple[int, int, int], CSC] = {}
        if csc is not None:
            self.csc = csc

    # Most batches never need them, so they are computed on demand.

    @cached_property
    def num_src(self) -> list[int]:
        """Sources up to each hop."""
        return list(accumulate(self.counts[0]))

    @cached_property
    def num_dst(self) -> list[int]:
        """Destinations up to each hop."""
        return list(accumulate(self.counts[1]))

    @cached_property
    def num_edges(self) -> list[int]:
        """Edges up to each hop, 0 before the first."""
        return [0, *accumulate(self.counts[2])]

    @cached_property
    def csc(self) -> CSC:
        """The columns of all edges: int32 where it suffices."""
        with torch.inference_mode(False):  # training may use them later
            return self._columns(self.num_src[-1], self.num_dst[-1])

    @property
    def edge_index(self) -> Tensor:
        """All edges, int64 ``[2, num_edges]``."""
        if self._edge_index is not None:
            return self._edge_index
        if self._made is None:
            csc = self.csc  # in the order of edges, as they are by column
            with torch.inference_mode(False):
                ends = csc.indices.long(), csc.col(torch.int64)
                self._made = torch.stack(ends)
        return self._made

    def has(self, edge_index: Any) -> bool:
        """Whether a tensor is what these edges were made of.

        Where that is not known, as on another device, edges are counted.
        """
        if self._edge_index is not None:
            return edge_index is self._edge_index
        return (
            isinstance(edge_index, Tensor)
            and edge_index.dim() == 2
            and edge_index.shape[1] == self.num_edges[-1]
        )

    def columns(self, num_src: int, num_dst: int, num_edges: int) -> CSC:
        """Returns the columns of the first edges."""
        key = num_src, num_dst, num_edges
        if key == (self.num_src[-1], self.num_dst[-1], self.num_edges[-1]):
            return self.csc
        if not self.by_column:  # columns may have edges of later hops
            with torch.inference_mode(False):
                return self._columns(num_src, num_dst, num_edges)
        indptr = self.csc.indptr[: num_dst + 1]
        indices = self.csc.indices[:num_edges]
        return CSC(indptr, indices, num_src, checked=True)

    def _columns(
        self, num_src: int, num_dst: int, num_edges: int | None = None
    ) -> CSC:
        row, col = self.edge_index[:, :num_edges]
        if not self.by_column:
            return CSC.from_coo(row, col, num_src, num_dst)
        most = max(row.numel(), num_src, num_dst)
        dtype = torch.int32 if most <= _INT32_MAX else torch.int64
        indptr = index2ptr(col.contiguous(), num_dst).to(dtype)
        return CSC(indptr, row.to(dtype), num_src, checked=True)

    def degree(self, weight: Tensor | None, loop: float | None) -> Tensor:
        """Returns what :meth:`Block.in_degree` does, of all nodes."""
        if weight is None:
            return self._count if loop is None else self._count_with_loops
        if loop is None:
            return self._sum(weight)
        row, col = self.edge_index
        own = (row == col).nonzero().view(-1)
        loops = weight.new_full((self.num_dst[-1],), loop)
        loops = loops.index_put((row[own],), weight[own])
        return loops + self._sum(weight.index_fill(0, own, 0))

    @cached_property
    def _count(self) -> Tensor:
        with torch.inference_mode(False):
            return self.csc.degree()

    @cached_property
    def _count_with_loops(self) -> Tensor:
        with torch.inference_mode(False):
            row, col = self.edge_index
            own = col[row == col].bincount(minlength=self.num_dst[-1])
            return self._count + 1 - own.to(self._count.dtype)

    def _sum(self, weight: Tensor) -> Tensor:
        """Returns the sum of a value of each edge, by column."""
        if weight.requires_grad or is_transformed():
            # Torch can differentiate its derivatives again.
            zeros = weight.new_zeros(self.num_dst[-1])
            return zeros.index_add(0, self.edge_index[1], weight)
        offsets = self.csc.indptr.long()
        value = self.csc.in_columns(weight)
        return torch.segment_reduce(value, 'sum', offsets=offsets)

    def made(self, edge_index: Tensor) -> tuple['BatchEdges', Tensor]:
        """Returns other edges of the batch's nodes, and their order.

        They are by column. Those to nodes of the last hop, such as self-loops,
        are the edges of one hop more.

        Args:
            edge_index (torch.Tensor): int64 ``[2, num_edges]``, edges made of
                these.

        Raises:
            IndexError: If a node is out of range.
        """
        src, dst, _ = self.counts
        size = self.num_src[-1], self.num_dst[-1]
        csc = CSC.from_coo(edge_index[0], edge_index[1], *size)
        assert csc.edge_id is not None
        ends = csc.indptr[self.num_dst].tolist()
        counts = [end - start for start, end in pairwise([0, *ends])]
        order, csc = csc.edge_id.long(), replace(csc, edge_id=None)
        return BatchEdges(None, (*src, 0), (*dst, 0), counts, csc=csc), order

    def masked(self, edge_index: Tensor, mask: Tensor) -> 'BatchEdges':
        """Returns the edges that a mask keeps: they stay in the order of hops.

        Args:
            edge_index (torch.Tensor): The kept edges.
            mask (torch.Tensor): bool ``[num_edges]``.
        """
        src, dst, _ = self.counts
        hops = [mask[a:b] for a, b in pairwise(self.num_edges)]
        counts = [int(hop.count_nonzero()) for hop in hops]
        return BatchEdges(edge_index, src, dst, counts, self.by_column)

    def transposed(self, num_src: int, num_dst: int, num_edges: int) -> CSC:
        """Returns the first edges by source, made once."""
        key = num_src, num_dst, num_edges
        if key not in self._transposed:
            with torch.inference_mode(False):
                self._transposed[key] = self.columns(*key).transpose()
        return self._transposed[key]

    def map(self, function: Callable[[Tensor], Tensor]) -> 'BatchEdges':
        """Returns the edges with a function applied to what they are."""
        if not self.by_column:
            return BatchEdges(function(self.edge_index), *self.counts, False)
        out = BatchEdges(None, *self.counts, csc=self.csc.map(function))
        for key, csc in self._transposed.items():
            out._transposed[key] = csc.map(function)
        return out
