"""Multi-hop neighbour sampling in graphs with node and edge types."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size
from torch_gsample.ops.neighbor_sample import check_times


class HeteroNeighborSample(NamedTuple):
    """A sampled heterogeneous subgraph.

    Lists hold a tensor for each relation (``row, col, edge``) or node type
    (``node, batch``), shaped as in :class:`NeighborSample`.
    """

    row: list[Tensor]
    col: list[Tensor]
    node: list[Tensor]
    edge: list[Tensor]
    batch: list[Tensor]
    num_nodes: Tensor  # [num_types, L + 1]
    num_edges: Tensor  # [num_relations, L]


def hetero_neighbor_sample(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    *,
    key: Tensor,
    call_id: int = 0,
    cum_weight: Sequence[Tensor | None] | None = None,
    edge_time: Sequence[Tensor | None] | None = None,
    seed_time: Sequence[Tensor | None] | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    disjoint: bool = False,
    return_edge_id: bool = True,
    num_threads: int = 0,
) -> HeteroNeighborSample:
    r"""Samples in-neighbours of seeds of several node types.

    Like :func:`neighbor_sample`, with a graph for each relation. At each hop
    relations are sampled in their order, which is also the order of local
    ids. On a GPU, tensors are where :func:`neighbor_sample` has them.

    Args:
        indptr (List[torch.Tensor]): A tensor ``[num_nodes[dst] + 1]`` for
            each relation, all of one dtype.
        indices (List[torch.Tensor]): A tensor ``[num_edges]`` for each
            relation, all of one dtype.
        relations (List[Tuple[int, int]]): Node type of the rows (sources) and
            of the columns (destinations) of each relation.
        num_nodes (List[int]): Number of nodes of each type.
        seeds (List[torch.Tensor]): Seeds of each type, possibly none.
        fanouts (List[List[int]]): Neighbours to sample at each hop, for each
            relation.
        key (torch.Tensor): See :func:`neighbor_sample`.
        call_id (int, optional): See :func:`neighbor_sample`.
        cum_weight (List[torch.Tensor], optional): For each relation, or
            :obj:`None` where it is uniform.
        edge_time (List[torch.Tensor], optional): For each relation, or
            :obj:`None` where it has no times.
        seed_time (List[torch.Tensor], optional): For each node type.
        time_window (int, optional): See :func:`neighbor_sample`.
        temporal_strategy (str, optional): See :func:`neighbor_sample`.
        replace (bool, optional): See :func:`neighbor_sample`.
        disjoint (bool, optional): See :func:`neighbor_sample`; trees are
            numbered through all types.
        return_edge_id (bool, optional): See :func:`neighbor_sample`.
        num_threads (int, optional): See :func:`neighbor_sample`.

    Returns:
        HeteroNeighborSample: All tensors are int64.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument breaks a rule that is named.
        RuntimeError: If the graph is malformed where the sample met it.
    """
    op = 'hetero_neighbor_sample'
    arguments = checked_graphs(
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
    out = _check.call(
        torch.ops.gsample.hetero_neighbor_sample.default,
        *arguments,
        _check.random_key(op, key),
        call_id,
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        replace=replace,
        disjoint=disjoint,
        return_edge_id=return_edge_id,
        num_threads=num_threads,
    )
    return HeteroNeighborSample(*out)


def checked_graphs(
    op: str,
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    cum_weight: Sequence[Tensor | None] | None,
    edge_time: Sequence[Tensor | None] | None,
    seed_time: Sequence[Tensor | None] | None,
    disjoint: bool,
) -> tuple[Any, ...]:
    """Returns what the operators take before the key.

    Raises:
        As :func:`hetero_neighbor_sample`.
    """
    if not len(indptr) == len(indices) == len(relations) == len(fanouts):
        raise ValueError(
            f"{op}: 'indptr', 'indices', 'relations' and 'fanouts' must have "
            f'one item for each relation (got {len(indptr)}, {len(indices)}, '
            f'{len(relations)} and {len(fanouts)})'
        )
    if len(seeds) != len(num_nodes):
        raise ValueError(
            f"{op}: 'seeds' must have one item for each of {len(num_nodes)} "
            f'node types (got {len(seeds)})'
        )
    hops = {len(k) for k in fanouts}
    if len(hops) > 1:
        raise ValueError(
            f"{op}: 'fanouts' must have the same number of hops for each "
            f'relation (got {sorted(hops)})'
        )
    device = _sampling_device(op, indptr, seeds)
    graphs = [
        _check.graph(op, *g, device) for g in zip(indptr, indices, strict=True)
    ]
    seeds = [
        _check.node_ids(op, 'seeds', s, n, device)
        for s, n in zip(seeds, num_nodes, strict=True)
    ]
    check_times(op, edge_time, seed_time, disjoint)
    edge_counts = [g[1].numel() for g in graphs]
    weight_sizes = [
        cum_weight_size(g[1].numel(), g[0].numel() - 1) for g in graphs
    ]
    seed_counts = [s.numel() for s in seeds]
    return (
        [g[0] for g in graphs],
        [g[1] for g in graphs],
        [r[0] for r in relations],
        [r[1] for r in relations],
        list(num_nodes),
        seeds,
        [k for of in fanouts for k in _check.fanouts(op, 'fanouts', of)],
        _optional_vectors(op, 'cum_weight', cum_weight, weight_sizes, device),
        _optional_vectors(op, 'edge_time', edge_time, edge_counts, device),
        _optional_vectors(op, 'seed_time', seed_time, seed_counts, device),
    )


def _sampling_device(
    op: str, indptr: Sequence[Tensor], seeds: Sequence[Tensor]
) -> torch.device:
    """Where to sample: on a GPU where the first seeds are on one."""
    return _check.sampling_device(
        op,
        indptr[0] if len(indptr) else None,
        seeds[0] if len(seeds) else None,
    )


def _optional_vectors(
    op: str,
    name: str,
    values: Sequence[Tensor | None] | None,
    sizes: Sequence[int],
    device: torch.device,
) -> list[Tensor]:
    """Spells a missing item as a tensor without elements."""
    if values is None:
        return []
    if len(values) != len(sizes):
        raise ValueError(
            f"{op}: '{name}' must have {len(sizes)} items (got {len(values)})"
        )
    return [
        torch.empty(0, dtype=torch.int64, device=device)
        if value is None
        else _check.int64_vector(
            op, name, value, size, device, name != 'seed_time'
        )
        for value, size in zip(values, sizes, strict=True)
    ]


@torch.library.register_fake('gsample::hetero_neighbor_sample')
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
    call_id=0,
    *,
    disjoint=False,
    return_edge_id=True,
    **_,
):
    hops = len(fanouts) // max(len(indptr), 1)
    edges = [dynamic_size() for _ in indptr]
    nodes = [dynamic_size() for _ in seeds]
    like = seeds[0] if seeds else key
    return (
        [like.new_empty(n) for n in edges],
        [like.new_empty(n) for n in edges],
        [like.new_empty(n) for n in nodes],
        [like.new_empty(n if return_edge_id else 0) for n in edges],
        [like.new_empty(n if disjoint else 0) for n in nodes],
        key.new_empty(len(nodes), hops + 1),
        key.new_empty(len(edges), hops),
    )
