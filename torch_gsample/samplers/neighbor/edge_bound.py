"""Sampling in which the time of each edge bounds the next hop."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph import Graph
from torch_gsample.graph_types import GraphTypes
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.samplers.neighbor.time_interval import TimeInterval

#: Selects edges of nodes: (relation, hop, node, root, latest time) -> offsets
#: of the edges of each node, their sources, ids and, if any, their times.
Select: TypeAlias = Callable[
    [int, int, Tensor, Tensor | None, Tensor],
    tuple[Tensor, Tensor, Tensor, Tensor | None],
]


class _Nodes(NamedTuple):
    """Nodes of one type, one for each edge into them."""

    node: Tensor
    latest: Tensor  # the latest time that each node sees
    tree: Tensor

    def __len__(self) -> int:
        return self.node.shape[0]


def sample_by_edge_time(
    graph: GraphTypes,
    seeds: Sequence[Tensor],
    seed_time: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    key: Tensor,
    interval: TimeInterval,
    select: Select,
) -> ops.Sample:
    """Samples hop by hop; each edge bounds the times of the next hop.

    Two edges may reach a node at two times, and its neighbours differ at
    each. So each sampled edge has its own source, and a sample is a tree for
    each seed, as in temporal random walks and TGAT (Xu et al., `"Inductive
    Representation Learning on Temporal Graphs"
    <https://arxiv.org/abs/2002.07962>`_). An edge without time passes the
    bound of its destination on.

    Args:
        graph (GraphTypes): Types and relations.
        seeds (List[torch.Tensor]): int64, for each node type.
        seed_time (List[torch.Tensor]): The latest time that each seed sees.
        fanouts (List[List[int]]): For each relation.
        key (torch.Tensor): int64 ``[1, 3]``.
        interval (TimeInterval): The times that are seen from a bound.
        select (Callable): Selects edges, in memory or on disk.

    Returns:
        Sample: As in :func:`~torch_gsample.ops.sample_neighbors`.
    """
    # With rng_scope='epoch', a node draws the same in all batches.
    in_batch = int(key[0, 2]) != EPOCH_SCOPE
    types, hops = len(graph.node_types), len(fanouts[0]) if fanouts else 0
    trees = torch.arange(sum(map(len, seeds)), device=key.device)
    none = trees.new_empty(0)
    frontier = [
        _Nodes(*seed)
        for seed in zip(
            seeds, seed_time, trees.split([*map(len, seeds)]), strict=True
        )
    ]
    parts = [[nodes] for nodes in frontier]
    sizes = [[len(nodes)] for nodes in frontier]
    edges: list[list[tuple[Tensor, ...]]] = [[] for _ in graph.edge_types]
    for hop in range(hops):
        reached: list[list[_Nodes]] = [[] for _ in range(types)]
        ends = [sum(size) for size in sizes]  # first free local ids
        begins = [
            end - len(nodes) for end, nodes in zip(ends, frontier, strict=True)
        ]
        for r in range(len(graph.edge_types)):
            src, dst = graph.ends[2 * r : 2 * r + 2]
            nodes = frontier[dst]
            if fanouts[r][hop] == 0 or not len(nodes):
                edges[r].append((none, none, none))
                continue
            local = torch.arange(len(nodes), device=key.device)
            root = local + begins[dst] if in_batch else None
            indptr, source, edge, time = select(
                r, hop, nodes.node, root, nodes.latest
            )
            at = local.repeat_interleave(indptr.diff(), output_size=len(edge))
            latest = (
                nodes.latest[at] if time is None else interval.latest(time)
            )
            new = _Nodes(source.long(), latest, nodes.tree[at])
            row = torch.arange(ends[src], ends[src] + len(new)).to(at)
            ends[src] += len(new)
            edges[r].append((row, at + begins[dst], edge.long()))
            reached[src].append(new)
        frontier = [
            _joined(part, nodes)
            for part, nodes in zip(reached, frontier, strict=True)
        ]
        for t, nodes in enumerate(frontier):
            parts[t].append(nodes)
            sizes[t].append(len(nodes))
    return _to_sample(parts, sizes, edges, none)


def _to_sample(
    parts: list[list[_Nodes]],
    sizes: list[list[int]],
    edges: list[list[tuple[Tensor, ...]]],
    none: Tensor,
) -> ops.Sample:
    """Returns the nodes of types and the edges of relations, hop by hop."""
    row, col, edge = (
        torch.cat([hop[i] for of in edges for hop in of] or [none])
        for i in range(3)
    )
    every = _joined([nodes for part in parts for nodes in part], None)
    counts = [*sizes, *([len(hop[0]) for hop in of] for of in edges)]
    return ops.Sample(
        row,
        col,
        every.node,
        edge,
        every.tree,
        torch.tensor([n for of in counts for n in of]),
        len(parts),
        len(edges),
        None,
    )


def select_in(
    graph: Graph,
    fanouts: Sequence[Sequence[int]],
    key: Tensor,
    sampling: ops.Sampling,
) -> Select:
    """Returns a function that selects edges of a graph in memory."""

    def select(
        relation: int,
        hop: int,
        node: Tensor,
        root: Tensor | None,
        latest: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        csc = graph.columns[relation]
        time = csc.edge_time
        indptr, edge = ops.sample_columns(
            csc.indptr,
            fanouts[relation][hop],
            key=key,
            call_id=hop,
            relation=relation,
            cols=node,
            root=root,
            cum_weight=csc.cum_weight,
            edge_time=time,
            column_time=None if time is None else latest,
            time_window=None if time is None else sampling.time_window,
            temporal_strategy=sampling.temporal_strategy,
            replace=sampling.replace,
            num_threads=sampling.num_threads,
        )
        of_edge = None if time is None else time[edge]
        return indptr, csc.indices[edge], edge, of_edge

    return select


def _joined(parts: list[_Nodes], like: _Nodes | None) -> _Nodes:
    """Concatenates nodes; an empty list gives no nodes."""
    if not parts and like is not None:
        return _Nodes(*(value[:0] for value in like))
    return _Nodes(*map(torch.cat, zip(*parts, strict=True)))
