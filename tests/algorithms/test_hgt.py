"""HGSampling, against its definition in plain loops."""

import itertools

import pytest
import torch

from tests.algorithms.checks import chi_square_p
from tests.samplers import graphs
from tests.samplers.oracle import edge_lists
from torch_gsample import SparseSample
from torch_gsample.algorithms import hgt
from torch_gsample.rng import make_key, program_scope

CITES = ('paper', 'cites', 'paper')
WRITES = ('author', 'writes', 'paper')
WRITTEN = ('paper', 'written_by', 'author')
SIZES = {'paper': 4, 'author': 3}
#: Small enough for a list of all samples.
EDGES = {
    CITES: [(1, 0), (2, 0), (3, 1), (0, 2), (0, 1), (2, 1)],
    WRITES: [(0, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 2)],
    WRITTEN: [(0, 0), (0, 1), (1, 1), (3, 1), (3, 0), (2, 2)],
}


def matrices(edges, sizes):
    return {
        t: SparseSample.from_coo(
            *torch.tensor(pairs, dtype=torch.int64).view(-1, 2).T,
            shape=(sizes[t[0]], sizes[t[2]]),
        )
        for t, pairs in edges.items()
    }


def budgets(edges, nodes):
    """The budget of each type: one share an edge into a sampled node."""
    out = {t: {} for t in nodes}
    for (src, _, dst), pairs in edges.items():
        for u, v in pairs:
            if v in nodes[dst] and u not in nodes[src]:
                degree = sum(w == v for _, w in pairs)
                out[src][u] = out[src].get(u, 0) + 1 / degree
    return out


def draws(budget, k):
    """All ordered draws without replacement, with their probability."""
    k = len(budget) if k < 0 else min(k, len(budget))
    for drawn in itertools.permutations(sorted(budget), k):
        p, rest = 1.0, sum(b**2 for b in budget.values())
        for u in drawn:
            p, rest = p * budget[u] ** 2 / rest, rest - budget[u] ** 2
        yield drawn, p


def law(edges, nodes, fanouts):
    """The probability of each sample, as sorted nodes of each type."""
    if not next(iter(fanouts.values())):
        return {tuple(tuple(sorted(ids)) for ids in nodes.values()): 1.0}
    out, budget = {}, budgets(edges, nodes)
    ways = [list(draws(budget[t], fanouts[t][0])) for t in nodes]
    for way in itertools.product(*ways):
        grown, p = {}, 1.0
        for t, (drawn, q) in zip(nodes, way, strict=True):
            grown[t], p = (*nodes[t], *drawn), p * q
        rest = {t: ks[1:] for t, ks in fanouts.items()}
        for sample, q in law(edges, grown, rest).items():
            out[sample] = out.get(sample, 0) + p * q
    return out


def nodes_of(out, types):
    """The nodes of each type, which all relations agree on."""
    nodes = {}
    for (src, _, dst), matrix in out.items():
        for t, ids in ((src, matrix.row_ids), (dst, matrix.col_ids)):
            assert nodes.setdefault(t, ids.tolist()) == ids.tolist()
    return {t: nodes[t] for t in types if t in nodes}


def sample(A, seeds, fanouts, key=0):
    seeds = {t: torch.tensor(ids) for t, ids in seeds.items()}
    with program_scope(make_key(5, batch=key)):
        return hgt(A, seeds, fanouts)


def test_budgets_are_those_of_a_hand():
    """Papers 1 and 2 are half of what 0 cites; author 1 wrote 0, 1, 1."""
    nodes = {'paper': [0], 'author': []}
    assert budgets(EDGES, nodes) == {
        'paper': {1: 1 / 2, 2: 1 / 2},
        'author': {0: 1 / 2, 1: 1 / 2},
    }
    nodes = {'paper': [0, 1], 'author': [0]}
    assert budgets(EDGES, nodes) == {
        'paper': {2: 1 / 2 + 1 / 3, 3: 1 / 3 + 1 / 2},
        'author': {1: 1 / 2 + 2 / 3, 2: 1 / 3},
    }


