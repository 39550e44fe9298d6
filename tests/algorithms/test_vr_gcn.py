import torch

from tests.algorithms.graphs import (
    assert_mean,
    features,
    runs,
    skewed_graph,
    squared_error,
)
from torch_gsample.algorithms import VRGCN

A, H = skewed_graph(), features(40)
SEEDS = torch.tensor([0, 3, 17, 30])
FULL = A[:, SEEDS].T @ H


def estimates(history: torch.Tensor, num_runs: int = 1000) -> torch.Tensor:
    sampler = VRGCN(40, [3]).double()
    sampler.remember(0, torch.arange(40), history)

    def one():
        [S] = sampler(A, SEEDS, [2])
        return sampler.aggregate(0, A, S, H[S.row()])

    return runs(one, num_runs)


def test_estimate_is_unbiased_whatever_the_history_is():
    assert_mean(estimates(features(40).flip(0)), FULL)


def test_estimate_is_exact_when_history_equals_the_activations():
    samples = estimates(H, 5)
    torch.testing.assert_close(samples, FULL.expand_as(samples))


def test_variance_vanishes_as_the_history_comes_close():
    plain = squared_error(estimates(torch.zeros_like(H), 300), FULL)
    close = squared_error(estimates(0.9 * H, 300), FULL)
    assert abs(close / plain - 0.01) < 0.003  # of 0.1 H: (1 - 0.9)^2


def test_layers_are_distinct_neighbours_by_their_shares():
    degree, k = A.degree(dim=0), 7
    assert degree.min() < k < degree.max()
    [S] = VRGCN(40, [3])(A, torch.arange(40), [k])
    assert S.edge_id.unique().numel() == S.num_edges
    assert torch.equal(S.degree(dim=0), degree.clamp(max=k))
    value = A.to_dense()[S.edges()]
    share = (degree / degree.clamp(max=k))[S.edges()[1]]
    torch.testing.assert_close(S.values(), value * share)


def test_layers_have_histories_of_their_own():
    sampler = VRGCN(40, [3, 2]).double()
    h = features(40, 2)
    sampler.remember(1, torch.arange(40), h)
    layers = sampler(A, SEEDS, [2, 3])
    S = layers[1]
    z = sampler.aggregate(1, A, S, h[S.row()])
    torch.testing.assert_close(z, A[:, S.col_ids].T @ h)


def test_a_state_holds_the_histories():
    sampler, other = VRGCN(40, [3, 2]), VRGCN(40, [3, 2])
    sampler.remember(1, torch.tensor([4]), torch.ones(1, 2))
    other.load_state_dict(sampler.state_dict())
    assert torch.equal(other.history(1), sampler.history(1))


def test_history_stores_values_without_gradients():
    sampler = VRGCN(40, [3, 2])
    h = torch.ones(2, 2, requires_grad=True)
    sampler.remember(1, torch.tensor([4, 9]), h * 2)
    assert sampler.history(1)[[4, 9]].eq(2).all()
    assert sampler.history(1).sum() == 8
    assert not sampler.history(1).requires_grad
