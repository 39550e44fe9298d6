"""Positions of a matrix's edges in another matrix with the same edges."""

import torch
from torch import Tensor

from torch_gsample.ops import _check


def match_edges(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    other_indptr: Tensor,
    other_indices: Tensor,
    other_num_rows: int,
) -> Tensor:
    """Returns the position of each edge in another matrix of the same edges.

    ``value[match_edges(...)]`` reorders values of the other matrix to the
    order of the first. Parallel edges match in their order.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of rows.
        other_indptr (torch.Tensor): ``[num_cols + 1]``, of the other matrix.
        other_indices (torch.Tensor): ``[num_edges]``, of the other matrix.
        other_num_rows (int): Number of rows of the other matrix.

    Returns:
        torch.Tensor: int64 ``[num_edges]``, positions in ``other_indices``.

    Raises:
        ValueError: If the matrices differ in edges or shape.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> row, other_row = torch.tensor([4, 5, 6]), torch.tensor([5, 4, 6])
        >>> match_edges(indptr, row, 7, indptr, other_row, 7)
        tensor([1, 0, 2])
    """
    op = 'match_edges'
    device = _check.graph_device(op, indptr)
    indptr, indices = _check.graph(op, indptr, indices, device)
    other = _check.graph(op, other_indptr, other_indices, device)
    return torch.ops.gsample.match_edges.default(
        indptr, indices, num_rows, *other, other_num_rows
    )


def _match(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    other_indptr: Tensor,
    other_indices: Tensor,
    other_num_rows: int,
) -> Tensor:
    size, other_size = indices.shape[0], other_indices.shape[0]
    shape = [num_rows, indptr.shape[0] - 1]
    other_shape = [other_num_rows, other_indptr.shape[0] - 1]
    same = shape == other_shape and size == other_size
    if same and _equal(indptr, other_indptr):
        if _equal(indices, other_indices):
            return torch.arange(size, device=indices.device)
        # Sorted by row, then column; parallel edges keep their order.
        order, other_order = (
            row.argsort(stable=True) for row in (indices, other_indices)
        )
        counts = indptr.diff()
        col = torch.repeat_interleave(counts, output_size=size)
        if _equal(indices[order], other_indices[other_order]) and _equal(
            col[order], col[other_order]
        ):
            return torch.empty_like(order).index_copy_(0, order, other_order)
    raise ValueError(
        f'match_edges: two matrices must have the same edges (got {size} '
        f'edges of {shape} and {other_size} of {other_shape}, or '
        'edges at other positions)'
    )


def _equal(first: Tensor, second: Tensor) -> bool:
    """Whether integer tensors of any width are equal."""
    if first.dtype != second.dtype:
        first, second = first.long(), second.long()
    return torch.equal(first, second)


torch.library.impl('gsample::match_edges', ('cpu', 'cuda'))(_match)


@torch.library.register_fake('gsample::match_edges')
def _fake(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    other_indptr: Tensor,
    other_indices: Tensor,
    other_num_rows: int,
) -> Tensor:
    return torch.empty_like(indices, dtype=torch.int64)
