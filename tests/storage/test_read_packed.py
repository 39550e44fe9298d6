"""Packed rows are those of the features, whatever happens to the scratch."""

import gc
import os
import resource
import threading
import warnings

import numpy as np
import pytest
import torch
from torch_geometric.sampler import SamplerOutput

from tests.storage.disk import in_a_fork, kill_at_random
from tests.storage.test_feature_store import joined, make
from tests.storage.test_read_plan import (
    MODEL,
    assert_threads_end,
    plan,
    wide_store,
)
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.samplers.output.attributes import AttributedOutput
from torch_gsample.storage import (
    DiskFeatureStore,
    DiskModel,
    FeatureFile,
    RandomReadSampler,
)
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.packed_window import PackedWindow, Shares
from torch_gsample.storage.reading import page_aligned


def loader_of(stores, count=30, batch_size=2, **options):
    sampler = RandomReadSampler(stores[1], [4, 3], seed=1)
    return NeighborLoader(
        stores,
        input_nodes=torch.arange(count),
        sampler=sampler,
        batch_size=batch_size,
        shuffle=True,
        **options,
    )


@pytest.fixture
def packed(tmp_path):
    """A store with packed reads, its batches, and the expected ones."""
    data, stores, fanouts = make('homogeneous', tmp_path)
    plan(data, stores[0], 'homogeneous', 'packed', max_batches=4)
    known = NeighborSampler(data, fanouts, seed=1)
    want = NeighborLoader(
        data,
        sampler=known,
        input_nodes=torch.arange(30),
        batch_size=2,
        shuffle=True,
    )
    return stores, joined(want)


def scratch_files():
    """The descriptors of files without a name."""
    found = []
    for name in os.listdir('/proc/self/fd'):
        try:
            target = os.readlink(f'/proc/self/fd/{name}')
        except OSError:
            continue
        if '(deleted)' in target and 'memfd' not in target:
            found.append(int(name))
    return found


def space(fds):
    return sum(os.fstat(fd).st_blocks for fd in fds)


def test_rows_are_scanned_once_a_window(packed):
    stores, want = packed
    file = stores[0].files[None, 'x']
    size = file.meta.num_blocks * BLOCK
    assert joined(loader_of(stores)) == want
    stats = file.stats()
    assert (stats['rows'], stats['bytes_read']) == (0, 4 * size)
    stats = stores[0]._plan._reads.stats
    assert (stats['batches'], stats['windows']) == (15, 4)


def test_space_is_freed_as_batches_are_read(tmp_path):
    _, store, graph = wide_store(tmp_path)
    store.plan_reads(
        32 << 20, plan='packed', model=MODEL, max_batches=5, scratch=tmp_path
    )
    options = {'batch_size': 8, 'seed': 1, 'prefetch': 0}
    options['input_nodes'] = torch.arange(160)
    gc.collect()
    before, sizes = set(scratch_files()), []
    for _ in NeighborLoader((store, graph), [4, 3], **options):
        new = set(scratch_files()) - before
        assert len(new) <= 5  # two windows, and samples of a third one
        sizes.append(space(new))
    # The first three batches have a window more than the last three.
    window = store._plan._reads.stats['written'] // 4
    assert max(sizes) * 512 < 2.5 * window
    for i in range(4):  # in the last window there is nothing else to do
        assert sizes[-1 - i] * 512 < (i + 1) * window // 5 + (64 << 10)
    store._plan = None
    gc.collect()
    assert set(scratch_files()) <= before


