"""Samplers travel to workers, and do not take the graph along."""

import pickle

import pytest
import torch
import torch.multiprocessing as mp
from torch_geometric.sampler import NegativeSampling

from tests.fresh import FORKS
from tests.samplers import graphs
from tests.samplers.oracle import fields_of
from torch_gsample import NeighborSampler


def weighted():
    data = graphs.homogeneous(num_nodes=40, num_edges=400)
    data.weight = torch.rand(400)
    data.time = torch.arange(40)
    return data


OPTIONS = dict(
    weight_attr='weight', time_attr='time', true_negatives=True, seed=0
)
INPUTS = graphs.links([(39, 38), (37, 1)], time=[39, 30])


def outcome(sampler):
    return fields_of(
        sampler.sample_from_edges(INPUTS, NegativeSampling('binary', 3))
    )


def tensors_of(sampler):
    """All tensors that a sampler holds, by where they are."""
    found, todo, seen = {}, [('sampler', sampler)], set()
    while todo:
        name, value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found[name] = value
        elif isinstance(value, dict):
            todo += [(f'{name}[{k}]', v) for k, v in value.items()]
        elif isinstance(value, (list, tuple)):
            todo += [(f'{name}[{i}]', v) for i, v in enumerate(value)]
        elif type(value).__module__.startswith('torch_gsample'):
            todo += [(f'{name}.{k}', v) for k, v in vars(value).items()]
    return found


@pytest.mark.parametrize('data', [weighted(), graphs.heterogeneous()])
def test_a_pickled_sampler_samples_the_same(data):
    hetero = not hasattr(data, 'weight')
    options = {'seed': 0} if hetero else OPTIONS
    inputs = graphs.nodes([3, 5], 'item' if hetero else None)
    sampler = NeighborSampler(data, [3, 2], **options)
    other = pickle.loads(pickle.dumps(sampler))
    out, again = (s.sample_from_nodes(inputs) for s in (sampler, other))
    assert fields_of(out) == fields_of(again)
    assert repr(other) == repr(sampler)


def test_a_seed_that_was_drawn_travels_along():
    sampler = NeighborSampler(weighted(), [3])
    other = pickle.loads(pickle.dumps(sampler))
    assert other.seed == sampler.seed


def test_share_memory_shares_every_tensor():
    sampler = NeighborSampler(weighted(), [3, 2], share_memory=True, **OPTIONS)
    tensors = tensors_of(sampler)
    assert len(tensors) >= 6  # graph, times, weights, neighbours
    assert [n for n, t in tensors.items() if not t.is_shared()] == []
    sampler = NeighborSampler(weighted(), [3, 2], **OPTIONS)
    assert not any(t.is_shared() for t in tensors_of(sampler).values())


def test_an_empty_graph_can_be_shared():
    none = torch.empty(2, 0, dtype=torch.long)
    data = graphs.Data(edge_index=none, num_nodes=3)
    NeighborSampler(data, [2], share_memory=True)


def _child(sampler, queue, done):
    """Reports the graph that it sees, writes to it, and waits."""
    csc = sampler.graph[None]
    queue.put((outcome(sampler), csc.indices.is_shared()))
    csc.indices[0] = 33
    queue.put('written')
    done.wait(60)


@pytest.mark.parametrize(
    'context', [mp.get_context('fork'), FORKS], ids=['fork', 'forkserver']
)
def test_a_process_reads_the_same_memory(context):
    sampler = NeighborSampler(weighted(), [3, 2], share_memory=True, **OPTIONS)
    expected = outcome(sampler)
    queue, done = context.SimpleQueue(), context.Event()
    process = context.Process(target=_child, args=(sampler, queue, done))
    process.start()
    try:
        assert queue.get() == (expected, True)
        assert queue.get() == 'written'
        assert int(sampler.graph[None].indices[0]) == 33
    finally:
        done.set()
        process.join()
    assert process.exitcode == 0
