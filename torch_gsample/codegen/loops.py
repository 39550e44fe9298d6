"""Loops over features: the statements of a vertex or of an edge."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torch_gsample.codegen.draws import EDGE_ROW, KEPT
from torch_gsample.codegen.expression import ALONG, CPP_TYPES, Expression
from torch_gsample.codegen.operations import cpp_of
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    Types,
    Unit,
)

#: Operations never computed twice, even to save an array.
COSTLY = frozenset(
    {
        *('exp', 'log', 'sigmoid', 'tanh', 'sqrt', 'pow', 'div', 'reciprocal'),
        *('erf', 'sin', 'cos', 'asin', 'acos', 'atan2', 'log1p', 'expm1'),
        KEPT,
    }
)
#: Functions of kernel_math.h, for kernels over vertices.
_OWN = 'exp', 'log', 'log1p', 'expm1', 'tanh'
#: Aggregations of edges with the update of an axis reduction.
STEPS = {'sum_axis': 'sum_in', 'max_axis': 'max_in'}


@dataclass(frozen=True)
class Sink:
    """A statement that uses a value.

    Args:
        root (Expression): The value.
        axes (Tuple[int, ...]): The statement runs at each index of these axes.
        text (str): The statement: ``{0}`` is the index, ``{1}`` the value.
    """

    root: Expression
    axes: tuple[int, ...]
    text: str


class Block:
    """Writes loops that compute values and run a statement for each.

    Values with all axes of a loop stay in registers. Those with fewer axes,
    and sums and maxima along an axis, are in arrays that later loops read.

    Sums have the same order on any processor: those along the last axis of a
    value use 16 partial sums (``kernel_math.h``), others are sequential. All
    sums of an edge map are sequential, as in PyTorch.

    Args:
        unit (Unit): The unit.
        types (Types): The types of its expressions.
        arrays (Dict[Expression, str]): The arrays of known values.
        prefix (str): The prefix of array names.
        indent (str): The indentation of each line.
    """

    def __init__(
        self,
        unit: Unit,
        types: Types,
        arrays: dict[Expression, str],
        prefix: str,
        indent: str,
    ):
        self._unit, self._types = unit, types
        self._is_edge_map = unit.center == EDGE
        self._arrays = dict(arrays)
        self._prefix, self._indent = prefix, indent
        self._lines: list[str] = []
        self._stages: dict[Expression, int] = {}
        self._drawn: dict[Expression, str] = {}

    def write(self, sinks: Sequence[Sink]) -> list[str]:
        """Returns the statements."""
        nodes = self._nodes(sink.root for sink in sinks)
        self._draw_rows(nodes)
        groups: dict[tuple, list[Sink]] = defaultdict(list)
        sums: dict[tuple, list[Expression]] = defaultdict(list)
        for sink in sinks:
            key = self._stages[sink.root], len(sink.axes), sink.axes
            groups[key].append(sink)
        names: dict[Expression, str] = {}
        for node in self._stored(nodes, sinks):
            names[node] = f'{self._prefix}{len(names)}'
            source = node.args[0] if node.op in ALONG else node
            axes = self._axes(source)
            key = self._stages[source], len(axes), axes
            self._declare(node, names[node])
            if node.op in ALONG:
                sums[key].append(node)
            else:
                text = f'{names[node]}[{{0}}] = {{1}};'
                groups[key].append(Sink(node, axes, text))
        for key in sorted({*groups, *sums}):
            self._loop(key[2], groups[key], sums[key], names)
            written = [*sums[key], *(sink.root for sink in groups[key])]
            for node in written:
                if node in names:
                    self._arrays[node] = names[node]
        return self._lines

    def _axes(self, node: Expression) -> tuple[int, ...]:
        return tuple(sorted(self._types.axes(node)))

    def _nodes(self, roots: Iterable[Expression]) -> list[Expression]:
        """The parts of values down to known ones, and their stages."""
        found: dict[Expression, None] = {}

        def visit(node: Expression) -> None:
            if node in found:
                return
            if node not in self._arrays:
                for arg in node.args:
                    visit(arg)
            found[node] = None
            stage = 0
            if node not in self._arrays and node.args:
                stage = max(self._stages[arg] for arg in node.args)
                stage += node.op in ALONG
            self._stages[node] = stage

        for root in roots:
            visit(root)
        return list(found)

    def _stored(
        self, nodes: list[Expression], sinks: Sequence[Sink]
    ) -> list[Expression]:
        """The values that need an array."""
        users: dict[Expression, set] = defaultdict(set)
        for node in nodes:
            if node not in self._arrays:
                for arg in node.args:
                    key = self._stages[arg if node.op in ALONG else node]
                    place = arg if node.op in ALONG else node
                    users[arg].add((key, self._axes(place)))
        for sink in sinks:
            users[sink.root].add((self._stages[sink.root], sink.axes))
        stored = []
        for node in nodes:
            if node in self._arrays or not node.args:
                continue
            here = self._stages[node], self._axes(node)
            axes_differ = any(axes != here[1] for _, axes in users[node])
            later = any(stage != here[0] for stage, _ in users[node])
            if (
                node.op in ALONG
                or axes_differ
                or (later and node.op in COSTLY)
            ):
                stored.append(node)
        return stored

    def _declare(self, node: Expression, name: str) -> None:
        kind = CPP_TYPES[node.dtype]
        width = self._unit.width(self._axes(node))
        start = ' = {}' if node.op == 'sum_axis' else ''
        self._line(f'alignas(64) {kind} {name}[{width}]{start};')
        if node.op == 'max_axis':
            self._line(f'lib::fill_n({name}, {width}, {kind}(-INFINITY));')

    def _line(self, text: str, depth: int = 0) -> None:
        self._lines.append(f'{self._indent}{"  " * depth}{text}')

    def _draw(self, node: Expression) -> str:
        """Returns the draw of a feature."""
        axes: Any = node.args[2].value
        return f'{self._drawn[node]}[{self.index(axes)}]'

    def _draw_rows(self, nodes: Iterable[Expression]) -> None:
        """Writes all draws of a row at once, four per block."""
        for node in nodes:
            if node.op == KEPT and node not in self._arrays:
                name = f'{self._prefix}w{len(self._drawn)}'
                blocks = -(-self._unit.width(self._axes(node)) // 4)
                self._line(f'alignas(64) uint32_t {name}[{4 * blocks}];')
                given = self._draw_of(node)
                self._line(f'draw_row<{blocks}>({given}, {name});')
                self._drawn[node] = name

    def _draw_of(self, node: Expression) -> str:
        """Returns call, key and row of a draw."""
        key, row = node.args[:2]
        vertex = 'v' if self._unit.center == DESTINATION else 'u'
        at = 'e' if row.op == EDGE_ROW else vertex
        if row.op == 'operand':  # of a piece (pieces.py)
            at = f'x{row.value}[0]'
        return f'{node.value}u, x{key.value}[0], {at}'

    def index(self, axes: Iterable[int]) -> str:
        """Returns the array index of a value with some axes."""
        text = ''
        for axis in axes:
            size = self._unit.sizes[axis]
            text = f'({text}) * {size} + i{axis}' if text else f'i{axis}'
        return text or '0'

    def _loop(
        self,
        axes: tuple[int, ...],
        sinks: list[Sink],
        sums: list[Expression],
        names: dict[Expression, str],
    ) -> None:
        """Writes the loop over some axes, with its body."""
        sinks = list(sinks)
        last = [
            node
            for node in sums
            if node.value == axes[-1] and not self._is_edge_map
        ]
        for node in sums:
            name = names[node]
            if node in last:
                kind, width = CPP_TYPES[node.dtype], self._unit.width(axes)
                self._line(f'alignas(64) {kind} t{name}[{width}];')
                sink = Sink(node.args[0], axes, f't{name}[{{0}}] = {{1}};')
            else:
                place = f'{name}[{self.index(self._axes(node))}]'
                text = f'{place} += {{1}};'
                if node.op != 'sum_axis':
                    step = AGGREGATES[STEPS[node.op]][1]
                    text = f'{place} = {step.format(place, "{1}")};'
                sink = Sink(node.args[0], axes, text)
            sinks.append(sink)
        self._nest(axes, sinks)
        for node in last:
            size = self._unit.sizes[axes[-1]]
            count = self._unit.width(axes[:-1])
            name = names[node]
            self._line(f'for (int i = 0; i < {count}; ++i)')
            total = f'{STEPS[node.op][:3]}_of<{size}>(t{name} + i * {size})'
            self._line(f'  {name}[i] = {total};')

    def _nest(self, axes: tuple[int, ...], sinks: list[Sink]) -> None:
        for depth, axis in enumerate(axes):
            if depth == len(axes) - 1 and not self._is_edge_map:
                self._lines.append('#pragma omp simd')
            size = self._unit.sizes[axis]
            self._line(
                f'for (int i{axis} = 0; i{axis} < {size}; ++i{axis}) {{', depth
            )
        if not axes:
            self._line('{')
        self._each(sinks, max(1, len(axes)))
        for depth in reversed(range(max(1, len(axes)))):
            self._line('}', depth)

    def _each(self, sinks: list[Sink], depth: int) -> None:
        """Writes the statements at each index."""
        values: dict[Expression, str] = {}
        for sink in sinks:
            value = self._value(sink.root, values, depth)
            index = self.index(sink.axes)
            self._line(sink.text.format(index, value), depth)

    def _value(
        self, node: Expression, values: dict[Expression, str], depth: int
    ) -> str:
        """Writes the computation of a value; returns its name."""
        if node.op == 'constant':
            return number(node)
        if node in values:
            return values[node]
        kind = CPP_TYPES[node.dtype]
        axes = self._axes(node)
        if node in self._arrays:
            text = f'{self._arrays[node]}[{self.index(axes)}]'
        elif node.op == 'operand':
            text = f'x{node.value}[{self.index(axes)}]'
            if self._types.leaf(node).half is not None:
                text = f'wide({text})'
        elif node.op == KEPT:
            text = f'{self._draw(node)} < uint32_t({node.args[3].value})'
        else:
            args = [self._value(arg, values, depth) for arg in node.args]
            text = cpp_of(node).format(*args).replace('T(', f'{kind}(')
            if not self._is_edge_map:
                for name in _OWN:
                    text = text.replace(f'lib::{name}(', f'{name}_of(')
        name = f'v{len(values)}'
        self._line(f'const {kind} {name} = {text};', depth)
        values[node] = name
        return name


def number(node: Expression) -> str:
    """Returns a constant in C++."""
    value, kind = node.value, CPP_TYPES[node.dtype]
    assert value is not None
    if node.dtype == torch.bool:
        return 'true' if value else 'false'
    if isinstance(value, float) and math.isnan(value):
        return f'{kind}(NAN)'
    if isinstance(value, float) and math.isinf(value):
        return f'{kind}({"-" if value < 0 else ""}INFINITY)'
    return f'{kind}({value!r})'
