"""Generated libraries: kept on disk, built by many, or not at all."""

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from tests.fresh import Run
from torch_gsample.codegen import build as building
from torch_gsample.codegen import unit
from torch_gsample.codegen.build import BuildError, build
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel, layout_of
from torch_gsample.codegen.unit import Leaf
from torch_gsample.ops.kernels import load_kernel, run_kernel

X = operand(0, torch.float32)
PROGRAM = edge_map(apply('mul', X, X), (Leaf('', unit.EDGE, torch.float32),))
SOURCE = EdgeKernel(PROGRAM).source


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / 'kernels'
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(path))
    return path


def built(source=SOURCE):
    with build(source) as file:
        return Path(file.name)


def run(library):
    kernel = load_kernel(library, layout_of(PROGRAM))
    [out] = run_kernel(kernel, [torch.tensor([3.0])])
    assert out.tolist() == [9]


def test_a_library_is_built_once(folder, monkeypatch):
    path = built()
    assert path.parent == folder
    assert [p.name for p in folder.iterdir()] == [path.name]
    run(path)
    monkeypatch.setattr(building, '_compile', None)  # is not called
    assert built() == path


def test_threads_build_one_library_once_and_others_meanwhile(
    folder, monkeypatch
):
    both, sources = threading.Barrier(2, timeout=100), []
    compile_one = building._compile

    def compile_(compiler, source, path, flags):
        sources.append(source)
        both.wait()  # breaks where one waits for the other to end
        compile_one(compiler, source, path, flags)

    monkeypatch.setattr(building, '_compile', compile_)
    with ThreadPoolExecutor(4) as pool:
        paths = [*pool.map(built, [SOURCE, SOURCE + '// other\n'] * 2)]
    assert sorted(sources) == [SOURCE, SOURCE + '// other\n']
    assert paths[:2] == paths[2:]


def test_text_flags_and_compiler_are_the_key(folder, monkeypatch):
    first = built()
    assert built(SOURCE + '// other\n') != first
    monkeypatch.setattr(building, 'FLAGS', (*building.FLAGS, '-O1'))
    assert built() != first


@pytest.mark.parametrize('kind', ['cut off', 'empty', 'changed', 'a folder'])
def test_a_corrupt_library_is_built_again(folder, kind):
    path = built()
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
    with pytest.warns(UserWarning, match='is built again: (it is dam|Is a d)'):
        again = built()
    assert (again.parent == folder) == (kind != 'a folder')
    run(again)


def test_a_folder_that_cannot_be_written_is_not_used(tmp_path, monkeypatch):
    file = tmp_path / 'file'
    file.write_text('')
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(file / 'folder'))
    path = built()
    assert file not in path.parents
    run(path)


def test_a_full_or_read_only_disk_is_not_used(folder, monkeypatch):
    make = building._compile

    def read_only(compiler, source, path, flags):
        if path.parent == folder:
            raise OSError(30, 'Read-only file system')
        make(compiler, source, path, flags)

    monkeypatch.setattr(building, '_compile', read_only)
    path = built()
    assert path.parent != folder
    run(path)


