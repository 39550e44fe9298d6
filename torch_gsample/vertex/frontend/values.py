"""Symbolic features of a traced vertex program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from torch_gsample.codegen.expression import (
    Expression,
    apply,
    constant,
)
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.unit import PARAMETER
from torch_gsample.vertex.frontend.conditions import number, promoted
from torch_gsample.vertex.frontend.kinds import MIXED, joined


class Axis:
    """A dimension of features; operations unify the axes of their operands.

    Args:
        size (int): Its size.
    """

    def __init__(self, size: int):
        self.size = size
        self._same: Axis | None = None

    def root(self) -> Axis:
        """Returns the representative of unified axes."""
        return self if self._same is None else self._same.root()

    def join(self, other: Axis) -> None:
        """Unifies two axes."""
        a, b = self.root(), other.root()
        if a is not b:
            b._same = a


#: Dimensions of a value; None for size 1.
Dims = tuple[Axis | None, ...]


class Unsupported(Exception):
    """An unsupported operation; the tracer adds the line."""


def broadcast(a: Dims, b: Dims) -> Dims:
    """Returns the dimensions of an operation, aligned from the last.

    Raises:
        Unsupported: If sizes differ.
    """
    out: list[Axis | None] = []
    for i in range(-max(len(a), len(b)), 0):
        x = a[i] if -i <= len(a) else None
        y = b[i] if -i <= len(b) else None
        if x is not None and y is not None:
            if x.size != y.size:
                both = f'{shape_of(a)} and {shape_of(b)}'
                raise Unsupported(f'features of shapes {both} do not match')
            x.join(y)
        out.append(y if x is None else x)
    return tuple(out)


def shape_of(dims: Dims) -> list[int]:
    """Returns the sizes of dimensions."""
    return [1 if axis is None else axis.size for axis in dims]


class Recorder(Protocol):
    """The interface for recording operations."""

    #: The dimensions of all results.
    shapes: list[Dims]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of numbers that no features determine."""

    def captured(self, tensor: Tensor) -> Value:
        """Returns a parameter that the function holds."""

    def is_given(self, x: Value) -> bool:
        """Whether a value is a feature of the call."""

    def along(self, op: str, x: Expression, axis: Axis) -> Expression:
        """Returns the sum or maximum along a dimension."""

    def select(self, x: Value, index: Value) -> Value:
        """Returns the parameters of the type of some edges."""

    def product(
        self, x: Value, weight: Value, transposed: bool = False
    ) -> Value:
        """Records a product with a matrix of parameters."""


