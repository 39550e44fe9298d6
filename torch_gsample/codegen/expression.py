"""Expressions that a generated kernel computes at each vertex or edge."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

#: The dtypes of values and their C++ types.
CPP_TYPES = {
    torch.float32: 'float',
    torch.float64: 'double',
    torch.int32: 'int32_t',
    torch.int64: 'int64_t',
    torch.bool: 'bool',
}
#: The C++ types in memory; kernels compute half precision in float
#: (``kernel_half.h``).
MEMORY_TYPES = {
    **CPP_TYPES,
    torch.bfloat16: 'bf16_t',
    torch.float16: 'half_t',
}


@dataclass(frozen=True)
class Expression:
    """A value at each vertex or edge.

    Args:
        op (str): ``'operand'``, ``'constant'`` or the name of an operation.
        dtype (torch.dtype): Of the value.
        args (Tuple[Expression, ...]): Its operands.
        value (float, optional): A constant, the index of an operand, the axis
            of a sum, the value of an empty aggregate if not 0, or the axes of
            a position.
    """

    op: str
    dtype: torch.dtype
    args: tuple['Expression', ...] = ()
    value: Any = None
    size: int = field(init=False, compare=False)  # of the tree
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        size = 1 + sum(arg.size for arg in self.args)
        object.__setattr__(self, 'size', size)
        parts = self.op, self.dtype, self.args, self.value
        object.__setattr__(self, '_hash', hash(parts))

    def __hash__(self) -> int:
        return self._hash  # shared parts: a walk would take too long

    def nodes(self) -> Iterator['Expression']:
        """Yields each distinct part, operands first."""
        seen: set[Expression] = set()

        def visit(node: Expression) -> Iterator[Expression]:
            if node in seen:
                return
            seen.add(node)
            for arg in node.args:
                yield from visit(arg)
            yield node

        return visit(self)

    def text(self, names: Sequence[str]) -> str:
        """Returns it as text.

        Args:
            names (Sequence[str]): Names of operands.
        """
        if self.op == 'operand':
            return names[int(self.value or 0)]
        if self.op == 'constant':
            return repr(self.value)
        args = [arg.text(names) for arg in self.args]
        if self.op == 'cast':
            return f'{str(self.dtype).removeprefix("torch.")}({args[0]})'
        sign = SIGNS.get(self.op)
        if sign is not None:
            return f'({args[0]} {sign} {args[1]})'
        return f'{self.op}({", ".join(args)})'


#: Reductions of an axis of features; `value` is the axis.
ALONG = frozenset({'sum_axis', 'max_axis'})

#: Infix operators in Python and C++.
SIGNS = {
    **{'add': '+', 'sub': '-', 'mul': '*', 'div': '/'},
    **{'eq': '==', 'ne': '!=', 'lt': '<', 'le': '<=', 'gt': '>', 'ge': '>='},
    **{'logical_and': '&', 'logical_or': '|'},
}


def operand(number: int, dtype: torch.dtype) -> Expression:
    """Returns the value of an operand."""
    return Expression('operand', dtype, value=number)


def constant(value: float | int | bool, dtype: torch.dtype) -> Expression:
    """Returns a constant."""
    if dtype.is_floating_point:
        value = float(value)
    return Expression('constant', dtype, value=value)


def cast(x: Expression, dtype: torch.dtype) -> Expression:
    """Returns a value in another dtype."""
    if x.dtype == dtype:
        return x
    if x.op == 'constant' and x.value is not None:
        return constant(x.value, dtype)
    return Expression('cast', dtype, (x,))


def apply(
    op: str, *args: Expression, dtype: torch.dtype | None = None
) -> Expression:
    """Returns an operation on values.

    Args:
        op (str): Its name.
        *args (Expression): Its operands.
        dtype (torch.dtype, optional): Of the result; that of the last operand
            if not given.
    """
    return Expression(op, dtype or args[-1].dtype, args)


def sum_axis(x: Expression, axis: int = 0) -> Expression:
    """Returns the sum along an axis of features."""
    return Expression('sum_axis', x.dtype, (x,), axis)
