"""What this package's operators become for several batches."""

import operator
from typing import Any

import torch
from torch.fx import Node

from torch_gsample.compiler.ir import example
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.index_rules import unique_rows
from torch_gsample.compiler.super_batch.torch_rules import arguments, rule
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Parts,
    Rewrite,
    Size,
    Value,
)
from torch_gsample.rng import current_program

gsample = torch.ops.gsample


@rule(gsample.next_key.default)
def next_key(rewrite: Rewrite, node: Node) -> Value:
    """As ``take_keys`` does: known when the program runs, at this place."""
    draw = rewrite.call(current_program, like=(example(node), 0))
    key = rewrite.call(operator.getitem, draw, 0, like=example(node))
    number = rewrite.call(operator.getitem, draw, 1, like=0)
    rewrite.numbers[key] = number
    return Value(key)


def _drawn(rewrite: Rewrite, given: dict[str, Any]) -> tuple[Node, Node]:
    key = rewrite.constant(given['key'])
    if key not in rewrite.numbers or given['call_id'] != 0:
        raise NoRule('a draw has a key of its own')
    return key, rewrite.numbers[key]


def _parts(rewrite: Rewrite, call: Node) -> list[Node]:
    """All outputs of a call."""
    return [
        rewrite.call(operator.getitem, call, i, like=like)
        for i, like in enumerate(example(call))
    ]


def _optional(rewrite: Rewrite, node: Any) -> Any:
    return None if node is None else rewrite[node]


def _local(rewrite: Rewrite, node: Any) -> Any:
    """A vector of ids, which is the same number in each batch."""
    return None if node is None else rewrite.local(rewrite.vector(node))


def _edges(rewrite: Rewrite, indptr: Node, axis: Axis) -> tuple[Value, Axis]:
    """Pointers of the rows of an axis, and the axis that they point into."""
    edges = rewrite.of_pointers(indptr, axis)
    return Value(indptr, axis, edges, 'pointers'), edges


# Parts of matrices.


