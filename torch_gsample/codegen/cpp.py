"""The C++ source of a unit.

A kernel of a vertex program runs over vertices. A vertex is computed by one
thread, its edges in order, so the result does not depend on threads; sums are
in pieces (``pieces.py``). Edges are scanned once for each level of dependent
aggregates; the values of an edge stay in registers and small arrays. The loops
of edge maps are in ``cpp_edges.py``.
"""

import hashlib

import torch

from torch_gsample.codegen import pieces
from torch_gsample.codegen.cpp_edges import (
    CHECKS,
    REDUCE_COLUMNS,
    edge_map_lines,
    in_lanes,
)
from torch_gsample.codegen.cpp_library import (
    CLOSE,
    GRAPH,
    HALF,
    HEAD,
    LIBRARY,
    MATH,
    MAX,
    OPEN,
    SUM,
    VERTEX,
)
from torch_gsample.codegen.draws import DRAWS, EDGE_ROW
from torch_gsample.codegen.edge_map import text_of
from torch_gsample.codegen.expression import (
    CPP_TYPES,
    MEMORY_TYPES,
    Expression,
)
from torch_gsample.codegen.loops import Block, Sink
from torch_gsample.codegen.passes import Keeper, Kept, largest, operands_read
from torch_gsample.codegen.pieces import in_pieces, over_edges
from torch_gsample.codegen.prefetch import EDGE_ROW as ROW_OF_EDGE
from torch_gsample.codegen.prefetch import WALK, ask, ask_to_write
from torch_gsample.codegen.unit import (
    AGGREGATES,
    EDGE,
    PARAMETER,
    Output,
    Types,
    Unit,
    operands_of,
    ordered,
)

#: Compiler flags of kernels over vertices: comparisons are vectorised even if
#: operands may be NaN.
_FLAGS = ('-O3', '-fno-trapping-math')


def cpp_source(unit: Unit, text: str = 'vertex program') -> str:
    """Returns the source of a kernel for the CPU.

    Args:
        unit (Unit): What it computes.
        text (str): The name of a kernel over vertices in a comment.
    """
    return preamble(unit) + '\n'.join(_statements(unit, text)) + '\n'


def flags_of(unit: Unit) -> tuple[str, ...]:
    """Returns the compiler flags of a unit."""
    return () if unit.center == EDGE else _FLAGS


def preamble(unit: Unit) -> str:
    """Returns the start of a unit's source."""
    if unit.center != EDGE:
        more = DRAWS if unit.is_random else ''
        more += MAX if unit.has('max_axis') else ''
        more += HALF if unit.has_half else ''
        return ''.join((LIBRARY, OPEN, MATH, SUM, WALK, more, CLOSE))
    text = f'{LIBRARY}\n{CHECKS}'
    return f'{text}\n{REDUCE_COLUMNS}' if in_lanes(unit) else text


def _statements(unit: Unit, text: str) -> list[str]:
    is_edge_map, kind = unit.center == EDGE, CPP_TYPES[unit.dtype]
    over = 'vertices of the order'
    if is_edge_map:
        text = text_of(unit)
        over = 'edges' if unit.pointers is None else 'columns'
    head = [HEAD.format(text=text, range=over, type=kind).rstrip('\n')]
    if is_edge_map:
        return [*head, *edge_map_lines(unit)]
    graph = GRAPH.format(index=CPP_TYPES[unit.index])
    return [*head, graph.rstrip('\n'), *Writer(unit).lines()]


