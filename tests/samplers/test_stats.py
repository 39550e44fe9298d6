"""Counts of samplers, and their names in a profiler."""

import pickle
import threading

import pytest
import torch
from torch.profiler import profile

from tests.samplers import graphs
from torch_gsample import LaborSampler, NeighborSampler
from torch_gsample.loader import NeighborLoader
from torch_gsample.samplers.counts import Counts
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)

DATA = graphs.homogeneous()
HETERO = graphs.heterogeneous()


def disk_graph(folder):
    return ChunkedGraph.write(folder / 'graph', DATA)


SAMPLERS = {
    'memory': lambda folder: NeighborSampler(DATA, [4, 3], seed=0),
    'program': lambda folder: LaborSampler(DATA, [4, 3], seed=0),
    'blocks': lambda folder: RandomReadSampler(
        disk_graph(folder), [4, 3], seed=0
    ),
}


@pytest.mark.parametrize('name', SAMPLERS)
def test_samplers_count_nodes_and_edges_of_each_hop(name, tmp_path):
    sampler = SAMPLERS[name](tmp_path)
    outs = [
        sampler.sample_from_nodes(graphs.nodes([3, 4, 5])) for _ in range(2)
    ]
    stats = sampler.stats()
    assert stats['batches'] == 2
    for key in 'nodes', 'edges':
        one, two = (getattr(out, f'num_sampled_{key}') for out in outs)
        assert stats[key] == [a + b for a, b in zip(one, two, strict=True)]
    new = sum(out.node.numel() - 3 for out in outs)
    total = sum(out.row.numel() for out in outs)
    assert stats['duplicates'] == pytest.approx(1 - new / total)
    assert stats['seconds']['sample'] > 0
    assert ('hit_rate' in stats) == (name == 'blocks')


def test_types_are_counted_together():
    fanouts = graphs.each(HETERO, [3, 2])
    sampler = NeighborSampler(HETERO, fanouts, seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([1, 2], 'item'))
    stats = sampler.stats()
    assert stats['nodes'][0] == 2
    assert sum(stats['nodes']) == sum(v.numel() for v in out.node.values())
    assert sum(stats['edges']) == sum(v.numel() for v in out.row.values())


def test_edges_of_no_hop_are_counted_at_once():
    sampler = NeighborSampler(DATA, [4, 3], 'induced', seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([3, 4, 5]))
    assert sampler.stats()['edges'] == [out.row.numel()]
    assert 'induce' in sampler.stats()['seconds']


def test_links_time_their_negatives():
    sampler = NeighborSampler(DATA, [2], seed=0)
    sampler.sample_from_edges(graphs.links([(1, 2)]), 'binary')
    assert sampler.stats()['batches'] == 1
    assert sampler.stats()['seconds']['negatives'] > 0


def test_a_streamed_epoch_says_how_long_it_was_prepared(tmp_path):
    sampler = StreamingSampler(disk_graph(tmp_path), [4, 3], seed=0)
    loader = NeighborLoader(DATA, sampler=sampler, batch_size=10)
    batches = list(loader)
    stats = sampler.stats()
    assert stats['batches'] == len(batches)
    assert stats['seconds']['prepare_epoch'] > 0
    sampler.close()


def test_threads_count_all():
    counts = Counts()

    def work():
        for _ in range(500):
            counts.add([[1, 2]], [[3]])
            with counts.phase('work'):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = counts.stats()
    assert stats['batches'] == 2000
    assert (stats['nodes'], stats['edges']) == ([2000, 4000], [6000])
    assert stats['seconds']['work'] > 0


def test_a_copy_in_another_process_begins_at_zero():
    sampler = NeighborSampler(DATA, [2], seed=0)
    sampler.sample_from_nodes(graphs.nodes([3]))
    copied = pickle.loads(pickle.dumps(sampler))
    assert copied.stats()['batches'] == 0
    assert copied.stats()['duplicates'] == 0


@pytest.mark.parametrize('workers', [0, 2])
def test_loaders_count_batches_of_all_workers(workers):
    loader = NeighborLoader(
        DATA, [4, 3], batch_size=8, seed=0, num_workers=workers
    )
    batches = list(loader)
    stats = loader.stats()
    assert stats['batches'] == len(batches) == 4
    assert sum(stats['nodes']) == sum(b.num_nodes for b in batches)
    assert sum(stats['edges']) == sum(b.num_edges for b in batches)
    assert stats['seconds']['wait'] > 0
    assert stats['seconds']['join_features'] > 0


def ranges(call):
    with profile() as seen:
        call()
    return {event.key for event in seen.key_averages()}


def test_a_profiler_sees_operators_and_phases():
    loader = NeighborLoader(DATA, [4, 3], seed=0, static_shapes=True)
    loader.prefetch = 0  # a profiler sees the threads that it knows
    seen = ranges(lambda: next(iter(loader)))
    assert {
        'gsample::sample_neighbors',
        'gsample::sample',
        'gsample::join_features',
        'gsample::pad_batch',
    } <= seen


def test_no_range_is_made_where_no_profiler_looks(monkeypatch):
    def record(name):
        raise AssertionError(name)

    monkeypatch.setattr(torch.profiler, 'record_function', record)
    sampler = NeighborSampler(DATA, [2], seed=0)
    sampler.sample_from_nodes(graphs.nodes([3]))
    with profile(), pytest.raises(AssertionError, match='gsample::sample'):
        sampler.sample_from_nodes(graphs.nodes([3]))
