"""Functions of generated kernels, against those of double precision."""

import ctypes
import os
import subprocess

import pytest
import torch

from torch_gsample.codegen.cpp import LIBRARY, MATH
from torch_gsample.codegen.cpp_library import SUM

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


#: Numbers that are added up: fewer and more than partial sums.
COUNTS = 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 100
TOTAL = """
extern "C" float sum_COUNT(const float* x) {
  return sum_of<COUNT>(x);
}
"""


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    compiler = os.environ.get('CXX', 'g++')
    calls = ''.join(CALL.replace('NAME', name) for name in BOUNDS)
    calls += ''.join(TOTAL.replace('COUNT', str(n)) for n in COUNTS)
    path = tmp_path_factory.mktemp('math') / 'math.so'
    flags = (
        '-O3',
        '-shared',
        '-fPIC',
        '-ffp-contract=off',
        '-fopenmp-simd',
        '-fno-trapping-math',
    )
    subprocess.run(
        [compiler, *flags, '-x', 'c++', '-', '-o', path],
        input=LIBRARY + HEAD + MATH + SUM + calls,
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


@pytest.mark.parametrize('count', COUNTS)
def test_sums_have_one_order(library, count):
    x = torch.randn(count, generator=torch.Generator().manual_seed(count))
    lanes = min(16, 1 << (count - 1).bit_length())
    part = torch.zeros(lanes)
    for i in range(count):
        part[i % lanes] += x[i]
    while part.numel() > 1:
        half = part.numel() // 2
        part = part[:half] + part[half:]
    call = getattr(library, f'sum_{count}')
    call.restype = ctypes.c_float
    assert call(ctypes.c_void_p(x.data_ptr())) == part.item()
