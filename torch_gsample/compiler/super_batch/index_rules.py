"""Super-batch rules of gathers and scatters."""

import operator
from typing import Any

import torch
from torch.fx import Node

from torch_gsample.compiler.ir import (
    arguments,
    aten,
    example,
    unique_options,
)
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.torch_rules import flat, rule, tiled
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Parts,
    Rewrite,
    Size,
    Value,
    args_of,
)


@rule(aten.index_select.default)
def _index_select(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    if given['dim'] != 0:
        raise NoRule('it indexes a dimension other than the rows')
    return gather(rewrite, node, given['self'], given['index'])


@rule(aten.index.Tensor)
def _index(rewrite: Rewrite, node: Node) -> Value:
    source, indices = args_of(node)
    if len(indices) != 1 or indices[0] is None:
        raise NoRule('it indexes several dimensions')
    return gather(rewrite, node, source, indices[0])


@rule(operator.getitem)
def _getitem(rewrite: Rewrite, node: Node) -> Value:
    source, at = args_of(node)
    if isinstance(at, Node):
        return gather(rewrite, node, source, at)
    raise NoRule('it selects rows at fixed positions')


@rule(aten.unsqueeze.default, aten.select.int)
def _in_rows(rewrite: Rewrite, node: Node) -> Value:
    source, dim = args_of(node)[:2]
    value = rewrite.vector(source)
    if dim % max(example(n).dim() for n in (source, node)) == 0:
        raise NoRule('it selects rows at fixed positions')
    return Value(rewrite.copy(node), value.axis, value.into)


def gather(rewrite: Rewrite, node: Node, source: Node, at: Node) -> Value:
    """Returns the operator for positions in the rows of all batches."""
    value, place = rewrite[source], rewrite[at]
    if place.is_constant:
        raise NoRule('it selects rows at fixed positions')
    if value.is_constant:
        changed = {at: rewrite.local(place)}
        return Value(rewrite.copy(node, changed), place.axis)
    if value.kind == 'pointers' and place.kind == 'pointers':
        if place.into is not value.axis:
            raise NoRule('pointers index another axis')
        return Value(rewrite.copy(node), place.axis, value.into, 'pointers')
    rewrite.vector(source)
    rewrite.vector(at)
    if example(at).dtype == torch.bool:
        return _masked(rewrite, node, source, at)
    changed = {at: rewrite.positions(place, value.axis)}
    return Value(rewrite.copy(node, changed), place.axis, value.into)


def _masked(rewrite: Rewrite, node: Node, source: Node, at: Node) -> Value:
    value, mask = rewrite[source], rewrite[at]
    dim = example(at).dim()
    if mask.axis is not value.axis or dim not in (1, example(source).dim()):
        raise NoRule('a mask belongs to another axis')
    if dim == 1:
        return Value(rewrite.copy(node), rewrite.held(mask), value.into)
    if (
        any(not isinstance(n, int) for n in example(at).shape[1:])
        or example(at).shape[1:] != example(source).shape[1:]
    ):
        raise NoRule('a mask belongs to another axis')
    # A mask of elements instead of rows.
    value = flat(rewrite, value, example(source))
    mask = flat(rewrite, mask, example(at))
    call = rewrite.call(
        aten.index.Tensor, value.node, [mask.node], like=example(node)
    )
    return Value(call, rewrite.held(mask), value.into)


@rule(aten.nonzero.default)
def _nonzero(rewrite: Rewrite, node: Node) -> Value:
    mask = rewrite.vector(args_of(node)[0])
    if example(args_of(node)[0]).dim() != 1:
        raise NoRule('a mask has several dimensions')
    return Value(rewrite.copy(node), rewrite.held(mask), mask.axis)


@rule(aten.slice.Tensor)
def _narrow(rewrite: Rewrite, node: Node) -> Value:
    value, given = rewrite[args_of(node)[0]], arguments(node)
    if given['dim'] != 0 and value.kind == 'vector':
        return Value(rewrite.copy(node), value.axis, value.into)
    if value.kind == 'vector' and not value.is_constant:
        return _narrow_rows(rewrite, node, given)
    ends = (given['start'] or 0, given['end'])
    if value.kind != 'pointers' or ends != (0, -1) or given['step'] != 1:
        raise NoRule('it selects rows at fixed positions')
    return Value(rewrite.copy(node), value.axis, value.into)


def _narrow_rows(rewrite: Rewrite, node: Node, given: dict[str, Any]) -> Value:
    """Handles ``x[:0]``, and ``x[n:]`` where ``n`` is the size of an axis."""
    value, start = rewrite.vector(given['self']), given['start'] or 0
    if start == 0 and given['end'] == 0:
        return Value(rewrite.copy(node), rewrite.dense(0), value.into)
    to_end = given['end'] in (None, 2**63 - 1) and given['step'] == 1
    if to_end and isinstance(start, int) and start == 0:
        return Value(rewrite.copy(node), value.axis, value.into)
    first = rewrite.known.get(start) if isinstance(start, Node) else None
    if not isinstance(first, Size) or first.more or not to_end:
        raise NoRule('it selects rows at fixed positions')
    call = rewrite.call(
        segments.rest,
        value.node,
        value.axis.ptr,
        first.axis.ptr,
        like=example(node),
    )
    begin, *others = rewrite.joined.get(value.axis, (None,))
    if begin is first.axis and len(others) == 1:
        return Value(call, others[0], value.into)
    axis = rewrite.once(
        ('rest', value.axis, first.axis),
        lambda: rewrite.axis(
            segments.ptr_of_rest, value.axis.ptr, first.axis.ptr
        ),
    )
    return Value(call, axis, value.into)


# Scatters.


def _target(rewrite: Rewrite, base: Node, at: Node) -> tuple[Node, Node, Axis]:
    """Returns the target of a scatter, and positions in it."""
    value, place = rewrite[base], rewrite.vector(at)
    if not isinstance(value, Value) or value.kind != 'vector':
        raise NoRule('it scatters to a tensor that is not a vector')
    if value.axis is not None:
        return value.node, rewrite.positions(place, value.axis), value.axis
    axis = rewrite.dense(example(base).shape[0])
    copies = tiled(rewrite, value.node, axis)
    return copies, rewrite.positions(place, axis), axis


@rule(aten.index_add.default, aten.scatter_reduce.two)
def _scatter(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    source = given.get('source', given.get('src'))
    if given['dim'] != 0:
        raise NoRule('it indexes a dimension other than the rows')
    rows = rewrite.vector(source)
    if rows.axis is not rewrite.vector(given['index']).axis:
        raise NoRule('it combines rows of different axes')
    base, place, axis = _target(rewrite, given['self'], given['index'])
    changed = {
        source: rewrite.local(rows),
        given['self']: base,
        given['index']: place,
    }
    return Value(rewrite.copy(node, changed), axis)


@rule(aten.index_fill.int_Scalar)
def _index_fill(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    if given['dim'] != 0:
        raise NoRule('it indexes a dimension other than the rows')
    rewrite.constant(given['value'])
    base, place, axis = _target(rewrite, given['self'], given['index'])
    changed = {given['self']: base, given['index']: place}
    return Value(rewrite.copy(node, changed), axis)


@rule(aten.index_put.default)
def _index_put(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    at, source = given['indices'][0], given['values']
    if len(given['indices']) > 1 or at is None or given['accumulate']:
        raise NoRule('it writes by several indices, or accumulates')
    if example(at).dtype == torch.bool:
        return _put_by_mask(rewrite, node, given)
    base, place, axis = _target(rewrite, given['self'], at)
    changed = {given['self']: base, at: place}
    if not rewrite[source].is_constant:
        rows = rewrite.vector(source)
        if rows.axis is not rewrite.vector(at).axis:
            raise NoRule('it combines rows of different axes')
        changed[source] = rewrite.local(rows)
    elif example(source).dim() > 0:
        raise NoRule('it writes rows of a constant')
    return Value(rewrite.copy(node, changed), axis)


def _put_by_mask(rewrite: Rewrite, node: Node, given: dict[str, Any]) -> Value:
    """Writes rows that the same mask selected before."""
    base, at, source = given['self'], given['indices'][0], given['values']
    value, mask = rewrite.vector(base), rewrite.vector(at)
    rows = rewrite.vector(source)
    held = rewrite.held(flat(rewrite, mask, example(at)))
    if mask.axis is not value.axis or rows.axis is not held:
        raise NoRule('it writes rows of another axis by a mask')
    changed = {base: rewrite.local(value), source: rewrite.local(rows)}
    return Value(rewrite.copy(node, changed), value.axis)


@rule(aten.bincount.default)
def _bincount(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    place, least = rewrite.vector(given['self']), given['minlength']
    size = rewrite.known.get(least) if isinstance(least, Node) else None
    if given['weights'] is not None or least == 0:
        raise NoRule('the length of its result is unknown')
    if isinstance(size, Size) and size.more == 0:
        axis = size.axis
    else:
        axis = rewrite.dense(rewrite.constant(least))
    counted = rewrite.call(
        aten.bincount.default,
        rewrite.positions(place, axis),
        minlength=rewrite.total(Size(axis)),
        like=rewrite.vector_like(torch.int64),
    )
    return Value(counted, axis)


# Pointers.


@rule(aten.diff.default)
def _diff(rewrite: Rewrite, node: Node) -> Value:
    value = rewrite[args_of(node)[0]]
    if value.kind != 'pointers' or len(args_of(node)) > 1 or node.kwargs:
        raise NoRule('it subtracts rows of different batches')
    copied = rewrite.copy(node)
    return Value(copied, value.axis, None, 'vector', value.into)


@rule(aten.repeat_interleave.self_Tensor)
def _repeat_interleave(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    value, counts = (rewrite.vector(given[n]) for n in ('self', 'repeats'))
    if counts.counts is None or value.axis is not counts.axis:
        raise NoRule('the number of repeats is unknown')
    return Value(rewrite.copy(node), counts.counts, value.into)


@rule(aten.searchsorted.Tensor)
def _searchsorted(rewrite: Rewrite, node: Node) -> Value:
    """Returns pointers: the start of each position's rows."""
    position, bounds = (
        rewrite.vector(args_of(node)[0]),
        rewrite[args_of(node)[1]],
    )
    identity = (
        isinstance(bounds, Value)
        and bounds.kind == 'pointers'
        and bounds.axis is bounds.into
    )
    if not identity or len(args_of(node)) > 2 or node.kwargs:
        raise NoRule('it searches for values other than a range')
    into = position.into
    if bounds.axis is not into:
        raise NoRule('it searches positions of another axis')
    return Value(rewrite.copy(node), into, position.axis, 'pointers')


# Distinct values.


@rule('unique')
def _unique(rewrite: Rewrite, node: Node) -> Any:
    options = unique_options(node)
    if options is None:
        raise NoRule('it has options other than inverse and counts')
    inverse, counts = options
    [source] = args_of(node)
    tensor = example(source)
    if tensor.dtype not in (torch.int32, torch.int64):
        raise NoRule('its values are not integers')
    value = flat(rewrite, rewrite.vector(source), tensor)
    found, place = _rows_of(rewrite, value, segments.unique)
    values = [_like(rewrite, found, tensor.dtype)]
    if inverse:
        if tensor.dim() != 1:
            raise NoRule('its inverse positions have rows of batches')
        values.append(_like(rewrite, place, torch.int64))
    if counts:
        counted = rewrite.call(
            aten.bincount.default,
            place.node,
            minlength=rewrite.total(Size(found.axis)),
            like=rewrite.vector_like(torch.int64),
        )
        values.append(Value(counted, found.axis))
    return Parts(tuple(values)) if len(values) > 1 else values[0]


def _like(rewrite: Rewrite, value: Value, dtype: torch.dtype) -> Value:
    if example(value.node).dtype == dtype:
        return value
    like = rewrite.vector_like(dtype)
    node = rewrite.call(aten.to.dtype, value.node, dtype, like=like)
    return Value(node, value.axis, value.into)


def unique_rows(
    rewrite: Rewrite, value: Value, num_nodes: Any, sorted: bool
) -> tuple[Value, Value]:
    """Returns each batch's distinct nodes, and positions in them."""
    number = torch.ops.gsample.unique_nodes.default
    return _rows_of(rewrite, value, number, num_nodes, sorted)


def _rows_of(
    rewrite: Rewrite, value: Value, number: Any, *options: Any
) -> tuple[Value, Value]:
    """Returns what a function of rows, options and pointers returns."""
    assert value.axis is not None
    tensor = example(value.node)
    like = (
        rewrite.vector_like(torch.int64),
        tensor,
        rewrite.pointer_like(),
    )
    call = rewrite.call(
        number, value.node, *options, value.axis.ptr, like=like
    )
    node, local, ptr = (
        rewrite.call(operator.getitem, call, i, like=like[i]) for i in range(3)
    )
    axis = Axis(ptr)
    return Value(node, axis, value.into), Value(local, value.axis, axis)