@pytest.mark.parametrize('scores', [True, False])
def test_memory_is_not_exceeded(tmp_path, monkeypatch, scores):
    """Lists, buffers, hot rows and a batch, as they are counted."""
    monkeypatch.setattr('torch_gsample.storage.row_reads.STAGING', 1 << 16)
    data, store, graph = wide_store(tmp_path)
    options = {'scratch': tmp_path, 'model': MODEL}
    if scores:
        options['scores'] = torch.arange(3_000)
    store.plan_reads(4 << 20, plan='packed', **options)
    budget, made, seen = store._plan.budget, [], []

    def note(size):
        made.append(size)
        return page_aligned(size)

    for module in ('packed_rows', 'read_packed', 'reading'):
        name = f'torch_gsample.storage.{module}.page_aligned'
        monkeypatch.setattr(name, note)
    find = store._plan.read

    def read(key, index):
        live = store._plan._reads._live
        windows = {id(b.window): b.window for b in live}
        held = sum(window.held for window in windows.values())
        hot = store._plan.hot
        seen.append(held + (hot.nbytes if hot else 0))
        return find(key, index)

    store._plan.read = read
    options = {'batch_size': 8, 'seed': 1, 'shuffle': True}
    options['input_nodes'] = torch.arange(240)
    out = joined(NeighborLoader((store, graph), [4, 3], **options))
    assert out == joined(NeighborLoader(data, [4, 3], **options))
    # Two pieces of a scan, rows that wait, and a batch that is read.
    assert max(seen) + 2 * max(made) + sum(sorted(made)[-2:]) <= budget
    assert store.files[None, 'x'].stats()['rows'] == len(
        store._plan.hot.rows[None] if scores else ()
    )


def test_lists_are_bounded(tmp_path):
    file = FeatureFile.write(tmp_path / 'x', torch.zeros(100_000, 1))
    shares = Shares(1 << 20, tmp_path)
    window = PackedWindow({(None, 'x'): file}, shares)
    rows = np.arange(30_000, dtype=np.uint32)
    sample = SamplerOutput(torch.arange(3), *[None] * 3)
    added = [window.add(sample, {None: rows}) for _ in range(3)]
    assert added == [True, True, False]
    assert window.held == 2 * rows.nbytes <= shares.lists
    window.stop()


def test_a_batch_larger_than_its_memory_is_packed_and_read_in_pieces(
    tmp_path, monkeypatch
):
    monkeypatch.setattr('torch_gsample.storage.row_reads.STAGING', 1 << 16)
    data, store, graph = wide_store(tmp_path)
    store.plan_reads(2 << 20, plan='packed', model=MODEL, scratch=tmp_path)
    options = {'batch_size': 200, 'seed': 1, 'shuffle': True}
    options['input_nodes'] = torch.arange(200)
    out = joined(NeighborLoader((store, graph), [4, 3], **options))
    assert out == joined(NeighborLoader(data, [4, 3], **options))
    assert store.files[None, 'x'].stats()['rows'] == 0
    assert store._plan._reads.stats['written'] > 2 << 20


@pytest.mark.parametrize(
    ('after', 'limit'), [(0, 600), (1, 600), (5, 600), (0, 10_000)]
)
def test_a_disk_that_gets_full_loses_no_batch(packed, after, limit):
    """A limit of the size of files stands for the disk.

    There is no room for samples, or for rows.
    """
    stores, want = packed

    def run():
        batches, out = iter(loader_of(stores, prefetch=0)), []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            for i in range(15):
                if i == after:
                    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
                out.append(next(batches))
        assert joined(out) == want
        assert [
            'packing of rows stopped' in str(w.message) for w in caught
        ] == [True]
        assert stores[0]._plan.plan == 'window'
        assert 'File too large' in str(caught[0].message)
        assert stores[0]._plan._reads.stats['batches'] > 0
        assert joined(loader_of(stores)) == joined(loader_of(stores))

    assert in_a_fork(run) == 0


@pytest.mark.parametrize('left', [0, 40_000])
def test_free_space_bounds_a_window(packed, left, monkeypatch):
    """Free space bounds it; a batch that is too large is not written."""
    monkeypatch.setattr(
        'torch_gsample.storage.packed_window.free_space', lambda _: left
    )
    stores, want = packed
    assert joined(loader_of(stores)) == want
    reads = stores[0]._plan._reads
    assert (stores[0].files[None, 'x'].stats()['rows'] > 0) == (left == 0)
    assert reads.stats['windows'] > 4


