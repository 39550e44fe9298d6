"""LABOR's equation for the variance of a column."""

import torch
from torch import Tensor

from torch_gsample.ops import _check


def labor_scale(
    indptr: Tensor, weight: Tensor, k: int, value: Tensor | None = None
) -> Tensor:
    r"""Solves LABOR's equation for the variance.

    For a column of :math:`d` weights :math:`w_u`, the result is the solution
    :math:`c` of

    .. math::
        \sum_u \frac{1}{\min(1, c \, w_u)} = \frac{d^2}{k}

    if :math:`d > k`, else 1. With values :math:`a_u`, the equation is

    .. math::
        \sum_u \frac{a_u^2}{\min(1, c \, w_u)} =
            \Big( \frac{1}{k} - \frac{1}{d} \Big) \Big( \sum_u a_u \Big)^2
            + \sum_u a_u^2

    which equals the first one if all values are equal. From `"Layer-Neighbor
    Sampling: Defusing Neighborhood Explosion in GNNs"
    <https://arxiv.org/abs/2210.13339>`_.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        weight (torch.Tensor): float64 ``[num_edges]``, positive and finite,
            with finite ``1 / weight``.
        k (int): Edges per column of node-wise sampling with equal variance.
        value (torch.Tensor, optional): float64 ``[num_edges]``, positive and
            finite, with finite ``1 / value``.

    Returns:
        torch.Tensor: float64 ``[num_cols]``.

    Raises:
        TypeError: If a tensor has the wrong dtype.
        ValueError: If ``k`` is not positive.
        RuntimeError: If a weight or a value is invalid, or the pointers do not
            match the weights.

    Example:
        >>> weight = torch.ones(4, dtype=torch.float64)
        >>> labor_scale(torch.tensor([0, 4]), weight, 2)
        tensor([0.5000], dtype=torch.float64)
    """
    op = 'labor_scale'
    indptr = _check.pointers(op, indptr, _check.graph_device(op, indptr))
    return _check.call(
        torch.ops.gsample.labor_scale,
        indptr,
        _doubles(op, 'weight', weight),
        _check.count(op, 'k', k),
        None if value is None else _doubles(op, 'value', value),
    )


def _doubles(op: str, name: str, value: Tensor) -> Tensor:
    if not isinstance(value, Tensor) or value.dtype != torch.float64:
        raise TypeError(f"{op}: '{name}' must be a float64 tensor")
    return _check.contiguous(_check.detached(value))


@torch.library.register_fake('gsample::labor_scale')
def _(indptr, weight, k, value=None):
    return weight.new_empty(indptr.shape[0] - 1)
