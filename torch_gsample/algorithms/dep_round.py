r"""DepRound: a fixed number of distinct edges with given probabilities.

The probabilities of a column's edges come in and sum to an integer :math:`m`;
exactly :math:`m` edges go out, each selected with its probability. DepRound
(Gandhi et al., `"Dependent Rounding and Its Applications to Approximation
Algorithms" <https://doi.org/10.1145/1147954.1147956>`_, JACM 2006) takes two
probabilities :math:`p, q` other than 0 and 1, and moves mass between them
until one of them is 0 or 1:

.. math::
    (p, q) \to \begin{cases}
        (p + \alpha, q - \alpha) & \text{with probability }
            \beta / (\alpha + \beta) \\
        (p - \beta, q + \beta) & \text{otherwise}
    \end{cases}, \quad
    \alpha = \min(1 - p, q), \; \beta = \min(p, 1 - q)

Here, pairs are taken in the order of the edges: the ordered pivotal method.
Its samples have the distribution of :math:`m` draws, one for each interval
:math:`[j, j + 1)` of the cumulated probabilities (Chauvet, `"On a
characterization of ordered pivotal sampling"
<https://doi.org/10.3150/11-BEJ380>`_, Bernoulli 2012): each interval draws a
point, and selects its edge. Only an edge across a border depends on the
previous interval, so all columns make draw ``j`` at the same time.
"""

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.repeat import repeat_while

#: The probability 1 as an integer, because integer sums are exact.
ONE = 2**32


def dep_round(sub: SparseSample, probs: Tensor, k: int) -> SparseSample:
    """Selects ``min(k, degree)`` edges of each column by dependent rounding.

    Columns of the same node select the same edges.

    Args:
        sub (SparseSample): Whole columns.
        probs (torch.Tensor): float64 ``[num_edges]``, positive and at most 1;
            those of a column sum to ``min(k, degree)``.
        k (int): Maximum number of edges per column.
    """
    layout, degree = sub.csc, sub.degree(dim=0)
    if layout.edge_id is not None:
        probs = probs[layout.edge_id]
    size = degree.clamp(max=k)
    bound = _cumulated(probs, layout.col(torch.int64), degree, size)
    edge, is_drawn = _drawn(sub, bound, size, k)
    hit = torch.zeros_like(bound, dtype=torch.bool)  # the last one is no edge
    last = bound.shape[0] - 1
    hit = hit.index_fill(0, torch.where(is_drawn, edge, last).view(-1), True)
    hit = hit[:-1]
    if layout.edge_id is not None:
        hit = torch.zeros_like(hit).index_copy(0, layout.edge_id, hit)
    return sub.masked(hit)


def _cumulated(
    probs: Tensor, column: Tensor, degree: Tensor, size: Tensor
) -> Tensor:
    """Returns the integer at which each edge starts, and the end of the last.

    The mass lost by rounding down is returned to edges with a probability
    below 1, so that each column has a multiple of :data:`ONE`.
    """
    unit = (probs * ONE).to(torch.int64).clamp(max=ONE)
    free = (unit < ONE).to(torch.int64)
    total = torch.zeros_like(degree).index_add(0, column, unit)
    num_free = torch.zeros_like(degree).index_add(0, column, free)
    missing = size * ONE - total
    share = missing.div(num_free.clamp(min=1), rounding_mode='floor')
    more = missing - share * num_free  # edges that get one more
    first = torch.cat([degree.new_zeros(1), num_free.cumsum(0)])[:-1]
    rank = free.cumsum(0) - free - first[column]
    unit = unit + free * (share[column] + (rank < more[column]))
    return torch.cat([unit.new_zeros(1), unit.cumsum(0)])


