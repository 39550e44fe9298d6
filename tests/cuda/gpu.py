"""Operators on a real GPU, in the place of the emulated ones."""

import torch
from torch.utils._pytree import tree_map

import torch_gsample.ops  # noqa: F401  (registers the operators)


class Gpu:
    """Runs `torch.ops.gsample` on a device, between tensors of the CPU."""

    def __init__(self, device='cuda'):
        self.device = torch.device(device)

    def operator(self, name):
        """The operator, which takes and returns CPU tensors."""

        def call(*args, **kwargs):
            out = getattr(torch.ops.gsample, name)(
                *[self._place(value) for value in args],
                **{key: self._place(kwargs[key]) for key in kwargs},
            )
            return tree_map(torch.Tensor.cpu, out)

        return call

    def configure(self, *args, **kwargs):
        """Nobody chooses the order of execution of a GPU."""

    def _place(self, value):
        if isinstance(value, list):
            return [self._place(item) for item in value]
        if not isinstance(value, torch.Tensor):
            return value
        # Keys stay: they are read when a kernel is started.
        rows = value.dim() == 2 and value.shape[1] == 3
        is_key = value.dtype == torch.int64 and rows
        return value if is_key else value.to(self.device)
