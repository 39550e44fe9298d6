from itertools import pairwise

import pytest
import torch

from tests.algorithms.graphs import (
    aggregate,
    assert_mean,
    features,
    runs,
    skewed_graph,
)
from torch_gsample.algorithms import graphsage, labor
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import labor as solver

SEEDS = torch.arange(20)


def inclusion(sub, k: int, steps: int, weighted=False) -> list[float]:
    """min(1, c_v pi_uv), with c_v found by bisection, by plain loops.

    c_v makes sum_u a_u^2 / min(1, c_v pi_uv) that of the variance of k edges.
    """
    row, col = (t.tolist() for t in sub.coo())
    a = sub.values().abs().tolist() if weighted else [1.0] * len(row)
    pi = list(a)  # of edges; from the first step on, one number a row
    for step in range(steps + 1):
        probs, scale = [0.0] * len(row), [0.0] * sub.num_cols
        for v in range(sub.num_cols):
            edges = [e for e in range(len(row)) if col[e] == v]
            d, total = len(edges), sum(a[e] for e in edges)
            squares = sum(a[e] ** 2 for e in edges)
            if d <= k:
                target, high = None, 1.0
            else:
                target = (1 / k - 1 / d) * total**2 + squares + 1e-9
                low, high = 0.0, 1e6
            for _ in range(100 if target else 0):
                c = (low + high) / 2
                reached = sum(a[e] ** 2 / min(1, c * pi[e]) for e in edges)
                low, high = (low, c) if reached <= target else (c, high)
            scale[v] = high
            for e in edges:
                probs[e] = min(1, high * pi[e]) if target else 1.0
        if step < steps:
            factor = [scale[v] for v in col]
            if step == 0 and weighted:
                factor = [
                    f * a[e] if scale[col[e]] != 1.0 else 1.0
                    for e, f in enumerate(factor)
                ]
                pi = [1.0] * len(row)
            most = {
                u: max(f for f, r in zip(factor, row, strict=True) if r == u)
                for u in set(row)
            }
            pi = [p * most[u] for p, u in zip(pi, row, strict=True)]
    return probs


@pytest.mark.parametrize(
    ('steps', 'k'), [(0, 3), (1, 3), (2, 3), (2, 6), (1, 50)]
)
def test_inclusion_probabilities_match_the_formula(steps, k):
    A = skewed_graph()
    sub = A[:, SEEDS]
    expected = torch.zeros(A.num_edges).double()
    expected[sub.edge_id] = torch.tensor(inclusion(sub, k, steps)).double()

    def included():
        [S] = labor(A, SEEDS, [k], steps)
        return S.edge_id.bincount(minlength=A.num_edges).double()

    assert_mean(runs(included, 1000), expected)


@pytest.mark.parametrize(
    ('steps', 'k'), [(0, 3), (1, 3), (2, 3), (2, 6), (0, 50), (1, 50)]
)
def test_weighted_inclusion_probabilities_match_the_formula(steps, k):
    A = skewed_graph()
    A = A.with_value(features(A.num_edges, 1).view(-1))  # of both signs
    sub = A[:, SEEDS]
    expected = torch.zeros(A.num_edges).double()
    loops = torch.tensor(inclusion(sub, k, steps, weighted=True)).double()
    expected[sub.edge_id] = loops
    value = solver.edge_values(sub)
    pi = solver.importance_of(sub, k, steps, value) if steps else None
    torch.testing.assert_close(
        solver.inclusion(sub, k, pi, value), loops, rtol=1e-6, atol=1e-6
    )

    def included():
        [S] = labor(A, SEEDS, [k], steps, weighted=True)
        return S.edge_id.bincount(minlength=A.num_edges).double()

    assert_mean(runs(included, 1000), expected)


@pytest.mark.parametrize('steps', [0, 1, -1])
def test_weighted_sums_have_the_variance_of_uniform_neighbours(steps):
    """(1 / k - 1 / d) (sum a)^2 for sums of orthonormal features."""
    A, seeds, k = skewed_graph(60, 900), torch.arange(8), 4
    A = A.with_value(features(A.num_edges, 1).view(-1))
    full, x = A[:, seeds].T @ torch.eye(60).double(), torch.eye(60).double()
    degree = A.degree(dim=0)[seeds].double()
    assert degree.min() > k
    total = A[:, seeds].with_value(A[:, seeds].values().abs()).sum(dim=0)

    def errors():
        [S] = labor(A, seeds, [k], steps, weighted=True)
        return (S.T @ x - full).square().sum(dim=1)

    assert_mean(runs(errors, 1000), (1 / k - 1 / degree) * total**2)


