"""Fused units as one operator, with a fake kernel and a gradient."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from torch_gsample.codegen.cpp import cpp_source, unit_number
from torch_gsample.codegen.evaluate import evaluate
from torch_gsample.codegen.kernel import load_unit
from torch_gsample.codegen.loaded import Loaded
from torch_gsample.codegen.run_cuda import run_vertex_unit
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    SOURCE,
    Output,
    Types,
    Unit,
    ordered,
    unit_of,
)
from torch_gsample.locks import new_lock
from torch_gsample.torch_private import (
    has_dispatch_modes,
    is_transformed,
    may_require_grad,
)
from torch_gsample.vertex.frontend.trace import DEGREE
from torch_gsample.vertex.kernels.ends import GraphEnds
from torch_gsample.vertex.kernels.layouts import Layout, Layouts, Loops
from torch_gsample.vertex.kernels.relations import (
    Level,
    layouts_at,
    level_sizes,
)
from torch_gsample.vertex.plan.differentiate import Backward, differentiate
from torch_gsample.vertex.plan.storage import with_half


class Fused:
    """A unit that runs as an operator.

    Args:
        unit (Unit): The unit.
        backward (Gradients, optional): The operators of its gradients.
    """

    def __init__(self, unit: Unit, backward: 'Gradients | None' = None):
        self.unit, self.backward = unit, backward
        wanted = None if backward is None else backward.wanted
        #: The operands that do not come from the graph.
        self.given = [
            i for i, leaf in enumerate(unit.leaves) if leaf.name != DEGREE
        ]
        #: The programs that use it.
        self.names: set[str] = set()
        self.number = unit_number(unit, wanted)
        #: Operators of gradients, by the operands that need them.
        self.variants: dict[tuple[int, ...], Fused] = {}
        #: Operators of tangents, by the operands that have tangents.
        self.tangents: dict[tuple[int, ...], Any] = {}
        self._units: dict[torch.dtype, Unit] = {}
        self._kernels: dict[tuple[torch.dtype, bool], Loaded | None] = {}

    def source(self, index: torch.dtype = torch.int32) -> str:
        """Returns its C++ source."""
        return cpp_source(replace(self.unit, index=index))

    def run(self, graph: Layouts, operands: Sequence[Tensor]) -> list[Tensor]:
        """Computes the outputs, ``[rows, width]`` each."""
        if graph.incoming.indptr.is_cuda:
            return self.run_on_gpu(graph, operands)
        layout, tensors = self._inputs(graph, operands)
        kernel = self._loaded(layout.indptr.dtype, layout.has_hubs)
        if kernel is None:
            return self._evaluated(graph, tensors)
        return kernel.over_graph(
            [tensors[i] for i in range(len(self.unit.leaves))],
            (layout.indptr, layout.indices, layout.edge_id, layout.order),
            *(layout.num_rows, graph.num_edges),
        )

    def _loaded(self, index: torch.dtype, has_hubs: bool) -> Loaded | None:
        """Compiles and loads the unit once; None if that fails."""
        key = index, has_hubs
        if key not in self._kernels:  # without pieces: for speed
            unit = replace(self._indexed(index), whole=not has_hubs)
            self._kernels[key] = load_unit(unit)
        return self._kernels[key]

    def _indexed(self, index: torch.dtype) -> Unit:
        """Returns the unit over a graph of some dtype."""
        if index not in self._units:
            self._units[index] = replace(self.unit, index=index)
        return self._units[index]

    def run_on_gpu(
        self, graph: Layouts, operands: Sequence[Tensor]
    ) -> list[Tensor]:
        """Computes the outputs on a GPU."""
        layout, tensors = self._inputs(graph, operands)
        out = run_vertex_unit(
            self._indexed(layout.indptr.dtype),
            (layout.indptr, layout.indices, layout.edge_id, layout.order),
            layout.num_rows,
            graph.num_edges,
            [tensors[i] for i in range(len(self.unit.leaves))],
            layout.hubs,
        )
        return self._evaluated(graph, tensors) if out is None else out

    def _inputs(
        self, graph: Layouts, operands: Sequence[Tensor]
    ) -> tuple[Layout, dict[int, Tensor]]:
        """Returns the edges of the unit, and all operands."""
        layout = graph.incoming
        if self.unit.center != DESTINATION:
            layout = graph.outgoing
        tensors = dict(zip(self.given, operands, strict=True))
        for i, leaf in enumerate(self.unit.leaves):
            if leaf.name == DEGREE:
                tensors[i] = graph.incoming.degree(leaf.dtype)
        return layout, tensors

    def _evaluated(
        self, graph: Layouts, tensors: dict[int, Tensor]
    ) -> list[Tensor]:
        unit = self.unit
        rows = {DESTINATION: graph.num_destinations, EDGE: graph.num_edges}
        types, ends = Types(unit.leaves), GraphEnds(graph)
        roots = [output.root for output in unit.outputs]
        found = evaluate(roots, types, unit.sizes, tensors, ends)
        out = []
        for value, output in zip(found, unit.outputs, strict=True):
            shape = [
                size if axis in output.axes else 1
                for axis, size in enumerate(unit.sizes)
            ]
            count = rows.get(output.kind, graph.num_sources)
            if output.kind == EDGE:
                value = ends.moved(value, types.kind(output.root), EDGE)
                value = value.expand(graph.incoming.indices.numel(), *shape)
                value = graph.incoming.scatter(value, count)
            value = value.expand(count, *shape)
            # A copy: autograd forbids in-place changes of a view.
            value = value.reshape(count, -1).to(output.memory, copy=True)
            out.append(value.contiguous())
        return out

    def fake(self, rows: dict[str, Any], like: Tensor) -> list[Tensor]:
        """Returns outputs without values."""
        return [
            like.new_empty(
                (rows[output.kind], self.unit.width(output.axes)),
                dtype=output.memory,
            )
            for output in self.unit.outputs
        ]


#: The live units, by a hash of their content.
fused_units: WeakValueDictionary[int, Fused] = WeakValueDictionary()
_lock = new_lock()


def fused(unit: Unit, backward: 'Gradients | None' = None) -> Fused:
    """Returns the operator of a unit; equal units share it.

    Args:
        unit (Unit): The unit.
        backward (Gradients, optional): The operators of its gradients.
    """
    made = Fused(unit, backward)
    with _lock:  # an object that another one replaces would lose its number
        return fused_units.setdefault(made.number, made)


#: For the units at both ends: the operator and its operands.
Parts = tuple[tuple[Fused | None, list[int]], ...]


@dataclass(frozen=True)
class Gradients:
    """The operators of the gradients of a unit.

    Args:
        wanted (Tuple[int, ...]): The operands that need gradients.
        plan (Backward): The plan of the gradients.
        saved (Tuple[int, ...]): The outputs of the unit that they read, if
            any.
        num_results (int): Outputs of the unit that have gradients.
        parts (Tuple): For each of the two units, the operator, if any, and its
            operands.
        again (Dict[Tuple[int, ...], Tuple[Backward, Tuple]]): Their
            replacements if gradients are differentiated, by the outputs that
            have gradients (``derivatives.py``).
    """

    wanted: tuple[int, ...]
    plan: Backward
    saved: tuple[int | None, ...]
    num_results: int
    parts: Parts
    again: dict[tuple[int, ...], tuple[Backward, Parts]] = field(
        default_factory=dict
    )

    @property
    def read(self) -> set[int]:
        """The operands of the unit and saved values that they read."""
        return {
            kept[i]
            for part, kept in self.parts
            if part is not None
            for i in part.given
        }


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
    call = number, list(graph), types, list(sizes), int(loops), int(level)
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
    made = layouts_at(graph, types, sizes, Loops(loops), Level(level))
    if made.num_edges != rows_of(sizes, level)[EDGE]:
        raise ValueError(
            f'vertex_program: features of edges must have {made.num_edges} '
            f'rows (got {rows_of(sizes, level)[EDGE]})'
        )
    return fused_units[unit].run(made, operands)


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
