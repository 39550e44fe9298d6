"""Gradient values that are stored in half precision.

Kernels compute in float32. Gradients of operands, and intermediate values of
the same width, are stored in the dtype of the results. A gradient that is
summed over rows is rounded once, after the sum. Values that are compared, such
as a maximum with the values of edges, keep all bits; otherwise none would be
equal.
"""

from dataclasses import replace

import torch

from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.unit import Output, Unit, operands_of, ordered
from torch_gsample.vertex.plan.differentiate import Backward

#: Minimum width of rows that are stored in half precision.
_WIDE = 16
_COMPARISONS = frozenset({'eq', 'ne', 'lt', 'le', 'gt', 'ge'})


def with_half(unit: Unit, plan: Backward) -> Backward:
    """Returns the units of gradients with the dtypes of stored values.

    Args:
        unit (Unit): The unit.
        plan (Backward): The units of its gradients, all in float32.
    """
    if not unit.has_half:
        return plan
    leaves, first = list(plan.leaves), len(unit.leaves)
    nodes = ordered(out.root for side in plan.outputs for out in side)
    compared = _compared(nodes)
    for i, node in enumerate(plan.saved, first):
        same = [out.half for out in unit.outputs if out.root == node]
        if same and (i not in compared or _is_kept(unit, node, same[0])):
            leaves[i] = replace(leaves[i], half=same[0])
    first += len(plan.saved)
    for i, out in enumerate(unit.outputs, first):
        leaves[i] = replace(leaves[i], half=out.half)
    first += len(unit.outputs)
    sides = [list(side) for side in plan.outputs]
    for part in plan.gradients:
        if not part.is_total:
            out = sides[part.unit][part.output]
            half = unit.leaves[part.operand].half
            sides[part.unit][part.output] = replace(out, half=half)
    for i, out in enumerate(sides[0][plan.given :]):
        if first + i not in compared:
            half = _half_of(unit, out)
            leaves[first + i] = replace(leaves[first + i], half=half)
            sides[0][plan.given + i] = replace(out, half=half)
    outputs = tuple(sides[0]), tuple(sides[1])
    return replace(plan, leaves=tuple(leaves), outputs=outputs)


def _half_of(unit: Unit, value: Output) -> torch.dtype | None:
    """Returns the storage dtype of a result with the same axes."""
    if unit.width(value.axes) < _WIDE:
        return None
    same = (out.half for out in unit.outputs if out.axes == value.axes)
    return next(same, None)


def _is_kept(unit: Unit, node: Expression, half: torch.dtype | None) -> bool:
    """Whether a value has the same bits as a stored operand."""
    if node.op not in ('max_in', 'min_in') or node.args[0].op != 'operand':
        return False
    return unit.leaves[int(node.args[0].value)].half == half


def _compared(nodes: list[Expression]) -> set[int]:
    """Returns the operands of comparisons."""
    args = [n.args for n in nodes if n.op in _COMPARISONS]
    return set(operands_of(arg for pair in args for arg in pair))
