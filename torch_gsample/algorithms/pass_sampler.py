"""PASS: a node-wise sampler trained on the loss of the task."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


class PassSampler(torch.nn.Module):
    r"""Samples neighbours by attention that the task's loss trains (PASS).

    :math:`k` neighbours of :math:`v` are drawn with replacement and the
    probabilities

    .. math::
        q(u \mid v) \propto \epsilon + \mathrm{relu} \Big(
            a_1 \langle x_u W_1, x_v W_1 \rangle
            + a_2 \langle x_u W_2, x_v W_2 \rangle
            + a_3 \frac{A[u, v]}{\sum_w A[w, v]} \Big)

    where :math:`a` is a softmax of parameters. They are averaged:
    :math:`h_v = \mathbb{E}_q [h_u]`. This is `"Performance-Adaptive Sampling
    Strategy Towards Fast and Accurate Graph Neural Networks"
    <https://doi.org/10.1145/3447548.3467284>`_ (KDD 2021).

    Gradients reach the sampler through the log-probability:
    :math:`\nabla h_v = \mathbb{E}_q [h_u \nabla \log q(u \mid v)]`. So the
    value of an edge is
    :math:`\frac{1}{k} \exp(\log q - \mathrm{stop}(\log q))`: it equals
    :math:`1 / k`, its gradient is :math:`\frac{1}{k} \nabla \log q`, and a
    model that aggregates with these values trains :math:`W_1, W_2, a`.

    Args:
        in_channels (int): Number of features per node.
        hidden_channels (int): Size of the projections.

    Example:
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3], [0, 0, 0]]), num_nodes=4
        ... )
        >>> sampler, x = PassSampler(2, 8), torch.rand(4, 2)
        >>> [S] = sampler(A, torch.tensor([0]), [2], x)
        >>> (S.T @ x).sum().backward()
        >>> sampler.W1.grad.shape
        torch.Size([2, 8])
    """

    #: Added to the attention, so that every neighbour can be drawn.
    floor = 1e-5

    def __init__(self, in_channels: int, hidden_channels: int):
        super().__init__()
        shape, scale = (in_channels, hidden_channels), in_channels**-0.5
        self.W1 = torch.nn.Parameter(torch.randn(shape) * scale)
        self.W2 = torch.nn.Parameter(torch.randn(shape) * scale)
        self.a = torch.nn.Parameter(torch.zeros(3))

    def forward(
        self, A: SparseSample, seeds: Tensor, fanouts: Sequence[int], x: Tensor
    ) -> list[SparseSample]:
        """Samples a matrix for each layer.

        Args:
            A (SparseSample): The graph, without negative values.
            seeds (torch.Tensor): int64 ``[num_seeds]``.
            fanouts (Sequence[int]): Draws per node in each layer.
            x (torch.Tensor): ``[num_nodes, in_channels]``.

        Returns:
            List[SparseSample]: ``[num_nodes, num_cols]`` each; the values of a
            column sum to 1.
        """
        layers, x1, x2 = [], x @ self.W1, x @ self.W2
        for k in fanouts:
            sub = A[:, seeds]
            a1 = sub.sddmm(x1, x1[seeds]).values()
            a2 = sub.sddmm(x2, x2[seeds]).values()
            a3 = sub.div(sub.sum(dim=0), dim=0).values()
            w = torch.stack([a1, a2, a3], dim=1) @ F.softmax(self.a, dim=0)
            q = sub.with_value(F.relu(w) + self.floor)
            q = q.div(q.sum(dim=0), dim=0)
            S = q.individual_sample(k, q, replace=True)
            log_q = torch.log(S.values())
            # 1 in value, and the gradient of log q
            S = S.with_value(torch.exp(log_q - log_q.detach()) / k)
            layers.append(S)
            seeds = S.row()
        return layers
