"""A captured call as a graph of ATen operators."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_gsample.torch_private import tree_leaves

#: Parameters: no rows.
PARAMETER = 'P'
#: A row for each vertex, before messages.
VERTEX = 'N'
#: A row for each edge, computed by torch before the kernel from features of
#: only sources, destinations or edges. Those of ends are computed with a row
#: for each vertex, because row-wise operators commute with gathers.
SOURCE, DESTINATION, EDGE = 'S', 'D', 'E'
#: A row for each edge, computed in the kernel from several of these or from
#: aggregates.
MIXED = 'X'
#: A row for each destination: aggregates, and values computed from them.
AGGREGATE = 'A'
#: ``edge_index``, and one end of it.
GRAPH, INDEX = 'G', 'I'

PURE = frozenset({SOURCE, DESTINATION, EDGE})
OF_EDGES = PURE | {MIXED}

#: Element-wise operators with broadcasting.
ELEMENTWISE = frozenset(
    {
        *('add', 'sub', 'rsub', 'mul', 'div', 'neg', 'abs', 'exp', 'expm1'),
        *('log', 'log1p', 'sqrt', 'rsqrt', 'reciprocal', 'sigmoid', 'tanh'),
        *('relu', 'leaky_relu', 'elu', 'gelu', 'silu', 'softplus', 'mish'),
        *('hardtanh', 'hardswish', 'hardsigmoid', 'log_sigmoid'),
        *('clamp', 'clamp_min', 'clamp_max', 'maximum', 'minimum', 'pow'),
        *('where', 'masked_fill', 'detach', '_to_copy', 'clone', 'alias'),
        *('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'logical_and', 'logical_or'),
        *('logical_not', 'bitwise_and', 'bitwise_or', 'bitwise_not', 'sin'),
        *('cos', 'tan', 'atan', 'atan2', 'acos', 'asin', 'erf', 'sign'),
        *('floor', 'ceil', 'round', 'square', 'contiguous', 'lift_fresh'),
        *('_prelu_kernel', 'isnan', 'nan_to_num', 'remainder', 'sgn'),
        *('addcmul', 'addcdiv', 'lerp', 'celu', 'selu', 'softshrink'),
    }
)


class NotCaptured(Exception):
    """An unsupported operation, with its location.

    Args:
        reason (str): The reason.
        where (str): The line; empty if unknown.
    """

    def __init__(self, reason: str, where: str = ''):
        super().__init__(f'{where}: {reason}' if where else reason)


@dataclass(eq=False)
class Node:
    """A value of a captured call.

    Args:
        op (str): The name of its operator, or ``'input'``, ``'parameter'``,
            ``'fill'``, ``'gather'``, ``'aggregate'``.
        kind (str): The owner of its rows.
        shape (Tuple[int, ...]): Its shape in the capture.
        dtype (torch.dtype): Its dtype.
        row (int, optional): The dimension of its rows.
        args (Tuple): The operator's arguments: nodes, numbers and lists of
            them.
        kwargs (Dict[str, Any]): Named arguments.
        func (OpOverload, optional): The operator of ATen.
        where (str): The line that computes it.
    """

    op: str
    kind: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    row: int | None = None
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    func: Any = None
    where: str = ''

    @property
    def rank(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def rows(self) -> int | None:
        """The number of its rows in the capture."""
        return None if self.row is None else self.shape[self.row]

    @property
    def features(self) -> tuple[int, ...]:
        """Its shape without rows."""
        if self.row is None:
            return self.shape
        return self.shape[: self.row] + self.shape[self.row + 1 :]

    @property
    def operands(self) -> list['Node']:
        """The nodes that it reads."""
        leaves = tree_leaves([self.args, self.kwargs])
        return [x for x in leaves if isinstance(x, Node)]

    def fail(self, reason: str) -> NotCaptured:
        """Returns an error with its line."""
        return NotCaptured(reason, self.where)


def is_number(x: Any) -> bool:
    """Whether an argument is a Python number."""
    return isinstance(x, (bool, int, float))


def reached(roots: list[Node]) -> list[Node]:
    """Returns all ancestors of nodes, operands first."""
    done: dict[Node, None] = {}

    def visit(node: Node) -> Iterator[Node]:
        stack = [(node, iter(node.operands))]
        while stack:
            top, rest = stack[-1]
            arg = next((x for x in rest if x not in done), None)
            if arg is None:
                stack.pop()
                if top not in done:
                    done[top] = None
                    yield top
            else:
                stack.append((arg, iter(arg.operands)))

    for root in roots:
        for _ in visit(root):
            pass
    return list(done)


def text_of(root: Node, sizes: dict[int, str]) -> list[str]:
    """Returns a line for each node, without the sizes of the capture.

    Args:
        root (Node): The result.
        sizes (Dict[int, str]): Names of the numbers of rows.
    """
    number: dict[Node, int] = {}
    lines = []

    def say(x: Any) -> Any:
        if isinstance(x, Node):
            return f'%{number[x]}'
        if isinstance(x, (list, tuple)):
            return '[' + ', '.join(map(say, x)) + ']'
        if isinstance(x, dict):
            return say([x[key] for key in sorted(x)])
        return repr(x)

    for node in reached([root]):
        number[node] = len(number)
        given = '' if node.op in ('view', 'expand') else say(node.kwargs)
        args = node.args[:1] if node.op in ('view', 'expand') else node.args
        lines.append(
            f'%{number[node]} = {node.op}{say(args)}{given}: {node.kind}'
            f'{[sizes.get(n, n) for n in node.shape]} {node.row} {node.dtype}'
        )
    return lines
