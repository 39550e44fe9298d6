"""LABOR: neighbour sampling with shared neighbours."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.labor import (
    edge_values,
    importance_of,
    inclusion,
    sample_by,
)


def labor(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    steps: int = 0,
    normalize: bool = False,
    weighted: bool = False,
    layer_dependency: bool = False,
) -> list[SparseSample]:
    r"""Samples about ``k`` neighbours per node, with few distinct nodes.

    A node :math:`u` draws one uniform number :math:`r_u` per layer, and

    .. math::
        u \to v \text{ is sampled if } r_u \le p_{uv} =
        \min(1, c_v \pi_u), \quad
        S[u, v] = \frac{A[u, v]}{p_{uv}}

    as in `"Layer-Neighbor Sampling: Defusing Neighborhood Explosion in GNNs"
    <https://arxiv.org/abs/2210.13339>`_ (NeurIPS 2023). LABOR-0 has
    :math:`\pi = 1`, so :math:`p_{uv} = \min(1, k / d_v)`. LABOR-i takes
    :math:`i` fixed-point steps :math:`\pi_u \gets \pi_u \max_v c_v`, which
    reduce the expected number of nodes. LABOR-\* continues until a step
    reduces it by less than 0.01 %, for at most 20 steps.
    :math:`c_v` gives the mean of neighbours the same variance as :math:`k`
    neighbours drawn without replacement:

    .. math::
        \sum_u \frac{1}{\min(1, c_v \pi_u)} = \frac{d_v^2}{\min(k, d_v)}

    The expected number of edges is :math:`\min(k, d_v)` for LABOR-0, and
    larger for LABOR-i.

    ``weighted=True`` fixes the variance of the weighted sum instead, with
    :math:`a_{uv} = |A[u, v]|`:

    .. math::
        \sum_u \frac{a_{uv}^2}{\min(1, c_v \pi_{uv})} =
            \Big( \frac{1}{k} - \frac{1}{d_v} \Big)
            \Big( \sum_u a_{uv} \Big)^2 + \sum_u a_{uv}^2

    if :math:`d_v > k`. LABOR-0 has :math:`\pi_{uv} = a_{uv}`, and the first
    step of LABOR-i is :math:`\pi_u \gets \max_v c_v a_{uv}`. Edges of value 0
    are never sampled. If values differ, fewer than :math:`k` edges have the
    variance of :math:`k` uniform ones.

    By default, :math:`S^\top H` is an unbiased estimate of
    :math:`A[:, B]^\top H`. ``normalize=True`` divides by the sum of each
    column's weights, as the paper does: the average is exact for constant
    features, and biased otherwise.

    Args:
        A (SparseSample): The graph, ``[num_nodes, num_nodes]``.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        fanouts (Sequence[int]): Neighbours per node in each layer, for equal
            variance.
        steps (int, optional): The :math:`i` of LABOR-i; -1 for LABOR-\*.
        normalize (bool, optional): Whether to scale the weights of each column
            to the sum of 1.
        weighted (bool, optional): Whether probabilities follow the values of
            ``A``, of any sign.
        layer_dependency (bool, optional): Whether a node has one :math:`r_u`
            for all layers, which then have fewer distinct nodes.

    Returns:
        List[SparseSample]: ``[num_nodes, num_cols]`` each.

    Raises:
        ValueError: If ``steps`` is below -1, a fan-out is not positive, or a
            value of a weighted graph is not finite.

    Example:
        >>> import torch
        >>> A = SparseSample.from_edge_index(
        ...     torch.tensor([[1, 2, 1, 2], [0, 0, 3, 3]])
        ... )
        >>> [S] = labor(A, torch.tensor([0, 3]), [1])
        >>> first, second = S.to_dense().T
        >>> torch.equal(first, second)
        True
    """
    if steps < -1:
        raise ValueError(f"labor: 'steps' must be at least -1 (got {steps})")
    layers, value, pi = [], None, None
    draw = current_program() if layer_dependency else None
    for k in fanouts:
        sub = A[:, seeds]
        if weighted:
            sub = sub.masked(sub.values() != 0)
            value = edge_values(sub)
        if steps:
            pi = importance_of(sub, k, steps, value)
        S, p = sample_by(sub, inclusion(sub, k, pi, value), draw)
        values = S.values()
        if not values.is_floating_point():  # probabilities are fractions
            values = values.to(torch.get_default_dtype())
        S = S.with_value(values / p.to(values.dtype))
        if normalize:
            S = S.div(S.sum(dim=0), dim=0)
        layers.append(S)
        seeds = S.row()
    return layers
