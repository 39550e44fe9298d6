"""Translates a captured call to a vertex program.

An operator of ATen without a translation must be before or after the kernel.
"""

from collections.abc import Sequence
from typing import Any

import torch

from torch_gsample.codegen.expression import constant
from torch_gsample.codegen.unit import PARAMETER as OF_PROGRAM
from torch_gsample.vertex.capture.ends import keeps_axes
from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    EDGE,
    MIXED,
    PARAMETER,
    PURE,
    Node,
    is_number,
)
from torch_gsample.vertex.capture.operators import LOWERED
from torch_gsample.vertex.frontend.precision import kernel_dtype
from torch_gsample.vertex.frontend.values import Unsupported, Value


class Program:
    """The kernel part of a captured call.

    Args:
        edges (Sequence[Node]): The returned values of edges.
        roots (Sequence[Node]): The results of the call.
    """

    def __init__(self, edges: Sequence[Node], roots: Sequence[Node]):
        #: Operands: names by node, and the row dimension removed from
        #: parameters.
        self.leaves: dict[tuple[Node, int | None], str] = {}
        self.outputs: list[Node] = []
        self._seen: set[Node] = set()
        self._checked: set[Node] = set()
        for node in edges:
            self._find_edges(node)
        for node in roots:
            self._find_outputs(node)
        if not self.outputs:
            raise roots[0].fail('nothing is aggregated')
        #: The dtype of the kernel; operands are converted.
        self.dtype = kernel_dtype(self.outputs[0].dtype)
        for node in self.outputs:
            self._check(node)

    def _find_outputs(self, node: Node) -> None:
        """Finds the final values of destinations in the kernel."""
        if node in self._seen:
            return
        self._seen.add(node)
        if _is_last(node) and node.dtype.is_floating_point:
            self.outputs.append(node)
            return
        for arg in node.operands:
            self._find_outputs(arg)

    def _find_edges(self, node: Node) -> None:
        """Finds the values of edges that the kernel writes."""
        if node in self._seen or node.kind in (EDGE, PARAMETER):
            return
        self._seen.add(node)
        if node.kind != MIXED:
            raise node.fail('it returns a value of one end for each edge')
        is_put = node.op == 'view' and not keeps_axes(node)
        if not is_put and node.op != 'cat':
            self.outputs.append(node)
            return
        for arg in node.operands:
            self._find_edges(arg)

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
        dtype = kernel_dtype(node.dtype)
        is_other = dtype.is_floating_point and dtype != self.dtype
        if is_other and not _chooses_exactly(node):
            raise node.fail(f'values of {self.dtype} and {dtype} at edges')
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
        """Returns the dimension of a parameter that corresponds to rows."""
        if node.op in ('mm', 'mv', 'bmm'):
            return None
        assert node.row is not None
        place = arg.rank + node.row - node.rank
        return place if place >= 0 else None

    @property
    def parameters(self) -> list[str]:
        """The names of parameters."""
        return [name for name in self.leaves.values() if name[0] == 'p']

    def run(self, v: Any, values: dict[str, Value]) -> tuple[Any, ...]:
        """Computes the outputs on symbols; values of edges are in lists.

        Args:
            v (Vertex): The vertex.
            values (Dict[str, Value]): The parameters.
        """
        lowering = Lowering(self, v, values)
        return tuple(
            [lowering.of(node)] if node.kind == MIXED else lowering.of(node)
            for node in self.outputs
        )


def _is_last(node: Node) -> bool:
    """Whether a value of destinations is cheap in the kernel."""
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
        """Returns an operand with all of its features."""
        value, x = self.arg(node, place), node.args[place]
        want = x.shape if x.kind == PARAMETER else x.features
        if tuple(value.shape) != tuple(want):
            raise node.fail(f'torch.{node.op} of expanded values')
        return value


def _chooses_exactly(node: Node) -> bool:
    """Whether a value is one of two numbers that float32 holds exactly."""
    return node.op == 'where' and all(
        isinstance(x, Node)
        and x.op == 'fill'
        and torch.tensor(x.args[0], dtype=torch.float32).item() == x.args[0]
        for x in node.args[1:]
    )
