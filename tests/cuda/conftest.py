"""What the tests of CUDA kernels share."""

import os

import pytest

from tests.cuda.emulated import Builder, Emulator


@pytest.fixture(scope='session')
def builder(tmp_path_factory):
    return Builder(tmp_path_factory.mktemp('cuda'))


@pytest.fixture(scope='session')
def emulator(builder):
    """The emulated operators; `GSAMPLE_EMULATED` names a library of them."""
    built = os.environ.get('GSAMPLE_EMULATED')
    return Emulator(built or builder.operators())
