"""Super-batch rules of random operators."""

import operator
from typing import Any

import torch
from torch.fx import Node

from torch_gsample.compiler.ir import arguments, example, has_only
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.each_batch import each_batch
from torch_gsample.compiler.super_batch.matrix_rules import (
    local,
    optional,
    parts,
    point_to_edges,
)
from torch_gsample.compiler.super_batch.torch_rules import rule
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Parts,
    Rewrite,
    Size,
    Value,
    args_of,
)
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.rng import current_program

gsample = torch.ops.gsample


@rule(gsample.next_key.default)
def _next_key(rewrite: Rewrite, node: Node) -> Value:
    """Draws the key at run time, in its position, as ``take_keys`` does."""
    draw = rewrite.call(current_program, like=(example(node), 0))
    key = rewrite.call(operator.getitem, draw, 0, like=example(node))
    number = rewrite.call(operator.getitem, draw, 1, like=0)
    rewrite.numbers[key] = number
    return Value(key)


def drawn(rewrite: Rewrite, given: dict[str, Any]) -> tuple[Node, Node]:
    """Returns the keys of a draw's batches, and its call id."""
    key = rewrite.constant(given['key'])
    if key not in rewrite.numbers or given['call_id'] != 0:
        raise NoRule('a draw has its own key')
    return key, rewrite.numbers[key]


@rule(gsample.cumulate_weights.default)
def _cumulate_weights(rewrite: Rewrite, node: Node) -> Value:
    indptr, weight = (rewrite[n] for n in args_of(node))
    if indptr.kind != 'pointers' or indptr.into is not weight.axis:
        raise NoRule('weights belong to another axis')
    return Value(rewrite.copy(node), weight.axis, None, 'weights')


@rule(gsample.labor_scale.default)
def _labor_scale(rewrite: Rewrite, node: Node) -> Value:
    indptr, weight = (rewrite[n] for n in args_of(node)[:2])
    if indptr.kind != 'pointers' or indptr.into is not weight.axis:
        raise NoRule('weights belong to another axis')
    return Value(rewrite.copy(node), indptr.axis)


@rule(gsample.positive_weights.default)
def _positive_weights(rewrite: Rewrite, node: Node) -> Parts:
    weight = rewrite.vector(args_of(node)[0])
    like = (*example(node)[:2], rewrite.pointer_like())
    call = rewrite.call(
        node.target, rewrite.local(weight), weight.axis.ptr, like=like
    )
    index, cum_weight, ptr = parts(rewrite, call)
    axis = Axis(ptr)
    return Parts(
        (
            Value(index, axis, weight.axis),
            Value(cum_weight, axis, None, 'weights'),
            None,
        )
    )


