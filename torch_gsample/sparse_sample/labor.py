"""The inclusion probabilities of LABOR."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program


def inclusion(matrix: Any, k: int, importance: Tensor | None) -> Tensor:
    r"""Returns the probability of each edge, float64 ``[num_edges]``.

    It is :math:`\min(1, c_v \pi_u)`. The mean of a column that is estimated
    with these probabilities has the variance that it has if ``k`` of its
    :math:`d_v` edges are drawn without replacement where

    .. math::
        \sum_u \frac{1}{\min(1, c_v \pi_u)} = \frac{d_v^2}{\min(k, d_v)}.

    The expected number of edges is then ``min(k, degree)`` for equal
    :math:`\pi`, and no less for others.

    Args:
        matrix (SparseSample): The edges.
        k (int): Edges a column, of equal variance.
        importance (torch.Tensor, optional): :math:`\pi`, ``[num_rows]``.
    """
    if k <= 0:
        raise ValueError(f"labor_sample: 'k' must be positive (got {k})")
    cols = matrix._index(0)
    degree = matrix.degree(0).to(torch.float64)
    if importance is None:
        return (k / degree.clamp(min=1))[cols].clamp(max=1)
    if importance.shape != (matrix.num_rows,):
        raise ValueError(
            f"labor_sample: 'importance' must have {matrix.num_rows} elements "
            f'(got shape {list(importance.shape)})'
        )
    weight = importance.detach().to(torch.float64)[matrix._index(1)]
    if not bool(((weight > 0) & (weight < float('inf'))).all()):
        raise ValueError(
            "labor_sample: 'importance' must be positive and finite"
        )
    probs = weight * _scale(weight, cols, degree, k)[cols]
    return torch.where((degree <= k)[cols], 1, probs.clamp(max=1))


def sample_by(matrix: Any, probs: Tensor) -> Any:
    """Keeps each edge with its probability, edges of one row together.

    Args:
        matrix (SparseSample): The edges.
        probs (torch.Tensor): ``[num_edges]``, what a row's number in
            ``[0, 1)`` must be below.
    """
    key, call_id = current_program()
    draws = ops.random_uniform(matrix.row_of_edge(), key=key, call_id=call_id)
    return matrix.masked(draws < probs)


def _scale(weight: Tensor, cols: Tensor, degree: Tensor, k: int) -> Tensor:
    r"""Returns :math:`c_v`, float64 ``[num_cols]``.

    If :math:`f` edges of a column have probability 1, the equation is
    :math:`f + \sum 1 / (c_v \pi_u) = d_v^2 / k` over the others. To hold one
    more at 1 raises :math:`c_v`, so none of them falls below it again: there
    are at most as many rounds as edges. A column of ``k`` edges or less is
    sampled whole, and has 1: LABOR-i never lowers :math:`\pi = 1` there.
    """
    zeros = torch.zeros_like(degree)
    full = torch.zeros_like(weight, dtype=torch.bool)
    while True:
        held = zeros.index_add(0, cols, full.double())
        rest = zeros.index_add(0, cols, torch.where(full, 0, 1 / weight))
        # d^2 / k > d >= held where d > k
        scale = torch.where(degree > k, rest / (degree.square() / k - held), 1)
        passed = (weight * scale[cols] >= 1) & ~full
        if not bool(passed.any()):
            return scale
        full |= passed


def importance_of(matrix: Any, k: int, steps: int = 1) -> Tensor:
    r"""Returns :math:`\pi` after some fixed-point steps (LABOR-i).

    A step sets :math:`\pi_u \gets \pi_u \max_v c_v`, so that
    :math:`\min(1, \pi_u)` is the probability with which ``u`` was sampled
    before: with all :math:`c_v = 1`, nodes are as many and the variance is no
    greater, so each :math:`c_v` and the number of nodes can only fall.

    Args:
        matrix (SparseSample): The edges.
        k (int): Edges a column, of equal variance.
        steps (int, optional): How many steps.

    Returns:
        torch.Tensor: float64 ``[num_rows]``.
    """
    rows, cols = matrix._index(1).to(torch.int64), matrix._index(0)
    degree = matrix.degree(0).to(torch.float64)
    importance = torch.ones(matrix.num_rows, dtype=torch.float64)
    for _ in range(steps):
        scale = _scale(importance[rows], cols, degree, k)
        largest = torch.zeros_like(importance).scatter_reduce(
            0, rows, scale[cols], 'amax'
        )
        # A row without an edge stays as it is.
        importance *= torch.where(largest > 0, largest, 1)
    return importance
