"""What the fake kernels of operators with data-dependent shapes share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private import (
    allocate_size,
    capture_unknown_lengths,
    shape_env_of,
)

#: The backends that compile programs of unknown lengths.
BACKENDS: list[Callable[..., Any]] = []


@torch.compiler.assume_constant_result
def allow_unknown_lengths() -> bool:
    """Captures what programs do with lengths that depend on values.

    Dynamo calls it while it captures: `.unique()` of a program breaks the
    graph before the first call, and does not after it.
    """
    capture_unknown_lengths(BACKENDS)
    return True


def dynamic_size() -> torch.SymInt:
    """Returns the unknown length of an output."""
    allow_unknown_lengths()
    context = torch.library.get_ctx()
    shape_env = shape_env_of(context)
    if shape_env is None:
        return context.new_dynamic_size()
    return allocate_size(shape_env)


def pointers_like(tensor: Tensor, ptr: Tensor | None) -> Tensor:
    """Returns where the items of each batch begin, of one without ``ptr``."""
    size = 2 if ptr is None else ptr.shape[0]
    return tensor.new_empty(size, dtype=torch.int64)
