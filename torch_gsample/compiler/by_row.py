"""Edges of matrices in the order of rows, and back.

A :class:`ByRow` is a matrix in compressed rows. Within a row, edges have their
order by column, the *promised* order that a program sees. :class:`RowOrder`
adds these matrices to a program, computes there what does not depend on the
order, and passes edges in the promised order to everything else.
"""

import contextlib
import operator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    aten,
    call,
    choose,
    example,
    gathered,
    is_operator,
    parts,
    placeholders,
)
from torch_gsample.compiler.matrices import CHOSEN, Matrix, is_kept

gsample = torch.ops.gsample

#: Smaller integers are sorted in one pass.
_DIGIT = 1 << 14


@dataclass
class ByRow:
    """A matrix in compressed rows.

    Args:
        ptr (torch.fx.Node): The start of each row.
        col (torch.fx.Node): The column of each edge.
        row (torch.fx.Node): Its row.
        rank (torch.fx.Node): Its position in the promised order.
        num_cols (int or torch.fx.Node): Number of columns.
        order (torch.fx.Node, optional): The inverse of ``rank``.
        edge (torch.fx.Node, optional): Its edge of the parent, in the
            parent's promised order.
        inner (torch.fx.Node, optional): Likewise, in the parent's row order.
    """

    ptr: Node
    col: Node
    row: Node
    rank: Node
    num_cols: Any
    order: Any = None
    edge: Any = None
    inner: Any = None


def is_by_row(state: str) -> bool:
    """Whether a state builds the matrix in the order of its rows."""
    return not state.startswith('csc')


