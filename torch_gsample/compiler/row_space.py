"""Programs on the rows of an extract: all of them, or those with an edge.

``A[:, seeds]`` has as many rows as the graph has nodes, few of them with an
edge. Rowwise values can be computed for these rows only, with local ids from
``unique_nodes``: the extract is then *compact*, else *full*.

A :class:`RowSpace` finds the computations of a program in one space, and
builds *twins*: nodes with the same values in the other space. Rows without an
edge must have weight 0 by construction, so that they are never sampled.
"""

import operator
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    aten,
    call,
    choose,
    example,
    is_operator,
    is_pure,
    parts,
)
from torch_gsample.torch_private import OpOverload

gsample = torch.ops.gsample

#: Elementwise operators with correct rounding, whose results do not depend on
#: the position in a vector.
_EXACT = frozenset(
    {
        aten.add.Tensor,
        aten.sub.Tensor,
        aten.mul.Tensor,
        aten.div.Tensor,
        aten.neg.default,
        aten.abs.default,
        aten.relu.default,
        aten.sqrt.default,
        aten.pow.Tensor_Scalar,
        aten.detach.default,
        aten.to.dtype,
    }
)
_SUMS = frozenset({aten.add.Tensor, aten.sub.Tensor})


class Unsupported(Exception):
    """The program requires its rows as written."""


