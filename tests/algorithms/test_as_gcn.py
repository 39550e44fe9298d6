import pytest
import torch

from tests.algorithms.graphs import (
    aggregate,
    assert_mean,
    features,
    runs,
    skewed_graph,
    star,
)
from torch_gsample.algorithms import AsGCN
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.tensor([0, 3, 17, 30, 39])


def planted() -> tuple[torch.Tensor, torch.Tensor]:
    """Features whose first column says how large the activations are."""
    x = features(40)
    size = torch.where(torch.arange(40) % 4 == 0, 4.0, 0.2).double()
    x[:, 0] = size
    return x, size.unsqueeze(1) * features(40, 2).sign()


def exact_variance(sampler, A, x, h, k) -> torch.Tensor:
    """The formula of the docstring, by dense sums."""
    sub = A[:, SEEDS].to_dense()
    g = (x @ sampler.weight).abs() + sampler.floor
    q = (sub / sub.sum(dim=0)).sum(dim=1) * g
    q = (q / q.sum()).unsqueeze(1)
    held = (q > 0).expand_as(sub)
    second = torch.where(held, sub**2 / q.clamp(min=1e-30), 0).T
    second = second @ h.square().sum(dim=1)
    return (second - (sub.T @ h).square().sum(dim=1)).mean() / k


def test_estimate_is_unbiased_whatever_the_weights_are():
    A, x = skewed_graph(), features(40)
    sampler = AsGCN(3).double()
    samples = runs(lambda: aggregate(sampler(A, SEEDS, [6, 8], x), x), 1000)
    assert_mean(samples, A[:, SEEDS].T @ (A.T @ x))


def test_nodes_are_drawn_by_their_shares_of_columns_and_importance():
    """Whatever the scale of a column is."""
    A, (x, _) = skewed_graph(), planted()
    A = A.mul(10.0 ** (torch.arange(40) % 5), dim=0)
    sampler = AsGCN(3).double()
    dense = A[:, SEEDS].to_dense()
    q = (dense / dense.sum(dim=0)).sum(dim=1)
    q = q * (x @ sampler.weight.detach()).abs()

    def drawn():
        [S] = sampler(A, SEEDS, [10], x)
        return S.row_ids.bincount(minlength=40).double() / 10

    assert_mean(runs(drawn, 1000), q / q.sum())


def test_every_neighbour_can_be_drawn():
    A, x = skewed_graph(), features(40)
    sampler = AsGCN(3).double()
    torch.nn.init.zeros_(sampler.weight)
    samples = runs(lambda: aggregate(sampler(A, SEEDS, [6], x), x), 500)
    assert_mean(samples, A[:, SEEDS].T @ x)


def test_the_loss_of_the_variance_trains_the_sampler_alone():
    A, x = skewed_graph(), features(40)
    sampler = AsGCN(3).double()
    [S] = sampler(A, SEEDS, [6], x)
    h = x[S.row()].requires_grad_()
    sampler.variance(S, h).backward()
    assert h.grad is None
    assert sampler.weight.grad is not None


@pytest.mark.parametrize('k', [2, 30])
def test_variance_loss_estimates_the_variance_and_its_gradient(k):
    """With few draws, what stands for the mean matters most."""
    A, (x, h) = skewed_graph(), planted()
    sampler = AsGCN(3).double()
    exact = exact_variance(sampler, A, x, h, k)
    [gradient] = torch.autograd.grad(exact, sampler.weight)

    def loss():
        [S] = sampler(A, SEEDS, [k], x)
        value = sampler.variance(S, h[S.row()])
        [slope] = torch.autograd.grad(value, sampler.weight)
        return torch.cat([value.view(1), slope])

    samples = runs(loss, 1000)
    assert_mean(samples[:, 0], exact.detach())
    assert_mean(samples[:, 1:], gradient)


def test_one_draw_has_no_variance():
    A, x = skewed_graph(), features(40)
    sampler = AsGCN(3).double()
    [S] = sampler(A, SEEDS, [1], x)
    with pytest.raises(ValueError, match=r"'S' must have at least 2.*got 1"):
        sampler.variance(S, x[S.row()])


def test_nodes_without_neighbours_have_no_variance():
    A, x = star(8), features(9)
    sampler = AsGCN(3).double()
    leaves = torch.tensor([3, 4])
    layers = sampler(A, leaves, [5, 5], x)  # of columns, then of none
    losses = [sampler.variance(S, x[S.row()]) for S in layers]
    assert losses == [0, 0]
    sum(losses).backward()
    assert sampler.weight.grad.abs().sum() == 0


def test_variance_falls_when_its_loss_is_optimised():
    A, (x, h) = skewed_graph(), planted()
    sampler = AsGCN(3).double()
    before = float(exact_variance(sampler, A, x, h, 10))
    optimizer = torch.optim.Adam(sampler.parameters(), lr=0.05)
    for step in range(200):
        with program_scope(make_key(5, batch=step)):
            [S] = sampler(A, SEEDS, [10], x)
        loss = sampler.variance(S, h[S.row()])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(exact_variance(sampler, A, x, h, 10)) < 0.7 * before


def test_gradient_of_a_task_reaches_the_sampler():
    A, x = skewed_graph(), features(40)
    sampler = AsGCN(3).double()
    aggregate(sampler(A, SEEDS, [6, 6], x), x).square().sum().backward()
    assert sampler.weight.grad.abs().min() > 0
