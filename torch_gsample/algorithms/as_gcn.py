"""AS-GCN: layer-wise sampling that learns to reduce its variance."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


class AsGCN(torch.nn.Module):
    r"""Samples the nodes of a layer together, by learned importance (AS-GCN).

    From the neighbours of the layer's columns :math:`B`, :math:`k` are drawn
    with replacement and the probabilities

    .. math::
        q(u) \propto \sum_{v \in B} p(u \mid v) \, |g(x_u)|, \quad
        g(x) = w^\top x, \quad
        p(u \mid v) = \frac{A[u, v]}{\sum_w A[w, v]}

    and :math:`S[u, v] = A[u, v] / (k \, q(u))`, as in `"Adaptive Sampling
    Towards Fast Graph Representation Learning"
    <https://arxiv.org/abs/1809.05343>`_ (NeurIPS 2018). :math:`S^\top H` is an
    unbiased estimate of :math:`A[:, B]^\top H` for any :math:`w`. The paper
    trains :math:`w` together with the model, on the task's loss plus a
    multiple of :meth:`variance`; gradients flow to :math:`w` through the
    values of layers.

    Args:
        in_channels (int): Number of features per node.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3, 3], [0, 0, 1, 2]])
        ... )
        >>> sampler, x = AsGCN(2), torch.rand(4, 2)
        >>> layers = sampler(A, torch.tensor([0]), [3, 3], x)
        >>> sampler.variance(layers[0], x[layers[0].row()]).backward()
        >>> sampler.weight.grad.shape
        torch.Size([2])
    """

    #: Added to ``|g|``, so that every neighbour can be drawn.
    floor = 1e-3

    def __init__(self, in_channels: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(in_channels))

    def forward(
        self, A: SparseSample, seeds: Tensor, fanouts: Sequence[int], x: Tensor
    ) -> list[SparseSample]:
        """Samples a matrix for each layer.

        Args:
            A (SparseSample): The graph, without negative values.
            seeds (torch.Tensor): int64 ``[num_seeds]``.
            fanouts (Sequence[int]): Nodes per layer.
            x (torch.Tensor): ``[num_nodes, in_channels]``.

        Returns:
            List[SparseSample]: ``[k, num_cols]`` each.
        """
        g = (x @ self.weight).abs() + self.floor
        layers = []
        for k in fanouts:
            sub = A[:, seeds]
            p = sub.div(sub.sum(dim=0), dim=0)
            q = p.sum(dim=1) * g
            S = sub.collective_sample(k, q, replace=True)
            layers.append(S.div(k * q[S.row()] / q.sum(), dim=1))
            seeds = S.row().unique()
        return layers

    @staticmethod
    def variance(S: SparseSample, h: Tensor) -> Tensor:
        r"""Returns the variance of a layer's estimates, the sampler's loss.

        .. math::
            \frac{1}{|B|} \sum_{v \in B} \frac{1}{k} \Big(
                \mathbb{E}_q \Big\| \frac{A[u, v]}{q(u)} h_u \Big\|^2
                - \|\mu_v\|^2 \Big)

        It is estimated from the :math:`k` draws as their sample variance (with
        :math:`k - 1`) over :math:`k`. The value and its gradient are unbiased.
        A layer without rows, whose columns have no neighbours, has a variance
        of 0.

        Args:
            S (SparseSample): A layer, ``[k, num_cols]``.
            h (torch.Tensor): ``[k, F]``, the features of its rows.

        Raises:
            ValueError: If ``S`` has a single row, as one draw has no variance.
        """
        k, h = S.num_rows, h.detach()
        if k == 1:
            raise ValueError(
                "AsGCN.variance: 'S' must have at least 2 rows, as one draw "
                'has no variance (got 1)'
            )
        if S.num_cols == 0:
            return S.values().sum()  # 0
        fixed = S.with_value(S.values().detach())
        # E_q'[f^2 / (q q')] = sum_u f^2 / q, differentiated by q alone
        second = ((S * fixed).T @ h.square().sum(dim=1)).mean()
        square = (fixed.T @ h).square().sum(dim=1).mean()
        # E[square] = |mu|^2 + variance. No gradient: mu does not depend on q.
        return second - (square - second.detach()) / max(k - 1, 1)