@rule(gsample.slice_cols.default)
def slice_cols(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    cols = rewrite.vector(given['cols'])
    if indptr.is_constant and indices.is_constant:
        place = rewrite.local(cols)
    elif indptr.kind == 'pointers' and indptr.into is indices.axis:
        place = rewrite.positions(cols, indptr.axis)
    else:
        raise NoRule('a matrix is made of parts of batches and of others')
    call = rewrite.copy(node, {given['cols']: place})
    out, index, edge = _parts(rewrite, call)
    pointers, edges = _edges(rewrite, out, cols.axis)
    return Parts(
        (
            pointers,
            Value(index, edges, indices.into),
            Value(edge, edges, indptr.into),
        )
    )


@rule(gsample.slice_rows.default)
def slice_rows(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    rows, cols = rewrite.vector(given['rows']), given['cols']
    size = rewrite.known.get(given['num_rows'])
    if indptr.kind == 'pointers' and isinstance(size, Size) and cols is None:
        if indices.into is not size.axis or indptr.into is not indices.axis:
            raise NoRule('rows of another axis are taken')
        changed = {given['rows']: rewrite.positions(rows, size.axis)}
        call, axis = rewrite.copy(node, changed), indptr.axis
    else:
        call, axis = _slice_rows_of_each(rewrite, node, given)
    out, index, edge = _parts(rewrite, call)
    pointers, edges = _edges(rewrite, out, axis)
    return Parts(
        (
            pointers,
            Value(index, edges, rows.axis),
            Value(edge, edges, indptr.into),
        )
    )


def _slice_rows_of_each(
    rewrite: Rewrite, node: Node, given: dict[str, Any]
) -> tuple[Node, Axis]:
    """Rows by their ids, which are the same in each batch."""
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    num_rows = rewrite.constant(given['num_rows'])
    rows, cols = rewrite.vector(given['rows']), given['cols']
    if indptr.is_constant != indices.is_constant or indices.into is not None:
        raise NoRule('a matrix is made of parts of batches and of others')
    if not indptr.is_constant and indptr.into is not indices.axis:
        raise NoRule('a matrix is made of parts of batches and of others')
    if cols is not None:
        if not indptr.is_constant:
            raise NoRule('rows and columns of batches are taken')
        axis = rewrite.vector(cols).axis
    elif indptr.is_constant:
        axis = rewrite.dense(example(given['indptr']).shape[0] - 1)
    else:
        axis = indptr.axis
    call = rewrite.call(
        gsample.slice_rows_segments.default,
        indptr.node,
        indices.node,
        num_rows,
        rewrite.local(rows),
        rows.axis.ptr,
        _local(rewrite, cols),
        axis.ptr,
        indptr.is_constant,
        like=example(node),
        num_threads=given['num_threads'],
    )
    return call, axis


@rule(gsample.unique_nodes.default)
def unique_nodes(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    value, size = rewrite.vector(given['id']), given['num_nodes']
    if value.into is not None:
        size = rewrite.total(Size(value.into))
    elif isinstance(size, Node):
        size = rewrite.total(rewrite[size])  # more than a batch has
    return Parts(unique_rows(rewrite, value, size, given['sorted']))


@rule(gsample.induce_subgraph.default)
def induce_subgraph(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    for name in ('indptr', 'indices', 'num_rows'):
        rewrite.constant(given[name])
    rows = rewrite.vector(given['row_nodes'])
    cols = rewrite.vector(given['col_nodes'])
    blocks = [_optional(rewrite, given[f'{n}_batch']) for n in ('row', 'col')]
    if blocks == [None, None]:
        blocks = [rewrite.batch(rows.axis), rewrite.batch(cols.axis)]
    elif None in blocks or blocks[0].into is not blocks[1].into:
        raise NoRule('blocks of different axes are connected')
    elif blocks[0].into is None:
        raise NoRule('blocks of different batches may have one number')
    else:
        blocks = [block.node for block in blocks]
    call = rewrite.call(
        node.target,
        rewrite.operand(given['indptr']),
        rewrite.operand(given['indices']),
        rewrite.constant(given['num_rows']),
        rewrite.local(rows),
        rewrite.local(cols),
        *blocks,
        like=example(node),
        num_threads=given['num_threads'],
    )
    row, col, edge = _parts(rewrite, call)
    edges = rewrite.axis(segments.ptr_of_sorted, col, cols.axis.ptr)
    return Parts(
        (
            Value(row, edges, rows.axis),
            Value(col, edges, cols.axis),
            Value(edge, edges),
        )
    )


@rule(gsample.coo_to_csc.default)
def coo_to_csc(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    row, col = rewrite.vector(given['row']), rewrite.vector(given['col'])
    size = rewrite[given['num_cols']]
    if not isinstance(size, Size) or size.more or row.axis is not col.axis:
        raise NoRule('columns of batches are not known apart')
    changed = {given['col']: rewrite.positions(col, size.axis)}
    indptr, index, perm = _parts(rewrite, rewrite.copy(node, changed))
    # The edges of each batch stay together: its columns do.
    return Parts(
        (
            Value(indptr, size.axis, row.axis, 'pointers'),
            Value(index, row.axis, row.into),
            Value(perm, row.axis, row.axis),
        )
    )


# Draws.


@rule(gsample.cumulate_weights.default)
def cumulate_weights(rewrite: Rewrite, node: Node) -> Value:
    indptr, weight = (rewrite[n] for n in node.args)
    if indptr.kind != 'pointers' or indptr.into is not weight.axis:
        raise NoRule('weights are of another axis')
    return Value(rewrite.copy(node), weight.axis, None, 'weights')


@rule(gsample.positive_weights.default)
def positive_weights(rewrite: Rewrite, node: Node) -> Parts:
    weight = rewrite.vector(node.args[0])
    like = (*example(node), rewrite.pointer_like())
    call = rewrite.call(
        gsample.positive_weights_segments.default,
        rewrite.local(weight),
        weight.axis.ptr,
        like=like,
    )
    index, cum_weight, ptr = _parts(rewrite, call)
    axis = Axis(ptr)
    return Parts(
        (
            Value(index, axis, weight.axis),
            Value(cum_weight, axis, None, 'weights'),
        )
    )


@rule(gsample.sample_nodes.default)
def sample_nodes(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    key, number = _drawn(rewrite, given)
    size = given['num_nodes']
    value = rewrite.known.get(size) if isinstance(size, Node) else None
    weight = _optional(rewrite, given['cum_weight'])
    if isinstance(value, Size) and value.more == 0:
        of, ptr = value.axis, value.axis.ptr
        num_nodes = rewrite.total(value)
        if weight is not None and weight.axis is not of:
            raise NoRule('weights are of another axis')
    else:
        of, ptr, num_nodes = None, None, rewrite.constant(size)
        rewrite.constant(given['cum_weight'])
    like = example(node), rewrite.pointer_like()
    call = rewrite.call(
        gsample.sample_nodes_segments.default,
        num_nodes,
        given['k'],
        key,
        number,
        like=like,
        ptr=ptr,
        cum_weight=None if weight is None else weight.node,
        replace=given['replace'],
    )
    nodes, ptr = _parts(rewrite, call)
    return Value(nodes, Axis(ptr), of)


@rule(gsample.sample_cols.default)
def sample_cols(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    key, number = _drawn(rewrite, given)
    indptr = rewrite[given['indptr']]
    weight = _optional(rewrite, given['cum_weight'])
    if weight is not None and weight.axis is not indptr.into:
        raise NoRule('weights are of another axis')
    cols, id = given['cols'], _local(rewrite, given['id'])
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
        num_threads=given['num_threads'],
        ptr=axis.ptr,
    )
    out, edge = _parts(rewrite, call)
    pointers, edges = _edges(rewrite, out, axis)
    return Parts((pointers, Value(edge, edges, indptr.into)))


def _columns(rewrite: Rewrite, given: dict[str, Any]) -> tuple[Node, Axis]:
    """Columns of a matrix that is the same for all batches."""
    if given['cols'] is not None:
        cols = rewrite.vector(given['cols'])
        return rewrite.local(cols), cols.axis
    axis = rewrite.dense(example(given['indptr']).shape[0] - 1)
    return _numbers(rewrite, axis), axis


def _numbers(rewrite: Rewrite, axis: Axis) -> Node:
    """The number of each row in its batch."""
    return rewrite.once(
        ('numbers', axis),
        lambda: rewrite.call(
            segments.numbers, axis.ptr, like=rewrite.vector_like(torch.int64)
        ),
    )


@rule(gsample.random_uniform.default)
def random_uniform(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    key, number = _drawn(rewrite, given)
    id = rewrite.vector(given['id'])
    call = rewrite.call(
        segments.random_uniform,
        rewrite.local(id),
        key,
        number,
        id.axis.ptr,
        like=example(node),
    )
    return Value(call, id.axis)


@rule(gsample.random_walk.default, gsample.node2vec_walk.default)
def walk(rewrite: Rewrite, node: Node) -> Parts:
    """Batch by batch: walkers are numbered in their batch."""
    given = arguments(node)
    key, number = _drawn(rewrite, given)
    seeds = rewrite.vector(given['seeds'])
    rest = {
        name: rewrite.constant(value)
        for name, value in given.items()
        if name not in ('seeds', 'key', 'call_id')
    }
    call = rewrite.call(
        segments.walk,
        node.target,
        rewrite.local(seeds),
        rewrite.lengths(seeds.axis),
        key,
        number,
        rest,
        like=example(node),
    )
    return Parts(tuple(Value(n, seeds.axis) for n in _parts(rewrite, call)))


@rule(gsample.neighbor_sample.default)
def neighbor_sample(rewrite: Rewrite, node: Node) -> Parts:
    """Batch by batch, joined."""
    given = arguments(node)
    key, number = _drawn(rewrite, given)
    seeds = rewrite.vector(given['seeds'])
    rest = {
        name: rewrite.constant(value)
        for name, value in given.items()
        if name not in ('seeds', 'key', 'call_id')
    }
    like = (
        *example(node)[:5],
        rewrite.pointer_like(),
        rewrite.pointer_like(),
    )
    call = rewrite.call(
        segments.neighbor_sample,
        rewrite.local(seeds),
        rewrite.lengths(seeds.axis),
        key,
        number,
        rest,
        like=like,
    )
    row, col, nodes, edge, block, node_ptr, edge_ptr = _parts(rewrite, call)
    of_nodes, of_edges = Axis(node_ptr), Axis(edge_ptr)
    has_edge, has_block = given['return_edge_id'], given['disjoint']
    return Parts(
        (
            Value(row, of_edges, of_nodes),
            Value(col, of_edges, of_nodes),
            Value(nodes, of_nodes),
            Value(edge, of_edges) if has_edge else None,
            Value(block, of_nodes, seeds.axis) if has_block else None,
            None,  # their hops are not joined
            None,
        )
    )
