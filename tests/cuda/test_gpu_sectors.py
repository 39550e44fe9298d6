"""The kernel that measures random reads: compiled, and run on the CPU."""

import ctypes
import importlib
import subprocess
import sys
from itertools import pairwise

import pytest
import torch

from tests.built import TOP
from tests.codegen.test_nvrtc import built
from tests.cuda.emulated import GXX

SHIM = """
#define __global__
struct Dim { unsigned x; };
static Dim blockIdx, blockDim, gridDim, threadIdx;
static unsigned long long __umul64hi(unsigned long long a,
                                     unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
%s
extern "C" void run(int blocks, int threads, long long sectors,
                    long long reads, long long lanes, const Part* table,
                    Part* out) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x)
      random_sectors(sectors, reads, lanes, table, out);
}
"""
THREADS = 64


@pytest.fixture
def sectors(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    yield importlib.import_module('gpu_sectors')
    sys.modules.pop('gpu_sectors')


@pytest.fixture
def run(sectors, tmp_path):
    """The addresses that the lanes of each group read, `[groups, lanes]`."""
    source, path = tmp_path / 'kernel.cpp', tmp_path / 'kernel.so'
    source.write_text(SHIM % sectors.SOURCE)
    subprocess.check_call([GXX, '-O1', '-shared', '-fPIC', source, '-o', path])
    function = ctypes.CDLL(str(path)).run

    def run(table, reads, width):
        out = torch.zeros(THREADS, 4, dtype=torch.int32)
        function(
            *(2, THREADS // 2),
            *map(ctypes.c_longlong, (table.nbytes // width, reads)),
            ctypes.c_longlong(width // 16),
            *(ctypes.c_void_p(x.data_ptr()) for x in (table, out)),
        )
        return out.view(-1, width // 16, 4)

    return run


@pytest.mark.parametrize('width', [32, 64, 128, 256])
def test_groups_read_whole_sectors_anywhere(run, width):
    words = width // 4
    table = torch.arange(1, 64 * words + 1, dtype=torch.int32)
    seen = set()
    groups = THREADS * 16 // width
    for group, value in enumerate(run(table, groups, width).flatten(1)):
        first = int(value[0]) - 1
        assert first % words == 0, f'group {group} reads from {first}'
        assert value.tolist() == table[first : first + words].tolist()
        seen.add(first)
    assert len(seen) > groups / 2
    assert max(seen) - min(seen) > 32 * words or groups < 8


def test_all_reads_are_made(run):
    """Sums are those of single reads, of any number of them."""
    table = torch.randint(2**31, (4096,)).int()
    groups = THREADS // 2
    alone = [run(table, groups * i, 32) for i in range(4)]
    assert alone[0].count_nonzero() == 0
    for before, after in pairwise(alone):
        step = before ^ after
        assert (step != 0).any(-1).all()
    odd = run(table, groups + 1, 32)
    assert ((odd != alone[1]).any(-1)).sum() == 2  # lanes of the first group


@pytest.mark.parametrize('arch', ['sm_75', 'sm_80', 'sm_90'])
def test_it_compiles(sectors, arch):
    _, code = built(sectors.SOURCE, arch)
    assert len(code) > 1000
