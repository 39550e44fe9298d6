"""Plans of reads change when rows are read, and nothing else."""

import gc
import pickle
import re
import threading
import time

import numpy as np
import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.sampler import SamplerOutput

from tests.loader.batches import end_workers
from tests.samplers import graphs
from tests.storage.test_feature_store import (
    NAMES,
    features_of,
    joined,
    make,
    seeds_of,
    with_features,
)
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader, adjacency
from torch_gsample.storage import (
    DiskFeatureStore,
    DiskModel,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.read_model import Reads, count_reads
from torch_gsample.storage.read_plan import PLANS

MODEL = DiskModel(9.5e-6, 2e9)
MEMORY = 4 << 20


def scores_of(data, name):
    if name == 'homogeneous':
        return torch.bincount(data.edge_index[0], minlength=30)
    return {t: torch.arange(data[t].num_nodes) for t in data.node_types}


def plan(data, store, name, kind, memory=MEMORY, **options):
    scores = scores_of(data, name)
    options = {'model': MODEL, 'scores': scores} | options
    if kind == 'packed':  # all rows would be hot
        first, *_ = store.files.values()
        options = {'scratch': first.path.parent} | options | {'scores': None}
    store.plan_reads(memory, plan=kind, **options)


def assert_threads_end(before):
    """Threads that are new end soon."""
    for thread in set(threading.enumerate()) - set(before):
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ('workers', 'prefetch', 'most'),
    [(0, 0, 1), (0, 0, 3), (0, 2, 3), (2, 2, 3), (1, 0, 1)],
)
@pytest.mark.parametrize('kind', PLANS)
@pytest.mark.parametrize('name', NAMES)
def test_batches_are_those_of_features_in_memory(
    tmp_path, name, kind, most, workers, prefetch
):
    data, (store, graph), fanouts = make(name, tmp_path)
    plan(data, store, name, kind, max_batches=most)
    options = {'batch_size': 2, 'shuffle': True, 'input_nodes': seeds_of(name)}
    known = NeighborSampler(data, fanouts, seed=1)
    want = NeighborLoader(data, sampler=known, **options)
    before = threading.enumerate()
    out = NeighborLoader(
        (store, graph),
        sampler=RandomReadSampler(graph, fanouts, seed=1),
        num_workers=workers,
        prefetch=prefetch,
        **options,
    )
    for _ in range(2):
        assert joined(out) == joined(want)
    del out
    gc.collect()
    assert_threads_end(before)
    assert store._plan.plan in ('single', 'hot', 'window', 'packed')
    assert kind in ('auto', store._plan.plan)


