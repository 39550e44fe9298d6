"""Units of nested aggregations: by edge type, and over out-edges."""

from dataclasses import replace
from typing import Any

from torch_gsample.codegen.expression import apply, constant, operand
from torch_gsample.codegen.unit import (
    DESTINATION,
    SOURCE,
    Leaf,
    Output,
    Unit,
    unit_of,
)
from torch_gsample.vertex.frontend.kinds import RELATION
from torch_gsample.vertex.frontend.trace import DEGREE, Nested


def nested_unit(plan: Any, origin: Nested) -> tuple[Unit, list[int]]:
    """Returns the unit of an aggregation, and its operands.

    Edge types are destinations of the inner level, and sources of the outer
    one. Out-neighbours are sources.

    Args:
        plan (Plan): The program.
        origin (Nested): The aggregation.
    """
    root = plan.body(origin)
    outer = origin.body.kind == RELATION
    leaves = [
        replace(leaf, kind=SOURCE) if outer and leaf.kind == RELATION else leaf
        for leaf in plan.leaves
    ]
    axes = tuple(sorted(plan.types.axes(root)))
    if origin.op == 'mean':
        degree = operand(len(leaves), root.dtype)
        leaves.append(Leaf(DEGREE, DESTINATION, root.dtype))
        count = apply('clamp_min', degree, constant(1, root.dtype))
        total = apply('div', apply('sum_in', root), count)
    else:
        total = apply(f'{origin.op}_in', root)
    output = Output(total, DESTINATION, axes)
    return unit_of(DESTINATION, leaves, plan.sizes, [output])
