"""Units: the kernel representation of the code generator.

A unit is a kernel of a vertex program, over the vertices of a graph, or an
edge map, over the edges defined by its operands.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from torch_gsample.codegen.draws import EDGE_ROW, KEPT, POSITION, VERTEX_ROW
from torch_gsample.codegen.expression import (
    ALONG,
    MEMORY_TYPES,
    Expression,
    operand,
)

#: Graph types: of a source, a destination, an edge, or of none of these.
SOURCE, DESTINATION, EDGE, PARAMETER = 'S', 'D', 'E', 'P'
#: The graph type of column pointers of an edge map.
POINTERS = 'I'

#: Row indices, and the owner of rows.
ROWS = {EDGE_ROW: EDGE, VERTEX_ROW: DESTINATION}

#: Aggregations of a vertex's edges: initial value and update. The expression's
#: `value` is the result without edges, 0 by default.
AGGREGATES = {
    'sum_in': ('T(0)', '{0} + {1}'),
    'prod_in': ('T(1)', '{0} * {1}'),
    'max_in': ('T(-INFINITY)', '(({1} != {1}) | ({0} < {1})) ? {1} : {0}'),
    'min_in': ('T(INFINITY)', '(({1} != {1}) | ({1} < {0})) ? {1} : {0}'),
    'sum_out': ('T(0)', '{0} + {1}'),
}


@dataclass(frozen=True)
class Leaf:
    """A tensor that a unit reads.

    Args:
        name (str): Its name.
        kind (str): Its graph type.
        dtype (torch.dtype): Its dtype.
        axes (Tuple[int, ...]): The unit's axes of its features, in order.
        index (int, optional): In an edge map, the leaf with the row that each
            edge reads.
        wraps (bool): Whether negative indices count from the end.
        half (torch.dtype, optional): The dtype in memory, if half precision;
            values are then float32.
    """

    name: str
    kind: str
    dtype: torch.dtype
    axes: tuple[int, ...] = ()
    index: int | None = None
    wraps: bool = False
    half: torch.dtype | None = None

    @property
    def memory(self) -> torch.dtype:
        """The dtype of the tensor."""
        return self.half or self.dtype


@dataclass(frozen=True)
class Output:
    """A tensor that a unit writes.

    Args:
        root (Expression): Its value.
        kind (str): Its graph type.
        axes (Tuple[int, ...]): Of its features.
        half (torch.dtype, optional): What is in memory, if it has half
            precision.
    """

    root: Expression
    kind: str
    axes: tuple[int, ...] = ()
    half: torch.dtype | None = None

    @property
    def memory(self) -> torch.dtype:
        """The dtype of the tensor."""
        return self.half or self.root.dtype

    def put(self, place: str) -> str:
        """Returns the statement that writes a value ``{1}``.

        Args:
            place (str): The destination.
        """
        if self.half is None:
            return f'{place} = {{1}};'
        return f'{place} = narrow<{MEMORY_TYPES[self.half]}>({{1}});'


@dataclass(frozen=True)
class Unit:
    """The computation of one kernel at each vertex and over its edges.

    Args:
        center (str): ``'D'`` if it runs over destinations and their in-edges,
            ``'S'`` if over sources and their out-edges, ``'E'`` if it is an
            edge map.
        leaves (Tuple[Leaf, ...]): Its inputs; ``operand`` of an expression is
            the index of a leaf.
        sizes (Tuple[int, ...]): The size of each axis.
        outputs (Tuple[Output, ...]): Its outputs.
        index (torch.dtype): The dtype of pointers, neighbours and edge ids.
        by (int, optional): In an edge map, the leaf with the row of each
            edge, if rows are reduced.
        whole (bool): Whether sums are not in pieces (``pieces.py``), as no
            vertex has two, or edges are pieces.
    """

    center: str
    leaves: tuple[Leaf, ...]
    sizes: tuple[int, ...]
    outputs: tuple[Output, ...]
    index: torch.dtype = torch.int32
    by: int | None = None
    whole: bool = False

    @property
    def pointers(self) -> int | None:
        """The leaf with the column pointers of an edge map."""
        kinds = [leaf.kind for leaf in self.leaves]
        return kinds.index(POINTERS) if POINTERS in kinds else None

    def width(self, axes: Iterable[int]) -> int:
        """Returns the number of values of some axes."""
        out = 1
        for axis in axes:
            out *= self.sizes[axis]
        return out

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return self.has(KEPT)

    def has(self, op: str) -> bool:
        """Whether it contains an operation."""
        nodes = ordered(output.root for output in self.outputs)
        return any(node.op == op for node in nodes)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its results before rounding."""
        return self.outputs[0].root.dtype

    @property
    def has_half(self) -> bool:
        """Whether it reads or writes half precision."""
        found = [leaf.half for leaf in self.leaves]
        found += [output.half for output in self.outputs]
        return any(half is not None for half in found)