@pytest.mark.parametrize('kind', ['window', 'packed'])
def test_streamed_epochs_and_ranks_are_planned(tmp_path, kind):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', kind, max_batches=2)
    options = {'batch_size': 4, 'shuffle': True}
    known = NeighborSampler(data, [4, 3], seed=1, rng_scope='epoch')
    want = joined(NeighborLoader(data, sampler=known, **options))
    ranks = [
        joined(
            NeighborLoader(
                (store, graph),
                sampler=StreamingSampler(graph, [4, 3], seed=1),
                input_nodes=torch.arange(30),
                rank=rank,
                world_size=2,
                **options,
            )
        )
        for rank in range(2)
    ]
    assert [ranks[i % 2][i // 2] for i in range(len(want))] == want


@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('kind', ['window', 'packed'])
def test_an_epoch_that_ends_early_is_resumed(tmp_path, workers, kind):
    data, (store, graph), fanouts = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', kind, max_batches=3)

    def loader():
        sampler = RandomReadSampler(graph, fanouts, seed=1)
        return NeighborLoader(
            (store, graph),
            input_nodes=torch.arange(30),
            sampler=sampler,
            batch_size=2,
            shuffle=True,
            num_workers=workers,
        )

    want, before = joined(loader()), threading.enumerate()
    for count in (1, 4, 10):
        first = loader()
        batches = iter(first)
        done = joined([next(batches) for _ in range(count)])
        state = first.state_dict()
        del batches, first
        gc.collect()
        assert_threads_end(before)
        again = loader()
        again.load_state_dict(state)
        assert done + joined(again) == want


def test_rows_of_a_window_are_read_once(tmp_path):
    data, (store, graph), fanouts = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', 'window', max_batches=5)
    loader = NeighborLoader(
        (store, graph),
        input_nodes=torch.arange(30),
        sampler=RandomReadSampler(graph, fanouts, seed=1),
        batch_size=2,
    )
    batches = list(loader)
    want = sum(
        len(torch.cat([b.n_id for b in batches[i : i + 5]]).unique())
        for i in range(0, 15, 5)
    )
    assert store.files[(None, 'x')].stats()['rows'] == want
    assert want < sum(len(b.n_id) for b in batches)
    stats = store._plan._reads.stats
    assert (stats['batches'], stats['windows']) == (15, 3)
    other = pickle.loads(pickle.dumps(store))  # of a spawned worker
    assert not other.plans_reads
    assert torch.equal(other[None, 'x', None], data.x)


def test_hot_rows_are_not_read_again(tmp_path):
    data, (store, graph), fanouts = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', 'hot')  # all rows fit
    file = store.files[(None, 'x')]
    before = file.stats()['rows']
    assert before == 30
    out = pyg.NodeLoader(
        (store, graph),
        RandomReadSampler(graph, fanouts, seed=1, rng_scope='epoch'),
        input_nodes=torch.arange(30),
        batch_size=4,
    )
    for batch in out:
        assert torch.equal(batch.x, data.x[batch.n_id])
    assert file.stats()['rows'] == before
    end_workers()


def wide_store(folder, rows=3_000):
    """Features that do not fit in memory, and a graph in memory."""
    data = graphs.homogeneous(rows, 12_000)
    data.x = torch.randn(rows, 1_024)
    data = with_features(data)
    data.x = torch.randn(rows, 1_024)
    store = features_of(data, folder)
    return data, store, graphs.as_stores(data)[1]


@pytest.mark.parametrize('kind', ['hot', 'window', 'single'])
def test_memory_is_not_exceeded(tmp_path, kind, monkeypatch):
    monkeypatch.setattr('torch_gsample.storage.row_reads.STAGING', 1 << 16)
    data, store, graph = wide_store(tmp_path)
    plan(data, store, 'homogeneous', kind, 3 << 20, scores=torch.arange(3_000))
    seen = []
    find = store._plan.read

    def note(key, index):
        plan = store._plan
        total = 0
        if plan.hot is not None:
            total += sum(d.nbytes for d in plan.hot._data.values())
            total += sum(d.nbytes for d in plan.hot.rows.values())
        if plan._reads is not None:
            for window in plan._reads._live:
                total += window.row_bytes + window.sample_bytes
        seen.append(total)
        return find(key, index)

    store._plan.read = note
    options = {'batch_size': 8, 'seed': 1, 'shuffle': True}
    options['input_nodes'] = torch.arange(600)
    out = joined(NeighborLoader((store, graph), [4, 3], **options))
    assert out == joined(NeighborLoader(data, [4, 3], **options))
    assert max(seen) <= store._plan.budget
    assert (max(seen) > store._plan.budget / 4) == (kind != 'single')


def test_a_batch_that_does_not_fit_is_read_alone(tmp_path, monkeypatch):
    monkeypatch.setattr('torch_gsample.storage.row_reads.STAGING', 1 << 16)
    data, store, graph = wide_store(tmp_path)
    plan(data, store, 'homogeneous', 'window', 2 << 20)
    options = {'batch_size': 200, 'seed': 1, 'shuffle': True}
    out = joined(NeighborLoader((store, graph), [4, 3], **options,
                                input_nodes=torch.arange(600)))  # fmt: skip
    options['input_nodes'] = torch.arange(600)
    assert out == joined(NeighborLoader(data, [4, 3], **options))


@pytest.mark.parametrize('kind', ['window', 'packed'])
def test_damage_is_an_error_of_its_own_batch(tmp_path, kind):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', kind, max_batches=4)
    with open(tmp_path / 'x0', 'r+b') as file:
        file.seek(2 * BLOCK + 9)  # the block of rows from 11 to 22
        file.write(b'!!!')
    loader = NeighborLoader(
        (store, graph),
        input_nodes=torch.arange(30),
        sampler=RandomReadSampler(graph, [0], seed=1),
        batch_size=5,
    )
    batches = iter(loader)
    assert torch.equal(next(batches).x, data.x[:5])
    assert torch.equal(next(batches).x, data.x[5:10])
    with pytest.raises(ValueError, match='x0, offset 8192: the checksum'):
        next(batches)


@pytest.mark.parametrize('kind', ['single', 'window', 'packed'])
def test_a_sample_that_fails_comes_after_those_before_it(tmp_path, kind):
    data, (store, _), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', kind, max_batches=3)
    samples = [SamplerOutput(torch.arange(i), *[None] * 3) for i in range(8)]

    def fail_after():
        yield from samples
        raise RuntimeError('no more')

    out, before = [], threading.enumerate()
    with pytest.raises(RuntimeError, match='no more'):
        out.extend(store.read_ahead(fail_after()))
    assert [s.node.tolist() for s in out] == [s.node.tolist() for s in samples]
    assert_threads_end(before)


def test_an_iteration_that_is_closed_ends_its_reads(tmp_path, monkeypatch):
    data, (store, _), _ = make('homogeneous', tmp_path)
    plan(data, store, 'homogeneous', 'window', max_batches=1)
    monkeypatch.setattr('torch_gsample.storage.read_windows._PIECE', 1)
    read = FeatureFile.read_to
    pieces, reading, closing = [], threading.Event(), threading.Event()

    def slowly(self, rows, *args):
        pieces.append(len(rows))
        if len(pieces) > 30:  # of the second window
            reading.set()
            closing.wait(60)
            time.sleep(0.05)
        read(self, rows, *args)

    monkeypatch.setattr(FeatureFile, 'read_to', slowly)
    before = threading.enumerate()
    sample = SamplerOutput(torch.arange(30), *[None] * 3)
    samples = store.read_ahead([sample, sample])
    next(samples)
    reading.wait(60)
    closing.set()
    samples.close()
    assert_threads_end(before)
    assert 30 < len(pieces) < 50


@pytest.mark.parametrize('kind', ['window', 'packed'])
def test_a_file_with_too_few_rows_is_named(tmp_path, kind, monkeypatch):
    data, (store, graph), fanouts = make('homogeneous', tmp_path)
    short = FeatureFile.write(tmp_path / 'short', data.x[:20])
    store[None, 'x', None] = short
    plan(data, store, 'homogeneous', kind, scores=None)
    sampler = RandomReadSampler(graph, fanouts, seed=1)
    options = {'input_nodes': torch.arange(30), 'sampler': sampler}
    with pytest.raises(ValueError, match=r'each of the 30 nodes .*got 20'):
        NeighborLoader((store, graph), **options)
    monkeypatch.setattr(adjacency, '_check_stores', lambda *_: None)
    with pytest.raises(IndexError, match=r"'index' must be in \[0, 20\)"):
        list(NeighborLoader((store, graph), **options))


@pytest.mark.parametrize('row_bytes', [4, 100, 512, 5_000])
@pytest.mark.parametrize('gap', [0, 1, 7])
def test_reads_are_counted_as_they_are_made(tmp_path, row_bytes, gap):
    x = torch.zeros(6_000, row_bytes // 4)
    file = FeatureFile.write(tmp_path / 'x', x)
    rng = np.random.default_rng(0)
    for count in (0, 1, 30, 1_000):
        rows = np.unique(rng.integers(0, 6_000, count))
        before = file.stats()
        file.read(torch.from_numpy(rows), gap)
        after = file.stats()
        want = count_reads(rows, row_bytes, gap)
        size = after['bytes_read'] - before['bytes_read']
        # Nothing is merged where staging memory ends.
        assert abs(size - want.size) <= (want.size >> 22) * gap * BLOCK
        made = after['requests'] - before['requests']
        assert made <= want.requests + 2 + after['bytes_read'] // (4 << 20)
        assert made >= want.requests


def test_the_plan_with_the_least_time_is_chosen(tmp_path):
    """By models of disks that have dear requests, and dear bytes."""
    for kind, model in (
        ('window', DiskModel(1e-3, 1e12)),
        ('hot', DiskModel(1e-9, 1e5)),
    ):
        folder = tmp_path / kind
        folder.mkdir()
        data, (store, graph), fanouts = make('homogeneous', folder)
        plan(data, store, 'homogeneous', 'auto', model=model)
        if kind == 'window':  # hot rows need no request at all
            store._plan._hot_of = {}
        assert 'no batch has been read yet' in store.explain()
        loader = NeighborLoader(
            (store, graph),
            input_nodes=torch.arange(30),
            sampler=RandomReadSampler(graph, fanouts, seed=1),
            batch_size=4,
        )
        list(loader)
        text = store.explain()
        assert re.search(rf'\n{kind} .*<- chosen\n', text), text
        assert re.search(r'\nmeasured: [\d.]+ ms a batch', text)
        assert 'memory: limit 4.2 MB' in text


def test_a_disk_is_measured(tmp_path):
    file = FeatureFile.write(tmp_path / 'x', torch.zeros(20_000, 128))
    model = DiskModel.calibrate(file)
    assert 1e-7 <= model.request_seconds < 1e-2
    assert 1e7 < model.bytes_per_second < 1e13
    small = FeatureFile.write(tmp_path / 'y', torch.zeros(1, 1))
    none = FeatureFile.write(tmp_path / 'z', torch.zeros(0, 1))
    for file in (small, none):
        assert DiskModel.calibrate(file).seconds(Reads(1, BLOCK)) > 0


ARGUMENTS = {
    "'plan' must be one of": {'plan': 'best'},
    "'max_batches' must be positive (got 0)": {'max_batches': 0},
    "'scores' is required for the plan 'hot'": {'plan': 'hot'},
    "'scratch' is required for the plan 'packed'": {'plan': 'packed'},
    "'scores' of None must be a tensor [5], one for": {
        'scores': torch.arange(4)
    },
    "'memory_limit' must be at least": {'memory_limit': 1_000},
}


@pytest.mark.parametrize('message', ARGUMENTS)
def test_arguments_of_a_plan_are_checked(tmp_path, message):
    file = FeatureFile.write(tmp_path / 'x', torch.zeros(5, 2))
    store = DiskFeatureStore({'x': file})
    options = {'memory_limit': MEMORY, 'model': MODEL} | ARGUMENTS[message]
    with pytest.raises(ValueError, match=re.escape(message)):
        store.plan_reads(**options)
    assert store.explain().startswith('reads are not planned')
    with pytest.raises(ValueError, match='at least one file of node features'):
        DiskFeatureStore({'y': torch.ones(3)}).plan_reads(MEMORY)
