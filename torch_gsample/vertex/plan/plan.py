"""The plan of a traced program.

A state machine over graph types groups operations into units: a unit starts
with values of sources, destinations or edges (S, D, E), continues with values
of edges (S-E, D-E, E-E) and ends with aggregates (E-A). Later values of the
vertex, and edges that read them, stay in the unit (A-D, D-E), which then loops
over the edges of the vertex again. Only a dense product ends a unit.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from torch_gsample.codegen.draws import POSITION
from torch_gsample.codegen.evaluate import evaluate
from torch_gsample.codegen.expression import (
    ALONG,
    Expression,
    operand,
)
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    Leaf,
    Output,
    Types,
    Unit,
    operands_of,
    ordered,
    unit_of,
)
from torch_gsample.vertex.frontend.kinds import OUT_EDGE, OUT_NEIGHBOR
from torch_gsample.vertex.frontend.precision import half_dtype, promoted
from torch_gsample.vertex.frontend.symbols import trace
from torch_gsample.vertex.frontend.trace import (
    Given,
    Nested,
    Operand,
    Origin,
    Product,
    Quantile,
    Signature,
)
from torch_gsample.vertex.frontend.values import Axis, Unsupported, shape_of
from torch_gsample.vertex.kernels.fused_unit import Fused, fused
from torch_gsample.vertex.plan.axes import numbered, sizes_of
from torch_gsample.vertex.plan.levels import nested_unit
from torch_gsample.vertex.plan.projections import projection_of
from torch_gsample.vertex.plan.step import Computed, Step


class Plan:
    """The plan of a program, built by the steps of ``pipeline.py``.

    Args:
        function (Callable): The program.
        signature (Mapping): The features of the call.
        parameters (List[str]): Its parameters.
        name (str): The name of the program.
        dtypes (Sequence[torch.dtype], optional): Dtypes of its results.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        parameters: list[str],
        name: str,
        dtypes: Sequence[torch.dtype] | None = None,
    ):
        self.set_number()
        self._program = function, signature, parameters
        self._name, self._dtypes = name, dtypes
        #: Whether each aggregate ends its unit.
        self.is_staged = False

    def set_number(self) -> None:
        """Gives the plan a unique number."""
        self.number = next(_numbers)
        _plans[self.number] = self

    def trace(self) -> None:
        """Records the operations of the program."""
        self._tracer, self._values = trace(*self._program)
        self.dtype = self._values[0].dtype

    def number_axes(self) -> None:
        """Numbers the dimensions of features."""
        self._number = numbered(self._tracer, self._values)
        self.sizes = sizes_of(self._number)
        self.result_dims = [value.dims for value in self._values]

    def read_operands(self) -> None:
        """Creates a leaf for each operand."""
        self.operands: list[Operand] = list(self._tracer.operands)
        self.origins: list[Origin | Computed] = [
            item.origin for item in self.operands
        ]
        promotion = self._promotion()
        #: Half-precision dtype of products, or None.
        self.half = half_dtype(promotion)
        own = promotion or self.dtype
        #: The dtype of each result.
        self.dtypes = self._dtypes or [own] * len(self._values)
        self.leaves = [self._leaf(item) for item in self.operands]
        self.results = [self.resolved(x.expr) for x in self._values]

    def divide(self) -> None:
        """Divides the program between units and torch operators."""
        self.depths: list[int] = []  # number of units before each operand
        #: Outputs of each unit, by its number.
        self.roots: dict[int, list[Expression]] = {}
        self._computed: dict[Expression, Expression] = {}
        self._steps: dict[Expression, Step] = {}
        self.steps: list[Step] = []
        for x in self.operands:
            self.depths.append(self._origin_depth(x.origin))
        for root in self.results:
            self.step(root)
        for origin in list(self.origins):
            if isinstance(origin, Product | Quantile):
                self.step(self.resolved(origin.x.expr))
            if isinstance(origin, Nested):
                self.body(origin)

    def make_units(self) -> None:
        """Creates a kernel for the aggregates that run together."""
        self.units = {
            number: self._unit(roots) for number, roots in self.roots.items()
        }

    def make_operators(self) -> None:
        """Creates the operators of units, and of the levels of relations."""
        # Dynamo reads numbers; operators live as long as their plan.
        self._fused: list[Fused] = []
        #: For each unit, the number of its operator, and its operands.
        self.operators = {
            number: self._operator(unit, kept)
            for number, (unit, kept) in self.units.items()
        }
        self.levels = {
            number: self._operator(*nested_unit(self, origin))
            for number, origin in enumerate(self.origins)
            if isinstance(origin, Nested)
        }
        for made in self._fused:
            made.names.add(self._name)

    def join_levels(self) -> None:
        """Finds levels that one operator can compute."""
        self.projections = {
            number: projection_of(self.origins[number], self.operands)
            for number in self.levels
        }

    @property
    def has_out_edges(self) -> bool:
        """Whether out-edges are aggregated, too."""
        return any(isinstance(x, Nested) and x.out for x in self.origins)

    def link_operands(self) -> None:
        """Finds the steps that compute operands and results."""
        self.inputs = {
            number: self._inputs(origin)
            for number, origin in enumerate(self.origins)
            if isinstance(origin, Computed | Product | Quantile)
        }
        self.result_steps = [self.step(root) for root in self.results]
        #: The shape of a row of each result.
        self.result_shapes = [shape_of(dims) for dims in self.result_dims]
        #: Name and end of features that are read and have a row for each
        #: vertex.
        self.vertex_features = [
            (item.origin.name, item.origin.end or item.kind)
            for item in self.operands
            if isinstance(item.origin, Given)
            and (item.origin.end or item.kind) in (SOURCE, DESTINATION)
        ]
        #: Whether torch multiplies or sorts values of edges, except by type.
        kinds = {type(origin) for origin in self.origins}
        self.stores_edges = Nested not in kinds and any(
            isinstance(origin, Quantile)
            or (isinstance(origin, Product) and origin.x.kind == EDGE)
            for origin in self.origins
        )

    def _promotion(self) -> torch.dtype | None:
        """Returns the promoted dtype if it is one of half precision.

        Zero-dimensional tensors do not promote others.
        """
        dtype = promoted(
            x.dtype
            for (_, kind), x in self._program[1].items()
            if x.dtype.is_floating_point and (kind != PARAMETER or x.shape)
        )
        held = [
            item.origin.tensor.dtype
            for item in self.operands
            if isinstance(item.origin, Given)
            and item.origin.tensor is not None
            and item.origin.tensor.dim()
        ]
        return dtype and reduce(torch.promote_types, held, dtype)

    def _leaf(self, item: Operand) -> Leaf:
        axes = [self._axis(a) for a in item.dims if a is not None]
        if sorted(set(axes)) != axes:
            raise Unsupported(
                f'the dimensions of {item.name!r} are in another order than '
                f'in other features, or occur twice'
            )
        half = item.half
        if isinstance(item.origin, Product) and half is None:
            half = self.half
        kind = _TURNED.get(item.kind, item.kind)
        return Leaf(item.name, kind, item.dtype, tuple(axes), half=half)

    def _axis(self, axis: Axis) -> int:
        return self._number[axis.root()]

    @property
    def types(self) -> Types:
        """The types of expressions."""
        return Types(self.leaves)

    def resolved(self, root: Expression) -> Expression:
        """Returns an expression with numbered axes."""
        done: dict[Expression, Expression] = {}
        for node in ordered([root]):
            value = node.value
            if node.op == POSITION:
                value = tuple(self._axis(self._tracer.axes[i]) for i in value)
            if node.op in ALONG:
                value = self._axis(self._tracer.axes[int(value or 0)])
            args = tuple(done[arg] for arg in node.args)
            done[node] = Expression(node.op, node.dtype, args, value)
        return done[root]

    def _origin_depth(self, origin: Origin) -> int:
        if isinstance(origin, Product | Quantile):
            root = self.resolved(origin.x.expr)
            return self._depth(root) + self._has_unit(root)
        if isinstance(origin, Nested):
            root = self.resolved(origin.body.expr)
            own = any(node.op in AGGREGATES for node in ordered([root]))
            return self._depth(root) + (own or not origin.out)
        return 0

    def _depth(self, root: Expression) -> int:
        """Returns the number of units that run before a value's unit."""
        if not self.is_staged:
            numbers = operands_of([root])
            return max((self.depths[number] for number in numbers), default=0)
        known: dict[Expression, int] = {}  # before the value is known
        for node in ordered([root]):
            before = max((known[arg] for arg in node.args), default=0)
            if node.op == 'operand':
                before = self.depths[int(node.value or 0)]
            known[node] = before + (node.op in AGGREGATES)
        return known[root] - (root.op in AGGREGATES)

    def step(self, root: Expression) -> Step:
        """Returns the step that computes a value."""
        if root not in self._steps:
            rest = self._without_earlier(root)
            step = Step(
                *(rest, len(self.steps), tuple(operands_of([rest]))),
                self.types.kind(rest),
            )
            if self._has_unit(rest):
                number = self._depth(rest)
                roots = self.roots.setdefault(number, [])
                if rest not in roots:
                    roots.append(rest)
                step = replace(step, unit=number, place=roots.index(rest))
            self._steps[root] = step
            self.steps.append(step)
        return self._steps[root]

    def _has_unit(self, root: Expression) -> bool:
        """Whether a unit computes a value: for edges, or an aggregate."""
        of_edges = self.types.kind(root) == EDGE and root.op != 'operand'
        return of_edges or any(n.op in AGGREGATES for n in ordered([root]))

    def evaluate(self, step: Step, tensors: Sequence[Tensor]) -> Tensor:
        """Computes a step with torch operators, ``[rows, width]``."""
        types = self.types
        known = dict(zip(step.operands, tensors, strict=True))
        [value] = evaluate([step.root], types, self.sizes, known)
        axes = types.axes(step.root)
        shape = [n if i in axes else 1 for i, n in enumerate(self.sizes)]
        rows = value.shape[0]
        return value.expand(rows, *shape).reshape(rows, prod(shape))

    def _inputs(self, origin: Computed | Product | Quantile) -> list[Step]:
        if isinstance(origin, Computed):
            return [self.step(origin.root)]
        if isinstance(origin, Quantile):
            return [self.step(self.resolved(origin.x.expr))]
        factors = origin.x, origin.weight
        return [self.step(self.resolved(x.expr)) for x in factors]

    def body(self, origin: Nested) -> Expression:
        """Returns the aggregated expression; out-edges follow in-edges."""
        root = self.resolved(origin.body.expr)
        if origin.out:
            return self._without_earlier(root, len(self.depths))
        return root

    def _without_earlier(
        self, root: Expression, depth: int | None = None
    ) -> Expression:
        """Replaces aggregates that an earlier unit computes."""
        depth = self._depth(root) if depth is None else depth
        done: dict[Expression, Expression] = {}

        def visit(node: Expression) -> Expression:
            if node not in done:
                if node.op in AGGREGATES and self._depth(node) < depth:
                    done[node] = self._earlier(node)
                else:
                    args = tuple(visit(arg) for arg in node.args)
                    done[node] = replace(node, args=args)
            return done[node]

        return visit(root)

    def _earlier(self, node: Expression) -> Expression:
        if node not in self._computed:
            axes = tuple(sorted(self.types.axes(node)))
            self.depths.append(self._depth(node) + 1)
            self.leaves.append(Leaf(node.op, DESTINATION, node.dtype, axes))
            self.origins.append(Computed(node))
            number = len(self.leaves) - 1
            self._computed[node] = operand(number, node.dtype)
            self.step(node)
        return self._computed[node]

    def _unit(self, roots: list[Expression]) -> tuple[Unit, list[int]]:
        types, half = self.types, self._rounded()
        outputs = [
            Output(
                *(root, types.kind(root), tuple(sorted(types.axes(root)))),
                half.get(root),
            )
            for root in roots
        ]
        return unit_of(DESTINATION, self.leaves, self.sizes, outputs)

    def _rounded(self) -> dict[Expression, torch.dtype | None]:
        """Returns the half-precision dtypes of units' results.

        Values that a later unit reads, and results in two dtypes, are not
        rounded.
        """
        found: dict[Expression, torch.dtype | None] = {}
        if self.is_staged:  # results are of some edges
            return found
        for root, dtype in zip(self.results, self.dtypes, strict=True):
            rest, half = self.step(root).root, half_dtype(dtype)
            found[rest] = half if found.get(rest, half) == half else None
        for node in self._computed:
            found.pop(self.step(node).root, None)
        return found

    def _operator(self, unit: Unit, kept: list[int]) -> tuple[int, list[int]]:
        made = fused(unit)
        self._fused.append(made)
        return made.number, [kept[i] for i in made.given]


#: Graph types of neighbours and edges if edges are reversed.
_TURNED = {OUT_NEIGHBOR: SOURCE, OUT_EDGE: EDGE}
#: The plans in use. Dynamo's graphs contain numbers instead of objects.
_plans: WeakValueDictionary[int, Plan] = WeakValueDictionary()
_numbers = itertools.count()


@torch.compiler.allow_in_graph
def evaluate_step(plan: int, step: int, tensors: list[Tensor]) -> Tensor:
    """Computes a step with torch operators; opaque for Dynamo.

    Args:
        plan (int): The number of the plan.
        step (int): The number of the step.
        tensors (List[torch.Tensor]): The inputs of the step.
    """
    made = _plans[plan]
    return made.evaluate(made.steps[step], tensors)
