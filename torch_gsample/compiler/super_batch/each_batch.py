"""Operators that are called for each batch, between those of all batches.

The operands of a batch are those of its own run, so its results are, too, bit
for bit. They are concatenated, and the program continues with all batches.
"""

from typing import Any

from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    SIZE_OPERATORS,
    arguments,
    example,
    is_pure,
)
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.matrix_rules import parts
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Numbers,
    Parts,
    Rewrite,
    Size,
    Value,
)
from torch_gsample.torch_private import OpOverload


def each_batch(rewrite: Rewrite, node: Node) -> Any:
    """Calls an operator for each batch, and returns the joined results.

    Raises:
        NoRule: If it changes an argument or draws by torch's generator, or if
            the part of a batch in an operand or a result is unknown.
    """
    target: Any = node.target
    if not isinstance(target, OpOverload) or not is_pure(node):
        raise NoRule('its operator is unknown')
    results = example(node)
    if not isinstance(results, (Tensor, list, tuple)):
        raise NoRule('its result is no tensor')
    tensors = [results] if isinstance(results, Tensor) else list(results)
    given, like = arguments(node), []
    for tensor in tensors:
        like += [_joined(rewrite, tensor), rewrite.pointer_like()]
    call = rewrite.call(
        segments.each_batch,
        target,
        list(given),
        [_operand(rewrite, name, given) for name in given],
        rewrite.pointers,
        like=like,
    )
    nodes = parts(rewrite, call)
    values = [
        _result(rewrite, *found)
        for found in zip(tensors, nodes[::2], nodes[1::2], strict=True)
    ]
    rewrite.each.append(target.overloadpacket.__name__)
    if isinstance(results, Tensor):
        return values[0]
    return Parts(tuple(values))


def each_number(rewrite: Rewrite, node: Node) -> Numbers:
    """Computes a number for each batch."""
    target: Any = node.target
    if target in SIZE_OPERATORS:
        target = target.__name__
    elif not isinstance(target, OpOverload) or not is_pure(node):
        raise NoRule('its operator is unknown')
    args = [map_arg(a, lambda n: _of_batches(rewrite, n)) for a in node.args]
    call = rewrite.call(segments.each_number, target, args, rewrite.pointers)
    return Numbers(call)


def split(rewrite: Rewrite, value: Any) -> Node:
    """Returns the part of each batch in a value, as in its own run.

    Raises:
        NoRule: If the parts are unknown.
    """
    if isinstance(value, Numbers):
        return value.node
    if isinstance(value, Size):
        sizes = rewrite.lengths(value.axis)
        return rewrite.call(segments.split_size, sizes, value.more)
    if not isinstance(value, Value) or value.kind in ('weights', 'ends'):
        raise NoRule('the parts of batches are unknown')
    if value.kind == 'scalar':
        return rewrite.call(segments.split_scalar, value.node)
    sizes = rewrite.lengths(value.axis)
    if value.kind == 'pointers':
        assert value.into is not None
        return rewrite.call(
            segments.split_pointers, value.node, sizes, value.into.ptr
        )
    if value.into is None:
        return rewrite.call(segments.split, value.node, sizes)
    return rewrite.call(
        segments.split_positions, value.node, sizes, value.into.ptr
    )


def _operand(rewrite: Rewrite, name: str, given: dict[str, Any]) -> Any:
    if name == 'key':
        return map_arg(given[name], lambda n: _keys(rewrite, n))
    if name != 'call_id' or 'key' not in given:
        return map_arg(given[name], lambda n: _of_batches(rewrite, n))
    key, call_id = given['key'], given[name]
    if isinstance(key, Node):
        return _number(rewrite, key, call_id)
    pairs = zip(key, call_id, strict=True)
    return [_number(rewrite, *pair) for pair in pairs]


def _keys(rewrite: Rewrite, node: Node) -> Node:
    """Returns the key of each batch, unless it is the operator's own."""
    key = rewrite.constant(node)
    if key not in rewrite.numbers:
        return key
    return rewrite.call(segments.split_keys, key)


def _number(rewrite: Rewrite, key: Node, call_id: Any) -> Any:
    """Returns the index of a draw in its program."""
    number = rewrite.numbers.get(rewrite.constant(key))
    if number is not None and call_id != 0:
        raise NoRule('a draw has its own number')
    return call_id if number is None else number


def _of_batches(rewrite: Rewrite, node: Node) -> Node:
    """Returns a constant, or the parts of a value."""
    value = rewrite[node]
    if not isinstance(value, Value) or not value.is_constant:
        return rewrite.once(('split', value), lambda: split(rewrite, value))
    if value.node in rewrite.numbers:
        raise NoRule('it reads a key')
    return value.node


def _joined(rewrite: Rewrite, tensor: Any) -> Any:
    """Returns an example of the results of all batches."""
    if not isinstance(tensor, Tensor):
        return None
    if any(not isinstance(size, int) for size in tensor.shape[1:]):
        raise NoRule('its result has rows of batches in another dimension')
    return rewrite.vector_like(tensor.dtype, *tensor.shape[1:])


def _result(
    rewrite: Rewrite, tensor: Any, joined: Node, ptr: Node
) -> Value | None:
    """Returns a result; equal lengths are rows of one axis."""
    if not isinstance(tensor, Tensor):
        return None
    if tensor.dim() == 0:
        return Value(joined, rewrite.first, kind='scalar')
    size = tensor.shape[0]
    if not isinstance(size, int):
        axis = rewrite.axis_of(size)
        key: Any = 'length', str(size)
    else:  # fixed, if other values of that length are
        axis = rewrite.dense(size) if rewrite.has_dense(size) else None
        key = 'length', ptr
    return Value(joined, axis or rewrite.once(key, lambda: Axis(ptr)))
