"""Queries of a matrix and of a vector."""

import torch
from torch import Tensor

from torch_gsample.ops import _check


def has_edges(
    indptr: Tensor,
    indices: Tensor,
    ptr: Tensor,
    rows: Tensor,
    cols: Tensor | None = None,
    *,
    num_rows: int | None = None,
    num_threads: int = 0,
) -> Tensor:
    """Returns whether columns of a matrix have entries in the queried rows.

    The rows ``rows[ptr[i]:ptr[i + 1]]`` are searched in column ``cols[i]``,
    whose entries may be unsorted. For example, node2vec tests which candidates
    of walker ``i`` are neighbours of its previous node.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        ptr (torch.Tensor): int32 or int64 ``[n + 1]``, the start of the rows
            of each column.
        rows (torch.Tensor): int32 or int64 ``[num_queries]``.
        cols (torch.Tensor, optional): int32 or int64 ``[n]``; default: all
            columns.
        num_rows (int, optional): Number of rows of the matrix. If set, all
            rows read are checked against it.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        torch.Tensor: bool ``[num_queries]``.

    Raises:
        IndexError: If a row or a column is not in the matrix.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If the length of ``ptr`` is not the number of columns plus
            one, or its last element is not the number of rows.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> indices = torch.tensor([4, 5, 6])
        >>> ptr, rows = torch.tensor([0, 1, 3]), torch.tensor([4, 4, 6])
        >>> has_edges(indptr, indices, ptr, rows)
        tensor([ True, False,  True])
    """
    op = 'has_edges'
    device = _check.graph_device(op, indptr)
    indptr, indices = _check.graph(op, indptr, indices, device, False)
    num_cols = indptr.numel() - 1
    rows = _check.int64_vector(op, 'rows', rows, device=device)
    if num_rows is not None:
        rows = _check.in_range(op, 'rows', rows, num_rows)
    ptr = _check.segment_ptr(op, 'ptr', ptr, rows.numel(), device)
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, num_cols, device)
    n = num_cols if cols is None else cols.numel()
    if ptr.numel() != n + 1:
        raise ValueError(
            f"{op}: 'ptr' must have {n + 1} elements, one more than there are "
            f'columns (got {ptr.numel()})'
        )
    return _check.call(
        torch.ops.gsample.has_edges.default,
        indptr,
        indices,
        ptr.to(indptr.dtype),
        rows.to(indices.dtype),
        cols,
        num_rows=num_rows,
        num_threads=num_threads,
    )


def isin(numbers: Tensor, searched: Tensor) -> Tensor:
    """Returns ``torch.isin(numbers, searched)``, on a CPU without sorting.

    Args:
        numbers (torch.Tensor): int64 ``[num_queries]``.
        searched (torch.Tensor): int64 ``[n]``, on the same device.

    Returns:
        torch.Tensor: bool ``[num_queries]``.

    Example:
        >>> isin(torch.tensor([4, 5, 4]), torch.tensor([4, 6]))
        tensor([ True, False,  True])
    """
    if numbers.device.type != 'cpu':
        return torch.isin(numbers, searched)
    indptr, ptr = (torch.tensor([0, x.numel()]) for x in (searched, numbers))
    return has_edges(indptr, searched, ptr, numbers)


def _encoded(
    indptr: Tensor,
    indices: Tensor,
    ptr: Tensor,
    rows: Tensor,
    cols: Tensor | None = None,
    *,
    num_rows: int | None = None,
    num_threads: int = 0,
) -> Tensor:
    """GPU implementation: encodes edges as integers, which torch sorts."""
    if cols is not None:
        indptr, indices, _ = torch.ops.gsample.slice_cols(
            indptr, indices, cols
        )
    codes = []
    for begin, row in ((ptr, rows), (indptr, indices)):
        n, size = begin.shape[0] - 1, row.shape[0]
        col = torch.arange(n, device=row.device)
        col = col.repeat_interleave(begin.diff(), output_size=size)
        codes.append(row.to(torch.int64) * n + col)
    return torch.isin(*codes)


torch.library.impl('gsample::has_edges', 'cuda')(_encoded)


@torch.library.register_fake('gsample::has_edges')
def _fake(indptr, indices, ptr, rows, cols=None, **_):
    return rows.new_empty(rows.shape[0], dtype=torch.bool)
