"""Plans whose units end with aggregates, for partitions of a vertex's edges.

    sum_u exp(x_u - max_u x_u)  ->  unit 0: max_u x_u
                                    unit 1: sum_u exp(x_u - m)

The aggregates of the partitions are combined before the next unit reads them.
"""

from copy import copy
from dataclasses import dataclass, replace

import torch

from torch_gsample.codegen.draws import VERTEX_ROW
from torch_gsample.codegen.expression import Expression, apply, constant
from torch_gsample.codegen.unit import ordered
from torch_gsample.vertex.frontend.trace import DEGREE, Product, Quantile
from torch_gsample.vertex.plan.plan import Plan


@dataclass(frozen=True)
class Stages:
    """The steps of a program whose units end with aggregates.

    Args:
        plan (Plan): The steps. Its operands start with those of the program.
        ties (Dict[Tuple[int, int], int]): For each maximum and minimum (unit,
            output index), the index of the output with the number of edges
            that attain it.
    """

    plan: Plan
    ties: dict[tuple[int, int], int]


def stages_of(plan: Plan) -> Stages | None:
    """Returns the stages of a program, or None if edges cannot be split.

    Sorts need all edges of a vertex, and draws of vertices depend on the rows
    of a tile.

    Args:
        plan (Plan): The program.
    """
    bodies = [
        plan.resolved(origin.x.expr)
        for origin in plan.origins
        if isinstance(origin, Product | Quantile)
    ]
    nodes = ordered([*plan.results, *bodies])
    if any(isinstance(origin, Quantile) for origin in plan.origins) or any(
        node.op == VERTEX_ROW for node in nodes
    ):
        return None
    made = copy(plan)
    made.set_number()
    made.is_staged = True
    count = len(plan.operands)
    made.origins = list(plan.origins[:count])
    # A unit over part of the edges must not count them: pass the degree.
    made.leaves = [
        replace(leaf, name='degree') if leaf.name == DEGREE else leaf
        for leaf in plan.leaves[:count]
    ]
    made.divide()
    ties = {
        (number, place): _count_ties(roots, place)
        for number, roots in made.roots.items()
        for place, root in enumerate(list(roots))
        if root.op in ('max_in', 'min_in')
    }
    made.make_units()
    made.make_operators()
    made.link_operands()
    return Stages(made, ties)


def _count_ties(roots: list[Expression], place: int) -> int:
    """Adds the number of edges that attain an extremum; returns its index."""
    root = roots[place]
    [x] = root.args
    one, zero = (constant(n, x.dtype) for n in (1, 0))
    is_tied = apply('eq', x, root, dtype=torch.bool)
    tied = apply('sum_in', apply('where', is_tied, one, zero, dtype=x.dtype))
    if tied not in roots:
        roots.append(tied)
    return roots.index(tied)