def test_edges_of_value_0_are_never_sampled():
    A = skewed_graph()
    value = A.values().clone()
    value[::2] = 0
    A = A.with_value(value)
    dense = A.to_dense()
    for k in (1, 3, 50):
        for S in labor(A, SEEDS, [k, k], 1, weighted=True):
            assert S.values().all()
            if k == 50:  # all that is left
                held = (dense[:, S.col_ids] != 0).sum(dim=0)
                assert torch.equal(S.degree(dim=0), held)


@pytest.mark.parametrize('weighted', [False, True])
def test_labor_star_stops_where_a_step_lowers_the_nodes_no_more(weighted):
    sub = skewed_graph(400, 6000)[:, SEEDS]
    value = solver.edge_values(sub) if weighted else None

    def nodes(steps):
        pi = solver.importance_of(sub, 3, steps, value)
        return float(pi[sub.coo()[0].unique()].clamp(max=1).sum())

    counts = [nodes(i) for i in range(1, solver.MOST_STEPS + 1)]
    lowered = [1 - b / a for a, b in pairwise(counts)]
    stop = next(
        (i for i, x in enumerate(lowered) if x < solver.TOLERANCE),
        len(counts) - 2,
    )
    pi = solver.importance_of(sub, 3, -1, value)
    assert torch.equal(pi, solver.importance_of(sub, 3, stop + 2, value))
    assert 2 < stop + 2 <= solver.MOST_STEPS


def test_labor_star_takes_no_more_steps_than_its_bound(monkeypatch):
    sub = skewed_graph(400, 6000)[:, SEEDS]
    monkeypatch.setattr(solver, 'MOST_STEPS', 2)
    pi = solver.importance_of(sub, 3, -1)
    assert torch.equal(pi, solver.importance_of(sub, 3, 2))


def test_labor_star_is_unbiased():
    A, x = skewed_graph(), features(40)
    full = A[:, SEEDS].T @ (A.T @ x)
    samples = runs(
        lambda: aggregate(labor(A, SEEDS, [3, 3], -1, False, True), x), 1000
    )
    assert_mean(samples, full)


@pytest.mark.parametrize('weighted', [False, True])
def test_a_node_draws_alike_in_all_layers_that_depend(weighted):
    """Of columns of both layers that see the same probabilities."""
    A, seeds = skewed_graph(400, 6000), torch.arange(400)

    def same(layer_dependency):
        with program_scope(make_key(2)):
            first, second = labor(
                *(A, seeds, [3, 3], 0, False, weighted, layer_dependency)
            )
        later = set(second.edge_id.tolist())
        at = first.edges()[1]
        mine = first.edge_id[torch.isin(at, second.col_ids)].tolist()
        return sum(e in later for e in mine) / len(mine)

    assert same(True) == 1
    assert same(False) < 0.7


def test_layers_that_depend_have_fewer_nodes():
    A = skewed_graph(400, 6000).with_value(None)

    def nodes(layer_dependency):
        out = []
        for seed in range(30):
            with program_scope(make_key(seed)):
                layers = labor(
                    *(A, SEEDS, [4, 4, 4], 0),
                    layer_dependency=layer_dependency,
                )
            out.append(len(torch.cat([S.row() for S in layers]).unique()))
        return sum(out)

    assert nodes(True) < 0.9 * nodes(False)


def test_layers_that_depend_are_unbiased_one_by_one():
    """Two layers of one draw are correlated; each estimates its sum."""
    A, x = skewed_graph(), features(40)

    def second():
        _, S = labor(A, SEEDS, [50, 3], layer_dependency=True)
        out = S.T @ x
        return torch.zeros(40, 3).double().index_copy(0, S.col_ids, out)

    nodes = A[:, SEEDS].row()
    full = torch.zeros(40, 3).double()
    full[nodes] = A[:, nodes].T @ x
    assert_mean(runs(second, 1000), full)


@pytest.mark.parametrize('options', [{'steps': -1}, {'weighted': True}])
def test_seeds_without_neighbours_sample_nothing(options):
    A = skewed_graph()
    A = A.masked(A.coo()[1] > 5)
    for seeds in (torch.arange(5), torch.arange(0)):
        for S in labor(A, seeds, [2, 2], layer_dependency=True, **options):
            assert S.num_edges == 0


