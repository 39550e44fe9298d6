"""The C++ source of a unit.

A kernel of a vertex program runs over vertices. A vertex is computed by one
thread, its edges in order, so the result does not depend on threads. Edges are
scanned as often as aggregates need each other; the values of an edge stay in
registers and small arrays. The loops of edge maps are in ``cpp_edges.py``.
"""

import hashlib
from pathlib import Path

import torch

from torch_gsample.codegen.cpp_edges import (
    CHECKS,
    REDUCE_COLUMNS,
    edge_map_lines,
    in_lanes,
)
from torch_gsample.codegen.draws import DRAWS, EDGE_ROW
from torch_gsample.codegen.edge_map import text_of
from torch_gsample.codegen.expression import (
    CPP_TYPES,
    MEMORY_TYPES,
    Expression,
)
from torch_gsample.codegen.loops import Block, Sink
from torch_gsample.codegen.prefetch import (
    EDGE_ROW as ROW_OF_EDGE,
)
from torch_gsample.codegen.prefetch import (
    WALK,
    ask,
    ask_to_write,
)
from torch_gsample.codegen.unit import (
    AGGREGATES,
    EDGE,
    PARAMETER,
    Types,
    Unit,
    operands_of,
    ordered,
)

#: Flags of the compiler for kernels over vertices. Comparisons that may be of
#: NaN are vectorised.
_FLAGS = ('-O3', '-fno-trapping-math')

#: What kernels for the CPU and a GPU compute with.
MATH = Path(__file__).with_name('kernel_math.h').read_text()
HALF = '\n' + Path(__file__).with_name('kernel_half.h').read_text()

#: What every kernel for the CPU begins with.
LIBRARY = Path(__file__).with_name('kernel_lib.h').read_text()

#: What kernels over vertices have, too.
_OPEN = """
#define GSAMPLE_INLINE inline

// Loops that set or copy a row stay loops: calls take longer than short rows.
#pragma GCC optimize("no-tree-loop-distribute-patterns")

namespace {

using lib::memcpy;

"""

_SUM = """
// The sum of n numbers. Its order does not depend on how wide vectors are.
template <int n, typename T>
inline T sum_of(const T* x) {
  constexpr int kLanes = lanes_of(n), kWhole = n / kLanes * kLanes;
  T part[kLanes] = {};
  for (int i = 0; i < kWhole; i += kLanes)
#pragma omp simd
    for (int j = 0; j < kLanes; ++j)
      part[j] += x[i + j];
  for (int j = kWhole; j < n; ++j)
    part[j - kWhole] += x[j];
  return folded<kLanes>(part);
}
"""

_MAX = """
// The largest of n numbers; NaN if there is one.
template <int n, typename T>
inline T max_of(const T* x) {
  T out = x[0];
  for (int i = 1; i < n; ++i)
    out = ((x[i] != x[i]) | (out < x[i])) ? x[i] : out;
  return out;
}
"""

_CLOSE = """
}  // namespace
"""

_HEAD = """
// {text}
// Runs over {range} [begin, end). Returns 1 for an index that is out of range,
// 2 for pointers that descend.
extern "C" int gsample_kernel(int64_t begin,
                              int64_t end,
                              const int64_t* sizes,
                              const void* const* graph,
                              const void* const* data,
                              void* const* to) {{
  using T = {type};
"""

_GRAPH = """\
  using I = {index};
  const I* const indptr = static_cast<const I*>(graph[0]);
  const I* const indices = static_cast<const I*>(graph[1]);
  const I* const edge_id = static_cast<const I*>(graph[2]);
  const I* const order = static_cast<const I*>(graph[3]);
"""

_VERTEX = """\
  for (int64_t i = begin; i < end; ++i) {
    const int64_t v = order == nullptr ? i : order[i];
    const int64_t first = indptr[v], last = indptr[v + 1];
"""

_EDGES = """\
    for (int64_t k = first; k < last; ++k) {
      const int64_t u = indices[k];
"""


def cpp_source(unit: Unit, text: str = 'vertex program') -> str:
    """Returns the source of a kernel for the CPU.

    Args:
        unit (Unit): What it computes.
        text (str): What a kernel over vertices is called in a comment.
    """
    return preamble(unit) + '\n'.join(_statements(unit, text)) + '\n'


def flags_of(unit: Unit) -> tuple[str, ...]:
    """Returns the flags of the compiler for a unit."""
    return () if unit.center == EDGE else _FLAGS


