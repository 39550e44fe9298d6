"""Gathering of feature rows."""

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.ops import _check
from torch_gsample.ops._gradient import register_gradient
from torch_gsample.torch_private import below_autograd

#: From this number of rows of one number on, the operator is faster, despite
#: its overhead: of an index of any shape, and in :func:`take_rows`.
_MANY_ROWS, _MANY_IN_BATCH = 4096, 16384

#: Below this number of other rows, torch is faster.
_FEW_ROWS = 64

#: Dtypes that widen to float32 without a scale.
_WIDENED = (torch.bfloat16, torch.float16, torch.float32)


def gather_rows(
    input: Tensor,
    index: Tensor,
    scale: Tensor | None = None,
    *,
    widen: bool = False,
    num_threads: int = 0,
) -> Tensor:
    """Returns ``input[index]`` in memory that later batches reuse.

    Fresh memory would cost more than the copy, as the operating system zeroes
    each page.

    Narrow rows are converted to float32: bfloat16 and float16 exactly, int8 as
    ``scale[i] * input[i]`` with one rounding.

    Args:
        input (torch.Tensor): ``[num_rows, *]`` in any dtype. If ``index`` is
            on a GPU, it may be in pinned memory; the GPU then reads only the
            selected rows over the bus.
        index (torch.Tensor): int32 or int64 ``[size]``.
        scale (torch.Tensor, optional): The scales of int8 rows from
            :func:`~torch_gsample.quantize_rows`, float32 ``[num_rows]``, on
            the device of ``input``. The rows become float32.
        widen (bool, optional): Whether to convert rows in bfloat16 or float16
            to float32. Such rows have no gradients.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        torch.Tensor: ``[size, *]``.

    Raises:
        IndexError: If an index is outside ``[0, num_rows)``.
        NotImplementedError: If widened rows or scales require gradients.
        TypeError: If ``index`` is not of an integer dtype, or rows of this
            dtype cannot be converted.
        ValueError: If ``input`` is a scalar or on another device than
            ``index``, or ``scale`` is not float32 with one element per row.

    Example:
        >>> gather_rows(torch.eye(3), torch.tensor([2, 0]))
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
        >>> x = torch.tensor([[1.5, -2.0], [0.25, 8.0]]).bfloat16()
        >>> gather_rows(x, torch.tensor([1]), widen=True)
        tensor([[0.2500, 8.0000]])
    """
    op = 'gather_rows'
    if input.dim() == 0:
        raise ValueError(
            f"{op}: 'input' must have at least one dimension (got shape "
            f'{list(input.shape)})'
        )
    device = _check.graph_device(op, index, 'index')
    index = _check.int64_vector(op, 'index', index, device=device)
    if not _is_there(input, index, device):
        raise ValueError(
            f"{op}: 'input' must be on {device}, the device of "
            "'index', or in pinned memory for CUDA (got "
            f'{input.device}, not pinned)'
        )
    if scale is not None:
        scale = _checked_scale(op, input, scale)
    elif widen and input.dtype not in _WIDENED:
        raise TypeError(
            f"{op}: 'input' must be bfloat16, float16 or float32 to widen, or "
            f"int8 with 'scale' (got {input.dtype})"
        )
    return _check.call(
        torch.ops.gsample.gather_rows.default,
        _check.contiguous(input),
        index,
        scale,
        widen=widen,
        num_threads=num_threads,
    )


def _is_there(value: Tensor, index: Tensor, device: torch.device) -> bool:
    """Whether the device of an index can read a tensor."""
    return value.device == device or (index.is_cuda and value.is_pinned())


def _checked_scale(op: str, input: Tensor, scale: Tensor) -> Tensor:
    """Returns the scales of a matrix's rows after checks.

    Raises:
        TypeError: If the rows are not int8.
        ValueError: If they are not one float32 per row on its device.
    """
    if input.dtype != torch.int8:
        raise TypeError(
            f"{op}: 'input' must be int8 with 'scale' (got {input.dtype})"
        )
    if (
        scale.dtype != torch.float32
        or scale.shape != input.shape[:1]
        or scale.device != input.device
    ):
        raise ValueError(
            f"{op}: 'scale' must be float32 of shape {list(input.shape[:1])} "
            f'on {input.device} (got {scale.dtype} of shape '
            f'{list(scale.shape)} on {scale.device})'
        )
    return _check.contiguous(scale)


def select_rows(input: Tensor, index: Tensor) -> Tensor:
    """Returns ``input[index]``, faster for long indices.

    A GPU can also read rows in pinned memory.

    Args:
        input (torch.Tensor): ``[num_rows, *]``.
        index (torch.Tensor): int64 ``[size]``, or of any shape for scalar
            rows.
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


def index_rows(input: Tensor, index: Tensor) -> Tensor:
    """Returns ``input[index]``, faster for long indices.

    Args:
        input (torch.Tensor): ``[num_rows, *]``.
        index (torch.Tensor): int32 or int64, of any shape; negative ones
            count from the end.

    Raises:
        IndexError: If an index is outside ``[-num_rows, num_rows)``.
    """
    many = index.numel() >= _MANY_ROWS and not index.is_cuda
    plain = input.is_contiguous() and not (
        input.is_cuda or input.requires_grad
    )
    if many and plain:
        rows = index.reshape(-1).to(torch.int64)
        try:
            out = _operator(input, rows)
            return out.view(*index.shape, *input.shape[1:])
        except RuntimeError:  # negative indices
            pass
    return input[index]


def take_rows(input: Tensor, index: Tensor) -> Tensor:
    """Returns ``input[index]``, with the least overhead for short indices.

    Args:
        input (torch.Tensor): Contiguous ``[num_rows, *]`` on the CPU, without
            gradients of ``torch.func``.
        index (torch.Tensor): ``[size]`` on the CPU.

    Raises:
        IndexError: If an index is outside ``[0, num_rows)``.
    """
    one = input.stride(0) == 1
    few = index.shape[0] < (_MANY_IN_BATCH if one else _FEW_ROWS)
    if few or input.requires_grad or index.dtype != torch.int64:
        if not one or input.dim() == 1:
            return input.index_select(0, index)
        # Torch copies rows of a matrix one by one, even of one number.
        rows = input.view(-1).index_select(0, index)
        return rows.view(-1, *input.shape[1:])
    with below_autograd():
        return _check.call(_operator, input, index)


_operator = torch.ops.gsample.gather_rows.default


@torch.library.register_fake('gsample::gather_rows')
def _(input, index, scale=None, widen=False, num_threads=0):
    size = index.shape[0], *input.shape[1:]
    widened = widen or scale is not None
    dtype = torch.float32 if widened else input.dtype
    return index.new_empty(size, dtype=dtype)


def _setup_context(
    ctx: Any,
    inputs: tuple[Tensor, Tensor, Tensor | None],
    keyword_only_inputs: dict[str, Any],
    output: Tensor,
) -> None:
    input, index, _ = inputs
    if output.dtype != input.dtype:
        raise NotImplementedError(
            f'gather_rows: rows that are widened from {input.dtype} have no '
            f"gradients; use features in float32, or 'input.detach()'"
        )
    ctx.save_for_backward(index)
    ctx.shape, ctx.device = input.shape, input.device


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    (index,) = ctx.saved_tensors
    sums = grad.new_zeros(ctx.shape).index_add(0, index, grad)
    return sums.to(ctx.device), None, None


register_gradient('gather_rows', _backward, _setup_context)
