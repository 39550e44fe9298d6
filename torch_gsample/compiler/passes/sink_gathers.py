"""Gathers less, and later: of the graph, and not of what was gathered.

Before::

    %0 = aten.index_select(value, 0, edge): float32[?]
    %1 = aten.pow.Tensor_Scalar(%0, 2): float32[?]
    %2 = gsample.cumulate_weights(indptr, %1): int64[?]
    %3 = gsample.sample_columns(indptr, 5, key, cum_weight=%2): 2 parts
    %4 = getitem(%3, 1): int64[?]
    %5 = aten.index_select(%0, 0, %4): float32[?]

After::

    %0 = aten.pow.Tensor_Scalar(value, 2): float32[900]
    %1 = aten.index_select(%0, 0, edge): float32[?]
    %2 = gsample.cumulate_weights(indptr, %1): int64[?]
    %3 = gsample.sample_columns(indptr, 5, key, cum_weight=%2): 2 parts
    %4 = getitem(%3, 1): int64[?]
    %5 = aten.index_select(edge, 0, %4): int64[?]
    %6 = aten.index_select(value, 0, %5): float32[?]

* ``X[i][j]`` is ``X[i[j]]``: where ``j`` selects edges, the other edges of
  ``X[i]`` were gathered for nothing.
* ``f(X[e])`` is ``f(X)[e]``: ``f(X)`` is computed once a graph, as
  ``hoist_invariant`` keeps it (gSampler, section 4.2).

Not when: the first gather stays for another user, or selected edges of it
are gathered too and ``f`` gives no weights of a selection: reads of the
graph, which are far away, would take the place of cheap arithmetic; ``f(X)``
is not a function of the graph alone, needs a gradient, is larger than 1 GiB
or of unknown size, or is not rounded alike wherever an element is stored, by
which weights and so samples could differ; a tensor is changed in place.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    may_change,
    part_of,
)
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes

_MOST_BYTES = 2**30

#: Functions of each element, of exactly one result in floating point.
_EXACT = frozenset(
    {
        aten.abs.default,
        aten.add.Tensor,
        aten.clamp.default,
        aten.div.Tensor,
        aten.mul.Tensor,
        aten.neg.default,
        aten.reciprocal.default,
        aten.relu.default,
        aten.sqrt.default,
        aten.square.default,
        aten.sub.Tensor,
        aten.to.dtype,
    }
)

#: Operators that select edges, and which output these are.
_SELECTIONS = (('sample_columns', 1), ('slice_rows', 2))


def sink_gathers(graph: Graph) -> list[str]:
    """Rewrites gathers of which nothing is left then."""
    changed = may_change(graph)
    notes = []
    for node in list(graph.nodes):
        gather = gathered(node)
        if gather is None or not node.users:
            continue
        if not changed.isdisjoint({node, *node.users, *gather}):
            continue
        later = [user for user in node.users if _selects(user, node)]
        lengths = [user for user in node.users if _is_length(user)]
        maps = [u for u in node.users if u not in later and u not in lengths]
        if len(maps) > 1:
            continue
        if maps and later and not _is_weight(maps[0]):
            continue
        if maps and not _may_sink(graph, maps[0], gather[0]):
            continue
        for user in lengths:
            user.update_arg(0, gather[1])
        for user in later:
            _compose(graph, user, *gather)
        if maps:
            _sink(graph, maps[0], node, *gather)
            notes.append(f'{maps[0].target} is computed before its gather')
        graph.erase_node(node)
    return notes


def _is_length(node: Node) -> bool:
    return bool(node.target is aten.sym_size.int and node.args[1] == 0)


def _selects(user: Node, of: Node) -> bool:
    """Whether a node gathers selected edges of another one."""
    gather = gathered(user)
    if gather is None or gather[0] is not of:
        return False
    return any(part_of(gather[1], *item) is not None for item in _SELECTIONS)


def _is_weight(node: Node) -> bool:
    """Whether edges are selected by a value: fused, they need no gather."""
    return any(
        is_operator(user, 'cumulate_weights')
        or (user.target is aten.detach.default and _is_weight(user))
        for user in node.users
    )


def _may_sink(graph: Graph, node: Node, source: Node) -> bool:
    exact = node.target in _EXACT or (
        node.target is aten.pow.Tensor_Scalar and node.args[1] in (2, 3)
    )
    value: Any = example(source)
    result: Any = example(node)
    return bool(
        exact
        and node.all_input_nodes == list(node.args[:1])
        and not result.requires_grad
        and source in invariant_nodes(graph)
        # A comparison of an unknown size would be a guard on it.
        and all(isinstance(size, int) for size in value.shape)
        and value.numel() * result.element_size() <= _MOST_BYTES
    )


def _compose(graph: Graph, node: Node, source: Node, index: Node) -> None:
    """``source[index][selected]`` becomes ``source[index[selected]]``."""
    selected: Any = gathered(node)[1]  # type: ignore[index]
    target, args = aten.index_select.default, (index, 0, selected)
    place = _equal(selected, target, args, {}, node)
    if place is None:
        with graph.inserting_before(node):
            place = graph.call_function(target, args)
        place.meta['example_value'] = example(selected)
    node.target, node.args, node.kwargs = target, (source, 0, place), {}


def _sink(
    graph: Graph, node: Node, gather: Node, source: Node, index: Node
) -> None:
    """``f(source[index])`` becomes ``f(source)[index]``."""
    args = (source, *(source if a is gather else a for a in node.args[1:]))
    early = _equal(source, node.target, args, node.kwargs, gather)
    if early is None:
        with graph.inserting_before(gather):
            early = graph.call_function(node.target, args, node.kwargs)  # type: ignore[arg-type]
        value = torch.empty_like(example(source), dtype=example(node).dtype)
        early.meta['example_value'] = value
    node.target, node.kwargs = aten.index_select.default, {}
    node.args = (early, 0, index)


def _equal(
    operand: Node, target: Any, args: Any, kwargs: Any, before: Node
) -> Node | None:
    """A call that was made before: each layer of a program asks for it."""
    types = [type(arg) for arg in args]
    for user in operand.users:
        same = (user.target, user.args, user.kwargs) == (target, args, kwargs)
        if same and types == [type(a) for a in user.args] and user < before:
            return user
    return None
