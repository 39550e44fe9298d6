"""Hops, local ids and outputs, shared by all samplers of graphs on disk.

Seeds and a function that draws at a frontier come in; lists go out, equal to
those of the operator ``sample_neighbors``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph_types import GraphTypes
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.pooled import empty_vector
from torch_gsample.storage.sampled_nodes import SampledNodes

_MANY = 1 << 40


@dataclass(frozen=True)
class Frontier:
    """Nodes that draw at a hop.

    Args:
        node (torch.Tensor): int64 ``[n]``.
        root (torch.Tensor, optional): int64 ``[n]``, distinguishes the draws
            of equal nodes.
        time (torch.Tensor, optional): int64 ``[n]``, the time up to which each
            sees edges.
    """

    node: Tensor
    root: Tensor | None
    time: Tensor | None


#: Draws at a frontier: (relation, hop, frontier).
Draw = Callable[[int, int, Frontier], Drawn]


class SampledHops(NamedTuple):
    """A sample: an item for each node type, or for each edge type.

    Args:
        node (List[torch.Tensor]): int64, the nodes of each type.
        row (List[torch.Tensor]): int64, local ids of the sources of edges.
        col (List[torch.Tensor]): int64, those of destinations.
        edge (List[torch.Tensor]): int64, ids of edges.
        batch (List[torch.Tensor], optional): int64, the tree of each node, if
            trees are disjoint.
        num_nodes (List[List[int]]): Nodes of each hop, the seeds first.
        num_edges (List[List[int]]): Edges of each hop.
    """

    node: list[Tensor]
    row: list[Tensor]
    col: list[Tensor]
    edge: list[Tensor]
    batch: list[Tensor] | None
    num_nodes: list[list[int]]
    num_edges: list[list[int]]


class _Edges:
    """The sampled edges of a relation: rows, columns and ids."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.items = [torch.empty(0, dtype=torch.int64)] * 3

    def extend(self, count: int) -> list[Tensor]:
        """Returns the memory for the edges of the next hop."""
        size = len(self.items[0])
        self.counts.append(count)
        # The last hop has most edges, so earlier ones are copied.
        for i in range(3 if count > 0 else 0):
            longer = empty_vector(size + count)
            longer.numpy()[:size] = self.items[i].numpy()
            self.items[i] = longer
        return [item[size:] for item in self.items]


def _expected_nodes(num_seeds: int, fanouts: list[list[int]]) -> int:
    """Returns a bounded upper bound of the nodes of a batch."""
    total = frontier = num_seeds
    for of_hop in zip(*fanouts, strict=True):
        every = min(of_hop, default=0) < 0
        frontier *= _MANY if every else sum(of_hop)
        total += frontier
    return min(total, _MANY)


def sample_by_hops(
    graph: GraphTypes,
    seeds: dict[Any, Tensor],
    seed_time: dict[Any, Tensor] | None,
    fanouts: list[list[int]],
    options: dict[str, Any],
    draw: Draw,
) -> SampledHops:
    """Samples neighbours of ``seeds`` hop by hop.

    Args:
        graph (GraphTypes): Types and numbers of nodes.
        seeds (Dict[NodeType, torch.Tensor]): The seeds of some types.
        seed_time (Dict[NodeType, torch.Tensor], optional): Their times.
        fanouts (List[List[int]]): For each edge type.
        options (Dict[str, Any]): Of the operators; ``key``, ``disjoint`` and
            ``num_threads`` are read here.
        draw (Callable): Draws at a frontier.

    Raises:
        IndexError: If a seed is not in the graph.
    """
    none = torch.empty(0, dtype=torch.int64)
    disjoint = options['disjoint']
    in_batch = int(options['key'][0, 2]) != EPOCH_SCOPE
    threads = options['num_threads'] or torch.get_num_threads()
    num_seeds = sum(map(len, seeds.values()))
    expected = _expected_nodes(num_seeds, fanouts)
    nodes: dict[Any, SampledNodes] = {}
    times, first_tree = [none], 0
    for node_type in graph.node_types:
        size = graph.counts[node_type]
        seed = ops._check.node_ids(
            'NeighborSampler', 'seeds', seeds.get(node_type, none), size
        )
        num_trees = max(num_seeds, 1) if disjoint else 0  # 0: no trees
        nodes[node_type] = SampledNodes(
            seed, size, num_trees, first_tree, expected
        )
        first_tree += len(seed)
        if seed_time is not None:
            times.append(seed_time.get(node_type, none))
    tree_time = torch.cat(times) if seed_time is not None else None
    edges = [_Edges() for _ in fanouts]
    for hop in range(len(fanouts[0]) if fanouts else 0):
        for r, edge_type in enumerate(graph.edge_types):
            src, dst = graph.end_types(edge_type)
            columns = nodes[dst]
            if fanouts[r][hop] == 0 or len(columns.columns) == 0:
                edges[r].extend(0)
                continue
            frontier = _frontier(columns, hop, in_batch, tree_time)
            drawn = draw(r, hop, frontier)
            out = edges[r].extend(int(drawn.offset[-1]))
            for part in drawn.parts():
                nodes[src].take(columns, drawn, part, threads, out)
        for sampled in nodes.values():
            sampled.end_hop()
    return _sampled(graph, nodes, edges, disjoint)


def _frontier(
    columns: SampledNodes, hop: int, in_batch: bool, tree_time: Tensor | None
) -> Frontier:
    tree, root = columns.trees, None
    if in_batch:  # distinguishes the draws of equal columns
        root = columns.repeated if tree is None and hop == 0 else tree
    if tree_time is None:
        return Frontier(columns.columns, root, None)
    assert tree is not None, 'times are of trees'
    return Frontier(columns.columns, root, tree_time[tree])


def _sampled(
    graph: GraphTypes,
    nodes: dict[Any, SampledNodes],
    edges: list[_Edges],
    disjoint: bool,
) -> SampledHops:
    node, tree, counts = zip(
        *(nodes[t].all() for t in graph.node_types), strict=True
    )
    row, col, edge = ([e.items[i] for e in edges] for i in range(3))
    return SampledHops(
        [*node],
        row,
        col,
        edge,
        [*tree] if disjoint else None,
        [*counts],
        [e.counts for e in edges],
    )
