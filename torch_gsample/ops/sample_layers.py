"""Several hops of column sampling, with a rule for the next columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _arguments, _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.sampling import PreparedGraph, Sampling

OP = 'sample_layers'

#: Frontier rules, in the order of the operator's codes.
FRONTIERS = ('row', 'nodes', 'new', 'unseen', 'edges', 'walk')

_DEFAULT = Sampling()


class Layers(NamedTuple):
    """Sampled layers, as lists with one item per hop.

    For a homogeneous sample, an item is a tensor. Otherwise it is a list of
    one tensor for each relation (``indptr, row, edge``) or node type
    (``node, batch``).
    """

    indptr: list[Any]  # [num_columns + 1] start of each column
    row: list[Any]  # [num_sampled_edges] node of each row
    edge: list[Any]  # [num_sampled_edges] position in indices
    node: list[Any]  # the columns of each further hop
    batch: list[Any]  # the seed of each column's tree; empty without trees


def sample_layers(
    graph: PreparedGraph,
    seeds: Tensor | Sequence[Tensor],
    fanouts: Sequence[Any],
    key: Sequence[Tensor],
    *,
    call_id: Sequence[int] | None = None,
    frontier: str = 'nodes',
    sorted: bool = False,
    sampling: Sampling = _DEFAULT,
    seed_time: Tensor | Sequence[Tensor] | None = None,
    return_frontier: bool = False,
) -> Layers:
    """Samples edges of columns, hop by hop.

    A hop is the result of :func:`sample_columns` for its columns. The first
    columns are ``seeds``; each relation samples from the columns of its
    destination type. The rule determines the next columns of a type. In the
    first four rules they are distinct nodes (in each tree, if ``disjoint``) in
    the order of first occurrence:

    ============ =========================================================
    ``'row'``    the sampled rows, relation after relation;
    ``'nodes'``  the columns, then the rows that are not among them;
    ``'new'``    the same without the first ``num_columns`` nodes;
    ``'unseen'`` the same without the nodes of all previous hops;
    ``'edges'``  the row of each edge, in the order of the edges;
    ``'walk'``   the row of each column's edge, or the column itself if it
                 has no edge, for fan-outs of 1.
    ============ =========================================================

    Except for ``'unseen'``, a node is sampled at each hop that visits it.
    Equal columns draw the same edges, so walkers that meet continue together;
    see :func:`random_walk` for independent walkers. Unlike in
    :func:`sample_neighbors`, rows are nodes, not local ids. With ``'nodes'``,
    hops are the blocks of DGL.

    With ``seeds`` on a GPU, the GPU draws the same sample in one launch and
    returns only the counts to the CPU, once. The graph must be on the GPU as
    well, or in pinned memory; see :func:`torch_gsample.placement.pin`.

    Args:
        graph (Graph): The graph, with weights and times if there are any.
        seeds (torch.Tensor or List[torch.Tensor]): int32 or int64
            ``[num_seeds]``, a tensor for each node type unless the graph is
            homogeneous.
        fanouts (List[int] or List[List[int]]): Number of edges per column at
            each hop, -1 for all; a list for each relation unless the graph is
            homogeneous.
        key (List[torch.Tensor]): The key of each hop, int64 ``[1, 3]``; or,
            without trees, a key for each relation of each hop, hop by hop: a
            relation then draws the edges of :func:`sample_columns` with its
            key.
        call_id (List[int], optional): The id of the draw of each key in a
            program; default: 0, 1 and so on.
        frontier (str, optional): One of the rules above. All except ``'row'``
            and ``'nodes'`` require one node type and one relation, without
            trees; ``'edges'`` and ``'walk'`` require a graph on the CPU.
        sorted (bool, optional): Whether to sort the columns of further hops.
            It requires one of the first four rules, without trees, and on a
            GPU one node type and one relation.
        sampling (Sampling, optional): The options. Ids of trees run through
            all node types.
        seed_time (torch.Tensor or List[torch.Tensor], optional): int64, as
            ``seeds``; required if and only if the graph has times.
        return_frontier (bool, optional): Whether ``node`` and ``batch`` also
            have the columns of one more hop.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor or number has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If the sample reads a malformed part of the graph.

    Example:
        >>> from torch_gsample import Graph
        >>> from torch_gsample.rng import make_key
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> key = [make_key(0)] * 2
        >>> out = sample_layers(graph, torch.tensor([0]), [2, 2], key)
        >>> [row.tolist() for row in out.row]
        [[1, 2], [1, 2, 2]]
        >>> out.node
        [tensor([0, 1, 2])]
    """
    starts, counts, times = _arguments.read(
        OP, graph, seeds, fanouts, seed_time
    )
    out = call(
        graph,
        starts,
        counts,
        key,
        call_id,
        frontier,
        sorted,
        sampling,
        times,
        return_frontier,
    )
    return out if isinstance(seeds, Tensor) else by_hop(graph, out)


def call(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    fanouts: Sequence[int],
    key: Sequence[Tensor],
    call_id: Sequence[int] | None,
    frontier: str,
    sorted: bool,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None,
    return_frontier: bool,
    ptr: Sequence[Tensor] | None = None,
) -> Layers:
    """Returns what the operator does; with ``ptr`` of several batches."""
    if frontier not in FRONTIERS:
        raise ValueError(
            f"{OP}: 'frontier' must be one of {', '.join(FRONTIERS)} "
            f'(got {frontier!r})'
        )
    if not seeds and not graph.tensors:  # no tensor tells a device
        return Layers([], [], [], [], [])
    try:
        out = _operator(
            graph.tensors,
            graph.ends,
            graph.num_nodes,
            seeds,
            fanouts,
            key,
            list(range(len(key))) if call_id is None else call_id,
            FRONTIERS.index(frontier),
            sorted,
            sampling.replace,
            sampling.disjoint,
            sampling.temporal_strategy == 'last',
            sampling.time_window,
            return_frontier,
            sampling.num_threads,
            seed_time,
            ptr,
        )
    except RuntimeError as error:
        batches = 1 if ptr is None else ptr[0].numel() - 1
        given = graph, seeds, fanouts, key, call_id, sampling, seed_time
        _check_arguments(*given, batches)
        exception = _check.raised(error)
        raise exception from None
    return Layers(*out)


def by_hop(graph: PreparedGraph, layers: Layers) -> Layers:
    """Returns a list for each hop, of all relations or types."""
    sizes = [len(graph.columns)] * 3 + [len(graph.num_nodes)] * 2
    return Layers(
        *(
            [flat[i : i + n] for i in range(0, len(flat), max(n, 1))]
            for flat, n in zip(layers, sizes, strict=True)
        )
    )


_operator = torch.ops.gsample.sample_layers.default


def _check_arguments(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    fanouts: Any,
    key: Sequence[Tensor],
    call_id: Sequence[int] | None,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None,
    batches: int,
) -> None:
    """Finds what an operator refused, which knows RuntimeError only."""
    _arguments.check(OP, graph, seeds, sampling, seed_time)
    hops = len(fanouts) // max(len(graph.columns), 1)
    if len(key) not in (hops, len(fanouts)):
        raise ValueError(
            f"{OP}: 'key' must have {hops} items, one for each hop, or "
            f'{len(fanouts)}, one for each relation of each hop '
            f'(got {len(key)})'
        )
    if call_id is not None and len(call_id) != len(key):
        raise ValueError(
            f"{OP}: 'call_id' must have {len(key)} items, one for each key "
            f'(got {len(call_id)})'
        )
    for item in key:
        _check.random_keys(OP, item, batches)


@torch.library.register_fake('gsample::sample_layers')
def _(
    graph,
    ends,
    num_nodes,
    seeds,
    fanouts,
    key,
    call_id,
    frontier=1,
    sorted=False,
    replace=False,
    disjoint=False,
    last=False,
    time_window=None,
    return_frontier=False,
    num_threads=0,
    seed_time=None,
    ptr=None,
):
    indptrs, rows, edges, nodes, batches = [], [], [], [], []
    columns, relations = seeds, max(len(ends) // 2, 1)
    fields, hops = len(graph) // relations, len(fanouts) // relations
    for hop in range(hops):
        for r, t in enumerate(ends[1::2]):
            indptr, indices = graph[fields * r : fields * r + 2]
            size, n = dynamic_size(), columns[t].shape[0]
            like = seeds[t]
            indptrs.append(like.new_empty(n + 1, dtype=indptr.dtype))
            rows.append(like.new_empty(size, dtype=indices.dtype))
            edges.append(like.new_empty(size))
        if return_frontier or hop + 1 < hops:
            walks = frontier == FRONTIERS.index('walk')
            columns = [
                like.new_empty(like.shape[0] if walks else dynamic_size())
                for like in seeds
            ]
            nodes += columns
            if disjoint:
                batches += [torch.empty_like(like) for like in columns]
            batches += [torch.empty_like(begins) for begins in ptr or ()]
    return indptrs, rows, edges, nodes, batches
