"""`order='random'`: the edges of each column, shuffled."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader as PyGLoader

from tests.samplers import graphs
from tests.samplers.oracle import assert_fits, edge_lists
from torch_gsample import NeighborSampler, rng
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import ChunkedGraph, RandomReadSampler

DATA = graphs.homogeneous(num_nodes=20, num_edges=600)
INPUTS = graphs.nodes([3, 5, 7, 3])


def star(degree):
    leaves = torch.arange(1, degree + 1)
    return Data(
        edge_index=torch.stack([leaves, torch.zeros_like(leaves)]),
        num_nodes=degree + 1,
    )


def columns_of(out):
    """The edges of each column, in order; and what else a sample has."""
    parts = {}
    edges = zip(
        *(x.tolist() for x in (out.col, out.edge, out.row)), strict=True
    )
    for col, *edge in edges:
        parts.setdefault(col, []).append(edge)
    return parts, out.node.tolist(), out.num_sampled_edges


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'disjoint': True},
        {'replace': True},
        {'rng_scope': 'epoch'},
        {'weight_attr': 'weight'},
    ],
)
def test_a_shuffled_sample_has_the_same_edges_in_each_column(options):
    data = DATA.clone()
    data.weight = torch.rand(600)
    outs = []
    for order in ('slot', 'random'):
        sampler = NeighborSampler(
            data, [9, -1], seed=1, order=order, **options
        )
        outs.append(columns_of(sampler.sample_from_nodes(INPUTS)))
    (slots, *rest), (shuffled, *same) = outs
    assert rest == same
    assert list(slots) == list(shuffled)  # columns stay where they were
    assert slots != shuffled
    for col, edges in slots.items():
        assert sorted(edges) == sorted(shuffled[col])


@pytest.mark.parametrize(('degree', 'fanout'), [(11, 10), (4, -1), (40, 5)])
def test_each_neighbour_is_as_likely_in_each_slot(degree, fanout):
    sampler = NeighborSampler(
        star(degree), [fanout], disjoint=True, seed=2, order='random'
    )
    out = sampler.sample_from_nodes(graphs.nodes([0] * 20_000))
    drawn = out.edge.view(20_000, -1)
    for slot in range(drawn.size(1)):
        assert_fits(drawn[:, slot].bincount(minlength=degree))


def test_each_order_of_a_column_is_as_likely():
    sampler = NeighborSampler(star(4), [-1], seed=3, order='random')
    out = sampler.sample_from_nodes(graphs.nodes([0] * 20_000))
    digits = out.edge.view(20_000, 4) * torch.tensor([64, 16, 4, 1])
    counts = digits.sum(1).bincount(minlength=256)
    assert int((counts > 0).sum()) == 24
    assert_fits(counts[counts > 0])


def test_relations_shuffle_their_own_columns():
    data = graphs.heterogeneous()
    inputs = graphs.nodes([1, 2], 'item')
    for direction in ('forward', 'backward'):
        outs = [
            NeighborSampler(
                *(data, graphs.each(data, [4, 4])),
                seed=1,
                order=order,
                sample_direction=direction,
            ).sample_from_nodes(inputs)
            for order in ('slot', 'random')
        ]
        shuffled = 0
        for edge_type, edge in outs[0].edge.items():
            other = outs[1].edge[edge_type]
            assert sorted(edge.tolist()) == sorted(other.tolist())
            shuffled += edge.tolist() != other.tolist()
        assert shuffled > 1
        for node_type, node in outs[0].node.items():
            assert torch.equal(node, outs[1].node[node_type])


def test_edges_keep_their_ends_and_attributes():
    loader = NeighborLoader(
        DATA, [3, 2], batch_size=4, seed=1, order='random', prefetch=0
    )
    ends = edge_lists(DATA)[None]
    for batch in loader:
        nodes = batch.n_id[batch.edge_index].t().tolist()
        ids = batch.edge_attr.tolist()
        assert [tuple(pair) for pair in nodes] == [ends[i] for i in ids]
        assert batch.blocks is not None


def test_in_the_epoch_scope_a_node_has_one_order():
    sampler = NeighborSampler(
        DATA, [5], seed=0, rng_scope='epoch', order='random'
    )
    orders = []
    for batch, seeds in enumerate(([3, 5, 3], [7, 9, 3])):
        with rng.batch_scope(0, batch):
            out = sampler.sample_from_nodes(graphs.nodes(seeds))
        orders += [
            out.edge[out.col == i].tolist()
            for i, s in enumerate(seeds)
            if s == 3
        ]
    assert orders[0] == orders[1] == orders[2]


def test_a_graph_on_disk_gives_the_same_order(tmp_path):
    graph = ChunkedGraph.write(tmp_path / 'graph', DATA)
    samplers = (
        NeighborSampler(DATA, [4, 3], seed=0, order='random'),
        RandomReadSampler(graph, [4, 3], seed=0, order='random'),
    )
    one, other = (s.sample_from_nodes(INPUTS) for s in samplers)
    assert one.row.tolist() == other.row.tolist()
    perm = samplers[0].edge_permutation
    edge = one.edge if perm is None else perm[one.edge]
    assert edge.tolist() == other.edge.tolist()


def test_pygs_loader_takes_a_sampler_with_an_order():
    sampler = NeighborSampler(DATA, [4], seed=0, order='random')
    loader = PyGLoader(DATA, [4], neighbor_sampler=sampler, batch_size=5)
    for batch in loader:
        assert torch.equal(
            batch.edge_index[1].sort().values, batch.edge_index[1]
        )


@pytest.mark.parametrize('order', ['sorted', None, True])
def test_an_unknown_order_is_refused(order):
    with pytest.raises(ValueError, match="'order' must be 'slot' or 'random'"):
        NeighborSampler(DATA, [2], order=order)


@pytest.mark.parametrize('subgraph_type', ['induced', 'bidirectional'])
def test_edges_that_were_not_sampled_have_no_order(subgraph_type, tmp_path):
    with pytest.raises(ValueError, match="needs subgraph_type='directional'"):
        NeighborSampler(DATA, [2], subgraph_type=subgraph_type, order='random')