class Types:
    """The graph type, axes and level of expressions.

    Args:
        leaves (Sequence[Leaf]): The types of operands.
    """

    def __init__(self, leaves: Iterable[Leaf]):
        self.leaves = list(leaves)
        self._kinds: dict[Expression, str] = {}
        self._axes: dict[Expression, frozenset[int]] = {}
        self._levels: dict[Expression, int] = {}

    def leaf(self, node: Expression) -> Leaf:
        """Returns the leaf of an operand."""
        return self.leaves[int(node.value or 0)]

    def kind(self, root: Expression) -> str:
        """Returns the graph type; values of both ends give an edge's."""
        for node in _missing(root, self._kinds):
            if node.op == 'operand':
                kind = self.leaf(node).kind
            elif node.op in ROWS:
                kind = ROWS[node.op]
            elif node.op in AGGREGATES:
                kind = SOURCE if node.op == 'sum_out' else DESTINATION
            else:
                kind = join(self._kinds[arg] for arg in node.args)
            self._kinds[node] = kind
        return self._kinds[root]

    def axes(self, root: Expression) -> frozenset[int]:
        """Returns the axes along which a value varies."""
        for node in _missing(root, self._axes):
            axes: frozenset[int] = frozenset()
            if node.op == 'operand':
                axes = frozenset(self.leaf(node).axes)
            if node.op == POSITION:
                axes = frozenset(node.value)
            for arg in node.args:
                axes |= self._axes[arg]
            if node.op in ALONG:
                axes -= {int(node.value or 0)}
            self._axes[node] = axes
        return self._axes[root]

    def level(self, root: Expression) -> int:
        """Returns the number of loops over edges before a value."""
        for node in _missing(root, self._levels):
            level = max((self._levels[arg] for arg in node.args), default=0)
            self._levels[node] = level + (node.op in AGGREGATES)
        return self._levels[root]


def join(kinds: Iterable[str]) -> str:
    """Returns the graph type of a combination.

    ``P`` combines with every type; values of both ends give a value of the
    edge.
    """
    found = set(kinds) - {PARAMETER}
    if not found:
        return PARAMETER
    return found.pop() if len(found) == 1 else EDGE


def _missing(root: Expression, done: dict) -> Iterator[Expression]:
    """Yields the parts missing in a table, operands first."""
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        left = [arg for arg in node.args if arg not in done]
        if left:
            stack.extend(left)
        else:
            stack.pop()
            yield node


def ordered(roots: Iterable[Expression]) -> list[Expression]:
    """Returns the distinct parts of expressions, operands first."""
    done: dict[Expression, None] = {}
    for root in roots:
        for node in _missing(root, done):
            done[node] = None
    return list(done)


def operands_of(roots: Iterable[Expression]) -> list[int]:
    """Returns the operands of expressions."""
    nodes = ordered(roots)
    return sorted({int(n.value or 0) for n in nodes if n.op == 'operand'})


def unit_of(
    center: str,
    leaves: Sequence[Leaf],
    sizes: Sequence[int],
    outputs: Sequence[Output],
    by: int | None = None,
) -> tuple[Unit, list[int]]:
    """Returns a unit with only the leaves that it reads, and their indices."""
    kept = set(operands_of(output.root for output in outputs))
    kept |= {leaves[i].index for i in kept} - {None}  # type: ignore[arg-type]
    if by is not None:
        kept.add(by)
    of_columns = center == EDGE and any(
        output.kind == DESTINATION for output in outputs
    )
    for i, leaf in enumerate(leaves):
        reads = of_columns or any(leaves[k].kind == DESTINATION for k in kept)
        if leaf.kind == POINTERS and reads:
            kept.add(i)
    numbers = sorted(kept)
    place = {number: i for i, number in enumerate(numbers)}
    done: dict[Expression, Expression] = {}
    for node in ordered(output.root for output in outputs):
        if node.op == 'operand':
            done[node] = operand(place[int(node.value or 0)], node.dtype)
        else:
            args = tuple(done[arg] for arg in node.args)
            done[node] = replace(node, args=args)
    unit = Unit(
        center,
        tuple(
            leaf
            if leaf.index is None
            else replace(leaf, index=place[leaf.index])
            for leaf in (leaves[number] for number in numbers)
        ),
        tuple(sizes),
        tuple(replace(out, root=done[out.root]) for out in outputs),
        by=None if by is None else place[by],
    )
    return unit, numbers
