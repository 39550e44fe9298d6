"""Super-batch rules for reads of a graph on disk.

A block that several batches need is read once, by one plan: random reads,
merged reads, or a stream. The compiler does not import ``storage``, so its
operators are found by name.
"""

from torch.fx import Node

from torch_gsample.compiler.super_batch.matrix_rules import (
    parts,
    point_to_edges,
)
from torch_gsample.compiler.super_batch.torch_rules import arguments, rule
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
