"""The vertex program of a captured call: its operators as those of programs.

An operator of ATen that is missing here is fused only where it is computed
before or behind the kernel.
"""

from collections.abc import Callable
from typing import Any

from torch_gsample.codegen.expression import constant
from torch_gsample.codegen.unit import PARAMETER as OF_PROGRAM
from torch_gsample.vertex.capture.dropout import lowered
from torch_gsample.vertex.capture.ends import keeps_axes
from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    PARAMETER,
    PURE,
    Node,
    is_number,
)
from torch_gsample.vertex.frontend.values import Unsupported, Value, call


class Program:
    """The kernel part of a captured call.

    Args:
        root (Node): The result of the call.
    """

    def __init__(self, root: Node):
        #: Operands: names by node, and the dimension that a parameter loses.
        self.leaves: dict[tuple[Node, int | None], str] = {}
        self.outputs: list[Node] = []
        self._seen: set[Node] = set()
        self._checked: set[Node] = set()
        self._find_outputs(root)
        if not self.outputs:
            raise root.fail('nothing is aggregated')
        #: Of all that the kernel computes; operands are converted.
        self.dtype = self.outputs[0].dtype
        for node in self.outputs:
            self._check(node)

    def _find_outputs(self, node: Node) -> None:
        """Finds the last values of destinations that the kernel computes."""
        if node in self._seen:
            return
        self._seen.add(node)
        if _is_last(node) and node.dtype.is_floating_point:
            self.outputs.append(node)
            return
        for arg in node.operands:
            self._find_outputs(arg)

    def _check(self, node: Node) -> None:
        """Finds the operands of a value."""
        if (node, None) in self.leaves or node in self._checked:
            return
        self._checked.add(node)
        if node.op == 'fill':
            return
        if node.kind in PURE and node.dtype.is_floating_point:
            self._leaf(node, None)
            return
        if node.op not in LOWERED:
            raise node.fail(f'torch.{node.op} is not supported at edges')
        if node.dtype.is_floating_point and node.dtype != self.dtype:
            raise node.fail(
                f'values of {self.dtype} and {node.dtype} at edges'
            )
        if node.op == 'view' and not keeps_axes(node):
            raise node.fail('torch.view divides or joins features at edges')
        for arg in node.operands:
            if arg.kind == PARAMETER and arg.op != 'fill':
                self._leaf(arg, self.lost(arg, node))
            else:
                self._check(arg)

    def _leaf(self, node: Node, lost: int | None) -> None:
        if not node.dtype.is_floating_point:
            raise node.fail(f'values of {node.dtype} are read at edges')
        kind = {'P': 'p', 'S': 's', 'D': 'd', 'E': 'e'}[node.kind]
        key = node, lost
        self.leaves.setdefault(key, f'{kind}{len(self.leaves)}')

    @staticmethod
    def lost(arg: Node, node: Node) -> int | None:
        """Returns the dimension of a parameter where others have rows."""
        if node.op in ('mm', 'mv', 'bmm'):
            return None
        assert node.row is not None
        place = arg.rank + node.row - node.rank
        return place if place >= 0 else None

    @property
    def parameters(self) -> list[str]:
        """The names of parameters."""
        return [name for name in self.leaves.values() if name[0] == 'p']

    def run(self, v: Any, values: dict[str, Value]) -> tuple[Value, ...]:
        """Computes the outputs on symbols.

        Args:
            v (Vertex): The vertex.
            values (Dict[str, Value]): The parameters.
        """
        lowering = Lowering(self, v, values)
        return tuple(lowering.of(node) for node in self.outputs)


def _is_last(node: Node) -> bool:
    """Whether the kernel computes a value of destinations at little cost."""
    if node.op == 'aggregate':
        return True
    if node.op == 'view':
        return keeps_axes(node) and _is_last(node.args[0])
    return (
        node.op in LOWERED
        and node.op not in ('mm', 'mv', 'bmm')
        and all(x.kind == AGGREGATE and _is_last(x) for x in node.operands)
    )


