"""GCN-BS: bandits that lower the variance of neighbour sampling."""

from typing import Any

from torch import Tensor

from torch_gsample.algorithms.exp3 import EdgeBandit
from torch_gsample.sparse_sample import SparseSample


class GCNBS(EdgeBandit):
    r"""Samples neighbours by bandits, rewarded for lower variance.

    :math:`k` edges of each node are drawn with replacement by the
    probabilities :math:`q` of :class:`EdgeBandit`, and weighed by

    .. math::
        S[u, v] = \frac{A[u, v]}{k \, q_{uv}}, \quad
        r_{uv} = \frac{A[u, v]^2}{q_{uv}^2} \|h_u\|^2

    as in `"Bandit Samplers for Training Graph Neural Networks"
    <https://arxiv.org/abs/2006.05806>`_ (NeurIPS 2020). :math:`S^\top H` is an
    unbiased estimate of :math:`A[:, B]^\top H`, whatever :math:`q` is; the
    reward is minus the derivative of its variance's first part,
    :math:`\sum_u A[u, v]^2 \|h_u\|^2 / q_{uv}`, which
    :math:`q_{uv} \propto A[u, v] \|h_u\|` makes smallest.

    Args:
        num_edges (int): Number of edges of the graph.
        eta (float, optional): Share of uniform exploration, in (0, 1].
        delta (float, optional): Learning rate.
        max_step (float, optional): Bound of an exponent.

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

    def weighed(self, sub: SparseSample, q: SparseSample, k: int) -> Any:
        """Returns the values of a layer's edges; see :class:`EdgeBandit`."""
        return sub / (q * k)

    def rewards(self, arms: SparseSample, q: Tensor, h: Tensor) -> Tensor:
        """Returns the reward of each draw; see :class:`EdgeBandit`."""
        norm = h.square().sum(dim=1)[arms.coo()[0]]
        return arms.values() ** 2 * norm / q**2
