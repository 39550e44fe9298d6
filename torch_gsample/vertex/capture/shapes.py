"""Moves reshapes of values of edges before or after the kernel.

A kernel cannot split or merge dimensions. Element-wise operations commute with
a reshape, so it moves to the operands, which torch reshapes, or otherwise to
the aggregate.
"""

from itertools import accumulate
from math import prod
from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import (
    ELEMENTWISE,
    MIXED,
    PARAMETER,
    PURE,
    Node,
)
from torch_gsample.vertex.capture.slices import sliced

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
    """Returns an operation on each part of a concatenation.

    Other operands are divided. None if one cannot be.
    """
    cats = [x for x in call.args if is_cat(x)]
    if not cats or any(isinstance(x, Node) for x in call.kwargs.values()):
        return None
    parts, dim = cats[0].args
    from_end = dim - cats[0].rank
    widths = [part.shape[dim] for part in parts]
    operands = [_cut(call, x, from_end, widths) for x in call.args]
    if None in operands:
        return None
    out = [
        call.call(call.func, *args, **call.kwargs)
        for args in zip(*operands, strict=True)
    ]
    return call.call(aten.cat.default, out, out[0].rank + from_end)


def is_cat(x: Any) -> bool:
    """Whether a value is a concatenation that a kernel cannot store."""
    return isinstance(x, Node) and x.kind == MIXED and x.op == 'cat'


def _cut(
    call: Any, x: Any, from_end: int, widths: list[int]
) -> list[Any] | None:
    """Returns the parts of an operand that meet those of a concatenation.

    Args:
        call (Call): The operation.
        x (Any): The operand.
        from_end (int): The dimension that is divided, counted from the last.
        widths (List[int]): The widths of the parts.
    """
    if not isinstance(x, Node) or x.rank < -from_end:
        return [x] * len(widths)
    if x.shape[from_end] == 1:
        return [x] * len(widths)
    if is_cat(x):
        parts, dim = x.args
        alike = [part.shape[dim] for part in parts] == widths
        if alike and dim - x.rank == from_end:
            return list(parts)
    dim, ends = x.rank + from_end, accumulate(widths)
    parts = [
        sliced(call, x, dim, end - width, end)
        for end, width in zip(ends, widths, strict=True)
    ]
    return None if None in parts else parts


def reduced_cat(call: Any, dims: list[int]) -> Node | None:
    """Returns a reduction of a concatenation, part by part.

    Args:
        call (Call): The reduction, whose first argument is the value.
        dims (List[int]): The reduced dimensions.
    """
    x = call.args[0]
    joins = _JOINS.get(call.name)
    if not is_cat(x) or joins is None:
        return None
    if call.kwargs.get('dtype') is not None or x.args[1] not in dims:
        return None
    func, join = joins
    keep = call.meta().dim() == x.rank
    total = None
    for part in x.args[0]:
        one = call.call(func, part, dims, keep)
        total = one if total is None else call.call(join, total, one)
    if call.name == 'mean':
        count = prod(x.shape[d] for d in dims)
        total = call.call(aten.div.Tensor, total, count)
    return total


#: Reductions of parts, and how their results are joined.
_JOINS = {
    **{
        name: (aten.sum.dim_IntList, aten.add.Tensor)
        for name in ('sum', 'mean')
    },
    'amax': (aten.amax.default, aten.maximum.default),
    'amin': (aten.amin.default, aten.minimum.default),
}
