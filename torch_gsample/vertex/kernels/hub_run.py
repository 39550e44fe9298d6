"""Runs of programs at vertices with more in-edges than a tile.

The edges of such a vertex are in parts, each a tile. The aggregates of all
parts are joined in the order of the edges, then the next unit reads them: no
more edges than a tile has are in memory.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.unit import DESTINATION, EDGE, SOURCE
from torch_gsample.vertex.frontend.trace import Degree, Drawn
from torch_gsample.vertex.kernels.edge_tiles import (
    PIECE,
    Hubs,
    Tile,
    TileFunction,
    over_tiles,
)
from torch_gsample.vertex.kernels.layouts import Loops
from torch_gsample.vertex.kernels.run import MOST_KEY, Run
from torch_gsample.vertex.plan.plan import Plan, Step
from torch_gsample.vertex.plan.stages import Stages

#: Keys of tiles differ by an odd number.
_STEP = 0x1E3779B97F4A7C15


def tile_run(
    plan: Plan, tile: Tile, numbers: Sequence[int], tensors: Sequence[Tensor]
) -> Run:
    """Returns the run of a program on a tile.

    Args:
        plan (Plan): The program.
        tile (Tile): The tile.
        numbers (Sequence[int]): The operands that are known.
        tensors (Sequence[torch.Tensor]): Their rows.
    """
    inner = Run(plan, list(tile.graph), tile.sizes, Loops.KEEP, {})
    for i, x in zip(numbers, tensors, strict=True):
        if isinstance(plan.origins[i], Drawn):
            x = (x + (tile.number * _STEP & MOST_KEY)) & MOST_KEY
        inner.operands[i] = x
    return inner


def inputs_of(
    plan: Plan, steps: Sequence[Step], is_known: Callable[[int], bool]
) -> list[int]:
    """Returns the operands that are known before some steps.

    Args:
        plan (Plan): The program.
        steps (Sequence[Step]): The steps.
        is_known (Callable): Whether a computed operand is one of these.
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
            if number not in plan.inputs or is_known(number):
                found[number] = None
                continue
            for part in plan.inputs[number]:
                visit(part)

    for step in steps:
        visit(step)
    return sorted(found)


class HubRun(Run):
    """A run of a program at the vertices with most edges.

    Args:
        outer (Run): The run at all vertices.
        stages (Stages): The steps of the program.
        hubs (Hubs): The vertices.
        known (Sequence[int]): Operands that are computed before edges are
            seen.
    """

    def __init__(
        self, outer: Run, stages: Stages, hubs: Hubs, known: Sequence[int]
    ):
        plan = stages.plan
        sizes = outer.sizes[0], hubs.vertices.numel()
        super().__init__(plan, outer.graph, sizes, outer.loops, {})
        self._stages, self._hubs = stages, hubs
        self._rows = {
            SOURCE: sizes[0],
            DESTINATION: sizes[1],
            EDGE: outer.num_edges,
            PIECE: len(hubs.pieces),
        }
        for number in known:
            x = outer.operand(number)
            if plan.leaves[number].kind == DESTINATION:
                x = x.index_select(0, hubs.vertices)
            self.operands[number] = x
        for number, origin in enumerate(plan.origins):
            if isinstance(origin, Degree):
                degree = hubs.degree.to(plan.leaves[number].dtype)
                self.operands[number] = degree.unsqueeze(1)

    def _done(self, step: Step, kind: str) -> Tensor:
        if step.unit is None and step.kind == EDGE:
            return self._over_pieces([step], [EDGE])[0]
        return super()._done(step, kind)

    def _fused(self, unit: int) -> list[Tensor]:
        roots = self.plan.roots[unit]
        steps = [
            Step(root, -1, (), self.plan.types.kind(root), unit, place)
            for place, root in enumerate(roots)
        ]
        wanted = {
            step.place for step in self.plan.result_steps if step.unit == unit
        }
        kept = [s for s in steps if s.kind != EDGE or s.place in wanted]
        kinds = [PIECE if s.kind == DESTINATION else EDGE for s in kept]
        found: dict[int, Tensor] = {
            step.place: x
            for step, x in zip(
                kept, self._over_pieces(kept, kinds), strict=True
            )
        }
        for step in kept:
            if step.kind == DESTINATION and step.place not in self._counts(
                unit
            ):
                count = self._stages.ties.get((unit, step.place))
                ties = None if count is None else found[count]
                x = found[step.place]
                found[step.place] = self._joined(step.root.op, x, ties)
        return [found.get(i, self._hubs.degree) for i in range(len(roots))]

    def _counts(self, unit: int) -> set[int]:
        """The outputs of a unit that count ties alone."""
        ties = self._stages.ties
        return {at for (number, _), at in ties.items() if number == unit}

    def _over_pieces(
        self, steps: Sequence[Step], kinds: Sequence[str]
    ) -> list[Tensor]:
        plan = self.plan
        leaves = plan.leaves
        numbers = inputs_of(plan, steps, lambda i: leaves[i].kind != EDGE)

        def one(tile: Tile, tensors: Sequence[Tensor]) -> list[Tensor]:
            run = tile_run(plan, tile, numbers, tensors)
            return [run._done(step, step.kind) for step in steps]

        function = TileFunction(
            tuple(leaves[i].kind for i in numbers), tuple(kinds), one
        )
        inputs = [self.operand(i) for i in numbers]
        out = over_tiles(function, self._hubs.pieces, self._rows, inputs)
        return [x for x in out if x is not None]

    def _joined(self, op: str, parts: Tensor, ties: Tensor | None) -> Tensor:
        """Joins the aggregates of the parts of each vertex, in their order."""
        count = [0] * self.sizes[1]
        for piece in self._hubs.pieces:
            count[piece.first] += 1
        rows = parts.split(count)
        if ties is not None:
            pairs = zip(rows, ties.split(count), strict=True)
            return torch.cat([_Extreme.apply(op, *pair) for pair in pairs])
        add = torch.mul if op == 'prod_in' else torch.add
        return torch.cat([reduce(add, of.split(1)) for of in rows])


class _Extreme(torch.autograd.Function):
    """The largest or smallest of parts; edges that attain it share."""

    @staticmethod
    def forward(ctx: Any, op: str, parts: Tensor, ties: Tensor) -> Tensor:
        of = torch.amax if op == 'max_in' else torch.amin
        out = of(parts, 0, keepdim=True)
        share = ties.masked_fill(parts != out, 0.0)
        ctx.save_for_backward(share / share.sum(0))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        [share] = ctx.saved_tensors
        return None, share * grad, None
