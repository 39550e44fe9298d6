"""GraphSAGE: a fixed number of neighbours of each node."""

from collections.abc import Sequence

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def graphsage(
    A: SparseSample, seeds: Tensor, fanouts: Sequence[int]
) -> list[SparseSample]:
    r"""Samples neighbours of each node, independently and uniformly.

    For each node :math:`v` of :math:`B_l`, layer :math:`l` has a uniform
    sample without replacement of at most :math:`k_l` of its neighbours:

    .. math::
        B_0 = \text{seeds}, \quad
        B_{l+1} = B_l \cup \bigcup_{v \in B_l} \mathcal{N}_{k_l}(v)

    as in Algorithm 2 of `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_ (NIPS 2017). The mean of a sampled
    column is an unbiased estimate of the mean of the full one.

    Args:
        A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (Sequence[int]): Neighbours per node in each layer, -1 for all.

    Returns:
        List[SparseSample]: ``[num_nodes, |B_l|]`` each.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3, 4], [0, 0, 1, 2]])
        ... )
        >>> layers = graphsage(A, torch.tensor([0]), [2, 2])
        >>> [S.num_edges for S in layers]
        [2, 4]
    """
    layers = []
    for k in fanouts:
        S = A[:, seeds].individual_sample(k)
        layers.append(S)
        seeds = S.nodes()
    return layers
