"""Super-batch rules of torch's operators."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from torch_gsample.compiler.ir import (
    arguments,
    aten,
    example,
)
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Rewrite,
    Size,
    Value,
    args_of,
)
from torch_gsample.torch_private import OpOverload, schema_of

Rule = Callable[[Rewrite, Node], Any]

#: Rules by operator or name; a rule returns the value of a node.
RULES: dict[Any, Rule] = {}


def rule(*targets: Any) -> Callable[[Rule], Rule]:
    """Registers the rule of some operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, function))
        return function

    return register


def rule_of(target: Any) -> Rule | None:
    """Returns the rule of an operator, if there is one."""
    if isinstance(target, OpOverload) and target not in RULES:
        return RULES.get(target.name())
    return RULES.get(target)


# Element by element.

_ARITHMETIC = {
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    aten.floor_divide.default,  # not tagged by torch
}


def is_pointwise(node: Node) -> bool:
    """Whether each result element depends on elements at its position only."""
    target = node.target
    if target in _ARITHMETIC:
        return isinstance(example(node), Tensor)
    if isinstance(target, OpOverload):
        if schema_of(target).is_mutable:
            return False
        tagged = torch.Tag.pointwise in target.tags
        # with scalars; of a mask only, it returns positions
        where = target.overloadpacket is aten.where and len(node.args) == 3
        return tagged or where
    return False


def pointwise(rewrite: Rewrite, node: Node) -> Value:
    """Returns the operator itself, with scalars expanded to rows."""
    values = {n: rewrite[n] for n in node.all_input_nodes}
    if any(not isinstance(value, Value) for value in values.values()):
        raise NoRule('it combines sizes with tensors')
    axes = {v.axis for v in values.values() if v.axis and v.kind != 'scalar'}
    if any(v.kind not in ('vector', 'scalar') for v in values.values()):
        raise NoRule('it uses pointers as numbers')
    if not axes:
        return _of_scalars(rewrite, node, values)
    if len(axes) > 1:
        raise NoRule('it combines rows of different axes')
    [axis] = axes
    dim = example(node).dim()
    vector = next(n for n, v in values.items() if v.axis is axis)
    changed = {
        n: _operand(rewrite, n, value, axis, dim, vector)
        for n, value in values.items()
    }
    return Value(rewrite.copy(node, changed), axis)


def _operand(
    rewrite: Rewrite,
    node: Node,
    value: Value,
    axis: Axis,
    dim: int,
    vector: Node,
) -> Node:
    tensor = example(node)
    if value.kind == 'scalar':
        # A scalar never widens a vector's dtype, nor must a column of them.
        dtype = torch.result_type(example(vector), tensor)
        if tensor.dtype == dtype or not tensor.is_floating_point():
            dtype = tensor.dtype
        number = value.node
        if dtype != tensor.dtype:
            like = example(number).new_empty(
                example(number).shape, dtype=dtype
            )
            number = rewrite.call(aten.to.dtype, number, dtype, like=like)
        like = rewrite.vector_like(dtype, *[1] * (dim - 1))
        return rewrite.call(
            segments.expand, number, rewrite.batch(axis), dim, like=like
        )
    if value.is_constant:
        if tensor.dim() < dim or tensor.shape[0] == 1:
            return value.node
        if rewrite.is_dense(axis, tensor.shape[0]):
            return tiled(rewrite, value.node, axis)
        raise NoRule('it combines a constant with rows of batches')
    if tensor.dim() != dim:
        raise NoRule('it broadcasts rows along another dimension')
    return rewrite.local(value)


def tiled(rewrite: Rewrite, node: Node, axis: Axis) -> Node:
    """Repeats a constant for each batch."""
    tensor = example(node)
    like = rewrite.vector_like(tensor.dtype, *tensor.shape[1:])
    return rewrite.call(segments.tile, node, axis.ptr, like=like)


