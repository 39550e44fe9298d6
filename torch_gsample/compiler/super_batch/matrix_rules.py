"""Super-batch rules of matrix operators."""

import operator
from typing import Any

import torch
from torch.fx import Node

from torch_gsample.compiler.ir import arguments, aten, example
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.index_rules import unique_rows
from torch_gsample.compiler.super_batch.torch_rules import pointwise, rule
from torch_gsample.compiler.super_batch.values import (
    Axis,
    NoRule,
    Parts,
    Rewrite,
    Size,
    Value,
    args_of,
)

gsample = torch.ops.gsample


def parts(rewrite: Rewrite, call: Node) -> list[Node]:
    """Returns all outputs of a call."""
    return [
        rewrite.call(operator.getitem, call, i, like=like)
        for i, like in enumerate(example(call))
    ]


def optional(rewrite: Rewrite, node: Any) -> Any:
    """Returns the value of an optional operand."""
    return None if node is None else rewrite[node]


def local(rewrite: Rewrite, node: Any) -> Any:
    """Returns a vector of ids that are equal in all batches."""
    return None if node is None else rewrite.local(rewrite.rows(node))


def point_to_edges(
    rewrite: Rewrite, indptr: Node, axis: Axis
) -> tuple[Value, Axis]:
    """Returns pointers of an axis, and the axis that they point into."""
    edges = rewrite.of_pointers(indptr, axis)
    return Value(indptr, axis, edges, 'pointers'), edges


# Parts of matrices.


@rule(aten.mul.Tensor)
def _multiply(rewrite: Rewrite, node: Node) -> Value:
    """Handles ``[0, 1]`` times a size: pointers of a one-column matrix."""
    numbers, size = args_of(node)
    size = rewrite.known.get(size) if isinstance(size, Node) else None
    if not isinstance(size, Size):
        return pointwise(rewrite, node)
    if numbers.target is not aten.arange.default or numbers.args != (2,):
        raise NoRule('it combines sizes with tensors')
    if size.more or example(node).dtype != torch.int64:
        raise NoRule('it combines sizes with tensors')
    ptr = size.axis.ptr
    return Value(ptr, rewrite.dense(1), size.axis, 'pointers')


