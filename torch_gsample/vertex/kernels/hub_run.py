"""Runs of programs at vertices with more in-edges than a tile.

The edges of such a vertex are split into parts, each a tile. The aggregates of
all parts are joined in edge order before the next unit reads them, so memory
holds the edges of one tile.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.unit import DESTINATION, EDGE
from torch_gsample.vertex.frontend.trace import Degree, Drawn
from torch_gsample.vertex.kernels.edge_tiles import (
    HUB,
    PIECE,
    Hubs,
    Tile,
    TileFunction,
    over_tiles,
)
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.kernels.run import MOST_KEY, Run
from torch_gsample.vertex.plan.plan import Plan
from torch_gsample.vertex.plan.stages import Stages
from torch_gsample.vertex.plan.step import Step

#: An odd stride between the keys of tiles.
_STEP = 0x1E3779B97F4A7C15


def tile_run(
    plan: Plan, tile: Tile, numbers: Sequence[int], tensors: Sequence[Tensor]
) -> Run:
    """Returns the run of a program on a tile.

    Args:
        plan (Plan): The program.
        tile (Tile): The tile.
        numbers (Sequence[int]): The known operands.
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
    """Returns the inputs of some steps.

    Args:
        plan (Plan): The program.
        steps (Sequence[Step]): The steps.
        is_known (Callable): Whether a computed operand is an input.
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


@dataclass(frozen=True)
class Whole:
    """The part of a call that runs on tiles of whole vertices.

    Args:
        run (Run): The call.
        numbers (Sequence[int]): The operands computed before any edge.
        tiles (Sequence[Tile]): The tiles.
        rows (Mapping[str, int]): Rows of values by graph type.
    """

    run: Run
    numbers: Sequence[int]
    tiles: Sequence[Tile]
    rows: Mapping[str, int]

    def results(self) -> list[Tensor | None]:
        """Returns the results of its vertices."""
        if not self.tiles:
            return [None] * len(self.kinds)
        operands = [self.run.operand(i) for i in self.numbers]
        function = TileFunction(
            tuple(self.run.plan.leaves[i].kind for i in self.numbers),
            *(self.kinds, self.on_tile),
        )
        return over_tiles(function, self.tiles, self.rows, operands)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The graph types of its results."""
        return tuple(step.kind for step in self.run.plan.result_steps)

    def on_tile(
        self, tile: Tile, tensors: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """Returns the results of a tile."""
        return tile_run(self.run.plan, tile, self.numbers, tensors).results()


class HubRun(Run):
    """A run of a program at the vertices with most edges.

    Args:
        whole (Whole): The part of the call at all other vertices; runs with
            the first stage, so gradients are summed once.
        stages (Stages): The steps of the program.
        hubs (Hubs): The vertices.
    """

    def __init__(self, whole: Whole, stages: Stages, hubs: Hubs):
        plan, outer = stages.plan, whole.run
        sizes = outer.sizes[0], hubs.vertices.numel()
        super().__init__(plan, outer.graph, sizes, outer.loops, {})
        self._whole, self._stages, self._hubs = whole, stages, hubs
        pieces = {HUB: sizes[1], PIECE: len(hubs.pieces)}
        self._rows = {**whole.rows, **pieces}
        #: The results of all other vertices, which follow those of the hubs.
        self.others: list[Tensor | None] | None = None

    def operand(self, number: int) -> Tensor:
        """Returns an operand with a row for each hub."""
        if number in self.operands:
            return self.operands[number]
        leaf = self.plan.leaves[number]
        if isinstance(self.plan.origins[number], Degree):
            x = self._hubs.degree.to(leaf.dtype).unsqueeze(1)
        elif number not in self._whole.numbers:
            return super().operand(number)
        else:
            x = self._whole.run.operand(number)
            if leaf.kind == DESTINATION:
                x = x.index_select(0, self._hubs.vertices)
        self.operands[number] = x
        return x

    def _done(self, step: Step, kind: str) -> Tensor:
        if step.unit is None and step.kind == EDGE:
            return self._over_pieces([step], [EDGE])[0]
        return super()._done(step, kind)

    def _fused(self, unit: int) -> list[Tensor]:
        roots, ties = self.plan.roots[unit], self._stages.ties
        results = {
            step.place for step in self.plan.result_steps if step.unit == unit
        }
        steps = [
            Step(root, -1, (), self.plan.types.kind(root), unit, place)
            for place, root in enumerate(roots)
        ]
        steps = [s for s in steps if s.kind != EDGE or s.place in results]
        kinds = [PIECE if s.kind == DESTINATION else EDGE for s in steps]
        parts = self._over_pieces(steps, kinds)
        found = {s.place: x for s, x in zip(steps, parts, strict=True)}
        out = dict(found)
        for step in steps:
            if step.kind == DESTINATION:
                count = ties.get((unit, step.place))
                tied = None if count is None else found[count]
                x = found[step.place]
                out[step.place] = self._joined(step.root.op, x, tied)
        return [out.get(place, parts[0]) for place in range(len(roots))]

    def _over_pieces(
        self, steps: Sequence[Step], kinds: Sequence[str]
    ) -> list[Tensor]:
        """Computes values at each part, and all values at other vertices."""
        plan, whole = self.plan, self._whole
        leaves = plan.leaves
        numbers = inputs_of(plan, steps, lambda i: leaves[i].kind != EDGE)
        # Operands of all vertices, then those of hubs alone.
        read = [i for i in numbers if i in whole.numbers]
        first = self.others is None
        if first:
            read = list(whole.numbers)
        more = [i for i in numbers if i not in read]

        def one(
            tile: Tile, tensors: Sequence[Tensor]
        ) -> Sequence[Tensor | None]:
            none = [None] * len(whole.kinds) if first else []
            if tile.hub is None:
                found = whole.on_tile(tile, tensors[: len(read)])
                return [*found, *[None] * len(steps)]
            run = tile_run(plan, tile, [*read, *more], tensors)
            return [*none, *(run._done(step, step.kind) for step in steps)]

        named = {DESTINATION: HUB}  # some of these belong to hubs only
        of_hubs = [named.get(leaves[i].kind, leaves[i].kind) for i in more]
        function = TileFunction(
            (*(leaves[i].kind for i in read), *of_hubs),
            (*(whole.kinds if first else ()), *kinds),
            one,
        )
        operands = [whole.run.operand(i) for i in read]
        operands += [self.operand(i) for i in more]
        tiles = [*(whole.tiles if first else ()), *self._hubs.pieces]
        out = over_tiles(function, tiles, self._rows, operands)
        if first:
            self.others = out[: len(whole.kinds)]
        return [x for x in out[-len(steps) :] if x is not None]

    def _joined(self, op: str, parts: Tensor, ties: Tensor | None) -> Tensor:
        """Joins the aggregates of the parts of each vertex, in order."""
        count = [0] * self.sizes[1]
        for piece in self._hubs.pieces:
            count[piece.hub or 0] += 1
        rows = parts.split(count)
        if ties is not None:
            pairs = zip(rows, ties.split(count), strict=True)
            return torch.cat([_Extreme.apply(op, *pair) for pair in pairs])
        add = torch.mul if op == 'prod_in' else torch.add
        return torch.cat([reduce(add, of.split(1)) for of in rows])


class Placed(torch.autograd.Function):
    """Inserts the results of hubs among those of other vertices.

    The gradient of the others needs no mask: their tiles do not read rows of
    hubs.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, of_hubs: Tensor, rows: Tensor) -> Tensor:
        """Writes rows of ``x`` in place."""
        ctx.save_for_backward(rows)
        ctx.mark_dirty(x)
        return x.index_copy_(0, rows, of_hubs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Returns the gradient, and that of the inserted rows."""
        return grad, grad.index_select(0, ctx.saved_tensors[0]), None


class _Extreme(torch.autograd.Function):
    """The maximum or minimum over parts; ties share the gradient."""

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