def test_a_broken_scratch_is_replaced_by_the_features(packed):
    stores, want = packed
    batches = iter(loader_of(stores, prefetch=0))
    out, zeros = [next(batches)], page_aligned(BLOCK)
    for packed_rows in stores[0]._plan._reads._live[0].window._packed.values():
        for at in range(0, packed_rows.nbytes, BLOCK):
            packed_rows._file.write(at, zeros)
    with pytest.warns(UserWarning, match='is wrong') as caught:
        out.extend(batches)
    assert len(caught) == 1  # the window is given up
    assert joined(out) == want


def test_rows_are_found_in_any_order(tmp_path):
    data, (store, _), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', 'packed', max_batches=3)
    nodes = [torch.randperm(30)[:7] for _ in range(8)]
    samples = [SamplerOutput(node, *[None] * 3) for node in nodes]
    coming, reads = store.read_ahead(samples, behind=3), []
    for first in (0, 4):
        some = [next(coming).node for _ in range(4)]
        for i in (2, 0, 3, 1):
            assert torch.equal(some[i], nodes[first + i])
            x = store[None, 'x', some[i]]
            assert torch.equal(x, data.x[some[i]])
            reads.append(store.files[None, 'x'].stats()['rows'])
    assert reads[-1] == 0  # all were packed
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        again = store[None, 'x', some[1]]  # its packed rows are freed
    assert torch.equal(again, data.x[some[1]])


def test_samples_with_gradients_stay_in_memory(tmp_path):
    data, (store, _), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', 'packed', max_batches=3)
    weight = torch.ones(3, requires_grad=True)
    samples = [
        AttributedOutput(torch.arange(i + 1), None, None, None)
        for i in range(7)
    ]
    for sample in samples:
        sample.attributes.node[None] = {'w': weight * 2}
    out = list(store.read_ahead(samples))
    assert all(a is b for a, b in zip(out, samples, strict=True))


def test_a_killed_reader_leaves_nothing(packed, tmp_path):
    stores, _ = packed
    before = sorted(os.listdir(tmp_path))

    def read():
        for _ in range(50):
            for _ in loader_of(stores, prefetch=0):
                pass

    killed = 0
    for is_killed in kill_at_random(read, 12):
        killed += is_killed
        assert sorted(os.listdir(tmp_path)) == before
    assert killed > 6


def test_an_epoch_that_is_left_ends_its_work(packed):
    stores, want = packed
    gc.collect()
    before, fds = threading.enumerate(), set(scratch_files())
    for count in (1, 4, 6):
        batches = iter(loader_of(stores))
        for _ in range(count):
            next(batches)
        del batches
        gc.collect()
        assert_threads_end(before)
        assert set(scratch_files()) <= fds
    assert joined(loader_of(stores)) == want


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    file = FeatureFile.write(tmp_path / 'x', torch.zeros(5, 2))
    store = DiskFeatureStore({'x': file})
    options = {'plan': 'packed', 'model': MODEL}
    with pytest.raises(OSError, match=f'{tmp_path}/none'):
        store.plan_reads(4 << 20, scratch=tmp_path / 'none', **options)
    os.chmod(tmp_path, 0o555)

    def refused():
        if os.getuid() == 0:
            os.setuid(65534)
        store.plan_reads(4 << 20, scratch=tmp_path, **options)

    status = in_a_fork(refused)
    assert os.waitstatus_to_exitcode(status) == 13  # EACCES


def test_packing_is_chosen_where_it_takes_the_least_time(tmp_path):
    """Dear requests: a scan has few of them, and more batches."""
    _, store, graph = wide_store(tmp_path)
    options = {'batch_size': 20, 'seed': 1}
    for scratch, written, packs in (
        (tmp_path, 1e9, True),
        (None, 1e9, False),
        (tmp_path, 1e5, False),
    ):
        model = DiskModel(1e-3, 1e9, written)
        store.plan_reads(24 << 20, model=model, scratch=scratch)
        loader = NeighborLoader(
            (store, graph), [4, 3], **options, input_nodes=torch.arange(3_000)
        )
        next(iter(loader))
        assert (store._plan.plan == 'packed') == packs, store.explain()
        assert ('packed' in store._plan.expected) == (scratch is not None)
