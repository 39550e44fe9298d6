"""The inclusion probabilities of LABOR."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program


def inclusion(matrix: Any, k: int, importance: Tensor | None) -> Tensor:
    r"""Returns the probability of each edge, float64 ``[num_edges]``.

    It is :math:`\min(1, c_v \pi_u)`, where :math:`c_v` makes the
    probabilities of a column sum to ``min(k, degree)``.

    Args:
        matrix (SparseSample): The edges.
        k (int): Expected edges a column.
        importance (torch.Tensor, optional): ``[num_rows]``.
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
    return _fill(weight, cols, degree, k)


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


def _fill(weight: Tensor, cols: Tensor, degree: Tensor, k: int) -> Tensor:
    """Scales the weights of each column so that they sum to `min(k, degree)`.

    Edges whose probability would pass 1 are held at 1, and the others scaled
    up to what is left, until none passes it: at most as often as edges.
    """
    target = degree.clamp(max=k)
    full = torch.zeros_like(weight, dtype=torch.bool)
    while True:
        held = torch.zeros_like(degree).index_add(0, cols, full.double())
        free = torch.where(full, 0, weight)
        total = torch.zeros_like(degree).index_add(0, cols, free)
        scale = (target - held) / total.clamp(min=1e-300)
        probs = torch.where(full, 1, weight * scale[cols])
        passed = (probs >= 1) & ~full
        if not bool(passed.any()):
            return probs
        full |= passed


def importance_of(matrix: Any, k: int, steps: int = 1) -> Tensor:
    r"""Returns :math:`\pi` after some fixed-point steps (LABOR-i).

    A step sets :math:`\pi_u` to the largest probability with which an edge of
    ``u`` is sampled, which lowers the expected number of rows.

    Args:
        matrix (SparseSample): The edges.
        k (int): Expected edges a column.
        steps (int, optional): How many steps.

    Returns:
        torch.Tensor: float64 ``[num_rows]``.
    """
    importance = torch.ones(matrix.num_rows, dtype=torch.float64)
    for _ in range(steps):
        probs = inclusion(matrix, k, importance)
        largest = torch.zeros_like(importance).scatter_reduce(
            0,
            matrix._index(1).to(torch.int64),
            probs,
            'amax',
            include_self=False,
        )
        importance = torch.where(largest > 0, largest, importance)
    return importance