def preamble(unit: Unit) -> str:
    """Returns what the source of a unit begins with."""
    if unit.center != EDGE:
        more = DRAWS if unit.is_random else ''
        more += _MAX if unit.has('max_axis') else ''
        more += HALF if unit.has_half else ''
        return ''.join((LIBRARY, _OPEN, MATH, _SUM, WALK, more, _CLOSE))
    text = f'{LIBRARY}\n{CHECKS}'
    return f'{text}\n{REDUCE_COLUMNS}' if in_lanes(unit) else text


def _statements(unit: Unit, text: str) -> list[str]:
    is_edge_map, kind = unit.center == EDGE, CPP_TYPES[unit.dtype]
    over = 'vertices of the order'
    if is_edge_map:
        text = text_of(unit)
        over = 'edges' if unit.pointers is None else 'columns'
    head = [_HEAD.format(text=text, range=over, type=kind).rstrip('\n')]
    if is_edge_map:
        return [*head, *edge_map_lines(unit)]
    graph = _GRAPH.format(index=CPP_TYPES[unit.index])
    return [*head, graph.rstrip('\n'), *Writer(unit).lines()]


def unit_number(unit: Unit, *more: object) -> int:
    """Returns a number that names a unit, the same in every process.

    Inductor keeps graphs on disk, where such a number may be read by a
    process that made other units, or made them in another order.

    Args:
        unit (Unit): The unit.
        *more (optional): What tells it from units of the same source.
    """
    parts = cpp_source(unit), unit.leaves, unit.sizes, *more
    kinds = [(output.kind, output.axes) for output in unit.outputs]
    digest = hashlib.sha256(repr((parts, kinds)).encode()).digest()
    return int.from_bytes(digest[:7], 'little')


