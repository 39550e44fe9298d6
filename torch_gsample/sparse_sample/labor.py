"""The inclusion probabilities of LABOR."""

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops.labor import labor_scale
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import reduce
from torch_gsample.sparse_sample.extract import masked
from torch_gsample.sparse_sample.ids import row_of_edge
from torch_gsample.sparse_sample.parts import M, Parts


def labor_sample(matrix: M, k: int, importance: Tensor | None = None) -> M:
    r"""Samples about ``k`` edges a column, of few different rows.

    Row ``u`` draws one number :math:`r_u` for all columns, and the edge
    ``u -> v`` is sampled where :math:`r_u \le c_v \pi_u`: rows are shared
    as far as possible. :math:`c_v` gives the mean of a column the variance
    of ``k`` edges that are drawn without replacement; with equal
    importances, ``min(k, degree)`` are expected (`"Layer-Neighbor
    Sampling: Defusing Neighborhood Explosion in GNNs"
    <https://arxiv.org/abs/2210.13339>`_, NeurIPS 2023).

    Args:
        k (int): Edges a column, of equal variance.
        importance (torch.Tensor, optional): :math:`\pi`, positive,
            ``[num_rows]``; ones if not given (LABOR-0).

    Raises:
        ValueError: If ``k`` or an importance is not positive.
    """
    return sample_by(matrix, inclusion(matrix, k, importance))


def inclusion(matrix: Parts, k: int, importance: Tensor | None) -> Tensor:
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
    degree = reduce.degree(matrix, 0).to(torch.float64)
    if importance is None:
        return (k / degree.clamp(min=1))[cols].clamp(max=1)
    if importance.shape != (matrix.num_rows,):
        raise ValueError(
            f"labor_sample: 'importance' must have {matrix.num_rows} elements "
            f'(got shape {list(importance.shape)})'
        )
    weight = importance.detach().to(torch.float64)[matrix._index(1)]
    if not is_compiling() and not bool(
        ((weight > 0) & (weight < float('inf'))).all()
    ):  # the operator checks again
        raise ValueError(
            "labor_sample: 'importance' must be positive and finite"
        )
    probs = weight * _scale(matrix, weight, k)[cols]
    return torch.where((degree <= k)[cols], 1, probs.clamp(max=1))


def sample_by(matrix: M, probs: Tensor) -> M:
    """Keeps each edge with its probability, edges of one row together.

    Args:
        matrix (SparseSample): The edges.
        probs (torch.Tensor): ``[num_edges]``, what a row's number in
            ``[0, 1)`` must be below.
    """
    key, call_id = current_program()
    draws = ops.random_uniform(row_of_edge(matrix), key=key, call_id=call_id)
    return masked(matrix, draws < probs)


def _scale(matrix: Parts, weight: Tensor, k: int) -> Tensor:
    r"""Returns :math:`c_v`, float64 ``[num_cols]``, from weights of edges.

    A column of ``k`` edges or less is sampled whole, and has 1: LABOR-i never
    lowers :math:`\pi = 1` there.
    """
    columns = matrix.csc
    if columns.edge_id is not None:
        weight = weight[columns.edge_id]
    return labor_scale(columns.indptr, weight, k)


def importance_of(matrix: Parts, k: int, steps: int = 1) -> Tensor:
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
    importance = torch.ones(
        matrix.num_rows, dtype=torch.float64, device=matrix.device
    )
    for _ in range(steps):
        scale = _scale(matrix, importance[rows], k)
        largest = torch.zeros_like(importance).scatter_reduce(
            0, rows, scale[cols], 'amax'
        )
        # A row without an edge stays as it is.
        importance = importance * torch.where(largest > 0, largest, 1)
    return importance
