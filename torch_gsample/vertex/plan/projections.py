"""Sums over edge types that one operator computes: projected neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.unit import PARAMETER, SOURCE
from torch_gsample.vertex.frontend.kinds import RELATION
from torch_gsample.vertex.frontend.trace import (
    Nested,
    Operand,
    Product,
)
from torch_gsample.vertex.frontend.values import shape_of
from torch_gsample.vertex.kernels.projection import is_projectable


@dataclass(frozen=True)
class Projection:
    """The sum over types of ``op(e.src.x for e in es) @ weight[es.type]``.

    Args:
        x (int): The operand of the sources.
        weight (int): The operand of the matrices.
        transposed (bool): Whether to transpose the matrices.
        mean (bool): Whether to average the edges of a type instead of summing.
    """

    x: int
    weight: int
    transposed: bool
    mean: bool


def projection_of(
    origin: Any, operands: Sequence[Operand]
) -> Projection | None:
    """Returns a sum over types as a projection, or None.

    Args:
        origin (Any): The origin of an operand.
        operands (Sequence[Operand]): All operands of the program.
    """
    if not isinstance(origin, Nested) or origin.op != 'sum':
        return None
    product = _operand(origin.body.expr, RELATION, operands)
    if product is None or not isinstance(product.origin, Product):
        return None
    given = product.origin
    total = _operand(given.x.expr, RELATION, operands)
    weight = _operand(given.weight.expr, PARAMETER, operands)
    if total is None or weight is None:
        return None
    inner = total.origin
    if not isinstance(inner, Nested) or inner.op not in ('sum', 'mean'):
        return None
    x = _operand(inner.body.expr, SOURCE, operands)
    shape = shape_of(weight.dims)
    if x is None or len(x.dims) != 1 or not is_projectable(shape):
        return None
    return Projection(
        int(inner.body.expr.value or 0),
        int(given.weight.expr.value or 0),
        given.transposed,
        inner.op == 'mean',
    )


def _operand(
    root: Expression, kind: str, operands: Sequence[Operand]
) -> Operand | None:
    if root.op != 'operand':
        return None
    found = operands[int(root.value or 0)]
    return found if found.kind == kind else None
