"""No link is predicted from itself, and all other edges stay."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES, REV_RATES
from tests.samplers.oracle import by_type, edge_lists, original_edges
from torch_gsample import NeighborSampler

NEGATIVES = {
    'none': None,
    'binary': NegativeSampling('binary', 1.5),
    'triplet': NegativeSampling('triplet', 2),
}


def undirected(num_nodes=12, num_edges=40):
    """Some edges twice, some in one direction only, some self-loops."""
    index = graphs.random_edges(num_nodes, num_nodes, num_edges)
    index = torch.cat([index, index[:, ::2].flip(0), index[:, :9]], dim=1)
    return Data(edge_index=index, num_nodes=num_nodes)


def two_ways():
    data = graphs.heterogeneous()
    data[REV_RATES].edge_index = torch.cat(
        [data[RATES].edge_index.flip(0), data[REV_RATES].edge_index], dim=1
    )
    data[REV_RATES].edge_attr = torch.arange(110)
    return data


def both(data, pairs, edge_type=None, neg='none', exclude=True, **options):
    """Samples with and without exclusion, from the same draws."""
    outs = []
    for value in (exclude, False):
        sampler = NeighborSampler(
            data, [6, 4], exclude_seed_edges=value, seed=0, **options
        )
        inputs = graphs.links(pairs, edge_type)
        outs.append(sampler.sample_from_edges(inputs, NEGATIVES[neg]))
    return sampler, *outs


def hops(fields, edge_type):
    """The hop of each edge, by the counts."""
    counts = fields['num_sampled_edges'][edge_type]
    return [hop for hop, n in enumerate(counts) for _ in range(n)]


def assert_excluded(sampler, out, plain, is_seed_edge):
    """Asserts that just the seed edges are gone, and counted out."""
    left, fields, ids = (
        by_type(out),
        by_type(plain),
        original_edges(sampler, plain),
    )
    left_ids = original_edges(sampler, out)
    assert left['node'] == fields['node']
    assert left['num_sampled_nodes'] == fields['num_sampled_nodes']
    num_excluded = 0
    for t, rows in fields['row'].items():
        columns = rows, fields['col'][t], ids[t], hops(fields, t)
        expected = [
            edge
            for edge in zip(*columns, strict=True)
            if not is_seed_edge(t, *edge[:2])
        ]
        num_excluded += len(rows) - len(expected)
        columns = left['row'][t], left['col'][t], left_ids[t], hops(left, t)
        assert list(zip(*columns, strict=True)) == expected
    assert num_excluded > 0
    return num_excluded


@pytest.mark.parametrize('neg', NEGATIVES)
@pytest.mark.parametrize('exclude', [True, 'reverse'])
def test_seed_edges_are_excluded(exclude, neg):
    data = undirected()
    pairs = edge_lists(data)[None][:6]
    sampler, out, plain = both(data, pairs, None, neg, exclude)
    node = plain.node.tolist()

    def is_seed_edge(_, row, col):
        pair = node[row], node[col]
        return pair in pairs or (exclude == 'reverse' and pair[::-1] in pairs)

    assert_excluded(sampler, out, plain, is_seed_edge)


@pytest.mark.parametrize('neg', NEGATIVES)
@pytest.mark.parametrize('exclude', [True, 'reverse'])
def test_seed_edges_of_disjoint_trees_are_excluded_from_their_own(
    exclude, neg
):
    data = undirected()
    pairs = edge_lists(data)[None][:6]
    sampler, out, plain = both(data, pairs, None, neg, exclude, disjoint=True)
    node, batch = plain.node.tolist(), plain.batch.tolist()

    def is_seed_edge(_, row, col):
        pair, seed = (node[row], node[col]), pairs[batch[col]]
        return pair == seed or (exclude == 'reverse' and pair[::-1] == seed)

    assert_excluded(sampler, out, plain, is_seed_edge)
    assert any(  # seed edges of other trees stay
        (node[r], node[c]) in pairs
        for r, c in zip(out.row.tolist(), out.col.tolist(), strict=True)
    )


@pytest.mark.parametrize('edge_type', [RATES, REV_RATES, FOLLOWS])
@pytest.mark.parametrize('exclude', [True, 'reverse'])
@pytest.mark.parametrize('disjoint', [False, True])
def test_typed_seed_edges_are_excluded(edge_type, exclude, disjoint):
    data = two_ways()
    pairs = edge_lists(data)[edge_type][:6]
    sampler, out, plain = both(
        data, pairs, edge_type, 'binary', exclude, disjoint=disjoint
    )
    reverse = {RATES: REV_RATES, REV_RATES: RATES, FOLLOWS: FOLLOWS}
    fields = by_type(plain)

    def is_seed_edge(t, row, col):
        pair = fields['node'][t[0]][row], fields['node'][t[2]][col]
        seeds = pairs
        if disjoint:
            seeds = [pairs[fields['batch'][t[2]][col]]]
        found = t == edge_type and pair in seeds
        if exclude == 'reverse' and t == reverse[edge_type]:
            found |= pair[::-1] in seeds
        return found

    assert_excluded(sampler, out, plain, is_seed_edge)


def test_edges_keep_their_ids_backwards():
    data = undirected()
    pairs = edge_lists(data)[None][:6]
    sampler, out, plain = both(
        data, pairs, exclude=True, sample_direction='backward'
    )
    node = plain.node.tolist()
    assert_excluded(
        sampler, out, plain, lambda _, r, c: (node[r], node[c]) in pairs
    )


@pytest.mark.parametrize('exclude', [True, 'reverse'])
def test_a_bidirectional_subgraph_leaks_in_neither_direction(exclude):
    """If one direction stayed, PyG would add the other one again."""
    data = undirected()
    pairs = edge_lists(data)[None][:6]
    seeds = {*pairs, *((v, u) for u, v in pairs)}
    _, out, plain = both(
        data, pairs, exclude=exclude, subgraph_type='bidirectional'
    )

    def ends(out):
        edge_index = torch.stack([out.row, out.col])
        return set(map(tuple, out.node[edge_index].t().tolist()))

    assert ends(plain) & seeds
    assert ends(out) == ends(plain) - seeds


def test_an_induced_subgraph_has_no_seed_edges():
    data = undirected()
    pairs = edge_lists(data)[None][:6]
    sampler, out, plain = both(data, pairs, subgraph_type='induced')
    expected = [
        e
        for e in original_edges(sampler, plain)[None]
        if edge_lists(data)[None][e] not in pairs
    ]
    assert original_edges(sampler, out)[None] == expected
    assert out.num_sampled_edges is None


def test_seed_pairs_that_are_no_edges_exclude_nothing():
    data = two_ways()
    for pairs, edge_type in (
        ([(2, 3)], ('tag', 'new', 'item')),
        ([(0, 0)], ('lone', 'new', 'lone')),
    ):
        _, out, plain = both(data, pairs, edge_type)
        assert by_type(out) == by_type(plain)


def test_excluded_temporal_edges_are_those_of_their_tree():
    data = undirected()
    data.time = torch.zeros(12, dtype=torch.long)
    pairs = edge_lists(data)[None][:4]
    sampler = NeighborSampler(
        data, [-1], exclude_seed_edges=True, time_attr='time'
    )
    out = sampler.sample_from_edges(graphs.links(pairs, time=[3] * 4))
    node, batch = out.node.tolist(), out.batch.tolist()
    for row, col in zip(out.row.tolist(), out.col.tolist(), strict=True):
        assert (node[row], node[col]) != pairs[batch[col]]
    assert out.num_sampled_edges == [out.row.numel()]
