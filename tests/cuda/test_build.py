"""The extension with its CUDA half, on a machine without a driver."""

import os
import re
import runpy
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.test_core import find_nvcc

ROOT = Path(__file__).resolve().parents[2]
#: All of a release in `.ci/run`, which builds these anyway; elsewhere one.
ARCHS = os.environ.get('GSAMPLE_CUDA_ARCHS', '90').split(';')
FAST = '--Ofast-compile=max'

LOAD = """
import sys
import torch
torch.ops.load_library(sys.argv[1])
has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
print(torch.cuda.is_available())
print(has_kernel('gsample::sample_neighbors', 'CUDA'))
print(has_kernel('gsample::sample_neighbors', 'CPU'))
"""


def compiles_fast(nvcc):
    """Whether an nvcc knows how to optimise little."""
    done = subprocess.run([nvcc, '--help'], capture_output=True, text=True)
    return FAST.partition('=')[0] in done.stdout


@pytest.fixture(scope='module')
def extension(tmp_path_factory):
    """An extension that is built with CUDA, and what compiled it."""
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip('nvcc was not found: install the CUDA toolkit')
    folder = tmp_path_factory.mktemp('build')
    environment = {
        **os.environ,
        'GSAMPLE_CUDA': '1',
        'GSAMPLE_CUDA_ARCHS': ';'.join(ARCHS),
    }
    if 'GSAMPLE_CUDA_ARCHS' not in os.environ and compiles_fast(nvcc):
        # Made for this test, and never run: two thirds of the time are
        # optimisation.
        environment['NVCC_APPEND_FLAGS'] = FAST
    subprocess.run(
        [sys.executable, 'setup.py', '--quiet', 'build_ext']
        + ['--build-lib', folder],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    return folder / 'torch_gsample' / '_C.so'


def test_it_loads_and_has_kernels_for_both(extension):
    done = subprocess.run(
        [sys.executable, '-c', LOAD, extension],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[1:] == ['True', 'True']


def test_it_needs_no_library_of_cuda(extension):
    done = subprocess.run(
        ['readelf', '--dynamic', extension],
        capture_output=True,
        text=True,
        check=True,
    )
    needed = re.findall(r'NEEDED.*\[(.*)\]', done.stdout)
    assert needed
    assert not [name for name in needed if 'cuda' in name]


def architectures(path):
    """Architectures of the machine code in the fat binaries of a file."""
    data, found = path.read_bytes(), set()
    header = struct.pack('<IHH', 0xBA55ED50, 1, 16)  # magic, version, size
    for match in re.finditer(re.escape(header), data):
        (size,) = struct.unpack_from('<Q', data, match.end())
        at = match.start() + 16
        end = at + size
        while at < end:
            kind, _, before, length = struct.unpack_from('<HHIQ', data, at)
            if kind == 2:  # ELF; 1 is PTX
                found.add(struct.unpack_from('<I', data, at + 28)[0])
            at += before + length
    return found


def test_it_holds_code_for_each_architecture(extension):
    assert architectures(extension) == set(map(int, ARCHS))


@pytest.mark.parametrize(
    'source',
    ['cpu/sample_hops.cpp', 'cpu/draws.cpp', 'storage/io_uring.cpp'],
)
def test_objects_are_made_again_for_what_the_compiler_reads(
    source, monkeypatch
):
    monkeypatch.setattr('setuptools.setup', lambda **_: None)
    build = runpy.run_path(str(ROOT / 'setup.py'))
    path = ROOT / 'csrc' / source
    read = subprocess.run(
        [os.environ.get('CXX', 'g++'), '-std=c++17', '-MM', path],
        capture_output=True,
        text=True,
        check=True,
    )
    names = read.stdout.split(':')[1].replace('\\\n', ' ').split()
    want = {Path(name).resolve() for name in names}
    assert build['included'](path) == want


@pytest.mark.parametrize('name', ['NVCC_PREPEND_FLAGS', 'NVCC_APPEND_FLAGS'])
def test_objects_are_made_again_for_flags_that_only_nvcc_reads(
    name, monkeypatch
):
    monkeypatch.setattr('setuptools.setup', lambda **_: None)
    build = runpy.run_path(str(ROOT / 'setup.py'))
    sources = ROOT / 'csrc/cuda/weights.cu', ROOT / 'csrc/cpu/draws.cpp'

    def made(path):
        name = build['fingerprint'](path, ['compiler'])
        return name, build['folder_of'](path)

    def prints():
        return [*map(made, sources)]

    kernel, host = prints()
    monkeypatch.setenv(name, FAST)
    assert prints()[0][0] != kernel[0]
    assert prints()[0][1] != kernel[1]  # objects of both are kept
    assert prints()[1] == host
