"""A real GPU, in the place of emulated and simulated ones."""

import re
from contextlib import contextmanager, nullcontext
from unittest import mock

import torch
from torch.utils._pytree import tree_map, tree_map_only

import torch_gsample.ops  # noqa: F401  (registers the operators)
from tests.compiler.programs import compiled
from tests.cuda.operands import placed
from torch_gsample.codegen.cpp import MATH
from torch_gsample.codegen.cuda_driver import Driver

#: Functions of CUDA's library, which may round otherwise than the CPU's; the
#: `exp_of` of doubles is one.
LIBRARY = re.compile(
    r'lib::(exp|log|pow|tanh|erf|sin|cos|log1p|expm1)\(|'
    r'using T = double.*(exp|log|log1p|expm1|tanh)_of\(',
    re.S,
)


def calls_library(source):
    """Whether a kernel calls functions of CUDA's library."""
    return LIBRARY.search(source.replace(MATH, '')) is not None


class Gpu:
    """Runs `torch.ops.gsample` on a device, between tensors of the CPU."""

    def __init__(self, device='cuda'):
        self.device = torch.device(device)

    def operator(self, name):
        """The operator, which takes and returns CPU tensors."""

        operator = getattr(torch.ops.gsample, name).default

        def call(*args, **kwargs):
            args, kwargs = placed(operator, args, kwargs, self._place)
            return tree_map(torch.Tensor.cpu, operator(*args, **kwargs))

        return call

    def configure(self, *args, **kwargs):
        """Nobody chooses the order of execution of a GPU."""

    def sort_at_once(self, numbers):
        """As many as a GPU sorts."""

    def on_host(self, tensor, pinned=True):
        """A copy of a tensor that stays where it is."""
        tensor = tensor.pin_memory() if pinned else tensor.clone()
        tensor.stays = True
        return tensor

    def _place(self, value):
        if not isinstance(value, torch.Tensor) or hasattr(value, 'stays'):
            return value
        return value.to(self.device)


class OnGpu:
    """Where whole programs run: on a GPU."""

    def put_matrix(self, matrix):
        """Moves a matrix there."""
        with mock.patch('torch_gsample.placement.pin', torch.Tensor.cuda):
            return matrix.pin()

    def call_compiled(self, function, matrix, seeds):
        """Compiles a function, and calls it."""
        torch._dynamo.decorators.mark_unbacked(seeds, 0)
        return compiled(function)(matrix, seeds)

    def pin(self, matrix, hidden=True):
        """The matrix in pinned memory."""
        return matrix.pin()

    def put(self, tree):
        """Moves tensors there."""
        return tree_map_only(torch.Tensor, lambda x: x.cuda(), tree)

    def get(self, tree):
        """Moves tensors back."""
        return tree_map_only(torch.Tensor, lambda x: x.cpu(), tree)

    def running(self):
        """A context in which programs run."""
        return nullcontext()

    def assert_own(self):
        """Says that nothing ran elsewhere: tensors of two devices do not."""


class GpuKernels:
    """Generated kernels that NVRTC compiles and the driver starts."""

    def __init__(self):
        self.seed, self.launches, self.last = 1, 0, None
        self.programs = OnGpu()

    @contextmanager
    def running(self):
        """Counts launches."""
        launch = Driver.launch

        def counted(driver, device, function, shape, arguments, stream):
            self.launches += 1
            self.last = arguments
            launch(driver, device, function, shape, arguments, stream)

        with mock.patch.object(Driver, 'launch', counted):
            yield self

    def put(self, tree):
        """Moves tensors to the GPU."""
        return self.programs.put(tree)

    def assert_same(self, got, want, source=''):
        """The same bits, unless CUDA's library took part."""
        got, want = got.cpu().nan_to_num(7), want.nan_to_num(7)
        if source is None or calls_library(source):
            torch.testing.assert_close(got, want)
        else:
            assert torch.equal(got, want)
