"""The values that a pass over a vertex's edges reads, computes and keeps.

    pass 0: max_u s_uv             keeps s_uv
    pass 1: sum_u exp(s_uv - m_v)  reads s_uv, keeps the exponential
    pass 2: sum_u exp(...) x_u     reads the exponential

So a score, a sum over features, is computed once. At most :data:`BYTES` of
values are kept; values of further edges are computed again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch_gsample.codegen.expression import ALONG, Expression
from torch_gsample.codegen.loops import COSTLY
from torch_gsample.codegen.unit import PARAMETER, Types, Unit

#: Memory of a kept value, for all edges of a vertex.
BYTES = 32 << 10
#: Maximum features of a kept value.
_WIDEST = 128
#: Operations cheaper than reading a value.
_QUICK = frozenset({'div', 'reciprocal', 'sqrt'})

#: The arrays of known values.
Arrays = Mapping[Expression, str]


@dataclass(frozen=True)
class Kept:
    """A value of edges that later passes read.

    Args:
        name (str): The suffix of its array, ``kept<name>``.
        axes (Tuple[int, ...]): Its axes.
        width (int): Its features.
        most (int): The number of edges whose values are kept.
    """

    name: str
    axes: tuple[int, ...]
    width: int
    most: int

    @property
    def row(self) -> str:
        """The statement that finds the row of edge ``k``, or a spare row."""
        place = f'lib::min(k - first, int64_t({self.most}))'
        row = f'kept_{self.name} + {place} * {self.width}'
        return f'auto* const {self.name} = {row};'


def parts_of(bodies: Sequence[Expression], known: Arrays) -> list[Expression]:
    """Returns all parts of values down to known ones.

    Args:
        bodies (Sequence[Expression]): The values.
        known (Mapping): The arrays of known values.
    """
    found: dict[Expression, None] = {}
    stack = list(reversed(bodies))
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = None
            if node not in known:
                stack.extend(reversed(node.args))
    return list(found)


def operands_read(bodies: Sequence[Expression], known: Arrays) -> list[int]:
    """Returns the operands that an edge reads.

    Args:
        bodies (Sequence[Expression]): The values of edges.
        known (Mapping): The arrays of known values.
    """
    parts = parts_of(bodies, known)
    return sorted(
        int(node.value or 0)
        for node in parts
        if node.op == 'operand' and node not in known
    )


def largest(
    bodies: Sequence[Expression], known: Arrays, types: Types, center: str
) -> list[Expression]:
    """Returns the largest parts of the vertex that are not yet known.

    Args:
        bodies (Sequence[Expression]): What edges compute.
        known (Mapping): The arrays of known values.
        types (Types): The types of expressions.
        center (str): The graph type of the vertex.
    """
    found: dict[Expression, None] = {}
    seen: set[Expression] = set()

    def visit(node: Expression) -> None:
        if node in seen or node in known or not node.args:
            return
        seen.add(node)
        if types.kind(node) in (center, PARAMETER):
            found[node] = None
            return
        for arg in node.args:
            visit(arg)

    for body in bodies:
        visit(body)
    return list(found)


class Keeper:
    """Chooses the values that passes keep.

    Args:
        unit (Unit): The unit.
        types (Types): The types of its expressions.
    """

    def __init__(self, unit: Unit, types: Types):
        self._unit, self._types = unit, types
        self.values: dict[Expression, Kept] = {}

    def keep(
        self,
        bodies: Sequence[Expression],
        later: Sequence[Expression],
        known: Arrays,
    ) -> dict[Expression, Kept]:
        """Returns what a pass keeps for later ones.

        Args:
            bodies (Sequence[Expression]): What edges compute in it.
            later (Sequence[Expression]): What they compute in later passes.
            known (Mapping): The arrays of known values.
        """
        computed = set(parts_of(bodies, known)) - set(known)
        found: dict[Expression, Kept] = {}
        seen: set[Expression] = set()
        stack = list(reversed(later))
        while stack:
            node = stack.pop()
            of_edge = self._types.kind(node) not in (
                *(self._unit.center, PARAMETER),
            )
            if node in seen or node in known or not of_edge:
                continue
            seen.add(node)
            if node in computed and self._is_worth(node, known):
                name = f'k{len(self.values)}'
                axes = tuple(sorted(self._types.axes(node)))
                width = self._unit.width(axes)
                most = BYTES // (width * node.dtype.itemsize)
                found[node] = Kept(name, axes, width, most)
                self.values[node] = found[node]
            else:
                stack.extend(reversed(node.args))
        return found

    def _is_worth(self, root: Expression, known: Arrays) -> bool:
        """Whether reading a value is faster than computing it."""
        if not root.dtype.is_floating_point or not root.args:
            return False
        if self._unit.width(self._types.axes(root)) > _WIDEST:
            return False
        return any(
            node.op in ALONG or node.op in COSTLY - _QUICK
            for node in parts_of([root], known)
            if node not in known
        )

    def read(
        self, bodies: Sequence[Expression], known: Arrays
    ) -> dict[Expression, Kept]:
        """Returns the kept values that a pass reads.

        Args:
            bodies (Sequence[Expression]): What edges compute in it.
            known (Mapping): The arrays of known values.
        """
        parts = parts_of(bodies, known)
        return {x: self.values[x] for x in parts if x in self.values}

    def unkept(self, known: Arrays) -> dict[Expression, str]:
        """Returns the known values except kept ones."""
        return {x: name for x, name in known.items() if x not in self.values}
