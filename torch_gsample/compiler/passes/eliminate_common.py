"""Computes equal things once.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = gsample.slice_cols(indptr, indices, seeds): 3 parts

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts

Not when: the node has a side effect, may have one, or what it returns is
changed in place later. Draws of equal keys and numbers are equal and merge;
two draws of a program have different ones, and two keys never merge.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import is_pure


def eliminate_common(graph: Graph) -> None:
    """Replaces each pure node by an earlier one of equal operands."""
    changed = _may_change(graph)
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op == 'placeholder' or not is_pure(node) or node in changed:
            continue
        key = node.target, _frozen(node.args), _frozen(node.kwargs)
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _may_change(graph: Graph) -> set[Node]:
    """What an opaque node may change in place: what it or a view takes."""
    changed: set[Node] = set()
    for node in reversed(graph.nodes):
        opaque = node.op != 'output' and not is_pure(node)
        if opaque or (node in changed and _is_view(node)):
            changed.update(node.all_input_nodes)
    return changed


def _is_view(node: Node) -> bool:
    """Whether what a node returns may share memory with what it takes."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return True
    returns = node.target._schema.returns
    return any(item.alias_info is not None for item in returns)


def _frozen(value: Any) -> Any:
    """A value that can be looked up. Numbers of different types differ."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, slice):
        return _frozen((value.start, value.stop, value.step))
    return type(value), value
