"""Several hops of column sampling in graphs with node and edge types."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.hetero_neighbor_sample import checked_graphs
from torch_gsample.ops.sample_hops import hop_keys

FRONTIERS = ('row', 'nodes')


class HeteroHops(NamedTuple):
    """Sampled layers: an item of a list is a list, of one hop.

    That has a tensor for each relation (``indptr, row, edge``) or node type
    (``node, batch``).
    """

    indptr: list[list[Tensor]]  # [num_columns + 1] where each column starts
    row: list[list[Tensor]]  # [num_sampled_edges] node of each row
    edge: list[list[Tensor]]  # [num_sampled_edges] position in indices
    node: list[list[Tensor]]  # the columns of each further hop
    batch: list[list[Tensor]]  # the seed of each one's tree, or empty


def hetero_sample_hops(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    *,
    key: Sequence[Tensor],
    call_id: Sequence[int] | None = None,
    cum_weight: Sequence[Tensor | None] | None = None,
    edge_time: Sequence[Tensor | None] | None = None,
    seed_time: Sequence[Tensor | None] | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    frontier: str = 'nodes',
    replace: bool = False,
    disjoint: bool = False,
    return_frontier: bool = False,
    num_threads: int = 0,
) -> HeteroHops:
    """Samples edges of columns of several node types, hop by hop.

    Like :func:`sample_hops`, with a graph for each relation, which samples
    from the columns of its destination type. These are ``seeds`` at first.
    The next columns of a type are, each node once (in each tree, if
    ``disjoint``) and in the order of its first occurrence, for

    =========== ==========================================================
    ``'row'``   the sampled rows of that type, relation after relation;
    ``'nodes'`` the columns, then the rows that are none of them.
    =========== ==========================================================

    With ``'nodes'``, hops are the blocks of DGL. Where a node is to be
    sampled at the first hop only that meets it, there is
    :func:`hetero_neighbor_sample`.

    On a GPU, where ``seeds`` then are, the sample is the same, in one launch
    without a barrier between hops; only counts come back to the CPU, once.
    Graphs are there, too, or in pinned memory, see
    :func:`torch_gsample.placement.pin`.

    Args:
        indptr (List[torch.Tensor]): See :func:`hetero_neighbor_sample`.
        indices (List[torch.Tensor]): See :func:`hetero_neighbor_sample`.
        relations (List[Tuple[int, int]]): Node type of the rows (sources) and
            of the columns (destinations) of each relation.
        num_nodes (List[int]): Number of nodes of each type.
        seeds (List[torch.Tensor]): Seeds of each type, possibly none.
        fanouts (List[List[int]]): Edges a column at each hop, for each
            relation; -1 takes all.
        key (List[torch.Tensor]): The key of each hop, int64 ``[1, 3]``.
        call_id (List[int], optional): The number of each hop's draw in a
            program; 0, 1 and so on if not given.
        cum_weight (List[torch.Tensor], optional): For each relation, or
            :obj:`None` where it is uniform.
        edge_time (List[torch.Tensor], optional): For each relation, or
            :obj:`None` where it has no times.
        seed_time (List[torch.Tensor], optional): For each node type.
        time_window (int, optional): See :func:`neighbor_sample`.
        temporal_strategy (str, optional): See :func:`neighbor_sample`.
        frontier (str, optional): The rule above.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        disjoint (bool, optional): Whether each seed has a tree of its own;
            trees are numbered through all types.
        return_frontier (bool, optional): Whether ``node`` and ``batch`` end
            with the columns of one more hop.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor or number has the wrong type.
        ValueError: If an argument breaks a rule that is named.
        RuntimeError: If a graph is malformed where the sample met it.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> # Two authors (type 0) write three papers (type 1), and papers
        >>> # cite papers.
        >>> wrote = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 0, 1])
        >>> cites = torch.tensor([0, 1, 2, 2]), torch.tensor([1, 2])
        >>> out = hetero_sample_hops(
        ...     *zip(wrote, cites),
        ...     [(0, 1), (1, 1)],
        ...     [2, 3],
        ...     [torch.tensor([], dtype=torch.int64), torch.tensor([0])],
        ...     [[2, 2], [2, 2]],
        ...     key=[make_key(0)] * 2,
        ... )
        >>> out.row
        [[tensor([0]), tensor([1])], [tensor([0, 0]), tensor([1, 2])]]
        >>> out.node
        [[tensor([0]), tensor([0, 1])]]
    """
    op = 'hetero_sample_hops'
    graph = checked_graphs(
        op,
        indptr,
        indices,
        relations,
        num_nodes,
        seeds,
        fanouts,
        cum_weight,
        edge_time,
        seed_time,
        disjoint,
    )
    hops = len(fanouts[0]) if len(fanouts) else 0
    if frontier not in FRONTIERS:
        raise ValueError(
            f"{op}: 'frontier' must be one of {', '.join(FRONTIERS)} "
            f'(got {frontier!r}); hetero_neighbor_sample samples each node '
            f'once'
        )
    key, call_id = hop_keys(op, key, call_id, hops)
    if not len(indptr) and not len(seeds):  # no tensor tells a device
        return HeteroHops([], [], [], [], [])
    out = _check.call(
        torch.ops.gsample.hetero_sample_hops.default,
        *graph,
        key,
        call_id,
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        frontier=FRONTIERS.index(frontier),
        replace=replace,
        disjoint=disjoint,
        return_frontier=return_frontier,
        num_threads=num_threads,
    )
    sizes = [len(indptr)] * 3 + [len(num_nodes)] * 2
    return HeteroHops(
        *(
            [flat[i : i + n] for i in range(0, len(flat), max(n, 1))]
            for flat, n in zip(out, sizes, strict=True)
        )
    )


@torch.library.register_fake('gsample::hetero_sample_hops')
def _(
    indptr,
    indices,
    src,
    dst,
    num_nodes,
    seeds,
    fanouts,
    cum_weight,
    edge_time,
    seed_time,
    key,
    call_id,
    *,
    disjoint=False,
    return_frontier=False,
    **_,
):
    indptrs, rows, edges, nodes, batches = [], [], [], [], []
    columns = seeds
    for hop in range(len(key)):
        for r, t in enumerate(dst):
            size, n = dynamic_size(), columns[t].shape[0]
            like = seeds[t]
            indptrs.append(like.new_empty(n + 1, dtype=indptr[r].dtype))
            rows.append(like.new_empty(size, dtype=indices[r].dtype))
            edges.append(like.new_empty(size))
        if return_frontier or hop + 1 < len(key):
            columns = [like.new_empty(dynamic_size()) for like in seeds]
            nodes += columns
            batches += [
                like.new_empty(like.shape[0] if disjoint else 0)
                for like in columns
            ]
    return indptrs, rows, edges, nodes, batches
