"""Extraction of rows, columns and edges of a ``SparseSample``."""

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops._check import as_int64
from torch_gsample.ops._fake import allow_unknown_lengths
from torch_gsample.ops.features import select_rows
from torch_gsample.sparse_sample.arithmetic import aligned_values
from torch_gsample.sparse_sample.errors import check_device, check_dim
from torch_gsample.sparse_sample.ids import ids_at
from torch_gsample.sparse_sample.parts import M, Parts

#: An index of rows or columns.
Index = Tensor | slice | list[int] | int


def get(matrix: M, index: tuple[Index, Index]) -> M:
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
    rows = _positions('rows', index[0], matrix.num_rows)
    cols = _positions('cols', index[1], matrix.num_cols)
    if rows is not None:
        return take_rows(matrix, rows, cols)
    return matrix if cols is None else take_cols(matrix, cols)


def take_cols(matrix: M, cols: Tensor) -> M:
    """Returns ``matrix[:, cols]`` for positions."""
    if matrix._is_later:
        return matrix._take_cols(cols)
    layout = matrix.csc
    indptr, indices, edge = ops.slice_cols(layout.indptr, layout.indices, cols)
    return of_edges(
        matrix,
        CSC(indptr, indices, matrix.num_rows),
        (matrix.num_rows, cols.shape[0]),
        edge,
        matrix.row_ids,
        ids_at(matrix.col_ids, cols),
    )


def take_rows(matrix: M, rows: Tensor, cols: Tensor | None = None) -> M:
    """Returns ``matrix[rows, cols]`` for positions."""
    if matrix._disk is not None:
        return matrix._take_rows(rows, cols)
    if not matrix._stored[1]:  # stored by row, whatever layouts are cached
        if cols is None:
            return take_cols(matrix.T, rows).T
        return take_rows(matrix.T, cols, rows).T
    layout = matrix.csc
    indptr, indices, edge = ops.slice_rows(
        layout.indptr, layout.indices, matrix.num_rows, rows, cols
    )
    col_ids = matrix.col_ids
    if cols is not None:
        col_ids = ids_at(col_ids, cols)
    return of_edges(
        matrix,
        CSC(indptr, indices, rows.shape[0]),
        (rows.shape[0], indptr.shape[0] - 1),
        edge,
        ids_at(matrix.row_ids, rows),
        col_ids,
    )


def of_edges(
    matrix: M,
    layout: CSC,
    shape: tuple[int, int],
    edge: Tensor,
    row_ids: Tensor | None,
    col_ids: Tensor | None,
) -> M:
    """Returns a matrix of selected edges, at positions ``edge`` of the CSC."""
    edge = ids_at(matrix.csc.edge_id, edge)
    value = None if matrix.value is None else select_rows(matrix.value, edge)
    return matrix._made(
        layout,
        None,
        shape,
        value,
        ids_at(matrix._edge_id, edge),
        row_ids,
        col_ids,
    )


def masked(matrix: M, mask: Tensor | Parts) -> M:
    """Returns the matrix with only the edges of a mask.

    Args:
        mask (torch.Tensor or SparseSample): bool ``[num_edges]``, in the order
            of :attr:`value`, or a matrix of the same edges, such as ``A > 0``.

    Raises:
        TypeError: If ``mask`` is neither.
        ValueError: If ``mask`` does not have a bool for each edge.
    """
    if isinstance(mask, Parts):
        mask = aligned_values(matrix, 'masked', mask)
    elif not isinstance(mask, Tensor):
        raise TypeError(
            "masked: 'mask' must be a tensor or a matrix, such as A > 0 or "
            f'torch.ne(A, 0) (got {mask!r})'
        )
    if mask.dtype != torch.bool or mask.shape != (matrix.num_edges,):
        raise ValueError(
            f"masked: 'mask' must be a bool vector of {matrix.num_edges} "
            f'edges (got {mask.dtype} of shape {list(mask.shape)})'
        )
    check_device('masked', matrix.device, mask)
    return with_edges(matrix, *selected_edges(matrix, mask))