@pytest.mark.parametrize(
    'fanouts',
    [
        {'paper': [0], 'author': [1]},
        {'paper': [1], 'author': [2]},
        {'paper': [1, 1], 'author': [1, 1]},
        {'paper': [-1, 0], 'author': [0, 1]},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ('seeds', 'relations'),
    [([0], list(EDGES)), ([1, 0], list(reversed(EDGES)))],
    ids=['forwards', 'backwards'],
)
def test_samples_have_the_law_of_budgets(fanouts, seeds, relations):
    """Whatever the order of the relations, and so of the types."""
    expected = law(EDGES, {'paper': tuple(seeds), 'author': ()}, fanouts)
    assert abs(sum(expected.values()) - 1) < 1e-9
    A, times = matrices(EDGES, SIZES), 400
    A = {t: A[t] for t in relations}
    counts = dict.fromkeys(expected, 0)
    for key in range(times):
        nodes = nodes_of(sample(A, {'paper': seeds}, fanouts, key), SIZES)
        counts[tuple(tuple(sorted(ids)) for ids in nodes.values())] += 1
    cells = sorted((p * times, counts[s]) for s, p in expected.items())
    while cells[0][0] < 5:  # rare outcomes count as one
        (p, n), (q, m), *rest = cells
        cells = sorted([(p + q, n + m), *rest])
    assert len(cells) > 1
    wanted, observed = zip(*cells, strict=True)
    assert chi_square_p(observed, wanted) > 0.001


@pytest.mark.parametrize('fanouts', [[3], [1, 4], [2, 3, 2], [100, 1]])
@pytest.mark.parametrize(
    'seeds', [{'item': [3, 7]}, {'user': [0], 'tag': [1]}]
)
def test_a_layer_is_of_candidates_and_as_large_as_it_can_be(fanouts, seeds):
    """Layer by layer, as nodes are in the order in which they were drawn."""
    edges, sizes = edge_lists(graphs.heterogeneous()), graphs.HETERO_SIZES
    A = matrices(edges, sizes)
    for key in range(5):
        out = sample(A, seeds, fanouts, key)
        left = nodes_of(out, sizes)
        nodes = {t: seeds.get(t, []) for t in left}
        for t, own in nodes.items():
            assert left[t][: len(own)] == own
            left[t] = left[t][len(own) :]
        for k in fanouts:
            budget = budgets(edges, nodes)
            for t, ids in left.items():
                size = min(k, len(budget[t]))
                assert len(ids) >= size
                assert len(set(ids[:size]) & set(budget[t])) == size
                nodes[t], left[t] = nodes[t] + ids[:size], ids[size:]
        assert not any(left.values())


def test_a_subgraph_is_induced():
    edges, sizes = edge_lists(graphs.heterogeneous()), graphs.HETERO_SIZES
    out = sample(matrices(edges, sizes), {'item': [3, 7]}, [2, 3])
    nodes = nodes_of(out, sizes)
    assert list(out) == list(edges)
    for (src, name, dst), pairs in edges.items():
        S = out[src, name, dst]
        expected = {
            e: (u, v)
            for e, (u, v) in enumerate(pairs)
            if u in nodes[src] and v in nodes[dst]
        }
        ends = list(zip(*(x.tolist() for x in S.edges()), strict=True))
        assert len(ends) == len(expected)
        assert dict(zip(S.edge_id.tolist(), ends, strict=True)) == expected


@pytest.mark.parametrize('fanout', [-1, 100])
def test_all_candidates_of_each_layer_are_the_neighbourhood(fanout):
    """Of `l` layers: what is at most `l` hops away, by any relation."""
    edges = edge_lists(graphs.heterogeneous())
    A = matrices(edges, graphs.HETERO_SIZES)
    near = {'item': {3}, 'user': set(), 'tag': set()}
    for num_layers in range(1, 4):
        near = {
            t: ids
            | {
                u
                for (src, _, dst), pairs in edges.items()
                for u, v in pairs
                if src == t and v in near[dst]
            }
            for t, ids in near.items()
        }
        out = sample(A, {'item': [3]}, [fanout] * num_layers)
        nodes = nodes_of(out, near)
        assert {t: set(ids) for t, ids in nodes.items()} == near
        assert all(len(set(ids)) == len(ids) for ids in nodes.values())


def test_a_hub_keeps_all_its_edges():
    edges = {('a', 'to', 'b'): [(u, 0) for u in range(200)]}
    A = matrices(edges, {'a': 200, 'b': 1})
    out = sample(A, {'b': [0]}, [-1])
    assert out['a', 'to', 'b'].num_edges == 200


def test_values_take_no_part():
    A = matrices(EDGES, SIZES)
    weighted = {
        t: m.with_value(torch.arange(m.num_edges) - 2.0) for t, m in A.items()
    }
    first, second = (
        nodes_of(sample(graph, {'paper': [0]}, [1, 1]), SIZES)
        for graph in (A, weighted)
    )
    assert first == second


def test_isolated_nodes_have_no_edges():
    """A seed without edges, types without seeds, a graph without edges."""
    edges = {('a', 'to', 'b'): [(0, 1)], ('b', 'to', 'b'): []}
    A = matrices(edges, {'a': 2, 'b': 3})
    out = sample(A, {'b': [2]}, [2, 2])
    assert nodes_of(out, 'ab') == {'a': [], 'b': [2]}
    assert [S.num_edges for S in out.values()] == [0, 0]
    assert hgt({}, {'a': torch.tensor([1])}, [2]) == {}


TIMES = {'paper': torch.tensor([5, 3, 9, 4])}


def timed_law(nodes, fanouts, latest):
    """The probability of each sample with its times, by plain loops."""
    if not next(iter(fanouts.values())):
        return {tuple(tuple(sorted(ids.items())) for ids in nodes.values()): 1}
    out, budget, stamp = {}, {t: {} for t in nodes}, {t: {} for t in nodes}
    for (src, _, dst), pairs in EDGES.items():
        for u, v in pairs:
            if v in nodes[dst] and u not in nodes[src]:
                own = TIMES[src][u].item() if src in TIMES else nodes[dst][v]
                if latest is None or own <= latest:
                    share = 1 / sum(w == v for _, w in pairs)
                    budget[src][u] = budget[src].get(u, 0) + share
                    stamp[src][u] = max(own, stamp[src].get(u, own))
    ways = [list(draws(budget[t], fanouts[t][0])) for t in nodes]
    for way in itertools.product(*ways):
        grown, p = {}, 1.0
        for t, (drawn, q) in zip(nodes, way, strict=True):
            grown[t] = nodes[t] | {u: stamp[t][u] for u in drawn}
            p *= q
        rest = {t: ks[1:] for t, ks in fanouts.items()}
        for sample, q in timed_law(grown, rest, latest).items():
            out[sample] = out.get(sample, 0) + p * q
    return out


@pytest.mark.parametrize('latest', [None, 5, 4])
@pytest.mark.parametrize(
    'fanouts',
    [
        {'paper': [1, 1], 'author': [1, 1]},
        {'paper': [2, 0], 'author': [2, 2]},
        {'paper': [-1], 'author': [-1]},
    ],
    ids=str,
)
def test_samples_with_times_have_the_law_of_budgets(fanouts, latest):
    """Authors get the time of the latest paper that they wrote."""
    nodes = {'paper': {0: 5}, 'author': {}}
    expected = timed_law(nodes, fanouts, latest)
    assert abs(sum(expected.values()) - 1) < 1e-9
    A, times = matrices(EDGES, SIZES), 300
    counts = dict.fromkeys(expected, 0)
    seeds = {'paper': torch.tensor([0])}
    for key in range(times):
        with program_scope(make_key(5, batch=key)):
            out, time = hgt(A, seeds, fanouts, TIMES, latest)
        ids = nodes_of(out, SIZES)
        counts[
            tuple(
                tuple(sorted(zip(ids[t], time[t].tolist(), strict=True)))
                for t in SIZES
            )
        ] += 1
    cells = sorted((p * times, counts[s]) for s, p in expected.items())
    while len(cells) > 1 and cells[0][0] < 5:  # rare outcomes count as one
        (p, n), (q, m), *rest = cells
        cells = sorted([(p + q, n + m), *rest])
    if len(cells) > 1:
        wanted, observed = zip(*cells, strict=True)
        assert chi_square_p(observed, wanted) > 0.001


def test_papers_of_an_author_get_no_time_from_it():
    """And an author who is later than the bound is no candidate."""
    A = matrices(EDGES, SIZES)
    for latest, authors in ((9, {0: 5, 1: 5}), (4, {})):
        out, time = hgt(A, {'paper': torch.tensor([0])}, [9], TIMES, latest)
        ids = nodes_of(out, SIZES)
        stamps = time['author'].tolist()
        assert dict(zip(ids['author'], stamps, strict=True)) == authors
        assert torch.equal(time['paper'], TIMES['paper'][ids['paper']])


def test_times_that_bound_nothing_change_no_sample():
    edges, sizes = edge_lists(graphs.heterogeneous()), graphs.HETERO_SIZES
    A, seeds = matrices(edges, sizes), {'item': torch.tensor([3, 7])}
    time = {'item': torch.arange(sizes['item'])}
    with program_scope(make_key(1)):
        plain = hgt(A, seeds, [2, 3])
    with program_scope(make_key(1)):
        timed, stamps = hgt(A, seeds, [2, 3], time, 10**12)
    assert nodes_of(timed, sizes) == nodes_of(plain, sizes)
    ids = nodes_of(timed, sizes)
    assert all(len(stamps[t]) == len(ids[t]) for t in ids)


def test_seeds_without_a_time_have_the_latest():
    A = matrices(EDGES, SIZES)
    seeds = {'author': torch.tensor([1])}
    _, time = hgt(A, seeds, [0], TIMES, 7)
    assert time['author'].tolist() == [7]
    with pytest.raises(
        ValueError, match=r"'max_time' is required for .*'author'"
    ):
        hgt(A, seeds, [1], TIMES)


@pytest.mark.parametrize('time', [{'shop': 3}, {'paper': 3}])
def test_times_are_those_of_nodes(time):
    A = matrices(EDGES, SIZES)
    time = {t: torch.zeros(n).long() for t, n in time.items()}
    with pytest.raises(ValueError, match=r"hgt: 'time' must have an element"):
        hgt(A, {'paper': torch.tensor([0])}, [1], time)
