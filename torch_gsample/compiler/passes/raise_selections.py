"""Selects edges first, and computes values of the selected ones only.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int32[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = getitem(%0, 2): int64[?]
    %4 = aten.index_select(value, 0, %3): float32[?]
    %5 = aten.index_select(x, 0, %2): float32[?]
    %6 = aten.mul.Tensor(%4, %5): float32[?]
    %7 = aten.exp(%6): float32[?]
    %8 = gsample.sample_columns(%1, 5, key, id=seeds): 2 parts
    %9 = getitem(%8, 1): int64[?]
    %10 = aten.index_select(%7, 0, %9): float32[?]

After::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int32[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = getitem(%0, 2): int64[?]
    %4 = gsample.sample_columns(%1, 5, key, id=seeds): 2 parts
    %5 = getitem(%4, 1): int64[?]
    %6 = aten.index_select(%3, 0, %5): int64[?]
    %7 = aten.index_select(value, 0, %6): float32[?]
    %8 = aten.index_select(%2, 0, %5): int32[?]
    %9 = aten.index_select(x, 0, %8): float32[?]
    %10 = aten.mul.Tensor(%7, %9): float32[?]
    %11 = aten.exp(%10): float32[?]

``f(x)[i]`` equals ``f(x[i])`` for operators that compute a row of a result
from that row of their operands (``compiler/row_wise.py``): elementwise ones by
torch's tag, gathers, and reductions, products and ``softmax`` over features.
Values that the selection drops are not computed. If the selection is then the
only user of the extract, ``fuse_extract_select`` removes it. The column of a
selected edge follows from the pointers of the selection.

Selections are the edges selected by ``sample_columns`` and ``slice_rows``, by
masks, and by ``A[:, seeds]``. The division between this pass and
``sink_gathers``: values that depend only on the graph are computed once for
it, before their gather; values that depend on the batch, or require a
gradient, are computed after the selection. Gradients of dropped edges are then
exactly 0, even where the chain rule would give 0 times infinity.

Not when: the values of all edges have another user (a bias, a sum) and are
computed anyway; the rows of ``f`` are not known without a guard on a size;
draws depend on the selected values and ``f`` rounds differently depending on
an element's position; the parts run under different modes (``no_grad``,
``autocast``); the result would be a view; or a tensor is changed in place.
Products and sums of features are as accurate as before, but may round
differently.
"""

import operator
from collections.abc import Callable
from typing import Any

from torch.fx import Graph, Node

from torch_gsample.compiler.edge_work import decide_draws, pointers_of
from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    may_change,
    modes,
    needs_gradient,
    part_of,
    parts,
)
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes
from torch_gsample.compiler.row_wise import (
    is_exact,
    is_length,
    is_view,
    row_operands,
    users_but_lengths,
    with_operands,
)

#: Operators that select edges, with the index of that output.
_SELECTIONS = (
    ('sample_columns', 1),
    ('mask_columns', 1),
    ('slice_rows', 2),
    ('slice_cols', 2),
)


def raise_selections(graph: Graph) -> list[str]:
    """Moves selections before values that only they need."""
    raised = _raised(graph)
    done: dict[tuple[Node, Node], Node] = {}
    notes = []
    for node in list(graph.nodes):
        found = gathered(node)
        if found is None or found[0] not in raised:
            continue
        if node in raised or not is_selection(found[1]):
            continue
        value = _Rows(graph, raised, node, done).of(found[0], found[1])
        for user in raised.keys() & node.users.keys():
            raised[user] = [value if n is node else n for n in raised[user]]
        node.replace_all_uses_with(value)
        graph.erase_node(node)
        notes.append(f'{found[0]} is computed for selected edges only')
    for node in reversed(list(raised)):
        for user in list(node.users):
            if is_length(user):
                user.update_arg(0, raised[node][0])
        graph.erase_node(node)
    if notes:
        eliminate_common(graph)  # the program may gather the same values
    return notes


def is_selection(index: Any) -> bool:
    """Whether a vector has the positions of selected edges."""
    if any(part_of(index, *item) is not None for item in _SELECTIONS):
        return True
    if not isinstance(index, Node):
        return False
    flat = index.target in (aten.view.default, aten.reshape.default)
    if flat and index.args[1] in ((-1,), [-1]):
        source: Any = index.args[0]
        return source.target is aten.nonzero.default and (
            example(source.args[0]).dim() == 1
        )
    found = gathered(index)
    return found is not None and all(map(is_selection, found))