class Value:
    """The features of a vertex or edge, with a shape but no values.

    It supports torch's element-wise operators and functions, sums along
    dimensions of features, ``unsqueeze``, and products with parameters.

    Args:
        tracer (Recorder): The tracer.
        expr (Expression): Its expression.
        kind (str): Its graph type.
        dims (Tuple[Axis, ...]): Its dimensions.
    """

    __slots__ = ('dims', 'expr', 'kind', 'tracer')

    def __init__(
        self, tracer: Recorder, expr: Expression, kind: str, dims: Dims
    ):
        self.tracer, self.expr = tracer, expr
        self.kind, self.dims = kind, dims

    @property
    def shape(self) -> torch.Size:
        """The sizes of its features."""
        return torch.Size(shape_of(self.dims))

    @property
    def dtype(self) -> torch.dtype:
        """Its dtype."""
        return self.expr.dtype

    def dim(self) -> int:
        """Returns the number of dimensions of features."""
        return len(self.dims)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Records functions of torch by name."""
        name = getattr(func, '__name__', str(func)).strip('_')
        name = name.removeprefix('special_').removeprefix('linalg_')
        return call(name, args, kwargs or {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith('_'):
            raise AttributeError(f'features have no attribute {name!r}')
        if name not in RULES and name not in _ALIASES:
            raise Unsupported(_unknown(name))
        return lambda *args, **kwargs: call(name, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Value:
        return call('getitem', (self, index), {})

    def __bool__(self) -> bool:
        raise Unsupported('a traced value has no truth value: use torch.where')

    def __iter__(self) -> Any:
        raise Unsupported('features cannot be iterated over')

    def __hash__(self) -> int:
        return id(self)


def _binary(name: str, flipped: bool = False) -> Callable[..., Value]:
    def method(self: Value, other: Any) -> Value:
        args = (other, self) if flipped else (self, other)
        return call(name, args, {})

    return method


for _name, _op in {
    **{'add': 'add', 'sub': 'sub', 'mul': 'mul', 'truediv': 'div'},
    **{'pow': 'pow', 'matmul': 'matmul'},
    **{name: name for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge')},
    **{'and': 'logical_and', 'or': 'logical_or'},
}.items():
    setattr(Value, f'__{_name}__', _binary(_op))
    if _name in ('add', 'sub', 'mul', 'truediv', 'matmul'):
        setattr(Value, f'__r{_name}__', _binary(_op, flipped=True))
Value.__neg__ = lambda self: call('neg', (self,), {})  # type: ignore
Value.__invert__ = lambda x: call('logical_not', (x,), {})  # type: ignore
Value.__pos__ = lambda self: self  # type: ignore
Value.__abs__ = lambda self: call('abs', (self,), {})  # type: ignore


def call(name: str, args: tuple, kwargs: dict[str, Any]) -> Value:
    """Records a function of torch.

    Args:
        name (str): Torch's name.
        args (Tuple): Its arguments.
        kwargs (Dict[str, Any]): Its named arguments.

    Raises:
        Unsupported: If the function is not supported.
    """
    name = _ALIASES.get(name, name)
    rule = RULES.get(name)
    if rule is None:
        raise Unsupported(_unknown(name))
    try:
        return rule(*args, **kwargs)
    except TypeError as error:
        raise Unsupported(f'torch.{name}: {error}') from error


_ALIASES = {
    **{'true_divide': 'div', 'divide': 'div', 'multiply': 'mul'},
    **{'subtract': 'sub', 'negative': 'neg', 'absolute': 'abs'},
}


def _unknown(name: str) -> str:
    return f'torch.{name} is not supported in vertex programs'


def lift(x: Any, like: Value) -> Value:
    """Converts a number or parameter to a value of the program."""
    if isinstance(x, Value):
        return x
    if isinstance(x, (bool, int, float)):
        dtype = torch.bool if isinstance(x, bool) else like.dtype
        if dtype == torch.bool and not isinstance(x, bool):
            dtype = like.tracer.dtype
        return Value(like.tracer, constant(x, dtype), PARAMETER, ())
    if isinstance(x, Tensor):
        return like.tracer.captured(x)
    of_type = f'a {type(x).__name__} cannot be an operand'
    raise Unsupported(getattr(x, 'refusal', of_type))


def _lifted(args: tuple) -> list[Value]:
    like = next(x for x in args if isinstance(x, Value))
    return [lift(x, like) for x in args]


def elementwise(op: str, *args: Any, dtype: torch.dtype | None = None) -> Any:
    """Records an operation on each element."""
    op, values = promoted(op, _lifted(args))
    floats = {v.dtype for v in values if v.dtype != torch.bool}
    if len(floats) > 1:
        names = ', '.join(sorted(map(str, floats)))
        raise Unsupported(
            f'operands must have one dtype (they have {names}; half precision '
            f'is computed in float32)'
        )
    dims: Dims = ()
    for value in values:
        dims = broadcast(dims, value.dims)
    values[0].tracer.shapes.append(dims)
    kind = joined(value.kind for value in values)
    if kind is None:
        raise Unsupported(MIXED)
    expr = apply(op, *(value.expr for value in values), dtype=dtype)
    return Value(values[0].tracer, expr, kind, dims)


def _compare(op: str) -> Callable[..., Value]:
    return lambda x, y: elementwise(op, x, y, dtype=torch.bool)


def _where(condition: Any, x: Any, y: Any) -> Value:
    like = next(v for v in (x, y, condition) if isinstance(v, Value))
    x, y = lift(x, like), lift(y, like)
    if getattr(condition, 'dtype', torch.bool) != torch.bool:
        raise Unsupported('the condition of torch.where must be a comparison')
    return elementwise('where', condition, x, y)


def _leaky_relu(x: Any, negative_slope: float = 0.01, **_: Any) -> Value:
    return _where(x > 0, x, x * negative_slope)


def _clamp(x: Any, min: Any = None, max: Any = None) -> Value:
    for op, bound in (('clamp_min', min), ('clamp_max', max)):
        if bound is not None:
            x = elementwise(op, x, bound)
    return x


def _axes(x: Value, dim: Any) -> list[int]:
    dims = range(x.dim()) if dim is None else dim
    dims = [dims] if isinstance(dims, int) else list(dims)
    for i in dims:
        if not -x.dim() <= i < x.dim():
            raise Unsupported(
                f'features of shape {list(x.shape)} have no dimension {i}'
            )
    return sorted({i % x.dim() for i in dims}, reverse=True)


def reduced(
    op: str, x: Value, dim: Any = None, keepdim: bool = False
) -> Value:
    """Records the sum or maximum along dimensions of features."""
    x = number(x, x.tracer.dtype)
    expr, dims = x.expr, list(x.dims)
    for i in _axes(x, dim):
        axis = dims[i]
        if axis is not None:
            expr = x.tracer.along(op, expr, axis)
        if keepdim:
            dims[i] = None
        else:
            del dims[i]
    return Value(x.tracer, expr, x.kind, tuple(dims))


def _sum(x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return reduced('sum_axis', x, dim, keepdim)


def _mean(x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    count = 1
    for i in _axes(x, dim):
        count *= x.shape[i]
    return elementwise('div', _sum(x, dim, keepdim), float(count))


def _unsqueeze(x: Value, dim: int) -> Value:
    dims = list(x.dims)
    if not -len(dims) - 1 <= dim <= len(dims):
        raise Unsupported(
            f'features of shape {list(x.shape)} have no dimension {dim}'
        )
    dims.insert(dim if dim >= 0 else len(dims) + 1 + dim, None)
    return Value(x.tracer, x.expr, x.kind, tuple(dims))


def _squeeze(x: Value, dim: Any = None) -> Value:
    gone = _axes(x, dim)
    dims = [a for i, a in enumerate(x.dims) if i not in gone or a is not None]
    return Value(x.tracer, x.expr, x.kind, tuple(dims))


def _getitem(x: Value, index: Any) -> Value:
    items = list(index) if isinstance(index, tuple) else [index]
    if len(items) == 1 and isinstance(items[0], Value):
        x = lift(x, items[0])
        return x.tracer.select(x, items[0])
    if not isinstance(x, Value):
        raise Unsupported('parameters can be indexed by one type only')
    known = sum(i is not None and i is not Ellipsis for i in items)
    if known > x.dim() or items.count(Ellipsis) > 1:
        raise Unsupported(
            f'features of shape {list(x.shape)} have fewer dimensions than '
            f'the index'
        )
    place = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[place : place + 1] = [slice(None)] * (x.dim() - known)
    if any(i is not None and i != slice(None) for i in items):
        raise Unsupported(
            'features can be indexed by None, : and ... only; pass '
            'other parts as separate features'
        )
    rest = iter(x.dims)
    dims = tuple(None if i is None else next(rest) for i in items)
    return Value(x.tracer, x.expr, x.kind, dims)


def _matmul(x: Any, weight: Any) -> Value:
    x, weight = _lifted((x, weight))
    return x.tracer.product(x, weight)


def _linear(x: Any, weight: Any, bias: Any = None) -> Value:
    x, weight = _lifted((x, weight))
    out = x.tracer.product(x, weight, transposed=True)
    return out if bias is None else out + bias


#: Functions of torch by name.
RULES: dict[str, Callable[..., Any]] = {
    **{
        name: (lambda *args, _op=name: elementwise(_op, *args))
        for name in OPERATIONS
        if name not in ('cast', 'where')
    },
    **{name: _compare(name) for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge')},
    'relu': lambda x, inplace=False: elementwise('relu', x),
    'leaky_relu': _leaky_relu,
    'rsqrt': lambda x: elementwise('reciprocal', elementwise('sqrt', x)),
    'square': lambda x: x * x,
    'where': _where,
    'clamp': _clamp,
    'sum': _sum,
    'mean': _mean,
    'unsqueeze': _unsqueeze,
    'squeeze': _squeeze,
    'getitem': _getitem,
    **dict.fromkeys(('matmul', 'mm'), _matmul),
    'linear': _linear,
    'dot': lambda x, y: _sum(x * y, -1),
}
