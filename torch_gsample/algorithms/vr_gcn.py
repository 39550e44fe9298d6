"""VR-GCN: few sampled neighbours, and the history of all others."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


class VRGCN(torch.nn.Module):
    r"""Samples neighbours uniformly, with a history as control variate.

    The history :math:`\bar{h}` has the last computed activations of each node.
    With :math:`k` of :math:`d_v` neighbours sampled,

    .. math::
        \hat{z}_v = \sum_{u \in \mathcal{S}(v)} \frac{d_v}{k} A[u, v]
            (h_u - \bar{h}_u)
            + \sum_{u \in \mathcal{N}(v)} A[u, v] \bar{h}_u

    is an unbiased estimate of :math:`\sum_u A[u, v] h_u`. Its variance
    vanishes as the history approaches the activations: `"Stochastic Training
    of Graph Convolutional Networks with Variance Reduction"
    <https://arxiv.org/abs/1710.10568>`_ (ICML 2018). The sum over all
    neighbours needs only the history, which has no gradient.

    Args:
        num_nodes (int): Number of nodes.
        channels (Sequence[int]): Number of channels that each layer
            aggregates, from the seeds outwards.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4
        ... )
        >>> sampler, x = VRGCN(4, [2]), torch.rand(4, 2)
        >>> sampler.remember(0, torch.arange(4), x)
        >>> [S] = sampler(A, torch.tensor([0]), [1])
        >>> z = sampler.aggregate(0, A, S, x[S.row()])
        >>> torch.allclose(z, x[1:].sum(dim=0))
        True
    """

    def __init__(self, num_nodes: int, channels: Sequence[int]):
        super().__init__()
        for layer, size in enumerate(channels):
            self.register_buffer(
                f'history{layer}', torch.zeros(num_nodes, size)
            )

    def history(self, layer: int) -> Tensor:
        """Returns the history of a layer, ``[num_nodes, channels]``."""
        return self.get_buffer(f'history{layer}')

    def forward(
        self, A: SparseSample, seeds: Tensor, fanouts: Sequence[int]
    ) -> list[SparseSample]:
        """Samples a matrix for each layer.

        Args:
            A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
            seeds (torch.Tensor): int64 ``[num_seeds]``.
            fanouts (Sequence[int]): Neighbours per node in each layer.

        Returns:
            List[SparseSample]: ``[num_nodes, num_cols]`` each, with values
            :math:`A[u, v] d_v / k`.
        """
        layers = []
        for k in fanouts:
            sub = A[:, seeds]
            S = sub.individual_sample(k)
            S = S.mul(sub.degree(dim=0) / S.degree(dim=0), dim=0)
            layers.append(S)
            seeds = S.row()
        return layers

    def aggregate(
        self, layer: int, A: SparseSample, S: SparseSample, h: Tensor
    ) -> Tensor:
        """Returns the estimates of a layer, ``[num_cols, channels]``.

        Args:
            layer (int): Index of the layer, from the seeds outwards.
            A (SparseSample): The graph.
            S (SparseSample): The layer.
            h (torch.Tensor): ``[len(S.row()), channels]``, the activations of
                its rows.
        """
        assert S.col_ids is not None
        history = self.history(layer)
        sampled = S.compact().T @ (h - history[S.row()])
        return sampled + A[:, S.col_ids].T @ history

    @torch.no_grad()
    def remember(self, layer: int, nodes: Tensor, h: Tensor) -> None:
        """Stores activations of nodes in the history of a layer."""
        self.history(layer)[nodes] = h
