"""Samplers of graphs on disk under our loaders."""

import copy
import os
import pickle
import signal
import sys
import threading
import time

import pytest
import torch

from tests.fresh import FORKS
from tests.loader.batches import run, values
from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.loader import NeighborLoader
from torch_gsample.rng import batch_scope
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
    drawn,
)
from torch_gsample.storage import epoch as epoch_module

KINDS = {'random': RandomReadSampler, 'streaming': StreamingSampler}
TYPES = {'homogeneous': None, 'heterogeneous': 'item'}


def make(tmp_path, kind, name='homogeneous', **options):
    data = getattr(disk, name)()
    fanouts = [4, 3] if name == 'homogeneous' else graphs.each(data, [4, 3])
    graph = disk.write(tmp_path / 'g', data)
    scope = 'epoch' if kind == 'streaming' else 'batch'
    sampler = KINDS[kind](graph, fanouts, seed=0, rng_scope=scope, **options)
    want = disk.in_memory(data, fanouts, seed=0, rng_scope=scope)
    return data, sampler, want


def loader(data, sampler, **options):
    options = {'batch_size': 9, 'prefetch': 0} | options
    return NeighborLoader(data, sampler=sampler, **options)


def shuffled(batches, epoch):
    torch.manual_seed(epoch)
    return run(batches)


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('name', TYPES)
@pytest.mark.parametrize('kind', KINDS)
def test_batches_are_those_of_a_graph_in_memory(
    tmp_path, kind, name, num_workers
):
    data, sampler, want = make(tmp_path, kind, name)
    for persistent in (False, True)[: 1 + (num_workers > 0)]:
        # Workers that persist shuffle by other numbers from epoch 1 on.
        options = {'input_nodes': TYPES[name], 'shuffle': not persistent}
        out = loader(
            data,
            sampler,
            num_workers=num_workers,
            persistent_workers=persistent,
            **options,
        )
        expected = loader(data, want, **options)
        for epoch in range(2):
            assert shuffled(out, epoch) == shuffled(expected, epoch)


@pytest.mark.parametrize('kind', KINDS)
def test_workers_that_are_spawned_give_the_same(tmp_path, kind):
    """They have nothing but a pickled sampler."""
    data, sampler, want = make(tmp_path, kind)
    out = loader(data, sampler, num_workers=1, multiprocessing_context=FORKS)
    assert run(out) == run(loader(data, want))


def test_edges_stay_on_disk_and_features_in_their_store(tmp_path):
    data, sampler, want = make(tmp_path, 'random')
    features, _ = graphs.as_stores(data)
    stores = features, sampler.chunked
    outs = loader(stores, sampler, input_nodes=torch.arange(60))
    expected = loader(data, want)
    for out, other in zip(outs, expected, strict=True):
        for name in ('x', 'edge_index', 'n_id', 'e_id'):
            assert torch.equal(out[name], other[name])


def test_an_epoch_with_other_seeds_is_prepared_again(tmp_path):
    data, sampler, want = make(tmp_path, 'streaming')
    for nodes in (torch.arange(10), torch.arange(20, 50)):
        out = loader(data, sampler, input_nodes=nodes)
        assert run(out) == run(loader(data, want, input_nodes=nodes))


def test_the_next_epoch_is_prepared_in_a_thread(tmp_path):
    data, sampler, _ = make(tmp_path, 'streaming')
    batches = iter(loader(data, sampler, batch_size=6))
    for _ in range(7):
        next(batches)
    assert sampler._state['work'] is None  # 0.7 of the epoch
    next(batches)
    assert sampler._state['work'] is not None
    sampler.finish_preparing()
    assert sampler._find(1) is not None
    assert len(list(batches)) == 2


def test_lookups_go_on_while_a_thread_prepares(tmp_path):
    data, sampler, _ = make(tmp_path, 'streaming')
    sampler.prepare_epoch(torch.arange(data.num_nodes), epoch=0)
    folders, done = sampler._state['folders'], threading.Event()
    folders |= dict.fromkeys(range(2, 100), folders[0])  # takes longer

    def begin_and_end():
        while not done.is_set():  # Python changes threads where it repeats
            if folders.pop(1, None) is None:
                folders[1] = folders[0]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=begin_and_end)
    thread.start()
    try:
        for _ in range(3_000):
            assert sampler._find(0) is not None
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
        sampler.close()


