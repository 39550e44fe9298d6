"""Directional, bidirectional and induced subgraphs, and directions."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler.base import SubgraphType

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, MARKS, RATES, REV_RATES
from tests.samplers.oracle import (
    assert_consistent,
    assert_valid,
    by_type,
    edge_lists,
    original_edges,
)
from torch_gsample import NeighborSampler

SEEDS = [3, 5, 7]


def sample(data, seeds=SEEDS, node_type=None, num_neighbors=(3, 2), **options):
    sampler = NeighborSampler(data, list(num_neighbors), seed=0, **options)
    inputs = graphs.nodes(seeds, node_type, time=options.pop('time', None))
    return sampler, sampler.sample_from_nodes(inputs)


@pytest.mark.parametrize('name', ['induced', SubgraphType.induced])
def test_a_subgraph_type_is_a_name_or_a_member(name):
    sampler, _ = sample(graphs.homogeneous(), subgraph_type=name)
    assert sampler.subgraph_type == SubgraphType.induced


def test_not_directed_means_induced():
    sampler, _ = sample(graphs.homogeneous(), directed=False)
    assert sampler.subgraph_type == SubgraphType.induced


@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_an_induced_subgraph_has_all_edges_between_its_nodes(direction):
    data = graphs.homogeneous()
    options = dict(sample_direction=direction)
    sampler, out = sample(data, subgraph_type='induced', **options)
    plain = sample(data, **options)[1]
    assert torch.equal(out.node, plain.node)
    assert out.num_sampled_nodes == plain.num_sampled_nodes
    assert out.num_sampled_edges is None
    _, ids = assert_consistent(sampler, out, edge_lists(data))
    node = set(out.node.tolist())
    expected = [
        e
        for e, ends in enumerate(data.edge_index.t().tolist())
        if node.issuperset(ends)
    ]
    assert sorted(ids[None]) == expected
    assert len(expected) > plain.edge.numel()


def test_an_induced_typed_subgraph_has_all_edges_of_all_types():
    data = graphs.heterogeneous()
    sampler, out = sample(data, SEEDS, 'item', subgraph_type='induced')
    fields, ids = assert_consistent(sampler, out, edge_lists(data))
    for t, pairs in edge_lists(data).items():
        src, dst = set(fields['node'][t[0]]), set(fields['node'][t[2]])
        assert sorted(ids[t]) == [
            e for e, (u, v) in enumerate(pairs) if u in src and v in dst
        ]
    assert len(ids[RATES]) > 0


def test_an_induced_disjoint_subgraph_has_the_edges_of_each_tree():
    data = graphs.homogeneous()
    sampler, out = sample(data, subgraph_type='induced', disjoint=True)
    fields, ids = assert_consistent(sampler, out, edge_lists(data))
    batch, node = fields['batch'][None], fields['node'][None]
    expected = []
    for tree in range(len(SEEDS)):
        own = {v for v, b in zip(node, batch, strict=True) if b == tree}
        expected += [
            e
            for e, ends in enumerate(data.edge_index.t().tolist())
            if own.issuperset(ends)
        ]
    assert sorted(ids[None]) == sorted(expected)


@pytest.mark.parametrize('window', [None, 6])
def test_an_induced_temporal_subgraph_has_the_edges_of_its_time(window):
    data = graphs.homogeneous(time=torch.arange(30))
    sampler = NeighborSampler(
        data,
        [5, 5],
        subgraph_type='induced',
        time_attr='time',
        time_window=window,
        seed=0,
    )
    time = [10, 20, 29]
    out = sampler.sample_from_nodes(graphs.nodes(SEEDS, time=time))
    fields, ids = assert_consistent(sampler, out, edge_lists(data))
    batch, node = fields['batch'][None], fields['node'][None]
    expected = []
    for tree, latest in enumerate(time):
        own = {v for v, b in zip(node, batch, strict=True) if b == tree}
        first = -1 if window is None else latest - window
        expected += [
            e
            for e, (u, v) in enumerate(data.edge_index.t().tolist())
            if u in own and v in own and first <= u <= latest
        ]
    assert sorted(ids[None]) == sorted(expected)
    assert expected


@pytest.mark.parametrize('keep', [False, True])
def test_a_bidirectional_subgraph_has_each_edge_both_ways(keep):
    data = graphs.homogeneous()
    sampler = NeighborSampler(
        data, [3, 2], subgraph_type='bidirectional', seed=0
    )
    sampler.keep_orig_edges = keep
    out = sampler.sample_from_nodes(graphs.nodes(SEEDS, input_id=[4, 5, 6]))
    plain = sample(data)[1]
    expected = {
        *zip(plain.row.tolist(), plain.col.tolist(), strict=True),
        *zip(plain.col.tolist(), plain.row.tolist(), strict=True),
    }
    ends = list(zip(out.row.tolist(), out.col.tolist(), strict=True))
    assert len(ends) == len(expected)
    assert set(ends) == expected
    assert out.metadata[0].tolist() == [4, 5, 6]
    if keep:
        assert torch.equal(out.orig_row, plain.row)
        assert torch.equal(out.orig_col, plain.col)
        assert out.num_sampled_edges == plain.num_sampled_edges
    else:
        assert out.orig_row is None
        assert out.num_sampled_nodes is None
    edges = data.edge_index.t().tolist()
    ids = original_edges(sampler, out)[None]
    for (row, col), e in zip(ends, ids, strict=True):
        pair = [int(out.node[row]), int(out.node[col])]
        assert edges[e] in (pair, pair[::-1])


def test_a_bidirectional_typed_subgraph_pairs_reverse_types():
    data = graphs.heterogeneous()
    del data[MARKS]  # which has no reverse type: PyG warns
    _, out = sample(data, SEEDS, 'item', subgraph_type='bidirectional')
    pairs = zip(out.row[RATES].tolist(), out.col[RATES].tolist(), strict=True)
    reverse = zip(
        out.col[REV_RATES].tolist(), out.row[REV_RATES].tolist(), strict=True
    )
    assert set(pairs) == set(reverse)
    row, col = out.row[FOLLOWS].tolist(), out.col[FOLLOWS].tolist()
    own = set(zip(row, col, strict=True))
    assert own == {(v, u) for u, v in own}
    assert out.edge[RATES] is None
    assert out.num_sampled_edges is None


def test_backward_equals_forward_on_the_reverse_graph():
    data = graphs.homogeneous()
    # So that out-edges of a node have one order in both graphs.
    order = data.edge_index[1].argsort(stable=True)
    data.edge_index = data.edge_index[:, order]
    data.weight = torch.arange(150.0)
    reverse = Data(
        edge_index=data.edge_index.flip(0), num_nodes=30, weight=data.weight
    )
    for weight_attr in (None, 'weight'):
        options = dict(weight_attr=weight_attr)
        backward, out = sample(data, sample_direction='backward', **options)
        forward, expected = sample(reverse, **options)
        assert torch.equal(out.node, expected.node)
        assert torch.equal(out.row, expected.col)
        assert torch.equal(out.col, expected.row)
        assert original_edges(backward, out) == original_edges(
            forward, expected
        )


def test_backward_keeps_the_names_of_edge_types():
    data = graphs.heterogeneous()
    sampler, out = sample(
        data, [0, 1], 'tag', [2, 2], sample_direction='backward'
    )
    assert list(out.row) == data.edge_types
    fields, _ = assert_valid(
        sampler,
        out,
        edge_lists(data),
        {'tag': [0, 1]},
        graphs.each(data, [2, 2]),
        backward=True,
    )
    assert fields['num_sampled_edges'][MARKS][0] > 0


@pytest.mark.parametrize('subgraph_type', list(SubgraphType))
def test_parallel_edges_and_self_loops_are_edges(subgraph_type):
    data = Data(
        edge_index=torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1]]), num_nodes=2
    )
    _, out = sample(data, [0], num_neighbors=[-1], subgraph_type=subgraph_type)
    count = {'directional': 3, 'bidirectional': 3, 'induced': 4}
    assert out.row.numel() == count[subgraph_type.value]
    assert by_type(out)['node'][None] == [0, 1]
