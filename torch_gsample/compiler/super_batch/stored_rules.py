"""Super-batch rules for reads of a graph on disk.

A block that several batches need is read once, by one plan: random reads,
merged reads, or a stream. The compiler does not import ``storage``, so its
operators are found by name.
"""

from typing import Any

from torch.fx import Node

from torch_gsample.compiler.ir import arguments, example
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.draw_rules import drawn
from torch_gsample.compiler.super_batch.matrix_rules import (
    parts,
    point_to_edges,
)
from torch_gsample.compiler.super_batch.torch_rules import rule
from torch_gsample.compiler.super_batch.values import (
    Parts,
    Rewrite,
    Value,
)


@rule('gsample::stored_columns')
def _stored_columns(rewrite: Rewrite, node: Node) -> Parts:
    given = arguments(node)
    rewrite.constant(given['pointers'])
    cols = rewrite.vector(given['cols'])
    call = rewrite.copy(node, {given['cols']: rewrite.local(cols)})
    indptr, edge = parts(rewrite, call)
    out, edges = point_to_edges(rewrite, indptr, cols.axis)
    return Parts((out, Value(edge, edges)))


@rule('gsample::read_edges')
def _read_edges(rewrite: Rewrite, node: Node) -> Value:
    given = arguments(node)
    rewrite.constant(given['handle'])
    position = rewrite.vector(given['position'])
    place = rewrite.local(position)
    return Value(rewrite.copy(node, {given['position']: place}), position.axis)


def _draw_together(rewrite: Rewrite, node: Node) -> tuple[Any, list[Node]]:
    """Returns the seeds of walks or trees, and the results for all batches."""
    given = arguments(node)
    key, number = drawn(rewrite, given)
    seeds = rewrite.vector(given['seeds'])
    given |= {
        'handle': rewrite.constant(given['handle']),
        'seeds': rewrite.local(seeds),
        'key': key,
        'call_id': number,
        'ptr': seeds.axis.ptr,
    }
    call = rewrite.call(node.target, **given, like=example(node))
    return seeds, parts(rewrite, call)


@rule('gsample::stored_walk', 'gsample::stored_node2vec')
def _stored_walk(rewrite: Rewrite, node: Node) -> Parts:
    seeds, walks = _draw_together(rewrite, node)
    return Parts(tuple(Value(part, seeds.axis) for part in walks))


@rule('gsample::stored_trees')
def _stored_trees(rewrite: Rewrite, node: Node) -> Parts:
    seeds, (nodes, tree) = _draw_together(rewrite, node)
    axis = rewrite.axis(segments.ptr_of_trees, tree, seeds.axis.ptr)
    return Parts((Value(nodes, axis), Value(tree, axis, seeds.axis)))