def test_bad_arguments_are_named():
    A = skewed_graph()
    with pytest.raises(
        ValueError, match=r"'steps' must be at least -1 \(got -2"
    ):
        labor(A, SEEDS, [2], -2)
    A = A.with_value(A.values() / 0)
    with pytest.raises(ValueError, match='weighted graph must be finite'):
        labor(A, SEEDS, [2], weighted=True)


@pytest.mark.parametrize('steps', [0, 1, 2, 30])
def test_probabilities_solve_the_equation_of_the_variance(steps):
    sub = skewed_graph(400, 6000)[:, SEEDS]
    probs = solver.inclusion(sub, 3, solver.importance_of(sub, 3, steps))
    degree = sub.degree(dim=0).double()
    torch.testing.assert_close(
        sub.with_value(1 / probs).sum(dim=0),
        degree**2 / degree.clamp(max=3),
        rtol=1e-9,
        atol=0,
    )
    assert 0 < probs.min() < probs.max() <= 1


@pytest.mark.parametrize('fanouts', [[3], [3, 2]])
@pytest.mark.parametrize('steps', [0, 1])
def test_estimate_is_unbiased(steps, fanouts):
    A, x = skewed_graph(), features(40)
    full = A[:, SEEDS].T @ (x if len(fanouts) == 1 else A.T @ x)
    samples = runs(lambda: aggregate(labor(A, SEEDS, fanouts, steps), x), 1000)
    assert_mean(samples, full)


def test_normalised_columns_sum_to_one():
    A = skewed_graph()
    with program_scope(make_key(1)):
        plain = labor(A, SEEDS, [3, 3])
    with program_scope(make_key(1)):
        layers = labor(A, SEEDS, [3, 3], normalize=True)
    for S, T in zip(layers, plain, strict=True):
        held = S.degree(dim=0) > 0
        torch.testing.assert_close(
            S.sum(dim=0), held.double(), check_dtype=False
        )
        assert torch.equal(S.edge_id, T.edge_id)
        assert not torch.allclose(T.sum(dim=0), held.double())


def test_layers_are_sampled_for_the_rows_before():
    first, second = labor(skewed_graph(), SEEDS[10:], [1, 2])
    assert torch.equal(second.col_ids, first.row())


@pytest.mark.parametrize('steps', [0, 1, 30])
def test_variance_is_that_of_neighbour_sampling(steps):
    """1 / k - 1 / d_v for means of orthonormal features, of either one."""
    A, seeds, k = skewed_graph(60, 900).with_value(None), torch.arange(8), 4
    A, x = A.div(A.sum(dim=0), dim=0), torch.eye(60)
    full = A[:, seeds].T @ x
    degree = A.degree(dim=0)[seeds].double()
    assert degree.min() > k
    variance = 1 / k - 1 / degree

    def errors(S):
        return (S.T @ x - full).double().square().sum(dim=1)

    samples = runs(lambda: errors(labor(A, seeds, [k], steps)[0]), 1000)
    assert_mean(samples, variance)
    [S] = graphsage(A, seeds, [k])
    torch.testing.assert_close(
        errors(S.div(S.sum(dim=0), dim=0)), variance, rtol=1e-5, atol=0
    )


def test_touches_fewer_nodes_than_neighbour_sampling_at_equal_variance():
    A = skewed_graph(400, 6000).with_value(None)
    x, seeds = features(400), torch.arange(100)
    A = A.div(A.sum(dim=0), dim=0)  # means of neighbours
    full = A[:, seeds].T @ x

    def measure(program):
        def one():
            [S] = program()
            error = (S.T @ x - full).square().sum().view(1)
            return torch.cat([error, torch.tensor([len(S.row())])])

        return runs(one, 100).mean(dim=0).tolist()

    def neighbours():
        [S] = graphsage(A, seeds, [4])
        return [S.div(S.sum(dim=0), dim=0)]

    theirs, nodes = measure(neighbours)
    nodes *= 0.9
    for steps in (0, 1, 20):
        error, fewer_nodes = measure(lambda s=steps: labor(A, seeds, [4], s))
        assert error < 1.1 * theirs
        assert fewer_nodes < nodes
        nodes = fewer_nodes
