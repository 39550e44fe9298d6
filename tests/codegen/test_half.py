"""Conversions of half precision in generated kernels: bits and vectors."""

import ctypes
import os
import platform
import subprocess

import pytest
import torch

from tests.codegen.test_kernel_math import HEAD, all_floats
from torch_gsample.codegen.build import FLAGS
from torch_gsample.codegen.cpp import HALF, LIBRARY

KINDS = {torch.bfloat16: 'bf16_t', torch.float16: 'half_t'}
CALL = """
extern "C" void widen_KIND(const KIND* x, float* out, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i)
    out[i] = wide(x[i]);
}
extern "C" void round_KIND(const float* x, KIND* out, int n) {
#pragma omp simd
  for (int i = 0; i < n; ++i)
    out[i] = narrow<KIND>(x[i]);
}
"""


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """The library, and the compiler's report on vectors."""
    compiler = os.environ.get('CXX', 'g++')
    calls = ''.join(CALL.replace('KIND', kind) for kind in KINDS.values())
    path = tmp_path_factory.mktemp('half') / 'half.so'
    flags = *FLAGS, '-O3', '-fno-trapping-math', '-fopt-info-vec-optimized'
    done = subprocess.run(
        [compiler, *flags, '-x', 'c++', '-', '-o', path],
        input=LIBRARY + HEAD + HALF + calls,
        text=True,
        check=True,
        capture_output=True,
    )
    return ctypes.CDLL(str(path)), done.stderr


def call(library, name, x, out):
    pointers = (ctypes.c_void_p(y.data_ptr()) for y in (x, out))
    getattr(library, name)(*pointers, x.numel())
    return out


@pytest.mark.parametrize('dtype', KINDS)
def test_all_numbers_are_widened_as_by_torch(built, dtype):
    bits = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
    x = bits.view(dtype)
    out = call(built[0], f'widen_{KINDS[dtype]}', x, torch.empty(x.shape))
    want = x.float()
    assert torch.equal(out.isnan(), want.isnan())
    number = ~want.isnan()
    same = out.view(torch.int32) == want.view(torch.int32)
    assert same[number].all()


@pytest.mark.parametrize('dtype', KINDS)
def test_numbers_are_rounded_as_by_torch(built, dtype):
    # Ties, and the numbers next to them, of all exponents.
    middle = torch.arange(0, 1 << 16) << 16 | 0x8000
    ties = (middle[:, None] + torch.tensor([-1, 0, 1])).flatten()
    fine = torch.arange(0, 1 << 32, 0x1000)
    bits = torch.cat([ties, fine, fine + 1, fine - 1])
    x = torch.cat([bits.to(torch.int32).view(torch.float32), all_floats(2003)])
    out = torch.empty(x.shape, dtype=dtype)
    call(built[0], f'round_{KINDS[dtype]}', x, out)
    want = x.to(dtype)
    assert torch.equal(out.isnan(), want.isnan())
    number = ~want.isnan()
    same = out.view(torch.int16) == want.view(torch.int16)
    assert same[number].all()


@pytest.mark.skipif(
    'g++' not in os.environ.get('CXX', 'g++')
    or platform.machine() != 'x86_64',
    reason='says what it vectorises: g++ on x86-64',
)
def test_conversions_are_vectorised(built):
    lines = [x for x in built[1].splitlines() if 'loop vectorized' in x]
    assert len({x.split(': optimized')[0] for x in lines}) == 2 * len(KINDS)
