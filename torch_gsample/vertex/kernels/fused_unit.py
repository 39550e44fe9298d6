"""Compiled units, shared by all programs that have them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from torch_gsample.codegen.cpp import cpp_source, unit_number
from torch_gsample.codegen.evaluate import evaluate
from torch_gsample.codegen.kernel import load_unit
from torch_gsample.codegen.loaded import Loaded
from torch_gsample.codegen.pieces import over_hubs, stages_of
from torch_gsample.codegen.run_cuda import run_vertex_unit
from torch_gsample.codegen.unit import DESTINATION, EDGE, Types, Unit
from torch_gsample.locks import new_lock
from torch_gsample.vertex.frontend.trace import DEGREE
from torch_gsample.vertex.kernels.ends import GraphEnds
from torch_gsample.vertex.kernels.layout import Layout, SplitHubs
from torch_gsample.vertex.kernels.layouts import Layouts
from torch_gsample.vertex.plan.differentiate import Backward


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
        self._degrees = [
            (i, leaf.dtype)
            for i, leaf in enumerate(unit.leaves)
            if leaf.name == DEGREE
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
        self._stages: dict[torch.dtype, dict[Unit, Loaded] | None] = {}

    def source(self, index: torch.dtype = torch.int32) -> str:
        """Returns its C++ source."""
        return cpp_source(replace(self.unit, index=index))

    def run(self, graph: Layouts, operands: Sequence[Tensor]) -> list[Tensor]:
        """Computes the outputs, ``[rows, width]`` each."""
        if graph.incoming.indptr.is_cuda:
            return self.run_on_gpu(graph, operands)
        layout, tensors = self._inputs(graph, operands)
        index = layout.indptr.dtype
        kernel = self._loaded(index, layout.has_hubs)
        if kernel is None:
            return self._evaluated(graph, tensors)
        given = [tensors[i] for i in range(len(self.unit.leaves))]
        split, order = layout.split(torch.get_num_threads()), layout.order
        if split is not None and self._loaded_stages(index) is None:
            split = None
        out = kernel.over_graph(
            given,
            (
                *(layout.indptr, layout.indices, layout.edge_id),
                order if split is None else split.order,
            ),
            *(layout.num_rows, graph.num_edges),
        )
        if split is not None:
            sizes = layout.num_rows, graph.num_edges
            self._over_hubs(split, index, sizes, given, out)
        return out

    def _over_hubs(
        self,
        split: SplitHubs,
        index: torch.dtype,
        sizes: tuple[int, int],
        operands: Sequence[Tensor],
        out: Sequence[Tensor],
    ) -> None:
        """Computes the rows of hubs, whose pieces threads share."""
        kernels, hubs = self._loaded_stages(index), split.pieces
        assert kernels is not None
        of_hubs = hubs.bounds, hubs.hub, None, None
        counts = hubs.vertices.numel(), hubs.hub.numel()

        def at_pieces(
            unit: Unit, given: list[Tensor], of_edges: list[Tensor]
        ) -> list[Tensor]:
            graph = *split.graph, None
            found = kernels[unit].over_graph(given, graph, *sizes)
            count = len(found) - len(of_edges)
            for rows, x in zip(of_edges, found[count:], strict=True):
                rows.index_copy_(0, split.edge, x.index_select(0, split.edge))
            return found[:count]

        def at_hubs(unit: Unit, given: list[Tensor]) -> list[Tensor]:
            return kernels[unit].over_graph(given, of_hubs, *counts)

        unit = self._indexed(index)
        over_hubs(unit, hubs, operands, out, at_pieces, at_hubs)

    def _loaded_stages(self, index: torch.dtype) -> dict[Unit, Loaded] | None:
        """Compiles and loads the stages of hubs; None if that fails."""
        if index not in self._stages:
            stages = stages_of(self._indexed(index))
            units = [x for x in stages.units if x is not stages.rest]
            kernels = {unit: load_unit(unit) for unit in units}
            loaded = {u: x for u, x in kernels.items() if x is not None}
            self._stages[index] = None if len(loaded) < len(units) else loaded
        return self._stages[index]

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
        for i, dtype in self._degrees:
            tensors[i] = graph.incoming.degree(dtype)
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

    @cached_property
    def read(self) -> set[int]:
        """The operands of the unit and saved values that they read."""
        return {
            kept[i]
            for part, kept in self.parts
            if part is not None
            for i in part.given
        }
