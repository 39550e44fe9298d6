"""What can be extracted from a ``SparseSample``."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops._check import as_int64
from torch_gsample.ops.features import select_rows
from torch_gsample.sparse_sample.errors import check_device, check_dim
from torch_gsample.sparse_sample.layout import Layout

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample

#: An index of rows or columns.
Index = Tensor | slice | list[int] | int


class Extract:
    """Rows, columns and edges, with their ids."""

    __slots__ = ()

    def __getitem__(self: Any, index: tuple[Index, Index]) -> 'SparseSample':
        """Extracts rows and columns.

        Args:
            index (Tuple): Rows and columns: int64 positions, masks, slices or
                lists. Duplicates are copied.

        Raises:
            IndexError: If a position is outside the matrix.
        """
        if not isinstance(index, tuple) or len(index) != 2:
            raise IndexError(
                'SparseSample: an index must be a pair, A[rows, cols] '
                f'(got {type(index).__name__})'
            )
        rows = _positions('rows', index[0], self.num_rows)
        cols = _positions('cols', index[1], self.num_cols)
        if rows is not None:
            return self._take_rows(rows, cols)
        return self if cols is None else self._take_cols(cols)

    def _take_cols(self: Any, cols: Tensor) -> 'SparseSample':
        layout = self.csc
        indptr, indices, edge = ops.slice_cols(
            layout.indptr, layout.indices, cols
        )
        return self._of_csc(
            Layout(indptr, indices),
            (self.num_rows, cols.shape[0]),
            edge,
            self.row_ids,
            ids_at(self.col_ids, cols),
        )

    def _take_rows(
        self: Any, rows: Tensor, cols: Tensor | None = None
    ) -> 'SparseSample':
        if self._csc is None:  # rows are what is compressed
            if cols is None:
                return self.T._take_cols(rows).T
            return self.T._take_rows(cols, rows).T
        layout = self.csc
        indptr, indices, edge = ops.slice_rows(
            layout.indptr, layout.indices, self.num_rows, rows, cols
        )
        col_ids = self.col_ids
        if cols is not None:
            col_ids = ids_at(col_ids, cols)
        return self._of_csc(
            Layout(indptr, indices),
            (rows.shape[0], indptr.shape[0] - 1),
            edge,
            ids_at(self.row_ids, rows),
            col_ids,
        )

    def _of_csc(
        self: Any,
        layout: Layout,
        shape: tuple[int, int],
        edge: Tensor,
        row_ids: Tensor | None,
        col_ids: Tensor | None,
    ) -> 'SparseSample':
        """Makes a matrix of some edges, at positions ``edge`` of the CSC."""
        perm = self.csc.perm
        edge = ids_at(perm, edge)
        value = None if self.value is None else select_rows(self.value, edge)
        return type(self)(
            layout,
            None,
            shape,
            value,
            ids_at(self._edge_id, edge),
            row_ids,
            col_ids,
        )

    def masked(self: Any, mask: Tensor) -> 'SparseSample':
        """Returns the matrix with only those edges for which a mask holds.

        Args:
            mask (torch.Tensor): bool ``[num_edges]``, in the order of
                :attr:`value`.

        Raises:
            ValueError: If ``mask`` is no mask of the edges.
        """
        if mask.dtype != torch.bool or mask.shape != (self.num_edges,):
            raise ValueError(
                f"masked: 'mask' must be a bool vector of {self.num_edges} "
                f'edges (got {mask.dtype} of shape {list(mask.shape)})'
            )
        check_device('masked', self.device, mask)
        layout = self.csc
        if layout.perm is not None:
            mask = mask[layout.perm]
        edge = mask.nonzero().view(-1)
        first = torch.zeros(1, dtype=torch.int64, device=self.device)
        before = torch.cat([first, mask.cumsum(0)])
        indptr = before[as_int64(layout.indptr)].to(layout.indptr.dtype)
        return self._of_csc(
            Layout(indptr, select_rows(layout.indices, edge)),
            self.shape,
            edge,
            self.row_ids,
            self.col_ids,
        )

    def compact(
        self: Any, dim: int = 1, sorted: bool = False
    ) -> 'SparseSample':
        """Drops rows (``dim=1``) or columns (``dim=0``) without an edge.

        Args:
            dim (int, optional): What is dropped.
            sorted (bool, optional): Whether the others keep their order, as
                selected rows always do. If not, they come as in :meth:`row`.
        """
        if check_dim('compact', dim) == 0:
            return self.T.compact(1, sorted).T
        out = self.by_column()
        layout = out.csc
        rows, local = ops.unique_nodes(
            layout.indices,
            out.num_rows,
            sorted=sorted or out.row_ids is not None,
        )
        return type(self)(
            Layout(layout.indptr, local),
            None,
            (rows.shape[0], out.num_cols),
            out.value,
            out._edge_id,
            ids_at(out.row_ids, rows),
            out.col_ids,
        )

    def by_column(self: Any) -> 'SparseSample':
        """Returns the matrix with its edges in the order of the columns."""
        layout = self.csc
        if layout.perm is None:
            return self
        return self._of_csc(
            Layout(layout.indptr, layout.indices),
            self.shape,
            torch.arange(self.num_edges, device=self.device),
            self.row_ids,
            self.col_ids,
        )


def ids_at(ids: Tensor | None, place: Tensor) -> Tensor:
    """The ids at some places, which are the ids where there are none."""
    return place if ids is None else select_rows(ids, place)


def _positions(name: str, index: Index, size: int) -> Tensor | None:
    """Spells an index as positions; :obj:`None` for all."""
    if isinstance(index, slice):
        if index == slice(None):
            return None
        place = range(*index.indices(size))
        end = place.start + len(place) * place.step
        return torch.arange(place.start, end, place.step)
    if isinstance(index, list) and not index:
        return torch.empty(0, dtype=torch.int64)
    try:
        if not isinstance(index, Tensor):
            index = torch.as_tensor(index)
    except (RuntimeError, TypeError, ValueError):
        raise IndexError(
            f"SparseSample: '{name}' must be positions, a mask or a slice "
            f'(got {index!r})'
        ) from None
    if index.dim() == 0:
        index = index.view(1)
    if index.dtype == torch.bool:
        if index.shape != (size,):
            raise IndexError(
                f"SparseSample: a mask of '{name}' must have {size} elements "
                f'(got shape {list(index.shape)})'
            )
        return index.nonzero().view(-1)
    if index.dim() != 1 or index.is_floating_point() or index.is_complex():
        raise IndexError(
            f"SparseSample: '{name}' must be a vector of integers (got "
            f'{index.dtype} of shape {list(index.shape)})'
        )
    index = as_int64(index)
    if index.is_cuda:  # kernels check, so that nothing waits here
        return torch.where(index < 0, index + size, index)
    if not is_compiling() and index.numel() > 0:
        low, high = map(int, torch.aminmax(index))
        if low < -size or high >= size:
            raise IndexError(
                f"SparseSample: '{name}' must be in [{-size}, {size}) (got "
                f'{low if low < -size else high})'
            )
        if low < 0:
            index = torch.where(index < 0, index + size, index)
    return index
