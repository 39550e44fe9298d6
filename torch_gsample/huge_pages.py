"""Features on large pages of memory: fewer addresses are looked up."""

import torch
from torch import Tensor


def use_huge_pages(input: Tensor) -> Tensor:
    """Moves a tensor to pages of 2 MiB, where the system has them.

    Rows that are read at random are then found several times as fast: most
    reads of a large table on pages of 4 KiB miss the processor's cache of
    addresses. The tensor stays at its address, with its values. It takes about
    two seconds a GB, once; Linux does it from version 6.1 on, elsewhere
    nothing happens. Files that are mapped stay on their pages.
    :func:`~torch_gsample.quantize_rows` makes its results on such pages.

    Args:
        input (torch.Tensor): Contiguous, in any dtype and shape, on the CPU.

    Returns:
        torch.Tensor: ``input``.

    Raises:
        TypeError: If ``input`` is no tensor.
        ValueError: If it is not on the CPU, or not contiguous.

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
