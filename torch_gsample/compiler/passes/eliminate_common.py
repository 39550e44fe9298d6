"""Computes equal things once.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = gsample.slice_cols(indptr, indices, seeds): 3 parts

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts

Not when: the node has a side effect, may have one, or what it takes or returns
is changed in place somewhere. Draws of equal keys and numbers are equal and
merge; two draws of a program have different ones, and two keys never merge.
"""

from typing import Any

from torch.fx import Graph, Node

from torch_gsample.compiler.ir import is_pure, may_change


def eliminate_common(graph: Graph) -> None:
    """Replaces each pure node by an earlier one of equal operands."""
    changed = may_change(graph)
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op == 'placeholder' or not is_pure(node):
            continue
        if not changed.isdisjoint([node, *node.all_input_nodes]):
            continue
        key = node.target, _frozen(node.args), _frozen(node.kwargs)
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _frozen(value: Any) -> Any:
    """A value that can be looked up. Numbers of different types differ."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, slice):
        return _frozen((value.start, value.stop, value.step))
    return type(value), value
