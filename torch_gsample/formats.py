"""Sparse formats of a graph.

Rows are sources and columns are destinations, so that column ``v`` of a
:class:`CSC` lists the in-neighbours of ``v``: what a sampler reads.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from torch_gsample import ops


@dataclass(frozen=True)
class CSC:
    """A graph in compressed sparse columns.

    Args:
        indptr (torch.Tensor): ``[num_cols + 1]``, where each column starts.
        indices (torch.Tensor): ``[num_edges]``, the row of each edge.
        num_rows (int): Number of sources.
        perm (torch.Tensor, optional): int64 ``[num_edges]``, the edge of the
            original graph at each position; :obj:`None` if unchanged.
    """

    indptr: Tensor
    indices: Tensor
    num_rows: int
    perm: Tensor | None = None

    @property
    def num_cols(self) -> int:
        """Number of destinations."""
        return self.indptr.numel() - 1

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.indices.numel()

    @classmethod
    def from_coo(
        cls,
        row: Tensor,
        col: Tensor,
        num_rows: int,
        num_cols: int,
        *,
        is_sorted: bool = False,
        index_dtype: torch.dtype | None = None,
    ) -> 'CSC':
        """Sorts edges by column, stably.

        Args:
            row (torch.Tensor): ``[num_edges]``, sources.
            col (torch.Tensor): ``[num_edges]``, destinations.
            num_rows (int): Number of sources.
            num_cols (int): Number of destinations.
            is_sorted (bool, optional): Whether ``col`` ascends already.
            index_dtype (torch.dtype, optional): int32 or int64; if not given,
                int32 where it suffices.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If ``is_sorted`` is wrong.
        """
        if is_sorted and bool((col[1:] < col[:-1]).any()):
            raise ValueError(
                "CSC.from_coo: with 'is_sorted', edges must be sorted by "
                'destination (they are not)'
            )
        indptr, indices, perm = ops.coo_to_csc(
            row, col, num_rows, num_cols, index_dtype
        )
        return cls(indptr, indices, num_rows, None if is_sorted else perm)

    @classmethod
    def from_compressed(
        cls,
        indptr: Tensor,
        indices: Tensor,
        num_rows: int,
        num_cols: int,
        *,
        perm: Tensor | None = None,
        index_dtype: torch.dtype | None = None,
        name: str = 'graph',
    ) -> 'CSC':
        """Takes over columns that are compressed already, after checks.

        Tensors are shared, not copied, unless ``index_dtype`` asks for
        another dtype or columns are missing at the end.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If ``indptr`` is malformed.
        """
        ops.check_csc(indptr, indices, num_rows, name)
        missing = num_cols + 1 - indptr.numel()
        if missing < 0:
            raise ValueError(
                f"CSC.from_compressed: 'indptr' of {name} must have at most "
                f'{num_cols + 1} elements (got {indptr.numel()})'
            )
        if missing > 0:
            indptr = torch.cat([indptr, indptr[-1:].expand(missing)])
        if index_dtype is not None:
            ops.index_widths(
                'CSC.from_compressed',
                indices.numel(),
                max(num_rows, num_cols),
                index_dtype,
            )
            indptr, indices = indptr.to(index_dtype), indices.to(index_dtype)
        return cls(indptr.contiguous(), indices.contiguous(), num_rows, perm)

    def col(self) -> Tensor:
        """Returns the column of each edge, ``[num_edges]``."""
        return torch.repeat_interleave(
            torch.arange(self.num_cols, dtype=self.indices.dtype),
            self.indptr.diff(),
        )

    def transpose(self) -> 'CSC':
        """Returns the graph with its edges reversed.

        ``perm`` of the result refers to the original graph as well.
        """
        out = CSC.from_coo(
            self.col(),
            self.indices,
            self.num_cols,
            self.num_rows,
            index_dtype=self.indices.dtype,
        )
        if self.perm is None:
            return out
        assert out.perm is not None
        return replace(out, perm=self.perm[out.perm])

    def sort_columns(self, by: Tensor) -> tuple['CSC', Tensor]:
        """Sorts the edges of each column, stably.

        Args:
            by (torch.Tensor): ``[num_edges]``, the value to sort by, in the
                current order.

        Returns:
            Tuple[CSC, torch.Tensor]: The sorted graph, and the former
            position of each edge.
        """
        order = torch.argsort(by, stable=True)
        col = self.col()[order]
        _, indices, perm = ops.coo_to_csc(
            self.indices[order],
            col,
            self.num_rows,
            self.num_cols,
            self.indices.dtype,
        )
        order = order[perm]
        perm = order if self.perm is None else self.perm[order]
        return replace(self, indices=indices, perm=perm), order

    def share_memory_(self) -> 'CSC':
        """Moves the tensors to shared memory."""
        for tensor in (self.indptr, self.indices, self.perm):
            if tensor is not None:
                tensor.share_memory_()
        return self
