"""The steps from a vertex program to its operators, in order.

Gradients are not a step, as the operands that need them depend on the call
(``differentiate.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_gsample.vertex.frontend.trace import Signature
from torch_gsample.vertex.frontend.values import Unsupported
from torch_gsample.vertex.plan.plan import Plan


@dataclass(frozen=True)
class PlanStep:
    """A step of planning, and its reason.

    Args:
        name (str): Its name.
        run (Callable): Extends the plan.
        reason (str): Reason for its position.
    """

    name: str
    run: Callable[[Plan], None]
    reason: str


STEPS = (
    PlanStep('trace', Plan.trace, 'all else is of what was recorded'),
    PlanStep(
        'number_axes',
        Plan.number_axes,
        'after all operations: they say which dimensions are one',
    ),
    PlanStep(
        'read_operands',
        Plan.read_operands,
        'after axes have numbers: leaves and sums name them',
    ),
    PlanStep(
        'divide',
        Plan.divide,
        'after leaves, whose graph types decide where a unit ends',
    ),
    PlanStep(
        'make_units',
        Plan.make_units,
        'after all is divided: a unit has all aggregates of its depth',
    ),
    PlanStep(
        'make_operators',
        Plan.make_operators,
        'after units, of which each operator runs one',
    ),
    PlanStep(
        'join_levels',
        Plan.join_levels,
        'after the operators of levels, of which it replaces some',
    ),
    PlanStep(
        'link_operands',
        Plan.link_operands,
        'last: an operand may be the result of any step',
    ),
)


def make_plan(
    function: Callable[..., Any],
    signature: Signature,
    parameters: list[str],
    name: str,
    dtypes: Sequence[torch.dtype] | None = None,
) -> Plan:
    """Returns the plan of a program for given features.

    Args:
        function (Callable): The program.
        signature (Mapping): The features of the call.
        parameters (List[str]): Its parameters.
        name (str): The name of the program.
        dtypes (Sequence[torch.dtype], optional): Dtypes of its results.

    Raises:
        ValueError: If the program is not supported.
    """
    plan = Plan(function, signature, parameters, name, dtypes)
    for step in STEPS:
        try:
            step.run(plan)
        except Unsupported as error:
            raise ValueError(f'{name}: {error}') from error
    return plan