class RowSpace:
    """The computations of a program for the rows of an extract.

    Args:
        graph (Graph): The program.
        extract (Node): A call of ``slice_cols``.
        changed (Set[Node]): Nodes changed in place.
    """

    def __init__(self, graph: Graph, extract: Node, changed: set[Node]):
        self._graph, self._changed = graph, changed
        #: Values and positions of rows, candidates with their weights, and
        #: results for the rest of the program; all with their twins.
        self._vectors: dict[Node, Node] = {}
        self._positions: dict[Node, Node] = {}
        self._weights: dict[Node, Node] = {}
        self._joins: dict[Node, Node] = {}
        #: Vectors that are 0 for rows without an edge.
        self._zero: set[Node] = set()
        self._gathered: dict[Node, Node] = {}
        rows = parts(extract).get(1)
        if rows is None or rows in changed:
            raise Unsupported
        unique = [u for u in rows.users if is_operator(u, 'unique_nodes')]
        compact = [u for u in unique if u.args[2:] == (True,)]
        self.is_compact = bool(compact)
        if self.is_compact:
            self._read_compact(rows, compact[0])
        else:
            self._add_compact(rows)

    def _read_compact(self, rows: Node, unique: Node) -> None:
        found = parts(unique)
        sizes = [] if 0 not in found else _sizes(found[0])
        if set(found) != {0, 1} or len(sizes) != 1:
            raise Unsupported
        self._nodes = found[0]
        self._index, self._twin_index = found[1], rows
        self._size, self._twin_size = sizes[0], unique.args[1]

    def _add_compact(self, rows: Node) -> None:
        added = [
            u for u in rows.users if is_sum_from_zero(u) and u.args[2] is rows
        ]
        if not added:
            raise Unsupported
        [self._size] = added[0].args[0].args[1]  # type: ignore
        if not isinstance(self._size, int):
            raise Unsupported
        with self._graph.inserting_before(rows.next):
            operands = rows, self._size, True
            unique = self._call(gsample.unique_nodes.default, *operands)
            self._nodes = self._call(operator.getitem, unique, 0)
            self._twin_index = self._call(operator.getitem, unique, 1)
            size = self._call(aten.sym_size.int, self._nodes, 0)
        self._index, self._twin_size = rows, size

    def _call(self, target: Any, *args: Any) -> Node:
        return call(self._graph, target, args)

    def choose(self, site: str) -> None:
        """Adds the other space, and a choice between equal values.

        Raises:
            Unsupported: If the program requires the written space. Nodes added
                before have no users.
        """
        for node in list(self._graph.nodes):
            if self._takes(node):
                after = node if node.op == 'output' else node.next
                with self._graph.inserting_before(after):
                    self._visit(node)
        if not self._vectors:
            raise Unsupported
        labels = ('full', 'compact')[:: -1 if self.is_compact else 1]
        twins = self._vectors, self._positions, self._weights, self._joins
        own = {
            node for part in twins for pair in part.items() for node in pair
        }
        own.update(self._gathered.values())
        for node, twin in self._joins.items():
            both: dict[str, Any] = dict(zip(labels, (node, twin), strict=True))
            with self._graph.inserting_after(max(node, twin)):
                joined = self._graph.call_function(choose, (site,), both)
            joined.meta = dict(node.meta)
            for user in set(node.users) - own - {joined}:
                user.replace_input_with(node, joined)

    def _takes(self, node: Node) -> bool:
        """Whether a node uses something of the space."""
        parts = self._vectors, self._positions, self._weights, {self._index}
        return any(n in part for n in node.all_input_nodes for part in parts)

    def _takes_vector(self, node: Node) -> bool:
        return not self._vectors.keys().isdisjoint(node.all_input_nodes)

    # One node.

    def _visit(self, node: Any) -> None:
        """Builds the twin of a node.

        Raises:
            Unsupported: If that is not possible.
        """
        if node in self._changed:
            raise Unsupported
        args = node.args
        if is_sum_from_zero(node) and args[2] is self._index:
            self._visit_row_sum(node)
        elif node.target in _EXACT and self._takes_vector(node):
            self._visit_elementwise(node)
        elif is_operator(node, 'positive_weights') and args[0] in self._zero:
            vector = self._vectors[args[0]]
            self._weights[node] = self._call(node.target, vector)
        elif args[0] in self._weights:
            twin = self._call(node.target, self._weights[args[0]], args[1])
            part = self._joins if args[1] == 1 else self._positions
            part[node] = twin
        elif node.target is aten.sum.default and args[0] in self._zero:
            if len(args) > 1 or not _is_only_a_value(node):
                raise Unsupported
            vector = self._vectors[args[0]]
            self._joins[node] = self._call(node.target, vector)
        elif node.target is aten.sym_size.int and args[0] in self._positions:
            rows = self._positions[args[0]]
            self._joins[node] = self._call(node.target, rows, 0)
        else:
            self._visit_use(node)

    def _visit_row_sum(self, node: Any) -> None:
        fill, _, _, source = node.args
        if fill.args[1] != (self._size,) and fill.args[1] != [self._size]:
            raise Unsupported
        args = fill.args[0], [self._twin_size], *fill.args[2:]
        zeros = self._call(fill.target, *args)
        self._vectors[node] = self._call(
            node.target, zeros, 0, self._twin_index, source
        )
        self._zero.add(node)

    def _visit_elementwise(self, node: Any) -> None:
        if not is_exact(node) or example(node).dim() != 1:
            raise Unsupported
        args = [self._operand(arg) for arg in node.args]
        self._vectors[node] = self._call(node.target, *args)
        zero = [arg in self._zero for arg in node.args]
        if self.is_compact and node.target is aten.div.Tensor:
            stays = zero[0] and not isinstance(node.args[1], Node)
        elif node.target is aten.mul.Tensor:
            stays = any(zero)
        elif node.target in _SUMS:
            stays = all(zero)
        else:
            stays = zero[0]
        if stays:
            self._zero.add(node)

    def _operand(self, value: Any) -> Any:
        """Returns an elementwise operand in the other space.

        A dense vector is read at rows with an edge. Values written for these
        rows only may not be finite elsewhere, and 0 times them may be NaN.
        """
        if not isinstance(value, Node):
            return value
        for part in (self._vectors, self._joins):
            if value in part:
                return part[value]
        if self.is_compact:
            raise Unsupported
        return self._gather(value)

    def _gather(self, dense: Node) -> Node:
        """Reads a vector of all rows at rows with an edge.

        If it is computed elementwise from others, these are read instead.
        """
        tensor = example(dense)
        if dense in self._changed or not isinstance(tensor, Tensor):
            raise Unsupported
        if tensor.dim() == 0:
            return dense
        if tensor.shape != (self._size,):
            raise Unsupported
        if dense not in self._gathered:
            exact = dense.target in _EXACT and not dense.kwargs
            if exact and dense.target is not aten.pow.Tensor_Scalar:
                args = [
                    self._gather(arg) if isinstance(arg, Node) else arg
                    for arg in dense.args
                ]
                self._gathered[dense] = self._call(dense.target, *args)
            else:
                self._gathered[dense] = self._call(
                    aten.index_select.default, dense, 0, self._nodes
                )
        return self._gathered[dense]

    def _visit_use(self, node: Any) -> None:
        """Handles a slice of rows, a gather, or another use of rows."""
        args = node.args
        source, index = _gather_of(node) or (None, None)
        if source in self._vectors:
            twins = {**self._positions, self._index: self._twin_index}
            if index not in twins:
                raise Unsupported
            rows = twins[index]
            self._joins[node] = self._call(
                aten.index_select.default, self._vectors[source], 0, rows
            )
        elif source in self._positions and index not in self._positions:
            self._positions[node] = self._call(
                node.target, self._positions[source], *args[1:]
            )
        elif source is self._nodes and index in self._positions:
            self._joins[node] = self._positions[index]
        elif self._is_slice(node):
            pointers, _, _, rows = args
            space = self._twin_index, self._twin_size
            self._joins[node] = self._call(
                node.target, pointers, *space, self._positions[rows]
            )
        elif self.is_compact or self._takes_vector(node):
            raise Unsupported
        else:
            self._use_nodes(node)

    def _is_slice(self, node: Any) -> bool:
        """Whether a node selects sampled rows of the extract."""
        args = node.args
        return (
            is_operator(node, 'slice_rows')
            and len(args) == 4
            and not node.kwargs
            and args[1] is self._index
            and args[2] == self._size
            and args[3] in self._positions
        )

    def _use_nodes(self, node: Node) -> None:
        """Maps rows to nodes of the graph, as rows of a full extract are."""
        for rows in node.all_input_nodes:
            if rows in self._positions and rows not in self._joins:
                twin = self._positions[rows]
                with self._graph.inserting_after(twin):
                    self._joins[rows] = self._call(
                        aten.index_select.default, self._nodes, 0, twin
                    )


