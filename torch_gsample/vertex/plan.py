"""What a traced program does, step by step.

A state machine over graph types groups operations: a unit starts with values
of sources, destinations or edges (S, D, E), goes on with those of edges (S-E,
D-E, E-E) and ends with aggregates (E-A). Values of the vertex that follow, and
edges that read them again, stay in the unit (A-D, D-E): it passes over the
edges of the vertex once more. Only a dense product ends a unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from torch_gsample.codegen.expression import (
    Expression,
    apply,
    constant,
    operand,
)
from torch_gsample.codegen.vertex_unit import (
    AGGREGATES,
    DESTINATION,
    SOURCE,
    Leaf,
    Output,
    Types,
    Unit,
    operands_of,
    ordered,
    unit_of,
)
from torch_gsample.vertex.evaluate import evaluate
from torch_gsample.vertex.operator import fused_units, inference
from torch_gsample.vertex.order import projection_of
from torch_gsample.vertex.trace import (
    DEGREE,
    RELATION,
    Given,
    Nested,
    Operand,
    Origin,
    Product,
    Tracer,
)
from torch_gsample.vertex.values import Axis, Unsupported, Value


@dataclass(frozen=True)
class Computed:
    """An aggregate that an earlier unit gives to a later one."""

    root: Expression


@dataclass(frozen=True)
class Step:
    """How a value comes to be: by a unit, or by operators of torch.

    Args:
        root (Expression): The value, of operands that are known then.
        number (int): Of the step.
        operands (Tuple[int, ...]): What it reads.
        kind (str): Its graph type.
        unit (int, optional): The unit that computes it.
        place (int): Which of its outputs it is.
    """

    root: Expression
    number: int
    operands: tuple[int, ...]
    kind: str
    unit: int | None = None
    place: int = 0


class Plan:
    """The steps of a program.

    Args:
        tracer (Tracer): What was recorded.
        results (Sequence[Value]): What the program returns.
        name (str): The name of the program.
    """

    def __init__(self, tracer: Tracer, results: Sequence[Value], name: str):
        self.number = len(_plans)
        _plans.append(self)
        self._tracer = tracer
        self._number = _numbered(tracer, results)
        self.sizes = _sizes(self._number)
        self.operands: list[Operand] = list(tracer.operands)
        self.origins: list[Origin | Computed] = [
            item.origin for item in self.operands
        ]
        #: The dtypes of parameters that the function holds.
        self.captured = {
            item.origin.tensor.dtype
            for item in self.operands
            if isinstance(item.origin, Given)
            and item.origin.tensor is not None
            and item.origin.tensor.dim()
        }
        self.leaves = [self._leaf(item) for item in self.operands]
        self._depths: list[int] = []
        self._roots: dict[int, list[Expression]] = {}
        self._computed: dict[Expression, Expression] = {}
        self._steps: dict[Expression, Step] = {}
        self.steps: list[Step] = []
        for item in self.operands:
            self._depths.append(self._origin_depth(item.origin))
        self.dtype = results[0].dtype
        self.results = [self.resolved(value.expr) for value in results]
        self.result_dims = [value.dims for value in results]
        for root in self.results:
            self.step(root)
        for origin in list(self.origins):
            if isinstance(origin, Product):
                self.step(self.resolved(origin.x.expr))
        self.units = {
            number: self._unit(roots) for number, roots in self._roots.items()
        }
        #: Of each unit: its operator, and the operands that it is given.
        self.operators = {
            number: _operator(unit, kept)
            for number, (unit, kept) in self.units.items()
        }
        self.levels = {
            number: _operator(*self.nested(origin))
            for number, origin in enumerate(self.origins)
            if isinstance(origin, Nested)
        }
        for number, _ in (*self.operators.values(), *self.levels.values()):
            fused_units[number].names.add(name)
        #: Of these, what one operator computes for both levels.
        self.projections = {
            number: projection_of(self.origins[number], self.operands)
            for number in self.levels
        }
        #: Of operands that others make: how these come to be.
        self.inputs = {
            number: self._inputs(origin)
            for number, origin in enumerate(self.origins)
            if isinstance(origin, Computed | Product)
        }
        self.result_steps = [self.step(root) for root in self.results]

    # Types.

    def _leaf(self, item: Operand) -> Leaf:
        axes = [self._axis(a) for a in item.dims if a is not None]
        if sorted(set(axes)) != axes:
            raise Unsupported(
                f'the dimensions of {item.name!r} are in another order than '
                f'in other features, or occur twice'
            )
        return Leaf(item.name, item.kind, item.dtype, tuple(axes))

    def _axis(self, axis: Axis) -> int:
        return self._number[axis.root()]

    @property
    def types(self) -> Types:
        """The types of expressions."""
        return Types(self.leaves)

    def resolved(self, root: Expression) -> Expression:
        """Returns an expression with the numbers of axes in it."""
        done: dict[Expression, Expression] = {}
        for node in ordered([root]):
            value = node.value
            if node.op == 'sum_axis':
                value = self._axis(self._tracer.axes[int(value or 0)])
            args = tuple(done[arg] for arg in node.args)
            done[node] = Expression(node.op, node.dtype, args, value)
        return done[root]

    # Units.

    def _origin_depth(self, origin: Origin) -> int:
        if isinstance(origin, Product):
            root = self.resolved(origin.x.expr)
            return self._depth(root) + _aggregates(root)
        if isinstance(origin, Nested):
            return self._depth(self.resolved(origin.body.expr)) + 1
        return 0

    def _depth(self, root: Expression) -> int:
        """Returns how many units run before the one that computes a value."""
        numbers = operands_of([root])
        return max((self._depths[number] for number in numbers), default=0)

    def step(self, root: Expression) -> Step:
        """Returns how a value is computed."""
        if root not in self._steps:
            rest = self._without_earlier(root)
            step = Step(
                *(rest, len(self.steps), tuple(operands_of([rest]))),
                self.types.kind(rest),
            )
            if _aggregates(rest):
                number = self._depth(rest)
                roots = self._roots.setdefault(number, [])
                if rest not in roots:
                    roots.append(rest)
                step = replace(step, unit=number, place=roots.index(rest))
            self._steps[root] = step
            self.steps.append(step)
        return self._steps[root]

    def evaluate(self, step: Step, tensors: Sequence[Tensor]) -> Tensor:
        """Computes a step with operators of torch, ``[rows, width]``."""
        types = self.types
        known = dict(zip(step.operands, tensors, strict=True))
        [value] = evaluate([step.root], types, self.sizes, known)
        axes = types.axes(step.root)
        shape = [
            size if axis in axes else 1 for axis, size in enumerate(self.sizes)
        ]
        rows = value.shape[0]
        return value.expand(rows, *shape).reshape(rows, prod(shape))

    def _inputs(self, origin: Computed | Product) -> list[Step]:
        if isinstance(origin, Computed):
            return [self.step(origin.root)]
        factors = origin.x, origin.weight
        return [self.step(self.resolved(x.expr)) for x in factors]

    def _without_earlier(self, root: Expression) -> Expression:
        """Replaces aggregates that an earlier unit has computed."""
        depth = self._depth(root)
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
            self._depths.append(self._depth(node) + 1)
            self.leaves.append(Leaf(node.op, DESTINATION, node.dtype, axes))
            self.origins.append(Computed(node))
            number = len(self.leaves) - 1
            self._computed[node] = operand(number, node.dtype)
            self.step(node)
        return self._computed[node]

    def _unit(self, roots: list[Expression]) -> tuple[Unit, list[int]]:
        types = self.types
        outputs = [
            Output(root, DESTINATION, tuple(sorted(types.axes(root))))
            for root in roots
        ]
        return unit_of(DESTINATION, self.leaves, self.sizes, outputs)

    def nested(self, origin: Nested) -> tuple[Unit, list[int]]:
        """Returns the unit of one of two levels of aggregation.

        Types of edges are destinations of the inner level, and sources of
        the outer one.
        """
        root = self.resolved(origin.body.expr)
        outer = origin.body.kind == RELATION
        leaves = [
            replace(leaf, kind=SOURCE)
            if outer and leaf.kind == RELATION
            else leaf
            for leaf in self.leaves
        ]
        axes = tuple(sorted(self.types.axes(root)))
        if origin.op == 'mean':
            degree = operand(len(leaves), root.dtype)
            leaves.append(Leaf(DEGREE, DESTINATION, root.dtype))
            one = constant(1, root.dtype)
            count = apply('clamp_min', degree, one)
            total = apply('div', apply('sum_in', root), count)
        else:
            total = apply(f'{origin.op}_in', root)
        output = Output(total, DESTINATION, axes)
        return unit_of(DESTINATION, leaves, self.sizes, [output])


#: All plans of this process; their places are their numbers.
_plans: list[Plan] = []


@torch.compiler.allow_in_graph
def evaluate_step(plan: int, step: int, tensors: list[Tensor]) -> Tensor:
    """Computes a step with operators of torch; Dynamo does not look inside.

    Args:
        plan (int): The number of the plan.
        step (int): The number of the step.
        tensors (List[torch.Tensor]): What the step reads.
    """
    made = _plans[plan]
    return made.evaluate(made.steps[step], tensors)


def _operator(unit: Unit, kept: list[int]) -> tuple[int, list[int]]:
    fused = inference(unit)
    return fused.number, [kept[i] for i in fused.given]


def _aggregates(root: Expression) -> bool:
    return any(node.op in AGGREGATES for node in ordered([root]))


def _numbered(tracer: Tracer, results: Sequence[Value]) -> dict[Axis, int]:
    """Numbers axes so that those of features ascend."""
    before: dict[Axis, set[Axis]] = {a.root(): set() for a in tracer.axes}
    for dims in [
        *(item.dims for item in tracer.operands),
        *(value.dims for value in results),
    ]:
        known = [a.root() for a in dims if a is not None]
        for i, axis in enumerate(known):
            before[axis] |= set(known[:i])
    number: dict[Axis, int] = {}
    while len(number) < len(before):
        ready = [
            axis
            for axis, earlier in before.items()
            if axis not in number and earlier <= set(number)
        ]
        if not ready:
            raise Unsupported(
                'the dimensions of features are in different orders'
            )
        number[ready[0]] = len(number)
    return number


def _sizes(number: dict[Axis, int]) -> tuple[int, ...]:
    return tuple(axis.size for axis in number)
