"""Sums along columns, in the order of their edges."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._gradient import register_gradient


def sum_columns(
    indptr: Tensor, value: Tensor, perm: Tensor | None = None
) -> Tensor:
    """Sums the values of the edges of each column, in the order of the edges.

    The sum is therefore bitwise equal on all devices, unlike sums by atomic
    additions, such as ``index_add`` on a GPU.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``, from 0 to
            ``num_edges``.
        value (torch.Tensor): float32 or float64 ``[num_edges]`` or
            ``[num_edges, size]``.
        perm (torch.Tensor, optional): int64 ``[num_edges]``, a permutation:
            the position of the value of each edge; default: the order of the
            edges.

    Returns:
        torch.Tensor: ``[num_cols]`` or ``[num_cols, size]``.

    Raises:
        TypeError: If ``value`` has another dtype.
        ValueError: If a length does not match.

    Example:
        >>> sum_columns(torch.tensor([0, 2, 2, 3]), torch.tensor([1., 2., 4.]))
        tensor([3., 0., 4.])
    """
    op = 'sum_columns'
    device = _check.graph_device(op, indptr)
    indptr = _check.pointers(op, indptr, device)
    if value.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{op}: 'value' must be float32 or float64 (got {value.dtype})"
        )
    if value.dim() not in (1, 2):
        raise ValueError(
            f"{op}: 'value' must have shape [num_edges] or [num_edges, size] "
            f'(got {list(value.shape)})'
        )
    if perm is not None:
        perm = _check.int64_vector(op, 'perm', perm, value.shape[0], device)
    return _check.call(
        torch.ops.gsample.sum_columns,
        indptr,
        _check.contiguous(value),
        perm,
    )


@torch.library.register_fake('gsample::sum_columns')
def _(indptr, value, perm=None):
    return value.new_empty(indptr.shape[0] - 1, *value.shape[1:])


def _setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    indptr, value, perm = inputs
    ctx.save_for_backward(indptr, perm)
    ctx.num_edges = value.shape[0]


def _backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
    indptr, perm = ctx.saved_tensors
    out = torch.repeat_interleave(
        grad, indptr.diff(), 0, output_size=ctx.num_edges
    )
    if perm is not None:
        out = torch.empty_like(out).index_copy(0, perm, out)
    return None, out, None


register_gradient('sum_columns', _backward, _setup_context)