def _raised(graph: Graph) -> dict[Node, list[Node]]:
    """Returns values that only selections need, with rowwise operands."""
    changed, mode = may_change(graph), modes(graph)
    if not any(map(needs_gradient, graph.nodes)):
        mode = {node: (True, entered) for node, (_, entered) in mode.items()}
    decisive, invariant = decide_draws(graph), invariant_nodes(graph)
    found: dict[Node, list[Node]] = {}

    def is_needed_for(node: Node, user: Node) -> bool:
        if user in changed or mode[user] != mode[node]:
            return False
        gather = gathered(user)
        selects = gather is not None and gather[0] is node
        if selects and is_selection(gather[1]):  # type: ignore[index]
            return not is_view(node)
        return node in found.get(user, ())

    for node in reversed(list(graph.nodes)):
        users = users_but_lengths(node)
        if not users or node in invariant or is_selection(node):
            continue
        if not changed.isdisjoint([node, *node.all_input_nodes]):
            continue
        if not all(is_needed_for(node, user) for user in users):
            continue
        operands = row_operands(node)
        if operands and (is_exact(node) or node not in decisive):
            found[node] = operands
    return dict(reversed(found.items()))


class _Rows:
    """Builds the computations of a program for selected edges.

    Args:
        graph (Graph): The program.
        raised (Dict[Node, List[Node]]): Values that are computed for them.
        before (Node): Position of added nodes.
        done (Dict[Tuple[Node, Node], Node]): Values built before.
    """

    def __init__(
        self,
        graph: Graph,
        raised: dict[Node, list[Node]],
        before: Node,
        done: dict[tuple[Node, Node], Node],
    ):
        self._graph, self._raised = graph, raised
        self._before, self._done = before, done

    def of(self, node: Node, index: Node) -> Node:
        """Returns the selected rows of a value."""
        if (node, index) not in self._done:
            self._done[node, index] = self._make(node, index)
        return self._done[node, index]

    def _make(self, node: Node, index: Node) -> Node:
        columns = self._columns(node, index)
        if columns is not None:
            return columns
        if node not in self._raised:
            args: Any = node, 0, index
            return self._add(node, index, aten.index_select.default, args)
        operands = {n: self.of(n, index) for n in self._raised[node]}
        found = gathered(node)
        if found is not None and found[0] in self._raised:
            return self.of(found[0], operands[found[1]])  # x[i][j]: x[i[j]]
        args, kwargs = with_operands(node, operands)
        return self._add(node, index, node.target, args, **kwargs)

    def _columns(self, node: Node, index: Node) -> Node | None:
        """The columns of edges that were selected column by column."""
        if node.target is not aten.repeat_interleave.self_Tensor:
            return None
        found, call = pointers_of(node), _selected_by_column(index)
        if found is None or call is None or found[0] is not call.args[0]:
            return None
        begin = parts(call).get(0)
        if begin is None or not begin < self._before:
            begin = self._like(found[0], operator.getitem, (call, 0))
        counts = self._like(node.args[1], aten.diff.default, (begin,))  # type: ignore[arg-type]
        kwargs = dict(node.kwargs)
        if 'output_size' in kwargs:
            size = self._like(index, aten.sym_size.int, (index, 0))
            size.meta['example_value'] = example(index).shape[0]
            kwargs['output_size'] = size
        args = node.args[0], counts
        return self._add(node, index, node.target, args, **kwargs)

    def _add(
        self,
        node: Node,
        index: Node,
        target: Any,
        args: tuple[Any, ...],
        **kwargs: Any,
    ) -> Node:
        """Adds a node with the selected rows of a value."""
        value = example(node)
        made = self._like(node, target, args, **kwargs)
        rows = value.detach().new_empty(
            (example(index).shape[0], *value.shape[1:])
        )
        made.meta['example_value'] = rows.requires_grad_(value.requires_grad)
        return made

    def _like(
        self,
        node: Node,
        target: Callable[..., Any] | str,
        args: tuple[Any, ...],
        **kwargs: Any,
    ) -> Node:
        with self._graph.inserting_before(self._before):
            made = self._graph.call_function(target, args, kwargs)  # type: ignore[arg-type]
        made.meta = dict(node.meta)
        return made


def _selected_by_column(index: Node) -> Node | None:
    """Returns the call that selects edges per column, with new pointers."""
    sample = part_of(index, 'sample_columns', 1)
    if sample is not None:
        return None if 'cols' in sample.kwargs else sample
    rows = part_of(index, 'slice_rows', 2)
    own = rows is not None and len(rows.args) == 4 and not rows.kwargs
    return rows if own else None
