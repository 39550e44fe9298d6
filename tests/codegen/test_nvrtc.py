"""Kernels for a GPU at first use: NVRTC, the cache, the driver, or neither."""

import ctypes
import os
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.codegen.test_build import PROGRAM
from tests.fresh import Run
from torch_gsample.codegen import nvrtc, run_cuda
from torch_gsample.codegen.build import BuildError, read
from torch_gsample.codegen.cuda import cuda_kernel
from torch_gsample.codegen.cuda_driver import Driver
from torch_gsample.codegen.nvrtc import Nvrtc, build_cubin
from torch_gsample.codegen.run_cuda import run_edge_map

SOURCE = cuda_kernel(PROGRAM).source
X = torch.tensor([1.0, 2.0, 3.0])


def built(source, arch):
    """The path of machine code, and its bytes."""
    with build_cubin(source, arch) as file:
        return Path(file.name), read(file)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / 'kernels'
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(path))
    return path


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    """A driver with one kernel."""
    path = tmp_path_factory.mktemp('driver') / 'libcuda.so.1'
    source = Path(__file__).with_name('driver.cpp')
    compiler = os.environ.get('CXX', 'g++')
    command = [compiler, '-shared', '-fPIC', source, '-o', path]
    subprocess.run(command, check=True)
    return str(path)


@pytest.fixture
def gpu(monkeypatch, library):
    """A machine with that driver."""
    driver = Driver(library)
    monkeypatch.setattr(run_cuda, 'driver', lambda: driver)
    stream = SimpleNamespace(cuda_stream=77)
    monkeypatch.setattr(torch.cuda, 'current_stream', lambda device: stream)
    monkeypatch.setattr(
        torch.cuda, 'get_device_capability', lambda device: (9, 0)
    )
    run_cuda._functions.clear()
    run_cuda._loaded.cache_clear()
    yield driver
    run_cuda._functions.clear()
    run_cuda._loaded.cache_clear()


def test_machine_code_is_made_once(folder, monkeypatch):
    path, code = built(SOURCE, 'sm_90')
    assert path.parent == folder
    assert code[:4] == b'\x7fELF'
    assert b'gsample_kernel' in code
    monkeypatch.setattr(Nvrtc, 'compile', None)  # is not called
    assert built(SOURCE, 'sm_90') == (path, code)


def test_text_options_and_architecture_are_the_key(folder, monkeypatch):
    monkeypatch.setattr(Nvrtc, 'compile', lambda self, text, arch: b'code')
    first = built(SOURCE, 'sm_90')
    assert first[1] == b'code'
    assert built(SOURCE, 'sm_80') != first
    assert built(SOURCE + '// other\n', 'sm_90') != first
    monkeypatch.setattr(nvrtc, 'OPTIONS', (*nvrtc.OPTIONS, '-G'))
    assert built(SOURCE, 'sm_90') != first


def test_corrupt_machine_code_is_made_again(folder):
    path, code = built(SOURCE, 'sm_90')
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.warns(UserWarning, match='is built again: it is damaged'):
        assert built(SOURCE, 'sm_90') == (path, code)


def test_machine_code_that_others_could_write_is_made_again(folder):
    path, code = built(SOURCE, 'sm_90')
    path.chmod(0o702)
    with pytest.warns(UserWarning, match='again: other users can write to it'):
        assert built(SOURCE, 'sm_90') == (path, code)


def test_an_error_of_the_compiler_has_its_text(folder):
    wrong = SOURCE.replace('const float v0 =', 'const float v0 = nothing +')
    with pytest.raises(
        BuildError, match=r'NVRTC failed for sm_90: kernel.cu\(\d+\): error: '
    ) as caught:
        build_cubin(wrong, 'sm_90')
    assert '"nothing" is undefined' in str(caught.value)
    with pytest.raises(BuildError, match=r'sm_1: .*invalid value'):
        build_cubin(SOURCE, 'sm_1')
    assert not list(folder.iterdir())


FIRST = """
from tests.codegen.test_nvrtc import SOURCE
from torch_gsample.codegen.nvrtc import build_cubin
print(build_cubin(SOURCE, 'sm_80').name)
"""


def test_two_processes_compile_a_kernel_first_together(tmp_path, folder):
    (tmp_path / 'first.py').write_text(FIRST)
    env = {'GSAMPLE_CACHE_DIR': str(folder)}
    processes = [
        Run(tmp_path / 'first.py', tmp_path / name, env=env) for name in 'ab'
    ]
    outs = [process.wait() for process in processes]
    assert outs[0] == outs[1]
    assert outs[0].endswith('.cubin\n')
    assert [path.suffix for path in folder.iterdir()] == ['.cubin']


def test_a_kernel_is_started_through_the_driver(folder, gpu, library):
    assert run_edge_map(PROGRAM, [X], 0).tolist() == [1, 4, 9]
    known = ctypes.CDLL(library)
    shape = [
        ctypes.c_int.in_dll(known, f'last_{name}').value
        for name in ('blocks', 'threads')
    ]
    assert shape == [1, 256]
    assert ctypes.c_void_p.in_dll(known, 'last_stream').value == 77
    assert run_edge_map(PROGRAM, [X[:0]], 0).tolist() == []
    assert known.left_alone()


def test_errors_of_the_driver_are_named(gpu, library):
    with pytest.raises(BuildError, match=r'cuModuleLoadData .* \(200\)'):
        gpu.load(0, b'no code', 'gsample_kernel')
    with pytest.raises(BuildError, match='cuModuleGetFunction failed: an'):
        gpu.load(0, b'\x7fELF', 'another')
    with pytest.raises(BuildError, match='invalid device ordinal'):
        gpu.load(1, b'\x7fELF', 'gsample_kernel')
    with pytest.raises(BuildError, match='cuLaunchKernel failed'):
        gpu.launch(0, 1, (1, 1), [], 0)
    assert ctypes.CDLL(library).left_alone()
    with pytest.raises(BuildError, match='CUDA driver does not load'):
        Driver('no-such-library.so')


def missing(*args):
    raise BuildError('NVRTC was not found')


@pytest.mark.parametrize(
    ('name', 'message'),
    [('driver', 'NVRTC was not'), ('build_cubin', 'NVRTC was not')],
)
def test_without_driver_or_compiler_it_says_so_once(
    gpu, monkeypatch, name, message
):
    monkeypatch.setattr(run_cuda, name, missing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        for _ in range(2):
            assert run_edge_map(PROGRAM, [X], 0) is None
    [warning] = caught
    assert message in str(warning.message)
    assert 'torch operators run instead' in str(warning.message)


def test_nvrtc_is_looked_for(monkeypatch):
    monkeypatch.setattr(nvrtc, '_places', lambda: ['no-such-library.so'])
    nvrtc._nvrtc.cache_clear()
    with pytest.raises(BuildError, match=r'NVRTC .* was not found'):
        nvrtc._nvrtc()
    nvrtc._nvrtc.cache_clear()
    monkeypatch.undo()
    assert nvrtc._nvrtc().identity[1] >= 12