class RowOrder:
    """Adds matrices by row to a program, as the other candidate of a site.

    Args:
        graph (Graph): The program.
        site (str): The site; ``joint`` is by row, ``csc`` the written form.
        states (Dict[Matrix, str]): The layouts of each matrix.
    """

    def __init__(self, graph: Graph, site: str, states: dict[Matrix, str]):
        self._graph, self._site = graph, site
        self._made: dict[Matrix, ByRow] = {}
        self._twins: dict[Node, Node] = {}
        #: The node that each choice replaces.
        self._written: dict[Any, Node] = {}
        for matrix, state in states.items():
            if matrix.by == 'unique_nodes' and state != 'csc':
                self._made[matrix] = self._compact(matrix)
            elif is_by_row(state):
                self._replace(matrix, state)
            elif state == 'csc>csr':
                self._made[matrix] = self._convert(matrix)

    def _call(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        return call(self._graph, target, args, **kwargs)

    def _parts(self, target: Any, *args: Any, **kwargs: Any) -> list[Node]:
        out = self._call(target, *args, **kwargs)
        count = len(example(out))
        return [self._call(operator.getitem, out, i) for i in range(count)]

    def _size(self, value: Any) -> Any:
        """Returns a size, or the length of a vector."""
        tensor = example(value) if isinstance(value, Node) else None
        if not isinstance(tensor, Tensor):
            return value
        size = tensor.shape[0]
        if isinstance(size, int):
            return size
        return self._call(aten.sym_size.int, value, 0)

    def _as(self, value: Node, like: Node) -> Node:
        dtype = example(like).dtype
        if example(value).dtype == dtype:
            return value
        return self._call(aten.to.dtype, value, dtype)

    def _at(self, value: Node, index: Node) -> Node:
        return self._call(aten.index_select.default, value, 0, index)

    def _expand(self, ptr: Node, edges: Node, like: Node) -> Node:
        """Returns the row of each edge, from row pointers."""
        count = self._call(aten.diff.default, ptr)
        ids = self._ids(self._size(count), ptr)
        target = aten.repeat_interleave.self_Tensor
        row = self._call(target, ids, count, output_size=self._size(edges))
        return self._as(row, like)

    def _order(self, values: Node, size: Any) -> Node:
        """Sorts integers below a size stably, by counting digits."""
        if not isinstance(size, int) or size <= _DIGIT:
            sort = gsample.coo_to_csc.default
            return self._parts(sort, values, values, size, False, False)[2]
        bits = (size - 1).bit_length() // 2
        low = self._call(aten.bitwise_and.Scalar, values, (1 << bits) - 1)
        order = self._order(low, 1 << bits)
        shift = aten.bitwise_right_shift.Tensor_Scalar
        high = self._call(shift, self._at(values, order), bits)
        return self._at(order, self._order(high, ((size - 1) >> bits) + 1))

    # Construction of matrices by row.

    def _convert(self, matrix: Matrix) -> ByRow:
        """Sorts the edges of compressed columns by row, stably."""
        indptr, rows = matrix.indptr, matrix.rows
        with self._graph.inserting_before(_after(self._graph, indptr, rows)):
            col = self._expand(indptr, rows, rows)
            num_cols = self._size(self._call(aten.diff.default, indptr))
            wide = [example(x).dtype == torch.int64 for x in (indptr, rows)]
            num_rows = self._size(matrix.num_rows)
            sort = gsample.coo_to_csc.default
            ptr, col, rank = self._parts(sort, col, rows, num_rows, *wide)
            row = self._expand(ptr, col, rows)
        if is_kept(matrix):
            for node in (*ptr.all_input_nodes, ptr, col, rank):
                node.meta['invariant'] = True
        return ByRow(ptr, col, row, rank, num_cols)

    def _slice(self, matrix: Matrix) -> ByRow:
        """Builds a slice of compressed rows."""
        source, node = self._made[matrix.parent], matrix.operator  # type: ignore
        chosen, num_cols = node.args[CHOSEN[matrix.by][0]], source.num_cols
        if matrix.by == 'slice_rows':
            target = gsample.slice_cols.default
            operands: Any = source.ptr, source.col, chosen
        else:
            # A gather raises an error for unknown ids.
            chosen = self._at(self._ids(num_cols, chosen), chosen)
            target = gsample.slice_rows.default
            operands = source.ptr, source.col, num_cols, chosen
            num_cols = self._size(chosen)
        ptr, col, inner = self._parts(target, *operands)
        row = self._expand(ptr, col, node.args[1])
        if matrix.by == 'slice_cols':  # rows follow the selected columns
            order = self._order(col, num_cols)
            num_rows = self._size(self._call(aten.diff.default, ptr))
            by_row = self._order(self._at(row, order), num_rows)
            order = self._at(order, by_row)
            col, inner = self._at(col, order), self._at(inner, order)
        edge = self._at(source.rank, inner)
        # Copies of an edge keep the order of rows.
        order = self._order(edge, self._size(source.col))
        if matrix.by == 'slice_cols':
            place = self._at(col, order)
            order = self._at(order, self._order(place, num_cols))
        rank = self._order(order, self._size(order))
        return ByRow(ptr, col, row, rank, num_cols, order, edge, inner)

    def _ids(self, size: Any, like: Node) -> Node:
        """Returns the integers below a size, traced like ``like``."""
        node = self._graph.call_function(aten.arange.default, (size,))
        known = example(size) if isinstance(size, Node) else size
        mode = getattr(example(like), 'fake_mode', contextlib.nullcontext())
        with mode:
            node.meta['example_value'] = torch.arange(known)
        return node

    def _compact(self, matrix: Matrix) -> ByRow:
        """Drops rows without edges; the others keep their order."""
        source, node = self._made[matrix.parent], matrix.operator  # type: ignore
        with self._graph.inserting_before(max(node, source.row).next):
            unique = gsample.unique_nodes.default
            found = self._parts(unique, source.row, node.args[1], True)
            begin = self._at(source.ptr, found[0])
            end = self._call(aten.slice.Tensor, source.ptr, 0, -1)
            ptr = self._call(aten.cat.default, [begin, end])
        return replace(source, ptr=ptr, row=found[1])

    # Results for the program.

    def _replace(self, matrix: Matrix, state: str) -> None:
        """Builds a matrix by row; unused parts are dropped later."""
        with self._graph.inserting_before(matrix.operator.next):
            made = self._made[matrix] = self._slice(matrix)
            col, row = self._at(made.col, made.order), made.row
            parts = {
                matrix.rows: self._at(row, made.order),
                matrix.edge: self._at(made.edge, made.order),
                matrix.indptr: self._pointers(matrix, col, made.num_cols),
            }
        self._twins |= {matrix.rows: row, matrix.edge: made.edge}
        for node, twin in parts.items():
            if node is not None:
                self._join(node, twin)
        for node in matrix.columns:
            with self._graph.inserting_before(node.next):
                self._twins[node] = self._as(made.col, node)
                twin = self._as(col, node)
            self._join(node, twin)
        for node in matrix.uses if state.startswith('csr') else ():
            with self._graph.inserting_before(node.next):
                self._twins[node] = self._twin(matrix, node)
            if is_operator(node, 'unique_nodes'):
                self._join_unique(node)
            elif node in matrix.sinks:
                self._join(node, self._twins[node])

    def _pointers(self, matrix: Matrix, col: Node, num_cols: Any) -> Any:
        """Returns the start of each column, from the column of each edge."""
        if matrix.indptr is None:
            return None
        wide = example(matrix.indptr).dtype == torch.int64
        sort = gsample.coo_to_csc.default
        return self._parts(sort, col, col, num_cols, wide, False)[0]

    def _twin(self, matrix: Matrix, node: Node) -> Node:
        """Returns the same use for edges by row."""

        def written(n: Any) -> Any:
            return self._written.get(n, n)

        args, kwargs = map_arg((node.args, node.kwargs), written)
        twins = self._twins
        source, index = gathered(node) or (None, None)
        if written(index) is matrix.edge and written(source) in twins:
            twins = {**twins, matrix.edge: self._made[matrix].inner}
        args, kwargs = map_arg((args, kwargs), lambda n: twins.get(n, n))
        return self._call(node.target, *args, **kwargs)

    def _join_unique(self, node: Node) -> None:
        found, twin = parts(node), self._twins[node]
        for number, part in found.items():
            after = max(part, twin).next
            with self._graph.inserting_before(after):
                self._twins[part] = self._call(operator.getitem, twin, number)
            if number == 0:
                self._join(part, self._twins[part])

    def _join(self, node: Any, twin: Node) -> None:
        """Adds the choice between a node and its twin."""
        with self._graph.inserting_before(max(node, twin).next):
            both = {'csc': node, 'joint': twin}
            joined = self._graph.call_function(choose, (self._site,), both)
        joined.meta = dict(node.meta)
        self._written[joined] = node
        node.replace_all_uses_with(
            joined, delete_user_cb=lambda user: user is not joined
        )


def _after(graph: Graph, *nodes: Node) -> Node:
    """Returns the first position after some nodes and all inputs."""
    last = max(nodes)
    if last.op == 'placeholder':
        last = max(placeholders(graph))
    return last.next
