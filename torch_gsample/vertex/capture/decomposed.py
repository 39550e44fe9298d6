"""Operators of values of edges, recorded as the simpler ones of kernels.

Torch computes those of only one end of edges, with a row for each vertex.
"""

from collections.abc import Callable
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import EDGE, MIXED, PURE, Node
from torch_gsample.vertex.capture.products import COLUMNS
from torch_gsample.vertex.capture.shapes import is_cat

aten = torch.ops.aten


def _extreme(call: Any) -> list[Node]:
    """``max`` and ``min`` along a dimension; positions are not computed."""
    if len(call.args) < 2 or not isinstance(call.args[1], int):
        raise call.fail('it runs along rows')
    x, dim, *keep = call.args
    [dim] = call.features(dim)
    func = aten.amax.default if call.name == 'max' else aten.amin.default
    out = call.call(func, x, [dim], *keep, **call.kwargs)
    name = f'{call.name} (its indices)'
    return [out, Node(name, out.kind, out.shape, torch.int64, out.row)]


def _deviation(call: Any) -> Node:
    """``var`` and ``std`` along dimensions of features."""
    x = call.args[0]
    dims = call.features(call.args[1] if len(call.args) > 1 else None)
    if x.kind != MIXED:
        out: Node = call.node(x.row - _lost(call, x, dims))
        return out
    correction = call.kwargs.get('correction')
    correction = 1 if correction is None else correction
    count = 1
    for dim in dims:
        count *= x.shape[dim]
    if count <= correction:
        raise call.fail('it has too few features')
    low = call.call(
        aten.sub.Tensor, x, call.call(aten.mean.dim, x, dims, True)
    )
    square = call.call(aten.mul.Tensor, low, low)
    keep = call.kwargs.get('keepdim', False)
    out = call.call(aten.sum.dim_IntList, square, dims, keep)
    out = call.call(aten.div.Tensor, out, count - correction)
    return out if call.name == 'var' else _root(call, out)


def _lost(call: Any, x: Any, dims: list[int]) -> int:
    if call.meta().dim() == x.rank:
        return 0
    return sum(d < x.row for d in dims)


def _root(call: Any, x: Node) -> Node:
    """Returns the square root, whose gradient at 0 is 0."""
    inside = call.call(aten.gt.Scalar, x, 0)
    one = call.call(aten.where.ScalarOther, inside, x, 1.0)
    root = call.call(aten.sqrt.default, one)
    out: Node = call.call(aten.where.ScalarOther, inside, root, 0.0)
    return out


def _norm(call: Any) -> Node:
    """``norm``, also of joined features."""
    x, order, dims = (*call.args, 2, None)[:3]
    if not is_cat(x) or order != 2 or call.kwargs.get('dtype') is not None:
        out: Node = call.reduced()
        return out
    dims, keep = call.features(dims), call.meta().dim() == x.rank
    square = call.call(aten.mul.Tensor, x, x)
    total = call.call(aten.sum.dim_IntList, square, dims, keep)
    return _root(call, total)


def _roll(call: Any) -> Node:
    """``roll`` of features, as two parts that change their order."""
    x, shifts, *dims = call.args
    shifts = [shifts] if isinstance(shifts, int) else shifts
    dims = call.features(call.kwargs.get('dims', dims[0] if dims else None))
    if len(shifts) != len(dims):
        raise call.fail('it runs along rows')
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        at = -shift % size
        parts = [
            call.call(aten.slice.Tensor, x, dim, *ends)
            for ends in ((at, size), (0, at))
            if ends[0] < ends[1]
        ]
        x = call.call(aten.cat.default, parts, dim)
    out: Node = x
    return out


def _columns(call: Any, x: Node, dim: int) -> list[Any]:
    """Returns the parts of one position of a dimension, if they are few."""
    size = x.shape[dim]
    if size > COLUMNS:
        raise call.fail(f'it runs along more than {COLUMNS} features')
    return [
        call.call(aten.slice.Tensor, x, dim, k, k + 1) for k in range(size)
    ]


def _flip(call: Any) -> Node:
    """``flip``: positions in reverse order."""
    x, dims = call.args
    dims = call.features(dims)
    if x.kind != MIXED:
        of_end: Node = call.node(x.row)
        return of_end
    for dim in dims:
        columns = _columns(call, x, dim)
        x = call.call(aten.cat.default, columns[::-1], dim)
    out: Node = x
    return out


def _cumsum(call: Any) -> Node:
    """``cumsum``: the sum of the positions up to each."""
    x, dim = call.args
    [dim] = call.features(dim)
    if x.kind != MIXED or call.kwargs.get('dtype') is not None:
        of_end: Node = call.node(x.row)
        return of_end
    columns = _columns(call, x, dim)
    sums = list(accumulate(columns, partial(call.call, aten.add.Tensor)))
    out: Node = call.call(aten.cat.default, sums, dim)
    return out


def _prod(call: Any) -> Node:
    """``prod``: the product of all positions of a dimension."""
    x, dim, keep = (*call.args, None, False)[:3]
    out: Node
    if x.kind != MIXED or dim is None or call.kwargs.get('dtype') is not None:
        out = call.reduced()
        return out
    [dim] = call.features(dim)
    columns = _columns(call, x, dim)
    out = reduce(partial(call.call, aten.mul.Tensor), columns)
    return out if keep else call.call(aten.squeeze.dim, out, dim)


