"""LADIES: nodes of a layer by their importance for the previous layer."""

from collections.abc import Sequence

from torch import Tensor

from torch_gsample.sparse_sample import SparseSample


def ladies(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    replace: bool = True,
    normalize: bool = False,
) -> list[SparseSample]:
    r"""Samples the nodes of a layer together, by importance (LADIES).

    From the neighbours of the layer's columns :math:`B`, :math:`k` are drawn
    with probabilities

    .. math::
        p(u) = \frac{\sum_{v \in B} A[u, v]^2}
                    {\sum_w \sum_{v \in B} A[w, v]^2},
        \quad
        S[u, v] = \frac{A[u, v]}{k \, p(u)}

    as in `"Layer-Dependent Importance Sampling for Training Deep and Large
    Graph Convolutional Networks" <https://arxiv.org/abs/1911.07323>`_
    (NeurIPS 2019).

    By default, :math:`S^\top H` is an unbiased estimate of
    :math:`A[:, B]^\top H`: draws are independent, as in the paper's analysis,
    and a node drawn twice has two rows. The paper trains with
    ``replace=False, normalize=True``, which is biased but has lower variance.
    The paper's :math:`A` is the Laplacian with self-loops; here, values are
    used unchanged.

    Args:
        A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (Sequence[int]): Nodes per layer.
        replace (bool, optional): Whether draws are independent.
        normalize (bool, optional): Whether to scale the weights of each column
            to the sum of 1.

    Returns:
        List[SparseSample]: ``[k, num_cols]`` each; ``row_ids`` are the sampled
        nodes.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 3, 3], [0, 0, 1, 2]])
        ... )
        >>> layers = ladies(A, torch.tensor([0]), [4, 4])
        >>> [S.num_rows for S in layers]
        [4, 4]
        >>> layers[1].row_ids.unique()
        tensor([3])
    """
    layers = []
    for k in fanouts:
        sub = A[:, seeds].compact(sorted=True)
        # p[u] = sum_v A[u, v]^2, up to scale
        p = (sub**2).sum(dim=1)
        S = sub.collective_sample(k, p, replace)
        # Whole rows are sampled: their squares sum to the same.
        q = (S**2).sum(dim=1) / p.sum()
        S = S.div(k * q, dim=1)
        if normalize:
            S = S.div(S.sum(dim=0), dim=0)
        layers.append(S)
        seeds = S.row().unique()
    return layers
