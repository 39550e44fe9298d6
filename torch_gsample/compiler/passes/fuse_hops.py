"""Samples all hops of a loop with one operator.

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

The operator reads rows when their edges are selected, and relabels them while
other edges are selected, so that cache misses overlap; unused frontiers are
not built. The rule of frontiers comes from the program: ``row`` (``S.row()``),
``nodes`` (``S.nodes()``), ``new`` (``S.nodes()[n:]``) or ``unseen`` (likewise
for all previous hops), sorted or not; ``edges`` (``S.edges()[0]``, rows with
duplicates) or ``walk`` (the row of each column with an edge, else the column
itself: ``s = s.clone(); s[column] = row``).

Hops over several relations, from a loop over a dictionary of matrices, become
one operator, too. The data flow determines the types of its frontiers, and
each relation keeps its keys. Frontiers are then ``row``
(``torch.cat(rows).unique()``) or ``nodes``
(``torch.cat([frontier, *rows]).unique()``).

Not when: there is only one hop; hops differ in graph, weights or rule; the
program changes a frontier in another way; something with a side effect uses a
hop before the last one is drawn; or a tensor of a hop is changed in place.

Hops over several relations are not fused if a frontier lacks rows of its type,
if relations differ in replacement or dtype, or if the loop omits half of them.
On a GPU, ``edges``, ``walk`` and sorted frontiers of several relations are not
fused. In super-batches, hops over several relations are not fused, and on a
GPU only unsorted ``row`` and ``nodes`` frontiers are.
"""

import operator
from collections.abc import Iterator
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
    placeholders,
    same_size,
)
from torch_gsample.compiler.typed_chain import TypedChain
from torch_gsample.compiler.typed_chains import find_typed_chains

Chain = HopChain | TypedChain

_LAYERS = torch.ops.gsample.sample_layers.default


def fuse_hops(graph: Graph) -> list[str]:
    """Replaces each chain of hops."""
    changed = may_change(graph)
    notes = []
    for chain in _chains(graph):
        moved = _after_first(graph, chain)
        touched = {n for node in moved for n in (node, *node.all_input_nodes)}
        hops = chain.name
        if not changed.isdisjoint(touched):
            notes.append(f'{hops}: unchanged, as a tensor changes in place')
        elif not all(map(is_pure, moved)):
            notes.append(
                f'{hops}: unchanged, as one has an effect before the last'
            )
        else:
            _fuse(graph, chain, moved)
            notes.append(f'{hops}: one operator')
    return notes


def _chains(graph: Graph) -> Iterator[Chain]:
    """The chains of several relations, then those of one that are left."""
    if any(node.meta.get('batched') for node in placeholders(graph)):
        yield from filter(_takes_batches, find_chains(graph))
        return
    typed = find_typed_chains(graph)
    taken = {hop for chain in typed for hop in chain.hops}
    yield from typed
    for chain in find_chains(graph):
        if taken.isdisjoint(chain.hops):
            yield chain


def _takes_batches(chain: HopChain) -> bool:
    """Whether the operator takes several batches of a chain."""
    device = example(chain.hops[0].args[0]).device  # type: ignore
    by_queue = chain.rule in ('row', 'nodes') and not chain.sorted
    return by_queue or device.type == 'cpu'


def _after_first(graph: Graph, chain: Chain) -> list[Node]:
    """Returns nodes that use hops or columns before the last draw."""
    columns = [n for of in chain.next_columns for n in of if n is not None]
    after, found = {*chain.hops[:-1], *columns}, []
    for node in graph.nodes:
        if node is chain.hops[-1]:
            break
        if node in after or not after.isdisjoint(node.all_input_nodes):
            after.add(node)
            found.append(node)
    return [node for node in found if node not in chain.hops]


def _fuse(graph: Graph, chain: Chain, moved: list[Node]) -> None:
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
    """The operator that replaces a chain, and its outputs by index."""

    def __init__(self, graph: Graph, chain: Chain):
        self.chain, self.graph = chain, graph
        self.node = graph.call_function(_LAYERS, *chain.arguments(graph))
        # Outputs without a hop or frontier are not read by passes.
        both = [
            example(hop or chain.hops[0])
            for samples in chain.slots
            for hop, _ in samples
        ]
        columns: Any = chain.hops[0].kwargs['cols']
        begin, edge = ([values[i] for values in both] for i in (0, 1))
        self.node.meta['example_value'] = (
            begin,
            list(edge),  # wrong dtype, but not read by passes
            edge,
            [example(n or columns) for of in chain.next_columns for n in of],
            [],  # there are no trees
        )
        self.lists: dict[int, Node] = {}
        self.lengths_known: list[Node] = []

    def replace(self) -> list[Node]:
        """Replaces the chain's results with the outputs."""
        replaced, slot, column = list[Node](), 0, 0
        following = iter(self.chain.next_columns)
        for samples in self.chain.slots:
            for hop, indices in samples:
                replaced += self._replace_hop(hop, indices, slot)
                slot += 1
            for node in next(following, ()):
                if node is not None:
                    self._replace(node, 3, column)
                    replaced.append(node)
                column += 1
        return replaced

    def _replace_hop(
        self, hop: Node | None, indices: Node, slot: int
    ) -> Iterator[Node]:
        by_number = {} if hop is None else parts(hop)
        begin, edge = by_number.get(0), by_number.get(1)
        rows = [
            user
            for user in (() if edge is None else edge.users)
            if gathered(user) == (indices, edge)
        ]
        found: list[list[Any]] = [[begin], rows, [edge]]
        for number, olds in enumerate(found):
            for old in olds:
                if old is not None:
                    self._replace(old, number, slot)
                    yield old

    def _replace(self, old: Node, number: int, slot: int) -> None:
        new = self._part(self._list(number), slot, example(old))
        if number == 3 and self.chain.drops:
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
    """Reads the length of a vector from it instead of computing it."""
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
