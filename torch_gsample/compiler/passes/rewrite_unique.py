"""Relabels nodes with the node operator, and only once.

Before::

    %0 = gsample.unique_nodes(rows, 40): 3 parts
    %1 = getitem(%0, 0): int64[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = aten.sym_size.int(%1, 0): size
    %4 = aten.zeros((%3), dtype=torch.bool): bool[?]
    %5 = aten.to.dtype(%2, torch.int64): int64[?]
    %6 = aten.index_fill.int_Scalar(%4, 0, %5, True): bool[?]
    %7 = aten.index.Tensor(ids, [%6]): int64[?]
    %8 = !.unique(%7): int64[?]

After, if ``ids`` are nodes of a graph with 40 nodes::

    %0 = gsample.unique_nodes(ids, 40, True): 3 parts
    %1 = getitem(%0, 0): int64[?]

* Every local id of ``unique_nodes`` occurs, so a mask of those that occur is
  true everywhere.
* ``unique`` sorts arbitrary integers. Nodes are below a known bound, so they
  are sorted in linear time.

Not when: values are not known to be nodes, the program returns the result of
the mask, which is a copy, or a tensor is changed in place.
"""

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    is_part,
    may_change,
    part_of,
    same_size,
)

_UNIQUE = torch.ops.gsample.unique_nodes.default

#: An upper bound of nodes without information.
_ANY = 2**62


def rewrite_unique(graph: Graph) -> None:
    """Removes masks that are true everywhere; rewrites ``x.unique()``."""
    changed = may_change(graph)
    for node in list(graph.nodes):
        if not changed.isdisjoint([node, *node.all_input_nodes]):
            continue
        if _holds_everywhere(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    for node in list(graph.nodes):
        unique = node.op == 'call_method' and node.target == 'unique'
        if not unique or len(node.args) > 1 or node.kwargs or node in changed:
            continue
        ids: Any = node.args[0]
        if ids in changed or example(ids).dtype != torch.int64:
            continue
        bound = _bound(ids)
        if bound is not None and bound < _ANY:
            _number(graph, node, ids, bound)


def _holds_everywhere(node: Node) -> bool:
    """Whether a node selects all of its argument by a mask."""
    if node.target is not aten.index.Tensor:
        return False
    if any(user.op == 'output' for user in node.users):
        return False
    args: Any = node.args
    source, [mask] = args
    if mask.target is not aten.index_fill.int_Scalar or mask.args[3] is False:
        return False
    local = mask.args[2]
    if local.target is aten.to.dtype:
        local = local.args[0]
    unique = part_of(local, 'unique_nodes', 1)
    if unique is None:
        return False
    lengths = [example(n).shape[0] for n in (source, mask)]
    number = example(unique)[0].shape[0]
    return all(same_size(length, number) for length in lengths)


def _bound(node: Any) -> int | None:
    """Returns a known upper bound of non-negative integers."""
    if gather := gathered(node):
        return _bound(gather[0])
    if node.target is aten.index.Tensor:  # by a mask
        return _bound(node.args[0])
    if node.target in (aten.to.dtype, aten.reshape.default):
        return _bound(node.args[0])
    if node.target is aten.cat.default:
        bounds = [_bound(part) for part in node.args[0]]
        known = [bound for bound in bounds if bound is not None]
        return max(known) if len(known) == len(bounds) else None
    if not is_part(node) or not is_operator(node.args[0]):
        return None
    call, number = node.args
    if is_operator(call, 'unique_nodes') and number == 0:
        below = call.args[1]
        if isinstance(below, int) and below < _ANY:
            return below
        return _bound(call.args[0])
    if is_operator(call, 'positive_weights') and number == 0:
        return _known(example(call.args[0]).shape[0])
    if is_operator(call, 'random_walk') and number == 0:
        return _known(example(call.args[0]).shape[0] - 1)
    return None


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _number(graph: Graph, node: Node, ids: Node, bound: int) -> None:
    with graph.inserting_before(node):
        if example(ids).dim() != 1:
            flat = graph.call_function(aten.reshape.default, (ids, [-1]))
            flat.meta['example_value'] = example(ids).reshape(-1)
            ids = flat
        call = graph.call_function(_UNIQUE, (ids, bound, True))
    local = torch.empty_like(example(ids))
    ptr = local.new_empty(2, dtype=torch.int64)
    call.meta['example_value'] = example(node), local, ptr
    node.op, node.target = 'call_function', operator.getitem
    node.args = (call, 0)