class Lowering:
    """One run of a program on symbols."""

    def __init__(self, program: Program, v: Any, values: dict[str, Value]):
        self._program, self._v, self._values = program, v, values
        self.tracer = v._tracer
        self._edge = next(iter(v.inedges))
        self._done: dict[Node, Value] = {}

    def of(self, node: Node) -> Value:
        """Returns the value of a node."""
        if node not in self._done:
            try:
                made = self._made(node)
            except Unsupported as error:
                raise node.fail(str(error)) from error
            shape = (1,) * (len(node.features) - made.dim()) + made.shape
            for n, m in zip(shape, node.features, strict=True):
                if n not in (1, m):
                    raise node.fail('features do not keep their shape')
            self._done[node] = made
        return self._done[node]

    def _made(self, node: Node) -> Value:
        tracer = self.tracer
        if node.op == 'fill':
            expr = constant(node.args[0], self._program.dtype)
            return Value(tracer, expr, OF_PROGRAM, ())
        name = self._program.leaves.get((node, None))
        if name is not None:
            return self._leaf(name)
        if node.op == 'aggregate':
            op, body = node.args
            return tracer.aggregate(op, self.of(body))
        return LOWERED[node.op](self, node)

    def _leaf(self, name: str) -> Value:
        if name[0] == 'p':
            return self._values[name]
        owner = {'s': self._edge.src, 'd': self._v, 'e': self._edge}[name[0]]
        return getattr(owner, name)

    def arg(self, node: Node, place: int) -> Any:
        """Returns an operand: a value or a number."""
        x = node.args[place]
        if is_number(x):
            return x
        if not isinstance(x, Node):
            raise node.fail(f'torch.{node.op} of a {type(x).__name__}')
        if x.op == 'fill' and not x.shape:
            return x.args[0]
        if x.kind == PARAMETER:
            lost = self._program.lost(x, node)
            return self._values[self._program.leaves[x, lost]]
        return self.of(x)

    def whole(self, node: Node, place: int) -> Any:
        """Returns an operand all of whose features are there."""
        value, x = self.arg(node, place), node.args[place]
        want = x.shape if x.kind == PARAMETER else x.features
        if tuple(value.shape) != tuple(want):
            raise node.fail(f'torch.{node.op} of expanded values')
        return value


Rule = Callable[[Lowering, Node], Value]


def _plain(name: str, count: int = 1) -> Rule:
    """Returns the rule of an operator that programs have."""

    def rule(low: Lowering, node: Node) -> Value:
        if len(node.args) > count or node.kwargs:
            raise node.fail(f'torch.{node.op} with further arguments')
        args = tuple(low.arg(node, i) for i in range(count))
        return call(name, args, {})

    return rule


def _add(sign: float, is_flipped: bool = False) -> Rule:
    def rule(low: Lowering, node: Node) -> Value:
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


def _div(low: Lowering, node: Node) -> Value:
    if node.kwargs.get('rounding_mode') is not None:
        raise node.fail('torch.div that rounds')
    return call('div', (low.arg(node, 0), low.arg(node, 1)), {})


def _same(low: Lowering, node: Node) -> Value:
    if node.dtype != node.args[0].dtype:
        raise node.fail('a conversion of dtypes at edges')
    return low.arg(node, 0)


def _leaky_relu(low: Lowering, node: Node) -> Value:
    x = low.arg(node, 0)
    slope = node.args[1] if len(node.args) > 1 else 0.01
    return call('where', (x > 0, x, x * slope), {})


def _elu(low: Lowering, node: Node) -> Value:
    x = low.arg(node, 0)
    given = node.args[1:]
    alpha, scale, inner = [*given, 1.0, 1.0, 1.0][:3]
    # exp of a large value is infinite, and zero times that no gradient.
    low_part: Any = call('exp', (call('clamp_max', (x * inner, 0.0), {}),), {})
    negative = (low_part - 1.0) * (alpha * scale)
    return call('where', (x > 0, x * scale, negative), {})


