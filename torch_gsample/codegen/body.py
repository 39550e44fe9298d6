"""The statements of a kernel that compute the value of an edge."""

import math

import torch

from torch_gsample.codegen.expression import CPP_TYPES, Expression
from torch_gsample.codegen.operations import cpp_of
from torch_gsample.codegen.program import Program, Role


class Body:
    """Statements for edge ``e`` of column ``col``, for the CPU and CUDA.

    They end with ``take(value, f)`` for each feature ``f``; tensors are
    ``x0``, ``x1`` and so on, of ``n0``, ``n1`` rows.

    Args:
        program (Program): The program.
    """

    def __init__(self, program: Program):
        self._program = program
        self._lines: list[str] = []
        self._names: dict[Expression, str] = {}
        self._indent = '    '

    def lines(self) -> list[str]:
        """Writes the statements."""
        root = self._program.root
        if not self._program.wide:
            self._write(f'take({self._value(root)}, 0);')
            return self._lines
        self._narrow(root)
        self._open()
        self._write(f'take({self._value(root)}, f);')
        self._close()
        return self._lines

    def _write(self, line: str) -> None:
        self._lines.append(self._indent + line)

    def _open(self) -> None:
        self._write(f'for (int f = 0; f < {self._program.features}; ++f) {{')
        self._indent += '  '

    def _close(self) -> None:
        self._indent = self._indent[2:]
        self._write('}')

    def _narrow(self, root: Expression) -> None:
        """Computes what all features share, before a loop over them."""
        for node in root.nodes():
            if not node.wide and node.op != 'constant':
                self._value(node)

    def _value(self, node: Expression) -> str:
        """Writes what computes a value, once; returns its name."""
        if node.op == 'constant':
            return number(node)
        if node not in self._names:
            if node.op == 'sum_features':
                name = self._sum(node)
            else:
                name = self._assign(node)
            self._names[node] = name
        return self._names[node]

    def _assign(self, node: Expression) -> str:
        kind = CPP_TYPES[node.dtype]
        if node.op == 'operand':
            text = self._operand(int(node.value or 0))
        else:
            args = [self._value(arg) for arg in node.args]
            text = cpp_of(node).format(*args).replace('T(', f'{kind}(')
        name = f'v{len(self._names)}'
        self._write(f'const {kind} {name} = {text};')
        return name

    def _sum(self, node: Expression) -> str:
        """Adds up the features of a value, in order."""
        self._narrow(node.args[0])
        before, name = dict(self._names), f's{len(self._names)}'
        self._write(f'{CPP_TYPES[node.dtype]} {name} = 0;')
        self._open()
        self._write(f'{name} += {self._value(node.args[0])};')
        self._close()
        self._names = before  # what the loop computed is gone
        return name

    def _operand(self, number: int) -> str:
        operand = self._program.operands[number]
        place = {Role.EDGE: 'e', Role.COLUMN: 'col'}.get(operand.role, '0')
        if operand.role == Role.GATHER:
            assert operand.index is not None
            place = f'int64_t(x{operand.index}[e])'
            if self._program.operands[operand.index].wraps:
                place = f'wrapped(x{operand.index}[e], n{number})'
        if operand.wide:
            place = f'{place} * {self._program.features} + f'
        return f'x{number}[{place}]'


def number(node: Expression) -> str:
    """Returns the C++ text of a constant."""
    value, kind = node.value, CPP_TYPES[node.dtype]
    assert value is not None
    if node.dtype == torch.bool:
        return 'true' if value else 'false'
    if isinstance(value, float) and math.isnan(value):
        return f'{kind}(NAN)'
    if isinstance(value, float) and math.isinf(value):
        return f'{kind}({"-" if value < 0 else ""}INFINITY)'
    return f'{kind}({value!r})'
