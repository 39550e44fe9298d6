"""Seed edges: their ends, labels, trees and times, in PyG's layout."""

import math

import pytest
import torch
from torch_geometric.sampler import NegativeSampling

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from tests.samplers.oracle import (
    assert_consistent,
    assert_valid,
    by_type,
    edge_lists,
)
from torch_gsample import NeighborSampler

PAIRS = [(3, 5), (8, 1), (3, 1), (3, 5), (0, 10), (2, 2), (9, 4)]
KINDS = {'homogeneous': None, 'same_type': FOLLOWS, 'bipartite': RATES}
AMOUNTS = [1, 2.5, 0.5, 0.1]
MODES = [
    None,
    *(('binary', a) for a in AMOUNTS),
    ('triplet', 1),
    ('triplet', 3),
]


def graph_of(kind):
    if kind == 'homogeneous':
        return graphs.homogeneous()
    return graphs.heterogeneous()


def negatives(mode):
    return None if mode is None else NegativeSampling(*mode)


def sample(kind, mode=None, *, time=None, label=None, data=None, **options):
    """Returns the output, and its fields with the types of the ends."""
    data = graph_of(kind) if data is None else data
    sampler = NeighborSampler(data, [3, 2], seed=0, **options)
    inputs = graphs.links(PAIRS, KINDS[kind], time, label, range(10, 17))
    out = sampler.sample_from_edges(inputs, negatives(mode))
    edge_type = KINDS[kind]
    ends = (None, None) if edge_type is None else (edge_type[0], edge_type[2])
    return sampler, out, by_type(out), ends


def label_index(out, mode, num_pos):
    """Returns local ids (sources, destinations) of all pairs, in PyG's way.

    The pairs of a triplet come as those of binary sampling: positives first,
    then negative ``m`` of positive ``m % num_pos``.
    """
    if mode is None or mode[0] == 'binary':
        return out.metadata[1].tolist()
    src, dst, neg = out.metadata[1:4]
    neg = neg.view(num_pos, -1)
    rounds = neg.size(1)
    return (
        torch.cat([src] * (1 + rounds)).tolist(),
        torch.cat([dst, neg.t().reshape(-1)]).tolist(),
    )


@pytest.mark.parametrize('disjoint', [False, True])
@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('kind', KINDS)
def test_labels_point_at_the_seed_edges(kind, mode, disjoint):
    _, out, fields, (src, dst) = sample(kind, mode, disjoint=disjoint)
    rows, cols = label_index(out, mode, len(PAIRS))
    nodes = [
        (fields['node'][src][row], fields['node'][dst][col])
        for row, col in zip(rows, cols, strict=True)
    ]
    assert nodes[: len(PAIRS)] == PAIRS
    amount = 0 if mode is None else math.ceil(len(PAIRS) * mode[1])
    assert len(nodes) == len(PAIRS) + amount
    assert out.metadata[0].tolist() == list(range(10, 17))
    if mode is not None and mode[0] == 'triplet':
        shape = (7,) if mode[1] == 1 else (7, 3)
        assert out.metadata[3].shape == shape
        # A negative destination belongs to the source of its positive.
        for row, pair in zip(rows, PAIRS * (1 + mode[1]), strict=True):
            assert fields['node'][src][row] == pair[0]


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('kind', KINDS)
def test_nodes_are_seeds_once_and_sorted_as_in_pyg(kind, mode):
    _, out, fields, (src, dst) = sample(kind, mode)
    rows, cols = label_index(out, mode, len(PAIRS))
    seeds = {src: set(), dst: set()}
    for row, col in zip(rows, cols, strict=True):
        seeds[src].add(fields['node'][src][row])
        seeds[dst].add(fields['node'][dst][col])
    for t, nodes in seeds.items():
        first = fields['node'][t][: fields['num_sampled_nodes'][t][0]]
        assert first == sorted(nodes)


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('kind', KINDS)
def test_a_tree_is_named_after_its_seed_edge(kind, mode):
    """PyG's remainder goes wrong where a type has trees of another one."""
    _, out, fields, (src, dst) = sample(kind, mode, disjoint=True)
    rows, cols = label_index(out, mode, len(PAIRS))
    for i, (row, col) in enumerate(zip(rows, cols, strict=True)):
        assert fields['batch'][src][row] == i % len(PAIRS)
        assert fields['batch'][dst][col] == i % len(PAIRS)
    # Ends are seeds in order: sources, then destinations.
    num_src = len(PAIRS) if mode and mode[0] == 'triplet' else len(rows)
    if src == dst:
        assert rows[:num_src] == list(range(num_src))
        assert cols == list(range(num_src, num_src + len(cols)))
    else:
        assert rows[:num_src] == list(range(num_src))
        assert cols == list(range(len(cols)))


@pytest.mark.parametrize('kind', KINDS)
def test_the_subgraph_is_that_of_the_ends(kind):
    data = graph_of(kind)
    sampler, out, fields, types = sample(kind)
    seeds = {
        t: fields['node'][t][: fields['num_sampled_nodes'][t][0]]
        for t in types
    }
    hetero = kind != 'homogeneous'
    fanouts = graphs.each(data, [3, 2]) if hetero else {None: [3, 2]}
    assert_valid(sampler, out, edge_lists(data), seeds, fanouts)
    sampler, out = sample(kind, disjoint=True)[:2]
    assert_consistent(sampler, out, edge_lists(data))


