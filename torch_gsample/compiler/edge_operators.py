"""Elementwise torch operators as expressions of edges."""

from collections.abc import Callable
from typing import Any

import torch

from torch_gsample.codegen.expression import (
    SIGNS,
    Expression,
    apply,
    cast,
    constant,
)
from torch_gsample.compiler.ir import aten


class NotFusible(Exception):
    """A node is not elementwise work on edges that a kernel supports."""


def _same(name: str) -> Callable[..., Expression]:
    """Returns the builder of an operation with operands of one dtype."""
    count = 2 if name in SIGNS or name in ('maximum', 'minimum') else 1

    def build(dtype: torch.dtype, *args: Any) -> Expression:
        if len(args) != count:  # a factor of the second operand
            raise NotFusible
        return apply(name, *(_as(arg, dtype) for arg in args))

    return build


def _compared(name: str) -> Callable[..., Expression]:
    """Returns the builder of a comparison of operands of one dtype."""

    def build(dtype: torch.dtype, x: Expression, y: Any) -> Expression:
        if isinstance(y, Expression) and x.dtype != y.dtype:
            raise NotFusible
        if isinstance(y, float) and not x.dtype.is_floating_point:
            raise NotFusible
        return apply(name, x, _as(y, x.dtype), dtype=torch.bool)

    return build


def _as(value: Any, dtype: torch.dtype) -> Expression:
    if isinstance(value, Expression):
        return cast(value, dtype)
    if not isinstance(value, (int, float, bool)):
        raise NotFusible
    return constant(value, dtype)


def _clamp(
    dtype: torch.dtype, x: Expression, low: Any = None, high: Any = None
) -> Expression:
    x = cast(x, dtype)
    if low is not None:
        x = apply('clamp_min', x, _as(low, dtype))
    if high is not None:
        x = apply('clamp_max', x, _as(high, dtype))
    return x


def _where(dtype: torch.dtype, c: Expression, x: Any, y: Any) -> Expression:
    if c.dtype != torch.bool:
        raise NotFusible
    return apply('where', c, _as(x, dtype), _as(y, dtype))


def _power(dtype: torch.dtype, x: Any, exponent: Any) -> Expression:
    if not isinstance(x, Expression) or isinstance(exponent, Expression):
        raise NotFusible
    return apply('pow', cast(x, dtype), _as(exponent, dtype))


def _convert(
    dtype: torch.dtype, x: Expression, to: Any, *more: Any
) -> Expression:
    if to is not dtype or more:
        raise NotFusible
    return cast(x, dtype)


def _square(dtype: torch.dtype, x: Expression) -> Expression:
    return apply('mul', cast(x, dtype), cast(x, dtype))


#: Builders of operators' expressions, from the result dtype and arguments.
BUILDERS: dict[Any, Callable[..., Expression]] = {
    **{
        getattr(getattr(aten, name), overload): _same(name)
        for name in ('add', 'sub', 'mul', 'div')
        for overload in ('Tensor', 'Scalar')
    },
    **{
        getattr(aten, name).default: _same(name)
        for name in (
            'neg abs sqrt exp log sigmoid tanh relu reciprocal maximum '
            'minimum logical_not detach logical_and logical_or'
        ).split()
    },
    **{
        getattr(getattr(aten, name), overload): _compared(name)
        for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge')
        for overload in ('Tensor', 'Scalar')
    },
    aten.bitwise_and.Tensor: _same('logical_and'),
    aten.bitwise_or.Tensor: _same('logical_or'),
    aten.bitwise_not.default: _same('logical_not'),
    aten.square.default: _square,
    aten.clamp.default: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_max.default: lambda dtype, x, high: _clamp(
        dtype, x, None, high
    ),
    aten.where.self: _where,
    aten.where.Scalar: _where,
    aten.where.ScalarOther: _where,
    aten.where.ScalarSelf: _where,
    aten.pow.Tensor_Scalar: _power,
    aten.to.dtype: _convert,
}
