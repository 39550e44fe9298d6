"""Functions of generated kernels, against those of double precision."""

import ctypes
import os
import subprocess

import pytest
import torch

from torch_gsample.codegen.cpp import LIBRARY, MATH

#: The most units of the last place by which each may differ.
BOUNDS = {'exp': 1, 'log': 1, 'log1p': 3, 'expm1': 3, 'tanh': 5}
HEAD = """
#define GSAMPLE_INLINE inline
using lib::memcpy;
"""
CALL = """
extern "C" void all_NAME(const float* x, float* out, int n) {
  for (int i = 0; i < n; ++i)
    out[i] = NAME_of(x[i]);
}
"""


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    compiler = os.environ.get('CXX', 'g++')
    calls = ''.join(CALL.replace('NAME', name) for name in BOUNDS)
    path = tmp_path_factory.mktemp('math') / 'math.so'
    flags = (
        '-O3',
        '-shared',
        '-fPIC',
        '-ffp-contract=off',
        '-fno-trapping-math',
    )
    subprocess.run(
        [compiler, *flags, '-x', 'c++', '-', '-o', path],
        input=LIBRARY + HEAD + MATH + calls,
        text=True,
        check=True,
    )
    return ctypes.CDLL(str(path))


def all_floats(step):
    """Every ``step``-th float: normal or not, infinite, and NaN."""
    bits = torch.arange(0, 1 << 32, step).to(torch.int32)
    edges = [0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 88.8]
    return torch.cat([bits.view(torch.float32), torch.tensor(edges)])


@pytest.mark.parametrize('name', BOUNDS)
def test_functions_are_within_their_units_of_the_last_place(library, name):
    x = all_floats(2003)
    out = torch.empty_like(x)
    call = getattr(library, f'all_{name}')
    call(
        *(ctypes.c_void_p(y.data_ptr()) for y in (x, out)),
        ctypes.c_int(x.numel()),
    )
    exact = getattr(torch, name)(x.double())
    want = exact.float()
    assert torch.equal(out.isnan(), want.isnan())
    assert torch.equal(out[want.isinf()], want[want.isinf()])
    finite = want.isfinite()
    size = want[finite].abs()
    unit = torch.nextafter(size, torch.tensor(torch.inf)).double() - size
    unit = unit.clamp(min=2.0**-149)
    error = (out[finite].double() - exact[finite]).abs() / unit
    assert error.max() <= BOUNDS[name]
    assert torch.equal(out[x == 0].signbit(), want[x == 0].signbit())
