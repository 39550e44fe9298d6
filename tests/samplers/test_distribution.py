"""What PyG gets wrong: hubs, threads, and work that grows with the graph."""

import time

import pytest
import torch
from torch_geometric.data import Data

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
