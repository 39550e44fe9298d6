"""The inclusion probabilities of LABOR."""

import math

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.ops.features import select_rows
from torch_gsample.ops.labor import labor_scale
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import reduce
from torch_gsample.sparse_sample.extract import (
    selected_edges,
    with_edges,
)
from torch_gsample.sparse_sample.ids import ids_at, row_of_edge
from torch_gsample.sparse_sample.parts import M, Parts
from torch_gsample.sparse_sample.repeat import repeat_while

#: LABOR-* stops when a step lowers the expected number of nodes by less than
#: this share, or after this many steps.
TOLERANCE = 1e-4
MOST_STEPS = 20


def labor_sample(matrix: M, k: int, importance: Tensor | None = None) -> M:
    r"""Samples about ``k`` edges per column from few distinct rows (LABOR).

    Row ``u`` draws one number :math:`r_u` for all columns, and the edge
    ``u -> v`` is sampled if :math:`r_u \le c_v \pi_u`, so that columns share
    rows. :math:`c_v` is chosen such that the mean of a column has the variance
    of ``k`` edges drawn without replacement. With equal importances, the
    expected number of edges is ``min(k, degree)`` (`"Layer-Neighbor Sampling:
    Defusing Neighborhood Explosion in GNNs"
    <https://arxiv.org/abs/2210.13339>`_, NeurIPS 2023).

    Args:
        k (int): Edges per column of node-wise sampling with equal variance.
        importance (torch.Tensor, optional): :math:`\pi`, positive,
            ``[num_rows]``; default: ones (LABOR-0).

    Raises:
        ValueError: If ``k`` or an importance is not positive.
    """
    return sample_by(matrix, inclusion(matrix, k, importance))[0]


def inclusion(
    matrix: Parts,
    k: int,
    importance: Tensor | None,
    value: Tensor | None = None,
) -> Tensor:
    r"""Returns the probability of each edge, float64 ``[num_edges]``.

    It is :math:`\min(1, c_v \pi_u)`. The mean of a column estimated with these
    probabilities has the variance of ``k`` of its :math:`d_v` edges drawn
    without replacement if

    .. math::
        \sum_u \frac{1}{\min(1, c_v \pi_u)} = \frac{d_v^2}{\min(k, d_v)}.

    The expected number of edges is then ``min(k, degree)`` for equal
    :math:`\pi`, and at least that for others. With values :math:`a_{uv}`,
    their weighted sum has this variance, see
    :func:`torch_gsample.ops.labor.labor_scale`, and :math:`\pi` defaults to
    :math:`a_{uv}`.

    Args:
        matrix (SparseSample): The edges.
        k (int): Edges per column of node-wise sampling with equal variance.
        importance (torch.Tensor, optional): :math:`\pi`, ``[num_rows]``.
        value (torch.Tensor, optional): The result of :func:`edge_values`.
    """
    if k <= 0:
        raise ValueError(f"labor_sample: 'k' must be positive (got {k})")
    cols = matrix._index(0)
    degree = reduce.degree(matrix, 0).to(torch.float64)
    if importance is not None:
        weight = _weight_of_edge(matrix, importance)
    elif value is not None:
        weight = value
    else:
        return select_rows((k / degree.clamp(min=1)).clamp(max=1), cols)
    probs = weight * _scale(matrix, weight, k, value)[cols]
    return torch.where((degree <= k)[cols], 1, probs.clamp(max=1))


def _weight_of_edge(matrix: Parts, importance: Tensor) -> Tensor:
    if importance.shape != (matrix.num_rows,):
        raise ValueError(
            f"labor_sample: 'importance' must have {matrix.num_rows} elements "
            f'(got shape {list(importance.shape)})'
        )
    rows = matrix._index(1).to(torch.int64)
    weight = select_rows(importance.detach().to(torch.float64), rows)
    if not is_compiling() and not _are_positive(weight):
        raise ValueError(  # the operator checks again
            "labor_sample: 'importance' must be positive and finite"
        )
    return weight


def _are_positive(value: Tensor) -> bool:
    return bool(((value > 0) & (value < float('inf'))).all())


def edge_values(matrix: Parts) -> Tensor:
    """Returns the absolute values of edges, float64 ``[num_edges]``.

    Raises:
        ValueError: If a value is 0 or not finite.
    """
    value = matrix.values().detach().to(torch.float64).abs()
    if not is_compiling() and not _are_positive(value):
        raise ValueError(  # the operator checks again
            'labor: the values of a weighted graph must be finite'
        )
    return value