def _drawn(
    sub: SparseSample, bound: Tensor, size: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Returns the edge of each draw ``[num_cols, k]``, and whether it counts.

    The interval of a draw starts with a part :math:`b` of an edge whose other
    part :math:`a` is in the previous interval. If the previous draw selected
    this edge, the draw is from the rest of the interval. Otherwise, it is this
    edge with probability :math:`ab / ((1 - a)(1 - b))`, else from the whole
    interval: :math:`b / (1 - a)` in total.
    """
    slot = torch.arange(k, device=bound.device)
    is_drawn = slot < size[:, None]
    begin = ((size.cumsum(0) - size)[:, None] + slot) * ONE
    begin = torch.where(is_drawn, begin, 0)
    last, ends = bound.shape[0] - 1, bound[1:].contiguous()
    border = torch.searchsorted(ends, begin, right=True)
    a = begin - bound[border]
    b = torch.where(a > 0, bound[(border + 1).clamp(max=last)] - begin, 0)
    odds = a / ONE * (b / ONE) / ((1 - a / ONE) * (1 - b / ONE))
    uniform = _uniform(sub, k)
    free, taken = (
        torch.searchsorted(
            ends,
            begin + low + (uniform[..., 0] * (ONE - low)).to(torch.int64),
            right=True,
        )
        for low in (torch.zeros_like(b), b)
    )
    free = torch.where(uniform[..., 1] < odds, border, free)
    edge = free[:, :1]
    for j in range(1, k):
        was_taken = edge[:, -1] == border[:, j]
        chosen = torch.where(was_taken, taken[:, j], free[:, j])
        edge = torch.cat([edge, chosen[:, None]], dim=1)
    return edge, is_drawn


def _uniform(sub: SparseSample, k: int) -> Tensor:
    """Returns two numbers for each draw, float64 ``[num_cols, k, 2]``."""
    column = sub.col_ids
    if column is None:
        column = torch.arange(sub.num_cols, device=sub.device)
    key, call_id = current_program()
    id = column[:, None] * (2 * k) + torch.arange(2 * k, device=sub.device)
    drawn = ops.random_uniform(id.view(-1), key=key, call_id=call_id)
    return drawn.view(-1, k, 2)


def inclusion(
    log_weight: SparseSample, size: Tensor, eta: float, rounds: int
) -> Tensor:
    r"""Returns the probabilities of EXP3.M, float64 ``[num_edges]``.

    They are :math:`p_u = \min(1, c \, w_u + m \eta / n)` for the :math:`n`
    weights of a column, where :math:`c` makes them sum to :math:`m`: weights
    above a bound are capped. A weight held at 1 stays there when others are
    held, so :math:`m` rounds find all of them.

    Args:
        log_weight (SparseSample): Whole columns, with values :math:`\log w`.
        size (torch.Tensor): int64 ``[num_cols]``, :math:`m`.
        eta (float): :math:`\eta`, the share of uniform exploration.
        rounds (int): The largest :math:`m`.
    """
    logits = log_weight.values().to(torch.float64)
    column = log_weight._index(0)
    degree = log_weight.degree(dim=0)
    least = size.to(torch.float64) * eta / degree.clamp(min=1)

    def goes_on(number: Tensor, _: Tensor, __: Tensor, more: Tensor) -> Tensor:
        return (number < rounds) & more

    def hold(
        number: Tensor, held: Tensor, _: Tensor, __: Tensor
    ) -> tuple[Tensor, ...]:
        # A column's greatest weight that is not held is 1.
        rest = log_weight.with_value(torch.where(held, -torch.inf, logits))
        scaled = rest.softmax(dim=0).values()
        num_free = log_weight.with_value((~held).double()).sum(dim=0)
        share = size - (degree - num_free) - least * num_free
        probs = scaled * share[column] + least[column]
        probs = torch.where(held, 1, probs)
        full = probs >= 1
        return number + 1, held | full, probs, (full & ~held).any()

    held = (degree <= size)[column]
    first = torch.zeros((), dtype=torch.int64, device=size.device)
    more = torch.ones((), dtype=torch.bool, device=size.device)
    state = first, held, torch.ones_like(logits), more
    _, held, probs, _ = repeat_while(goes_on, hold, state, rounds)
    return torch.where(held, 1, probs)
