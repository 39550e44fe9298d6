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
* ``unique`` sorts arbitrary integers. Nodes are not negative, and are sorted
  in linear time. They are rows of a graph, columns that an operator has
  checked, ``x[x >= 0]``, or results of operators that return nodes. Inverse
  positions are the local ids, and counts are those of the local ids.

Not when: values are not known to be nodes, the program returns the result of
the mask, which is a copy, or a tensor is changed in place.
"""

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    arguments,
    aten,
    example,
    gathered,
    is_operator,
    is_part,
    may_change,
    part_of,
    parts,
    same_size,
    unique_options,
)
from torch_gsample.torch_private import schema_of

_UNIQUE = torch.ops.gsample.unique_nodes.default

#: An upper bound of nodes without information.
_ANY = 2**62

#: Operators that return the same values.
_SAME = (
    aten.to.dtype,
    aten.reshape.default,
    aten.view.default,
    aten.flatten.using_ints,
)

#: Operators that raise an error for a column outside of the graph.
_CHECKS = frozenset(
    {'slice_cols', 'slice_rows', 'sample_columns', 'stored_columns'}
)


def rewrite_unique(graph: Graph) -> None:
    """Removes masks that are true everywhere; rewrites ``x.unique()``."""
    changed = may_change(graph)
    for node in list(graph.nodes):
        if not changed.isdisjoint([node, *node.all_input_nodes]):
            continue
        if _holds_everywhere(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    nodes = _Nodes()
    for node in list(graph.nodes):
        nodes.add(node)
        options = unique_options(node)
        if options is None or node in changed:
            continue
        ids: Any = node.args[0]
        if ids in changed or example(ids).dtype != torch.int64:
            continue
        if options[0] and example(ids).dim() != 1:
            continue
        bound = nodes.bound(ids)
        if bound is not None:
            _number(graph, node, ids, bound, options)


def _holds_everywhere(node: Node) -> bool:
    """Whether a node selects all of its argument by a mask."""
    if node.target is not aten.index.Tensor:
        return False
    if any(user.op == 'output' for user in node.users):
        return False
    args: Any = node.args
    source, [mask, *others] = args
    if (
        others
        or mask.target is not aten.index_fill.int_Scalar
        or mask.args[3] is False
    ):
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


class _Nodes:
    """Which values are nodes, by the operators before a node."""

    def __init__(self) -> None:
        self._known = set[Any]()

    def add(self, node: Node) -> None:
        """Takes an operator that reads nodes."""
        if not is_operator(node):
            return
        given = arguments(node)
        if is_operator(node, 'sample_layers'):
            self._known.update(given['seeds'])
        # Others may read any integers: `rewrite_isin` calls them a matrix.
        if schema_of(node.target).name.partition('::')[2] in _CHECKS:
            self._known.update([given.get('indices'), given.get('cols')])

    def bound(self, node: Any) -> int | None:
        """Returns an upper bound of nodes, or None for other integers."""
        if gather := gathered(node):
            return self.bound(gather[0])
        if node.target is aten.index.Tensor:  # by a mask
            source, [mask, *_] = node.args
            at_least = getattr(mask, 'target', None) is aten.ge.Scalar
            if at_least and mask.args == (source, 0):
                return _ANY
            return self.bound(source)
        if node.target in _SAME:
            return self.bound(node.args[0])
        if node.target is aten.cat.default:
            bounds = [self.bound(part) for part in node.args[0]]
            known = [bound for bound in bounds if bound is not None]
            return max(known) if len(known) == len(bounds) else None
        if is_operator(node, 'read_edges'):  # neighbors, or ids of edges
            return _ANY if arguments(node)['array'] < 2 else None
        if is_part(node):
            found = self._of_part(*node.args)
            if found is not None:
                return found
        return _ANY if node in self._known else None

    def _of_part(self, call: Any, number: Any) -> int | None:
        if part_of(call, 'sample_layers', 1):  # the rows of a hop
            return _ANY
        if not is_operator(call):
            return None
        if is_operator(call, 'unique_nodes') and number == 0:
            below = call.args[1]
            if isinstance(below, int) and below < _ANY:
                return below
            return self.bound(call.args[0])
        if is_operator(call, 'slice_cols') and number == 1:
            return _ANY
        if is_operator(call, 'positive_weights') and number == 0:
            return _known(example(call.args[0]).shape[0])
        if is_operator(call, 'random_walk') and number == 0:
            return _known(example(call.args[0]).shape[0] - 1)
        return None


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _number(
    graph: Graph,
    node: Node,
    ids: Node,
    bound: int,
    options: tuple[bool, bool],
) -> None:
    """Replaces ``unique``, its inverse positions and its counts."""
    inverse, _ = options
    found = example(node)
    with graph.inserting_before(node):
        if example(ids).dim() != 1:
            flat = graph.call_function(aten.reshape.default, (ids, [-1]))
            flat.meta['example_value'] = example(ids).reshape(-1)
            ids = flat
        call = graph.call_function(_UNIQUE, (ids, bound, True))
    local = torch.empty_like(example(ids))
    ptr = local.new_empty(2, dtype=torch.int64)
    if not any(options):
        call.meta['example_value'] = found, local, ptr
        node.op, node.target = 'call_function', operator.getitem
        node.args = (call, 0)
        return
    call.meta['example_value'] = found[0], local, ptr
    for number, part in parts(node).items():
        if number < 1 + inverse:
            part.args = (call, number)
            continue
        with graph.inserting_before(part):
            place = graph.call_function(operator.getitem, (call, 1))
        place.meta['example_value'] = local
        part.target, part.args = aten.bincount.default, (place,)
    graph.erase_node(node)
