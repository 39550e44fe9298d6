"""Slices of values of edges, moved to the operands.

    relu(x_i + x_j)[:, a:b]   ->   relu(x_i[:, a:b] + x_j[:, a:b])
    (x @ W)[:, a:b]           ->   x @ W[:, a:b]

A kernel cannot divide features, but torch can: those of the ends of edges, and
parameters.
"""

from itertools import accumulate
from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import (
    ELEMENTWISE,
    MIXED,
    Node,
)

aten = torch.ops.aten


def select(call: Any) -> Node:
    """Returns a position of a dimension of features.

    Args:
        call (Call): The operator.
    """
    x, dim, index = call.args
    [dim] = call.features(dim)
    index %= x.shape[dim]
    if x.kind == MIXED and x.op == 'cat' and dim != x.args[1]:
        parts = [call.call(call.func, p, dim, index) for p in x.args[0]]
        at = x.args[1] - (dim < x.args[1])
        out: Node = call.call(aten.cat.default, parts, at)
        return out
    if x.kind == MIXED:
        one = sliced(call, x, dim, index, index + 1)
        if one is not None:
            out = call.call(aten.squeeze.dim, one, dim)
            return out
    out = call.node(x.row - (dim < x.row))
    return out


def slice_of(call: Any) -> Node:
    """Returns a slice of features.

    Args:
        call (Call): The operator.
    """
    x, *given = call.args
    given += [0, None, None, 1][len(given) :]
    dim, start, end, step = given
    size = x.shape[dim % x.rank]
    start, end, step = slice(start, end, step).indices(size)
    if (start, end, step) == (0, size, 1):
        whole: Node = x
        return whole
    [dim] = call.features(dim)
    if x.kind == MIXED and step == 1 and start < end:
        part = sliced(call, x, dim, start, end)
        if part is not None:
            return part
    out: Node = call.node(x.row)
    return out


def split(call: Any) -> list[Node]:
    """Returns consecutive slices of features.

    Args:
        call (Call): The operator.
    """
    x, sizes, dim = (*call.args, 0)[:3]
    [dim] = call.features(call.kwargs.get('dim', dim))
    width = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, width - i) for i in range(0, width, sizes)]
    return [
        call.call(aten.slice.Tensor, x, dim, end - size, end)
        for end, size in zip(accumulate(sizes), sizes, strict=True)
    ]


def unbind(call: Any) -> list[Node]:
    """Returns all positions of a dimension of features.

    Args:
        call (Call): The operator.
    """
    x, dim = (*call.args, 0)[:2]
    [dim] = call.features(call.kwargs.get('dim', dim))
    return [call.call(aten.select.int, x, dim, i) for i in range(x.shape[dim])]


def glu(call: Any) -> Node:
    """Returns the first half of features, gated by the second.

    Args:
        call (Call): The operator.
    """
    x, dim = (*call.args, -1)[:2]
    first, gate = call.call(aten.split.Tensor, x, x.shape[dim] // 2, dim)
    gate = call.call(aten.sigmoid.default, gate)
    out: Node = call.call(aten.mul.Tensor, first, gate)
    return out


class _NotSliced(Exception):
    """An operand cannot be divided."""


def sliced(call: Any, x: Node, dim: int, start: int, end: int) -> Node | None:
    """Returns a part of a value; None if an operand cannot be divided.

    Args:
        call (Call): The operator, as which parts are recorded.
        x (Node): The value.
        dim (int): A dimension of features.
        start (int): The first position.
        end (int): The position after the last one.
    """
    try:
        return _Slicer(call, dim - x.rank, start, end).of(x)
    except _NotSliced:
        return None


class _Slicer:
    """Divides a value and its operands, each of them once.

    Args:
        call (Call): The operator, as which parts are recorded.
        from_end (int): The dimension, counted from the last.
        start (int): The first position.
        end (int): The position after the last one.
    """

    def __init__(self, call: Any, from_end: int, start: int, end: int):
        self._call = call.call
        self._from_end, self._start, self._end = from_end, start, end
        self._done: dict[Node, Node] = {}

    def of(self, x: Node) -> Node:
        """Returns the part of a value."""
        if x not in self._done:
            self._done[x] = self._made(x)
        return self._done[x]

    def _made(self, x: Node) -> Node:
        if x.rank < -self._from_end or x.shape[self._from_end] == 1:
            return x
        dim = x.rank + self._from_end
        if x.kind != MIXED:
            return self._plain(x, dim)
        if x.op == 'cat':
            parts, at = x.args
            return self._of_cat(parts, at, dim)
        if x.op in ELEMENTWISE and not _has_nodes(x.kwargs):
            args = [self.of(y) if isinstance(y, Node) else y for y in x.args]
            out: Node = self._call(x.func, *args, **x.kwargs)
            return out
        if x.op == 'view':
            return self._of_view(x, dim)
        if x.op == 'expand':  # operations broadcast the narrow value
            narrow: Node = x.args[0]
            if narrow.rank == x.rank and narrow.shape[dim] == 1:
                return narrow
        if x.op == 'mm' and dim == 1:
            left, right = x.args
            product: Node = self._call(x.func, left, self._plain(right, 1))
            return product
        raise _NotSliced

    def _plain(self, x: Node, dim: int) -> Node:
        out: Node = self._call(
            aten.slice.Tensor, x, dim, self._start, self._end
        )
        return out

    def _of_view(self, x: Node, dim: int) -> Node:
        """For dimensions of size 1 that were added or removed."""
        [base] = x.args
        mine, theirs = (
            [i for i, n in enumerate(y.shape) if n != 1] for y in (x, base)
        )
        if [x.shape[i] for i in mine] != [base.shape[i] for i in theirs]:
            raise _NotSliced
        place = theirs[mine.index(dim)]
        part = self._plain(base, place)
        shape = [*x.shape]
        shape[dim] = part.shape[place]
        out: Node = self._call(aten.view.default, part, shape)
        return out

    def _of_cat(self, parts: list[Node], at: int, dim: int) -> Node:
        if at != dim:
            out: Node = self._call(
                aten.cat.default, [self.of(part) for part in parts], at
            )
            return out
        found, first = [], 0
        for part in parts:
            width = part.shape[dim]
            start = max(self._start - first, 0)
            end = min(self._end - first, width)
            if start < end:
                found.append(
                    self._call(aten.slice.Tensor, part, dim, start, end)
                )
            first += width
        whole: Node = self._call(aten.cat.default, found, dim)
        return whole


def _has_nodes(kwargs: dict[str, Any]) -> bool:
    return any(isinstance(x, Node) for x in kwargs.values())
