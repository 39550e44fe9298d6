"""Reorders products in gradients: factors with few features first.

    sum_c (g[h, c] / t[h]) x[h, c]   ->   (1 / t[h]) sum_c g[h, c] x[h, c]
    w[h] (g[h, c] / t[h])            ->   (w[h] (1 / t[h])) g[h, c]

Edges then multiply fewer numbers, and ``g / t``, which has as many features as
the results, is not stored for another unit. Values of the program itself do
not change, as gradients compare them with their maxima.
"""

from collections.abc import Iterable
from dataclasses import replace

from torch_gsample.codegen.expression import Expression, apply
from torch_gsample.codegen.unit import EDGE, Types, ordered


class Factors:
    """Rewrites gradients.

    Args:
        program (Iterable[Expression]): The results of the program.
        types (Types): The types of expressions.
    """

    def __init__(self, program: Iterable[Expression], types: Types):
        self._program = set(ordered(program))
        self._types = types
        self._done: dict[Expression, Expression] = {}

    def first(self, root: Expression) -> Expression:
        """Returns a gradient with ordered factors."""
        for node in ordered([root]):
            if node not in self._done:
                self._done[node] = self._rewritten(node)
        return self._done[root]

    def _rewritten(self, node: Expression) -> Expression:
        if node in self._program or not node.args:
            return node
        args = tuple(self._done[arg] for arg in node.args)
        new = replace(node, args=args)
        if node.op == 'mul':
            return self._product(self._factors(new))
        if node.op == 'div' and self._is_narrower(args[1], args[0]):
            inverse = apply('reciprocal', args[1])
            return self._product([*self._factors(args[0]), inverse])
        if node.op == 'sum_axis':
            return self._sum(new)
        return new

    def _sum(self, node: Expression) -> Expression:
        """Moves factors that are constant in a sum out of it."""
        [body] = node.args
        if body.op == 'neg' and body not in self._program:
            return apply('neg', self._sum(replace(node, args=body.args)))
        factors = self._factors(body)
        inside = [
            x for x in factors if int(node.value or 0) in self._types.axes(x)
        ]
        if not inside or len(inside) == len(factors):
            return node
        rest = [x for x in factors if x not in inside]
        total = replace(node, args=(self._product(inside),))
        return self._product([*rest, total])

    def _factors(self, node: Expression) -> list[Expression]:
        if node.op != 'mul' or node in self._program:
            return [node]
        return [x for arg in node.args for x in self._factors(arg)]

    def _product(self, factors: list[Expression]) -> Expression:
        """Multiplies factors with equal features, then these by width.

        Factors of vertices come before factors of edges.
        """
        groups: dict[tuple, Expression] = {}
        for x in sorted(factors, key=lambda x: self._types.kind(x) == EDGE):
            axes = len(self._types.axes(x)), *sorted(self._types.axes(x))
            known = groups.get(axes)
            groups[axes] = x if known is None else apply('mul', known, x)
        out, *rest = (groups[axes] for axes in sorted(groups))
        for x in rest:
            out = apply('mul', out, x)
        return out

    def _is_narrower(self, x: Expression, y: Expression) -> bool:
        return x.op != 'constant' and self._types.axes(x) < self._types.axes(y)
