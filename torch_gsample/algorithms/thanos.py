"""Thanos: bandits that trade bias for variance, with bounded rewards."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.algorithms.exp3 import EdgeBandit
from torch_gsample.sparse_sample import SparseSample


class Thanos(EdgeBandit):
    r"""Samples neighbours by bandits, with rewards near the mean (Thanos).

    :math:`k` edges of each node are drawn with replacement and the
    probabilities :math:`q` of :class:`EdgeBandit`. Their weights do not
    include :math:`1 / q`, which may be unbounded: with
    :math:`z_u = A[u, v] h_u` and their mean :math:`\bar{z}_v`,

    .. math::
        S[u, v] = \frac{n_v}{k} A[u, v], \quad
        r_{uv} = 2 \bar{z}_v^\top z_u - \|z_u\|^2

    as in `"A Biased Graph Neural Network Sampler with Near-Optimal Regret"
    <https://arxiv.org/abs/2103.01089>`_ (NeurIPS 2021). The estimate is
    biased; the mean error of a draw is :math:`\mathbb{E}_q \|z_u -
    \bar{z}_v\|^2 = \|\bar{z}_v\|^2 - \mathbb{E}_q[r_{uv}]`, the sum of bias
    and variance. :math:`\bar{z}_v` is estimated from the draws as
    :math:`\sum (z_u / q_{uv}) / \sum (1 / q_{uv})`. As rewards drift while the
    model learns, weights are reset every ``period`` updates (REXP3).

    Args:
        num_edges (int): Number of edges of the graph.
        eta (float, optional): Share of uniform exploration, in (0, 1].
        delta (float, optional): Learning rate.
        max_step (float, optional): Bound of the exponent.
        period (int, optional): Updates between resets of the weights; 0 for
            no resets.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4
        ... )
        >>> x = torch.tensor([[0.0], [1.0], [1.0], [-1.0]])
        >>> bandit = Thanos(num_edges=3, delta=1.0)
        >>> for _ in range(50):
        ...     [S] = bandit(A, torch.tensor([0]), [2])
        ...     bandit.update(A, [S], [x[S.row()]])
        >>> bool(bandit.probs(A).values()[2] < 0.2)
        True
    """

    num_updates: Tensor

    def __init__(
        self,
        num_edges: int,
        eta: float = 0.4,
        delta: float = 0.1,
        max_step: float = 1.0,
        period: int = 0,
    ):
        super().__init__(num_edges, eta, delta, max_step)
        self.period = period
        self.register_buffer('num_updates', torch.tensor(0))

    def weighed(self, sub: SparseSample, q: SparseSample, k: int) -> Any:
        """Returns the values of a layer's edges; see :class:`EdgeBandit`."""
        return sub.mul(sub.degree(dim=0) / k, dim=0)

    def rewards(self, arms: SparseSample, q: Tensor, h: Tensor) -> Tensor:
        """Returns the reward of each draw; see :class:`EdgeBandit`."""
        row, col = arms.coo()
        z = arms.values().unsqueeze(1) * h[row]
        # sum_u (1 / q) = k n_v in the mean: it scales z / q to an average
        scale = arms.with_value(1 / q).sum(dim=0)
        mean = arms.with_value(z / q.unsqueeze(1)).sum(dim=0)
        mean = mean / scale.unsqueeze(1)
        return 2 * (mean[col] * z).sum(dim=1) - z.square().sum(dim=1)

    @torch.no_grad()
    def update(
        self,
        A: SparseSample,
        layers: Sequence[SparseSample],
        hidden: Sequence[Tensor],
    ) -> None:
        """Learns from a sample; see :meth:`EdgeBandit.update`."""
        super().update(A, layers, hidden)
        self.num_updates += 1
        if self.period and self.num_updates % self.period == 0:
            self.log_weight.zero_()