def test_batches_count_without_a_loader(tmp_path):
    _, sampler, want = make(tmp_path, 'streaming', trigger=0.5)
    sampler.prepare_epoch(torch.arange(10), 0)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        want.set_epoch(epoch)
        for part in torch.arange(10).split(5):
            disk.assert_same(
                sampler.sample_from_nodes(graphs.nodes(part)),
                want.sample_from_nodes(graphs.nodes(part)),
                want.edge_permutation,
            )
        assert len(list(sampler._disk.iterdir())) <= 2


def test_a_seed_that_was_not_prepared_is_named(tmp_path):
    _, sampler, _ = make(tmp_path, 'streaming')
    sampler.prepare_epoch(torch.arange(10), 0)
    with pytest.raises(ValueError, match='node 33 was not among the seeds'):
        sampler.sample_from_nodes(graphs.nodes([1, 33]))
    sampler.num_neighbors = [1, 1]
    with pytest.raises(ValueError, match=r"with 'num_neighbors' \[\[4, 3\]\]"):
        sampler.sample_from_nodes(graphs.nodes([1]))


def test_a_time_that_was_not_prepared_is_named(tmp_path):
    graph = disk.write(tmp_path / 'g', disk.homogeneous(), temporal=True)
    sampler = StreamingSampler(graph, [2])
    sampler.prepare_epoch(torch.arange(5), 0, input_time=torch.arange(5))
    with pytest.raises(ValueError, match='node 3 at time 9 was not among'):
        sampler.sample_from_nodes(graphs.nodes([3], time=[9]))
    with pytest.raises(ValueError, match='node 3 at time 4 was not among'):
        sampler.sample_from_nodes(graphs.nodes([3], time=[4]))


def test_results_spill_to_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(drawn, '_COLUMNS', 70)  # of several pieces
    data = graphs.homogeneous(2_000, 60_000)
    graph = disk.write(tmp_path / 'g', data, chunk_bytes=4_000)
    want = disk.in_memory(data, [9, 9], seed=0, rng_scope='epoch')
    folder = tmp_path / 'spill'
    folder.mkdir()
    for limit in (1 << 19, 1 << 26):
        sampler = StreamingSampler(
            graph, [9, 9], seed=0, memory_limit=limit, spill_dir=folder
        )
        sampler.prepare_epoch(torch.arange(2_000), 0)
        arrays = sampler._find(0).facts['arrays']
        spilled = [a for a in arrays.values() if a['checksums']]
        assert (len(spilled) > 0) == (limit == 1 << 19)
        for part in torch.arange(2_000).split(500):
            disk.assert_same(
                sampler.sample_from_nodes(graphs.nodes(part)),
                want.sample_from_nodes(graphs.nodes(part)),
                want.edge_permutation,
            )
        sampler.close()
        assert list(folder.iterdir()) == []


def test_an_error_in_the_thread_is_raised_when_its_epoch_is_due(tmp_path):
    _, sampler, _ = make(tmp_path, 'streaming')
    sampler.prepare_epoch(torch.arange(10), 0)
    os.truncate(sampler.chunked.path / 'edges-0.bin', 1024)
    sampler.sample_from_nodes(graphs.nodes(torch.arange(10)))
    sampler.set_epoch(1)
    with pytest.raises(OSError, match='the file ends too early'):
        sampler.sample_from_nodes(graphs.nodes([1]))


def test_ctrl_c_ends_preparing(tmp_path, monkeypatch):
    _, sampler, _ = make(tmp_path, 'streaming')
    draws, begun, sent = (
        epoch_module._sample_chunk,
        threading.Event(),
        threading.Event(),
    )

    def slowly(*args):
        begun.set()
        assert sent.wait(60)
        time.sleep(0.1)
        yield from draws(*args)

    def interrupt():
        assert begun.wait(60)
        signal.raise_signal(signal.SIGINT)
        sent.set()

    monkeypatch.setattr(epoch_module, '_sample_chunk', slowly)
    before = threading.active_count()
    interrupts = threading.Thread(target=interrupt)
    # A shell lets its background processes ignore it.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sampler.prepare_epoch(torch.arange(60), 0)
    finally:
        signal.signal(signal.SIGINT, handler)
    interrupts.join()
    assert threading.active_count() == before
    assert list(sampler._disk.iterdir()) == []
    monkeypatch.undo()
    sampler.prepare_epoch(torch.arange(60), 0)
    sampler.sample_from_nodes(graphs.nodes([1]))


def test_closing_ends_the_thread(tmp_path, monkeypatch):
    _, sampler, _ = make(tmp_path, 'streaming')
    sampler.prepare_epoch(torch.arange(60), 0)
    draws = epoch_module._sample_chunk

    def slowly(*args):
        time.sleep(0.5)
        yield from draws(*args)

    monkeypatch.setattr(epoch_module, '_sample_chunk', slowly)
    before = threading.active_count()
    sampler.prepare_ahead(1)
    started = time.monotonic()
    sampler.close()
    assert time.monotonic() - started < 5
    assert threading.active_count() == before
    assert not sampler._disk.exists()