def swap(path, change):
    """Puts another file in the place of a library."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)
    path.chmod(0o700)
    change(path)


def link(path):
    """Has a link to a library that could be trusted, elsewhere."""
    path.rename(path.with_suffix('.other'))
    path.symlink_to(path.with_suffix('.other'))


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def give_away(path):
    os.chown(path, 1234, -1)


FOREIGN = {
    'written': ('other users can write', lambda path: path.chmod(0o702)),
    'by a group': ('other users can write', lambda path: path.chmod(0o720)),
    'a link': ('Too many levels of symbolic links', link),
    'a pipe': ('it is no regular file', pipe),
}
if os.geteuid() == 0:  # nobody else can give files away
    FOREIGN['of another user'] = ('it belongs to user 1234', give_away)


@pytest.mark.parametrize('kind', FOREIGN)
def test_a_library_that_others_could_write_is_built_again(folder, kind):
    path = built()
    fault, change = FOREIGN[kind]
    swap(path, change)
    with pytest.warns(UserWarning, match=f'is built again: {fault}'):
        assert built() == path
    assert path.lstat().st_mode == stat.S_IFREG | 0o700
    assert path.stat().st_uid == os.geteuid()
    run(path)
    assert built() == path


def test_a_library_of_another_user_is_built_again(folder, monkeypatch):
    """Where nobody can give a file away, too."""
    path, known = built(), os.fstat
    of_others = path.stat().st_ino

    def fstat(descriptor):
        state = known(descriptor)
        if state.st_ino != of_others:
            return state
        return os.stat_result([*state[:4], 1234, *state[5:]])

    monkeypatch.setattr(os, 'fstat', fstat)
    with pytest.warns(UserWarning, match='again: it belongs to user 1234'):
        assert built() == path
    assert path.stat().st_ino != of_others


def test_the_library_that_was_checked_is_loaded(folder):
    """Whatever takes its name before it is loaded."""
    with build(SOURCE) as file:
        path = Path(file.name)
        path.unlink()
        path.write_text('no library')
        run(file.fileno())


def test_libraries_of_one_descriptor_are_not_taken_for_one(folder):
    """The system knows a library by the name that it was opened by."""
    product = edge_map(apply('add', X, X), PROGRAM.leaves)
    kernels, descriptors = [], set()
    for program in (PROGRAM, product):
        with build(EdgeKernel(program).source) as file:
            descriptors.add(file.fileno())
            kernel = load_kernel(file.fileno(), layout_of(program))
            kernels.append(kernel)
    assert len(descriptors) == 1
    three = [torch.tensor([3.0])]
    outs = [run_kernel(k, three)[0].tolist() for k in kernels]
    assert outs == [[9], [6]]


def refused(folder, fault):
    building._warned.clear()
    with pytest.warns(UserWarning, match=f'{folder} is not used: {fault}'):
        path = built()
    assert path.parent != folder
    run(path)


@pytest.mark.parametrize('mode', [0o777, 0o720, 0o1777])
def test_a_folder_that_others_may_write_is_not_trusted(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    refused(folder, 'other users can write to it')


@pytest.mark.parametrize('above', ['', 'a', 'a/b'])
def test_a_folder_below_one_that_others_may_write_is_not_trusted(
    tmp_path, monkeypatch, above
):
    folder = tmp_path / 'top' / 'a' / 'b' / 'kernels'
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(folder))
    assert built().parent == folder
    parent = tmp_path / 'top' / above
    parent.chmod(0o777)
    refused(folder, f'{parent}: other users can write to it')
    parent.chmod(0o1777)  # as a folder for temporary files
    assert built().parent == folder


def test_a_folder_below_one_of_another_user_is_not_trusted(
    folder, monkeypatch
):
    folder.mkdir()
    known = Path.stat

    def owned(path, **options):
        state = known(path, **options)
        if path != folder.parent:
            return state
        return os.stat_result([*state[:4], 1234, *state[5:]])

    monkeypatch.setattr(Path, 'stat', owned)
    refused(folder, f'{folder.parent}: it belongs to user 1234')


def test_a_parent_that_only_the_own_group_may_write_is_trusted(folder):
    """As folders are where each user has a group."""
    folder.mkdir()
    folder.parent.chmod(0o770)
    os.chown(folder.parent, -1, os.getegid())
    assert built().parent == folder


def test_permissions_of_a_link_target_are_checked(tmp_path, monkeypatch):
    (tmp_path / 'open' / 'kernels').mkdir(parents=True)
    (tmp_path / 'open').chmod(0o777)
    link = tmp_path / 'link'
    link.symlink_to(tmp_path / 'open' / 'kernels')
    monkeypatch.setenv('GSAMPLE_CACHE_DIR', str(link))
    refused(tmp_path / 'open' / 'kernels', f'{tmp_path / "open"}: other users')


def test_the_folder_is_private_and_follows_the_standard(tmp_path, monkeypatch):
    monkeypatch.delenv('GSAMPLE_CACHE_DIR', raising=False)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    path = built()
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
    with pytest.raises(BuildError, match='no folder is writable for kernels'):
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


@pytest.fixture
def without(tmp_path):
    """Written once: a process that has begun may be reading it."""
    path = tmp_path / 'without.py'
    path.write_text(WITHOUT)
    return path


def start(without, name='out', **env):
    env['GSAMPLE_CACHE_DIR'] = str(without.with_name('kernels'))
    return Run(without, without.with_name(name), env=env)


def test_without_a_compiler_torch_computes_and_says_so_once(without):
    out = start(without, CXX='no-compiler').wait()
    values, warned = out.splitlines()
    assert values == '[0.0, 1.0, 4.0, 9.0] [0.0, 2.0, 4.0, 6.0]'
    assert warned.startswith("1 gsample: the compiler 'no-compiler' was not")


def test_four_processes_use_a_kernel_first_together(without, folder):
    processes = [start(without, str(i)) for i in range(4)]
    for process in processes:
        out = process.wait()
        assert out.splitlines()[0].startswith('[0.0, 1.0, 4.0, 9.0]')
        assert out.splitlines()[1].strip() == '0'
    names = [path.suffix for path in folder.iterdir()]
    assert names == ['.so', '.so']  # the kernel and its gradient


def test_a_library_that_does_not_load_is_named(tmp_path):
    path = tmp_path / 'text.so'
    path.write_text('no library')
    with pytest.raises(RuntimeError, match="'descriptor' must be open on the"):
        load_kernel(str(path), layout_of(PROGRAM))
    with pytest.raises(FileNotFoundError, match=r'none\.so'):
        load_kernel(str(tmp_path / 'none.so'), layout_of(PROGRAM))
