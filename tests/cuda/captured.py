"""Programs that Dynamo captures on CUDA, on machines without it.

Dynamo looks at fake tensors that say where they are, and what it captured is
compiled as it is for a GPU. What runs then are emulated kernels, on simulated
CUDA.
"""

from contextlib import ExitStack, contextmanager
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tests.cuda.simulated import OnCuda
from tests.ops.fake_cuda import kernels
from torch_gsample.compiler.backend import backend


class Captured:
    """Compiles functions of a matrix and seeds for a simulated GPU."""

    def __init__(self, programs):
        self.programs = programs
        self._given = {}
        self._mode = FakeTensorMode(
            allow_non_fake_inputs=True, shape_env=ShapeEnv()
        )

    def call(self, function, matrix, seeds):
        """Compiles a function for its inputs, and calls it."""
        torch._dynamo.reset()
        program = torch.compile(
            function, backend=self._backend, fullgraph=True
        )
        with mock.patch('torch_gsample.placement.pin', self._fake):
            matrix = matrix.pin()
        # Dynamo leaves functions alone while there are modes like Simulated.
        with kernels(), without_driver():
            return program(matrix, self._fake(seeds))

    def _fake(self, tensor):
        """What Dynamo sees of a tensor."""
        device = 'cuda:0' if isinstance(tensor, OnCuda) else 'cpu'
        with self._mode:
            out = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
        self._given[id(out)] = out, tensor
        return out

    def _backend(self, gm, example_inputs):
        run = backend(gm, example_inputs, options={'strict': True})

        def on_simulated(*inputs):
            with self.programs.running():
                return run(*map(self.real, inputs))

        return on_simulated

    def real(self, tensor):
        """The tensor behind a fake tensor: results may be inputs."""
        return self._given.get(id(tensor), (tensor, tensor))[1]


@contextmanager
def without_driver():
    """Where torch looks for a driver, it gets along without."""
    with ExitStack() as patches:
        patches.enter_context(mock.patch('torch.cuda._lazy_init'))
        for name, method in (
            ('__getitem__', _subscript),
            ('__setitem__', _put),
            ('nonzero', lambda x: torch.ops.aten.nonzero.default(x)),
        ):
            patches.enter_context(
                mock.patch.object(FakeTensor, name, method, create=True)
            )
        yield


def _subscript(tensor, index):
    """The result of a fake tensor's subscript, by operators."""
    dim = 0
    for part in index if isinstance(index, tuple) else (index,):
        if isinstance(part, torch.Tensor):
            places = [None] * dim + [part]
            tensor = torch.ops.aten.index.Tensor(tensor, places)
        elif isinstance(part, slice):
            tensor = torch.ops.aten.slice.Tensor(
                tensor, dim, part.start, part.stop, part.step or 1
            )
        elif part is None:
            tensor = tensor.unsqueeze(dim)
        else:
            tensor, dim = tensor.select(dim, part), dim - 1
        dim += 1
    return tensor


def _put(tensor, index, value):
    torch.ops.aten.index_put_.default(tensor, [index], value)
