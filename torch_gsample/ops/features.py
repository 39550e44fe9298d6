"""Collection of the features of sampled nodes."""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.ops import _check
from torch_gsample.ops._gradient import register_gradient
from torch_gsample.torch_private import below_autograd

#: From here on, the operator that costs more to call is faster.
_MANY_ROWS = 4096


def gather_rows(
    input: Tensor, index: Tensor, *, num_threads: int = 0
) -> Tensor:
    """Returns ``input[index]``, in memory that later batches use again.

    Fresh memory would cost more than the copy: the operating system zeroes
    it page by page.

    Args:
        input (torch.Tensor): ``[num_rows, *]`` in any dtype. If ``index`` is
            on CUDA it may be in pinned memory of the host, which the GPU then
            reads itself: only the rows cross the bus.
        index (torch.Tensor): int32 or int64 ``[size]``.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        torch.Tensor: ``[size, *]``.

    Raises:
        IndexError: If an index is outside ``[0, num_rows)``.
        TypeError: If ``index`` does not hold integers.
        ValueError: If ``input`` has no dimension, or is not where ``index``
            is.

    Example:
        >>> gather_rows(torch.eye(3), torch.tensor([2, 0]))
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    op = 'gather_rows'
    if input.dim() == 0:
        raise ValueError(
            f"{op}: 'input' must have at least one dimension (got shape "
            f'{list(input.shape)})'
        )
    device = _check.graph_device(op, index, 'index')
    index = _check.node_ids(op, 'index', index, input.shape[0], device)
    if input.device != device and not (index.is_cuda and input.is_pinned()):
        raise ValueError(
            f"{op}: 'input' must be on {device}, where 'index' is, or in "
            f'pinned memory for CUDA (got {input.device}, not pinned)'
        )
    return _check.call(
        torch.ops.gsample.gather_rows.default,
        _check.contiguous(input),
        index,
        num_threads=num_threads,
    )


def select_rows(input: Tensor, index: Tensor) -> Tensor:
    """Returns ``input[index]``, faster where it is long.

    A GPU takes rows of memory that is pinned on the host, too.

    Args:
        input (torch.Tensor): ``[num_rows, *]``.
        index (torch.Tensor): int64 ``[size]``, or of any shape for rows that
            are numbers.
    """
    there = input.is_cuda == index.is_cuda
    if index.dim() != 1:
        if there:
            return input[index]
        return select_rows(input, index.view(-1)).view(index.shape)
    few = is_compiling() or index.shape[0] < _MANY_ROWS or input.is_cuda
    if there and few:
        return input.index_select(0, index)
    return torch.ops.gsample.gather_rows(_check.contiguous(input), index)


def take_rows(input: Tensor, index: Tensor) -> Tensor:
    """Returns ``input[index]``, with the least to do where it is short.

    Args:
        input (torch.Tensor): Contiguous ``[num_rows, *]`` on the CPU, without
            gradients of ``torch.func``.
        index (torch.Tensor): ``[size]`` on the CPU.

    Raises:
        IndexError: If an index is outside ``[0, num_rows)``.
    """
    if input.requires_grad or index.dtype != torch.int64:
        return input.index_select(0, index)
    with below_autograd():
        return _check.call(_operator, input, index)


_operator = torch.ops.gsample.gather_rows.default


@torch.library.register_fake('gsample::gather_rows')
def _(input, index, num_threads=0):
    size = index.shape[0], *input.shape[1:]
    return index.new_empty(size, dtype=input.dtype)


def _setup_context(
    ctx: Any,
    inputs: tuple[Tensor, Tensor],
    keyword_only_inputs: dict[str, Any],
    output: Tensor,
) -> None:
    input, index = inputs
    ctx.save_for_backward(index)
    ctx.shape, ctx.device = input.shape, input.device


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (index,) = ctx.saved_tensors
    sums = grad.new_zeros(ctx.shape).index_add(0, index, grad)
    return sums.to(ctx.device), None


register_gradient('gather_rows', _backward, _setup_context)
