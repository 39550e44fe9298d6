"""Hops that are bounded by the times of the edges before them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.samplers.neighbor.time_interval import TimeInterval


class _Nodes(NamedTuple):
    """Nodes of one type: one for each edge that leads to them."""

    node: Tensor
    latest: Tensor  # the last time that each sees
    tree: Tensor

    def __len__(self) -> int:
        return self.node.shape[0]


def sample_by_edge_time(
    graph: Graph,
    seeds: Sequence[Tensor],
    seed_time: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    key: Tensor,
    sampling: ops.Sampling,
    interval: TimeInterval,
) -> ops.Sample:
    """Samples hop by hop what was there at the time of the edge before.

    A node is not one in time: two edges reach it at two times, and it has
    other neighbours at each. So each sampled edge has a source of its own, and
    a sample is a tree for each seed, as in temporal random walks and TGAT (Xu
    et al., `"Inductive Representation Learning on Temporal Graphs"
    <https://arxiv.org/abs/2002.07962>`_). An edge without time passes the
    bound of its destination on.

    Args:
        graph (Graph): The graph.
        seeds (List[torch.Tensor]): int64, for each node type.
        seed_time (List[torch.Tensor]): The last time that each seed sees.
        fanouts (List[List[int]]): For each relation.
        key (torch.Tensor): int64 ``[1, 3]``.
        sampling (Sampling): The options.
        interval (TimeInterval): What is seen from the time of an edge.

    Returns:
        Sample: As of :func:`~torch_gsample.ops.sample_neighbors`.
    """
    # With 'epoch' as its scope, a node of the graph draws alike everywhere.
    in_batch = int(key[0, 2]) != EPOCH_SCOPE
    types, hops = len(graph.node_types), len(fanouts[0]) if fanouts else 0
    trees = torch.arange(sum(map(len, seeds)), device=graph.device)
    frontier = [
        _Nodes(*seed)
        for seed in zip(
            seeds, seed_time, trees.split([*map(len, seeds)]), strict=True
        )
    ]
    parts = [[nodes] for nodes in frontier]
    sizes = [[len(nodes)] for nodes in frontier]
    edges: list[list[tuple[Tensor, ...]]] = [[] for _ in graph.columns]
    for hop in range(hops):
        reached: list[list[_Nodes]] = [[] for _ in range(types)]
        ends = [sum(size) for size in sizes]  # local ids that are taken
        begins = [
            end - len(nodes) for end, nodes in zip(ends, frontier, strict=True)
        ]
        for r, csc in enumerate(graph.columns):
            src, dst = graph.ends[2 * r : 2 * r + 2]
            at, edge = _select(
                csc, r, frontier[dst], begins[dst], fanouts[r][hop],
                key, hop, sampling, in_batch,
            )  # fmt: skip
            new = _sources(csc, frontier[dst], at, edge, interval)
            row = torch.arange(ends[src], ends[src] + len(new)).to(at)
            ends[src] += len(new)
            edges[r].append((row, at + begins[dst], edge))
            reached[src].append(new)
        frontier = [
            _joined(part, nodes)
            for part, nodes in zip(reached, frontier, strict=True)
        ]
        for t, nodes in enumerate(frontier):
            parts[t].append(nodes)
            sizes[t].append(len(nodes))
    none = trees.new_empty(0)
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
        edge if sampling.return_edge_id else none,
        every.tree,
        torch.tensor([n for of in counts for n in of]),
        types,
        len(graph.columns),
        None,
    )


def _select(
    csc: CSC,
    relation: int,
    nodes: _Nodes,
    begin: int,
    k: int,
    key: Tensor,
    hop: int,
    sampling: ops.Sampling,
    in_batch: bool,
) -> tuple[Tensor, Tensor]:
    """Returns the column of each selected edge, and its position."""
    timed = csc.edge_time is not None
    local = torch.arange(len(nodes), device=nodes.node.device)
    indptr, edge = ops.sample_columns(
        csc.indptr,
        k,
        key=key,
        call_id=hop,
        relation=relation,
        cols=nodes.node,
        root=local + begin if in_batch else None,
        cum_weight=csc.cum_weight,
        edge_time=csc.edge_time,
        column_time=nodes.latest if timed else None,
        time_window=sampling.time_window if timed else None,
        temporal_strategy=sampling.temporal_strategy,
        replace=sampling.replace,
        num_threads=sampling.num_threads,
    )
    sizes = indptr.diff()
    return local.repeat_interleave(sizes, output_size=len(edge)), edge


def _sources(
    csc: CSC, nodes: _Nodes, at: Tensor, edge: Tensor, interval: TimeInterval
) -> _Nodes:
    """Returns the sources of edges that were selected in columns ``at``."""
    latest = nodes.latest[at]
    if csc.edge_time is not None:
        latest = interval.latest(csc.edge_time[edge])
    return _Nodes(csc.indices[edge].long(), latest, nodes.tree[at])


def _joined(parts: list[_Nodes], like: _Nodes | None) -> _Nodes:
    """Returns nodes one after another; none if there are no parts."""
    if not parts and like is not None:
        return _Nodes(*(value[:0] for value in like))
    return _Nodes(*map(torch.cat, zip(*parts, strict=True)))