@pytest.mark.parametrize('kind', KINDS)
def test_samplers_travel_to_other_processes(tmp_path, kind):
    _, sampler, want = make(tmp_path, kind)
    if kind == 'streaming':
        sampler.prepare_epoch(torch.arange(60), 0)
    copy = pickle.loads(pickle.dumps(sampler))
    with batch_scope(0, 1):
        out = copy.sample_from_nodes(graphs.nodes([5, 7]))
        expected = want.sample_from_nodes(graphs.nodes([5, 7]))
    disk.assert_same(out, expected, want.edge_permutation)
    del copy  # and leaves the results of the other one alone
    if kind == 'streaming':
        sampler._results.clear()
        sampler.sample_from_nodes(graphs.nodes([5, 7]))


def test_a_copy_notices_a_new_preparation_of_an_epoch(tmp_path):
    _, sampler, want = make(tmp_path, 'streaming')
    copy = pickle.loads(pickle.dumps(sampler))
    for seeds in ([1, 2], [33]):
        sampler.prepare_epoch(torch.tensor(seeds), 0)
        with batch_scope(0, 0):
            disk.assert_same(
                copy.sample_from_nodes(graphs.nodes(seeds)),
                want.sample_from_nodes(graphs.nodes(seeds)),
                want.edge_permutation,
            )


def test_a_fork_leaves_the_results(tmp_path):
    _, sampler, _ = make(tmp_path, 'streaming')
    sampler.prepare_epoch(torch.arange(10), 0)
    assert disk.in_a_fork(sampler.close) == 0
    assert sampler._find(0) is not None
    assert sampler._disk.exists()


def test_workers_that_end_early_leave_the_results(tmp_path):
    data, sampler, _ = make(tmp_path, 'streaming')
    values(next(iter(loader(data, sampler, num_workers=2))))
    assert sampler._disk.exists()
    sampler._results.clear()
    sampler.sample_from_nodes(graphs.nodes([5, 7]))


def test_statistics_of_random_reads(tmp_path):
    graph = disk.write(tmp_path / 'g', disk.homogeneous())
    sampler = RandomReadSampler(graph, [4, 3], seed=0)
    assert sampler.stats()['hit_rate'] == 0
    for _ in range(2):
        sampler.sample_from_nodes(graphs.nodes(torch.arange(60)))
    stats = sampler.stats()
    assert stats['engine'] in ('io_uring', 'threads')
    blocks = -(-graph.num_bytes // 4096)
    assert stats['blocks_read'] <= blocks  # once each: all fit in the cache
    assert stats['hit_rate'] > 0.5


@pytest.mark.parametrize('engine', ['io_uring', 'threads'])
@pytest.mark.parametrize('direct', [False, True])
@pytest.mark.parametrize('cache', [0, 3 * 4096, 1 << 20])
def test_engines_and_caches_change_no_sample(tmp_path, engine, direct, cache):
    data = disk.homogeneous()
    graph = disk.write(tmp_path / 'g', data, alignment=4096)
    graph = ChunkedGraph(graph.path, direct=direct)
    sampler = RandomReadSampler(
        graph, [4, -1], seed=0, cache_bytes=cache, engine=engine
    )
    want = disk.in_memory(data, [4, -1], seed=0)
    for batch in range(4):
        inputs = graphs.nodes(torch.arange(batch, 60, 7))
        with batch_scope(0, batch):
            disk.assert_same(
                sampler.sample_from_nodes(inputs),
                want.sample_from_nodes(inputs),
                want.edge_permutation,
            )


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('name', TYPES)
def test_edges_may_be_on_disk_alone(tmp_path, name, num_workers):
    data, sampler, want = make(tmp_path, 'random', name)
    features = copy.copy(data)
    for store in features.edge_stores:
        del store.edge_index
    # Attributes of edges without ends are attributes of the whole graph.
    for graph in (data, features):
        for store in graph.edge_stores:
            for key in {*store.edge_attrs(), 'weight', 'time'} & {*store}:
                if key != 'edge_index':
                    del store[key]
    options = {'input_nodes': TYPES[name], 'num_workers': num_workers}
    assert run(loader(features, sampler, **options)) == run(
        loader(data, want, **options)
    )
    assert not any('edge_index' in store for store in features.edge_stores)