def _of_scalars(
    rewrite: Rewrite, node: Node, values: dict[Node, Value]
) -> Value:
    if any(example(n).dim() > 0 for n in values):
        raise NoRule('it combines a number per batch with a constant')
    if len({example(n).dtype for n in values}) > 1:
        raise NoRule('it combines numbers of different dtypes')
    axis = next(v.axis for v in values.values() if v.axis is not None)
    copied = rewrite.copy(node)
    tensor = example(node)
    copied.meta['example_value'] = rewrite.vector_like(tensor.dtype)
    return Value(copied, axis, kind='scalar')


# Operators that keep the rows.


@rule(
    aten.detach.default,
    aten.to.dtype,
    aten.clone.default,
    aten.contiguous.default,
    aten.alias.default,
)
def _same_rows(rewrite: Rewrite, node: Node) -> Value:
    value = rewrite[args_of(node)[0]]
    copied = rewrite.copy(node)
    return Value(copied, value.axis, value.into, value.kind, value.counts)


@rule(aten.view.default, aten.reshape.default)
def _reshape(rewrite: Rewrite, node: Node) -> Value:
    """Handles the elements of a row in another shape, and all in a row."""
    value = rewrite.vector(args_of(node)[0])
    tensor, result = example(args_of(node)[0]), example(node)
    sizes, others = tensor.shape[1:], result.shape[1:]
    if any(not isinstance(size, int) for size in (*sizes, *others)):
        raise NoRule('it reshapes rows')
    if math.prod(sizes) == math.prod(others):
        # As many rows as before: of all batches.
        call = rewrite.call(
            aten.reshape.default,
            value.node,
            [-1, *others],
            like=rewrite.vector_like(tensor.dtype, *others),
        )
        return Value(call, value.axis, value.into)
    if others:
        raise NoRule('it reshapes rows')
    return flat(rewrite, value, tensor)


def flat(rewrite: Rewrite, value: Value, tensor: Tensor) -> Value:
    """Returns all elements of each row, flattened."""
    assert value.axis is not None
    if tensor.dim() == 1:
        return value
    size, axis = math.prod(tensor.shape[1:]), value.axis
    if size > 1:
        axis = rewrite.once(
            ('wide', axis, size),
            lambda: rewrite.axis(operator.mul, value.axis.ptr, size),
        )
    like = rewrite.vector_like(tensor.dtype)
    node = rewrite.once(
        ('flat', value.node),
        lambda: rewrite.call(
            aten.reshape.default, value.node, [-1], like=like
        ),
    )
    return Value(node, axis, value.into)


@rule(aten.expand_as.default)
def _expand_as(rewrite: Rewrite, node: Node) -> Value:
    value, like = (
        rewrite.vector(args_of(node)[0]),
        rewrite.vector(args_of(node)[1]),
    )
    if value.axis is not like.axis:
        raise NoRule('it combines rows of different axes')
    return Value(rewrite.copy(node), value.axis, value.into)


