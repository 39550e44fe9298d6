"""Multiplies dense matrices only at edges.

Before (captured from ``A * (X @ Y.T)``)::

    %0 = aten.t(Y): float32[4, 8]
    %1 = aten.matmul(X, %0): float32[6, 8]
    %2 = aten.reshape(%1, (48)): float32[48]
    %3 = aten.mul.Tensor(row, 8): int64[9]
    %4 = aten.add.Tensor(%3, col): int64[9]
    %5 = aten.index_select(%2, 0, %4): float32[9]

After (captured from ``A.sddmm(X, Y)``)::

    %0 = aten.index_select(X, 0, row): float32[9, 4]
    %1 = aten.index_select(Y, 0, col): float32[9, 4]
    %2 = aten.mul.Tensor(%0, %1): float32[9, 4]
    %3 = aten.sum.dim_IntList(%2, [-1]): float32[9]

Neither the dense product nor its gradient exists: for a graph of a million
nodes, they would need terabytes (gSampler, section 4.2). Products are as
accurate as those of BLAS, but may round differently.

Not when: the dense product has another user or is computed under ``no_grad``
or ``autocast``, or an operand is changed in place.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    add_node,
    aten,
    erase_unused,
    example,
    may_change,
    same_size,
)


def rewrite_sddmm(graph: Graph) -> list[str]:
    """Rewrites each gather of a dense product."""
    changed, notes = may_change(graph), []
    for node in list(graph.nodes):
        found = _product(node)
        if found is None or not changed.isdisjoint(found):
            continue
        x, y_t, row, col = found
        edges, features = example(node), example(x).shape[1]
        wide = edges.new_empty(edges.shape[0], features)
        with graph.inserting_before(node):
            y = _transposed(graph, y_t)
            left = add_node(
                graph, wide, x, aten.index_select.default, x, 0, row
            )
            right = add_node(
                graph, wide, y, aten.index_select.default, y, 0, col
            )
            product = add_node(graph, wide, node, aten.mul.Tensor, left, right)
            out = add_node(
                graph, edges, node, aten.sum.dim_IntList, product, [-1]
            )
        node.replace_all_uses_with(out)
        erase_unused(graph, node)
        rows, cols = (example(n).shape[i] for n, i in ((x, 0), (y_t, 1)))
        notes.append(f'{out}: no dense product of {rows} rows, {cols} columns')
    return notes


def _calls(value: Any, *targets: Any) -> bool:
    return isinstance(value, Node) and value.target in targets


def _product(node: Node) -> tuple[Node, Node, Node, Node] | None:
    """Returns factors, rows and columns of a gathered dense product."""
    if not _calls(node, aten.index_select.default) or node.args[1] != 0:
        return None
    flat: Any = node.args[0]
    place: Any = node.args[2]
    if not _calls(flat, aten.reshape.default, aten.view.default):
        return None
    if not _calls(place, aten.add.Tensor) or place.kwargs:
        return None
    product, (scaled, col) = flat.args[0], place.args
    if not _calls(product, aten.matmul.default, aten.mm.default):
        return None
    if not _calls(scaled, aten.mul.Tensor) or len(flat.args[1]) != 1:
        return None
    (x, y_t), (row, width) = product.args, scaled.args
    if example(x).dim() != 2 or example(y_t).dim() != 2:
        return None
    kept = any(example(factor).requires_grad for factor in (x, y_t))
    if example(product).requires_grad != kept:
        return None
    if example(product).dtype != example(x).dtype:
        return None
    if not same_size(width, example(y_t).shape[1]):
        return None
    if len(product.users) > 1 or len(flat.users) > 1:
        return None
    if _calls(row, aten.to.dtype) and row.args[1] == torch.int64:
        row = row.args[0]
    return x, y_t, row, col


def _transposed(graph: Graph, y_t: Node) -> Node:
    if _calls(y_t, aten.t.default):
        return y_t.args[0]  # type: ignore[return-value]
    return add_node(graph, example(y_t).t(), y_t, aten.t.default, y_t)
