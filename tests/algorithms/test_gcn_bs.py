import pytest
import torch

from tests.algorithms.graphs import (
    assert_mean,
    features,
    runs,
    skewed_graph,
    star,
)
from torch_gsample.algorithms import GCNBS
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.tensor([0])


def train(bandit, A, h, steps):
    for step in range(steps):
        with program_scope(make_key(2, batch=step)):
            [S] = bandit(A, SEEDS, [3])
        bandit.update(A, [S], [h[S.row()]])
    return bandit.probs(A).values()


def test_estimate_is_unbiased_under_any_weights():
    A, x = skewed_graph(), features(40)
    bandit = GCNBS(A.num_edges).double()
    bandit.log_weight.copy_(features(A.num_edges, 1).view(-1))
    seeds = torch.tensor([0, 3, 17])
    samples = runs(lambda: bandit(A, seeds, [3])[0].T @ x, 1000)
    assert_mean(samples, A[:, seeds].T @ x)


def test_probabilities_are_those_of_exp3():
    A, seeds = skewed_graph(), torch.tensor([3, 30, 17])
    bandit = GCNBS(A.num_edges, eta=0.3).double()
    bandit.log_weight.copy_(features(A.num_edges, 1).view(-1))
    q = bandit.probs(A[:, seeds])
    for v in range(3):
        mine = q.coo()[1] == v
        weight = bandit.log_weight[q.edge_id[mine]].exp()
        torch.testing.assert_close(
            q.values()[mine],
            0.7 * weight / weight.sum() + 0.3 / int(mine.sum()),
        )


def test_an_update_of_whole_columns_is_that_of_exp3():
    """By loops, for layers of more columns than one, of edges in any order."""
    A, h = skewed_graph(), features(40, 2)
    bandit = GCNBS(A.num_edges, delta=1.0, max_step=0.05).double()
    bandit.log_weight.copy_(0.1 * features(A.num_edges, 1).view(-1))
    before, q = bandit.log_weight.clone(), bandit.probs(A)
    prob = (
        torch.empty(A.num_edges).double().index_copy(0, q.edge_id, q.values())
    )
    layers = bandit(A, torch.tensor([3, 30, 17]), [4, 5])
    bandit.update(A, layers, [h[S.row()] for S in layers])
    value, steps = A.to_dense(), torch.zeros(A.num_edges).double()
    for S, k in zip(layers, [4, 5], strict=True):
        ends = S.edges()
        for u, v, e in zip(*ends, S.edge_id, strict=True):
            reward = (value[u, v] / prob[e] * h[u]).square().sum()
            steps[e] += reward / prob[e] / (A.degree(dim=0)[v] * k)
    steps = steps.clamp(max=0.05)
    assert 0 < int((steps == 0.05).sum()) < int((steps > 0).sum())
    torch.testing.assert_close(bandit.log_weight, before + steps)


@pytest.mark.parametrize('eta', [0, -0.1, 1.1])
def test_a_share_of_exploration_is_a_positive_share(eta):
    with pytest.raises(
        ValueError, match=rf"GCNBS: 'eta' must be in \(0, 1\] \(got {eta}"
    ):
        GCNBS(3, eta=eta)


def test_an_update_is_that_of_exp3():
    A, h = star(3, torch.tensor([1.0, 2.0, 3.0])), torch.ones(4, 2)
    bandit = GCNBS(3, eta=0.4, delta=0.01, max_step=9.0)
    [S] = bandit(A, SEEDS, [5])
    bandit.update(A, [S], [h[S.row()]])
    draws = S.edge_id.bincount(minlength=3)
    # r / q = (A / q)^2 |h|^2 / q with q = 1 / 3, of n = 3 arms and k = 5
    reward = torch.tensor([1.0, 4.0, 9.0]) * 9 * 2 * 3
    expected = 0.01 * draws * reward / (3 * 5)
    torch.testing.assert_close(bandit.log_weight, expected)


def test_mass_moves_to_the_arms_of_large_activations():
    A, h = star(8), torch.full((9, 1), 0.1)
    h[[2, 5]] = 3.0
    q = train(GCNBS(8, delta=1e-3), A, h, 400)
    assert q[[1, 4]].sum() > 0.6
    # sum_u |h_u|^2 / q_u falls
    size = h[1:, 0] ** 2
    assert (size / q).sum() < 0.6 * (size * 8).sum()
