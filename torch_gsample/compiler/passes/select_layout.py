"""Selects the layout in which each part of a program is computed.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 1): int32[?]
    %2 = aten.index_add(zeros, 0, %1, %value): float32[4850000]
    %3 = gsample.positive_weights(%2): 3 parts

After, if ``compact`` is selected for ``slice_cols[0]``::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 1): int32[?]
    %2 = gsample.unique_nodes(%1, 4850000, True): 3 parts
    %3 = getitem(%2, 1): int32[?]
    %4 = aten.index_add(zeros, 0, %3, %value): float32[?]
    %5 = gsample.positive_weights(%4): 3 parts

Choices (gSampler, section 4.3):

==================  =====================================================
``slice_cols[i]``   whether rows of an extract are all nodes (``full``), or
                    those with an edge (``compact``)
``slice_rows[i]``   whether rows of the graph are searched among all edges
                    (``csc``), or counted by row pointers (``csr``), if only
                    the rows with edges matter
``index_add[i]``    whether columns are summed by the column of each edge
                    (``coo``), or between pointers (``csc``)
``layouts[i]``      the layouts of all matrices of a graph together: as
                    written (``csc``), or the cheapest (``joint``)
==================  =====================================================

A slice of rows searches all edges by column, and reads only its own edges by
row::

    %0 = gsample.slice_rows(indptr, indices, 40, rows): 3 parts
    %1 = getitem(%0, 1): int32[?]
    %2 = aten.index_add(zeros, 0, %1, %value): float32[?]

After, if ``csr`` is selected for it (``^`` is computed once per graph)::

    ^%0 = gsample.coo_to_csc(%columns, indices, 40, False, False): 3 parts
    %1 = gsample.slice_cols(%0.0, %0.1, rows): 3 parts
    %2 = aten.repeat_interleave.self_Tensor(%ids, %degree): int64[?]
    %3 = aten.index_add(zeros, 0, %2, %value): float32[?]

Each slice is built by column or by row of its parent, and converted if
something depends on the order of its edges or reads column pointers: exactly
the assignment of least predicted cost (:mod:`..joint_layouts`). Within a row,
edges keep their order by column.

Conversions for a choice are computed once, for all users. With
``layout='auto'``, this pass decides if predicted costs are far apart and the
cheapest layout is already stored or does not depend on the batch. Otherwise
all candidates stay, joined by ``choose``, and the first calls measure them
(:mod:`..cost`).

All candidates give the same samples: weights of rows are sums of the same
edges in the same order. Not when: the order of edges would be visible, a
weight depends on the rounding of a sum over all rows, rows without an edge
might be sampled, or something is changed in place. A weight that is not
finite, of a row without an edge, is an error in the full space only.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import Graph, Node

from torch_gsample.compiler.cost import (
    candidates,
    predict,
    resolve,
    sites,
    spell,
)
from torch_gsample.compiler.edge_work import pointers_of
from torch_gsample.compiler.errors import OptionError
from torch_gsample.compiler.ir import (
    aten,
    call,
    choose,
    example,
    is_operator,
    may_change,
    parts,
    same_size,
)
from torch_gsample.compiler.joint_layouts import trees
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.hoist_invariant import is_of_graph
from torch_gsample.compiler.row_space import (
    RowSpace,
    Unsupported,
    is_sum_from_zero,
)
from torch_gsample.torch_private import OpOverload, schema_of

#: Operators that also build matrices.
_MATRICES = 'unique_nodes', 'sample_columns'
#: Ratio of costs that are far apart.
_FAR = 10.0


def select_layout(
    graph: Graph, layout: str | Mapping[str, str] = 'auto'
) -> list[str]:
    """Adds or makes the choice of each site, and returns the decisions."""
    changed, numbered = may_change(graph), _numbered(graph)
    for site, node in numbered:
        name = site.partition('[')[0]
        if node not in changed and name in _OFFERS:
            _OFFERS[name](graph, node, site, changed)
    eliminate_dead(graph)
    offered = sites(graph)
    joint = trees(graph, _alone(graph, numbered), layout)
    matrices = {k: v for tree in joint for k, v in tree.offered.items()}
    forced = _forced(layout, offered, matrices)
    notes = [note for tree in joint for note in tree.choose()]
    notes += [
        f'{site}: csc, draws are by column'
        for site, _ in numbered
        if site.startswith('sample_columns')
    ]
    forced |= {tree.site: 'joint' for tree in joint if tree.is_forced}
    known = {tree.site: tree.cost for tree in joint}
    picks = {}
    for site, labels in sites(graph).items():
        alone = candidates(graph, site)
        cost = known.get(site) or {
            label: predict(graph, alone[label]) for label in labels
        }
        best = min(labels, key=cost.__getitem__)
        how = 'measured by the first calls'
        if site in forced:
            picks[site], how = forced[site], 'by option'
        elif _is_far(cost, best) and _is_sure(site, best, labels):
            picks[site], how = best, 'predicted'
        chosen = picks.get(site, 'open')
        notes.append(f'{site}: {chosen}, {how}; predicted {spell(cost)}')
    resolve(graph, picks)
    return notes


def _numbered(graph: Graph) -> list[tuple[str, Node]]:
    """Returns operator calls with a possible choice, by name."""
    count, found = Counter[str](), []
    for node in graph.nodes:
        if isinstance(node.target, OpOverload):
            name = schema_of(node.target).name.partition('::')[2]
            if name in _OFFERS or name in _MATRICES:
                found.append((f'{name}[{count[name]}]', node))
                count[name] += 1
    return found


def _alone(graph: Graph, numbered: list[tuple[str, Node]]) -> dict[Node, str]:
    """Returns operators without a choice so far, with their names."""
    taken: set[Node] = set()
    for site in (offered := sites(graph)):
        for nodes in candidates(graph, site).values():
            taken |= nodes
    alive = set(graph.nodes) - taken
    return {
        node: site
        for site, node in numbered
        if node in alive and site not in offered
    }


def _is_sure(site: str, best: str, labels: Sequence[str]) -> bool:
    """Whether a predicted choice holds for batches of any size.

    The written form needs no proof. Searching the graph for rows never takes
    less time than reading their degrees.
    """
    return best == labels[0] or site.startswith('slice_rows')


def _is_far(cost: Mapping[str, float], best: str) -> bool:
    return max(cost.values()) > _FAR * cost[best]


def _forced(
    layout: str | Mapping[str, str],
    offered: Mapping[str, list[str]],
    matrices: Mapping[str, list[str]],
) -> dict[str, str]:
    """Returns the user's choice for each site, except for matrices.

    Raises:
        OptionError: If a site does not exist, or lacks the layout.
    """
    if isinstance(layout, str):
        return {s: layout for s, labels in offered.items() if layout in labels}
    known = {**matrices, **offered}
    for site, label in layout.items():
        if label not in ('auto', *known.get(site, ())):
            raise OptionError(
                f"gsample: 'layout' must be in {known} (got "
                f'{site!r}: {label!r})'
            )
    return {k: v for k, v in layout.items() if k in offered and v != 'auto'}


# Rows of an extract ##########################################################


def _offer_row_space(
    graph: Graph, extract: Node, site: str, changed: set[Node]
) -> None:
    with contextlib.suppress(Unsupported):
        RowSpace(graph, extract, changed).choose(site)


# Rows of the graph ###########################################################


def _offer_row_pointers(
    graph: Graph, part: Any, site: str, changed: set[Node]
) -> None:
    """Offers to find rows with edges by all edges, or by row pointers."""
    found = parts(part)
    if set(found) != {1} or len(part.args) != 4 or part.kwargs:
        return
    _, indices, num_rows, rows = part.args
    of_graph = indices.op == 'placeholder' and is_of_graph(indices)
    if not of_graph or indices in changed or not _is_unordered(found[1]):
        return
    with graph.inserting_before(found[1].next):
        degree = call(graph, aten.bincount.default, (indices, None, num_rows))
        degree.meta['invariant'] = True
        count = call(graph, aten.index_select.default, (degree, 0, rows))
        args = count, example(found[1]).dtype
        count = call(graph, aten.to.dtype, args)
        row = call(graph, aten.repeat_interleave.Tensor, (count,))
        _join(graph, site, csc=found[1], csr=row)


def _is_unordered(edges: Node) -> bool:
    """Whether no use depends on the order of the rows of edges."""
    return all(
        user.target in (aten.sym_size.int, aten.bincount.default)
        or (user.target is aten.index_fill.int_Scalar)
        or (user.target is aten.to.dtype and _is_unordered(user))
        or (
            is_operator(user, 'unique_nodes')
            and user.args[2:] == (True,)
            and all(
                number == 0 or _is_unordered(local)
                for number, local in parts(user).items()
            )
        )
        for user in edges.users
    )


# Columns #####################################################################


def _offer_column_pointers(
    graph: Graph, total: Any, site: str, changed: set[Node]
) -> None:
    """Offers column sums by the column of each edge, or by pointers."""
    if not is_sum_from_zero(total):
        return
    fill, _, column, source = total.args
    pointers, size = pointers_of(column) or (None, None)
    if pointers is None or not same_size(size, fill.args[1][0]):
        return
    if not changed.isdisjoint([pointers, source]):
        return
    if example(total).requires_grad:
        return  # the backward pass is not measured
    with graph.inserting_before(total.next):
        sums = call(
            graph,
            aten.segment_reduce.default,
            (source, 'sum'),
            offsets=pointers,
            unsafe=True,
            initial=0,
        )
        _join(graph, site, coo=total, csc=sums)


def _join(graph: Graph, site: str, **both: Any) -> None:
    written = next(iter(both.values()))
    joined = graph.call_function(choose, (site,), both)
    joined.meta = dict(written.meta)
    written.replace_all_uses_with(
        joined, delete_user_cb=lambda user: user is not joined
    )


_OFFERS: dict[str, Callable[[Graph, Any, str, set[Node]], None]] = {
    'slice_cols': _offer_row_space,
    'slice_rows': _offer_row_pointers,
    'index_add': _offer_column_pointers,
}