def _sizes(node: Node) -> list[Node]:
    return [u for u in node.users if u.target is aten.sym_size.int]


def is_exact(node: Any) -> bool:
    """Whether a node is elementwise, with position-independent rounding."""
    if node.target not in _EXACT or node.kwargs:
        return False
    return node.target is not aten.pow.Tensor_Scalar or node.args[1] == 2


def is_sum_from_zero(node: Any) -> bool:
    """Whether a node sums values of edges, one number per edge."""
    if node.target is not aten.index_add.default or node.kwargs:
        return False
    fill = node.args[0]
    zero: bool = fill.target is aten.new_zeros.default or (
        fill.target is aten.new_full.default and fill.args[2] == 0
    )
    one = example(node.args[3]).dim() == 1
    return zero and one and node.args[1] == 0


def _gather_of(node: Node) -> tuple[Any, Any] | None:
    """Returns tensor and index of a gather along the first dimension."""
    args: Any = node.args
    if node.target is aten.index_select.default and args[1] == 0:
        return args[0], args[2]
    if node.target is aten.index.Tensor and len(args[1]) == 1:
        return args[0], args[1][0]
    return None


def _is_only_a_value(node: Node) -> bool:
    """Whether no sample depends on the rounding of a value."""
    seen, todo = set(), [node]
    while todo:
        for user in todo.pop().users:
            if user in seen or user.op == 'output':
                continue
            target, value = user.target, example(user)
            if (
                not is_pure(user)
                or not isinstance(target, OpOverload)
                or target.namespace != 'aten'
                or not isinstance(value, Tensor)
                or not value.is_floating_point()
            ):
                return False
            seen.add(user)
            todo.append(user)
    return True
