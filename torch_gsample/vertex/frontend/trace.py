"""Records the computation of a vertex program run on symbols."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.expression import (
    Expression,
    apply,
    constant,
    operand,
)
from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    operands_of,
)
from torch_gsample.vertex.frontend.conditions import number
from torch_gsample.vertex.frontend.kinds import (
    OUT_EDGE,
    OUT_NEIGHBOR,
    RELATION,
)
from torch_gsample.vertex.frontend.precision import half_dtype, kernel_dtype
from torch_gsample.vertex.frontend.values import (
    Axis,
    Dims,
    Unsupported,
    Value,
    shape_of,
)

#: The operand provided by the graph.
DEGREE = 'in-degree'


@dataclass(frozen=True)
class Given:
    """A tensor of the call, or of the function's closure."""

    name: str
    tensor: Tensor | None = None
    #: The owner of features, if not the operand's graph type.
    end: str | None = None


@dataclass(frozen=True)
class Degree:
    """The number of aggregated edges."""


@dataclass(frozen=True)
class Drawn:
    """The key of random numbers, new in each call."""


@dataclass(frozen=True)
class Product:
    """A dense projection, computed by torch at the owner of its operand."""

    x: Value
    weight: Value
    transposed: bool
    by_type: bool


@dataclass(frozen=True)
class Nested:
    """An aggregation of one of two levels, edges of a type or types; or of
    out-edges.
    """

    op: str
    body: Value
    out: bool = False


@dataclass(frozen=True)
class Quantile:
    """An aggregation that sorts the values of a vertex's edges.

    Args:
        x (Value): The values, of edges or sources.
        q (float): The quantile, in [0, 1].
        interpolation (str): As in ``torch.quantile``.
    """

    x: Value
    q: float
    interpolation: str


Origin = Given | Degree | Drawn | Product | Nested | Quantile


@dataclass(frozen=True)
class Operand:
    """A tensor of a program.

    Args:
        name (str): Its name.
        kind (str): Its graph type.
        dims (Tuple[Axis, ...]): Its dimensions.
        dtype (torch.dtype): Its dtype.
        origin (Origin): Its origin.
        half (torch.dtype, optional): Its dtype in memory, if half precision.
    """

    name: str
    kind: str
    dims: Dims
    dtype: torch.dtype
    origin: Origin
    half: torch.dtype | None = None


@dataclass(frozen=True)
class Shape:
    """The shape and dtype of features, without their first dimension."""

    shape: tuple[int, ...]
    dtype: torch.dtype


#: Features by name and graph type.
Signature = Mapping[tuple[str, str], Shape]


