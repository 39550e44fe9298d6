"""Samples edges of chosen columns without extracting the columns.

Before::

    %0 = gsample.slice_cols(indptr, indices, seeds): 3 parts
    %1 = getitem(%0, 0): int32[?]
    %2 = getitem(%0, 1): int32[?]
    %3 = getitem(%0, 2): int64[?]
    %4 = aten.index_select(value, 0, %3): float32[?]
    %5 = gsample.sample_columns(%1, 5, key, id=seeds): 2 parts
    %6 = getitem(%5, 1): int64[?]
    %7 = aten.index_select(%2, 0, %6): int32[?]
    %8 = aten.index_select(%4, 0, %6): float32[?]

After::

    %0 = gsample.sample_columns(indptr, 5, key, cols=seeds): 2 parts
    %1 = getitem(%0, 1): int64[?]
    %2 = aten.index_select(indices, 0, %1): int32[?]
    %3 = aten.index_select(value, 0, %1): float32[?]

The cost of a program is then that of its sample, not of the degrees of its
frontier: a hub contributes ``k`` edges at any degree. Samples do not change,
as columns draw by the ids of their nodes (gSampler, section 4.2).

Weights that are values of the graph's edges are cumulated for the whole graph
instead of for each extract, and ``hoist_invariant`` then does it once.

An extract also disappears if only its column degrees are used: these are
degrees of the graph.

Not when: edges of the extract are also used by their positions in it, weights
are computed for the extract, or the graph is changed in place. If only a part
of the extract (its rows) has other users, the extract stays for them.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    has_only,
    is_operator,
    live_nodes,
    may_change,
    part_of,
    parts,
)
from torch_gsample.compiler.passes.hoist_invariant import invariant_nodes

_SAMPLE = torch.ops.gsample.sample_columns.default
#: Options of fused selections; others select columns, or use trees or times.
_OPTIONS = 'id', 'cum_weight', 'replace', 'ptr', 'options'
_CUMULATE = torch.ops.gsample.cumulate_weights.default


def fuse_extract_select(graph: Graph) -> None:
    """Fuses each extract of columns with the selections of its edges."""
    changed = may_change(graph)
    cumulated: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if is_operator(node, 'sample_columns') and has_only(node, *_OPTIONS):
            _fuse(graph, node, changed, cumulated)
    live, invariant = live_nodes(graph), invariant_nodes(graph)
    for node in list(graph.nodes):
        if is_operator(node, 'slice_cols') and node.args[0] in invariant:
            _read_degrees(graph, node, live, changed)


def _read_degrees(
    graph: Graph, extract: Node, live: set[Node], changed: set[Node]
) -> None:
    """Reads degrees from the graph if an extract has no other use."""
    pointers, _, cols = extract.args[:3]
    begin, others = parts(extract).get(0), live.intersection(extract.users)
    if begin not in others or others != {begin} or cols in changed:
        return
    users = [user for user in begin.users if user in live]
    if any((u.target, u.args) != (aten.diff.default, (begin,)) for u in users):
        return
    with graph.inserting_before(extract):
        degrees = graph.call_function(aten.diff.default, (pointers,))
    value: Any = example(pointers)  # type: ignore[arg-type]
    degrees.meta['example_value'] = value.new_empty(value.shape[0] - 1)
    for user in users:
        user.target = aten.index_select.default
        user.args = degrees, 0, cols


def _fuse(
    graph: Graph,
    sample: Node,
    changed: set[Node],
    cumulated: dict[Any, Node],
) -> None:
    extract = part_of(sample.args[0], 'slice_cols', 0)
    if extract is None or not changed.isdisjoint(extract.all_input_nodes):
        return
    indptr, indices, cols = extract.args[:3]
    weight = sample.kwargs.get('cum_weight')
    source = None
    if weight is not None:
        source = _gathered_weight(graph, weight, extract)
        if source is None or source in changed:
            return
    selected: Any = parts(sample).get(1)
    gathers: dict[Node, Any] = {}
    for user in () if selected is None else selected.users:
        if user.target is aten.sym_size.int:
            continue  # the number of edges does not change
        gathers[user] = source_of(user, selected, extract)
        if gathers[user] is None or gathers[user] in changed:
            return
    with graph.inserting_before(sample):
        kwargs = {**sample.kwargs, 'cols': cols}
        id = kwargs.pop('id', None)
        if id is not cols:
            kwargs['id'] = _numbers(graph, cols) if id is None else id
        if source is not None:
            key = indptr, source
            if key not in cumulated:
                cumulated[key] = _cumulate(graph, *key, weight)
            kwargs['cum_weight'] = cumulated[key]
        fused = graph.call_function(
            _SAMPLE, (indptr, *sample.args[1:]), kwargs
        )
    fused.meta = dict(sample.meta)
    for part in parts(sample).values():
        part.update_arg(0, fused)
    for user, tensor in gathers.items():
        if tensor is selected:
            user.replace_all_uses_with(selected)
            graph.erase_node(user)
            continue
        tensor = indices if tensor is extract else tensor
        user.target, user.kwargs = aten.index_select.default, {}
        user.args = (tensor, 0, selected)
    graph.erase_node(sample)


def _numbers(graph: Graph, cols: Any) -> Node:
    """Returns the index of each column, the id for draws without a node."""
    length = graph.call_function(aten.sym_size.int, (cols, 0))
    value = example(cols)
    length.meta['example_value'] = value.shape[0]
    options = {} if value.device.type == 'cpu' else {'device': value.device}
    numbers = graph.call_function(aten.arange.default, (length,), options)
    numbers.meta['example_value'] = value.new_empty(
        value.shape[0], dtype=torch.int64
    )
    return numbers


def source_of(user: Node, selected: Node, extract: Node) -> Node | None:
    """Returns the tensor that a user of the selected edges gathers.

    The extract itself for its rows, the selected edges for edge ids, else the
    graph tensor that was extracted.
    """
    gather = gathered(user)
    if gather is None or gather[1] is not selected:
        return None
    if part_of(gather[0], 'slice_cols', 1) is extract:
        return extract
    if part_of(gather[0], 'slice_cols', 2) is extract:
        return selected
    inner = gathered(gather[0])
    if inner is None or part_of(inner[1], 'slice_cols', 2) is not extract:
        return None
    return inner[0]


def _gathered_weight(graph: Graph, weight: Any, extract: Node) -> Node | None:
    """Returns the graph's weights that were extracted and cumulated."""
    if not is_operator(weight, 'cumulate_weights'):
        return None
    pointers, values = weight.args
    if part_of(pointers, 'slice_cols', 0) is not extract:
        return None
    while values.target is aten.detach.default:
        values = values.args[0]
    gather = gathered(values)
    if gather is None:
        return None
    tensor, index = gather
    of_graph = tensor in invariant_nodes(graph)
    same = part_of(index, 'slice_cols', 2) is extract
    return tensor if of_graph and same else None


def _cumulate(graph: Graph, indptr: Any, values: Node, like: Any) -> Node:
    detached = graph.call_function(aten.detach.default, (values,))
    detached.meta = dict(values.meta)
    node = graph.call_function(_CUMULATE, (indptr, detached))
    node.meta = dict(like.meta)
    return node