def _pad(call: Any) -> Node:
    """``pad`` with a constant, joined to the features; less than 0 cuts."""
    x, widths, *value = call.args
    ends = list(zip(widths[::2], widths[1::2], strict=True))
    places = [x.rank - 1 - i for i in range(len(ends))]
    changed = [d for d, end in zip(places, ends, strict=True) if any(end)]
    if changed:
        call.features(changed)
    if x.kind != MIXED:
        of_end: Node = call.node(x.row)
        return of_end
    for dim, (before, after) in zip(places, ends, strict=True):
        size = x.shape[dim]
        x = call.call(
            aten.slice.Tensor, x, dim, max(0, -before), size + min(0, after)
        )
        parts = [
            _constant(x, dim, before, *value),
            x,
            _constant(x, dim, after, *value),
        ]
        parts = [part for part in parts if part.shape[dim]]
        x = call.call(aten.cat.default, parts, dim)
    out: Node = x
    return out


def _constant(x: Node, dim: int, size: int, value: float = 0.0) -> Node:
    """Returns equal values, in the shape of others but for a dimension."""
    shape = *x.shape[:dim], max(0, size), *x.shape[dim + 1 :]
    return Node('fill', EDGE, shape, x.dtype, x.row, (value,))


def _logsumexp(call: Any) -> Node:
    """``logsumexp``, also of joined features."""
    x, dims = call.args[:2]
    dims = call.features(dims)
    out: Node
    if not is_cat(x) or x.args[1] not in dims:
        out = call.reduced()
        return out
    most = call.call(aten.amax.default, x, dims, True)
    most = call.call(aten.detach.default, most)
    low = call.call(aten.sub.Tensor, x, most)
    grown = call.call(aten.exp.default, low)
    total = call.call(aten.sum.dim_IntList, grown, dims, True)
    out = call.call(aten.log.default, total)
    out = call.call(aten.add.Tensor, out, most)
    if call.meta().dim() == x.rank:
        return out
    for dim in sorted(dims, reverse=True):
        out = call.call(aten.squeeze.dim, out, dim)
    return out


def _cross(call: Any) -> Node:
    """``a[k + 1] * b[k + 2] - a[k + 2] * b[k + 1]``, for each ``k``."""
    a, b, *dim = call.args
    [dim] = call.features(call.kwargs.get('dim', dim[0] if dim else -1))
    if a.shape != b.shape:
        raise call.fail('it has operands of several shapes')

    def column(x: Node, k: int) -> Any:
        return call.call(aten.slice.Tensor, x, dim, k % 3, k % 3 + 1)

    def product(i: int, j: int) -> Any:
        return call.call(aten.mul.Tensor, column(a, i), column(b, j))

    columns = [
        call.call(
            aten.sub.Tensor, product(k + 1, k + 2), product(k + 2, k + 1)
        )
        for k in range(3)
    ]
    out: Node = call.call(aten.cat.default, columns, dim)
    return out


def _bilinear(call: Any) -> Node:
    """``nn.Bilinear``: one end times all matrices, then the other.

    out[k] = sum_j (sum_i x[i] * weight[k, i, j]) * y[j]
    """
    x, weight, y, *expanded = call.args
    if expanded[:4] != [[1, 3], [0], [1, 2], [2, 3]] or x.row or y.row:
        raise call.fail()
    order = [1, 0, 2]
    if x.kind not in PURE:
        x, y, order = y, x, [2, 0, 1]
    if x.kind not in PURE or x.rank != 2 or y.rank != 2:
        raise call.fail('one operand must be of one end, or of edges')
    weight = call.call(aten.permute.default, weight, order)
    matrix = call.call(aten.reshape.default, weight, [x.shape[1], -1])
    out = call.call(aten.mm.default, x, matrix)
    shape = [x.rows, weight.shape[1], y.shape[1]]
    out = call.call(aten.view.default, out, shape)
    y = call.call(aten.unsqueeze.default, y, 1)
    out = call.call(aten.mul.Tensor, out, y)
    out = call.call(aten.sum.dim_IntList, out, [2])
    done: Node = out
    return done


def _softmax(call: Any) -> Node:
    """``softmax`` and ``log_softmax``, also of joined features."""
    x = call.args[0]
    [dim] = call.features(call.args[1])
    if not is_cat(x) or x.args[1] != dim:
        out: Node = call.node(x.row)
        return out
    most = call.call(aten.amax.default, x, [dim], True)
    low = call.call(aten.sub.Tensor, x, call.call(aten.detach.default, most))
    grown = call.call(aten.exp.default, low)
    total = call.call(aten.sum.dim_IntList, grown, [dim], True)
    if call.name == '_softmax':
        out = call.call(aten.div.Tensor, grown, total)
    else:
        out = call.call(
            aten.sub.Tensor, low, call.call(aten.log.default, total)
        )
    return out


#: Operators by name, as functions of their call.
DECOMPOSED: dict[str, Callable[[Any], Any]] = {
    **{name: _extreme for name in ('max', 'min')},
    **{name: _deviation for name in ('var', 'std')},
    **{name: _softmax for name in ('_softmax', '_log_softmax')},
    'linalg_vector_norm': _norm,
    'logsumexp': _logsumexp,
    'prod': _prod,
    'cumsum': _cumsum,
    'flip': _flip,
    'constant_pad_nd': _pad,
    'roll': _roll,
    'linalg_cross': _cross,
    '_trilinear': _bilinear,
}
