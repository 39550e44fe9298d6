"""Computes values of a graph once, and gathers them afterwards.

Before::

    %0 = aten.index_select(value, 0, edge): float32[?]
    %1 = aten.pow.Tensor_Scalar(%0, 2): float32[?]

After::

    %0 = aten.pow.Tensor_Scalar(value, 2): float32[900]
    %1 = aten.index_select(%0, 0, edge): float32[?]

``f(X[e])`` equals ``f(X)[e]``: ``f(X)`` is computed once per graph, as
``hoist_invariant`` caches it (gSampler, section 4.2). ``hoist_weights`` moves
selection weights, also those of several operands.

Not when: the gather has another user (scattered reads of the graph would
replace cheap arithmetic); ``f(X)`` does not depend on the graph alone,
requires a gradient, is larger than 1 GiB or of unknown size, or rounds
differently depending on an element's position, so that weights and samples
could differ; or a tensor is changed in place.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import aten, example, gathered, may_change
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes
from torch_gsample.compiler.row_wise import (
    is_exact_map,
    users_but_lengths,
)

_MOST_BYTES = 2**30


def sink_gathers(graph: Graph) -> list[str]:
    """Rewrites gathers that have no other use."""
    changed = may_change(graph)
    notes = []
    for node in list(graph.nodes):
        gather = gathered(node)
        if gather is None or not node.users:
            continue
        if not changed.isdisjoint({node, *node.users, *gather}):
            continue
        users = users_but_lengths(node)
        if len(users) != 1 or not _may_sink(graph, users[0], gather[0]):
            continue
        for length in set(node.users) - set(users):
            length.update_arg(0, gather[1])
        target = users[0].target
        _sink(graph, users[0], node, *gather)
        notes.append(f'{target} is computed before its gather')
        graph.erase_node(node)
    return notes


def _may_sink(graph: Graph, node: Node, source: Node) -> bool:
    value: Any = example(source)
    result: Any = example(node)
    return bool(
        is_exact_map(node)
        and node.all_input_nodes == list(node.args[:1])
        and not result.requires_grad
        and source in invariant_nodes(graph)
        # Comparing an unknown size would add a guard.
        and all(isinstance(size, int) for size in value.shape)
        and value.numel() * result.element_size() <= _MOST_BYTES
    )


def _sink(
    graph: Graph, node: Node, gather: Node, source: Node, index: Node
) -> None:
    """Rewrites ``f(source[index])`` to ``f(source)[index]``."""
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
    """Returns an equal earlier call; each layer of a program makes one."""
    types = [type(arg) for arg in args]
    for user in operand.users:
        same = (user.target, user.args, user.kwargs) == (target, args, kwargs)
        if same and types == [type(a) for a in user.args] and user < before:
            return user
    return None
