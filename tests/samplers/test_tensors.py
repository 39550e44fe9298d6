"""Samples as tensors are those of ``sample_from_nodes``."""

import pytest
import torch

from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.rng import batch_scope
from torch_gsample.storage import ChunkedGraph, RandomReadSampler

SEEDS = torch.tensor([3, 9, 3, 11])
HOMOGENEOUS = {
    'plain': {},
    'disjoint': {'disjoint': True},
    'replace': {'replace': True},
    'induced': {'subgraph_type': 'induced'},
    'both_ways': {'subgraph_type': 'bidirectional'},
    'epoch': {'rng_scope': 'epoch'},
    'backward': {'sample_direction': 'backward'},
}


def ids(out, perm):
    """The edges of a sample, as PyG's loaders name them."""
    if not isinstance(out.edge, dict):
        return out.edge if perm is None else perm[out.edge]
    known = perm or {}
    return {
        t: e if known.get(t) is None else known[t][e]
        for t, e in out.edge.items()
    }


def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, torch.Tensor) else value


def assert_same(tensors, out, sampler):
    for name in tensors._fields:
        want = getattr(out, name)
        if name == 'edge':
            want = ids(out, sampler.edge_permutation)
        assert plain(getattr(tensors, name)) == plain(want), name


@pytest.mark.parametrize('name', HOMOGENEOUS)
def test_tensors_are_those_of_a_sample(name):
    data = graphs.homogeneous()
    sampler = NeighborSampler(data, [3, 2], seed=1, **HOMOGENEOUS[name])
    out = sampler.sample_from_nodes(graphs.nodes(SEEDS))
    tensors = sampler.tensors(SEEDS)
    assert_same(tensors, out, sampler)
    if name != 'both_ways':  # reverse edges have the same ids
        ends = [tensors.node[i] for i in (tensors.row, tensors.col)]
        assert torch.equal(torch.stack(ends), data.edge_index[:, tensors.edge])
    assert sampler.stats()['batches'] == 2


def test_tensors_have_the_key_of_their_batch():
    sampler = NeighborSampler(graphs.homogeneous(), [3, 2], seed=1)
    outs = []
    for batch in 0, 1, 0:
        with batch_scope(2, batch):
            outs.append(sampler.tensors(SEEDS))
            want = sampler.sample_from_nodes(graphs.nodes(SEEDS))
        assert_same(outs[-1], want, sampler)
    assert plain(outs[0]._asdict()) == plain(outs[2]._asdict())
    assert plain(outs[0]._asdict()) != plain(outs[1]._asdict())


def test_tensors_of_types_go_by_type():
    data = graphs.heterogeneous()
    sampler = NeighborSampler(data, graphs.each(data, [3, 2]), seed=1)
    seeds = torch.tensor([3, 1])
    out = sampler.sample_from_nodes(graphs.nodes(seeds, 'item'))
    tensors = sampler.tensors({'item': seeds})
    assert_same(tensors, out, sampler)
    both = sampler.tensors({'item': seeds, 'user': seeds})
    assert [both.num_sampled_nodes[t][0] for t in ('item', 'user')] == [2, 2]


def test_tensors_know_times():
    data = graphs.homogeneous(time=torch.arange(30) % 10)
    sampler = NeighborSampler(data, [3, 2], seed=1, time_attr='time')
    times = torch.tensor([9, 4, 6, 2])
    out = sampler.sample_from_nodes(graphs.nodes(SEEDS, time=times))
    assert_same(sampler.tensors(SEEDS, times), out, sampler)
    own = sampler.sample_from_nodes(graphs.nodes(SEEDS))
    assert_same(sampler.tensors(SEEDS), own, sampler)


def test_samplers_on_disk_have_tensors(tmp_path):
    data = graphs.homogeneous()
    chunked = ChunkedGraph.write(tmp_path / 'graph', data)
    sampler = RandomReadSampler(chunked, [3, 2], seed=1)
    want = NeighborSampler(data, [3, 2], seed=1).tensors(SEEDS)
    assert plain(sampler.tensors(SEEDS)._asdict()) == plain(want._asdict())


@pytest.mark.parametrize(
    ('seeds', 'error', 'match'),
    [
        ([3], TypeError, r"'seeds' must be a tensor.*got list"),
        ({None: [3]}, TypeError, r"'seeds' must be a tensor.*got list"),
        (torch.tensor([0.5]), TypeError, r"'seeds' must be int32 or int64"),
        (torch.tensor([[1]]), ValueError, r"'seeds' must be a vector"),
        (torch.tensor([30]), IndexError, r"'seeds' must be in \[0, 30\)"),
        ({'a': SEEDS}, ValueError, r"no node type 'a'"),
    ],
)
def test_bad_seeds_are_errors(seeds, error, match):
    sampler = NeighborSampler(graphs.homogeneous(), [3, 2], seed=1)
    with pytest.raises(error, match=match):
        sampler.tensors(seeds)


OPTIONS = {
    'replace': True,
    'disjoint': True,
    'temporal_strategy': 'last',
    'time_window': 3,
    'num_neighbors': [1, 1],
    'num_threads': 1,
}


@pytest.mark.parametrize('name', OPTIONS)
def test_options_that_are_set_are_those_of_the_next_sample(name):
    def sampler(**options):
        data = graphs.homogeneous(time=torch.arange(30) % 10)
        if name in ('temporal_strategy', 'time_window'):
            options['time_attr'] = 'time'
        options = {'num_neighbors': [3, 2]} | options
        return NeighborSampler(data, seed=1, **options)

    seeds = torch.tensor([9, 19, 29])
    changed, fresh = sampler(), sampler(**{name: OPTIONS[name]})
    before = changed.tensors(seeds)
    setattr(changed, name, OPTIONS[name])
    after, want = changed.tensors(seeds), fresh.tensors(seeds)
    assert plain(after._asdict()) == plain(want._asdict())
    same = plain(after._asdict()) == plain(before._asdict())
    assert same == (name == 'num_threads')
    assert changed._sampling() is changed._sampling()
    assert changed._sampling() == fresh._sampling()
