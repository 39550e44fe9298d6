"""Joint choice of the layouts of all matrices in a program.

The matrices of :mod:`.matrices` come in, the layouts of least total cost go
out (:mod:`.layout_forest`), and the program is changed (:mod:`.by_row`). A
matrix is in one of these states:

===========  ==============================================================
``csc``      built by column, as written
``csc>csr``  and sorted by row, once, for slices of it
``csr``      built by row, from a parent that is by row
``coo``      built by row and put in the promised order, without pointers
``...>coo``  by row, and everything else in the promised order
``...>csc``  the same, and with pointers of columns
===========  ==============================================================

Uses that depend on the order of edges get the promised one, at any cost.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.by_row import RowOrder, is_by_row
from torch_gsample.compiler.cost import (
    BATCH_EDGES,
    CALL,
    CALLS_OF_A_GRAPH,
    EDGE_COST,
    spell,
)
from torch_gsample.compiler.errors import OptionError
from torch_gsample.compiler.ir import example, gathered
from torch_gsample.compiler.layout_forest import Item, assign
from torch_gsample.compiler.matrices import Matrix, MatrixReader, is_kept

_BY_ROW = 'csr', 'coo', 'coo>csc', 'csr>coo', 'csr>csc'
_STATES = 'csc', 'csc>csr', *_BY_ROW
#: Assumed number of columns of a batch.
_BATCH_NODES = 1 << 10
#: Another layout must be predicted to take less than this share of the
#: written layout's time.
_GAIN = 0.95


class JointLayouts:
    """Chooses the layouts of the matrices from one graph.

    Args:
        graph (Graph): The program.
        site (str): The name of the choice.
        matrices (List[Matrix]): The graph and its derived matrices, in order.
        layout (str or Dict[str, str]): The user's option.
    """

    def __init__(
        self,
        graph: Graph,
        site: str,
        matrices: list[Matrix],
        layout: str | Mapping[str, str],
    ):
        self._graph, self._matrices, self.site = graph, matrices, site
        self._place = {m: i for i, m in enumerate(matrices)}
        self._items = [self._item(m) for m in matrices]
        #: The available layouts of each matrix.
        self.offered = {
            m.name: labels
            for i, m in enumerate(matrices)
            if m.by and len(labels := self._labels(i)) > 1
        }
        #: Seconds of the program as written, and as chosen.
        self.cost: dict[str, float] = {}
        self._forced: dict[int, str] = {}
        for i, matrix in enumerate(matrices):
            wanted = layout
            if not isinstance(layout, str):
                wanted = layout.get(matrix.name, 'auto')
            if wanted in self.offered.get(matrix.name, ()):
                self._forced[i] = str(wanted)

    @property
    def is_forced(self) -> bool:
        """Whether the user chose."""
        return bool(self._forced)

    def choose(self) -> list[str]:
        """Adds the cheapest assignment as a choice, unless it is as written.

        Returns:
            List[str]: The layout of each matrix, and their total cost.

        Raises:
            OptionError: If the user's choices contradict each other.
        """
        cost, states = self._assign(self._forced)
        if cost == math.inf:
            raise OptionError(
                "gsample: 'layout' must be compatible (got "
                f'{self._forced} of {self.offered}, where one '
                'excludes another)'
            )
        written, _ = self._assign(dict.fromkeys(self._place.values(), 'csc'))
        if not self._forced and cost > _GAIN * written:
            states = ['csc'] * len(states)
        self.cost = {'csc': written, 'joint': cost}
        if any(state != 'csc' for state in states):
            found = dict(zip(self._matrices, states, strict=True))
            RowOrder(self._graph, self.site, found)
        return [
            self._note(i, states[i])
            for i, matrix in enumerate(self._matrices)
            if matrix.by
        ]

    def _labels(self, i: int) -> list[str]:
        """Returns the layouts of a matrix with a feasible assignment."""
        labels = dict.fromkeys(map(_label, self._items[i].own))
        return [x for x in labels if self._assign({i: x})[0] < math.inf]

    def _assign(self, forced: Mapping[int, str]) -> tuple[float, list[str]]:
        return assign(
            self._items,
            {
                i: [s for s in self._items[i].own if _label(s) == label]
                for i, label in forced.items()
            },
        )

    def _note(self, i: int, state: str) -> str:
        """Describes the layout of a matrix, and the total cost of each."""
        label, _, converted = state.partition('>')
        text = f'{self._matrices[i].name}: {label}'
        if converted:
            text += f', converted to {converted}'
        text += ', by option' if i in self._forced else ', chosen together'
        costs = {
            other: self._assign({**self._forced, i: other})[0]
            for other in self._labels(i)
        }
        costs = {k: v for k, v in costs.items() if v < math.inf}
        return f'{text}; predicted {spell(costs)}'

    # Costs.

    def _item(self, matrix: Matrix) -> Item:
        own = {s: self._own(matrix, s) for s in self._states(matrix)}
        if matrix.parent is None:
            return Item(matrix.name, own)
        parent = self._place[matrix.parent]
        # Parents come first.
        pairs = itertools.product(self._states(matrix.parent), own)
        made = {
            (outer, state): cost
            for outer, state in pairs
            if (cost := self._make(matrix, outer, state)) is not None
        }
        return Item(matrix.name, own, parent, made)

    def _states(self, matrix: Matrix) -> tuple[str, ...]:
        if matrix.by == 'unique_nodes':
            return self._states(matrix.parent)  # type: ignore[arg-type]
        can_sort = matrix.indptr is not None and matrix.rows is not None
        can_sort = can_sort and _is_known(matrix.num_rows)
        states: tuple[str, ...] = _STATES if matrix.by else _STATES[:2]
        if matrix.by == 'slice_cols' and not isinstance(
            _columns(matrix.parent), int
        ):
            states = states[:2]
        if matrix.is_ordered:
            states = tuple(s for s in states if s != 'csr')
        if matrix.is_pointed:
            states = tuple(
                s for s in states if s[:3] == 'csc' or s.endswith('csc')
            )
        return tuple(s for s in states if can_sort or s != 'csc>csr')

    def _own(self, matrix: Matrix, state: str) -> float:
        """Returns seconds of a matrix's uses, and of its conversions."""
        if matrix.by == 'unique_nodes':
            return 0.0
        n, cols = self._edges(matrix), _columns(matrix) or _BATCH_NODES
        unit, kept = EDGE_COST, 0.0
        gathers = sum(gathered(use) is not None for use in matrix.uses)
        columns = len(matrix.columns)
        expands = columns * (3 * CALL + unit['expand'] * (cols + n))
        if state == 'csc':
            return expands
        if state == 'csc>csr':
            rows = matrix.num_rows
            rows = rows if isinstance(rows, int) else _BATCH_NODES
            sort = unit['transpose'] * n + unit['pointer'] * rows
            once = CALLS_OF_A_GRAPH if is_kept(matrix) else 1
            return expands + (5 * CALL + sort) / once
        if state != 'csr':
            times = 2 if matrix.by == 'slice_cols' else 1
            kept += times * (6 * CALL + unit['sort'] * n)
            kept += (2 + columns) * (CALL + unit['gather'] * n)
        if state in ('csr>coo', 'csr>csc'):
            kept += gathers * (CALL + unit['gather'] * n)
        if state.endswith('csc'):
            kept += CALL + unit['pointer'] * cols
        return kept

    def _make(self, matrix: Matrix, outer: str, state: str) -> float | None:
        """Returns seconds to build a matrix from its parent, if possible."""
        if matrix.by == 'unique_nodes':
            return 0.0 if outer == state else None
        by_row = is_by_row(state)
        if by_row and outer == 'csc':
            return None
        if not by_row and is_by_row(outer) and not outer.endswith('csc'):
            return None
        source: Any = matrix.parent
        n, parent, cost = self._edges(matrix), self._edges(source), CALL
        if by_row == (matrix.by == 'slice_rows'):
            cost += EDGE_COST['near'] * n
        else:
            hit = EDGE_COST['hit' if source.parent is None else 'near hit']
            cost += EDGE_COST['search'] * parent + hit * n
        if by_row:  # the row and the edge id of each
            cost += 4 * CALL + (EDGE_COST['expand'] + EDGE_COST['gather']) * n
            if matrix.by == 'slice_cols':  # rows follow selected columns
                cost += 6 * CALL + EDGE_COST['sort'] * n
            if outer == 'csr':  # ranks of the parent
                cost += 2 * CALL + EDGE_COST['sort'] * parent
        elif matrix.by == 'slice_rows':
            cost += EDGE_COST['pointer'] * (_columns(source) or _BATCH_NODES)
        return cost

    def _edges(self, matrix: Matrix) -> int:
        """Returns the known or assumed number of edges of a matrix."""
        if matrix.by == 'unique_nodes':
            return self._edges(matrix.parent)  # type: ignore[arg-type]
        size = _length(matrix.rows)
        if isinstance(size, int):
            return size
        if matrix.parent is None:
            return BATCH_EDGES
        most = self._edges(matrix.parent)
        return min(BATCH_EDGES, most) if not matrix.parent.by else most // 2


