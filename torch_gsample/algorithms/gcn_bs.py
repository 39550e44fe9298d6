"""GCN-BS: bandits that reduce the variance of neighbour sampling."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.algorithms.dep_round import dep_round, inclusion
from torch_gsample.algorithms.exp3 import EdgeBandit
from torch_gsample.sparse_sample import SparseSample


class GCNBS(EdgeBandit):
    r"""Samples neighbours by bandits that reduce the variance (GCN-BS).

    :math:`k` edges of each node are drawn with replacement and the
    probabilities :math:`q` of :class:`EdgeBandit`. Weights and rewards are

    .. math::
        S[u, v] = \frac{A[u, v]}{k \, q_{uv}}, \quad
        r_{uv} = \frac{A[u, v]^2}{q_{uv}^2} \|h_u\|^2

    as in `"Bandit Samplers for Training Graph Neural Networks"
    <https://arxiv.org/abs/2006.05806>`_ (NeurIPS 2020). :math:`S^\top H` is an
    unbiased estimate of :math:`A[:, B]^\top H` for any :math:`q`. The reward
    is the negative derivative of the first term of its variance,
    :math:`\sum_u A[u, v]^2 \|h_u\|^2 / q_{uv}`, which
    :math:`q_{uv} \propto A[u, v] \|h_u\|` minimises.

    With ``replace=False``, :math:`\min(k, n_v)` distinct edges are drawn, as
    in the paper's combinatorial bandit: EXP3.M (Uchiya et al., `"Algorithms
    for Adversarial Bandit Problems with Multiple Plays"
    <https://doi.org/10.1007/978-3-642-16108-7_30>`_, ALT 2010). The
    probability :math:`p` that an edge is among them satisfies

    .. math::
        p_{uv} = \min \Big( 1, c_v w_{uv} + \frac{k \eta}{n_v} \Big), \quad
        \sum_u p_{uv} = k, \quad
        S[u, v] = \frac{A[u, v]}{p_{uv}}, \quad
        w_{uv} \gets w_{uv} \exp \Big( \frac{\delta \, r_{uv}}
            {n_v p_{uv}} \Big)

    The edges are drawn by dependent rounding. The weight of an edge with
    :math:`p = 1` does not change.

    Args:
        num_edges (int): Number of edges of the graph.
        eta (float, optional): Share of uniform exploration, in (0, 1].
        delta (float, optional): Learning rate.
        max_step (float, optional): Bound of the exponent.
        replace (bool, optional): Whether the edges of a node are drawn
            independently.

    Raises:
        ValueError: If ``eta`` is not in (0, 1], or a fan-out is not positive.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2], [0, 0]]), num_nodes=3
        ... )
        >>> x = torch.tensor([[0.0], [1.0], [5.0]])
        >>> bandit = GCNBS(num_edges=2)
        >>> for _ in range(20):
        ...     [S] = bandit(A, torch.tensor([0]), [2])
        ...     bandit.update(A, [S], [x[S.row()]])
        >>> bool(bandit.probs(A).values()[1] > 0.6)
        True
    """

    def __init__(
        self,
        num_edges: int,
        eta: float = 0.4,
        delta: float = 0.1,
        max_step: float = 1.0,
        replace: bool = True,
    ):
        super().__init__(num_edges, eta, delta, max_step)
        self.replace = replace

    def drawn(self, sub: SparseSample, k: int) -> SparseSample:
        """Draws edges of whole columns; see :class:`EdgeBandit`."""
        if self.replace:
            return super().drawn(sub, k)
        if k <= 0:
            raise ValueError(
                f'{type(self).__name__}: without replacement, a fan-out must '
                f'be positive (got {k})'
            )
        size = sub.degree(dim=0).clamp(max=k)
        p = inclusion(self._log_weight(sub), size, self.eta, k)
        weighed = sub / sub.with_value(p.to(self.log_weight.dtype))
        return dep_round(weighed, p, k)

    def chances(self, sub: SparseSample, size: Tensor) -> Tensor:
        """Returns the probabilities of edges; see :class:`EdgeBandit`."""
        if self.replace:
            return super().chances(sub, size)
        rounds = int(size.max()) if size.numel() > 0 else 0
        p = inclusion(self._log_weight(sub), size, self.eta, rounds)
        return p.to(self.log_weight.dtype)

    def step(self, reward: Tensor, q: Tensor) -> Tensor:
        """Returns the step of each draw; see :class:`EdgeBandit`."""
        step = super().step(reward, q)
        return step if self.replace else torch.where(q < 1, step, 0)

    def _log_weight(self, sub: SparseSample) -> SparseSample:
        return sub.with_value(self.log_weight[sub.edge_id])

    def weighed(self, sub: SparseSample, q: SparseSample, k: int) -> Any:
        """Returns the values of a layer's edges; see :class:`EdgeBandit`."""
        return sub / (q * k)

    def rewards(self, arms: SparseSample, q: Tensor, h: Tensor) -> Tensor:
        """Returns the reward of each draw; see :class:`EdgeBandit`."""
        norm = h.square().sum(dim=1)[arms.coo()[0]]
        return arms.values() ** 2 * norm / q**2
