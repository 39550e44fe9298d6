"""One call of a vertex program: its steps in order."""

import torch
from torch import Tensor

import torch_gsample.vertex.kernels.autograd  # noqa: F401  # gradients of units
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
)
from torch_gsample.torch_private import is_transformed, without_functorch
from torch_gsample.vertex.frontend.kinds import RELATION
from torch_gsample.vertex.frontend.precision import cast
from torch_gsample.vertex.frontend.trace import (
    Degree,
    Drawn,
    Given,
    Nested,
    Product,
    Quantile,
)
from torch_gsample.vertex.frontend.values import shape_of
from torch_gsample.vertex.kernels.bilinear import call
from torch_gsample.vertex.kernels.layout import Layout, Loops
from torch_gsample.vertex.kernels.layouts import layouts_of
from torch_gsample.vertex.kernels.operator import run_unit
from torch_gsample.vertex.kernels.products import product_by_type
from torch_gsample.vertex.kernels.quantiles import quantiles
from torch_gsample.vertex.kernels.relations import Level
from torch_gsample.vertex.plan.plan import Plan, evaluate_step
from torch_gsample.vertex.plan.projections import Projection
from torch_gsample.vertex.plan.step import Computed, Step

#: Upper bound of keys of random numbers.
MOST_KEY = (1 << 63) - 1

Feature = Tensor | tuple[Tensor | None, Tensor | None]


def ends(feature: Feature) -> dict[str, Tensor]:
    """Returns features of sources, destinations and edges."""
    if isinstance(feature, tuple):
        kinds = zip((SOURCE, DESTINATION), feature, strict=True)
        return {kind: x for kind, x in kinds if x is not None}
    return dict.fromkeys((SOURCE, DESTINATION, EDGE), feature)


