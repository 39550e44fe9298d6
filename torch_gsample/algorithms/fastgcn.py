"""FastGCN: the nodes of all layers from one distribution."""

from collections.abc import Sequence

from torch import Tensor

from torch_gsample.sparse_sample import NodeProbs, SparseSample


def fastgcn(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    probs: NodeProbs | None = None,
) -> list[SparseSample]:
    r"""Samples the nodes of each layer from one distribution (FastGCN).

    :math:`k` nodes are drawn with replacement from all nodes, with
    probabilities

    .. math::
        q(u) = \frac{\|A[u, :]\|^2}{\sum_w \|A[w, :]\|^2}, \quad
        S[u, v] = \frac{A[u, v]}{k \, q(u)}

    as in `"FastGCN: Fast Learning with Graph Convolutional Networks via
    Importance Sampling" <https://arxiv.org/abs/1801.10247>`_ (ICLR 2018).
    :math:`S^\top H` is an unbiased estimate of :math:`A[:, B]^\top H`. Drawn
    nodes without an edge into the layer's columns :math:`B` contribute nothing
    and are dropped, so a layer has at most :math:`k` rows.

    Args:
        A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (Sequence[int]): Draws per layer.
        probs (NodeProbs, optional): :math:`q`, prepared for many calls;
            default: ``NodeProbs((A**2).sum(dim=1))``.

    Returns:
        List[SparseSample]: The ``row_ids`` of each are the sampled nodes; a
        node drawn twice has two rows.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 1, 1], [0, 1, 2]])
        ... )
        >>> [S] = fastgcn(A, torch.tensor([0, 2]), [2])
        >>> S.to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
    """
    if probs is None:  # the CPU sums a graph in pinned memory
        probs = NodeProbs((A**2).sum(dim=1).to(seeds.device))
    layers = []
    for k in fanouts:
        S = A[probs.sample(k, replace=True), seeds].compact()
        layers.append(S.div(k * probs.probs[S.row()], dim=1))
        seeds = S.row().unique()
    return layers
