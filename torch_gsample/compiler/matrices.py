"""The matrices of a program: extracts, selections and compact ones.

A graph comes in, a list of :class:`Matrix` goes out: the tensors with an
element per edge, and the uses of them that depend on the order of edges. In
another order, elementwise operators and gathers return the same elements in
that order. Sizes, counts, sorted nodes and sums of rows do not change, as
edges keep their order within a row.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.edge_work import pointers_of
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_operator,
    may_change,
    parts,
    tensors_of,
)
from torch_gsample.compiler.passes.hoist_invariant import is_of_graph
from torch_gsample.compiler.row_space import is_exact, is_sum_from_zero

_SLICES = 'slice_rows', 'slice_cols'
#: For each slice, the argument with rows or columns, and their number.
CHOSEN = {'slice_rows': (3, 4), 'slice_cols': (2, 3)}
_INTEGERS = torch.int32, torch.int64
_FILLS = aten.new_full.default, aten.new_zeros.default


@dataclass(eq=False)
class Matrix:
    """A matrix in compressed columns, as a program builds it.

    Args:
        name (str): Its operator, with the operator's index.
        by (str): Its operator; empty for edges of an input.
        indptr (torch.fx.Node, optional): The start of each column.
        rows (torch.fx.Node, optional): The row of each edge.
        edge (torch.fx.Node, optional): The edge of the parent.
        num_rows (int or torch.fx.Node, optional): Number of rows.
        operator (torch.fx.Node, optional): The node that builds it.
        parent (Matrix, optional): The matrix from which it is built.
    """

    name: str
    by: str
    indptr: Any = None
    rows: Any = None
    edge: Any = None
    num_rows: Any = None
    operator: Any = None
    parent: 'Matrix | None' = None
    #: Uses of its edges, in order, that do not depend on their order: tensors
    #: with an element per edge, and sinks, which have none.
    uses: list[Any] = field(default_factory=list)
    sinks: set[Any] = field(default_factory=set)
    #: The column of each edge.
    columns: list[Any] = field(default_factory=list)
    #: Whether a use depends on the order of edges, or reads column pointers.
    is_ordered: bool = False
    is_pointed: bool = False


class MatrixReader:
    """Finds the matrices of a program.

    Args:
        graph (Graph): The program.
        names (Dict[torch.fx.Node, str]): Operators that may be matrices.
    """

    def __init__(self, graph: Graph, names: dict[Node, str]):
        self._names, self._changed = names, may_change(graph)
        self._count = 0
        self.matrices: list[Matrix] = []
        #: For tensors with an element per edge, their matrix; which of them
        #: are positions of rows; the matrices of pointers.
        self._owner: dict[Node, Matrix] = {}
        self._places: set[Node] = set()
        self._pointers: dict[Node, Matrix] = {}
        self._known: dict[tuple[Any, Any], Matrix] = {}
        for node in list(graph.nodes):
            self._visit(node)

    def _visit(self, node: Node) -> None:
        if self._is_slice(node):
            self._add_slice(node)
            return
        pointers = [n for n in node.all_input_nodes if n in self._pointers]
        for n in pointers:
            self._visit_pointers(node, self._pointers[n])
        self._visit_columns(node)
        inputs = node.all_input_nodes
        owners = {self._owner[n] for n in inputs if n in self._owner}
        if not owners:
            return
        if len(owners) == 1 and node not in self._changed:
            [owner] = owners
            if self._is_map(node):
                self._own(node, owner)
            elif self._is_sink(node):
                owner.uses.append(node)
                owner.sinks.add(node)
            elif _is_sorted_unique(node):
                self._add_compact(node, owner)
            else:
                owner.is_ordered = True
            return
        inner = self._owner_of_gather(node)
        if inner is not None and node not in self._changed:
            self._own(node, inner)
        else:
            for owner in owners:
                owner.is_ordered = True

    def _own(self, node: Node, owner: Matrix) -> None:
        self._owner[node] = owner
        owner.uses.append(node)
        cast = node.target is aten.to.dtype and node.args[0] in self._places
        if cast and example(node).dtype in _INTEGERS:
            self._places.add(node)

    # Matrices.

    def _is_slice(self, node: Any) -> bool:
        """Whether a node builds a matrix from another one, on a CPU."""
        if node not in self._names:
            return False
        by = self._names[node].partition('[')[0]
        if by not in _SLICES or len(node.args) != CHOSEN[by][1]:
            return False
        indptr, rows = node.args[:2]
        taken = {node, *parts(node).values(), indptr, rows}
        # A GPU may read a graph in pinned memory.
        devices = {x.device.type for x in (example(rows), *tensors_of(node))}
        return (
            not node.kwargs
            and self._changed.isdisjoint(taken)
            and devices == {'cpu'}
        )

    def _add_slice(self, node: Any) -> None:
        name = self._names[node]
        by, found = name.partition('[')[0], parts(node)
        source = self._known.get(node.args[:2])
        if source is None:
            source = self._add_edges(*node.args[:2])
        whole = source if by == 'slice_rows' else None
        while whole is not None and whole.num_rows is None:
            whole.num_rows = node.args[2]
            whole = whole.parent if whole.by == 'slice_cols' else None
        # The selected ids may themselves be a tensor of edges.
        if (chosen := self._owner.get(node.args[CHOSEN[by][0]])) is not None:
            chosen.is_ordered = True
        size = None if by == 'slice_cols' else node.args[3]
        matrix = Matrix(
            name,
            by,
            found.get(0),
            found.get(1),
            found.get(2),
            source.num_rows if size is None else size,
            node,
            source,
        )
        self._add(matrix)

    def _add(self, matrix: Matrix) -> None:
        self.matrices.append(matrix)
        if matrix.indptr is not None:
            self._pointers[matrix.indptr] = matrix
            self._known[matrix.indptr, matrix.rows] = matrix
        for part in (matrix.rows, matrix.edge):
            if part is not None:
                self._owner[part] = matrix
        if matrix.rows is not None:
            self._places.add(matrix.rows)

    def _add_edges(self, indptr: Any, rows: Any) -> Matrix:
        """Adds edges that are not a slice, such as those of the graph."""
        if (owner := self._owner.get(rows)) is not None:
            owner.is_ordered = True
        if (owner := self._pointers.get(indptr)) is not None:
            owner.is_pointed = True
        source = Matrix(f'graph[{self._count}]', '', indptr, rows)
        self._count += 1
        self.matrices.append(source)
        self._known[indptr, rows] = source
        return source

    def _add_compact(self, node: Any, owner: Matrix) -> None:
        """Adds a matrix without its empty rows."""
        found = parts(node)
        if 2 in found:
            owner.is_ordered = True
        owner.uses.append(node)
        local = found.get(1)
        if local is None:
            return
        self._owner[local] = owner
        if node.args[0] not in self._places:
            return
        self._places.add(local)
        name = self._names.get(node)
        if name is not None and owner.indptr is not None:
            size = found.get(0)
            made = Matrix(name, 'unique_nodes', owner.indptr, local)
            made.num_rows, made.operator, made.parent = size, node, owner
            self.matrices.append(made)
            self._known[owner.indptr, local] = made

    # Uses.

    def _visit_pointers(self, node: Node, owner: Matrix) -> None:
        """Records uses of pointers other than the column of each edge."""
        plain = node.target is aten.diff.default and len(node.args) == 1
        if not plain or not all(map(_is_columns, node.users)):
            owner.is_pointed = True

    def _visit_columns(self, node: Any) -> None:
        owner = None
        if _is_columns(node):
            owner = self._pointers.get(pointers_of(node)[0])  # type: ignore
        if owner is not None:
            owner.columns.append(node)
            self._owner[node] = owner

    def _is_map(self, node: Any) -> bool:
        found = gathered(node)
        if found is not None:
            source, index = found
            return index in self._owner and source not in self._owner
        if node.target is aten.to.dtype:
            return len(node.args) == 2 and not node.kwargs
        if not is_exact(node) or example(node).dim() != 1:
            return False
        return all(
            n in self._owner or _is_scalar(n) for n in node.all_input_nodes
        )

    def _is_sink(self, node: Any) -> bool:
        """Whether a use does not depend on the order of edges."""
        args = node.args
        if node.target is aten.sym_size.int or node.target in _FILLS:
            return args[0] in self._owner
        if node.target is aten.bincount.default:
            return len(args) < 2 or args[1] is None
        if node.target is aten.index_fill.int_Scalar:
            return args[0] not in self._owner
        return (
            is_sum_from_zero(node)
            and args[2] in self._places
            and args[3] in self._owner
        )

    def _owner_of_gather(self, node: Any) -> Matrix | None:
        """Returns the matrix that gathers from its parent's edges."""
        found: Any = gathered(node) or (None, None)
        source, index = found
        if index not in self._owner or source not in self._owner:
            return None
        inner, outer = self._owner[index], self._owner[source]
        if index is not inner.edge:
            return None
        parent = inner.parent
        while parent is not None and parent.by == 'unique_nodes':
            parent = parent.parent
        return inner if parent is outer else None


def is_kept(matrix: Matrix) -> bool:
    """Whether a matrix is an input that is likely the same in many calls."""
    return all(
        part.op == 'placeholder' and is_of_graph(part)
        for part in (matrix.indptr, matrix.rows)
    )


def _is_columns(node: Node) -> bool:
    """Whether a node is the column of each edge, from pointers."""
    target = aten.repeat_interleave.self_Tensor
    return node.target is target and pointers_of(node) is not None


def _is_scalar(node: Node) -> bool:
    value = example(node)
    return not isinstance(value, Tensor) or value.dim() == 0


def _is_sorted_unique(node: Any) -> bool:
    return (
        is_operator(node, 'unique_nodes')
        and node.args[2:] == (True,)
        and not node.kwargs
        and example(node.args[0]).dtype in _INTEGERS
    )
