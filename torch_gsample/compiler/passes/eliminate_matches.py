"""Removes matches of the edges of one extract with themselves.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int64[?]
    %2 = getitem(%0, 1): int64[?]
    %3 = gsample.match_edges(%1, %2, 10, %1, %2, 10): int64[?]
    %4 = aten.index_select(value, 0, %3): float32[?]

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int64[?]
    %2 = getitem(%0, 1): int64[?]

and ``value`` instead of ``%4``.

A program with ``A[:, seeds]`` written twice has two extracts when it is
captured, and an operator that finds the edges of one in the other.
``eliminate_common`` merges the extracts, so each edge matches itself.

Not when: the extracts are different nodes, which may have the same edges
(of equal seeds, or of two copies of a graph), but only the run shows it; the
gathered values are changed in place; or only one of them requires a gradient.
"""

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph

from torch_gsample.compiler.ir import (
    erase_unused,
    example,
    gathered,
    is_operator,
    may_change,
    needs_gradient,
    same_size,
)


def eliminate_matches(graph: Graph) -> None:
    """Replaces gathers by the matches of a pattern with itself."""
    changed = may_change(graph)
    for node in list(graph.nodes):
        if not is_operator(node, 'match_edges'):
            continue
        if node.args[:3] != node.args[3:]:
            continue
        for user in list(node.users):
            source, index = gathered(user) or (node, None)
            if (
                index is node
                and source is not node
                and changed.isdisjoint([user, source])
                and needs_gradient(user) == needs_gradient(source)
            ):
                sizes = example(source).shape[0], example(user).shape[0]
                user.replace_all_uses_with(source)
                graph.erase_node(user)
                _rename_size(graph, *sizes)
        erase_unused(graph, node)


def _rename_size(graph: Graph, old: Any, new: Any) -> None:
    """Replaces the size symbol of one extract with that of the other.

    Passes fuse nodes of known equal size.
    """
    if not isinstance(old, torch.SymInt) or same_size(old, new):
        return
    for node in graph.nodes:
        value = example(node)
        if not isinstance(value, Tensor):
            if isinstance(value, torch.SymInt) and same_size(value, old):
                node.meta['example_value'] = new
            continue
        sizes = [new if same_size(n, old) else n for n in value.shape]
        renamed = any(same_size(n, old) for n in value.shape)
        if renamed and same_size(value.stride(-1), 1):
            node.meta['example_value'] = (
                value.detach()
                .new_empty(sizes)
                .requires_grad_(value.requires_grad)
            )
