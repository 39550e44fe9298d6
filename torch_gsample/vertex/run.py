"""One call of a vertex program: its steps, one after the other."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.vertex_unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    operands_of,
)
from torch_gsample.vertex.evaluate import evaluate
from torch_gsample.vertex.graph import Loops, graph_of
from torch_gsample.vertex.operator import run_unit
from torch_gsample.vertex.plan import Computed, Plan, Step
from torch_gsample.vertex.relations import Relations
from torch_gsample.vertex.trace import (
    RELATION,
    Degree,
    Given,
    Nested,
    Product,
)
from torch_gsample.vertex.values import shape_of

Feature = Tensor | tuple[Tensor | None, Tensor | None]


def ends(feature: Feature) -> dict[str, Tensor]:
    """Returns features of sources, destinations and edges."""
    if isinstance(feature, tuple):
        kinds = zip((SOURCE, DESTINATION), feature, strict=True)
        return {kind: x for kind, x in kinds if x is not None}
    return dict.fromkeys((SOURCE, DESTINATION, EDGE), feature)


class Run:
    """One call of a program."""

    def __init__(
        self,
        plan: Plan,
        graph: list[Tensor],
        sizes: tuple[int, int],
        loops: Loops,
        features: dict[str, Feature],
    ):
        self._plan, self._graph = plan, graph
        self._sizes, self._loops = sizes, loops
        self._features = features
        self._operands: dict[int, Tensor] = {}
        self._units: dict[int, list[Tensor]] = {}
        self._relations: Relations | None = None

    def results(self) -> Any:
        """Returns what the program returns."""
        plan = self._plan
        found = []
        for step, dims in zip(
            plan.result_steps, plan.result_dims, strict=True
        ):
            value = self._done(step, DESTINATION)
            found.append(value.reshape(-1, *shape_of(dims)))
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def _num_edges(self) -> int:
        """Rows of features of edges."""
        if len(self._graph) > 1:
            count = self._graph[1].shape[0]
        else:
            count = self._graph[0].shape[1]
        loops = min(self._sizes) if self._loops == Loops.REPLACE else 0
        return count + loops

    def _value(self, root: Expression, kind: str) -> Tensor:
        """Returns a value, ``[rows, width]``."""
        return self._done(self._plan.step(root), kind)

    def _done(self, step: Step, kind: str) -> Tensor:
        if step.unit is not None:
            if step.unit not in self._units:
                self._units[step.unit] = self._fused(step.unit)
            return self._units[step.unit][step.place]
        return self._evaluated(step.root, kind)

    def _evaluated(self, root: Expression, kind: str) -> Tensor:
        """Computes a value of vertices, types or parameters with torch."""
        plan = self._plan
        types = plan.types
        numbers = operands_of([root])
        tensors = {number: self._operand(number) for number in numbers}
        if RELATION in {types.leaves[n].kind for n in numbers}:
            for number in numbers:
                if types.leaves[number].kind == DESTINATION:
                    place = self._of_types().vertex
                    tensors[number] = tensors[number].index_select(0, place)
        [value] = evaluate([root], types, plan.sizes, tensors)
        axes = types.axes(root)
        shape = [
            size if axis in axes else 1 for axis, size in enumerate(plan.sizes)
        ]
        count = value.shape[0]
        if types.kind(root) == PARAMETER and kind == DESTINATION:
            count = self._sizes[1]
        return value.expand(count, *shape).reshape(count, -1)

    def _fused(self, unit: int) -> list[Tensor]:
        number, given = self._plan.operators[unit]
        operands = [self._operand(i) for i in given]
        sizes = (*self._sizes, self._num_edges)
        return run_unit(number, self._graph, sizes, self._loops, operands)

    def _operand(self, number: int) -> Tensor:
        if number not in self._operands:
            self._operands[number] = self._made(number)
        return self._operands[number]

    def _made(self, number: int) -> Tensor:
        """Computes an operand."""
        origin = self._plan.origins[number]
        leaf = self._plan.leaves[number]
        if isinstance(origin, Given):
            if origin.tensor is not None:
                return origin.tensor
            feature = self._features[origin.name]
            if leaf.kind in (PARAMETER, RELATION):
                assert isinstance(feature, Tensor)
                return feature
            x = ends(feature)[leaf.kind]
            if leaf.kind == EDGE and x.shape[0] != self._num_edges:
                raise ValueError(
                    f'vertex_program: {origin.name!r} must have '
                    f'{self._num_edges} rows, one for each edge (got '
                    f'{x.shape[0]})'
                )
            return x
        if isinstance(origin, Computed):
            return self._value(origin.root, DESTINATION)
        if isinstance(origin, Product):
            return self._product(origin)
        if isinstance(origin, Nested):
            return self._nested(number, origin)
        assert isinstance(origin, Degree)
        graph = graph_of(self._graph, *self._sizes, self._loops)
        return graph.incoming.degree(leaf.dtype)

    def _product(self, origin: Product) -> Tensor:
        """Projects features where they live, with torch."""
        if origin.x.kind == RELATION and origin.x.dtype == torch.int64:
            weight = self._operand(int(origin.weight.expr.value or 0))
            return weight.index_select(0, self._of_types().type)
        root = self._plan.resolved(origin.x.expr)
        x = self._value(root, origin.x.kind)
        x = x.reshape(-1, *shape_of(origin.x.dims))
        weight = self._parameter(origin.weight)
        if origin.transposed:
            weight = weight.transpose(-1, -2)
        if origin.by_type:
            return self._of_types().product(x, weight)
        return x @ weight

    def _parameter(self, weight: Any) -> Tensor:
        root = self._plan.resolved(weight.expr)
        value = self._value(root, PARAMETER)
        return value.reshape(shape_of(weight.dims))

    def _of_types(self) -> Relations:
        """Returns the edges of each type of each vertex."""
        if self._relations is None:
            types = self._features.get('type')
            if not isinstance(types, Tensor):
                raise ValueError(
                    "vertex_program: 'type' must be given for by_type: the "
                    'type of each edge'
                )
            self._relations = Relations.of(
                self._graph, self._sizes, self._loops, types
            )
        return self._relations

    def _nested(self, number: int, origin: Nested) -> Tensor:
        """Aggregates the edges of each type, or the types."""
        unit, given = self._plan.levels[number]
        relations = self._of_types()
        operands = []
        outer = origin.body.kind == RELATION
        for i in given:
            x = self._operand(i)
            if self._plan.leaves[i].kind == DESTINATION and not outer:
                x = x.index_select(0, relations.vertex)
            operands.append(x)
        graph, sizes = relations.level(outer)
        return run_unit(unit, graph, sizes, Loops.KEEP, operands)[0]
