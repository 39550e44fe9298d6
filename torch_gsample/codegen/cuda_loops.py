"""Loops over features of a vertex on a GPU, divided among lanes."""

from typing import Any

from torch_gsample.codegen.expression import CPP_TYPES, Expression
from torch_gsample.codegen.loops import STEPS, Block, Sink
from torch_gsample.codegen.unit import AGGREGATES

#: The barrier of a group's lanes between writes and reads.
SYNC = '__syncwarp(mask);'


class GroupBlock(Block):
    """A block with loops divided among the lanes of a group."""

    def __init__(self, writer: Any, *args: object):
        super().__init__(*args)  # type: ignore[arg-type]
        self._writer, self._keeps = writer, False

    def write(self, sinks: list[Sink]) -> list[str]:  # type: ignore[override]
        """Writes the block; a group only synchronises for stored values."""
        lines = super().write(sinks)
        if self._keeps:
            return lines
        return [line for line in lines if line.strip() != SYNC]

    def _draw_rows(self, nodes: object) -> None:
        """Each lane draws for itself."""

    def _draw(self, node: Expression) -> str:
        axes: Any = node.args[2].value
        return f'draw_of({self._draw_of(node)}, {self.index(axes)})'

    def _declare(self, node: Expression, name: str) -> None:
        width = self._unit.width(self._axes(node))
        self._writer.declare(name, node.dtype, width)
        self._keeps = True

    def _loop(
        self,
        axes: tuple[int, ...],
        sinks: list[Sink],
        sums: list[Expression],
        names: dict[Expression, str],
    ) -> None:
        sinks = list(sinks)
        for node in sums:
            name = f't{names[node]}'
            self._writer.declare(name, node.dtype, self._unit.width(axes))
            sinks.append(Sink(node.args[0], axes, f'{name}[{{0}}] = {{1}};'))
        self._nest(axes, sinks)
        for node in sums:
            self._add(axes, node, names[node])

    def _nest(self, axes: tuple[int, ...], sinks: list[Sink]) -> None:
        self._open(self._unit.width(axes))
        rest = 'f'
        for axis in reversed(axes):
            size = self._unit.sizes[axis]
            first = axis == axes[0]
            text = rest if first else f'{rest} % {size}'
            self._line(f'const int i{axis} = {text};', 1)
            rest = f'{rest} / {size}'
        self._each(sinks, 1)
        self._line('}')
        self._line(SYNC)

    def _open(self, count: int) -> None:
        """Opens a loop of f from 0 to a count."""
        for line in self._writer.open_loop(count):
            self._line(line)

    def _add(self, axes: tuple[int, ...], node: Expression, name: str) -> None:
        """Sums an axis of an array in the CPU's order."""
        place = axes.index(int(node.value or 0))
        size = self._unit.sizes[axes[place]]
        inner = self._unit.width(axes[place + 1 :])
        count = self._unit.width(axes) // size
        is_sum = node.op == 'sum_axis'
        if is_sum and inner == 1 and place == len(axes) - 1:
            lanes = min(16, 1 << (size - 1).bit_length())
            part = f'q{name}'
            self._writer.declare(part, node.dtype, count * lanes)
            self._open(count * lanes)
            self._line(
                f'{part}[f] = partial_sum<{size}>'
                f'(t{name} + f / {lanes} * {size}, f % {lanes});',
                1,
            )
            self._line('}')
            self._line(SYNC)
            self._open(count)
            self._line(
                f'{name}[f] = folded<{lanes}>({part} + f * {lanes});', 1
            )
        else:
            kind = CPP_TYPES[node.dtype]
            self._open(count)
            start, step = AGGREGATES[STEPS[node.op]]
            self._line(f'{kind} total = {start};', 1)
            self._line(f'for (int n = 0; n < {size}; ++n)', 1)
            at = f'(f / {inner} * {size} + n) * {inner} + f % {inner}'
            step = step.format('total', f't{name}[{at}]')
            self._line(f'  total = {step};', 1)
            self._line(f'{name}[f] = total;', 1)
        self._line('}')
        self._line(SYNC)