def selected_edges(matrix: M, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the pointers and the CSC positions of the edges of a mask."""
    layout = matrix.csc
    if layout.edge_id is not None:
        mask = mask[layout.edge_id]
    if is_compiling():
        allow_unknown_lengths()
    return ops.mask_columns(layout.indptr, mask)


def with_edges(matrix: M, indptr: Tensor, edge: Tensor) -> M:
    """Returns the matrix with selected edges, at positions of the CSC."""
    if matrix._is_later:
        return matrix._take_edges(indptr, edge)
    indices = select_rows(matrix.csc.indices, edge)
    return of_edges(
        matrix,
        CSC(indptr, indices, matrix.num_rows),
        matrix.shape,
        edge,
        matrix.row_ids,
        matrix.col_ids,
    )


def compact(matrix: M, dim: int = 1, sorted: bool = False) -> M:
    """Drops rows (``dim=1``) or columns (``dim=0``) without an edge.

    Args:
        dim (int, optional): The dimension to shorten.
        sorted (bool, optional): Whether the remaining ones keep their order,
            as selected rows always do. Otherwise they have the order of
            :meth:`row`.
    """
    if check_dim('compact', dim) == 0:
        return compact(matrix.T, 1, sorted).T
    out = by_column(matrix)
    layout = out.csc
    rows, local = ops.unique_nodes(
        layout.indices,
        out.num_rows,
        sorted=sorted or out.row_ids is not None,
    )
    return matrix._made(
        CSC(layout.indptr, local, rows.shape[0]),
        None,
        (rows.shape[0], out.num_cols),
        out.value,
        out._edge_id,
        ids_at(out.row_ids, rows),
        out.col_ids,
    )


def by_column(matrix: M) -> M:
    """Returns the matrix with its edges in the order of the columns."""
    layout = matrix.csc
    if layout.edge_id is None:
        return matrix
    return of_edges(
        matrix,
        CSC(layout.indptr, layout.indices, matrix.num_rows),
        matrix.shape,
        torch.arange(matrix.num_edges, device=matrix.device),
        matrix.row_ids,
        matrix.col_ids,
    )


def induce(matrix: M, nodes: Tensor, batch: Tensor | None = None) -> M:
    """Returns the edges between nodes of a square matrix.

    Args:
        nodes (torch.Tensor): int64 ``[n]``, distinct within a batch.
        batch (torch.Tensor, optional): int64 ``[n]``, the batch of each node.
            Only edges within a batch remain; a node may be in several batches.

    Returns:
        SparseSample: ``[n, n]``: ``A[nodes, nodes]``, or with ``batch`` a
        block-diagonal matrix of these.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[0, 1, 2], [1, 2, 0]])
        ... )
        >>> nodes = torch.tensor([0, 1, 0, 2])
        >>> A.induce(nodes, torch.tensor([0, 0, 1, 1])).to_edge_index()
        tensor([[0, 3],
                [1, 2]])
    """
    layout = matrix.csc
    row, col, edge = ops.induce_subgraph(
        layout.indptr,
        layout.indices,
        matrix.num_rows,
        nodes,
        nodes,
        batch,
        batch,
    )
    # Edges are sorted by column.
    places = torch.arange(nodes.numel() + 1, device=col.device)
    indptr = torch.searchsorted(col, places)
    return of_edges(
        matrix,
        CSC(indptr, row, nodes.numel()),
        (nodes.numel(), nodes.numel()),
        edge,
        ids_at(matrix.row_ids, nodes),
        ids_at(matrix.col_ids, nodes),
    )


def _positions(name: str, index: Index, size: int) -> Tensor | None:
    """Converts an index to positions; :obj:`None` for all."""
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
        if is_compiling():
            allow_unknown_lengths()
        return index.nonzero().view(-1)
    if index.dim() != 1 or index.is_floating_point() or index.is_complex():
        raise IndexError(
            f"SparseSample: '{name}' must be a vector of integers (got "
            f'{index.dtype} of shape {list(index.shape)})'
        )
    index = as_int64(index)
    if index.is_cuda:  # kernels check the range, to avoid a synchronisation
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