def trees(
    graph: Graph, names: dict[Node, str], layout: str | Mapping[str, str]
) -> list[JointLayouts]:
    """Returns the matrices of a program, grouped by their graph.

    Args:
        graph (Graph): The program.
        names (Dict[torch.fx.Node, str]): Its operators, by node.
        layout (str or Dict[str, str]): The user's option.
    """
    found: dict[Matrix, list[Matrix]] = {}
    for matrix in MatrixReader(graph, names).matrices:
        found.setdefault(_root(matrix), []).append(matrix)
    return [
        JointLayouts(graph, f'layouts[{i}]', matrices, layout)
        for i, matrices in enumerate(found.values())
        if len(matrices) > 1
    ]


def _root(matrix: Matrix) -> Matrix:
    return matrix if matrix.parent is None else _root(matrix.parent)


def _label(state: str) -> str:
    return state.partition('>')[0]


def _length(node: Any) -> Any:
    value = example(node) if isinstance(node, Node) else None
    return value.shape[0] if isinstance(value, Tensor) else None


def _columns(matrix: Any) -> int | None:
    """Returns the number of columns of a matrix, if it is known."""
    if matrix.by == 'slice_cols':
        size = _length(matrix.operator.args[2])
    elif matrix.parent is not None:
        return _columns(matrix.parent)
    else:
        size = _length(matrix.indptr)
        size = size - 1 if isinstance(size, int) else None
    return size if isinstance(size, int) else None


def _is_known(num_rows: Any) -> bool:
    """Whether the number of rows is known before all operators."""
    if isinstance(num_rows, Node):
        return num_rows.op == 'placeholder' or _length(num_rows) is not None
    return num_rows is not None
