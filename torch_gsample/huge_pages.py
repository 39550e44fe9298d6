"""Features on large pages of memory: fewer addresses are looked up."""

import torch
from torch import Tensor


def use_huge_pages(input: Tensor) -> Tensor:
    """Moves a tensor to pages of 2 MiB, if the system supports them.

    Random reads of rows then become several times as fast: on pages of 4 KiB,
    most reads of a large table miss the TLB. The tensor keeps its address and
    values. The call takes about two seconds per GB. It requires Linux 6.1 or
    later and has no effect elsewhere, or for memory-mapped files. Results of
    :func:`~torch_gsample.quantize_rows` are already on such pages.

    Args:
        input (torch.Tensor): Contiguous, in any dtype and shape, on the CPU.

    Returns:
        torch.Tensor: ``input``.

    Raises:
        TypeError: If ``input`` is not a tensor.
        ValueError: If ``input`` is not on the CPU, or not contiguous.

    Example:
        >>> x = use_huge_pages(torch.rand(1000, 100).bfloat16())
        >>> x.shape
        torch.Size([1000, 100])
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"use_huge_pages: 'input' must be a tensor (got {type(input)})"
        )
    if not input.is_cpu or not input.is_contiguous():
        raise ValueError(
            f"use_huge_pages: 'input' must be contiguous on the CPU (got "
            f'strides {list(input.stride())} on {input.device})'
        )
    torch.ops.gsample.advise_huge_pages(input.detach())
    return input
