"""Computes equal things once.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = gsample.slice_cols(indptr, indices, seeds): 3 parts

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts

Not when: the node has a side effect, may have one, or what it takes or returns
is changed in place somewhere; one of them needs a gradient and the other, of
``no_grad``, does not; or only one runs under ``autocast`` or
``inference_mode``. Draws of equal keys and numbers are equal and
merge; two draws of a program have different ones, and two keys never merge.
"""

from typing import Any

from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import example, is_pure, may_change, modes
from torch_gsample.torch_private import tree_leaves


def eliminate_common(graph: Graph) -> None:
    """Replaces each pure node by an earlier one of equal operands."""
    changed, mode = may_change(graph), modes(graph)
    known: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if node.op == 'placeholder' or not is_pure(node):
            continue
        if not changed.isdisjoint([node, *node.all_input_nodes]):
            continue
        call = node.target, _frozen(node.args), _frozen(node.kwargs)
        _, entered = mode[node]
        key = *call, _needs_gradient(node), _frozen(entered)
        first = known.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)


def _needs_gradient(node: Node) -> tuple[bool, ...]:
    """Whether each output does."""
    return tuple(
        value.requires_grad
        for value in tree_leaves(example(node))
        if isinstance(value, Tensor)
    )


def _frozen(value: Any) -> Any:
    """A value that can be looked up. Numbers of different types differ."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, slice):
        return _frozen((value.start, value.stop, value.step))
    return type(value), value
