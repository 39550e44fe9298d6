"""What all samplers of a graph on disk share: hops, local ids, outputs.

Seeds come in; a function says what each frontier draws; PyG's outputs go out,
the same ones as those of the operator ``sample_neighbors``.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph_types import GraphTypes
from torch_gsample.rng import EPOCH_SCOPE
from torch_gsample.samplers.output import pyg as output
from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.pooled import empty_vector, joined

_NO_MEMORY = -2


@dataclass(frozen=True)
class Frontier:
    """Nodes that draw at a hop.

    Args:
        node (torch.Tensor): int64 ``[n]``.
        root (torch.Tensor, optional): int64 ``[n]``, by what the draws of
            equal nodes differ.
        time (torch.Tensor, optional): int64 ``[n]``, up to when each sees
            edges.
    """

    node: Tensor
    root: Tensor | None
    time: Tensor | None


#: Draws at a frontier: (relation, hop, frontier) -> where the edges of each
#: column start, their neighbours, and their ids.
Draw = Callable[[int, int, Frontier], tuple[Tensor, Tensor, Tensor]]


class _Nodes:
    """The sampled nodes of one type, and the local ids of their keys.

    The key of a node is ``tree * size + node``.
    """

    def __init__(self, seeds: Tensor, tree: Tensor, size: int, num_trees: int):
        self._size, self._num_trees = max(size, 1), num_trees
        self.node, self.tree = seeds, tree
        self._bound = self._size * max(num_trees, 1)
        self._keys, local = ops.unique_nodes(
            self._key(seeds, tree), self._bound
        )
        self._num_seeds, place = len(self._keys), torch.arange(len(seeds))
        self._first = torch.full_like(self._keys, len(seeds))
        self._first.scatter_reduce_(0, local, place, 'amin')
        #: The places of seeds that occurred before, by which they draw.
        self.repeated = place * (self._first[local] != place)
        self.begin, self.end = 0, len(seeds)
        self.counts = [len(seeds)]

    def _key(self, node: Tensor, tree: Tensor) -> Tensor:
        return node if self._num_trees < 2 else tree * self._size + node

    def local_ids(self, node: Tensor, tree: Tensor) -> Tensor:
        """Returns the local ids of nodes, new ones by first occurrence."""
        added, local = _number(self._keys, self._key(node, tree), self._bound)
        self._keys = joined([self._keys, added])
        if self._num_trees > 1:
            trees = added // self._size
            added = added % self._size
            self.tree = joined([self.tree, trees])
        self.node = joined([self.node, added])
        if self._num_trees < 2:
            self.tree = torch.zeros((), dtype=torch.int64).expand(
                len(self.node)
            )
        shift = len(self._first) - self._num_seeds
        repeated = len(self.node) - len(self._keys) + shift
        if repeated == 0:
            return local
        seed = local < self._num_seeds
        out = local + repeated
        out[seed] = self._first[local[seed]]
        return out

    def roots(self, hop: int, tree: Tensor) -> Tensor | None:
        """Returns by what the draws of equal columns differ."""
        if self._num_trees > 1:
            return tree
        return self.repeated if hop == 0 else None

    def end_hop(self) -> None:
        self.begin, self.end = self.end, len(self.node)
        self.counts.append(self.end - self.begin)


def _number(known: Tensor, key: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """Numbers keys by first occurrence, behind ``known`` distinct ones.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: The new keys, and the number of
        each key.
    """
    key = key.contiguous()
    added, local = empty_vector(len(key)), empty_vector(len(key))
    count = functions().gsample_number_nodes(
        ctypes.c_void_p(known.data_ptr()),
        ctypes.c_int64(len(known)),
        ctypes.c_void_p(key.data_ptr()),
        ctypes.c_int64(len(key)),
        ctypes.c_int64(bound),
        ctypes.c_void_p(added.data_ptr()),
        ctypes.c_void_p(local.data_ptr()),
    )
    if count == _NO_MEMORY:
        raise MemoryError(
            f'NeighborSampler: no memory to number {len(key)} sampled nodes'
        )
    assert count >= 0, 'a draw returned a node that is not in the graph'
    return added[:count], local


def sample_by_hops(
    graph: GraphTypes,
    seeds: dict[Any, Tensor],
    seed_time: dict[Any, Tensor] | None,
    fanouts: list[list[int]],
    options: dict[str, Any],
    draw: Draw,
) -> Any:
    """Samples neighbours of ``seeds`` hop by hop.

    Args:
        graph (GraphTypes): Types and numbers of nodes.
        seeds (Dict[NodeType, torch.Tensor]): The seeds of some types.
        seed_time (Dict[NodeType, torch.Tensor], optional): Their times.
        fanouts (List[List[int]]): For each edge type.
        options (Dict[str, Any]): Of the operators; ``key`` and ``disjoint``
            are read here.
        draw (Callable): Draws at a frontier.

    Raises:
        IndexError: If a seed is not in the graph.
    """
    none = torch.empty(0, dtype=torch.int64)
    disjoint = options['disjoint']
    in_batch = int(options['key'][0, 2]) != EPOCH_SCOPE
    total = sum(len(seed) for seed in seeds.values()) if disjoint else 1
    nodes: dict[Any, _Nodes] = {}
    times, num_trees = [none], 0
    for node_type in graph.node_types:
        size = graph.counts[node_type]
        seed = ops._check.node_ids(
            'NeighborSampler', 'seeds', seeds.get(node_type, none), size
        )
        tree = num_trees + torch.arange(len(seed))
        tree = tree if disjoint else torch.zeros_like(tree)
        nodes[node_type] = _Nodes(seed, tree, size, total)
        num_trees += len(seed)
        if seed_time is not None:
            times.append(seed_time.get(node_type, none))
    tree_time = torch.cat(times) if seed_time is not None else None
    edges: list[list[tuple[Tensor, ...]]] = [[] for _ in fanouts]
    for hop in range(len(fanouts[0]) if fanouts else 0):
        _sample_hop(
            graph, nodes, hop, fanouts, in_batch, total, tree_time, draw, edges
        )
    return _to_output(graph, nodes, edges, disjoint)


def _sample_hop(
    graph: GraphTypes,
    nodes: dict[Any, _Nodes],
    hop: int,
    fanouts: list[list[int]],
    in_batch: bool,
    num_trees: int,
    tree_time: Tensor | None,
    draw: Draw,
    edges: list[list[tuple[Tensor, ...]]],
) -> None:
    # Local ids of a type go by relation, and so all of its rows are one list.
    rows: dict[Any, list[tuple[int, Tensor, Tensor]]] = {}
    for r, edge_type in enumerate(graph.edge_types):
        src, dst = graph.end_types(edge_type)
        cols = nodes[dst]
        if fanouts[r][hop] == 0 or cols.begin == cols.end:
            none = torch.empty(0, dtype=torch.int64)
            edges[r].append((none, none, none))
            continue
        part = slice(cols.begin, cols.end)
        tree = cols.tree[part]
        frontier = Frontier(
            cols.node[part],
            cols.roots(hop, tree) if in_batch else None,
            None if tree_time is None else tree_time[tree],
        )
        indptr, neighbor, edge = draw(r, hop, frontier)
        col = torch.repeat_interleave(
            indptr.diff(), output_size=len(neighbor)
        ).add_(cols.begin)
        # Without trees nobody looks at them.
        trees = cols.tree.index_select(0, col) if num_trees > 1 else col
        rows.setdefault(src, []).append((r, neighbor.long(), trees))
        edges[r].append((neighbor, col, edge.long()))
    for node_type, parts in rows.items():
        neighbor = joined([p[1] for p in parts])
        tree = joined([p[2] for p in parts])
        local = nodes[node_type].local_ids(neighbor, tree)
        sizes = [len(p[1]) for p in parts]
        for (r, _, _), row in zip(parts, local.split(sizes), strict=True):
            edges[r][-1] = (row, *edges[r][-1][1:])
    for sampled in nodes.values():
        sampled.end_hop()


def _to_output(
    graph: GraphTypes,
    nodes: dict[Any, _Nodes],
    edges: list[list[tuple[Tensor, ...]]],
    disjoint: bool,
) -> Any:
    none = torch.empty(0, dtype=torch.int64)
    row, col, edge = (
        [joined([hop[i] for hop in hops] or [none]) for hops in edges]
        for i in range(3)
    )
    sampled = [nodes[t] for t in graph.node_types]
    return output.output_of(
        graph,
        [s.node for s in sampled],
        row,
        col,
        edge,
        [s.tree for s in sampled] if disjoint else None,
        [s.counts for s in sampled],
        [[len(hop[0]) for hop in hops] for hops in edges],
    )
