"""What the fake kernels of operators with data-dependent shapes share."""

import torch
from torch import Tensor

from torch_gsample.torch_private import allocate_size, shape_env_of


def dynamic_size() -> torch.SymInt:
    """Returns the unknown length of an output."""
    context = torch.library.get_ctx()
    shape_env = shape_env_of(context)
    if shape_env is None:
        return context.new_dynamic_size()
    return allocate_size(shape_env)


def pointers_like(tensor: Tensor, ptr: Tensor | None) -> Tensor:
    """Returns where the items of each batch begin, of one without ``ptr``."""
    size = 2 if ptr is None else ptr.shape[0]
    return tensor.new_empty(size, dtype=torch.int64)
