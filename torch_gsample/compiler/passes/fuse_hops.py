"""Samples all hops of a loop by one operator.

Before::

    %0 = gsample.sample_columns(indptr, 25, key, cols=seeds): 2 parts
    %1 = getitem(%0, 1): int64[?]
    %2 = aten.index_select(indices, 0, %1): int32[?]
    %3 = gsample.unique_nodes(%2, 40): 3 parts
    %4 = getitem(%3, 0): int64[?]
    %5 = aten.cat([seeds, %4]): int64[?]
    %6 = gsample.unique_nodes(%5, 4611686018427387904): 3 parts
    %7 = getitem(%6, 0): int64[?]
    %8 = gsample.sample_columns(indptr, 10, key, 1, cols=%7): 2 parts
    %9 = getitem(%8, 1): int64[?]
    %10 = aten.index_select(indices, 0, %9): int32[?]

After::

    %0 = gsample.sample_layers(
        [indptr, indices], [0, 0], [40], [seeds], [25, 10], [key, key], [0, 1]
    ): 5 parts
    %1 = getitem(%0, 1): 2 parts
    %2 = getitem(%1, 0): int32[?]
    %3 = getitem(%1, 1): int32[?]

Rows are read where their edges are selected, and numbered while others are, so
that the misses of all of them overlap; a frontier that nobody asks for is not
made. What a frontier is comes from the program: ``row`` (``S.row()``),
``nodes`` (``S.nodes()``), ``new`` (``S.nodes()[n:]``) or ``unseen`` (the same
of all hops before), sorted or not.

Not when: there is one hop only, hops differ in their graph, weights or rule,
the program does anything else to a frontier, something with a side effect uses
a hop before the last one is drawn, or a tensor of a hop is changed in place.
"""

import operator
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.hop_chains import HopChain, find_chains
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_pure,
    is_size,
    may_change,
    parts,
    same_size,
)
from torch_gsample.ops.sample_layers import FRONTIERS

_LAYERS = torch.ops.gsample.sample_layers.default


def fuse_hops(graph: Graph) -> list[str]:
    """Replaces each chain of hops."""
    changed = may_change(graph)
    notes = []
    for chain in find_chains(graph):
        moved = _after_first(graph, chain)
        touched = {n for node in moved for n in (node, *node.all_input_nodes)}
        hops = f"{len(chain.hops)} hops, frontier '{chain.rule}'"
        if not changed.isdisjoint(touched):
            notes.append(f'{hops}: left, as a tensor is changed in place')
        elif not all(map(is_pure, moved)):
            notes.append(f'{hops}: left, as one has an effect before the last')
        else:
            _fuse(graph, chain, moved)
            notes.append(f'{hops}: one operator')
    return notes


def _after_first(graph: Graph, chain: HopChain) -> list[Node]:
    """What uses hops before the last one is drawn."""
    found = dict.fromkeys(chain.hops[:-1])
    for node in graph.nodes:
        if node is chain.hops[-1]:
            break
        if any(n in found for n in node.all_input_nodes):
            found.setdefault(node)
    return [node for node in found if node not in chain.hops]


def _fuse(graph: Graph, chain: HopChain, moved: list[Node]) -> None:
    last = chain.hops[-1]
    with graph.inserting_before(last):
        outputs = _Outputs(graph, chain)
    replaced = outputs.replace()
    for node in moved:
        last.prepend(node)
    for new in outputs.lengths_known:
        _take_length(graph, new)
    unused = {*moved, *chain.hops, *replaced}
    for node in reversed(list(graph.nodes)):
        if node in unused and not node.users:
            graph.erase_node(node)


class _Outputs:
    """The operator in the place of a chain, and its outputs by number."""

    def __init__(self, graph: Graph, chain: HopChain):
        self.chain, self.graph = chain, graph
        hops, frontiers = chain.hops, chain.frontiers
        self.node = graph.call_function(_LAYERS, *self._arguments())
        self.indices = frontiers[0].indices
        both = [example(hop) for hop in hops]
        begin, edge = ([values[i] for values in both] for i in (0, 1))
        self.node.meta['example_value'] = (
            begin,
            list(edge),  # of another dtype, which no pass looks at
            edge,
            [example(frontier.node) for frontier in frontiers],
            [],  # there are no trees
        )
        self.lists: dict[int, Node] = {}
        self.lengths_known: list[Node] = []

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        chain, first = self.chain, self.chain.hops[0]
        kwargs = dict(first.kwargs)
        seeds, weight = kwargs.pop('cols'), kwargs.pop('cum_weight', None)
        indptr, indices = first.args[0], chain.frontiers[0].indices
        if chain.rule != 'nodes':
            kwargs['frontier'] = FRONTIERS.index(chain.rule)
        if chain.sorted:
            kwargs['sorted'] = True
        if len(chain.frontiers) == len(chain.hops):
            kwargs['return_frontier'] = True
        return (
            [indptr, indices, *([] if weight is None else [weight])],
            [0, 0],
            [self._num_nodes(indptr)],
            [seeds],
            [hop.args[1] for hop in chain.hops],
            [hop.args[2] for hop in chain.hops],
            [hop.args[3] if len(hop.args) > 3 else 0 for hop in chain.hops],
        ), kwargs

    def _num_nodes(self, indptr: Any) -> Any:
        size = example(indptr).shape[0]
        if isinstance(size, int):
            return size - 1
        length = self.graph.call_function(aten.sym_size.int, (indptr, 0))
        length.meta['example_value'] = size
        count = self.graph.call_function(operator.sub, (length, 1))
        count.meta['example_value'] = size - 1
        return count

    def replace(self) -> list[Node]:
        """Puts the outputs in the place of what they replace."""
        replaced = []
        for hop, sample in enumerate(self.chain.hops):
            by_number = parts(sample)
            begin, edge = by_number.get(0), by_number.get(1)
            rows = [
                user
                for user in (() if edge is None else edge.users)
                if gathered(user) == (self.indices, edge)
            ]
            frontier = None
            if hop < len(self.chain.frontiers):
                frontier = self.chain.frontiers[hop].node
            found: list[list[Any]] = [[begin], rows, [edge], [frontier]]
            for number, olds in enumerate(found):
                for old in olds:
                    if old is not None:
                        self._replace(old, number, hop)
                        replaced.append(old)
        return replaced

    def _replace(self, old: Node, number: int, hop: int) -> None:
        new = self._part(self._list(number), hop, example(old))
        if number == 3 and self.chain.frontiers[hop].drops:
            self.lengths_known.append(new)
        old.replace_all_uses_with(new)

    def _list(self, number: int) -> Node:
        if number not in self.lists:
            value = example(self.node)[number]
            self.lists[number] = self._part(self.node, number, value)
        return self.lists[number]

    def _part(self, of: Node, number: int, value: Any) -> Node:
        with self.graph.inserting_before(self.chain.hops[-1]):
            node = self.graph.call_function(operator.getitem, (of, number))
        node.meta['example_value'] = value
        return node


def _take_length(graph: Graph, vector: Node) -> None:
    """Reads the length of a vector of it, where it was computed of others."""
    length = example(vector).shape[0]
    known = [
        node
        for node in graph.nodes
        if node.op == 'call_function'
        and is_size(node)
        and node > vector
        and same_size(example(node), length)
    ]
    if not known or not isinstance(length, torch.SymInt):
        return
    with graph.inserting_after(vector):
        size = graph.call_function(aten.sym_size.int, (vector, 0))
    size.meta['example_value'] = length
    for node in known:
        node.replace_all_uses_with(size)
