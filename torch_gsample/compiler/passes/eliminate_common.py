"""Computes equal values once.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = gsample.slice_cols(indptr, indices, seeds): 3 parts

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts

Not when: the node has or may have a side effect; an input or the result is
changed in place; only one of them requires a gradient (the other is under
``no_grad``); or only one runs under ``autocast`` or ``inference_mode``. Draws
with equal keys and call ids are equal and merge; two draws of a program have
different ids, and two keys never merge.
"""

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    example,
    is_pure,
    may_change,
    modes,
    same_size,
    tensors_of,
)
from torch_gsample.torch_private import tree_leaves


def eliminate_common(graph: Graph) -> None:
    """Replaces each pure node with an earlier one with equal operands."""
    changed, mode = may_change(graph), modes(graph)
    known: dict[Any, Node] = {}
    sizes: list[tuple[Any, Any]] = []
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
            sizes += _sizes(node, first)
            node.replace_all_uses_with(first)
            graph.erase_node(node)
    if sizes:
        for node in graph.nodes:
            _rename_sizes(node, sizes)


def _sizes(node: Node, first: Node) -> list[tuple[Any, Any]]:
    """Returns pairs of symbols for one size, from two equal nodes."""
    if isinstance(example(node), torch.SymInt):
        pairs = [(example(node), example(first))]
    else:
        both = zip(tensors_of(node), tensors_of(first), strict=True)
        shapes = [zip(a.shape, b.shape, strict=True) for a, b in both]
        pairs = [pair for shape in shapes for pair in shape]
    return [
        (old, new)
        for old, new in pairs
        if isinstance(old, torch.SymInt) and not same_size(old, new)
    ]


def _rename_sizes(node: Node, sizes: list[tuple[Any, Any]]) -> None:
    """Uses the first symbol of each size, so that passes see equal sizes."""

    def first(size: Any) -> Any:
        found = [new for old, new in sizes if same_size(old, size)]
        return found[0] if found else size

    def renamed(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(renamed, value))
        if isinstance(value, torch.SymInt):
            return first(value)
        if not isinstance(value, Tensor):
            return value
        shape, stride = (
            [first(size) for size in given]
            for given in (value.shape, value.stride())
        )
        if all(map(same_size, shape, value.shape)):
            return value
        new = value.detach().new_empty_strided(shape, stride)
        return new.requires_grad_(value.requires_grad)

    node.meta['example_value'] = renamed(example(node))


def _needs_gradient(node: Node) -> tuple[bool, ...]:
    """Returns whether each output requires a gradient."""
    return tuple(
        value.requires_grad
        for value in tree_leaves(example(node))
        if isinstance(value, Tensor)
    )


def _frozen(value: Any) -> Any:
    """Returns a hashable value, which distinguishes types of numbers."""
    if isinstance(value, (tuple, list)):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple((k, _frozen(v)) for k, v in sorted(value.items()))
    if isinstance(value, slice):
        return _frozen((value.start, value.stop, value.step))
    return type(value), value
