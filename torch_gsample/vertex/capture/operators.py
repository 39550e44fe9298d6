"""Operators of ATen as functions of vertex programs."""

from collections.abc import Callable
from typing import Any

import torch

from torch_gsample.vertex.capture.dropout import mask_of
from torch_gsample.vertex.capture.nodes import Node, is_number
from torch_gsample.vertex.capture.products import COLUMNS
from torch_gsample.vertex.frontend.conditions import number
from torch_gsample.vertex.frontend.precision import kernel_dtype
from torch_gsample.vertex.frontend.values import Value, call

Rule = Callable[[Any, Node], Value]


def _plain(name: str, count: int = 1) -> Rule:
    """Returns the rule of an operator of vertex programs."""

    def rule(low: Any, node: Node) -> Value:
        if len(node.args) > count or node.kwargs:
            raise node.fail(f'torch.{node.op} with more arguments')
        args = tuple(low.arg(node, i) for i in range(count))
        return call(name, args, {})

    return rule


def _function(name: str) -> Rule:
    """Returns the rule of a function of one value and numbers."""

    def rule(low: Any, node: Node) -> Value:
        given = (*node.args[1:], *node.kwargs.values())
        if any(isinstance(x, Node) for x in given):
            raise node.fail(f'torch.{node.op} by a tensor')
        args = low.arg(node, 0), *node.args[1:]
        return call(name, args, dict(node.kwargs))

    return rule


def _add(sign: float, is_flipped: bool = False) -> Rule:
    def rule(low: Any, node: Node) -> Value:
        x, y = low.arg(node, 0), low.arg(node, 1)
        if is_flipped:
            x, y = y, x
        alpha = node.kwargs.get('alpha', 1)
        if alpha != 1:
            if is_flipped:
                raise node.fail('torch.rsub with a factor')
            y = y * alpha
        name = 'add' if sign > 0 else 'sub'
        return call(name, (x, y), {})

    return rule


def _div(low: Any, node: Node) -> Value:
    if node.kwargs.get('rounding_mode') is not None:
        raise node.fail('torch.div with rounding')
    return call('div', (low.arg(node, 0), low.arg(node, 1)), {})


def _same(low: Any, node: Node) -> Value:
    # Operands and results have half precision, intermediate values do not.
    before = node.args[0].dtype
    if before == torch.bool and node.dtype != torch.bool:
        return number(low.arg(node, 0), low.tracer.dtype)
    if not before.is_floating_point and node.dtype.is_floating_point:
        return low.arg(node, 0)  # integers of conditions are floats here
    if kernel_dtype(node.dtype) != kernel_dtype(before):
        raise node.fail('a dtype conversion at edges')
    return low.arg(node, 0)


def _leaky_relu(low: Any, node: Node) -> Value:
    x = low.arg(node, 0)
    slope = node.args[1] if len(node.args) > 1 else 0.01
    return call('where', (x > 0, x, x * slope), {})


def _prelu(low: Any, node: Node) -> Value:
    x, weight = low.arg(node, 0), low.arg(node, 1)
    return call('where', (x > 0, x, x * weight), {})


def _clamp(low: Any, node: Node) -> Value:
    x = low.arg(node, 0)
    bounds = (*node.args[1:], None, None)[:2]
    named = {'clamp_min': (bounds[0], None), 'clamp_max': (None, bounds[0])}
    least, most = named.get(node.op, bounds)
    least = node.kwargs.get('min', least)
    most = node.kwargs.get('max', most)
    for bound in (least, most):
        if bound is not None and not is_number(bound):
            raise node.fail('torch.clamp by a tensor')
    return call('clamp', (x,), {'min': least, 'max': most})


def _pow(low: Any, node: Node) -> Value:
    x, exponent = node.args[:2]
    if not isinstance(x, Node) or not is_number(exponent):
        raise node.fail('torch.pow with a tensor exponent')
    return call('pow', (low.arg(node, 0), float(exponent)), {})


def _masked_fill(low: Any, node: Node) -> Value:
    value = node.args[2]
    if not is_number(value):
        raise node.fail('torch.masked_fill with a tensor')
    x, mask = low.arg(node, 0), low.arg(node, 1)
    return call('where', (mask, value, x), {})


def _logical(name: str) -> Rule:
    """Returns the rule of a bitwise operator, of conditions."""

    def rule(low: Any, node: Node) -> Value:
        if node.dtype != torch.bool:
            raise node.fail(f'torch.{node.op} of integers')
        return _plain(name, len(node.args))(low, node)

    return rule


