"""Folders end with their process, whatever ended it."""

import errno
import fcntl
import os
import signal
import tempfile
import threading
import time
import traceback
from pathlib import Path

import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample import owned_folder as module
from torch_gsample.cli.open_graph import open_graph
from torch_gsample.codegen import build as building
from torch_gsample.loader import norm_file
from torch_gsample.owned_folder import OwnedFolder, owned_folder
from torch_gsample.storage import ChunkedGraph, StreamingSampler

SIGNALS = 'SIGTERM', 'SIGHUP', 'SIGKILL', 'SIGINT'
EDGES = torch.randint(99, (2, 500), generator=torch.Generator())


class Norm:
    """A normalisation that is saved when something has happened."""

    def __init__(self, happen):
        self._asdict = lambda: {'node': happen()}


def stream(folder, happen):
    """Keeps results in memory and on disk."""
    data, path = graphs.homogeneous(2_000, 60_000), folder / 'graph'
    if not path.exists():
        disk.write(path, data, chunk_bytes=4_000)
    graph = ChunkedGraph(path)
    sampler = StreamingSampler(
        graph, [9, 9], seed=0, memory_limit=1 << 20, spill_dir=folder
    )
    sampler.prepare_epoch(torch.arange(2_000), 0)
    happen()
    sampler.close()


def write(folder, happen):
    def batches():
        yield EDGES[0], EDGES[1].sort().values
        happen()

    ChunkedGraph.write(folder / 'graph', batches(), num_nodes=99)


def build(folder, happen):
    with building._beside(folder / 'kernel.so') as target:
        target.write_bytes(b'half')
        happen()


def keep_kernels(folder, happen):
    path = building._temporary_folder(os.getpid())
    (path / 'kernel.so').write_bytes(b'whole')
    happen()


def save(folder, happen):
    norm_file.save_norm(folder / 'norm.pt', Norm(happen), 'mark')


def convert(folder, happen):
    rows = '\n'.join(f'{a},{b}' for a, b in EDGES.T.tolist())
    (folder / 'edges.csv').write_text(f'source,target\n{rows}\n')
    with open_graph(str(folder / 'edges.csv')):
        happen()


KINDS = stream, write, build, keep_kernels, save, convert


def all_kinds(folder, reached):
    """Makes all kinds of files, stops in the midst of each, and says so."""
    barrier = threading.Barrier(len(KINDS) + 1)

    def happen():
        barrier.wait()
        threading.Event().wait()

    for kind in KINDS:
        place = folder / kind.__name__
        place.mkdir()
        args = place, happen
        threading.Thread(target=kind, args=args, daemon=True).start()
    barrier.wait()
    os.write(reached, b'reached\n')
    while True:  # pause() would miss a signal that comes just before it
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """All files are in it, also those of the system's temporary folder."""
    (tmp_path / 'temporary').mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'temporary'))
    building._temporary_folder.cache_clear()
    yield tmp_path
    building._temporary_folder.cache_clear()


def owned(folder):
    return sorted(p for p in folder.rglob('*.tmp') if p.is_dir())


def start(folder):
    """Forks a process, and waits for the line that says it is there."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            torch.set_num_threads(1)  # threads of the parent are not there
            for name in SIGNALS[:2]:
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            all_kinds(folder, write)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(write)
    with open(read) as lines:
        assert lines.readline() == 'reached\n'
    return pid


def open_files(pid):
    """The targets of a process's descriptors."""
    paths = Path(f'/proc/{pid}/fd').iterdir()
    return [os.readlink(p) for p in paths if p.is_symlink()]


@pytest.mark.parametrize('name', SIGNALS)
def test_leftovers_of_killed_processes_are_removed(folder, name):
    pid = start(folder)
    files, made = open_files(pid), owned(folder)
    os.kill(pid, getattr(signal, name))
    os.waitpid(pid, 0)
    # Arrays have no name: the system frees them.
    assert sum('memfd:gsample' in f for f in files) > 1
    assert sum('(deleted)' in f and str(folder) in f for f in files) > 1
    assert not any(f.startswith('/dev/shm/gsample') for f in files)
    # The next start of each kind removes its folder.
    assert len(made) == len(KINDS)
    assert owned(folder) == made
    for kind in KINDS:
        kind(folder / kind.__name__, lambda: None)
    assert not set(owned(folder)) & set(made)


def test_a_folder_of_a_process_that_lives_is_left_alone(folder):
    pid = start(folder)
    made = owned(folder)
    for path in {p.parent for p in made}:
        module.remove_leftovers(path)
    assert owned(folder) == made
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for path in {p.parent for p in made}:
        module.remove_leftovers(path)
    assert owned(folder) == []


def leftover(parent):
    """A folder without a living owner, with a file."""
    made = OwnedFolder(parent, 'x-')
    (made.path / 'file').write_text('')
    made.release()
    return made.path


def test_folders_of_other_machines_and_users_and_links_stay(tmp_path):
    left = leftover(tmp_path)
    random, tags, _ = left.name.split('.')
    other = tmp_path / f'{random}.{"0" * 8}-{"1" * 8}.tmp'
    left.rename(other)
    link = tmp_path / f'link.{tags}.tmp'
    link.symlink_to(other)
    file = tmp_path / f'file.{tags}.tmp'
    file.write_text('')
    kept = [file, link, other]
    if os.getuid() == 0:
        kept.append(tmp_path / f'user.{tags}.tmp')
        kept[-1].mkdir()
        os.chown(kept[-1], 65534, 65534)
    module.remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    assert (other / 'file').exists()


def test_the_same_boot_in_another_container_is_swept(tmp_path):
    left = leftover(tmp_path)
    random, tags, _ = left.name.split('.')
    left.rename(tmp_path / f'{random}.{"0" * 8}-{tags.split("-")[1]}.tmp')
    module.remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path, monkeypatch
):
    lock, paths = module._lock, []

    def swept_first(path):
        paths.append(path)
        if len(paths) == 1:
            os.rmdir(path)
        return lock(path)

    monkeypatch.setattr(module, '_lock', swept_first)
    with owned_folder(tmp_path, 'x-') as folder:
        assert folder == paths[1] != paths[0]
        assert folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_without_locks_nothing_is_swept(tmp_path, monkeypatch):
    left = leftover(tmp_path)

    def flock(*args):
        raise OSError(errno.EBADF, 'no locks')

    monkeypatch.setattr(fcntl, 'flock', flock)
    with owned_folder(tmp_path, 'x-') as folder:
        assert folder.exists()
        assert left.exists()
    assert list(tmp_path.iterdir()) == [left]


def test_a_fork_leaves_the_folder_to_its_parent(tmp_path):
    folder = OwnedFolder(tmp_path, 'x-')
    assert disk.in_a_fork(folder.remove) == 0
    module.remove_leftovers(tmp_path)
    assert folder.path.exists()
    folder.remove()
    folder.remove()
    assert list(tmp_path.iterdir()) == []