@rule(aten.stack.default, aten.cat.default)
def _concatenate(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    if _begins_with_zero(rewrite, given['tensors']):
        ends = rewrite[given['tensors'][1]]
        return Value(rewrite.copy(node), ends.axis, ends.into, 'pointers')
    values = [rewrite.rows(n) for n in given['tensors']]
    axes = {value.axis for value in values}
    stacks = node.target is aten.stack.default
    if given['dim'] > 0 and len(axes) == 1:
        pairs = zip(given['tensors'], values, strict=True)
        changed = {n: rewrite.local(value) for n, value in pairs}
        return Value(rewrite.copy(node, changed), values[0].axis)
    if stacks or given['dim'] != 0:
        raise NoRule('it stacks rows of batches')
    # Empty parts only contribute their dtype.
    some = [v for v in values if not rewrite.is_dense(v.axis, 0)] or values[:1]
    if len({example(value.node).dtype for value in values}) > 1:
        some = values
    if len(some) > 1:
        return in_batches(rewrite, node, some)
    [only] = some
    copied = rewrite.call(
        aten.clone.default, only.node, like=example(only.node)
    )
    return Value(copied, only.axis, only.into)


def _begins_with_zero(rewrite: Rewrite, nodes: Sequence[Node]) -> bool:
    """Whether a zero precedes the ends of an axis's rows."""
    zero = nodes[0].target is aten.zeros.default
    return (
        len(nodes) == 2
        and zero
        and tuple(example(nodes[0]).shape) == (1,)
        and getattr(rewrite[nodes[1]], 'kind', None) == 'ends'
    )


def in_batches(rewrite: Rewrite, node: Node, values: Sequence[Value]) -> Value:
    """Concatenates rows within each batch."""
    into = values[0].into
    same = all(value.into is into for value in values)
    nodes = [v.node if same else rewrite.local(v) for v in values]
    joined = rewrite.call(
        segments.join,
        nodes,
        [rewrite.lengths(v.axis) for v in values if v.axis is not None],
        like=example(node),
    )
    axes = [v.axis for v in values if v.axis is not None]
    axis = rewrite.once(
        ('joined', *axes),
        lambda: rewrite.axis(segments.sum_of, [axis.ptr for axis in axes]),
    )
    rewrite.joined[axis] = tuple(axes)
    return Value(joined, axis, into if same else None)


@rule(aten.sum.dim_IntList)
def _along_rows(rewrite: Rewrite, node: Node) -> Value:
    value, given = rewrite.vector(args_of(node)[0]), arguments(node)
    dim = example(args_of(node)[0]).dim()
    along = given['dim']
    along = [along] if isinstance(along, int) else along
    if not along or any(d % dim == 0 for d in along):
        raise NoRule('it sums rows of batches')
    return Value(rewrite.copy(node), value.axis)


# Sizes.


@rule(aten.sym_size.int)
def _size(rewrite: Rewrite, node: Node) -> Any:
    value, dim = rewrite[args_of(node)[0]], args_of(node)[1]
    if value.is_constant or dim != 0:
        return Value(rewrite.copy(node))
    if value.kind in ('scalar', 'weights'):
        raise NoRule('it reads the length of a tensor that is not a vector')
    return Size(value.axis, int(value.kind == 'pointers'))


@rule(operator.add)
def _add_sizes(rewrite: Rewrite, node: Node) -> Any:
    if isinstance(example(node), Tensor):
        return pointwise(rewrite, node)
    first, second = (rewrite.known.get(a, a) for a in args_of(node))
    if isinstance(first, Size) and isinstance(second, int):
        return Size(first.axis, first.more + second)
    if isinstance(second, Size) and isinstance(first, int):
        return Size(second.axis, second.more + first)
    raise NoRule('it adds sizes')


def _of_shape(rewrite: Rewrite, node: Node, shape: Sequence[Any]) -> Value:
    first, *others = shape or [None]
    for other in others:
        rewrite.constant(other)
    size = rewrite.known.get(first) if isinstance(first, Node) else None
    if isinstance(size, Size):
        if size.more:
            raise NoRule('a vector is longer than its axis')
        return Value(rewrite.copy(node), size.axis)
    return Value(rewrite.copy(node))


@rule(aten.new_full.default, aten.new_zeros.default, aten.new_ones.default)
def _new_filled(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    rewrite.constant(given.get('fill_value'))
    return _of_shape(rewrite, node, given['size'])


@rule(aten.full.default, aten.zeros.default, aten.ones.default)
def _filled(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    rewrite.constant(given.get('fill_value'))
    return _of_shape(rewrite, node, given['size'])


@rule(aten.arange.default)
def _arange(rewrite: Rewrite, node: Node) -> Value:
    size = rewrite[args_of(node)[0]]
    if not isinstance(size, Size) or size.more not in (0, 1):
        raise NoRule('a range does not end at a size')
    kind = 'pointers' if size.more else 'vector'
    return Value(rewrite.copy(node), size.axis, size.axis, kind)
