"""The operations of expressions: C++ source, PyTorch function, derivative.

They agree with PyTorch, including NaN and ties. Those in :data:`INEXACT` may
differ in the last bit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.expression import (
    SIGNS,
    Expression,
    apply,
    cast,
    constant,
)

#: A function from (value, gradient of the value) to the gradient of each
#: operand.
Derivative = Callable[[Expression, Expression], Sequence[Expression | None]]


@dataclass(frozen=True)
class Operation:
    """One operation on the values of an edge.

    Args:
        cpp (str): Its C++ source: ``{0}`` is an operand, ``T`` its type.
        function (Callable): The function of PyTorch.
        derivative (Callable, optional): Its gradients.
    """

    cpp: str
    function: Callable[..., Tensor]
    derivative: Derivative | None = None


def _zero(x: Expression) -> Expression:
    return constant(0, x.dtype)


def _times(x: Expression, y: Expression) -> Expression:
    return apply('mul', x, y)


def _where(c: Expression, x: Expression, y: Expression) -> Expression:
    return apply('where', c, x, y)


def _is(op: str, x: Expression, y: Expression) -> Expression:
    return apply(op, x, y, dtype=torch.bool)


def _div(v: Expression, g: Expression) -> Any:
    b = v.args[1]
    return apply('div', g, b), apply('neg', _times(g, apply('div', v, b)))


def _pow(v: Expression, g: Expression) -> Any:
    x, exponent = v.args
    assert exponent.value is not None
    if exponent.value == 0:
        return None, None
    rest = apply('pow', x, constant(exponent.value - 1, x.dtype))
    return _times(g, _times(exponent, rest)), None


def _extreme(wins: str, loses: str) -> Derivative:
    """The gradient of a maximum or minimum, shared by equal operands."""

    def share(v: Expression, g: Expression) -> Any:
        a, b = v.args
        half = _times(g, constant(0.5, g.dtype))
        shared = _where(_is('eq', a, b), half, g)
        return (
            _where(_is(loses, a, b), _zero(g), shared),
            _where(_is(wins, a, b), _zero(g), shared),
        )

    return share


def _bound(op: str) -> Derivative:
    def inside(v: Expression, g: Expression) -> Any:
        return _where(_is(op, *v.args), g, _zero(g)), None

    return inside


def _sigmoid(v: Expression, g: Expression) -> Any:
    one = constant(1, v.dtype)
    return [_times(g, _times(v, apply('sub', one, v)))]


def _tanh(v: Expression, g: Expression) -> Any:
    one = constant(1, v.dtype)
    return [_times(g, apply('sub', one, _times(v, v)))]


def _erf(v: Expression, g: Expression) -> Any:
    # 2 / sqrt(pi) e^(-x^2)
    bell = apply('exp', apply('neg', _times(v.args[0], v.args[0])))
    scale = constant(2 / math.sqrt(math.pi), v.dtype)
    return [_times(g, _times(scale, bell))]


def _atan2(v: Expression, g: Expression) -> Any:
    # (x dy - y dx) / (x^2 + y^2), and 0 at the origin, as in torch
    y, x = v.args
    square = apply('add', _times(y, y), _times(x, x))
    is_origin = _is('eq', square, _zero(square))
    square = _where(is_origin, constant(1, v.dtype), square)
    part = _where(is_origin, _zero(g), apply('div', g, square))
    return _times(part, x), apply('neg', _times(part, y))


def _asin(v: Expression, g: Expression) -> Any:
    # 1 / sqrt(1 - x^2)
    [x], one = v.args, constant(1, v.dtype)
    rest = _times(apply('sub', one, x), apply('add', one, x))
    return [apply('div', g, apply('sqrt', rest))]


def _log1p(v: Expression, g: Expression) -> Any:
    one = constant(1, v.dtype)
    return [apply('div', g, apply('add', one, v.args[0]))]


def _expm1(v: Expression, g: Expression) -> Any:
    return [_times(g, apply('add', v, constant(1, v.dtype)))]


def _nothing(v: Expression, g: Expression) -> Any:
    return [_times(g, _zero(g))]


#: Rounding functions, with ties to even, and their C++ names.
_STEPS = {'round': 'nearbyint', 'floor': 'floor', 'ceil': 'ceil'}


def _none(v: Expression, g: Expression) -> Any:
    return [None] * len(v.args)


def _signed(name: str) -> Operation:
    derivatives: dict[str, Derivative] = {
        'add': lambda v, g: (g, g),
        'sub': lambda v, g: (g, apply('neg', g)),
        'mul': lambda v, g: (_times(g, v.args[1]), _times(g, v.args[0])),
        'div': _div,
    }
    return Operation(
        f'{{0}} {SIGNS[name]} {{1}}',
        getattr(torch, name),
        derivatives.get(name, _none),
    )


OPERATIONS: dict[str, Operation] = {
    **{name: _signed(name) for name in SIGNS},
    'logical_not': Operation('!{0}', torch.logical_not, _none),
    'neg': Operation('-{0}', torch.neg, lambda v, g: [apply('neg', g)]),
    'abs': Operation(
        'lib::abs({0})',
        torch.abs,
        lambda v, g: [_times(g, apply('sign', v.args[0]))],
    ),
    'sign': Operation('T((0 < {0}) - ({0} < 0))', torch.sign, _nothing),
    'sqrt': Operation(
        'lib::sqrt({0})',
        torch.sqrt,
        lambda v, g: [apply('div', g, _times(constant(2, v.dtype), v))],
    ),
    'reciprocal': Operation(
        'T(1) / {0}',
        torch.reciprocal,
        lambda v, g: [apply('neg', _times(g, _times(v, v)))],
    ),
    'pow': Operation('lib::pow({0}, {1})', torch.pow, _pow),
    'exp': Operation('lib::exp({0})', torch.exp, lambda v, g: [_times(g, v)]),
    'log': Operation(
        'lib::log({0})', torch.log, lambda v, g: [apply('div', g, v.args[0])]
    ),
    'sigmoid': Operation(
        'T(1) / (T(1) + lib::exp(-{0}))', torch.sigmoid, _sigmoid
    ),
    'tanh': Operation('lib::tanh({0})', torch.tanh, _tanh),
    'erf': Operation('lib::erf({0})', torch.erf, _erf),
    'sin': Operation(
        'lib::sin({0})',
        torch.sin,
        lambda v, g: [_times(g, apply('cos', v.args[0]))],
    ),
    'cos': Operation(
        'lib::cos({0})',
        torch.cos,
        lambda v, g: [apply('neg', _times(g, apply('sin', v.args[0])))],
    ),
    'asin': Operation('lib::asin({0})', torch.asin, _asin),
    'acos': Operation(
        'lib::acos({0})',
        torch.acos,
        lambda v, g: [apply('neg', _asin(v, g)[0])],
    ),
    'atan2': Operation('lib::atan2({0}, {1})', torch.atan2, _atan2),
    'log1p': Operation('lib::log1p({0})', torch.log1p, _log1p),
    'expm1': Operation('lib::expm1({0})', torch.expm1, _expm1),
    **{
        name: Operation(f'lib::{cpp}({{0}})', getattr(torch, name), _nothing)
        for name, cpp in _STEPS.items()
    },
    'relu': Operation(
        '{0} < 0 ? T(0) : {0}',
        torch.relu,
        lambda v, g: [_where(_is('le', v, constant(0, v.dtype)), _zero(g), g)],
    ),
    'clamp_min': Operation(
        '{0} < {1} ? {1} : {0}', torch.clamp_min, _bound('ge')
    ),
    'clamp_max': Operation(
        '{0} > {1} ? {1} : {0}', torch.clamp_max, _bound('le')
    ),
    'maximum': Operation(
        '{0} != {0} || {0} > {1} ? {0} : {1}',
        torch.maximum,
        _extreme('gt', 'lt'),
    ),
    'minimum': Operation(
        '{0} != {0} || {0} < {1} ? {0} : {1}',
        torch.minimum,
        _extreme('lt', 'gt'),
    ),
    'where': Operation(
        '{0} ? {1} : {2}',
        torch.where,
        lambda v, g: (
            None,
            _where(v.args[0], g, _zero(g)),
            _where(v.args[0], _zero(g), g),
        ),
    ),
    'detach': Operation('{0}', torch.detach, _none),
    'cast': Operation(
        'T({0})',
        lambda x: x,
        lambda v, g: [cast(g, v.args[0].dtype)],
    ),
}

#: Operations that may differ from PyTorch in the last bit (its vector
#: libraries do, even for square roots).
INEXACT = frozenset(
    {
        *('exp', 'log', 'sigmoid', 'sqrt', 'sum_axis', 'tanh'),
        *('erf', 'sin', 'cos', 'asin', 'acos', 'atan2', 'log1p', 'expm1'),
    }
)

#: Powers that PyTorch computes by multiplication.
_POWERS = {
    1.0: '{0}',
    2.0: '{0} * {0}',
    3.0: '{0} * {0} * {0}',
    -1.0: 'T(1) / {0}',
    -2.0: 'T(1) / ({0} * {0})',
}


def cpp_of(node: Expression) -> str:
    """Returns the C++ source of an operation, with slots for operands."""
    if node.op == 'pow' and node.args[1].value in _POWERS:
        return _POWERS[node.args[1].value]
    return OPERATIONS[node.op].cpp


def is_exact(root: Expression) -> bool:
    """Whether PyTorch computes the same bits."""
    return not any(
        node.op in INEXACT
        or (node.op == 'pow' and node.args[1].value not in _POWERS)
        for node in root.nodes()
    )
