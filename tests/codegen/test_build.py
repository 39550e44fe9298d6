"""Generated libraries: kept on disk, built by many, or not at all."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from torch_gsample.codegen import build as building
from torch_gsample.codegen.build import BuildError, build
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel, layout_of
from torch_gsample.codegen.program import Operand, Program, Role
from torch_gsample.ops import edge_map, load_edge_kernel

X = operand(0, torch.float32)
PROGRAM = Program(apply('mul', X, X), (Operand(Role.EDGE, torch.float32),))
SOURCE = EdgeKernel(PROGRAM).source
TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / 'kernels'
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(path))
    return path


def run(path):
    kernel = load_edge_kernel(str(path), layout_of(PROGRAM))
    assert edge_map(kernel, [torch.tensor([3.0])]).tolist() == [9]


def test_a_library_is_built_once(folder, monkeypatch):
    path = build(SOURCE)
    assert path.parent == folder
    assert [p.name for p in folder.iterdir()] == [path.name]
    run(path)
    monkeypatch.setattr(building, '_compile', None)  # is not called
    assert build(SOURCE) == path


def test_text_flags_and_compiler_are_the_key(folder, monkeypatch):
    first = build(SOURCE)
    assert build(SOURCE + '// other\n') != first
    monkeypatch.setattr(building, 'FLAGS', (*building.FLAGS, '-O1'))
    assert build(SOURCE) != first


@pytest.mark.parametrize('kind', ['cut off', 'empty', 'changed', 'a folder'])
def test_a_corrupt_library_is_built_again(folder, kind):
    path = build(SOURCE)
    data = path.read_bytes()
    path.unlink()
    if kind == 'a folder':
        path.mkdir()
    else:
        middle = len(data) // 2
        changed = data[:middle] + b'wrong' + data[middle + 5 :]
        path.write_bytes(
            {'cut off': data[:-100], 'empty': b'', 'changed': changed}[kind]
        )
    again = build(SOURCE)
    assert (again.parent == folder) == (kind != 'a folder')
    run(again)


def test_a_folder_that_cannot_be_written_is_not_used(tmp_path, monkeypatch):
    file = tmp_path / 'file'
    file.write_text('')
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(file / 'folder'))
    path = build(SOURCE)
    assert file not in path.parents
    run(path)


def test_a_full_or_read_only_disk_is_not_used(folder, monkeypatch):
    make = building._compile

    def read_only(compiler, source, path, flags):
        if path.parent == folder:
            raise OSError(30, 'Read-only file system')
        make(compiler, source, path, flags)

    monkeypatch.setattr(building, '_compile', read_only)
    path = build(SOURCE)
    assert path.parent != folder
    run(path)


def test_a_folder_of_others_is_not_trusted(folder):
    folder.mkdir()
    folder.chmod(0o777)
    assert build(SOURCE).parent != folder


def test_the_folder_is_private_and_follows_the_standard(tmp_path, monkeypatch):
    monkeypatch.delenv('GSAMPLE_CACHE_DIR', raising=False)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    path = build(SOURCE)
    assert path.parent == tmp_path / 'torch_gsample'
    assert path.parent.stat().st_mode & 0o777 == 0o700


def compiler(tmp_path, script):
    path = tmp_path / 'compiler'
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ('script', 'message'),
    [
        (None, "the compiler '.*compiler' was not found"),
        ('echo "no memory" >&2; exit 1', 'failed: no memory'),
        ('exit 3', 'failed: it says nothing'),
        ('exit 0', 'failed: it says nothing'),
        ('sleep 60', 'failed: .* timed out'),
    ],
)
def test_a_compiler_that_fails_is_named(
    folder, tmp_path, monkeypatch, script, message
):
    name = str(tmp_path / 'compiler')
    if script is not None:
        name = compiler(tmp_path, f'cat > /dev/null; {script}')
    monkeypatch.setenv('CXX', name)
    monkeypatch.setattr(building, '_SECONDS', 0.5)
    with pytest.raises(BuildError, match=message):
        build(SOURCE)
    assert not folder.exists() or not list(folder.iterdir())


def test_no_folder_at_all_is_an_error(folder, monkeypatch):
    def full(*args):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(building, '_compile', full)
    monkeypatch.setattr(building, '_temporary_folder', lambda process: folder)
    with pytest.raises(BuildError, match='no folder can hold a kernel'):
        build(SOURCE)


WITHOUT = """
import warnings, torch
from tests.codegen.test_build import PROGRAM
from torch_gsample.codegen.kernel import EdgeKernel
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    for size in (1, 2):
        x = torch.arange(4.0, requires_grad=True)
        out = EdgeKernel(PROGRAM)(x)
        out.sum().backward()
print(out.tolist(), x.grad.tolist())
print(len(caught), caught[0].message if caught else '')
"""


def python(code, **env):
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=TOP,
        env={**os.environ, 'PYTHONPATH': str(TOP), **env},
    )


def test_without_a_compiler_torch_computes_and_says_so_once(folder):
    out, error = python(WITHOUT, CXX='no-compiler').communicate()
    assert error == ''
    values, warned = out.splitlines()
    assert values == '[0.0, 1.0, 4.0, 9.0] [0.0, 2.0, 4.0, 6.0]'
    assert warned.startswith("1 gsample: the compiler 'no-compiler' was not")


def test_four_processes_use_a_kernel_first_together(folder):
    processes = [python(WITHOUT) for _ in range(4)]
    for process in processes:
        out, error = process.communicate()
        assert process.returncode == 0, error
        assert out.splitlines()[0].startswith('[0.0, 1.0, 4.0, 9.0]')
        assert out.splitlines()[1].strip() == '0'
    names = [path.suffix for path in folder.iterdir()]
    assert names == ['.so', '.so']  # the kernel and its gradient


def test_a_library_that_does_not_load_is_named(tmp_path):
    path = tmp_path / 'text.so'
    path.write_text('no library')
    with pytest.raises(RuntimeError, match='is no library of a kernel'):
        load_edge_kernel(str(path), layout_of(PROGRAM))
