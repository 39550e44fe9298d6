import torch

from tests.algorithms.graphs import star
from tests.algorithms.test_gcn_bs import SEEDS, train
from torch_gsample import SparseSample
from torch_gsample.algorithms import Thanos


def test_mass_moves_to_the_arms_near_the_mean():
    A, h = star(8), torch.ones(9, 2)
    h[[2, 5]] = -1.0
    q = train(Thanos(8, delta=1.0), A, h, 200)
    assert q[[1, 4]].sum() < 0.15  # 0.25 at first
    mean = h[1:].mean(dim=0)
    error = (h[1:] - mean).square().sum(dim=1)
    assert (q * error).sum() < error.mean()


def test_reward_is_minus_the_error_of_a_draw():
    bandit, A, h = Thanos(3), star(3), torch.randn(4, 2)
    arms, q = A[:, SEEDS], torch.full((3,), 1 / 3)
    mean = h[1:].mean(dim=0)
    error = (h[1:] - mean).square().sum(dim=1)
    torch.testing.assert_close(
        bandit.rewards(arms, q, h), mean.square().sum() - error
    )


def test_rewards_are_by_values_and_by_the_mean_of_the_own_column():
    """The mean that weights of 1 / q estimate, of all that was drawn."""
    A = SparseSample.from_coo(
        torch.tensor([0, 1, 2, 1, 3]),
        torch.tensor([0, 0, 0, 1, 1]),
        torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
        (4, 2),
    )
    q = torch.tensor([0.5, 0.3, 0.2, 0.1, 0.9])
    h = torch.randn(4, 2)
    z = A.values()[:, None] * h[A.coo()[0]]
    expected = []
    for column in (slice(0, 3), slice(3, 5)):
        weight = 1 / q[column] / (1 / q[column]).sum()
        mean = (weight[:, None] * z[column]).sum(dim=0)
        expected += [float(2 * mean @ zu - zu @ zu) for zu in z[column]]
    torch.testing.assert_close(
        Thanos(5).rewards(A, q, h), torch.tensor(expected)
    )


def test_rewards_of_either_sign_move_weights_up_to_the_bound():
    A = star(2, torch.tensor([1.0, 3.0]))
    bandit = Thanos(2, delta=1.0, max_step=0.5)
    [S] = bandit(A, SEEDS, [40])
    bandit.update(A, [S], [torch.ones(2, 2)])
    # Means of z are 2: 2 * 2 * z - z^2, of two features
    assert bandit.log_weight[0] == 0.5  # of 6
    torch.manual_seed(1)
    bandit = Thanos(2, delta=1.0, max_step=0.5)
    A = star(2, torch.tensor([0.1, -3.0]))
    [S] = bandit(A, SEEDS, [40])
    bandit.update(A, [S], [torch.ones(2, 2)])
    assert bandit.log_weight[1] == -0.5


def test_weights_without_a_period_are_kept():
    A, h = star(8), torch.randn(9, 2)
    bandit = Thanos(8)
    for steps in range(1, 4):
        train(bandit, A, h, 1)
        assert bandit.log_weight.abs().sum() > 0
        assert bandit.num_updates == steps
    other = Thanos(8)
    other.load_state_dict(bandit.state_dict())
    assert other.num_updates == 3
    assert torch.equal(other.log_weight, bandit.log_weight)


def test_values_do_not_depend_on_probabilities():
    [S] = Thanos(8)(star(8), SEEDS, [4])
    assert S.values().tolist() == [2.0] * 4


def test_weights_restart_every_period():
    A, h = star(8), torch.randn(9, 2)
    bandit = Thanos(8, period=3)
    train(bandit, A, h, 2)
    assert bandit.log_weight.abs().sum() > 0
    train(bandit, A, h, 1)
    assert bandit.log_weight.abs().sum() == 0
