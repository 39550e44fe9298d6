"""Computes selection weights once per graph if they depend only on it.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int32[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = getitem(%0, 2): int64[?]
    %4 = aten.index_select(value, 0, %3): float32[?]
    %5 = aten.index_select(degree, 0, %2): float32[?]
    %6 = aten.div.Tensor(%4, %5): float32[?]
    %7 = gsample.cumulate_weights(%1, %6): int64[?]

After::

    %0 = aten.index_select(degree, 0, indices): float32[900]
    %1 = aten.div.Tensor(value, %0): float32[900]
    %2 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %3 = getitem(%2, 0): int32[?]
    %4 = getitem(%2, 2): int64[?]
    %5 = aten.index_select(%1, 0, %4): float32[?]
    %6 = gsample.cumulate_weights(%3, %5): int64[?]

``fuse_extract_select`` then cumulates the weights of the graph, and
``hoist_invariant`` caches them until a tensor of the graph changes. So the
cost of a draw is that of its selected edges (gSampler, section 4.2). Other
users of the weights read those of the graph, too.

A weight may depend on values of edges, on vectors of rows and of columns
(``A.degree(1)``, ``x[seeds]``), on the degrees of the extract, and on sums of
its columns, which equal those of the graph.

Not when: a weight depends on a vector that is an argument of the function or
belongs to a module (each call may have another one, and would cost the whole
graph); a value requires a gradient, is larger than 1 GiB or of unknown size;
an operator rounds differently depending on an element's position, or runs
under ``autocast``; or a tensor is changed in place.
"""

import math
import operator
from typing import Any

from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.edge_work import pointers_of
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    may_change,
    modes,
    part_of,
    placeholders,
    same_size,
)
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes
from torch_gsample.compiler.row_space import is_sum_from_zero
from torch_gsample.compiler.row_wise import (
    is_elementwise,
    is_exact,
    row_operands,
    with_operands,
)

_MOST_BYTES = 2**30


def hoist_weights(graph: Graph) -> list[str]:
    """Moves extracts' weights that depend only on the graph before them."""
    static, notes = _static_nodes(graph), []
    entered = {node for node, mode in modes(graph).items() if mode[1]}
    barred = entered | may_change(graph)
    for node in list(graph.nodes):
        if not is_operator(node, 'cumulate_weights'):
            continue
        pointers, values = node.args[:2]
        while values.target is aten.detach.default:
            values = values.args[0]
        extract = part_of(pointers, 'slice_cols', 0)
        if extract is None or _is_of_edges(values, extract):
            continue
        whole = _Whole(graph, extract, static, barred, values)
        try:
            edges = whole.edges(values)
        except _Unknown:
            whole.erase()
            continue
        edge = whole.add(operator.getitem, (extract, 2))
        edge.meta['example_value'] = example(extract)[2]
        new = whole.add(aten.index_select.default, (edges, 0, edge))
        new.meta = dict(values.meta)
        values.replace_all_uses_with(new)
        notes.append(f'{values.name}: weights are computed once a graph')
    if notes:
        eliminate_common(graph)  # each layer of a program computes them
    return notes


def _static_nodes(graph: Graph) -> set[Node]:
    """Returns values that are most likely the same in all calls."""
    invariant, found = invariant_nodes(graph), set[Node]()
    given = {
        node
        for node in placeholders(graph)
        if node.meta.get('is_argument') or node.meta.get('is_of_module')
    }
    for node in graph.nodes:
        operands = node.all_input_nodes
        if node in invariant - given and found.issuperset(operands):
            found.add(node)
    return found


def _is_of_edges(values: Node, extract: Node) -> bool:
    """Whether values are gathered directly by the edges of an extract."""
    gather = gathered(values)
    return gather is not None and (
        part_of(gather[1], 'slice_cols', 2) is extract
    )


class _Unknown(Exception):
    """A value does not depend on the graph alone."""


