"""Tensors that say they are on CUDA, and hold numbers on the CPU.

With them a program of many operators runs as on a GPU: an operator of torch
with tensors of both devices is an error, as it is there, and operators of
`torch.ops.gsample` run as emulated kernels.
"""

from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from unittest import mock

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
)
from torch.utils._pytree import tree_iter, tree_map

from tests.cuda.operands import without_keys
from tests.ops.fake_cuda import kernels
from torch_gsample.ops.matrix import mask_by_torch
from torch_gsample.vertex.kernels.operator import run_fused
from torch_gsample.vertex.kernels.products import run_outer, run_product
from torch_gsample.vertex.kernels.relations import run_relations

#: Operators that are made of others there.
COMPOSED = {
    'mask_columns': mask_by_torch,
    'vertex_unit': run_fused,
    'vertex_relations': run_relations,
    'product_by_type': run_product,
    'sum_outer_by_type': run_outer,
}
DEVICE = torch.device('cuda:0')


class OnCuda(torch.Tensor):
    """A tensor on CUDA with its numbers in `held`."""

    @staticmethod
    def __new__(cls, held):
        # As FakeTensor does it: no part of torch looks for a driver then.
        with _disable_current_modes():
            return torch.Tensor._make_subclass(
                cls,
                held.detach().to('meta'),
                held.requires_grad,
                dispatch_device=True,
                device_for_backend_keys=DEVICE,
            )

    def __init__(self, held):
        self.held = held

    @property
    def device(self):
        return DEVICE

    def item(self):
        return self.held.item()

    __int__ = __bool__ = __float__ = __index__ = item

    def tolist(self):
        return self.held.tolist()

    # These look for a driver before they are dispatched.
    def nonzero(self):
        return OnCuda(self.held.nonzero())

    def __invert__(self):
        return OnCuda(~self.held)

    def __getitem__(self, index):
        return OnCuda(self.held[_held_index(index)])

    def __setitem__(self, index, value):
        self.held[_held_index(index)] = held(value)

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        assert operator is torch.ops.prim.device.default, operator
        return DEVICE


class Simulated(TorchDispatchMode):
    """Runs operators on CUDA on the CPU instead."""

    def __init__(self, emulated):
        super().__init__()
        self.emulated, self.patches = emulated, []
        #: Operators of ours that ran as emulated kernels, and on the CPU.
        self.kernels, self.on_cpu = set(), set()

    def __enter__(self):
        # Without a driver torch would not let anybody ask for CUDA.
        patches = ExitStack()
        patches.enter_context(mock.patch('torch.cuda._lazy_init'))
        patches.enter_context(kernels())
        # A CPU tensor was put there by `pin`.
        patches.enter_context(
            mock.patch('torch.Tensor.is_pinned', return_value=True)
        )
        patches.enter_context(
            mock.patch('torch.cuda.is_initialized', return_value=True)
        )
        patches.enter_context(
            mock.patch('torch_gsample.placement.pin', self._pin)
        )
        self.patches.append(patches)
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.patches.pop().close()

    def _pin(self, tensor):
        if isinstance(tensor, OnCuda):
            return tensor
        return self.emulated.on_host(tensor, hidden=False)

    def _is_readable(self, tensor):
        """Whether an operator may read a tensor."""
        there = isinstance(tensor, OnCuda) or tensor.numel() == 0
        return there or self.emulated.is_on_host(tensor)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is torch.ops.prim.device.default:
            return args[0].device
        kwargs = dict(kwargs or {})
        mutable = operator._schema.is_mutable
        device = kwargs.get('device')
        if device is not None:
            kwargs['device'] = torch.device('cpu')
        given = [x for x in tree_iter((args, kwargs)) if _is_tensor(x)]
        cuda = any(isinstance(x, OnCuda) for x in given)
        place = DEVICE if cuda else torch.device('cpu')
        if operator.namespace == 'gsample':
            name = operator._schema.name.removeprefix('gsample::')
            (self.kernels if cuda else self.on_cpu).add(name)
            if cuda and name in COMPOSED:
                with self:
                    return COMPOSED[name](*args, **kwargs)
            if cuda:
                read = without_keys(operator, args, kwargs)
                here = [
                    x
                    for x in read
                    if _is_tensor(x) and not self._is_readable(x)
                ]
                assert not here, (operator, here)
                operator = self.emulated.operator(name)
        else:
            copies = operator in (
                torch.ops.aten._to_copy.default,
                torch.ops.aten.copy_.default,
            )
            here = [x for x in given if not isinstance(x, OnCuda)]
            strangers = [x.shape for x in here if x.dim() > 0]
            assert not (cuda and strangers) or copies, (operator, strangers)
            if device is not None:
                place = torch.device(device)
        out = operator(*tree_map(held, args), **tree_map(held, kwargs))
        if mutable:
            return args[0]
        if place.type == 'cpu':
            return out
        return tree_map(lambda x: OnCuda(x) if _is_tensor(x) else x, out)


class OnSimulated:
    """Where whole programs run: on simulated CUDA, with kernels, if any."""

    def __init__(self, emulated, kernels=None):
        emulated.configure(5, 2, 64, 10)
        self.simulated = Simulated(emulated)
        self.kernels_running = (
            nullcontext if kernels is None else (kernels.running)
        )

    def put(self, tree):
        """Says of tensors that they are there."""
        return tree_map(lambda x: OnCuda(x) if _is_tensor(x) else x, tree)

    def put_matrix(self, matrix):
        """Says of a matrix that it is there."""
        with mock.patch('torch_gsample.placement.pin', self.put):
            return matrix.pin()

    def pin(self, matrix, hidden=True):
        """A copy of a matrix in pinned memory, which holds rubbish here."""
        emulated = self.simulated.emulated
        on_host = partial(emulated.on_host, hidden=hidden)
        with mock.patch('torch_gsample.placement.pin', on_host):
            return matrix.pin()

    def get(self, tree):
        """The numbers of tensors."""
        return tree_map(held, tree)

    @contextmanager
    def running(self):
        """A context in which programs run."""
        with self.kernels_running(), self.simulated:
            yield

    def assert_own(self):
        """Nothing ran on the CPU."""
        assert not self.simulated.on_cpu
        assert self.simulated.kernels


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _held_index(index):
    """A subscript: its tensors must be on CUDA."""
    tensors = [x for x in tree_iter(index) if _is_tensor(x)]
    assert all(isinstance(x, OnCuda) or x.dim() == 0 for x in tensors)
    return tree_map(held, index)


def held(value):
    """The numbers of a tensor, on the CPU."""
    return value.held if isinstance(value, OnCuda) else value


@torch.ops.higher_order.while_loop.py_impl(Simulated)
def _while_loop(mode, holds, body, carried, more):
    """Runs a loop of torch as its dense kernel does."""
    with mode:
        while holds(*carried, *more):
            carried = body(*carried, *more)
    return carried
