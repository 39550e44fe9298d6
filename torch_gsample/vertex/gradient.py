"""Differentiates a unit: the units of its gradients.

The adjoint of a value has its graph type. Where a value of a source goes into
one of an edge, the adjoint of the source is the sum over its out-edges; where
one of a destination does, it is the sum over its in-edges. So a gradient is a
vertex program again: a unit over destinations gives the gradients of
destinations and edges, and what the unit over sources needs of destinations.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from torch_gsample.codegen.expression import (
    Expression,
    apply,
    constant,
    operand,
)
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.vertex_unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    Leaf,
    Output,
    Types,
    Unit,
    ordered,
)
from torch_gsample.vertex.factors import Factors

#: Of an element-wise operation: work that an edge may do again.
CHEAP = frozenset({'add', 'sub', 'mul', 'neg'})


@dataclass(frozen=True)
class Gradient:
    """What one operand's gradient is made of.

    Args:
        operand (int): The operand.
        unit (int): The unit that computes it: 0 over destinations, 1 over
            sources.
        output (int): Which of its outputs it is.
        is_total (bool): Whether the rows of the output are added up: the
            gradient of a parameter.
    """

    operand: int
    unit: int
    output: int
    is_total: bool


@dataclass(frozen=True)
class Backward:
    """The units of gradients.

    Operands of the first: the operands of the unit, its saved aggregates, the
    gradients of its results. The second has the outputs of the first, too.

    Args:
        saved (Tuple[Expression, ...]): Aggregates of the unit that are read.
        leaves (Tuple[Leaf, ...]): All that the two can read.
        outputs (Tuple): Of each unit.
        given (int): Outputs of the first unit that are gradients; those
            behind them are operands of the second.
        gradients (Tuple[Gradient, ...]): How the gradients are put together.
    """

    saved: tuple[Expression, ...]
    leaves: tuple[Leaf, ...]
    outputs: tuple[tuple[Output, ...], tuple[Output, ...]]
    given: int
    gradients: tuple[Gradient, ...]


def differentiate(unit: Unit, wanted: Sequence[int]) -> Backward:
    """Returns the units of the gradients of some operands.

    Args:
        unit (Unit): A unit over destinations.
        wanted (Sequence[int]): The operands.

    Raises:
        NotImplementedError: If an operation has no derivative.
    """
    reverse = _Reverse(unit)
    found = reverse.run(set(wanted))
    saved = reverse.saved
    leaves = [*unit.leaves]
    places: dict[Expression, Expression] = {}
    for i, node in enumerate(saved):
        axes = tuple(sorted(reverse.types.axes(node)))
        leaves.append(Leaf(f'{node.op}{i}', DESTINATION, node.dtype, axes))
        places[node] = operand(len(leaves) - 1, node.dtype)
    for i, output in enumerate(unit.outputs):
        number = len(unit.leaves) + i
        given = operand(number, output.root.dtype)
        leaves.append(Leaf(f'grad{i}', DESTINATION, given.dtype, output.axes))
        # After all that is saved: numbers move.
        places[given] = operand(len(leaves) - 1, given.dtype)
    return _split(unit, found, leaves, places, saved)


def _split(
    unit: Unit,
    found: dict[tuple[int, str], Expression],
    leaves: list[Leaf],
    places: dict[Expression, Expression],
    saved: list[Expression],
) -> Backward:
    """Divides gradients between the units of destinations and sources."""
    outputs: tuple[list[Output], list[Output]] = ([], [])
    gradients = []
    for (number, kind), root in found.items():
        leaf = unit.leaves[number]
        root = _without_detach(_replaced(root, places.get))
        side = int(kind == SOURCE)
        gradients.append(
            Gradient(number, side, len(outputs[side]), leaf.kind == PARAMETER)
        )
        outputs[side].append(Output(root, kind, leaf.axes))
    given = len(outputs[0])
    types = Types(leaves)
    known: dict[Expression, Expression] = {}

    def of_destination(node: Expression) -> Expression | None:
        if types.kind(node) != DESTINATION or not node.args:
            return None
        if _is_cheap(node, types):
            return None
        if node not in known:
            axes = tuple(sorted(types.axes(node)))
            number = len(leaves)
            leaves.append(Leaf(f'd{number}', DESTINATION, node.dtype, axes))
            known[node] = operand(number, node.dtype)
            outputs[0].append(Output(node, DESTINATION, axes))
        return known[node]

    outputs[1][:] = [
        replace(output, root=_replaced(output.root, of_destination))
        for output in outputs[1]
    ]
    return Backward(
        tuple(saved),
        tuple(leaves),
        (tuple(outputs[0]), tuple(outputs[1])),
        given,
        tuple(gradients),
    )


def _without_detach(root: Expression) -> Expression:
    done: dict[Expression, Expression] = {}
    for node in ordered([root]):
        args = tuple(done[arg] for arg in node.args)
        is_detach = node.op == 'detach'
        done[node] = args[0] if is_detach else replace(node, args=args)
    return done[root]


def _is_cheap(root: Expression, types: Types) -> bool:
    """Whether an edge computes a value sooner than it reads it."""
    nodes = ordered([root])
    most = len(types.axes(root))
    wide = [
        n for n in nodes if n.op == 'operand' and len(types.axes(n)) == most
    ]
    return (
        len(nodes) <= 3
        and len(wide) <= 1
        and all(node.op in CHEAP or not node.args for node in nodes)
    )


def _replaced(
    root: Expression, leaf: Callable[[Expression], Expression | None]
) -> Expression:
    """Replaces parts of an expression, the largest first."""
    done: dict[Expression, Expression] = {}

    def visit(node: Expression) -> Expression:
        if node not in done:
            new = leaf(node)
            if new is None:
                args = tuple(visit(arg) for arg in node.args)
                new = replace(node, args=args)
            done[node] = new
        return done[node]

    return visit(root)


class _Reverse:
    """Reverse-mode differentiation over graph types."""

    def __init__(self, unit: Unit):
        self._unit = unit
        leaves = [*unit.leaves]
        for i, output in enumerate(unit.outputs):
            dtype = output.root.dtype
            leaves.append(Leaf(f'g{i}', DESTINATION, dtype, output.axes))
        self.types = Types(leaves)
        self._roots = [output.root for output in unit.outputs]
        self._parts: dict[Expression, dict[str, Expression]]
        self._parts = defaultdict(dict)

    @property
    def saved(self) -> list[Expression]:
        """The results and aggregates of the unit.

        A gradient that reads a result takes no memory of its own for what the
        result was made of.
        """
        results = [root for root in self._roots if self.types.level(root) > 0]
        nodes = [n for n in ordered(self._roots) if n.op in AGGREGATES]
        return list(dict.fromkeys([*results, *nodes]))

    def run(self, wanted: set[int]) -> dict[tuple[int, str], Expression]:
        """Returns the parts of gradients by operand and graph type."""
        nodes = ordered(self._roots)
        needed = self._needed(nodes, wanted)
        for i, root in enumerate(self._roots):
            number = len(self._unit.leaves) + i
            self._add(root, root, operand(number, root.dtype), DESTINATION)
        found = {}
        factors = Factors(self._roots, self.types)
        for node in reversed(nodes):
            if node not in needed or node not in self._parts:
                continue
            kinds: tuple[str, ...] = (self.types.kind(node),)
            if kinds == (PARAMETER,):  # used by vertices of both sides
                kinds = DESTINATION, SOURCE
            for kind in kinds:
                grad = self._total(node, kind)
                if grad is None:
                    continue
                if node.op == 'operand':
                    found[int(node.value or 0), kind] = factors.first(grad)
                    continue
                parts = self._derivatives(node, grad)
                for arg, part in zip(node.args, parts, strict=True):
                    if part is not None and arg in needed:
                        self._add(arg, node, part, kind)
        return found

    def _needed(
        self, nodes: list[Expression], wanted: set[int]
    ) -> set[Expression]:
        """What depends on operands whose gradients are wanted."""
        needed: set[Expression] = set()
        for node in nodes:
            here = node.op == 'operand' and int(node.value or 0) in wanted
            here = here or any(arg in needed for arg in node.args)
            if here and node.op != 'detach':
                needed.add(node)
        return needed

    def _derivatives(
        self, node: Expression, grad: Expression
    ) -> Sequence[Expression | None]:
        if node.op == 'sum_axis':
            return [grad]
        if node.op == 'sum_in':
            return [grad]
        if node.op in AGGREGATES:
            # Edges that attain the extreme share the gradient.
            [body] = node.args
            one, zero = constant(1, grad.dtype), constant(0, grad.dtype)
            wins = apply('eq', body, node, dtype=torch.bool)
            count = apply('sum_in', apply('where', wins, one, zero))
            share = apply('div', grad, apply('clamp_min', count, one))
            return [apply('where', wins, share, zero)]
        derivative = OPERATIONS[node.op].derivative
        if derivative is None or (
            node.op == 'pow' and node.args[1].op != 'constant'
        ):
            raise NotImplementedError(
                f'vertex_program: {node.op} has no derivative'
            )
        return derivative(node, grad)

    def _add(
        self, arg: Expression, node: Expression, part: Expression, kind: str
    ) -> None:
        """Adds to the adjoint of an operand of an operation."""
        if not arg.dtype.is_floating_point or arg.op == 'constant':
            return
        # A value that goes to each index of an axis gets the sum along it.
        axes = self.types.axes(node)
        if node.op == 'sum_axis':
            axes = self.types.axes(node.args[0])
        for axis in sorted(axes - self.types.axes(arg), reverse=True):
            if axis in self.types.axes(part):
                part = Expression('sum_axis', part.dtype, (part,), axis)
            else:
                size = constant(self._unit.sizes[axis], part.dtype)
                part = apply('mul', part, size)
        if node.op in AGGREGATES and arg is not node:
            kind = EDGE
        parts = self._parts[arg]
        known = parts.get(kind)
        parts[kind] = part if known is None else apply('add', known, part)

    def _total(self, node: Expression, kind: str) -> Expression | None:
        """Returns the adjoint of a value as one of its graph type."""
        parts = dict(self._parts[node])
        if kind != SOURCE or self.types.kind(node) == SOURCE:
            edges = parts.pop(EDGE, None)
            if edges is not None and kind != EDGE:
                op = 'sum_out' if kind == SOURCE else 'sum_in'
                edges = apply(op, edges)
            found = [edges, parts.pop(kind, None)]
        else:
            found = [parts.pop(kind, None)]
        roots = [root for root in found if root is not None]
        if not roots:
            return None
        return roots[0] if len(roots) == 1 else apply('add', *roots)