def _where(low: Any, node: Node) -> Value:
    if len(node.args) != 3:
        raise node.fail('torch.where with only a condition')
    return call('where', tuple(low.arg(node, i) for i in range(3)), {})


def _view(low: Any, node: Node) -> Value:
    x = low.whole(node, 0)
    axes = iter([axis for axis in x.dims if axis is not None])
    dims = tuple(None if n == 1 else next(axes) for n in node.features)
    return Value(x.tracer, x.expr, x.kind, dims)


def _expand(low: Any, node: Node) -> Value:
    return low.arg(node, 0)


def _places(node: Node, dims: Any) -> list[int]:
    """Returns dimensions of a vertex's features."""
    x = node.args[0]
    if not dims and dims != 0:
        dims = [d for d in range(x.rank) if d != x.row]
    dims = [dims] if isinstance(dims, int) else dims
    return [d % x.rank - (d % x.rank > x.row) for d in dims]


def _reduced(name: str) -> Rule:
    def rule(low: Any, node: Node) -> Value:
        value = low.whole(node, 0)
        dims = node.args[1] if len(node.args) > 1 else None
        dims = node.kwargs.get('dim', dims)
        keep = node.rank == node.args[0].rank
        return call(name, (value, _places(node, dims), keep), {})

    return rule


def _norm(low: Any, node: Node) -> Value:
    x, order, dims = (*node.args, 2, None)[:3]
    keep = node.rank == x.rank
    places = _places(node, dims)
    return call('norm', (low.whole(node, 0), order, places, keep), {})


def _softmax(name: str) -> Rule:
    def rule(low: Any, node: Node) -> Value:
        places = _places(node, node.args[1])
        return call(name, (low.whole(node, 0), places), {})

    return rule


def _mm(low: Any, node: Node) -> Value:
    x, weight = low.whole(node, 0), low.whole(node, 1)
    if node.shape[-1] > COLUMNS:
        return low.tracer.product(x, weight)
    return (x.unsqueeze(-1) * weight).sum(-2)


def _mv(low: Any, node: Node) -> Value:
    return (low.whole(node, 0) * low.whole(node, 1)).sum(-1)


def _bmm(low: Any, node: Node) -> Value:
    a, b = low.whole(node, 0), low.whole(node, 1)
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


#: Operators of ATen in kernels.
LOWERED: dict[str, Rule] = {
    **{
        name: _plain(name)
        for name in (
            *('neg', 'abs', 'exp', 'log', 'sqrt', 'rsqrt', 'reciprocal'),
            *('sigmoid', 'tanh', 'relu', 'square', 'detach', 'logical_not'),
            *('atan', 'asin', 'acos'),
        )
    },
    **{
        name: _plain(name, 2)
        for name in (
            *('mul', 'maximum', 'minimum', 'logical_and', 'logical_or'),
            *('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'atan2'),
        )
    },
    **{name: _same for name in ('_to_copy', 'alias', 'clone')},
    'bernoulli': mask_of,
    'aggregate': lambda low, node: low.of(node),
    'gather': _expand,
    'add': _add(1.0),
    'sub': _add(-1.0),
    'rsub': _add(-1.0, is_flipped=True),
    'div': _div,
    'leaky_relu': _leaky_relu,
    **{
        name: _function(name)
        for name in (
            *('elu', 'softplus', 'silu', 'gelu', 'mish', 'hardtanh', 'erf'),
            *('hardswish', 'hardsigmoid', 'softshrink', 'sin', 'cos'),
            *('log1p', 'expm1', 'round', 'floor', 'ceil', 'sign'),
            *('log_sigmoid', 'celu', 'selu'),
        )
    },
    **{
        f'bitwise_{name}': _logical(f'logical_{name}')
        for name in ('and', 'or', 'not')
    },
    '_prelu_kernel': _prelu,
    'clamp': _clamp,
    'clamp_min': _clamp,
    'clamp_max': _clamp,
    'pow': _pow,
    'masked_fill': _masked_fill,
    'where': _where,
    'view': _view,
    'expand': _expand,
    'sum': _reduced('sum'),
    'mean': _reduced('mean'),
    'amax': _reduced('amax'),
    'amin': _reduced('amin'),
    'logsumexp': _reduced('logsumexp'),
    'linalg_vector_norm': _norm,
    'norm': _norm,
    '_softmax': _softmax('softmax'),
    '_log_softmax': _softmax('log_softmax'),
    'mm': _mm,
    'mv': _mv,
    'bmm': _bmm,
}
