"""Sums over a vertex's edges in pieces, and stages that split hubs by them.

    sum of 2,500 edges = (edges 0 to 1,023) + (1,024 to 2,047) + (the rest)

Every kernel over vertices adds in this order, on any device, so a GPU may
compute the pieces of a vertex in parallel. A stage computes the aggregates of
each piece that are one level deep; a second kernel joins the pieces of a hub,
for the next stage to read.

    max_u s_u, sum_u exp(s_u - m)  ->  stage 0: max_u s_u of each piece
                                       stage 1: sum_u exp(s_u - m) of each
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from torch_gsample.codegen.draws import VERTEX_ROW
from torch_gsample.codegen.expression import Expression, operand
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    Leaf,
    Output,
    Types,
    Unit,
    ordered,
    unit_of,
)

#: Edges of a piece, a power of two. Sums of larger vertices depend on it.
PIECE = 1 << 10

_EDGES = '    for (int64_t k = {}; k < {}; ++k) {{'
_PIECES = """\
    for (int64_t from = first, upto;; from = upto) {{
      upto = __builtin_expect(last - from > {0}, false) ? from + {0} : last;"""


def in_pieces(unit: Unit, sums: Iterable[Expression]) -> list[Expression]:
    """Returns the aggregates whose result depends on pieces.

    Args:
        unit (Unit): A unit of a vertex program.
        sums (Iterable[Expression]): Aggregates of a pass.
    """
    if unit.whole:
        return []
    return [node for node in sums if node.op not in ('max_in', 'min_in')]


def over_edges(body: Sequence[str], carry: Sequence[str]) -> list[str]:
    """Returns the loop over the edges of a vertex.

    Args:
        body (Sequence[str]): The statements of edge ``k``.
        carry (Sequence[str]): If sums are in pieces, those after each one but
            the last.
    """
    if not carry:
        return [_EDGES.format('first', 'last'), *body, '    }']
    inner = [_EDGES.format('from', 'upto'), *body, '    }']
    inner += ['    if (upto == last)', '      break;']
    inner += [f'    {line}' for line in carry]
    lines = '\n'.join(inner).split('\n')
    inner = [line if line[:1] == '#' else f'  {line}' for line in lines]
    return [_PIECES.format(PIECE), *inner, '    }']


@dataclass(frozen=True)
class Pieces:
    """The edges of the vertices that have most, in pieces.

    Args:
        vertices (torch.Tensor): int64, these hubs.
        bounds (torch.Tensor): The first piece of each hub, and their number.
        hub (torch.Tensor): The hub of each piece, in the dtype of bounds.
        first (torch.Tensor): The first edge of each piece.
        last (torch.Tensor): The edge after its last one.
    """

    vertices: Tensor
    bounds: Tensor
    hub: Tensor
    first: Tensor
    last: Tensor

    @classmethod
    def of(
        cls, indptr: Tensor, order: Tensor, least: int | None = None
    ) -> 'Pieces':
        """Splits the edges of hubs.

        Args:
            indptr (torch.Tensor): Where the edges of each vertex start.
            order (torch.Tensor): The vertices by descending degree, rounded to
                powers of two.
            least (int, optional): The edges of a hub, at least: a power of
                two, less one. Default: those of a piece.
        """
        # A class starts at a power of two less one.
        count = int((indptr.diff() >= (least or PIECE) - 1).sum())
        vertices = order[:count].long()
        start, end = indptr[vertices], indptr[vertices + 1]
        counts = (end - start + PIECE - 1) // PIECE
        zero = counts.new_zeros(1)
        bounds = torch.cat([zero, counts.cumsum(0, dtype=indptr.dtype)])
        hub = torch.repeat_interleave(counts.long())
        place = torch.arange(hub.numel(), device=hub.device) - bounds[hub]
        first = (start[hub] + place * PIECE).to(indptr.dtype)
        last = torch.minimum(first + PIECE, end[hub])
        return cls(vertices, bounds, hub.to(indptr.dtype), first, last)


@dataclass(frozen=True)
class Stage:
    """The aggregates of a level.

    Args:
        unit (Unit): Computes those of each piece, and values of edges.
        given (Tuple[int, ...]): The operands of the hubs' call that it reads.
        edges (Tuple[int, ...]): The outputs of the call that follow its
            aggregates.
        join (Unit, optional): Aggregates its results, as edges of a hub.
    """

    unit: Unit
    given: tuple[int, ...]
    edges: tuple[int, ...]
    join: Unit | None


@dataclass(frozen=True)
class Stages:
    """A unit over the order of a graph.

    Its hubs are computed by stages. The operands of their call are those of
    the unit, the ids of the hubs, and the aggregates of each stage.

    Args:
        rest (Unit): Computes all other vertices.
        stages (Tuple[Stage, ...]): Run in order.
        finish (Unit, optional): Computes the outputs of hubs.
        given (Tuple[int, ...]): The operands that it reads.
    """

    rest: Unit
    stages: tuple[Stage, ...]
    finish: Unit | None
    given: tuple[int, ...]

    @property
    def units(self) -> list[Unit]:
        """All kernels."""
        parts = [x for stage in self.stages for x in (stage.unit, stage.join)]
        found = *parts, self.rest, self.finish
        return [unit for unit in found if unit is not None]


@lru_cache(maxsize=1024)
def stages_of(unit: Unit) -> Stages:
    """Returns the stages of a unit.

    Args:
        unit (Unit): A unit of a vertex program.
    """
    types, center = Types(unit.leaves), unit.center
    rest = replace(unit, whole=True)
    nodes = ordered(output.root for output in unit.outputs)
    leaves = [*unit.leaves, Leaf('hub', center, torch.int64)]
    known: dict[Expression, Expression] = {}
    if center == DESTINATION:  # else it is the row of a neighbour
        row = Expression(VERTEX_ROW, torch.int64)
        known[row] = operand(len(unit.leaves), torch.int64)
    stages = []
    for level in range(max(types.level(x.root) for x in unit.outputs) + 1):
        sums = [
            node
            for node in nodes
            if node.op in AGGREGATES and types.level(node.args[0]) == level
        ]
        edges = [
            i
            for i, output in enumerate(unit.outputs)
            if output.kind == EDGE and types.level(output.root) == level
        ]
        axes = [tuple(sorted(types.axes(node))) for node in sums]
        outputs = [
            Output(_rewritten(node, known), center, of)
            for node, of in zip(sums, axes, strict=True)
        ]
        for i in edges:
            root = _rewritten(unit.outputs[i].root, known)
            outputs.append(replace(unit.outputs[i], root=root))
        if outputs:
            part, given = unit_of(center, leaves, unit.sizes, outputs)
            part = replace(part, index=unit.index, whole=True)
            join = _join(unit, sums, axes)
            stages.append(Stage(part, tuple(given), tuple(edges), join))
        for node, of in zip(sums, axes, strict=True):
            known[node] = operand(len(leaves), node.dtype)
            leaves.append(Leaf('aggregate', center, node.dtype, of))
    outputs = [
        replace(output, root=_rewritten(output.root, known))
        for output in unit.outputs
        if output.kind != EDGE
    ]
    if not outputs:
        return Stages(rest, tuple(stages), None, ())
    finish, given = unit_of(center, leaves, unit.sizes, outputs)
    finish = replace(finish, index=unit.index)
    return Stages(rest, tuple(stages), finish, tuple(given))


def _join(
    unit: Unit, sums: list[Expression], axes: list[tuple[int, ...]]
) -> Unit | None:
    """Returns the unit that joins the aggregates of pieces."""
    if not sums:
        return None
    leaves = [
        Leaf('piece', EDGE, node.dtype, of)
        for node, of in zip(sums, axes, strict=True)
    ]
    outputs = [
        Output(replace(node, args=(operand(i, node.dtype),)), unit.center, of)
        for i, (node, of) in enumerate(zip(sums, axes, strict=True))
    ]
    made, _ = unit_of(unit.center, leaves, unit.sizes, outputs)
    return replace(made, index=unit.index, whole=True)


def _rewritten(
    root: Expression, known: Mapping[Expression, Expression]
) -> Expression:
    """Replaces known parts of a value."""
    done: dict[Expression, Expression] = {}
    for node in ordered([root]):
        args = tuple(done[arg] for arg in node.args)
        done[node] = known.get(node) or replace(node, args=args)
    return done[root]


#: Runs a unit with operands; returns the results of vertices.
Compute = Callable[[Unit, list[Tensor]], list[Tensor]]


def over_hubs(
    unit: Unit,
    hubs: Pieces,
    operands: Sequence[Tensor],
    out: Sequence[Tensor],
    at_pieces: Callable[[Unit, list[Tensor], list[Tensor]], list[Tensor]],
    at_hubs: Compute,
) -> None:
    """Computes the rows of hubs, and of their edges.

    Args:
        unit (Unit): The unit.
        hubs (Pieces): The hubs.
        operands (Sequence[torch.Tensor]): Its operands.
        out (Sequence[torch.Tensor]): Its results.
        at_pieces (Callable): Runs a unit over the pieces as vertices; writes
            the last argument, the results of edges.
        at_hubs (Callable): Runs a unit over the hubs; pieces are their edges.
    """
    stages, vertices = stages_of(unit), hubs.vertices
    at_hub = [leaf.kind == unit.center for leaf in unit.leaves]
    values = [
        x.index_select(0, vertices) if of_hub else x
        for x, of_hub in zip(operands, at_hub, strict=True)
    ]
    values.append(vertices)  # the row of a draw
    for stage in stages.stages:
        given = [
            values[i]
            if i < len(at_hub) and not at_hub[i]
            else values[i].index_select(0, hubs.hub)
            for i in stage.given
        ]
        parts = at_pieces(stage.unit, given, [out[i] for i in stage.edges])
        if stage.join is not None:
            values += at_hubs(stage.join, parts)
    if stages.finish is not None:
        found = at_hubs(stages.finish, [values[i] for i in stages.given])
        kinds = [output.kind for output in unit.outputs]
        rows = [x for x, kind in zip(out, kinds, strict=True) if kind != EDGE]
        for x, of_hubs in zip(rows, found, strict=True):
            x.index_copy_(0, vertices, of_hubs)
