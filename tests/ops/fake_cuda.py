"""Tensors that say they are on CUDA, on machines without it.

They have no values: code that looks at one, which would wait for a GPU,
raises an error.
"""

from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

FAKE = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())


def on_cuda(tensor, index=0):
    """A tensor like another one, on CUDA."""
    with FAKE:
        return torch.empty(
            tensor.shape, dtype=tensor.dtype, device=f'cuda:{index}'
        )


def kernels(built=True):
    """As if this build had CUDA kernels, or none."""
    name = '_dispatch_has_kernel_for_dispatch_key'
    known = getattr(torch._C, name)

    def has_kernel(operator, key):
        if operator.startswith('gsample::') and key == 'CUDA':
            return built
        return known(operator, key)

    return mock.patch.object(torch._C, name, has_kernel)
