import torch

from tests.algorithms.graphs import (
    assert_mean,
    features,
    runs,
    skewed_graph,
    star,
)
from torch_gsample.algorithms import PassSampler
from torch_gsample.rng import make_key, program_scope

SEEDS = torch.tensor([0])


def planted() -> torch.Tensor:
    """Node 0 has two neighbours of its kind, and six of another one."""
    x = torch.zeros(9, 4)
    x[[0, 1, 2], 0] = 1.0
    x[3:, 1] = 1.0
    return x


def share(sampler, A, x, num_runs=200) -> float:
    """How often an edge of the node's own kind is drawn."""

    def one():
        [S] = sampler(A, SEEDS, [4], x)
        return (S.edge_id < 2).double().mean()

    return float(runs(one, num_runs).mean())


def test_learned_policy_beats_uniform_on_a_planted_graph():
    A, x = star(8), planted()
    sampler = PassSampler(4, 8)
    optimizer = torch.optim.Adam(sampler.parameters(), lr=0.02)
    for step in range(200):
        with program_scope(make_key(1, batch=step)):
            [S] = sampler(A, SEEDS, [4], x)
        loss = (S.T @ x - x[:1]).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert share(sampler, A, x) > 0.8  # 0.25 if uniform


def test_gradient_is_that_of_the_mean_under_the_policy():
    A, x = star(8), torch.randn(9, 4).double()
    sampler = PassSampler(4, 8).double()
    target = torch.randn(4).double()

    def gradient(value):
        grads = torch.autograd.grad(value, list(sampler.parameters()))
        return torch.cat([g.flatten() for g in grads])

    x1, x2 = x @ sampler.W1, x @ sampler.W2
    parts = [x1[1:] @ x1[0], x2[1:] @ x2[0], torch.full((8,), 1 / 8).double()]
    w = torch.stack(parts, dim=1) @ sampler.a.softmax(0)
    w = w.relu() + sampler.floor
    exact = gradient((w / w.sum()) @ x[1:] @ target)

    def one():
        [S] = sampler(A, SEEDS, [10], x)
        return gradient((S.T @ x)[0] @ target)

    assert exact.abs().max() > 0
    assert_mean(runs(one, 1000), exact)


def test_neighbours_are_drawn_by_the_attention_of_their_own_node():
    A, x, seeds = skewed_graph(), features(40, 4), torch.tensor([9, 2, 30])
    sampler = PassSampler(4, 8).double()
    sub = A[:, seeds].to_dense()
    x1, x2 = x @ sampler.W1, x @ sampler.W2
    parts = x1 @ x1[seeds].T, x2 @ x2[seeds].T, sub / sub.sum(dim=0)
    w = torch.stack(parts, dim=-1) @ sampler.a.softmax(0)
    q = torch.where(sub > 0, w.relu() + sampler.floor, 0)
    q = (q / q.sum(dim=0)).detach()
    often = q > 0.01
    assert (often.sum(dim=0) > 2).all()

    def drawn():
        [S] = sampler(A, seeds, [10], x)
        count = S.edge_id.bincount(minlength=A.num_edges).double() / 10
        return A.with_value(count[A.edge_id]).to_dense()[:, seeds][often]

    assert_mean(runs(drawn, 1000), q[often])


def test_neighbours_without_attention_are_drawn_alike():
    x = torch.ones(9, 4)
    x[0] = -9.0

    def drawn():
        [S] = PassSampler(4, 8)(star(8), SEEDS, [10], x)
        return S.edge_id.bincount(minlength=8).double() / 10

    assert_mean(runs(drawn, 300), torch.full((8,), 1 / 8).double())


def test_values_average_the_draws():
    [S, T] = PassSampler(4, 8)(star(8), SEEDS, [4, 2], planted())
    torch.testing.assert_close(S.values(), torch.full((4,), 0.25))
    assert torch.equal(T.col_ids, S.row())