@rule(gsample.sample_nodes.default)
def _sample_nodes(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    key, number = drawn(rewrite, given)
    size = given['num_nodes']
    value = rewrite.known.get(size) if isinstance(size, Node) else None
    weight = optional(rewrite, given['cum_weight'])
    if isinstance(value, Size) and value.more == 0:
        of, ptr = value.axis, value.axis.ptr
        num_nodes = rewrite.total(value)
        if weight is not None and weight.axis is not of:
            raise NoRule('weights belong to another axis')
    else:
        of, ptr, num_nodes = None, None, rewrite.constant(size)
        rewrite.constant(given['cum_weight'])
    # The device of the draw, if no other argument determines it.
    device_of = None
    if ptr is None and weight is None:
        device_of = rewrite.constant(given['device_of'])
    call = rewrite.call(
        node.target,
        num_nodes,
        given['k'],
        key,
        number,
        like=(example(node)[0], rewrite.pointer_like()),
        ptr=ptr,
        cum_weight=None if weight is None else weight.node,
        replace=given['replace'],
        device_of=device_of,
    )
    nodes, ptr = parts(rewrite, call)
    return Parts((Value(nodes, Axis(ptr), of), None))


@rule(gsample.sample_columns.default)
def _sample_columns(rewrite: Rewrite, node: Node) -> Parts:
    if not has_only(node, 'cols', 'id', 'cum_weight', 'replace', 'options'):
        raise NoRule('it samples columns by tree, time or position')
    given = arguments(node)
    key, number = drawn(rewrite, given)
    indptr = rewrite[given['indptr']]
    weight = optional(rewrite, given['cum_weight'])
    if weight is not None and weight.axis is not indptr.into:
        raise NoRule('weights belong to another axis')
    cols, id = given['cols'], local(rewrite, given['id'])
    if indptr.is_constant:
        cols, axis = _columns(rewrite, given)
    elif cols is None:
        axis = indptr.axis
        id = _numbers(rewrite, axis) if id is None else id
    else:
        chosen = rewrite.vector(cols)
        axis = chosen.axis
        id = rewrite.local(chosen) if id is None else id
        cols = rewrite.positions(chosen, indptr.axis)
    call = rewrite.call(
        node.target,
        indptr.node,
        given['k'],
        key,
        number,
        like=example(node),
        cols=cols,
        id=id,
        cum_weight=None if weight is None else weight.node,
        replace=given['replace'],
        ptr=axis.ptr,
        options=given['options'],
    )
    out, edge = parts(rewrite, call)
    pointers, edges = point_to_edges(rewrite, out, axis)
    return Parts((pointers, Value(edge, edges, indptr.into)))


@rule(gsample.sample_layers.default)
def _sample_layers(rewrite: Rewrite, node: Node) -> Parts:
    """The columns of a hop lie batch by batch, and so do its edges."""
    given = arguments(node)
    if len(given['seeds']) != 1 or given['disjoint']:
        raise NoRule('layers have several types or trees')
    draws = [
        drawn(rewrite, {'key': key, 'call_id': call_id})
        for key, call_id in zip(given['key'], given['call_id'], strict=True)
    ]
    seeds, like = rewrite.rows(given['seeds'][0]), example(node)[:4]
    call = rewrite.call(
        node.target,
        [rewrite.constant(tensor) for tensor in given['graph']],
        given['ends'],
        [rewrite.constant(size) for size in given['num_nodes']],
        [rewrite.local(seeds)],
        given['fanouts'],
        [key for key, _ in draws],
        [number for _, number in draws],
        like=(*like, [rewrite.pointer_like() for _ in like[3]]),
        **{name: given[name] for name in _OF_LAYERS},
        ptr=[seeds.axis.ptr],
    )
    hops: list[list[Node]] = []
    frontiers: list[list[Node]] = []
    for i, part in enumerate(parts(rewrite, call)):
        (hops if i < 3 else frontiers).append(parts(rewrite, part))
    return _layers(rewrite, hops, frontiers, seeds.axis, given['frontier'])


_OF_LAYERS = 'frontier', 'sorted', 'replace', 'return_frontier', 'num_threads'


def _layers(
    rewrite: Rewrite,
    hops: list[list[Node]],
    frontiers: list[list[Node]],
    axis: Axis,
    frontier: int,
) -> Parts:
    """The outputs of layers: the axis of a hop is that of its columns."""
    out: list[list[Any]] = [[], [], [], []]
    nodes = list(zip(*frontiers, strict=True))
    for hop, (indptr, row, edge) in enumerate(zip(*hops, strict=True)):
        pointers, edges = point_to_edges(rewrite, indptr, axis)
        out[0].append(pointers)
        out[1].append(Value(row, edges))
        out[2].append(Value(edge, edges))
        if hop < len(nodes):
            node, ptr = nodes[hop]
            if FRONTIERS[frontier] != 'walk':
                of_edges = FRONTIERS[frontier] == 'edges'
                axis = edges if of_edges else Axis(ptr)
            out[3].append(Value(node, axis))
    return Parts((*(Parts(tuple(values)) for values in out), None))


def _columns(rewrite: Rewrite, given: dict[str, Any]) -> tuple[Node, Axis]:
    """Returns columns of a matrix that is the same for all batches."""
    if given['cols'] is not None:
        cols = rewrite.rows(given['cols'])
        return rewrite.local(cols), cols.axis
    axis = rewrite.dense(example(given['indptr']).shape[0] - 1)
    return _numbers(rewrite, axis), axis


def _numbers(rewrite: Rewrite, axis: Axis) -> Node:
    """Returns the index of each row in its batch."""
    return rewrite.once(
        ('numbers', axis),
        lambda: rewrite.call(
            segments.numbers, axis.ptr, like=rewrite.vector_like(torch.int64)
        ),
    )


@rule(gsample.sample_neighbors.default)
def _sample_neighbors(rewrite: Rewrite, node: Node) -> Parts:
    """Runs for each batch; its nodes and blocks are those of all batches."""
    row, col, nodes, edge, block, *_ = each_batch(rewrite, node).values
    seeds = rewrite.vector(arguments(node)['seeds'][0])

    def of(value: Any, axis: Any) -> Value:
        return Value(rewrite.positions(value, axis), value.axis, axis)

    return Parts(
        (
            of(row, nodes.axis),
            of(col, nodes.axis),
            nodes,
            edge,
            block and of(block, seeds.axis),
            None,  # hops are not joined
        )
    )
