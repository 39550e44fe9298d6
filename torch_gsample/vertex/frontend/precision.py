"""The dtypes of a vertex program.

Kernels compute in float32 or float64. Features in half precision stay so in
memory: a kernel widens inputs, and rounds results once, to torch's promotion
of the features. Autocast is off in a program.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from functools import reduce
from typing import Any

import torch
from torch import Tensor

#: The dtypes that kernels widen.
HALF = (torch.float16, torch.bfloat16)


def kernel_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype in which kernels compute with features."""
    return torch.float32 if dtype in HALF else dtype


def half_dtype(dtype: torch.dtype | None) -> torch.dtype | None:
    """Returns a dtype if it has half precision."""
    return dtype if dtype in HALF else None


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts a tensor to a dtype, without a copy if possible."""
    return x if x.dtype == dtype else x.to(dtype)


def promoted(dtypes: Iterable[torch.dtype]) -> torch.dtype | None:
    """Returns the dtype of torch's promotion, if one has half precision."""
    found = set(dtypes)
    if not found & set(HALF):
        return None
    return reduce(torch.promote_types, found)


def is_autocast(device: torch.device) -> bool:
    """Whether autocast is on for a device."""
    kind = device.type
    return kind in ('cpu', 'cuda') and torch.is_autocast_enabled(kind)


def without_autocast(device: torch.device) -> Any:
    """Returns a context without autocast.

    Args:
        device (torch.device): The device of operators.
    """
    if is_autocast(device):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