@rule(gsample.slice_cols.default)
def _slice_cols(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    cols = rewrite.vector(given['cols'])
    if indptr.is_constant and indices.is_constant:
        place = rewrite.local(cols)
    elif indptr.kind == 'pointers' and indptr.into is indices.axis:
        place = rewrite.positions(cols, indptr.axis)
    else:
        raise NoRule('a matrix mixes batched and other parts')
    call = rewrite.copy(node, {given['cols']: place})
    out, index, edge = parts(rewrite, call)
    pointers, edges = point_to_edges(rewrite, out, cols.axis)
    return Parts(
        (
            pointers,
            Value(index, edges, indices.into),
            Value(edge, edges, indptr.into),
        )
    )


@rule(gsample.mask_columns.default)
def _mask_columns(rewrite: Rewrite, node: Node) -> Parts:
    indptr, mask = rewrite[args_of(node)[0]], rewrite.vector(args_of(node)[1])
    if indptr.kind != 'pointers' or indptr.into is not mask.axis:
        raise NoRule('a mask belongs to another axis')
    out, edge = parts(rewrite, rewrite.copy(node))
    pointers, edges = point_to_edges(rewrite, out, indptr.axis)
    return Parts((pointers, Value(edge, edges, mask.axis)))


@rule(gsample.slice_rows.default)
def _slice_rows(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    rows, cols = rewrite.vector(given['rows']), given['cols']
    size = rewrite.known.get(given['num_rows'])
    if indptr.kind == 'pointers' and isinstance(size, Size) and cols is None:
        if indices.into is not size.axis or indptr.into is not indices.axis:
            raise NoRule('it slices rows of another axis')
        changed = {given['rows']: rewrite.positions(rows, size.axis)}
        call, axis = rewrite.copy(node, changed), indptr.axis
    else:
        call, axis = _slice_rows_of_each(rewrite, node, given)
    out, index, edge = parts(rewrite, call)
    pointers, edges = point_to_edges(rewrite, out, axis)
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
    """Slices rows by ids that are equal in all batches."""
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    num_rows = rewrite.constant(given['num_rows'])
    rows, cols = rewrite.vector(given['rows']), given['cols']
    if indptr.is_constant != indices.is_constant or indices.into is not None:
        raise NoRule('a matrix mixes batched and other parts')
    if not indptr.is_constant and indptr.into is not indices.axis:
        raise NoRule('a matrix mixes batched and other parts')
    if cols is not None:
        if not indptr.is_constant:
            raise NoRule('it slices rows and columns of a batched matrix')
        axis = rewrite.vector(cols).axis
    elif indptr.is_constant:
        axis = rewrite.dense(example(given['indptr']).shape[0] - 1)
    else:
        axis = indptr.axis
    call = rewrite.call(
        node.target,
        indptr.node,
        indices.node,
        num_rows,
        rewrite.local(rows),
        local(rewrite, cols),
        rows.axis.ptr,
        axis.ptr,
        indptr.is_constant,
        given['num_threads'],
        like=example(node),
    )
    return call, axis


@rule(gsample.unique_nodes.default)
def _unique_nodes(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    value, size = rewrite.vector(given['id']), given['num_nodes']
    if value.into is not None:
        size = rewrite.total(Size(value.into))
    elif isinstance(size, Node):
        size = rewrite.total(rewrite[size])  # an upper bound for a batch
    return Parts((*unique_rows(rewrite, value, size, given['sorted']), None))


@rule(gsample.induce_subgraph.default)
def _induce_subgraph(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    num_rows = rewrite.constant(given['num_rows'])
    rows = rewrite.vector(given['row_nodes'])
    cols = rewrite.vector(given['col_nodes'])
    indptr, indices = rewrite[given['indptr']], rewrite[given['indices']]
    if indptr.is_constant and indices.is_constant:
        col_nodes = rewrite.local(cols)
    else:  # the columns of each batch, as read from a disk
        axis = _same_columns(rewrite, given['indptr'], given['indices'])
        col_nodes = rewrite.positions(cols, axis)
    blocks = [optional(rewrite, given[f'{n}_batch']) for n in ('row', 'col')]
    if blocks == [None, None]:
        blocks = [rewrite.batch(rows.axis), rewrite.batch(cols.axis)]
    elif None in blocks or blocks[0].into is not blocks[1].into:
        raise NoRule('it connects blocks of different axes')
    elif blocks[0].into is None:
        raise NoRule('blocks of different batches may share an id')
    else:
        blocks = [block.node for block in blocks]
    call = rewrite.call(
        node.target,
        indptr.node,
        indices.node,
        num_rows,
        rewrite.local(rows),
        col_nodes,
        *blocks,
        like=example(node),
        num_threads=given['num_threads'],
    )
    row, col, edge = parts(rewrite, call)
    edges = rewrite.axis(segments.ptr_of_sorted, col, cols.axis.ptr)
    return Parts(
        (
            Value(row, edges, rows.axis),
            Value(col, edges, cols.axis),
            Value(edge, edges, indptr.into),
        )
    )


@rule(gsample.has_edges.default)
def _has_edges(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    ptr, rows = rewrite[given['ptr']], rewrite.vector(given['rows'])
    rewrite.constant(given['num_rows'])
    if ptr.kind != 'pointers' or ptr.into is not rows.axis:
        raise NoRule('it searches rows of another axis')
    changed = {given['rows']: rewrite.local(rows)}
    cols = given['cols']
    if cols is not None:
        for name in ('indptr', 'indices'):
            rewrite.constant(given[name])
        chosen = rewrite.vector(cols)
        changed[cols] = rewrite.local(chosen)
        axis = chosen.axis
    else:
        axis = _same_columns(rewrite, given['indptr'], given['indices'])
        changed[given['indices']] = rewrite.local(rewrite[given['indices']])
    if axis is not ptr.axis:
        raise NoRule('it searches columns of another axis')
    return Value(rewrite.copy(node, changed), rows.axis)


@rule(gsample.match_edges.default)
def _match_edges(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    names = ('indptr', 'indices', 'num_rows')
    first, other = (
        [given[f'{prefix}{name}'] for name in names]
        for prefix in ('', 'other_')
    )
    axes = {_same_columns(rewrite, *side[:2]) for side in (first, other)}
    if len(axes) > 1:
        raise NoRule('it matches columns of different axes')
    sizes = {rewrite.known.get(side[2], side[2]) for side in (first, other)}
    if len(sizes) > 1:
        raise NoRule('matrices may have different numbers of rows')
    indices = [rewrite.vector(side[1]) for side in (first, other)]
    changed = {
        side[1]: rewrite.local(value)
        for side, value in zip((first, other), indices, strict=True)
    }
    matched = rewrite.copy(node, changed)
    return Value(matched, indices[0].axis, indices[1].axis)


def _same_columns(rewrite: Rewrite, indptr: Node, indices: Node) -> Axis:
    """Returns the axis of the columns of a matrix in each batch."""
    pointers, rows = rewrite[indptr], rewrite.vector(indices)
    if pointers.kind != 'pointers' or pointers.into is not rows.axis:
        raise NoRule('a matrix mixes batched and other parts')
    assert isinstance(pointers.axis, Axis)
    return pointers.axis


@rule(gsample.coo_to_csc.default)
def _coo_to_csc(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    row, col = rewrite.vector(given['row']), rewrite.vector(given['col'])
    size = rewrite[given['num_cols']]
    if not isinstance(size, Size) or size.more or row.axis is not col.axis:
        raise NoRule('columns of batches cannot be distinguished')
    changed = {given['col']: rewrite.positions(col, size.axis)}
    indptr, index, perm = parts(rewrite, rewrite.copy(node, changed))
    # Edges of a batch stay contiguous, as its columns are.
    return Parts(
        (
            Value(indptr, size.axis, row.axis, 'pointers'),
            Value(index, row.axis, row.into),
            Value(perm, row.axis, row.axis),
        )
    )
