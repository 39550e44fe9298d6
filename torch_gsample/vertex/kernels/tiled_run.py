"""Calls of programs that multiply or sort values of edges, a tile at a time.

    sum_u relu(x_u + x_v) @ W

A tile of edges is a small graph. The program runs on it: a kernel computes
``relu(x_u + x_v)`` of its edges, torch multiplies them, and a kernel adds up.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from torch_gsample.codegen.unit import EDGE, PARAMETER
from torch_gsample.torch_private import has_dispatch_modes, is_transformed
from torch_gsample.vertex.frontend.trace import (
    Degree,
    Drawn,
    Nested,
    Product,
    Quantile,
)
from torch_gsample.vertex.kernels.edge_tiles import (
    Tile,
    TileFunction,
    over_tiles,
    tile_size,
    tiles_of,
)
from torch_gsample.vertex.kernels.layouts import Loops, layouts_of
from torch_gsample.vertex.kernels.run import MOST_KEY, Run
from torch_gsample.vertex.plan.plan import Plan, Step

#: Keys of tiles differ by an odd number.
_STEP = 0x1E3779B97F4A7C15


def stores_edges(plan: Plan) -> bool:
    """Whether torch multiplies or sorts values of edges, but by type."""
    kinds = [type(origin) for origin in plan.origins]
    return Nested not in kinds and any(
        isinstance(origin, Quantile)
        or (isinstance(origin, Product) and origin.x.kind == EDGE)
        for origin in plan.origins
    )


def run_tiled(run: Run) -> list[Tensor] | None:
    """Returns the results of a call; none if it does not run by tiles.

    Args:
        run (Run): The call.
    """
    plan = run.plan
    if (
        torch.compiler.is_compiling()  # Dynamo does not read the plan
        or not stores_edges(plan)
        or is_transformed()
        or has_dispatch_modes()
        or run.num_edges <= _edges(plan)
    ):
        return None
    graph = layouts_of(run.graph, *run.sizes, run.loops)
    numbers = tile_inputs(plan)
    leaves = [plan.leaves[i] for i in numbers]

    def one(tile: Tile, tensors: Sequence[Tensor]) -> list[Tensor]:
        inner = Run(plan, list(tile.graph), tile.sizes, Loops.KEEP, {})
        for i, x in zip(numbers, tensors, strict=True):
            if isinstance(plan.origins[i], Drawn):
                x = (x + (tile.number * _STEP & MOST_KEY)) & MOST_KEY
            inner.operands[i] = x
        return inner.results()

    function = TileFunction(
        tuple(leaf.kind for leaf in leaves),
        tuple(step.kind for step in plan.result_steps),
        one,
    )
    tiles = tiles_of(graph, _edges(plan))
    found = over_tiles(
        function, tiles, graph, [run.operand(i) for i in numbers]
    )
    return [x for x in found if x is not None]


def _edges(plan: Plan) -> int:
    """Returns how many edges a tile has."""
    widths = [
        prod(plan.sizes[axis] for axis in leaf.axes)
        for leaf in plan.leaves
        if leaf.kind != PARAMETER
    ]
    return tile_size(max(widths))


def tile_inputs(plan: Plan) -> list[int]:
    """Returns the operands that are computed before tiles: none of edges.

    Args:
        plan (Plan): The program.
    """
    found: dict[int, None] = {}
    seen: set[int] = set()

    def visit(step: Step) -> None:
        numbers = step.operands
        if step.unit is not None:
            numbers = tuple(plan.operators[step.unit][1])
        for number in numbers:
            if number in seen:
                continue
            seen.add(number)
            origin = plan.origins[number]
            if isinstance(origin, Degree):
                continue
            if number not in plan.inputs or _is_before(plan, number):
                found[number] = None
                continue
            for part in plan.inputs[number]:
                visit(part)

    for step in plan.result_steps:
        visit(step)
    return sorted(found)


def _is_before(plan: Plan, number: int) -> bool:
    """Whether an operand is a product at vertices, before any edge."""
    origin = plan.origins[number]
    if not isinstance(origin, Product) or origin.x.kind == EDGE:
        return False
    return plan.depths[number] == 0