def test_labels_pass_without_negatives():
    label = torch.tensor([4.0, 3, 2, 1, 0, -1, -2])
    for given in (None, label):
        out = sample('bipartite', label=given)[1]
        assert out.metadata[2] is given


@pytest.mark.parametrize('shape', [(), (2,)])
@pytest.mark.parametrize('dtype', [torch.float, torch.long])
@pytest.mark.parametrize('amount', AMOUNTS)
def test_binary_negatives_are_labelled_zero(amount, dtype, shape):
    label = torch.full((7, *shape), 3, dtype=dtype)
    out = sample('homogeneous', ('binary', amount), label=label)[1]
    num_neg = math.ceil(7 * amount)
    assert out.metadata[2].dtype == dtype
    assert out.metadata[2].shape == (7 + num_neg, *shape)
    assert bool((out.metadata[2][:7] == 3).all())
    assert bool((out.metadata[2][7:] == 0).all())


def test_binary_positives_are_labelled_one_if_not_labelled():
    out = sample('homogeneous', ('binary', 1))[1]
    assert out.metadata[2].tolist() == [1.0] * 7 + [0.0] * 7
    assert out.metadata[2].dtype == torch.float


def test_triplets_have_no_labels():
    with pytest.raises(ValueError, match="'edge_label' must not be given"):
        sample('homogeneous', ('triplet', 1), label=torch.ones(7))


def timed(kind):
    """Half of the nodes are there from time 5 on, the others from 20 on."""
    data = graph_of(kind)
    stores = [data] if kind == 'homogeneous' else [data['user'], data['item']]
    for store in stores:
        early = torch.arange(store.num_nodes) % 2 == 0
        store.time = torch.where(early, 5, 20)
    return data


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('kind', KINDS)
def test_pairs_carry_the_time_of_their_seed_edge(kind, mode):
    time = [6, 7, 30, 31, 8, 25, 9]
    _, out, fields, types = sample(
        kind, mode, data=timed(kind), time=time, time_attr='time'
    )
    rows, cols = label_index(out, mode, 7)
    seed_time = out.metadata[-1].tolist()
    if mode is None or mode[0] == 'triplet':
        assert seed_time == time
    else:
        assert seed_time == [time[i % 7] for i in range(len(rows))]
    seeds = {t: set() for t in types}
    seeds[types[0]] |= set(rows)
    seeds[types[1]] |= set(cols)
    for t in types:  # no tree reaches into the future of its seed edge
        trees = zip(fields['node'][t], fields['batch'][t], strict=True)
        for i, (node, tree) in enumerate(trees):
            assert i in seeds[t] or node % 2 == 0 or time[tree] >= 20


@pytest.mark.parametrize('mode', MODES[1:])
@pytest.mark.parametrize('kind', KINDS)
def test_negatives_exist_at_the_time_of_their_seed_edge(kind, mode):
    time = [6, 7, 8, 9, 6, 30, 8]
    options = dict(data=timed(kind), time_attr='time', time=time)
    sampler = sample(kind, mode, **options)[0]
    inputs = graphs.links(PAIRS, KINDS[kind], time)
    met = set()
    for epoch in range(8):
        sampler.set_epoch(epoch)
        out = sampler.sample_from_edges(inputs, negatives(mode))
        rows, cols = label_index(out, mode, 7)
        src, dst = KINDS[kind][::2] if KINDS[kind] else (None, None)
        node = by_type(out)['node']
        for i in range(7, len(rows)):
            pair = node[src][rows[i]], node[dst][cols[i]]
            drawn = pair if mode[0] == 'binary' else pair[1:]
            assert all(v % 2 == 0 for v in drawn) or time[i % 7] >= 20
            met.add(pair)
    assert len(met) > 5


@pytest.mark.parametrize('mode', [('binary', 2), ('triplet', 2)])
def test_the_earliest_node_stands_in_where_none_is_early_enough(mode):
    data = graphs.homogeneous(time=torch.arange(30) + 10)
    data.time[17] = 9
    _, out, fields, _ = sample(
        'homogeneous', mode, data=data, time=[0] * 7, time_attr='time'
    )
    rows, cols = label_index(out, mode, 7)
    assert {fields['node'][None][c] for c in cols[7:]} == {17}
    if mode[0] == 'binary':
        assert {fields['node'][None][r] for r in rows[7:]} == {17}


def test_trees_take_the_times_of_their_nodes_if_edges_have_none():
    data = graphs.homogeneous(time=torch.arange(30))
    out, fields = sample('homogeneous', data=data, time_attr='time')[1:3]
    ends = torch.tensor(PAIRS).t().flatten().tolist()
    number = [-1] * len(fields['node'][None])
    number[: len(ends)] = range(len(ends))
    for row, col in zip(out.row.tolist(), out.col.tolist(), strict=True):
        number[row] = number[col]
    for i, node in enumerate(fields['node'][None]):
        assert node <= ends[number[i]]
    assert out.metadata[-1] is None


def test_no_seed_edges_give_an_empty_sample():
    none = graphs.links(torch.empty(0, 2, dtype=torch.long))
    for mode in MODES:
        sampler = NeighborSampler(graphs.homogeneous(), [2])
        out = sampler.sample_from_edges(none, negatives(mode))
        assert out.node.numel() == out.row.numel() == 0
