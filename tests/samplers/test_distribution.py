"""What PyG gets wrong: hubs, threads, and work that grows with the graph."""

import functools
import time

import pytest
import torch
from torch_geometric.data import Data, HeteroData

from tests.samplers import graphs
from tests.samplers.oracle import assert_fits
from torch_gsample import NeighborSampler


def hub(degree):
    """A node with an edge from each of ``degree`` others, in their order."""
    leaves = torch.arange(1, degree + 1)
    return Data(
        edge_index=torch.stack([leaves, torch.zeros_like(leaves)]),
        num_nodes=degree + 1,
    )


def assert_uniform(position, degree, bins=200):
    """Over coarse ranges, and over what coarse ranges cannot see."""
    assert_fits(torch.bincount(position * bins // degree, minlength=bins))
    rest = torch.bincount(position % 64, minlength=64)
    assert_fits(rest, torch.bincount(torch.arange(degree) % 64))


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('degree', [10_000, 40_000, 1_000_000])
def test_hubs_are_sampled_uniformly(degree, replace):
    sampler = NeighborSampler(
        hub(degree), [10], replace=replace, disjoint=True, seed=0
    )
    out = sampler.sample_from_nodes(graphs.nodes([0] * 4096))
    assert out.edge.numel() == 40_960
    assert_uniform(out.edge, degree)


@pytest.mark.parametrize('degree', [10_000, 40_000, 1_000_000])
def test_large_fan_outs_are_uniform(degree):
    """They take another path than small ones."""
    sampler = NeighborSampler(hub(degree), [2000], seed=0)
    edges = []
    for epoch in range(20):
        sampler.set_epoch(epoch)
        out = sampler.sample_from_nodes(graphs.nodes([0]))
        assert out.edge.unique().numel() == 2000
        edges.append(out.edge)
    assert_uniform(torch.cat(edges), degree)


def test_the_first_neighbours_of_a_hub_get_their_share():
    """Of 40,000 neighbours pyg-lib gives 25,536 too many of the draws."""
    sampler = NeighborSampler(hub(40_000), [15], disjoint=True, seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([0] * 4096))
    share = (out.edge < 25_536).double().mean()
    assert abs(share - 25_536 / 40_000) < 4 * (0.25 / 61_440) ** 0.5


@pytest.mark.parametrize('degree', [16, 17, 33, 100])
def test_each_pair_of_neighbours_is_as_likely(degree):
    sampler = NeighborSampler(hub(degree), [2], disjoint=True, seed=0)
    out = sampler.sample_from_nodes(graphs.nodes([0] * 20_000))
    pairs = out.edge.view(-1, 2).sort().values
    counts = torch.zeros(degree, degree)
    counts.index_put_(tuple(pairs.t()), torch.ones(20_000), accumulate=True)
    upper = torch.ones(degree, degree).triu(1)
    assert_fits(counts.flatten(), upper.flatten())


def typed_hub(degree, num_types=4):
    """A hub with a relation from each of several types of leaves."""
    data = HeteroData(hub={'num_nodes': 1})
    leaves = torch.arange(degree)
    for i in range(num_types):
        data[f'leaf{i}'].num_nodes = degree
        data[f'leaf{i}', 'to', 'hub'].edge_index = torch.stack(
            [leaves, torch.zeros_like(leaves)]
        )
    return data


@pytest.mark.parametrize('num_threads', [1, 2, 4])
def test_threads_do_not_bias_typed_samples(num_threads):
    """pyg-lib's share a generator."""
    sampler = NeighborSampler(
        typed_hub(1000), [10], disjoint=True, seed=0, num_threads=num_threads
    )
    out = sampler.sample_from_nodes(graphs.nodes([0] * 2048, 'hub'))
    edges = [out.edge[t] for t in out.edge]
    assert len(edges) == 4
    for edge in edges:
        assert_uniform(edge, 1000)
    # Relations draw independently.
    same = (edges[0].view(-1, 10)[:, 0] == edges[1].view(-1, 10)[:, 0]).sum()
    assert int(same) < 15  # 2 on average


def large(edge_types):
    """Large enough for several threads in every phase of a hop."""
    data = HeteroData()
    for i, (src, dst) in enumerate(edge_types):
        data[src].num_nodes = data[dst].num_nodes = 60_000
        store = data[src, 'to', dst]
        store.edge_index = graphs.random_edges(60_000, 60_000, 300_000, i)
        store.weight = torch.rand(300_000)
        store.time = torch.randint(10, (300_000,))
    if len(edge_types) > 1:
        return data
    return Data(num_nodes=60_000, **data['a', 'to', 'a'].to_dict())


@functools.cache
def large_graphs():
    return large(['aa']), large(['ab', 'ba', 'aa'])


def tensors_of(out):
    """All tensors of an output, in order."""
    for name in ('node', 'row', 'col', 'edge', 'batch'):
        value = getattr(out, name)
        yield from value.values() if isinstance(value, dict) else [value]


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'replace': True},
        {'disjoint': True},
        {'weight_attr': 'weight'},
        {'time_attr': 'time'},
        {'subgraph_type': 'induced'},
        {'weight_attr': 'weight', 'time_attr': 'time', 'replace': True},
    ],
    ids=str,
)
@pytest.mark.parametrize('typed', [False, True])
def test_the_number_of_threads_changes_nothing(typed, options):
    data = large_graphs()[typed]
    seeds = torch.randint(60_000, (3000,))
    time = torch.randint(10, (3000,)) if 'time_attr' in options else None
    inputs = graphs.nodes(seeds, 'a' if typed else None, time)
    sampler = NeighborSampler(data, [6, 4], seed=0, **options)
    outs = []
    for num_threads in (1, 2, 4, None):
        sampler.num_threads = num_threads
        out = sampler.sample_from_nodes(inputs)
        outs.append(list(tensors_of(out)))
    assert outs[0][0].numel() > 20_000
    for out in outs[1:]:
        for own, other in zip(out, outs[0], strict=True):
            assert (own is None and other is None) or torch.equal(own, other)


def fastest(sampler, num_nodes, repeat=30):
    best = float('inf')
    for i in range(repeat):
        inputs = graphs.nodes([i * 37 % num_nodes])
        start = time.perf_counter()
        sampler.sample_from_nodes(inputs)
        best = min(best, time.perf_counter() - start)
    return best


def test_the_work_of_one_seed_does_not_grow_with_the_graph():
    """Touching 8 million nodes, if only to clear a table, takes 2 ms."""
    times = []
    for num_nodes in (1000, 8_000_000):
        edge_index = graphs.random_edges(num_nodes, num_nodes, 5000)
        data = Data(edge_index=edge_index, num_nodes=num_nodes)
        sampler = NeighborSampler(data, [2, 2], seed=0)
        times.append(fastest(sampler, num_nodes))
    assert times[1] < 3 * times[0] + 1e-3