def _softplus(low: Lowering, node: Node) -> Value:
    x = low.arg(node, 0)
    given = node.args[1:]
    beta = given[0] if given else 1.0
    threshold = given[1] if len(given) > 1 else 20.0
    z = call('clamp_max', (x * beta, threshold), {})
    grown: Any = call('exp', (z,), {})
    soft: Any = call('log', (grown + 1.0,), {})
    soft = soft * (1.0 / beta)
    return call('where', (x * beta > threshold, x, soft), {})


def _silu(low: Lowering, node: Node) -> Value:
    x = low.arg(node, 0)
    return x * call('sigmoid', (x,), {})


def _prelu(low: Lowering, node: Node) -> Value:
    x, weight = low.arg(node, 0), low.arg(node, 1)
    return call('where', (x > 0, x, x * weight), {})


def _clamp(low: Lowering, node: Node) -> Value:
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


def _pow(low: Lowering, node: Node) -> Value:
    x, exponent = node.args[:2]
    if not isinstance(x, Node) or not is_number(exponent):
        raise node.fail('torch.pow whose exponent is a tensor')
    return call('pow', (low.arg(node, 0), float(exponent)), {})


def _masked_fill(low: Lowering, node: Node) -> Value:
    value = node.args[2]
    if not is_number(value):
        raise node.fail('torch.masked_fill with a tensor')
    x, mask = low.arg(node, 0), low.arg(node, 1)
    return call('where', (mask, value, x), {})


def _where(low: Lowering, node: Node) -> Value:
    if len(node.args) != 3:
        raise node.fail('torch.where of a condition alone')
    return call('where', tuple(low.arg(node, i) for i in range(3)), {})


def _view(low: Lowering, node: Node) -> Value:
    x = low.whole(node, 0)
    axes = iter([axis for axis in x.dims if axis is not None])
    dims = tuple(None if n == 1 else next(axes) for n in node.features)
    return Value(x.tracer, x.expr, x.kind, dims)


def _expand(low: Lowering, node: Node) -> Value:
    return low.arg(node, 0)


def _reduced(name: str) -> Rule:
    def rule(low: Lowering, node: Node) -> Value:
        x = node.args[0]
        value = low.whole(node, 0)
        dims = node.args[1] if len(node.args) > 1 else None
        if not dims and dims != 0:
            dims = list(range(x.rank))
        dims = [dims] if isinstance(dims, int) else dims
        keep = node.rank == x.rank
        places = [d % x.rank for d in dims]
        places = [d - (d > x.row) for d in places]
        return call(name, (value, places, keep), {})

    return rule


def _mm(low: Lowering, node: Node) -> Value:
    x, weight = low.whole(node, 0), low.whole(node, 1)
    return (x.unsqueeze(-1) * weight).sum(-2)


def _mv(low: Lowering, node: Node) -> Value:
    return (low.whole(node, 0) * low.whole(node, 1)).sum(-1)


def _bmm(low: Lowering, node: Node) -> Value:
    a, b = low.whole(node, 0), low.whole(node, 1)
    return (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)


#: Operators of ATen in kernels.
LOWERED: dict[str, Rule] = {
    **{
        name: _plain(name)
        for name in (
            *('neg', 'abs', 'exp', 'log', 'sqrt', 'rsqrt', 'reciprocal'),
            *('sigmoid', 'tanh', 'relu', 'square', 'detach', 'logical_not'),
        )
    },
    **{
        name: _plain(name, 2)
        for name in (
            *('mul', 'maximum', 'minimum', 'logical_and', 'logical_or'),
            *('eq', 'ne', 'lt', 'le', 'gt', 'ge'),
        )
    },
    **{name: _same for name in ('_to_copy', 'alias', 'clone')},
    'bernoulli': lowered,
    'aggregate': lambda low, node: low.of(node),
    'gather': _expand,
    'add': _add(1.0),
    'sub': _add(-1.0),
    'rsub': _add(-1.0, is_flipped=True),
    'div': _div,
    'leaky_relu': _leaky_relu,
    'elu': _elu,
    'softplus': _softplus,
    'silu': _silu,
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
    'mm': _mm,
    'mv': _mv,
    'bmm': _bmm,
}
