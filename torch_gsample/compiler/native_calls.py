"""Calls torch operators by their Python functions.

``torch.ops.aten.cumsum.default(x, 0)`` parses boxed arguments by a schema.
``torch.cumsum(x, 0)`` calls the same operator, as eager code does, and saves a
microsecond: a third of an operator's time on a small batch.
"""

import operator
import types
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import aten, example
from torch_gsample.torch_private import OpOverload, schema_of

#: Functions of torch with the arguments of the operator's overloads.
_NAMES = """
    abs add all any arange argsort bincount bitwise_and bitwise_not bitwise_or
    cat ceil clamp cumsum diff div empty eq exp flatten floor floor_divide full
    ge gt index_add index_put isin le log logical_and logical_not
    logical_or lt matmul maximum minimum mm mul ne neg ones
    ones_like pow relu remainder repeat_interleave rsub scatter_reduce
    searchsorted sqrt stack sub sum t unsqueeze where zeros zeros_like
""".split()
_FUNCTIONS = {
    name: getattr(torch, name)
    for name in _NAMES
    if isinstance(getattr(torch, name), types.BuiltinFunctionType)
}
#: Likewise for methods.
#: ``torch.index_select`` is PyG's, which tests for PyG's tensor classes.
_METHODS = (
    'expand index_select new_full new_zeros repeat reshape to view'.split()
)


def call_natively(graph: Graph) -> None:
    """Replaces operators with the torch functions that call them.

    Operators without such a function do not change.
    """
    for node in list(graph.nodes):
        if not isinstance(node.target, OpOverload):
            continue
        namespace, _, name = schema_of(node.target).name.partition('::')
        if namespace != 'aten' or not _is_plain(node):
            continue
        if node.target is aten.sym_size.int:
            node.op, node.target = 'call_method', 'size'
        elif name in _METHODS:
            node.op, node.target = 'call_method', name
        elif name in _FUNCTIONS:
            node.target = _FUNCTIONS[name]
        elif (mask := _mask(node)) is not None:
            node.target, node.args = operator.getitem, (node.args[0], mask)


def _is_plain(node: Node) -> bool:
    """Whether the Python function accepts all of the arguments."""
    if node.target is aten.index_put.default:
        indices: Any = node.args[1]
        return None not in indices
    return node.kwargs.keys().isdisjoint(('layout', 'self'))


def _mask(node: Node) -> Node | None:
    """Returns the mask of ``x[mask]``."""
    args: Any = node.args
    if node.target is not aten.index.Tensor or len(args[1]) != 1:
        return None
    [index] = args[1]
    value = example(index) if isinstance(index, Node) else None
    found = isinstance(value, Tensor) and value.dtype == torch.bool
    return index if found else None
