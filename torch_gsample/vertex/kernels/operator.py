"""Fused units as one operator, with a fake kernel and a gradient."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    SOURCE,
    Output,
    Unit,
    ordered,
    unit_of,
)
from torch_gsample.torch_private import (
    has_dispatch_modes,
    is_transformed,
    may_require_grad,
)
from torch_gsample.vertex.kernels.fused_unit import (
    Fused,
    Gradients,
    Parts,
    fused,
    fused_units,
)
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.kernels.layouts import Layouts
from torch_gsample.vertex.kernels.relations import (
    Level,
    layouts_at,
    level_sizes,
)
from torch_gsample.vertex.plan.differentiate import Backward, differentiate
from torch_gsample.vertex.plan.storage import with_half


def training(unit: Unit, wanted: Sequence[int]) -> Fused:
    """Returns a differentiable version of a unit.

    Its outputs are those of the unit, followed by the values that gradients
    need.

    Args:
        unit (Unit): The unit.
        wanted (Sequence[int]): The operands that need gradients.
    """
    plan = with_half(unit, differentiate(unit, wanted))
    first = len(unit.leaves)
    outputs = list(unit.outputs)
    used = _used(plan)
    saved: list[int | None] = []
    for i, node in enumerate(plan.saved):
        if first + i not in used:
            saved.append(None)  # unused
            continue
        leaf = plan.leaves[first + i]
        known = [(output.root, output.half) for output in outputs]
        if (node, leaf.half) not in known:
            known.append((node, leaf.half))
            output = Output(node, leaf.kind, leaf.axes, leaf.half)
            outputs.append(output)
        saved.append(known.index((node, leaf.half)))
    count, parts = len(unit.outputs), parts_of(unit, plan)
    gradients = Gradients(tuple(wanted), plan, tuple(saved), count, parts)
    return fused(replace(unit, outputs=tuple(outputs)), gradients)


def parts_of(unit: Unit, plan: Backward) -> Parts:
    """Returns the operators of gradients.

    Args:
        unit (Unit): The differentiated unit.
        plan (Backward): Its gradients.
    """
    sides = [
        unit.center,
        SOURCE if unit.center == DESTINATION else DESTINATION,
    ]
    parts: list[tuple[Fused | None, list[int]]] = []
    for center, results in zip(sides, plan.outputs, strict=True):
        if not results:
            parts.append((None, []))
            continue
        part, kept = unit_of(center, plan.leaves, unit.sizes, results)
        parts.append((fused(part), kept))
    return tuple(parts)


def _used(plan: Backward) -> set[int]:
    roots = [output.root for side in plan.outputs for output in side]
    return {int(n.value or 0) for n in ordered(roots) if n.op == 'operand'}


@torch.compiler.assume_constant_result
def _variant(number: int, wanted: tuple[int, ...]) -> int:
    """Returns the operator that computes a subset of gradients."""
    unit = fused_units[number]
    if wanted not in unit.variants:
        made = training(unit.unit, [unit.given[i] for i in wanted])
        unit.variants[wanted] = made
        assert made.backward is not None
        for part in (made, *(part for part, _ in made.backward.parts)):
            if part is not None:
                part.names |= unit.names
    return unit.variants[wanted].number


def run_unit(
    number: int,
    graph: Sequence[Tensor],
    types: Tensor | None,
    sizes: Sequence[int],
    loops: Loops,
    level: Level,
    operands: Sequence[Tensor],
) -> list[Tensor]:
    """Runs a unit under autograd.

    Args:
        number (int): The number of its operator.
        graph (Sequence[torch.Tensor]): The tensors of the graph.
        types (torch.Tensor, optional): The type of each edge.
        sizes (Sequence[int]): Sources, destinations, rows of features of
            edges, and pairs of a vertex and a type.
        loops (Loops): Treatment of self-loops.
        level (Level): The edges of the unit.
        operands (Sequence[torch.Tensor]): The tensors of all leaves except the
            degree.

    Returns:
        List[torch.Tensor]: ``[rows, width]`` each, and the values that
        gradients need.
    """
    wanted: tuple[int, ...] = ()
    transformed = is_transformed()
    if transformed:  # which may differentiate at several levels
        wanted = tuple(
            i for i, x in enumerate(operands) if may_require_grad(x)
        )
    elif torch.is_grad_enabled():
        wanted = tuple(i for i, x in enumerate(operands) if x.requires_grad)
    if wanted:
        number = _variant(number, wanted)
    call = number, graph, types, sizes, int(loops), int(level)
    if transformed:
        return list(differentiable[1].apply(*call, *operands))
    if not is_direct(operands):
        return torch.ops.gsample.vertex_unit(*call, list(operands))
    if wanted:
        return list(differentiable[0].apply(*call, *operands))
    return run_fused(*call, operands)


def is_direct(operands: Sequence[Tensor]) -> bool:
    """Whether the dispatcher, as slow as a small batch, can be bypassed."""
    return not (
        torch.compiler.is_compiling()
        or has_dispatch_modes()
        or any(x.device.type not in ('cpu', 'cuda') for x in operands[:1])
        or is_transformed()
        or any(type(x) not in _PLAIN for x in operands)
    )


#: Other tensor classes may intercept operators, or have no memory.
_PLAIN = {Tensor, torch.nn.Parameter}
#: Units without the dispatcher: the functions of autograd and of transforms,
#: set when defined.
differentiable: list[Any] = []


def rows_of(sizes: Sequence[Any], level: int) -> dict[str, Any]:
    """Returns the number of rows of features by graph type."""
    rows = level_sizes(sizes, level)
    return dict(zip(('S', DESTINATION, EDGE), rows, strict=True))


def run_fused(
    unit: int,
    graph: Sequence[Tensor],
    types: Tensor | None,
    sizes: Sequence[int],
    loops: int,
    level: int,
    operands: Sequence[Tensor],
) -> list[Tensor]:
    """Implements ``gsample::vertex_unit`` on any device."""
    if unit not in fused_units:
        raise ValueError(
            f"vertex_unit: 'unit' must be made in this process (got {unit})"
        )
    made = edges_at(graph, types, sizes, loops, level)
    return fused_units[unit].run(made, operands)


def edges_at(
    graph: Sequence[Tensor],
    types: Tensor | None,
    sizes: Sequence[int],
    loops: int,
    level: int,
) -> Layouts:
    """Returns the edges of a unit, whose features have a row for each."""
    made = layouts_at(graph, types, sizes, Loops(loops), Level(level))
    rows = level_sizes(sizes, level)[2]
    if made.num_edges != rows:
        raise ValueError(
            f'vertex_program: features of edges must have {made.num_edges} '
            f'rows (got {rows})'
        )
    return made


torch.library.impl('gsample::vertex_unit', ('cpu', 'cuda'))(run_fused)


@torch.library.register_fake('gsample::vertex_unit')
def _fake(
    unit: int,
    graph: Sequence[Tensor],
    types: Tensor | None,
    sizes: Sequence[int],
    loops: int,
    level: int,
    operands: Sequence[Tensor],
) -> list[Tensor]:
    return fused_units[unit].fake(rows_of(sizes, level), graph[0])
