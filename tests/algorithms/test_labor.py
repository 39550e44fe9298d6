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


def inclusion(sub, k: int, steps: int) -> list[float]:
    """min(1, c_v pi_u), with c_v found by bisection, by plain loops.

    c_v makes sum_u 1 / min(1, c_v pi_u) = d_v^2 / min(k, d_v).
    """
    row, col = (t.tolist() for t in sub.coo())
    pi = [1.0] * sub.num_rows
    for step in range(steps + 1):
        probs, scale = [0.0] * len(row), [0.0] * sub.num_cols
        for v in range(sub.num_cols):
            edges = [e for e in range(len(row)) if col[e] == v]
            target = len(edges) ** 2 / min(k, len(edges)) + 1e-9
            low, high = 0.0, 1e6
            for _ in range(100):
                c = (low + high) / 2
                total = sum(1 / min(1, c * pi[row[e]]) for e in edges)
                low, high = (low, c) if total <= target else (c, high)
            scale[v] = high
            for e in edges:
                probs[e] = min(1, high * pi[row[e]])
        if step < steps:
            for u in set(row):
                pi[u] *= max(
                    scale[v] for r, v in zip(row, col, strict=True) if r == u
                )
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
