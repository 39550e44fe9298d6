"""What a captured call computes, as a graph of operators of ATen."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from torch_gsample.torch_private import tree_leaves

#: Parameters: no rows.
PARAMETER = 'P'
#: A row for each vertex, before messages.
VERTEX = 'N'
#: A row for each edge: features of sources, destinations or edges alone,
#: which torch computes before the kernel. Those of ends have a row for each
#: vertex then, as operators on rows and the choice of rows commute.
SOURCE, DESTINATION, EDGE = 'S', 'D', 'E'
#: A row for each edge, of several of these or of aggregates: in the kernel.
MIXED = 'X'
#: A row for each destination: aggregates, and values computed from them.
AGGREGATE = 'A'
#: ``edge_index``, and one end of it.
GRAPH, INDEX = 'G', 'I'

PURE = frozenset({SOURCE, DESTINATION, EDGE})
OF_EDGES = PURE | {MIXED}

#: Element by element, with broadcasting.
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
    """What cannot be fused, and where.

    Args:
        reason (str): The reason.
        where (str): The line; empty if it is not known.
    """

    def __init__(self, reason: str, where: str = ''):
        super().__init__(f'{where}: {reason}' if where else reason)


@dataclass(eq=False)
class Node:
    """A value of a captured call.

    Args:
        op (str): The name of its operator, or ``'input'``, ``'parameter'``,
            ``'fill'``, ``'gather'``, ``'aggregate'``.
        kind (str): What it has rows of.
        shape (Tuple[int, ...]): Its shape in the capture.
        dtype (torch.dtype): Its dtype.
        row (int, optional): The dimension of its rows.
        args (Tuple): Of its operator: nodes, numbers and lists of them.
        kwargs (Dict[str, Any]): Those that have names.
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
        """Returns the error that names its line."""
        return NotCaptured(reason, self.where)


def is_number(x: Any) -> bool:
    """Whether an argument is a Python number."""
    return isinstance(x, (bool, int, float))


def reached(roots: list[Node]) -> list[Node]:
    """Returns all nodes that some are computed of, operands first."""
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
        sizes (Dict[int, str]): The numbers of rows, by what they count.
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
