"""Reverse-mode differentiation of units."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import torch

from torch_gsample.codegen.expression import (
    ALONG,
    Expression,
    apply,
    constant,
)
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    Types,
)

#: A root, its adjoint, and the adjoint's graph type.
Seed = tuple[Expression, Expression, str]


class Reverse:
    """Reverse-mode differentiation over graph types.

    Args:
        types (Types): What operands are.
        sizes (Sequence[int]): The size of each axis.
        center (str, optional): The graph type of the vertices that aggregate.
    """

    def __init__(
        self,
        types: Types,
        sizes: Sequence[int],
        center: str = DESTINATION,
    ):
        self._types, self._sizes = types, sizes
        #: Gradients of parameters come from both sides; edges belong to one
        #: side.
        self._sides = center, SOURCE if center == DESTINATION else DESTINATION
        self._parts: dict[Expression, dict[str, Expression]]
        self._parts = defaultdict(dict)

    def run(
        self,
        seeds: Iterable[Seed],
        wanted: set[int],
        nodes: Sequence[Expression],
        finish: Callable[[Expression], Expression] = lambda root: root,
    ) -> dict[tuple[int, str], Expression]:
        """Returns the parts of gradients by operand and graph type.

        Args:
            seeds (Iterable[Seed]): The adjoints of the results.
            wanted (Set[int]): The operands.
            nodes (Sequence[Expression]): All parts of the results, operands
                first. Adjoints are summed in this order.
            finish (Callable, optional): Applied to each gradient.
        """
        needed = self._needed(nodes, wanted)
        for root, grad, kind in seeds:
            self._add(root, root, grad, kind)
        found = {}
        for node in reversed(nodes):
            if node not in needed or node not in self._parts:
                continue
            kinds: tuple[str, ...] = (self._types.kind(node),)
            if kinds == (PARAMETER,):  # used by vertices of both sides
                kinds = self._sides
            for kind in kinds:
                adjoint = self._total(node, kind)
                if adjoint is None:
                    continue
                if node.op == 'operand':
                    found[int(node.value or 0), kind] = finish(adjoint)
                    continue
                parts = _derivatives(node, adjoint)
                for arg, part in zip(node.args, parts, strict=True):
                    if part is not None and arg in needed:
                        self._add(arg, node, part, kind)
        return found

    def _needed(
        self, nodes: Iterable[Expression], wanted: set[int]
    ) -> set[Expression]:
        """The parts that depend on operands with requested gradients."""
        needed: set[Expression] = set()
        for node in nodes:
            here = node.op == 'operand' and int(node.value or 0) in wanted
            here = here or any(arg in needed for arg in node.args)
            if here and node.op != 'detach':
                needed.add(node)
        return needed

    def _add(
        self, arg: Expression, node: Expression, part: Expression, kind: str
    ) -> None:
        """Adds to the adjoint of an operand of an operation."""
        if not arg.dtype.is_floating_point or arg.op == 'constant':
            return
        # The adjoint of a broadcast value is the sum along the axis.
        axes = self._types.axes(node)
        if node.op in ALONG and arg is not node:
            axes = self._types.axes(node.args[0])
        for axis in sorted(axes - self._types.axes(arg), reverse=True):
            if axis in self._types.axes(part):
                part = Expression('sum_axis', part.dtype, (part,), axis)
            else:
                size = constant(self._sizes[axis], part.dtype)
                part = apply('mul', part, size)
        if node.op in AGGREGATES and arg is not node:
            kind = EDGE
        parts = self._parts[arg]
        known = parts.get(kind)
        parts[kind] = part if known is None else apply('add', known, part)

    def _total(self, node: Expression, kind: str) -> Expression | None:
        """Converts the adjoint of a value to its graph type."""
        parts = dict(self._parts[node])
        of_program = self._types.kind(node) == PARAMETER
        if not (of_program and kind == self._sides[1]):
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


def _derivatives(
    node: Expression, grad: Expression
) -> Sequence[Expression | None]:
    if node.op in ('sum_axis', 'sum_in', 'sum_out'):
        return [grad]
    if node.op == 'prod_in':
        return [apply('mul', grad, others(node))]
    if node.op == 'max_axis' or node.op in AGGREGATES:
        wins, count = shared(node)
        zero = constant(0, grad.dtype)
        return [apply('where', wins, apply('div', grad, count), zero)]
    derivative = OPERATIONS[node.op].derivative
    if derivative is None or (
        node.op == 'pow' and node.args[1].op != 'constant'
    ):
        raise without_derivative(node)
    return derivative(node, grad)


def others(node: Expression) -> Expression:
    """Returns the product of all values of a vertex except the edge's.

    If a value is 0, it is left out instead of divided by.
    """
    [x] = node.args
    one, zero = constant(1, node.dtype), constant(0, node.dtype)
    is_zero = apply('eq', x, zero, dtype=torch.bool)
    factor = apply('where', is_zero, one, x)
    total = apply('prod_in', factor)
    count = apply('sum_in', apply('where', is_zero, one, zero))
    alone = apply('eq', count, one, dtype=torch.bool)
    none = apply('eq', count, zero, dtype=torch.bool)
    of_zero = apply('where', alone, total, zero)
    of_rest = apply('where', none, apply('div', total, factor), zero)
    return apply('where', is_zero, of_zero, of_rest)


def shared(node: Expression) -> tuple[Expression, Expression]:
    """Returns which values attain an extreme, and their number.

    They share its derivative.
    """
    [body] = node.args
    if node.op not in ('max_axis', 'max_in', 'min_in'):
        raise without_derivative(node)
    one, zero = constant(1, node.dtype), constant(0, node.dtype)
    wins = apply('eq', body, node, dtype=torch.bool)
    found = apply('where', wins, one, zero)
    if node.op == 'max_axis':
        return wins, Expression('sum_axis', node.dtype, (found,), node.value)
    # A vertex without edges has no extreme.
    return wins, apply('clamp_min', apply('sum_in', found), one)


def without_derivative(node: Expression) -> NotImplementedError:
    """Returns the error of an operation that has no derivative."""
    return NotImplementedError(f'vertex_program: {node.op} has no derivative')