class _Whole:
    """Computes for the graph what a program computes for an extract.

    Args:
        graph (Graph): The program.
        extract (Node): A call of ``slice_cols``.
        static (Set[Node]): Nodes that depend only on the graph.
        barred (Set[Node]): Nodes changed in place, or under a mode.
        before (Node): Position of added nodes.
    """

    def __init__(
        self,
        graph: Graph,
        extract: Node,
        static: set[Node],
        barred: set[Node],
        before: Node,
    ):
        self._graph, self._extract, self._static = graph, extract, static
        self._barred, self._before = barred, before
        self._indptr, self._indices, self._cols = extract.args[:3]
        columns, edges = (
            example(n).shape[0]  # type: ignore[arg-type]
            for n in (self._indptr, self._indices)
        )
        self._num_cols, self._num_edges = columns - 1, edges
        self._added: list[Node] = []
        self._edges: dict[Node, Node] = {}
        self._columns: dict[Node, Node] = {}
        self._column: Node | None = None

    def edges(self, node: Node) -> Node:
        """Returns a node's values for all edges instead of the extract's.

        Raises:
            _Unknown: If they do not depend on the graph alone.
        """
        if node not in self._edges:
            self._edges[node] = self._of_edges(node)
        return self._edges[node]

    def _of_edges(self, node: Node) -> Node:
        self._check(node)
        if part_of(node, 'slice_cols', 1) is self._extract:
            return self._is_static(self._indices)
        found = gathered(node)
        if found is None:
            return self._mapped(node, self._num_edges, self.edges)
        source, index = found
        if part_of(index, 'slice_cols', 2) is self._extract:
            if not same_size(example(source).shape[0], self._num_edges):
                raise _Unknown
            return self._is_static(source)
        if self._is_column(index):
            args = self.columns(source), 0, self._columns_of(index)
            target = aten.index_select.default
            return self._sized(node, self._num_edges, target, args)
        self._is_static(source)
        args, kwargs = with_operands(node, {index: self.edges(index)})
        return self._sized(node, self._num_edges, node.target, args, **kwargs)

    def columns(self, node: Node) -> Node:
        """Returns a node's values for all columns instead of the extract's.

        Raises:
            _Unknown: If they do not depend on the graph alone.
        """
        if node not in self._columns:
            self._columns[node] = self._of_columns(node)
        return self._columns[node]

    def _of_columns(self, node: Node) -> Node:
        self._check(node)
        size = self._num_cols
        found = gathered(node)
        if found is not None:
            if found[1] is not self._cols or not same_size(
                example(found[0]).shape[0], size
            ):
                raise _Unknown
            return self._is_static(found[0])
        if node.target is aten.diff.default and len(node.args) == 1:
            if part_of(node.args[0], 'slice_cols', 0) is not self._extract:
                raise _Unknown
            args: Any = (self._is_static(self._indptr),)
            return self._sized(node, size, node.target, args)
        if is_sum_from_zero(node) and self._is_column(node.args[2]):
            fill, _, column, source = node.args
            like = self.edges(source)  # type: ignore[arg-type]
            args = like, (size,), *fill.args[2:]  # type: ignore[union-attr]
            zeros = self._sized(node, size, fill.target, args)  # type: ignore[union-attr]
            args = zeros, 0, self._columns_of(column), like
            return self._sized(node, size, node.target, args)
        return self._mapped(node, size, self.columns)

    def _mapped(self, node: Node, size: Any, of: Any) -> Node:
        """Returns the same operator on the whole graph."""
        operands = row_operands(node)
        if not operands or not is_elementwise(node) or not is_exact(node):
            raise _Unknown
        for other in set(node.all_input_nodes) - set(operands):
            self._is_static(other)
        args, kwargs = with_operands(node, {n: of(n) for n in operands})
        return self._sized(node, size, node.target, args, **kwargs)

    def _check(self, node: Node) -> None:
        if not self._barred.isdisjoint([node, *node.all_input_nodes]):
            raise _Unknown

    def _is_static(self, node: Any) -> Node:
        if node not in self._static or not node < self._before:
            raise _Unknown
        return node

    def _is_column(self, index: Any) -> bool:
        """Whether an index is the column of each edge of the extract."""
        found = pointers_of(index)
        return found is not None and (
            part_of(found[0], 'slice_cols', 0) is self._extract
        )

    def _columns_of(self, index: Any) -> Node:
        """Returns the column of each edge of the graph."""
        if self._column is None:
            pointers = self._is_static(self._indptr)
            numbers = self._sized(
                index, self._num_cols, aten.arange.default, (self._num_cols,)
            )
            counts = self._sized(
                pointers, self._num_cols, aten.diff.default, (pointers,)
            )
            self._column = self._sized(
                index,
                self._num_edges,
                aten.repeat_interleave.self_Tensor,
                (numbers, counts),
                output_size=self._num_edges,
            )
        return self._column

    def _sized(
        self, like: Node, size: Any, target: Any, args: Any, **kwargs: Any
    ) -> Node:
        """Adds a node with the rows of a node, for the whole graph."""
        value: Tensor = example(like)
        shape = size, *value.shape[1:]
        if not all(type(item) is int for item in shape):
            raise _Unknown
        if math.prod(shape) * value.element_size() > _MOST_BYTES:
            raise _Unknown
        node = self.add(target, args, **kwargs)
        node.meta['example_value'] = value.detach().new_empty(shape)
        return node

    def add(self, target: Any, args: Any, **kwargs: Any) -> Node:
        """Adds a node."""
        with self._graph.inserting_before(self._before):
            node = self._graph.call_function(target, args, kwargs)
        self._added.append(node)
        return node

    def erase(self) -> None:
        """Removes all added nodes."""
        for node in reversed(self._added):
            self._graph.erase_node(node)