def sample_by(
    matrix: M, probs: Tensor, draw: tuple[Tensor, int] | None = None
) -> tuple[M, Tensor]:
    """Selects each edge with its probability, with one draw per row.

    Args:
        matrix (SparseSample): The edges.
        probs (torch.Tensor): ``[num_edges]``, probabilities. An edge is
            selected if the draw of its row in ``[0, 1)`` is below.
        draw (Tuple[torch.Tensor, int], optional): Key and id of the draw;
            default: the next one of the program.

    Returns:
        Tuple[SparseSample, torch.Tensor]: The selected edges and their
        probabilities.
    """
    key, call_id = current_program() if draw is None else draw
    draws = ops.random_uniform(row_of_edge(matrix), key=key, call_id=call_id)
    indptr, edge = selected_edges(matrix, draws < probs)
    probs = select_rows(probs, ids_at(matrix.csc.edge_id, edge))
    return with_edges(matrix, indptr, edge), probs


def _scale(
    matrix: Parts, weight: Tensor, k: int, value: Tensor | None
) -> Tensor:
    r"""Returns :math:`c_v`, float64 ``[num_cols]``, for weights of edges.

    Columns of at most ``k`` edges have 1, as all their edges are selected:
    LABOR-i never lowers :math:`\pi = 1` there.
    """
    columns = matrix.csc
    if columns.edge_id is not None:
        weight = weight[columns.edge_id]
        value = None if value is None else value[columns.edge_id]
    return labor_scale(columns.indptr, weight, k, value)


def importance_of(
    matrix: Parts, k: int, steps: int = 1, value: Tensor | None = None
) -> Tensor:
    r"""Returns :math:`\pi` after some fixed-point steps (LABOR-i, LABOR-\*).

    A step sets :math:`\pi_u \gets \pi_u \max_v c_v`, so that
    :math:`\min(1, \pi_u)` is the previous inclusion probability of ``u``. With
    all :math:`c_v = 1`, the number of nodes is equal and the variance no
    greater, so each :math:`c_v` and the number of nodes can only fall. With
    values, the first step sets :math:`\pi_u \gets \max_v c_v a_{uv}`.

    Args:
        matrix (SparseSample): The edges.
        k (int): Edges per column of node-wise sampling with equal variance.
        steps (int, optional): Number of steps; -1 for steps until one lowers
            the expected number of nodes by less than :data:`TOLERANCE`, at
            most :data:`MOST_STEPS`.
        value (torch.Tensor, optional): The result of :func:`edge_values`.

    Returns:
        torch.Tensor: float64 ``[num_rows]``.
    """
    rows, cols = (matrix._index(dim).to(torch.int64) for dim in (1, 0))
    importance = torch.ones(
        matrix.num_rows, dtype=torch.float64, device=matrix.device
    )

    def raised(importance: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the next importance, and the expected number of nodes."""
        largest = torch.zeros_like(importance).scatter_reduce(
            0, rows, factor, 'amax'
        )
        is_row = largest > 0  # rows without edges do not change
        importance = importance * torch.where(is_row, largest, 1)
        return importance, _expected_nodes(torch.where(is_row, importance, 0))

    def of_rows(importance: Tensor) -> Tensor:
        weight = select_rows(importance, rows)
        return select_rows(_scale(matrix, weight, k, value), cols)

    def goes_on(step: Tensor, _: Tensor, last: Tensor, now: Tensor) -> Tensor:
        return (step < MOST_STEPS) & (now < (1 - TOLERANCE) * last)

    def next_step(
        step: Tensor, importance: Tensor, _: Tensor, last: Tensor
    ) -> tuple[Tensor, ...]:
        importance, now = raised(importance, of_rows(importance))
        # A loop must not return its input tensors.
        return step + 1, importance, last.clone(), now

    if steps == 0:
        return importance
    if value is None:
        factor = of_rows(importance)
    else:
        whole = (reduce.degree(matrix, 0) <= k)[cols]
        factor = value * _scale(matrix, value, k, value)[cols]
        factor = torch.where(whole, 1, factor)
    importance, count = raised(importance, factor)
    for _ in range(1, steps):
        importance, count = raised(importance, of_rows(importance))
    if steps > 0:
        return importance
    first = torch.ones((), dtype=torch.int64, device=matrix.device)
    state = first, importance, torch.full_like(count, math.inf), count
    return repeat_while(goes_on, next_step, state, MOST_STEPS)[1]


def _expected_nodes(importance: Tensor) -> Tensor:
    """Sums probabilities as integers, exact for any number of threads."""
    units = (importance.clamp(max=1) * 2**30).to(torch.int64)
    return units.sum().to(torch.float64)