class Tracer:
    """Records the operations of a vertex program.

    Args:
        signature (Mapping): The features of the call.
    """

    def __init__(self, signature: Signature):
        self.signature = signature
        self.operands: list[Operand] = []
        self.axes: list[Axis] = []
        self.shapes: list[Dims] = []
        #: The open loops: whether each is over out-edges.
        self.loops: list[bool] = []
        self._draws = 0
        self._known: dict[Any, Value] = {}

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of numbers that no features determine."""
        floats = [
            kernel_dtype(x.dtype)
            for x in self.signature.values()
            if x.dtype.is_floating_point
        ]
        if not floats:
            raise Unsupported('no features determine the dtype of a number')
        return floats[0]

    def feature(self, name: str, kind: str) -> Value:
        """Returns features by name."""
        key = name, kind
        if key not in self._known:
            end = _ENDS.get(kind, kind)
            given = self.signature.get((name, end))
            if given is None:
                names = sorted({n for n, k in self.signature if k == end})
                raise Unsupported(
                    f'no features {name!r} of {_WHERE[kind]} '
                    f'(known: {", ".join(names) or "none"})'
                )
            if not given.dtype.is_floating_point:
                raise Unsupported(
                    f'features {name!r} must be floating-point (got '
                    f'{given.dtype})'
                )
            self._known[key] = self._add(
                *(name, kind, given.shape, kernel_dtype(given.dtype)),
                Given(name, end=None if end == kind else end),
                half_dtype(given.dtype),
            )
        return self._known[key]

    def captured(self, tensor: Tensor) -> Value:
        """Returns a parameter of the closure."""
        if not isinstance(tensor, torch.nn.Parameter):
            raise Unsupported(
                'a tensor from the enclosing scope is used: pass it '
                'to the program by name'
            )
        key = id(tensor)
        if key not in self._known:
            name = f'parameter{len(self.operands)}'
            self._known[key] = self._add(
                name,
                PARAMETER,
                tuple(tensor.shape),
                kernel_dtype(tensor.dtype),
                Given(name, tensor),
            )
        return self._known[key]

    def _add(
        self,
        name: str,
        kind: str,
        shape: Iterable[int],
        dtype: torch.dtype,
        origin: Origin,
        half: torch.dtype | None = None,
    ) -> Value:
        dims = tuple(None if n == 1 else self.axis(n) for n in shape)
        return self.add(name, kind, dims, dtype, origin, half)

    def add(
        self,
        name: str,
        kind: str,
        dims: Dims,
        dtype: torch.dtype,
        origin: Origin,
        half: torch.dtype | None = None,
    ) -> Value:
        """Adds a tensor to the program."""
        number = len(self.operands)
        self.operands.append(Operand(name, kind, dims, dtype, origin, half))
        return Value(self, operand(number, dtype), kind, dims)

    def is_given(self, x: Value) -> bool:
        """Whether a value is a feature of the call."""
        if x.expr.op != 'operand':
            return False
        origin = self.operands[int(x.expr.value or 0)].origin
        return isinstance(origin, Given)

    def axis(self, size: int) -> Axis:
        """Returns a new dimension."""
        self.axes.append(Axis(size))
        return self.axes[-1]

    def along(self, op: str, x: Expression, axis: Axis) -> Expression:
        """Returns the sum or maximum along a dimension."""
        return Expression(op, x.dtype, (x,), self.axes.index(axis))

    def select(self, x: Value, index: Value) -> Value:
        """Returns the parameters of the type of some edges."""
        given = self.operands[int(index.expr.value or 0)].origin
        if x.kind != PARAMETER or given != Given('type'):
            raise Unsupported(
                'features can be indexed by the type of edges only: '
                'weight[es.type] for es in v.inedges.by_type'
            )
        if x.expr.op != 'operand' or not x.dims:
            raise Unsupported('only parameters can be indexed by a type')
        dims = tuple(None if a is None else self.axis(a.size) for a in x.dims)
        origin = Product(index, x, False, True)
        half = self.operands[int(x.expr.value or 0)].half
        return self.add(
            *(f'{self._name(x)}[type]', RELATION, dims[1:], x.dtype),
            *(origin, half),
        )

    def product(
        self, x: Value, weight: Value, transposed: bool = False
    ) -> Value:
        """Records a product with a matrix of parameters."""
        if x.kind == OUT_EDGE:
            raise Unsupported(
                'values of out-edges cannot be multiplied by a matrix: '
                'multiply those of vertices, or aggregate them first'
            )
        by_type = weight.kind == RELATION
        if weight.kind not in (PARAMETER, RELATION) or len(weight.dims) != 2:
            raise Unsupported(
                'the right side of a product must be a matrix of parameters'
            )
        if by_type:
            origin = self.operands[int(weight.expr.value or 0)].origin
            assert isinstance(origin, Product)
            if x.kind != RELATION:
                raise Unsupported(
                    'a product with the weight of a type needs the edges of '
                    'a type to be aggregated first'
                )
            weight = origin.weight
        rows, cols = shape_of(weight.dims)[-2:]
        if transposed:
            rows, cols = cols, rows
        if len(x.dims) < 1 or x.shape[-1] != rows:
            raise Unsupported(
                f'features of shape {list(x.shape)} and a matrix '
                f'[{rows}, {cols}] do not match'
            )
        if x.dtype != weight.dtype:
            raise Unsupported(
                f'operands must have one dtype (they have {x.dtype} and '
                f'{weight.dtype}; half precision is computed in float32)'
            )
        dims = tuple(
            None if a is None else self.axis(a.size) for a in x.dims[:-1]
        )
        last = None if cols == 1 else self.axis(cols)
        name = f'{self._name(x)} @ {self._name(weight)}'
        origin = Product(x, weight, transposed, by_type)
        return self.add(name, x.kind, (*dims, last), x.dtype, origin)

    def _name(self, x: Value) -> str:
        if x.expr.op == 'operand':
            return self.operands[int(x.expr.value or 0)].name
        return x.expr.op

    def aggregate(self, op: str, body: Value, out: bool = False) -> Value:
        """Records an aggregation of edges, edges of a type, or types.

        Args:
            op (str): The aggregation.
            body (Value): The value to aggregate.
            out (bool, optional): Whether a value that is not of edges is
                aggregated over out-edges.
        """
        body = number(body, self.dtype)
        if out or body.kind in (OUT_NEIGHBOR, OUT_EDGE):
            return self._nested(op, DESTINATION, body, True)
        if op == 'mean' and body.kind != RELATION and self.group is None:
            total = self.aggregate('sum', body)
            # A vertex without edges has 0.
            count = self.degree(body.dtype)
            one = constant(1, body.dtype)
            below = apply('clamp_min', count.expr, one)
            expr = apply('div', total.expr, below)
            return Value(self, expr, total.kind, total.dims)
        if body.kind == RELATION:
            return self._nested(op, DESTINATION, body)
        numbers = operands_of([body.expr])
        if RELATION in {self.operands[n].kind for n in numbers}:
            raise Unsupported(
                'values of a type combine only with values of types '
                'and parameters, until they are aggregated'
            )
        if self.group is not None:
            return self._nested(op, RELATION, body)
        expr = apply(f'{op}_in', body.expr)
        return Value(self, expr, DESTINATION, body.dims)

    def quantile(self, origin: Quantile) -> Value:
        """Records an aggregation that sorts."""
        x = origin.x
        dims = tuple(None if a is None else self.axis(a.size) for a in x.dims)
        name = f'quantile {origin.q:g} of {self._name(x)}'
        return self.add(name, DESTINATION, dims, x.dtype, origin)

    #: The enclosing loop over the edges of a type.
    group: Any = None

    def _nested(
        self, op: str, kind: str, body: Value, out: bool = False
    ) -> Value:
        dims = tuple(
            None if a is None else self.axis(a.size) for a in body.dims
        )
        name = f'{op} of {"types" if kind == DESTINATION else "a type"}'
        name = f'{op} of out-edges' if out else name
        return self.add(name, kind, dims, body.dtype, Nested(op, body, out))

    def draw(self) -> tuple[Value, int]:
        """Returns the key of random numbers, and a call id."""
        if 'draw' not in self._known:
            self._known['draw'] = self.add(
                'key', PARAMETER, (), torch.int64, Drawn()
            )
        self._draws += 1
        return self._known['draw'], self._draws - 1

    def degree(self, dtype: torch.dtype) -> Value:
        """Returns the number of aggregated edges."""
        key = 'degree', dtype
        if key not in self._known:
            value = self.add(DEGREE, DESTINATION, (), dtype, Degree())
            self._known[key] = value
        return self._known[key]


#: The owner of features in the other direction.
_ENDS = {OUT_NEIGHBOR: DESTINATION, OUT_EDGE: EDGE}
_WHERE = {
    OUT_NEIGHBOR: 'the vertex',
    OUT_EDGE: 'edges',
    SOURCE: 'sources',
    DESTINATION: 'the vertex',
    EDGE: 'edges',
    PARAMETER: 'the program',
}
