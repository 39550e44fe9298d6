"""Chi-square tests of draws, at p = 0.001 and with fixed keys."""

import itertools
import math

import pytest
import torch
from scipy import stats

from tests.ops.layers import sample_typed_layers
from tests.ops.neighbors import sample_one, sample_typed
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import from_columns

DRAWS = 40_000  # more than 8,192, so that several threads take part


def assert_law(counts, probability, scale=1.0):
    """`scale` corrects the statistic where draws are not independent."""
    expected = torch.as_tensor(probability).double().flatten()
    counts = counts.double().flatten()
    assert counts[expected == 0].sum() == 0, 'the impossible was drawn'
    counts, expected = counts[expected > 0], expected[expected > 0]
    expected = expected * counts.sum()
    assert expected.min() >= 5
    statistic = float(((counts - expected) ** 2 / expected).sum()) * scale
    assert stats.chi2.sf(statistic, len(counts) - 1) > 0.001


def assert_uniform(counts):
    assert_law(counts, torch.full((counts.numel(),), 1 / counts.numel()))


def assert_uniform_positions(positions, n, k, replace):
    """`positions` holds k of n for each of many trees."""
    bins = min(n, 50)
    counts = torch.bincount(positions.flatten() * bins // n, minlength=bins)
    size = torch.bincount(torch.arange(n) * bins // n).double()
    # Without replacement a count has the variance of a hypergeometric law,
    # (n - k) / (n - 1) of the multinomial one.
    assert_law(counts, size / n, 1 if replace else (n - 1) / (n - k))


def draw_trees(degree, k, key, num_trees=None, call=0, **options):
    """Samples k of the `degree` edges of a column, for many trees."""
    num_trees = num_trees or max(DRAWS // k, 1)
    indptr = torch.full((degree + 1,), degree)
    indptr[0] = 0
    out = sample_one(
        indptr,
        torch.arange(degree),
        torch.zeros(num_trees, dtype=torch.int64),
        [k],
        key=key,
        call_id=call,
        disjoint=True,
        **options,
    )
    return out.edge.view(num_trees, k)


DEGREES = (1, 2, 10, 100, 10_000, 40_000, 1_000_000)
HUBS = [
    (degree, k, replace)
    for degree in DEGREES
    for k in (1, 2, 5, 20, 64, 100, 1_000)
    for replace in (False, True)
    if k < degree or replace
]


@pytest.mark.parametrize(('degree', 'k', 'replace'), HUBS)
def test_hubs_are_sampled_uniformly(degree, k, replace, threads):
    edges = draw_trees(degree, k, make_key(degree + k), replace=replace)
    if degree == 1:
        assert not edges.any()
    else:
        assert_uniform_positions(edges, degree, k, replace)


@pytest.mark.parametrize(
    ('n', 'k'),
    [(4, 1), (4, 2), (5, 3), (6, 3), (8, 4), (8, 7), (9, 2), (18, 17)]
    + [(20, 18), (66, 65)],
)
def test_every_subset_is_equally_likely(n, k):
    num_subsets = math.comb(n, k)
    edges = draw_trees(n, k, make_key(n + k), num_trees=60 * num_subsets)
    subsets = edges.sort(dim=1).values
    assert (subsets[:, 1:] != subsets[:, :-1]).all()
    counts = torch.unique(subsets, dim=0, return_counts=True)[1]
    assert len(counts) == num_subsets
    assert_uniform(counts)


@pytest.mark.parametrize('degree', [3, 100, 5_000])
def test_different_nodes_draw_uniformly(degree, threads):
    # Draws by node id, and not by tree as above.
    num_nodes = 20_000
    indptr = torch.arange(num_nodes + 1) * degree
    out = sample_one(
        indptr.to(torch.int64),
        torch.randint(
            num_nodes,
            (1,),
            dtype=torch.int32,
            generator=torch.Generator().manual_seed(0),
        ).expand(num_nodes * degree),
        torch.arange(num_nodes),
        [2],
        key=make_key(degree),
    )
    positions = (out.edge % degree).view(-1, 2)
    assert_uniform_positions(positions, degree, 2, replace=False)


WEIGHT = torch.tensor([3.0, 0.0, 1.0, 0.25, 6.0, 0.0, 2.0])


def weighted_column(weight):
    indptr = torch.tensor([0] + [len(weight)] * len(weight))
    return {'cum_weight': ops.cumulate_weights(indptr, weight)}


def pairs_of(edges, n):
    return torch.bincount(edges[:, 0] * n + edges[:, 1], minlength=n * n)


def test_first_weighted_picks_follow_the_weights(threads):
    for replace in (False, True):
        edges = draw_trees(
            7, 1, make_key(1), replace=replace, **weighted_column(WEIGHT)
        )
        counts = torch.bincount(edges.flatten(), minlength=7)
        assert_law(counts, WEIGHT / WEIGHT.sum())


def test_second_weighted_picks_follow_the_weights_that_are_left(threads):
    edges = draw_trees(7, 2, make_key(2), **weighted_column(WEIGHT))
    law = torch.zeros(7, 7)
    for i, j in itertools.permutations(range(7), 2):
        left = WEIGHT.sum() - WEIGHT[i]
        law[i, j] = WEIGHT[i] / WEIGHT.sum() * WEIGHT[j] / left
    assert_law(pairs_of(edges, 7), law)


def test_last_weighted_picks_follow_the_weights_that_are_left():
    # 4 of 5: which one stays behind, by the law of successive sampling.
    edges = draw_trees(7, 4, make_key(3), **weighted_column(WEIGHT))
    positive = [i for i in range(7) if WEIGHT[i] > 0]
    law = torch.zeros(7)
    for order in itertools.permutations(positive, 4):
        left, p = WEIGHT.sum(), 1.0
        for i in order:
            p, left = p * WEIGHT[i] / left, left - WEIGHT[i]
        law[(set(positive) - set(order)).pop()] += p
    behind = sum(positive) - edges.sum(dim=1)
    assert_law(torch.bincount(behind, minlength=7), law)


def test_weighted_picks_with_replacement_are_independent():
    edges = draw_trees(
        7, 2, make_key(4), replace=True, **weighted_column(WEIGHT)
    )
    share = WEIGHT / WEIGHT.sum()
    assert_law(pairs_of(edges, 7), share[:, None] * share)


@pytest.mark.parametrize('degree', [100, 10_000, 1_000_000])
def test_weighted_hubs_follow_the_weights(degree, threads):
    weight = (torch.arange(degree) % 10).double() ** 2
    edges = draw_trees(
        degree,
        20,
        make_key(degree),
        replace=True,
        **weighted_column(weight),
    )
    counts = torch.bincount(edges.flatten() % 10, minlength=10)
    law = torch.arange(10).double() ** 2
    assert_law(counts, law / law.sum())
    heavy = weight[edges] == 81
    where = edges[heavy] * 10 // degree
    assert_uniform(torch.bincount(where, minlength=10))


def test_zero_weights_are_never_drawn():
    weight = torch.zeros(1_000)
    weight[::10] = 1
    for k, replace in ((1, True), (50, False), (99, False), (200, True)):
        edges = draw_trees(
            1_000, k, make_key(k), replace=replace, **weighted_column(weight)
        )
        assert not (edges % 10).any()


def test_equal_weights_draw_uniformly():
    edges = draw_trees(50, 5, make_key(5), **weighted_column(torch.ones(50)))
    assert_uniform_positions(edges, 50, 5, replace=False)


@pytest.mark.parametrize('replace', [False, True])
def test_temporal_draws_are_uniform_in_the_window(replace, threads):
    num_trees = 10_000
    edges = draw_trees(
        30,
        3,
        make_key(6),
        num_trees,
        edge_time=torch.arange(30) // 2 * 2,
        seed_time=torch.full((num_trees,), 20),
        time_window=10,
        replace=replace,
    )
    assert int(edges.min()) == 10
    assert int(edges.max()) == 21
    assert_uniform_positions(edges - 10, 12, 3, replace)


@pytest.mark.parametrize('weighted', [False, True])
def test_heterogeneous_hubs_are_sampled_uniformly(weighted, threads):
    # Every relation has its own columns: 2,000 of them with 50 edges each.
    num_nodes, degree, relations = 2_000, 50, 3
    indptr = torch.arange(num_nodes + 1) * degree
    indices = torch.arange(num_nodes * degree) % num_nodes
    weight = ops.cumulate_weights(indptr, torch.ones(num_nodes * degree))
    out = sample_typed(
        [indptr] * relations,
        [indices] * relations,
        [(1, 0), (0, 1), (1, 1)],
        [num_nodes, num_nodes],
        [torch.arange(num_nodes), torch.arange(num_nodes)],
        [[5]] * relations,
        key=make_key(7),
        cum_weight=[weight] * relations if weighted else None,
    )
    for edge in out.edge:
        positions = (edge % degree).view(-1, 5)
        assert_uniform_positions(positions, degree, 5, replace=False)


def test_two_hops_of_a_tree_are_independent():
    # 0 is fed by 1 ... 8, each of which is fed by 9 ... 14.
    first, second = list(range(1, 9)), list(range(9, 15))
    graph = from_columns([first] + [second] * 8 + [[]] * 6)
    out = sample_one(
        graph.indptr,
        graph.indices,
        torch.zeros(DRAWS, dtype=torch.int64),
        [1, 1],
        key=make_key(8),
        disjoint=True,
    )
    near, far = out.edge[:DRAWS], out.edge[DRAWS:]
    assert torch.equal((far - 8) // 6, near)
    assert_uniform(torch.bincount(near * 6 + (far - 8) % 6, minlength=48))


def draw_nodes(seed=0, epoch=0, batch=0, call=0, num_nodes=20_001):
    """One of 8 edges for each of many nodes, as its position."""
    out = sample_one(
        torch.arange(num_nodes + 1) * 8,
        torch.zeros(num_nodes * 8, dtype=torch.int64),
        torch.arange(num_nodes),
        [1],
        key=make_key(seed, epoch, batch),
        call_id=call,
    )
    return out.edge % 8


def draw_relation(relation):
    """As above, in a relation of several."""
    count, num_nodes = 2, 20_001
    out = sample_typed(
        [torch.arange(num_nodes + 1) * 8] * count,
        [torch.zeros(num_nodes * 8, dtype=torch.int64)] * count,
        [(0, 0)] * count,
        [num_nodes],
        [torch.arange(num_nodes)],
        [[1]] * count,
        key=make_key(9),
    )
    return out.edge[relation] % 8


def draw_layers():
    """The same columns at two hops."""
    num_nodes = 20_001
    out = sample_typed_layers(
        [torch.arange(num_nodes + 1) * 8],
        [torch.zeros(num_nodes * 8, dtype=torch.int64)],
        [(0, 0)],
        [num_nodes],
        [torch.arange(num_nodes)],
        [[1, 1]],
        key=[make_key(4)] * 2,
    )
    return [edge % 8 for (edge,) in out.edge]


PAIRS = {
    'next node': lambda: (draw_nodes()[:-1], draw_nodes()[1:]),
    'next seed': lambda: (draw_nodes(seed=1), draw_nodes(seed=2)),
    'far seed': lambda: (draw_nodes(seed=1), draw_nodes(seed=1 + 2**32)),
    'next epoch': lambda: (draw_nodes(epoch=1), draw_nodes(epoch=2)),
    'next batch': lambda: (draw_nodes(batch=1), draw_nodes(batch=2)),
    'epoch, batch': lambda: (draw_nodes(epoch=1), draw_nodes(batch=1)),
    'seed, batch': lambda: (draw_nodes(seed=1), draw_nodes(batch=1)),
    'far batch': lambda: (draw_nodes(batch=0), draw_nodes(batch=2**32)),
    'next hop': lambda: (draw_nodes(call=1), draw_nodes(call=2)),
    'next layer': draw_layers,
    'next relation': lambda: (draw_relation(0), draw_relation(1)),
    'call, relation': lambda: (draw_nodes(9, call=1), draw_relation(1)),
    'next tree': lambda: draw_trees(8, 1, make_key(2)).view(-1, 2).T,
    'next slot': lambda: draw_trees(8, 2, make_key(2), replace=True).T,
    'far slot': lambda: (
        draw_trees(8, 99, make_key(3), 9_999, replace=True)[:, ::98].T
    ),
}


@pytest.mark.parametrize('pair', PAIRS)
def test_draws_are_independent(pair):
    first, second = PAIRS[pair]()
    assert_uniform(torch.bincount(first * 8 + second, minlength=64))
