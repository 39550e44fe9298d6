"""Runs programs that multiply or sort values of edges, a tile at a time.

    sum_u relu(x_u + x_v) @ W

A tile of edges is a small graph. The program runs on it: a kernel computes
``relu(x_u + x_v)`` of its edges, torch multiplies them, and a kernel sums.
"""

from math import prod
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from torch_gsample.codegen.unit import DESTINATION, EDGE, PARAMETER, SOURCE
from torch_gsample.torch_private import has_dispatch_modes, is_transformed
from torch_gsample.vertex.frontend.trace import (
    Degree,
    Product,
)
from torch_gsample.vertex.kernels.edge_tiles import (
    Hubs,
    tile_size,
    tiles_of,
)
from torch_gsample.vertex.kernels.hub_run import (
    HubRun,
    Placed,
    Whole,
    inputs_of,
)
from torch_gsample.vertex.kernels.layouts import layouts_of
from torch_gsample.vertex.kernels.run import Run
from torch_gsample.vertex.plan.plan import Plan
from torch_gsample.vertex.plan.stages import Stages, stages_of


def run_tiled(run: Run) -> list[Tensor] | None:
    """Returns the results of a call; None if it does not run by tiles.

    Args:
        run (Run): The call.
    """
    plan = run.plan
    if (
        torch.compiler.is_compiling()  # Dynamo cannot read the plan
        or not plan.stores_edges
        or is_transformed()
        or has_dispatch_modes()
        or run.num_edges <= _edges(plan)
    ):
        return None
    graph = layouts_of(run.graph, *run.sizes, run.loops)
    known = inputs_of(plan, plan.result_steps, lambda i: _is_before(plan, i))
    numbers = [i for i in known if not isinstance(plan.origins[i], Degree)]

    tiles, hubs = tiles_of(graph, _edges(plan))
    rows = {
        SOURCE: graph.num_sources,
        DESTINATION: graph.num_destinations,
        EDGE: graph.num_edges,
    }
    stages = None if hubs is None else _stages(plan)
    if hubs is None or stages is None:
        found = Whole(run, numbers, tiles, rows).results()
        return [x for x in found if x is not None]
    tiles = tiles[: -hubs.vertices.numel()]
    at_hubs = HubRun(Whole(run, numbers, tiles, rows), stages, hubs)
    return _placed(at_hubs.results(), at_hubs, hubs, rows)


def _placed(
    results: list[Tensor], run: HubRun, hubs: Hubs, rows: dict[str, int]
) -> list[Tensor]:
    """Inserts the results of split vertices among those of the others."""
    assert run.others is not None
    out = []
    for x, of_hubs, step in zip(
        *(run.others, results, run.plan.result_steps), strict=True
    ):
        places = hubs.vertices
        if step.kind == EDGE:
            places = hubs.edges
            of_hubs = of_hubs.index_select(0, places)
        if x is None:
            x = of_hubs.new_zeros((rows[step.kind], *of_hubs.shape[1:]))
        out.append(Placed.apply(x, of_hubs, places))
    return out


#: The stages of programs.
_known: WeakKeyDictionary[Plan, Stages | None] = WeakKeyDictionary()


def _stages(plan: Plan) -> Stages | None:
    if plan not in _known:
        _known[plan] = stages_of(plan)
    return _known[plan]


def _edges(plan: Plan) -> int:
    """Returns the number of edges of a tile."""
    widths = [
        prod(plan.sizes[axis] for axis in leaf.axes)
        for leaf in plan.leaves
        if leaf.kind != PARAMETER
    ]
    return tile_size(max(widths))


def _is_before(plan: Plan, number: int) -> bool:
    """Whether an operand is a product at vertices, before any edge."""
    origin = plan.origins[number]
    if not isinstance(origin, Product) or origin.x.kind == EDGE:
        return False
    return plan.depths[number] == 0
