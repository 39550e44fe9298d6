"""Results of an epoch: checked, freed by the system, never cut off."""

import errno
import os
import pickle
import random

import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.rng import batch_scope
from torch_gsample.storage import StreamingSampler
from torch_gsample.storage.spill import Folder, pieces_of
from torch_gsample.storage.spill_array import BLOCK, SpillArray

SEEDS = torch.arange(2_000)
LIMITS = {'memory': 1 << 30, 'disk': 0, 'both': 3_000_000}


@pytest.fixture(scope='module')
def spilled(tmp_path_factory):
    """A sampler with results on disk."""
    path = tmp_path_factory.mktemp('spilled')
    graph = disk.write(
        path / 'g', graphs.homogeneous(2_000, 60_000), chunk_bytes=4_000
    )
    sampler = StreamingSampler(
        graph, [9, 9], seed=0, memory_limit=1 << 19, spill_dir=path
    )
    sampler.prepare_epoch(SEEDS, 0)
    yield sampler
    sampler.close()


def sample(sampler):
    """Looks a batch up, which reads something of each array."""
    with batch_scope(0, 0):
        return sampler.sample_from_nodes(graphs.nodes(SEEDS[:50]))


def files_on_disk(sampler):
    folder = sampler._state['folders'][0]
    return [
        folder.files[n] for n, a in folder.arrays.items() if a['checksums']
    ]


def flip(file, at, mask):
    (old,) = os.pread(file.fileno(), 1, at)
    os.pwrite(file.fileno(), bytes([old ^ mask]), at)


def test_each_flipped_bit_of_spilled_results_is_found(spilled):
    draws, found = random.Random(0), 0
    files = files_on_disk(spilled)
    for _ in range(60):
        file = draws.choice(files)
        size = os.fstat(file.fileno()).st_size
        flipped = file, draws.randrange(size), 1 << draws.randrange(8)
        flip(*flipped)
        spilled._results.clear()
        with pytest.raises(ValueError, match='offset 0: the checksum of a bl'):
            sample(spilled)
        flip(*flipped)
        found += 1
    assert found == 60
    sample(spilled)


def test_results_that_are_cut_off_end_in_an_error(spilled):
    """Not in SIGBUS, which would end the process."""
    file = max(
        files_on_disk(spilled), key=lambda f: os.fstat(f.fileno()).st_size
    )
    size = os.fstat(file.fileno()).st_size
    data = os.pread(file.fileno(), size, 0)
    sample(spilled)  # now they are mapped, and checked

    os.ftruncate(file.fileno(), 4096)

    def fail():
        with pytest.raises(OSError, match='the file ends too early') as caught:
            sample(spilled)
        assert caught.value.errno == errno.EIO
        assert str(spilled._disk) in str(caught.value)

    try:
        assert disk.in_a_fork(fail) == 0  # of the map
        spilled._results.clear()
        fail()
    finally:
        os.pwrite(file.fileno(), data, 0)
    sample(spilled)


def test_spilled_results_have_no_name_to_cut_off(spilled):
    assert len(files_on_disk(spilled)) > 3
    (epoch,) = spilled._disk.iterdir()
    assert [p.name for p in epoch.iterdir()] == ['manifest.json']


@pytest.fixture
def arrays(tmp_path):
    """Makes an array of 0, 1, ...; returns it and its file."""
    folders = []

    def make(limit, size=1_000_000):
        folder = Folder(tmp_path / f'{len(folders)}', limit)
        folders.append(folder)
        items = torch.arange(size)
        folder.write('a', [items[part] for part in pieces_of(size, 99_999)])
        return folder

    yield make
    for folder in folders:
        folder.close()


@pytest.mark.parametrize('limit', LIMITS)
def test_arrays_equal_written_values(arrays, limit):
    folder = arrays(LIMITS[limit])
    assert torch.equal(folder.open('a'), torch.arange(1_000_000))
    blocks = -(-8_000_000 // BLOCK)
    checksums = folder.arrays['a']['checksums']
    assert checksums is None if limit == 'memory' else len(checksums) == blocks
    assert folder.left == LIMITS[limit] - 8_000_000 * (limit == 'memory')


@pytest.mark.parametrize('limit', LIMITS)
def test_arrays_may_be_empty(arrays, limit):
    folder = arrays(LIMITS[limit], 0)
    assert folder.open('a').tolist() == []
    assert folder.files == {}


def test_arrays_in_memory_cannot_be_cut_off(arrays):
    (file,) = arrays(1 << 30).files.values()
    for change in (
        lambda: os.ftruncate(file.fileno(), 0),
        lambda: os.pwrite(file.fileno(), b'x', 0),
    ):
        with pytest.raises(PermissionError):
            change()


def test_only_blocks_that_are_read_are_checked(arrays):
    folder = arrays(0)
    items = BLOCK // 8
    flip(folder.files['a'], 3 * BLOCK + 5, 1)
    array = SpillArray(folder.arrays['a'])
    below, above = torch.tensor([0, items]), torch.tensor([3 * items, items])
    array.check(below, above)
    array.check(torch.tensor([4 * items]), torch.tensor([4 * items + 1]))
    with pytest.raises(ValueError, match=f'a, offset {3 * BLOCK}: the check'):
        array.check(
            torch.tensor([3 * items - 1]), torch.tensor([3 * items + 1])
        )
    with pytest.raises(ValueError, match=f'a, offset {3 * BLOCK}: the check'):
        folder.open('a')


def test_arrays_of_a_process_that_ended_are_named(arrays):
    facts = arrays(1 << 30).arrays['a']
    gone = {**facts, 'process': 2**22 + 1}
    with pytest.raises(FileNotFoundError, match=r"which sampled .*/0/a'"):
        SpillArray(gone)
    other = {**facts, 'file': [0, 0]}  # the number is in use again
    with pytest.raises(FileNotFoundError, match='ended or dropped it'):
        SpillArray(other)


def test_workers_let_go_of_earlier_epochs(spilled):
    copy = pickle.loads(pickle.dumps(spilled))
    sample(copy)
    spilled.prepare_epoch(SEEDS, 1)
    assert copy._find(1) is not None
    spilled.prepare_epoch(SEEDS, 2)
    assert copy._find(2) is not None
    assert sorted(copy._results) == [1, 2]
    spilled.prepare_epoch(SEEDS, 0)


def test_forked_processes_let_go_of_inherited_files(spilled):
    folder = spilled._state['folders'][0]

    def check():
        sample(spilled)
        assert spilled._state['folders'] == {}
        assert folder.files == {}

    assert disk.in_a_fork(check) == 0
    assert len(folder.files) > 3
    sample(spilled)
