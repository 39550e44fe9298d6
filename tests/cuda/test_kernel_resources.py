"""The table of what kernels take of a GPU."""

import shutil
import subprocess
import sys

import pytest

from tests.cuda.emulated import CSRC
from tools import kernel_resources

REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1fIiEvv' for 'sm_90'
ptxas info    : Function properties for _Z1fIiEvv
    16 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 10504 bytes smem
ptxas info    : Compile time = 12.000 ms
ptxas info    : Function properties for device_function
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z1gv' for 'sm_90'
ptxas info    : Function properties for _Z1gv
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 24 registers, used 0 barriers
"""


def test_reports_are_read():
    first, second = kernel_resources.read(REPORT)
    assert first == ('_Z1fIiEvv', 80, 16, 4, 12, 10504)
    assert second == ('_Z1gv', 24, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ('registers', 'arch', 'warps'),
    [(80, 90, 24), (64, 90, 32), (65, 90, 24), (24, 90, 64), (24, 75, 32)],
)
def test_warps_are_those_of_whole_blocks(registers, arch, warps):
    kernel = kernel_resources.Kernel('f', registers, 0, 0, 0, 0)
    assert kernel.warps(arch, 256) == warps


@pytest.mark.skipif(shutil.which('nvcc') is None, reason='needs nvcc')
def test_it_prints_a_row_for_each_kernel():
    source = CSRC / 'cuda' / 'random_uniform.cu'
    done = subprocess.run(
        [sys.executable, kernel_resources.__file__, source],
        capture_output=True,
        text=True,
        check=True,
    )
    [row] = done.stdout.splitlines()[2:]
    assert row.startswith('| `random_uniform_kernel` | ')


@pytest.mark.skipif(shutil.which('nvcc') is None, reason='needs nvcc')
def test_rows_are_gathered_without_divisions(tmp_path):
    """A compiler divides to unroll a loop with an unknown step."""
    source, output = CSRC / 'cuda' / 'gather_rows.cu', tmp_path / 'rows.ptx'
    flags = ['-O3', '-std=c++17', '-fmad=false', '-arch=sm_90', '-ptx']
    subprocess.run(['nvcc', *flags, source, '-o', output], check=True)
    text = output.read_text()
    assert text.count('.entry') == 8
    assert 'div.' not in text
    assert 'rem.' not in text
