"""Choosing rows of the ends of edges, and aggregating over edges."""

from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import (
    AGGREGATE,
    DESTINATION,
    GRAPH,
    INDEX,
    MIXED,
    OF_EDGES,
    PARAMETER,
    SOURCE,
    Node,
)
from torch_gsample.vertex.capture.shapes import unviewed, viewed

aten = torch.ops.aten
_NAMES = {
    **{'sum': 'sum', 'amax': 'max', 'amin': 'min', 'mean': 'mean'},
    'prod': 'prod',
}
#: The initial value of a result in aggregations that include it.
_NEUTRAL = {'sum': 0, 'prod': 1}


def graph_node(recorder: Any) -> Node:
    """Returns ``edge_index``."""
    return Node('edge_index', GRAPH, (2, recorder.edges), torch.int64)


def end_of(recorder: Any, end: int, where: str) -> Node:
    """Returns one row of ``edge_index``."""
    return Node(
        *('index', INDEX, (recorder.edges,), torch.int64, None, (end,)),
        where=where,
    )


def gather(call: Any, x: Node, index: Node) -> Node:
    """Returns the rows of one end of each edge.

    Args:
        call (Call): The operator.
        x (Node): Values of vertices.
        index (Node): The end.
    """
    recorder = call.recorder
    if index.kind != INDEX or len(index.shape) != 1:
        raise call.fail('the selected rows depend on values')
    of_target = index.args[0] == recorder.target
    rows = recorder.destinations if of_target else recorder.sources
    kind = DESTINATION if of_target else SOURCE
    if x.kind == AGGREGATE:
        if not of_target:
            raise call.fail('it reads aggregates of neighbours')
        kind = MIXED
    if x.rows != rows:
        raise call.fail('its rows belong to the other end')
    assert x.row is not None
    shape = (*x.shape[: x.row], recorder.edges, *x.shape[x.row + 1 :])
    return Node(
        *('gather', kind, shape, x.dtype, x.row, (x,)), where=call.where
    )


def aggregation(call: Any) -> Node:
    """Returns the aggregate of a call that scatters values of edges."""
    blank, dim, index, src, *rest = call.args
    name, recorder = call.name, call.recorder
    reduce = 'sum'
    if name in ('scatter_reduce', 'index_reduce'):
        reduce = rest[0] if rest else call.kwargs['reduce']
        whole = rest[1] if len(rest) > 1 else True
        counts = call.kwargs.get('include_self', whole)
        if counts and reduce not in _NEUTRAL:
            raise call.fail('it combines values with existing ones')
    elif call.kwargs.get('alpha', 1) != 1 or rest:
        raise call.fail('it has a factor')
    if reduce not in _NAMES:
        raise call.fail(f"its reduction is '{reduce}'")
    is_blank = blank.op == 'fill' and blank.args[0] == _NEUTRAL.get(reduce, 0)
    if not is_blank or blank.rows != recorder.destinations:
        raise call.fail('it adds to existing values')
    nodes = isinstance(src, Node) and isinstance(index, Node)
    if not nodes or index.kind != INDEX:
        raise call.fail('its indices are not destinations')
    if index.args[0] != recorder.target:
        raise call.fail('it aggregates over out-edges')
    dim %= blank.rank
    if src.kind not in OF_EDGES or src.row != dim or blank.row != dim:
        raise call.fail('its rows are not edges')
    if name.startswith('scatter') and index.shape != src.shape:
        raise call.fail('it covers only part of the features')
    return aggregate(_NAMES[reduce], src, recorder.destinations, call)


def aggregate(op: str, src: Node, rows: int, call: Any) -> Node:
    """Returns an aggregate; reshaping and concatenation follow it."""
    assert src.row is not None
    shape = (*src.shape[: src.row], rows, *src.shape[src.row + 1 :])
    if src.kind == MIXED and src.op == 'view' and not keeps_axes(src):
        inner = aggregate(op, src.args[0], rows, call)
        return viewed(inner, shape, src.row, src.where)
    factored = by_factors(op, src, rows, call)
    if factored is not None:
        return factored
    if src.kind == MIXED and src.op == 'cat':
        parts = [aggregate(op, part, rows, call) for part in src.args[0]]
        return call.call(aten.cat.default, parts, src.args[1])
    return Node(
        *('aggregate', AGGREGATE, shape, src.dtype, src.row, (op, src)),
        where=call.where,
    )


#: Maximum features of a sum of outer products at a vertex.
_OUTER = 1 << 14


def by_factors(op: str, src: Node, rows: int, call: Any) -> Node | None:
    """Multiplies by matrices of edges after the sum, if these are linear.

        sum_u x_u @ (h_u @ W).view(in, out)  ->  (sum_u h_u x_u^T) @ W'

    No matrix of an edge is stored: ``W'`` is ``W`` as ``[k * in, out]``.

    Args:
        op (str): The aggregation.
        src (Node): The values of edges.
        rows (int): The number of vertices.
        call (Call): The operator that aggregates.
    """
    product = unviewed(src)
    if op not in ('sum', 'mean') or product.op != 'bmm' or src.row != 0:
        return None
    a, b = product.args
    linear = unviewed(b)
    if (
        a.shape[1] != 1
        or linear.op not in ('mm', 'addmm')
        or linear.kind not in OF_EDGES
    ):
        return None
    h, weight = linear.args[-2:]
    edges, inner, columns = b.shape
    width = weight.shape[0]
    if weight.kind != PARAMETER or width >= 4 * columns:
        return None
    if width * inner > _OUTER or linear.kwargs:
        return None
    left = call.call(aten.view.default, a, [edges, 1, inner])
    right = call.call(aten.view.default, h, [edges, width, 1])
    outer = call.call(aten.mul.Tensor, right, left)
    total = aggregate(op, outer, rows, call)
    total = viewed(total, (rows, width * inner), 0, call.where)
    shape = [width * inner, columns]
    matrix = call.call(aten.reshape.default, weight, shape)
    out = call.call(aten.mm.default, total, matrix)
    if linear.op == 'addmm':
        bias = call.call(
            aten.reshape.default, linear.args[0], [inner, columns]
        )
        left = call.call(aten.view.default, a, [edges, inner])
        total = aggregate(op, left, rows, call)
        rest = call.call(aten.mm.default, total, bias)
        out = call.call(aten.add.Tensor, out, rest)
    return viewed(out, (rows, *src.shape[1:]), 0, call.where)


def keeps_axes(node: Node) -> bool:
    """Whether a view only adds or removes dimensions of size 1."""
    [x] = node.args
    return [n for n in x.features if n != 1] == [
        n for n in node.features if n != 1
    ]
