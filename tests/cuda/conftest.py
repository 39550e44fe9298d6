"""Fixtures of the tests of CUDA kernels."""

import os

import pytest
import torch

from tests.cuda.emulated import Builder, Emulator
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.gpu import Gpu, GpuKernels, OnGpu
from tests.cuda.simulated import OnSimulated
from torch_gsample import placement

#: `GSAMPLE_TEST_GPU=1` insists on a GPU.
HAS_GPU = torch.cuda.is_available() or 'GSAMPLE_TEST_GPU' in os.environ
#: Parameters of tests that run on a GPU, as a name and as a device.
ON_GPU = [pytest.param('gpu', marks=pytest.mark.gpu)] * HAS_GPU
ON_CUDA = [pytest.param('cuda', marks=pytest.mark.gpu)] * HAS_GPU


@pytest.fixture(scope='session')
def builder(tmp_path_factory):
    return Builder(tmp_path_factory.mktemp('cuda'))


@pytest.fixture(scope='session')
def emulated(builder):
    """The emulated operators; `GSAMPLE_EMULATED` names a library of them."""
    built = os.environ.get('GSAMPLE_EMULATED')
    return Emulator(built or builder.operators())


@pytest.fixture(scope='session', params=['emulated'] + ON_GPU)
def cuda(request):
    """The CUDA operators on CPU tensors: emulated, and on a GPU if any."""
    if request.param == 'gpu':
        return Gpu()
    return request.getfixturevalue('emulated')


@pytest.fixture(scope='session', params=['emulated'] + ON_GPU)
def kernels_from(request):
    """Makes what runs generated kernels, of a function that emulates them."""

    def kernels(emulate):
        return GpuKernels() if request.param == 'gpu' else emulate()

    return kernels


@pytest.fixture(params=['emulated'] + ON_GPU)
def programs(request):
    """Where whole programs run: on simulated CUDA, and on a GPU if any."""
    if request.param == 'gpu':
        return OnGpu()
    return OnSimulated(request.getfixturevalue('emulated'))


@pytest.fixture
def programs_of_kernels(request, kernels):
    """The same, with the generated kernels of a test."""
    if isinstance(kernels, GpuKernels):
        return kernels.programs
    return OnSimulated(request.getfixturevalue('emulated'), kernels)


@pytest.fixture
def driver(monkeypatch):
    """A driver that registers memory of this machine."""
    fake = FakeDriver()
    monkeypatch.setattr(placement, '_driver', lambda: fake)
    monkeypatch.setattr(placement, '_check_cuda', lambda _, device: device)
    return fake
