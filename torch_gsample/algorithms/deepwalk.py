"""DeepWalk: uniform random walks."""

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def deepwalk(A: SparseSample, seeds: Tensor, length: int) -> Tensor:
    r"""Runs uniform random walks (DeepWalk).

    .. math::
        P(x_{t+1} = v \mid x_t = u) = \frac{[u \to v]}{\deg(u)}

    From `"DeepWalk: Online Learning of Social Representations"
    <https://arxiv.org/abs/1403.6652>`_ (KDD 2014).

    Args:
        A (SparseSample): ``[N, N]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``, starts of walks.
        length (int): Number of steps.

    Returns:
        torch.Tensor: int64 ``[num_seeds, length + 1]``, the nodes of each
        walk. A walk stays at a node without out-edges.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> deepwalk(A, torch.tensor([0, 1]), length=3)
        tensor([[0, 1, 0, 1],
                [1, 0, 1, 0]])
    """
    walks = A.random_walk(seeds, length)
    return walks.nodes