def unit_number(unit: Unit, *more: object) -> int:
    """Returns an id of a unit that is the same in every process.

    Inductor caches graphs on disk, and a process with other units, or units in
    another order, may read the id.

    Args:
        unit (Unit): The unit.
        *more (optional): Distinguishes units with the same source.
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
        levels = [self._types.level(root) for root in self._roots]
        self._levels = range(max(levels) + 1)
        self._kept = Keeper(unit, self._types)

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
        lines += [*self._ahead, VERTEX.rstrip('\n')]
        for i, output in enumerate(self._unit.outputs):
            if output.kind != EDGE:
                asked = ask_to_write(self._unit, i, 'v')
                lines += [f'    {line}' for line in asked]
        return [*lines, *self._lines, '  }', '  return 0;', '}']

    def _vertex(self) -> None:
        """Writes the computation of vertex ``v`` with edges [first, last)."""
        self._rows(self._unit.center, 'v', '    ', self._read)
        for level in self._levels:
            self._pass(level)
        self._finish()

    def _rows(
        self, kind: str, row: str, indent: str, numbers: list[int]
    ) -> None:
        """Declares the row pointers of operands."""
        for number in numbers:
            leaf = self._unit.leaves[number]
            if leaf.kind == kind:
                place = f'{row} * {self._unit.width(leaf.axes)}'
                self._lines.append(
                    f'{indent}const {MEMORY_TYPES[leaf.memory]}* const '
                    f'x{number} = p{number} + {place};'
                )

    def _aggregated(
        self, level: int
    ) -> tuple[list[Expression], list[tuple[int, Output]]]:
        """Returns the aggregates of a pass, and its outputs of edges."""
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
        return sums, edges

    def _bodies(self, level: int) -> list[Expression]:
        """Returns the values of an edge in a pass."""
        sums, edges = self._aggregated(level)
        return [n.args[0] for n in sums] + [out.root for _, out in edges]

    def _pass(self, level: int) -> None:
        """Writes a scan of the edges, for the aggregates of a level."""
        sums, edges = self._aggregated(level)
        bodies = self._bodies(level)
        if not bodies:
            return
        self._center(bodies, level)
        sinks = [self._start(node) for node in sums]
        for i, output in edges:
            width = self._unit.width(output.axes)
            text = output.put(f'out{i}[e * {width} + {{0}}]')
            sinks.append(Sink(output.root, output.axes, text))
        read = operands_read(bodies, self._arrays)
        rest = self._kept.read(bodies, self._arrays)
        ask = self._ask(level, read, [i for i, _ in edges], rest)
        begin = len(self._lines)
        self._lines += [self._neighbor, *ask]
        self._read_edge('      ', read, bodies, bool(edges))
        self._lines += [f'      {kept.row}' for kept in rest.values()]
        self._compute_again(level, rest)
        kept = self._keep(bodies, level)
        for node, value in kept.items():
            text = f'{value.name}[{{0}}] = {{1}};'
            sinks.append(Sink(node, value.axes, text))
        block = self._block(f'e{level}_', '      ')
        body = [*self._lines[begin:], *block.write(sinks)]
        self._lines[begin:] = over_edges(body, self._carry(sums))
        self._arrays.update((x, kept[x].name) for x in kept)
        for node in sums:
            self._fill(node)

    def _read_edge(
        self,
        indent: str,
        read: list[int],
        bodies: list[Expression],
        is_written: bool = False,
    ) -> None:
        """Writes the row pointers of an edge."""
        other = 'S' if self._unit.center == 'D' else 'D'
        self._rows(other, 'u', indent, read)
        kinds = {self._unit.leaves[n].kind for n in read}
        if is_written or EDGE in kinds or self._draws(bodies):
            self._lines.append(self._edge.rstrip('\n'))
            self._rows(EDGE, 'e', indent, read)

    def _keep(
        self, bodies: list[Expression], level: int
    ) -> dict[Expression, Kept]:
        """Chooses and declares the values kept for later passes."""
        if not self._keeps:
            return {}
        levels = range(level + 1, len(self._levels))
        later = [body for n in levels for body in self._bodies(n)]
        found = self._kept.keep(bodies, later, self._arrays)
        for node, kept in found.items():
            size = (kept.most + 1) * kept.width
            kind = CPP_TYPES[node.dtype]
            array = f'  alignas(64) {kind} kept_{kept.name}[{size}];'
            self._ahead.append(array)
            self._lines.append(f'      {kept.row}')
        return found

    def _compute_again(self, level: int, rest: dict[Expression, Kept]) -> None:
        """Computes kept values again for edges beyond the memory."""
        known = self._kept.unkept(self._arrays)
        for most in sorted({kept.most for kept in rest.values()}):
            nodes = [x for x, kept in rest.items() if kept.most == most]
            self._lines.append(f'      if (k - first >= {most}) {{')
            self._read_edge('        ', operands_read(nodes, known), nodes)
            sinks = [
                Sink(x, rest[x].axes, f'{rest[x].name}[{{0}}] = {{1}};')
                for x in nodes
            ]
            block = self._block(f'r{level}_{most}_', '        ', known)
            self._lines += [*block.write(sinks), '      }']

    def _draws(self, bodies: list[Expression]) -> bool:
        """Whether edge ids are read."""
        return any(node.op == EDGE_ROW for node in ordered(bodies))

    #: Whether passes keep values for later passes.
    _keeps = True
    #: The row of an edge in features.
    _edge = f'      {ROW_OF_EDGE}'

    #: Reads the neighbour of an edge.
    _neighbor = '      const int64_t u = indices[k];'

    def _ask(
        self,
        level: int,
        read: list[int],
        written: list[int],
        rest: dict[Expression, Kept],
    ) -> list[str]:
        """Prefetches; returns the statements of an edge."""
        known = self._kept.unkept(self._arrays)
        again = sorted({*operands_read(list(rest), known)} - {*read})
        most = min((kept.most for kept in rest.values()), default=0)
        asked = ask(self._unit, level, read, written, again, most)
        self._ahead += [asked] if asked else []
        return [f'      ask{level}();'] if asked else []

    def _carry(self, sums: list[Expression]) -> list[str]:
        """Adds the sums of a piece to those of the pieces before it."""
        lines = []
        for node in in_pieces(self._unit, sums):
            name, kind = self._arrays[node], CPP_TYPES[node.dtype]
            width = self._unit.width(self._types.axes(node))
            start, step = AGGREGATES[node.op]
            total = f'total_{name}[n]'
            step = step.format(total, f'{name}[n]')
            self._ahead.append(f'  alignas(64) {kind} total_{name}[{width}];')
            lines += [
                f'for (int n = 0; n < {width}; ++n) {{',
                f'  {total} = from == first ? {name}[n] : {step};',
                f'  {name}[n] = {start};',
                '}',
            ]
        return lines

    def declare(self, name: str, dtype: torch.dtype, width: int) -> None:
        """Declares an array of the vertex."""
        kind = CPP_TYPES[dtype]
        self._lines.append(f'    alignas(64) {kind} {name}[{width}];')

    def _block(
        self,
        prefix: str,
        indent: str,
        arrays: dict[Expression, str] | None = None,
    ) -> Block:
        arrays = self._arrays if arrays is None else arrays
        return Block(self._unit, self._types, arrays, prefix, indent)

    def _start(self, node: Expression) -> Sink:
        """Declares an aggregate; returns its update statement."""
        start, step = AGGREGATES[node.op]
        axes = tuple(sorted(self._types.axes(node)))
        width = self._unit.width(axes)
        name = f'a{len(self._arrays)}'
        self._arrays[node] = name
        self.declare(name, node.dtype, width)
        found = self._reset(node, width, start)
        step = step.format(found, '{1}')
        return Sink(node.args[0], axes, f'{found} = {step};')

    def _reset(self, node: Expression, width: int, start: str) -> str:
        """Initialises an aggregate; returns its variable."""
        name = self._arrays[node]
        self._lines.append(f'    lib::fill_n({name}, {width}, {start});')
        return f'{name}[{{0}}]'

    def _fill(self, node: Expression) -> None:
        """Sets the value of vertices with several pieces, or no edges."""
        name = self._arrays[node]
        if in_pieces(self._unit, [node]):
            step = AGGREGATES[node.op][1]
            step = step.format(f'total_{name}[n]', f'{name}[n]')
            width = self._unit.width(self._types.axes(node))
            self._lines += [
                f'    if (last - first > {pieces.PIECE})',
                f'      for (int n = 0; n < {width}; ++n)',
                f'        {name}[n] = {step};',
            ]
        elif node.op in ('max_in', 'min_in'):
            self._lines += [
                '    if (first == last)',
                f'      lib::fill_n({name}, sizeof {name} / sizeof(T), T(0));',
            ]

    def _center(self, bodies: list[Expression], level: int) -> None:
        """Computes the values of the vertex that edges read."""
        center = self._unit.center
        wanted = largest(bodies, self._arrays, self._types, center)
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

    def _finish(self) -> None:
        """Writes the outputs of the vertex."""
        sinks: list[Sink] = []
        for i, output in enumerate(self._unit.outputs):
            if output.kind != EDGE:
                width = self._unit.width(output.axes)
                text = output.put(f'out{i}[v * {width} + {{0}}]')
                sinks.append(Sink(output.root, output.axes, text))
        self._lines += self._block('f', '    ').write(sinks)