class Writer:
    """Writes the loops over the edges of a vertex, for the CPU."""

    def __init__(self, unit: Unit):
        self._unit, self._types = unit, Types(unit.leaves)
        self._roots = [output.root for output in unit.outputs]
        self._read = operands_of(self._roots)
        self._nodes = ordered(self._roots)
        self._arrays: dict[Expression, str] = {}
        self._lines: list[str] = []
        self._ahead: list[str] = []

    def lines(self) -> list[str]:
        """Returns the statements of the kernel."""
        lines = []
        for number in self._read:
            kind = MEMORY_TYPES[self._unit.leaves[number].memory]
            shared = self._unit.leaves[number].kind == PARAMETER
            name = 'x' if shared else 'p'
            lines.append(
                f'  const {kind}* const {name}{number} = '
                f'static_cast<const {kind}*>(data[{number}]);'
            )
        for i, output in enumerate(self._unit.outputs):
            kind = 'T' if output.half is None else MEMORY_TYPES[output.half]
            lines.append(
                f'  {kind}* const out{i} = static_cast<{kind}*>(to[{i}]);'
            )
        self._vertex()
        lines += [*self._ahead, _VERTEX.rstrip('\n')]
        for i, output in enumerate(self._unit.outputs):
            if output.kind != EDGE:
                asked = ask_to_write(self._unit, i, 'v')
                lines += [f'    {line}' for line in asked]
        return [*lines, *self._lines, '  }', '  return 0;', '}']

    def _vertex(self) -> None:
        """Writes what is done for vertex ``v`` and edges [first, last)."""
        self._rows(self._unit.center, 'v', '    ', self._read)
        levels = [self._types.level(root) for root in self._roots]
        for level in range(max(levels) + 1):
            self._pass(level)
        self._finish()

    def _rows(
        self, kind: str, row: str, indent: str, numbers: list[int]
    ) -> None:
        """Where the rows of some operands start."""
        for number in numbers:
            leaf = self._unit.leaves[number]
            if leaf.kind == kind:
                place = f'{row} * {self._unit.width(leaf.axes)}'
                self._lines.append(
                    f'{indent}const {MEMORY_TYPES[leaf.memory]}* const '
                    f'x{number} = p{number} + {place};'
                )

    def _pass(self, level: int) -> None:
        """Passes once over the edges, for what a level aggregates."""
        sums = [
            node
            for node in self._nodes
            if node.op in AGGREGATES
            and self._types.level(node.args[0]) == level
        ]
        edges = [
            (i, output)
            for i, output in enumerate(self._unit.outputs)
            if output.kind == EDGE and self._types.level(output.root) == level
        ]
        if not sums and not edges:
            return
        bodies = [node.args[0] for node in sums]
        bodies += [output.root for _, output in edges]
        self._center(bodies, level)
        sinks = [self._start(node) for node in sums]
        for i, output in edges:
            width = self._unit.width(output.axes)
            text = output.put(f'out{i}[e * {width} + {{0}}]')
            sinks.append(Sink(output.root, output.axes, text))
        read = self._neighbours(bodies)
        kinds = {self._unit.leaves[n].kind for n in read}
        self._open_edges(level, read, [i for i, _ in edges])
        other = 'S' if self._unit.center == 'D' else 'D'
        self._rows(other, 'u', '      ', read)
        if edges or EDGE in kinds or self._draws(bodies):
            self._lines.append(self._edge.rstrip('\n'))
            self._rows(EDGE, 'e', '      ', read)
        block = self._block(f'e{level}_', '      ')
        self._lines += [*block.write(sinks), '    }']
        for node in sums:
            self._fill(node)

    def _draws(self, bodies: list[Expression]) -> bool:
        """Whether the numbers of edges are read."""
        return any(node.op == EDGE_ROW for node in ordered(bodies))

    #: Which row of features an edge has.
    _edge = f'      {ROW_OF_EDGE}'

    def _open_edges(
        self, level: int, read: list[int], written: list[int]
    ) -> None:
        asked = ask(self._unit, level, read, written)
        self._lines.append(_EDGES.rstrip('\n'))
        if asked:
            self._ahead.append(asked)
            self._lines.append(f'      ask{level}();')

    def declare(self, name: str, dtype: torch.dtype, width: int) -> None:
        """Declares an array of the vertex."""
        kind = CPP_TYPES[dtype]
        self._lines.append(f'    alignas(64) {kind} {name}[{width}];')

    def _block(self, prefix: str, indent: str) -> Block:
        return Block(self._unit, self._types, self._arrays, prefix, indent)

    def _start(self, node: Expression) -> Sink:
        """Declares an aggregate; returns what adds to it."""
        start, step = AGGREGATES[node.op]
        axes = tuple(sorted(self._types.axes(node)))
        width = self._unit.width(axes)
        name = f'a{len(self._arrays)}'
        self._arrays[node] = name
        self.declare(name, node.dtype, width)
        found = self._reset(name, width, start)
        step = step.format(found, '{1}')
        return Sink(node.args[0], axes, f'{found} = {step};')

    def _reset(self, name: str, width: int, start: str) -> str:
        """Sets an aggregate to its first value; returns what it adds to."""
        self._lines.append(f'    lib::fill_n({name}, {width}, {start});')
        return f'{name}[{{0}}]'

    def _fill(self, node: Expression) -> None:
        """A vertex without edges has 0."""
        if node.op in ('max_in', 'min_in'):
            name = self._arrays[node]
            self._lines += [
                '    if (first == last)',
                f'      lib::fill_n({name}, sizeof {name} / sizeof(T), T(0));',
            ]

    def _center(self, bodies: list[Expression], level: int) -> None:
        """Computes the values of the vertex that edges read."""
        wanted = self._centers(bodies)
        block = self._block(f'd{level}_', '    ')
        sinks: list[Sink] = []
        for node in wanted:
            axes = tuple(sorted(self._types.axes(node)))
            name = f'c{level}_{len(sinks)}'
            self.declare(name, node.dtype, self._unit.width(axes))
            sinks.append(Sink(node, axes, f'{name}[{{0}}] = {{1}};'))
        self._lines += block.write(sinks)
        for i, node in enumerate(wanted):
            self._arrays[node] = f'c{level}_{i}'

    def _centers(self, bodies: list[Expression]) -> list[Expression]:
        """The largest parts that are of the vertex, and not yet known."""
        found: dict[Expression, None] = {}
        seen: set[Expression] = set()

        def visit(node: Expression) -> None:
            if node in seen or node in self._arrays or not node.args:
                return
            seen.add(node)
            if self._types.kind(node) in (self._unit.center, PARAMETER):
                found[node] = None
                return
            for arg in node.args:
                visit(arg)

        for body in bodies:
            visit(body)
        return list(found)

    def _neighbours(self, bodies: list[Expression]) -> list[int]:
        """The operands that an edge reads."""
        found: set[int] = set()
        seen: set[Expression] = set()

        def visit(node: Expression) -> None:
            if node in seen or node in self._arrays:
                return
            seen.add(node)
            if node.op == 'operand':
                found.add(int(node.value or 0))
            for arg in node.args:
                visit(arg)

        for body in bodies:
            visit(body)
        return sorted(found)

    def _finish(self) -> None:
        """Writes what is known of the vertex."""
        sinks: list[Sink] = []
        for i, output in enumerate(self._unit.outputs):
            if output.kind != EDGE:
                width = self._unit.width(output.axes)
                text = output.put(f'out{i}[v * {width} + {{0}}]')
                sinks.append(Sink(output.root, output.axes, text))
        self._lines += self._block('f', '    ').write(sinks)
