"""Reductions of the values of edges, and normalisation by them."""

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops._check import as_int64, detached
from torch_gsample.ops._fake import allow_unknown_lengths
from torch_gsample.sparse_sample.arithmetic import div
from torch_gsample.sparse_sample.errors import Dim, check_dim, reduced_dim
from torch_gsample.sparse_sample.parts import (
    M,
    Parts,
)


def _zeros(matrix: Parts, dim: int, fill: float = 0.0) -> Tensor:
    value = matrix.values()
    return value.new_full((matrix.shape[1 - dim], *value.shape[1:]), fill)


def _scatter(
    matrix: Parts, name: str, reduce: str, dim: int, fill: float
) -> Tensor:
    value = matrix.values()
    index = as_int64(matrix._index(dim)).view(-1, *[1] * (value.dim() - 1))
    return _zeros(matrix, dim, fill).scatter_reduce_(
        0, index.expand_as(value), value, reduce, include_self=False
    )


def sum(matrix: Parts, dim: Dim = None, *, axis: Dim = None) -> Tensor:
    """Sums the values of the edges.

    Args:
        dim (int, optional): 0 sums over rows, with one result per column. 1
            sums over columns. By default, all edges are summed.
        axis (int, optional): NumPy's name for ``dim``.

    Returns:
        torch.Tensor: ``[num_cols]`` or ``[num_rows]`` (and features), 0 for
        columns or rows without edges.
    """
    dim = reduced_dim('sum', dim, axis)
    if dim is None:
        return matrix.values().sum(0)
    if matrix.dtype == torch.bool:  # counts them, as torch does
        matrix = matrix._of_value(matrix.values().long())
    exact = matrix.dtype in (torch.float32, torch.float64)
    if matrix.device.type == 'cuda' and exact:
        return _sum_in_order(matrix, dim)
    return _zeros(matrix, dim).index_add_(
        0, matrix._index(dim), matrix.values()
    )


def _sum_in_order(matrix: Parts, dim: int) -> Tensor:
    """Sums on a GPU in the order of the CPU."""
    layout, value = matrix.csc if dim == 0 else matrix.csr, matrix.values()
    flat = value.view(value.shape[0], -1) if value.dim() > 2 else value
    out = ops.sum_columns(layout.indptr, flat, layout.edge_id)
    return out.view(-1, *value.shape[1:])


def degree(matrix: Parts, dim: int = 0) -> Tensor:
    """Returns the number of edges of each column (row), int64."""
    dim = check_dim('degree', dim)
    if matrix._is_major(dim):
        return as_int64(matrix._stored[0].indptr.diff())
    if is_compiling():
        allow_unknown_lengths()
    size = matrix.shape[1 - dim]
    counts = torch.bincount(matrix._index(dim), minlength=size)
    # Tells a compiler the length, and the dtype, which torch 2.11 gets wrong.
    return as_int64(counts.view(size))


def mean(matrix: Parts, dim: Dim = None, *, axis: Dim = None) -> Tensor:
    """Averages the values of the edges; 0 without edges."""
    dim = reduced_dim('mean', dim, axis)
    if dim is None:
        return matrix.values().mean(0)
    total = sum(matrix, dim)
    count = degree(matrix, dim).clamp(min=1).to(total.dtype)
    return total / count.view(-1, *[1] * (total.dim() - 1))


def max(matrix: Parts, dim: Dim = None, *, axis: Dim = None) -> Tensor:
    """Returns the largest value of the edges; 0 without edges."""
    dim = reduced_dim('max', dim, axis)
    if dim is None:
        return matrix.values().amax(0)
    return _scatter(matrix, 'max', 'amax', dim, 0.0)


def min(matrix: Parts, dim: Dim = None, *, axis: Dim = None) -> Tensor:
    """Returns the smallest value of the edges; 0 without edges."""
    dim = reduced_dim('min', dim, axis)
    if dim is None:
        return matrix.values().amin(0)
    return _scatter(matrix, 'min', 'amin', dim, 0.0)


def prod(matrix: Parts, dim: Dim = None, *, axis: Dim = None) -> Tensor:
    """Multiplies the values of the edges; 1 without edges."""
    dim = reduced_dim('prod', dim, axis)
    if dim is None:
        return matrix.values().prod(0)
    return _scatter(matrix, 'prod', 'prod', dim, 1.0)


def norm(
    matrix: Parts,
    p: float = 2.0,
    dim: Dim = None,
    *,
    axis: Dim = None,
) -> Tensor:
    """Returns the p-norm of the values of the edges."""
    dim = reduced_dim('norm', dim, axis)
    if p == float('inf'):
        return max(matrix._of_value(matrix.values().abs()), dim)
    if p <= 0:
        raise ValueError(f"norm: 'p' must be positive (got {p})")
    total = sum(matrix._of_value(matrix.values().abs() ** p), dim)
    # The root has no gradient at 0, where there is no edge.
    root = torch.where(total > 0, total, 1) ** (1 / p)
    return torch.where(total > 0, root, total)


def softmax(matrix: M, dim: Dim = None, *, axis: Dim = None) -> M:
    """Computes the softmax of the values over the edges of each column.

    Args:
        dim (int, optional): 0 for each column (the default), 1 for each
            row.
        axis (int, optional): NumPy's name for ``dim``.
    """
    dim = reduced_dim('softmax', dim, axis) or 0
    index = matrix._index(dim)
    shift = max(matrix._of_value(detached(matrix.values())), dim)
    shifted = matrix.values() - shift.index_select(0, index)
    out = matrix._of_value(shifted.exp())
    return div(out, sum(out, dim), dim)
