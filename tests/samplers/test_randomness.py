"""A sample is a function of (seed, epoch, batch) and of nothing else."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs
from tests.samplers.graphs import RATES
from tests.samplers.oracle import assert_fits, fields_of
from torch_gsample import NeighborSampler, rng

DATA = graphs.homogeneous(num_nodes=20, num_edges=600)
INPUTS = graphs.nodes([3, 5, 7, 1])


def sample(seed=0, batch=None, epoch=0, inputs=INPUTS, **options):
    sampler = NeighborSampler(DATA, [3, 3], seed=seed, **options)
    if batch is None:
        sampler.set_epoch(epoch)
        return fields_of(sampler.sample_from_nodes(inputs))
    with rng.batch_scope(epoch, batch):
        return fields_of(sampler.sample_from_nodes(inputs))


def test_a_seed_fixes_the_samples():
    for seed in (0, 7, -1, -(2**63), 2**64 - 1):
        assert sample(seed) == sample(seed)
    assert sample(-1) == sample(2**64 - 1)  # the same 64 bits


def test_seeds_epochs_and_batches_draw_differently():
    outs = [
        *(sample(seed) for seed in range(4)),
        *(sample(epoch=epoch) for epoch in range(1, 4)),
        *(sample(batch=batch) for batch in range(4)),
        *(sample(batch=batch, epoch=1) for batch in range(4)),
    ]
    for i, out in enumerate(outs):
        assert out not in outs[:i]


def test_a_batch_scope_counts_more_than_the_epoch_of_the_sampler():
    sampler = NeighborSampler(DATA, [3], seed=0)
    with rng.batch_scope(2, 5):
        first = fields_of(sampler.sample_from_nodes(INPUTS))
        sampler.set_epoch(9)
        assert fields_of(sampler.sample_from_nodes(INPUTS)) == first


def test_without_a_loader_a_batch_goes_by_its_seeds():
    sampler = NeighborSampler(DATA, [3], seed=0)
    first = sampler.sample_from_nodes(INPUTS)
    again = sampler.sample_from_nodes(INPUTS)
    assert torch.equal(first.edge, again.edge)
    # Node 3 comes first in both, and draws again.
    other = sampler.sample_from_nodes(graphs.nodes([3, 9]))
    assert first.edge[:3].tolist() != other.edge[:3].tolist()


def test_torchs_seed_stands_in_for_a_missing_one():
    outs = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        outs.append(sample(seed=None))
    assert outs[0] == outs[1] != outs[2]


def test_sampling_leaves_torchs_generator_alone():
    sampler = NeighborSampler(DATA, [3, 2], seed=0, true_negatives=True)
    state = torch.get_rng_state()
    sampler.sample_from_nodes(INPUTS)
    sampler.sample_from_edges(
        graphs.links([(1, 2)]), NegativeSampling('binary', 2)
    )
    NeighborSampler(DATA, [3, 2], seed=0)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize('disjoint', [False, True])
def test_in_epoch_scope_a_node_draws_the_same_in_all_batches(disjoint):
    sampler = NeighborSampler(
        DATA, [3], seed=0, rng_scope='epoch', disjoint=disjoint
    )

    def drawn(epoch, batch, seeds):
        with rng.batch_scope(epoch, batch):
            out = sampler.sample_from_nodes(graphs.nodes(seeds))
        edges = out.edge.view(len(seeds), 3).tolist()
        return dict(zip(seeds, edges, strict=True))

    first = drawn(0, 0, [3, 5, 7, 1])
    assert (
        drawn(0, 1, [9, 7, 3]).items()
        >= {
            3: first[3],
            7: first[7],
        }.items()
    )
    assert drawn(1, 0, [3, 5, 7, 1]) != first


def test_in_epoch_scope_hops_draw_independently():
    sampler = NeighborSampler(DATA, [3, 3], seed=0, rng_scope='epoch')
    with rng.batch_scope(0, 0):
        first = sampler.sample_from_nodes(graphs.nodes([3]))
        v = int(first.node[1])
        at_once = sampler.sample_from_nodes(graphs.nodes([v]))
    later = first.edge[3:][first.col[3:] == 1]
    assert later.numel() == 3
    assert later.tolist() != at_once.edge[:3].tolist()


def test_edge_types_draw_independently():
    data = graphs.heterogeneous()
    other = ('user', 'rates2', 'item')
    index = graphs.random_edges(12, 15, 600)
    data[RATES].edge_index = data[other].edge_index = index
    del data[RATES].edge_attr
    sampler = NeighborSampler(data, [3], seed=0)
    out = sampler.sample_from_nodes(graphs.nodes(range(15), 'item'))
    assert out.edge[RATES].numel() == out.edge[other].numel() == 45
    assert not torch.equal(out.edge[RATES], out.edge[other])


@pytest.mark.parametrize('mode', ['binary', 'triplet'])
def test_negatives_are_reproducible(mode):
    inputs = graphs.links([(1, 2), (3, 4), (5, 6)])

    def draw(seed, epoch, batch):
        sampler = NeighborSampler(DATA, [2], seed=seed)
        with rng.batch_scope(epoch, batch):
            out = sampler.sample_from_edges(inputs, NegativeSampling(mode, 20))
        return fields_of(out)

    outs = [draw(*key) for key in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    assert draw(0, 0, 0) == outs[0]
    for i, out in enumerate(outs):
        assert out not in outs[:i]


def drawn_by(out, place):
    """The edges that the seed at a place drew at the first hop."""
    first = out.num_sampled_edges[0]
    return out.edge[:first][out.col[:first] == place].tolist()


def test_a_seed_that_occurs_again_draws_as_a_tree_of_its_own():
    inputs = graphs.nodes([3, 5, 3, 7, 3])
    sampler = NeighborSampler(DATA, [4, 2], seed=0)
    with rng.batch_scope(1, 2):
        out = sampler.sample_from_nodes(inputs)
        once = sampler.sample_from_nodes(graphs.nodes([3, 5, 7]))
        sampler.disjoint = True
        trees = sampler.sample_from_nodes(inputs)
    firsts = [drawn_by(out, place) for place in (0, 1, 3)]
    assert firsts == [drawn_by(once, place) for place in range(3)]
    again = [drawn_by(out, place) for place in (0, 2, 4)]
    assert again[0] != again[1] != again[2] != again[0]
    assert again[1:] == [drawn_by(trees, place) for place in (2, 4)]


def test_in_the_epoch_scope_a_seed_draws_the_same_again():
    sampler = NeighborSampler(DATA, [4], seed=0, rng_scope='epoch')
    out = sampler.sample_from_nodes(graphs.nodes([3, 5, 3]))
    assert drawn_by(out, 0) == drawn_by(out, 2)


@pytest.mark.parametrize('options', [{}, {'replace': True}])
def test_draws_of_a_seed_that_occurs_again_are_independent(options):
    """Each pair of neighbours is as likely, and so is each pair of draws."""
    degree, copies = 10, 20_000
    edges = torch.stack([torch.arange(1, 11), torch.zeros(10).long()])
    data = Data(edge_index=edges, num_nodes=11)
    sampler = NeighborSampler(data, [1], seed=5, **options)
    out = sampler.sample_from_nodes(graphs.nodes([0] * copies))
    drawn = out.edge.view(-1, 2)
    counts = (drawn[:, 0] * degree + drawn[:, 1]).bincount(minlength=100)
    assert_fits(counts)
