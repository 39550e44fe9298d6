"""Helpers of fake kernels with data-dependent shapes."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private import (
    allocate_size,
    constant_result,
    shape_env_of,
)

#: Backends that compile programs with unknown lengths.
BACKENDS: list[Callable[..., Any]] = []


@constant_result
def allow_unknown_lengths() -> bool:
    """Lets Dynamo capture operations on data-dependent lengths.

    Dynamo calls it while capturing: before the first call, `.unique()` breaks
    the graph of a program; afterwards it does not.
    """
    from torch_gsample.torch_private.dynamo import capture_unknown_lengths

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
    """Returns pointers of batches; one batch without ``ptr``."""
    size = 2 if ptr is None else ptr.shape[0]
    return tensor.new_empty(size, dtype=torch.int64)