def end_of(feature: Feature, kind: str) -> Tensor:
    """Returns one of :func:`ends`."""
    if not isinstance(feature, tuple):
        return feature
    found = feature[0 if kind == SOURCE else 1]
    assert found is not None
    return found


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
        self.plan, self.graph = plan, graph
        self.sizes, self.loops = sizes, loops
        self._features = features
        self.operands: dict[int, Tensor] = {}
        self._units: dict[int, list[Tensor]] = {}
        self._pairs: tuple[Tensor, Tensor] | None = None

    def results(self) -> list[Tensor]:
        """Returns the results of the program, ``[rows, ...]`` each."""
        plan = self.plan
        found = []
        for step, shape, dtype in zip(
            *(plan.result_steps, plan.result_shapes, plan.dtypes), strict=True
        ):
            value = cast(self._done(step, DESTINATION), dtype)
            if len(shape) != 1 or value.shape[1] != shape[0]:
                value = value.reshape(-1, *shape)
            found.append(value)
        return found

    @property
    def num_edges(self) -> int:
        """Rows of features of edges."""
        if len(self.graph) > 1:
            count = self.graph[1].shape[0]
        else:
            count = self.graph[0].shape[1]
        loops = min(self.sizes) if self.loops == Loops.REPLACE else 0
        return count + loops

    def _done(self, step: Step, kind: str) -> Tensor:
        """Returns a value, ``[rows, width]``."""
        if step.unit is not None:
            if step.unit not in self._units:
                self._units[step.unit] = self._fused(step.unit)
            return self._units[step.unit][step.place]
        return self._evaluated(step, kind)

    def _evaluated(self, step: Step, kind: str) -> Tensor:
        """Computes a value of vertices, types or parameters with torch."""
        leaves = self.plan.leaves
        kinds = [leaves[number].kind for number in step.operands]
        tensors = []
        for number, of in zip(step.operands, kinds, strict=True):
            x = self.operand(number)
            if of == DESTINATION and RELATION in kinds:
                x = x.index_select(0, self._of_types()[1])
            tensors.append(x)
        value = evaluate_step(self.plan.number, step.number, tensors)
        if step.kind == PARAMETER and kind == DESTINATION:
            return value.expand(self.sizes[1], -1)
        return value

    def _fused(self, unit: int) -> list[Tensor]:
        number, given = self.plan.operators[unit]
        operands = [self.operand(i) for i in given]
        sizes = *self.sizes, self.num_edges, 0
        return run_unit(
            *(number, self.graph, None, sizes, self.loops),
            *(Level.EDGES, operands),
        )

    def operand(self, number: int) -> Tensor:
        """Returns an operand, ``[rows, ...]``, computed once."""
        if number not in self.operands:
            self.operands[number] = self._made(number)
        return self.operands[number]

    def _made(self, number: int) -> Tensor:
        """Computes an operand."""
        origin = self.plan.origins[number]
        leaf = self.plan.leaves[number]
        if isinstance(origin, Given):
            if origin.tensor is not None:
                return cast(origin.tensor, leaf.dtype)
            feature = self._features[origin.name]
            if leaf.kind in (PARAMETER, RELATION):
                assert isinstance(feature, Tensor)
                return feature
            x = end_of(feature, origin.end or leaf.kind)
            if leaf.kind == EDGE and x.shape[0] != self.num_edges:
                raise ValueError(
                    f'vertex_program: {origin.name!r} must have '
                    f'{self.num_edges} rows, one for each edge (got '
                    f'{x.shape[0]})'
                )
            return x
        if isinstance(origin, Computed):
            [step] = self.plan.inputs[number]
            return self._done(step, DESTINATION)
        if isinstance(origin, Product):
            return self._product(number, origin)
        if isinstance(origin, Nested):
            return self._nested(number, origin)
        if isinstance(origin, Drawn):
            device = self.graph[0].device
            return torch.randint(MOST_KEY, (1,), device=device)
        if isinstance(origin, Quantile):
            return self._quantile(number, origin)
        assert isinstance(origin, Degree)
        if is_transformed():
            with without_functorch():  # cached with the graph
                return self._incoming().degree(leaf.dtype)
        return self._incoming().degree(leaf.dtype)

    def _incoming(self) -> Layout:
        return layouts_of(self.graph, *self.sizes, self.loops).incoming

    @torch.compiler.disable(reason='median and quantile are not compiled')
    def _quantile(self, number: int, origin: Quantile) -> Tensor:
        """Sorts the values of each vertex's edges, with torch."""
        [step] = self.plan.inputs[number]
        x = self._done(step, origin.x.kind)
        with without_functorch():
            layout = self._incoming()
            rows = layout.indices
            if origin.x.kind == EDGE:
                rows = layout.edge_id  # type: ignore[assignment]
        if rows is not None:
            x = x.index_select(0, rows)
        return quantiles(x, layout.indptr, origin.q, origin.interpolation)

    def _product(self, number: int, origin: Product) -> Tensor:
        """Projects features at their owner, with torch."""
        if origin.x.kind == RELATION and origin.x.expr.dtype == torch.int64:
            weight = self.operand(int(origin.weight.expr.value or 0))
            return weight.index_select(0, self._of_types()[0])
        left, right = self.plan.inputs[number]
        leaf = self.plan.leaves[number]
        dtype = leaf.half or leaf.dtype  # Dynamo cannot read its properties
        x = self._factor(left, origin.x.kind, dtype)
        x = x.reshape(x.shape[0], *shape_of(origin.x.dims))
        weight = self._factor(right, PARAMETER, dtype)
        weight = weight.reshape(shape_of(origin.weight.dims))
        if origin.transposed:
            weight = weight.transpose(-1, -2)
        if origin.by_type:
            type_, _ = self._of_types()
            return product_by_type(x, weight, type_)
        return x @ weight

    def _factor(self, step: Step, kind: str, dtype: torch.dtype) -> Tensor:
        """Returns a factor of a product; operands keep their dtype."""
        if step.root.op == 'operand':
            return cast(self.operand(int(step.root.value or 0)), dtype)
        return cast(self._done(step, kind), dtype)

    @property
    def _types(self) -> Tensor:
        """The type of each edge."""
        types = self._features.get('type')
        if not isinstance(types, Tensor):
            raise ValueError(
                "vertex_program: 'type' must be given for by_type: the "
                'type of each edge'
            )
        return types

    def _of_types(self) -> tuple[Tensor, Tensor]:
        """Returns the type and vertex of each pair."""
        if self._pairs is None:
            self._pairs = torch.ops.gsample.vertex_relations(
                self.graph, self._types, *self.sizes, int(self.loops)
            )
        return self._pairs

    def _nested(self, number: int, origin: Nested) -> Tensor:
        """Aggregates the edges of each type, or the types."""
        if origin.out:
            unit, given = self.plan.levels[number]
            sizes = *self.sizes, self.num_edges, 0
            return run_unit(
                *(unit, self.graph, None, sizes, self.loops),
                *(Level.OUT, [self.operand(i) for i in given]),
            )[0]
        known = self.plan.projections[number]
        if known is not None and _joins_levels(self.graph[0].device):
            return self._projected(known)
        unit, given = self.plan.levels[number]
        _, vertex = self._of_types()
        outer = origin.body.kind == RELATION
        operands = []
        for i in given:
            x = self.operand(i)
            if self.plan.leaves[i].kind == DESTINATION and not outer:
                x = x.index_select(0, vertex)
            operands.append(x)
        sizes = *self.sizes, self.num_edges, vertex.shape[0]
        return run_unit(
            *(unit, self.graph, self._types, sizes, self.loops),
            *(Level.OUTER if outer else Level.INNER, operands),
        )[0]

    def _projected(self, what: Projection) -> Tensor:
        """Aggregates and multiplies in one operator."""
        weight = self.operand(what.weight)
        if what.transposed:
            weight = weight.transpose(-1, -2)
        x = self.operand(what.x)
        dtype = torch.promote_types(x.dtype, weight.dtype)
        return call(
            *('project_edges', self.graph, self._types),
            *(self.sizes, int(self.loops), what.mean, False),
            *(cast(x, dtype), cast(weight, dtype)),
        )


def _joins_levels(device: torch.device) -> bool:
    """Whether sums over types can be one operator with a kernel."""
    return device.type == 'cpu'
