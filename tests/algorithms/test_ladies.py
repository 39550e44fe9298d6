import pytest
import torch

from tests.algorithms.graphs import (
    aggregate,
    assert_mean,
    features,
    runs,
    skewed_graph,
    squared_error,
)
from torch_gsample.algorithms import ladies
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.tensor([0, 3, 17, 30, 39])


@pytest.mark.parametrize('fanouts', [[6], [6, 8]])
def test_estimate_is_unbiased(fanouts):
    A, x = skewed_graph(), features(40)
    full = A[:, SEEDS].T @ (x if len(fanouts) == 1 else A.T @ x)
    samples = runs(lambda: aggregate(ladies(A, SEEDS, fanouts), x), 1000)
    assert_mean(samples, full)


def test_variance_is_below_that_of_uniform_layer_sampling():
    """By the share of nodes that are neighbours of the layer.

    With p as in LADIES, k Var = sum_u s[u] |x[u]|^2 / p[u], s[u] = sum_v
    A[u, v]^2, is sum(s) times the squared norms of the m neighbours; with
    1 / N it is N times what they are weighted by s. Of equal norms, the ratio
    is m / N.
    """
    A, x = skewed_graph(), features(40)
    x = x / x.norm(dim=1, keepdim=True)
    sub = A[:, SEEDS]
    full = sub.T @ x
    p = torch.full((40,), 1 / 40, dtype=torch.float64)

    def uniform():
        S = sub.collective_sample(6, p, replace=True)
        return aggregate([S.div(6 * p[S.row()], dim=1)], x)

    importance = runs(lambda: aggregate(ladies(A, SEEDS, [6]), x), 1000)
    ours = squared_error(importance, full)
    theirs = squared_error(runs(uniform, 1000), full)
    share = sub.row().numel() / 40
    assert share < 0.7
    assert ours < 0.8 * theirs


def test_nodes_are_drawn_by_the_sum_of_squares():
    A = skewed_graph()
    p = A[:, SEEDS].to_dense().square().sum(dim=1)

    def drawn():
        [S] = ladies(A, SEEDS, [10])
        return S.row_ids.bincount(minlength=40).double() / 10

    assert_mean(runs(drawn, 1000), p / p.sum())


@pytest.mark.parametrize('replace', [False, True])
def test_weights_are_values_by_how_often_rows_are_expected(replace):
    A = skewed_graph()
    [S] = ladies(A, SEEDS, [9], replace)
    p = A[:, SEEDS].to_dense().square().sum(dim=1)
    rows = S.row_ids[S.coo()[0]]
    value = A.to_dense()[rows, SEEDS[S.coo()[1]]]
    torch.testing.assert_close(S.values(), value / (9 * p[rows] / p.sum()))


def test_normalised_columns_sum_to_one_and_rows_differ():
    layers = ladies(skewed_graph(), SEEDS, [9, 9], False, normalize=True)
    for S in layers:
        held = S.degree(dim=0) > 0
        torch.testing.assert_close(
            S.sum(dim=0)[held], torch.ones(int(held.sum())).double()
        )
        assert S.num_rows == 9 == len(S.row_ids.unique())


def test_program_of_the_gsampler_paper_is_the_normalised_variant():
    A = skewed_graph()

    def printed(A, frontiers, fanouts):
        out = []
        for K in fanouts:
            sub = A[:, frontiers]
            probs = (sub**2).sum(axis=1)
            S = sub.collective_sample(K, probs)
            S = S.div(probs[S.row()], dim=1)
            S = S.div(S.sum(axis=0), dim=0)
            frontiers = S.row()
            out.append(S)
        return out

    with program_scope(make_key(3)):
        theirs = printed(A, SEEDS, [6])[0]
    with program_scope(make_key(3)):
        ours = ladies(A, SEEDS, [6], replace=False, normalize=True)[0]
    torch.testing.assert_close(ours.to_dense(), theirs.to_dense())
