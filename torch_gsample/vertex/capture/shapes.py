"""Moves reshapes of values of edges before or after the kernel.

A kernel cannot split or merge dimensions. Element-wise operations commute with
a reshape, so it moves to the operands, which torch reshapes, or otherwise to
the aggregate.
"""

from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import (
    ELEMENTWISE,
    MIXED,
    PARAMETER,
    PURE,
    Node,
)

aten = torch.ops.aten


def viewed(x: Node, shape: tuple[int, ...], row: int, where: str) -> Node:
    """Returns a node of another shape.

    Args:
        x (Node): The node.
        shape (Tuple[int, ...]): The shape.
        row (int): The new dimension of its rows.
        where (str): The line.
    """
    if shape == x.shape:
        return x
    if x.op == 'view':
        x = x.args[0]
        if shape == x.shape:
            return x
    return Node('view', x.kind, shape, x.dtype, row, (x,), where=where)


def unviewed(x: Node) -> Node:
    """Returns the base of a view."""
    while x.op in ('view', '_unsafe_view', 'reshape'):
        x = x.args[0]
    return x


def reshaped(call: Any, x: Node, shape: tuple[int, ...], row: int) -> Node:
    """Returns a reshaped node; reshapes operands if possible."""
    view = viewed(x, shape, row, call.where)
    if x.kind != MIXED or view.kind != MIXED or _keeps(view, x):
        return view
    return _pushed(call, x, shape, row) or view


def _keeps(view: Node, x: Node) -> bool:
    sizes = [[n for n in y.features if n != 1] for y in (view, x)]
    return sizes[0] == sizes[1]


def _pushed(
    call: Any, x: Node, shape: tuple[int, ...], row: int
) -> Node | None:
    """Reshapes the operands of a value; None if one cannot be."""
    if x.kind in PURE:
        return viewed(x, shape, row, call.where)
    if x.op == 'view':
        return _pushed(call, x.args[0], shape, row)
    if x.op == 'bmm' and x.shape[1] == 1 and row == 0:
        return _outer(call, x, shape)
    if x.op not in ELEMENTWISE:
        return None
    args = []
    for arg in x.args:
        if isinstance(arg, Node) and arg.kind == PARAMETER:
            if arg.features != x.features or row:
                return None
            arg = call.call(aten.view.default, arg, list(shape[1:]))
        elif isinstance(arg, Node):
            if arg.shape != x.shape:
                return None
            arg = _pushed(call, arg, shape, row)
            if arg is None:
                return None
        args.append(arg)
    return call.call(x.func, *args, **x.kwargs)


def _outer(call: Any, x: Node, shape: tuple[int, ...]) -> Node | None:
    """``sum_k a[k] b[k, ...]``, with the dimensions of ``b`` split."""
    a, b = x.args[:2]
    if b.kind not in PURE:
        return None
    rows, inner, features = shape[0], b.shape[1], shape[1:]
    a = reshaped(call, a, (rows, inner, *[1] * len(features)), 0)
    b = reshaped(call, b, (rows, inner, *features), 0)
    product = call.call(aten.mul.Tensor, a, b)
    return call.call(aten.sum.dim_IntList, product, [1])


def through_cat(call: Any) -> Node | None:
    """Returns an operation on each part of a concatenation."""
    cats = [x for x in call.nodes if x.kind == MIXED and x.op == 'cat']
    if not cats:
        return None
    first = cats[0]
    for node in call.nodes:
        if node.op != 'cat' or node.kind != MIXED:
            return None
        alike = [p.shape for p in node.args[0]] == [
            p.shape for p in first.args[0]
        ]
        if not alike or node.args[1] != first.args[1]:
            return None
    parts = []
    for i in range(len(first.args[0])):
        args = [x.args[0][i] if isinstance(x, Node) else x for x in call.args]
        parts.append(call.call(call.func, *args, **call.kwargs))
    return call.call(aten.cat.default, parts, first.args[1])
