"""Forward-mode differentiation of units."""

from collections.abc import Iterable, Mapping, Sequence

from torch_gsample.codegen.expression import (
    ALONG,
    Expression,
    apply,
    constant,
)
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.reverse import (
    others,
    shared,
    without_derivative,
)
from torch_gsample.codegen.unit import AGGREGATES, Types, ordered


class Forward:
    """Forward-mode differentiation over graph types.

    A value has at least the axes of its tangent: if it is constant along an
    axis, so is its tangent.

    Args:
        types (Types): The types of operands and their tangents.
        sizes (Sequence[int]): The size of each axis.
    """

    def __init__(self, types: Types, sizes: Sequence[int]):
        self._types, self._sizes = types, sizes

    def run(
        self, roots: Iterable[Expression], given: Mapping[int, Expression]
    ) -> list[Expression | None]:
        """Returns the tangents of results; None for zero.

        Args:
            roots (Iterable[Expression]): The results.
            given (Mapping[int, Expression]): Tangents of operands.
        """
        roots = list(roots)
        found: dict[Expression, Expression | None] = {}
        for node in ordered(roots):
            if node.op == 'operand':
                found[node] = given.get(int(node.value or 0))
            elif node.op == 'detach' or not node.dtype.is_floating_point:
                found[node] = None
            else:
                parts = [found[arg] for arg in node.args]
                found[node] = self._tangent(node, parts)
        return [found[root] for root in roots]

    def _tangent(
        self, node: Expression, parts: Sequence[Expression | None]
    ) -> Expression | None:
        if all(part is None for part in parts):
            return None
        if node.op in ALONG or node.op in AGGREGATES:
            [part] = parts
            assert part is not None
            return self._reduced(node, part)
        if node.op == 'where':
            zero = constant(0, node.dtype)
            x, y = (zero if part is None else part for part in parts[1:])
            return apply('where', node.args[0], x, y)
        derivative = OPERATIONS[node.op].derivative
        if derivative is None or (
            node.op == 'pow' and node.args[1].op != 'constant'
        ):
            raise without_derivative(node)
        out = None
        for i, part in enumerate(parts):
            if part is None:
                continue
            # An element-wise derivative is its own transpose.
            term = derivative(node, part)[i]
            if term is not None:
                out = term if out is None else apply('add', out, term)
        return out

    def _reduced(self, node: Expression, part: Expression) -> Expression:
        """Returns the tangent of a sum or extreme."""
        axis = int(node.value or 0)
        if node.op in ('sum_in', 'sum_out'):
            return apply(node.op, part)
        if node.op == 'sum_axis':
            if axis in self._types.axes(part):
                return Expression('sum_axis', part.dtype, (part,), axis)
            size = constant(self._sizes[axis], part.dtype)
            return apply('mul', part, size)
        if node.op == 'prod_in':
            return apply('sum_in', apply('mul', part, others(node)))
        # Values that attain the extreme share its tangent.
        wins, count = shared(node)
        zero = constant(0, part.dtype)
        part = apply('where', wins, part, zero)
        if node.op == 'max_axis':
            total = Expression('sum_axis', part.dtype, (part,), axis)
        else:
            total = apply('sum_in', part)
        return apply('div', total, count)
