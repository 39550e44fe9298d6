"""Three fixed graphs, made by integer arithmetic.

Weights are small multiples of 1/8: their sums are exact in any order.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample import SparseSample

#: In-degree of the hub.
HUB = 100_000
WIDE = torch.int64, torch.int64


@dataclass(frozen=True, eq=False)
class Relation:
    """Edges from one node type to another, in no order."""

    name: tuple[str, str, str]
    row: Tensor
    col: Tensor
    weight: Tensor  # a fifth are 0
    time: Tensor

    @property
    def num_edges(self) -> int:
        return self.row.numel()


@dataclass(frozen=True, eq=False)
class Graph:
    """Node types with their sizes, and relations."""

    sizes: dict[str, int]
    relations: tuple[Relation, ...]

    @property
    def types(self) -> list[str]:
        return list(self.sizes)

    @property
    def is_typed(self) -> bool:
        return len(self.relations) > 1


def mixed(size: int, salt: int, below: int) -> Tensor:
    """Fixed numbers in [0, below) that look random."""
    x = torch.arange(size) + salt * 1_000_003
    for _ in range(2):
        x = ((x >> 16) ^ x) * 0x45D9F3B & 0xFFFFFFFF
    return ((x >> 16) ^ x) % below


def relation(
    src: str, name: str, dst: str, row: Tensor, col: Tensor, salt: int
) -> Relation:
    size = row.numel()
    weight = mixed(size, salt + 50, 15).sub(2).clamp(min=0) / 8
    time = mixed(size, salt + 60, 40)
    return Relation((src, name, dst), row, col, weight, time)


@lru_cache
def small() -> Graph:
    """50 nodes, parallel edges and self-loops; no edge leads to node 0."""
    row, col = mixed(400, 1, 50), 1 + mixed(400, 2, 49)
    return Graph({'n': 50}, (relation('n', 'to', 'n', row, col, 3),))


@lru_cache
def hub() -> Graph:
    """Degrees of a power law, and node 7 with an in-degree of 100,000."""
    size = 5_000
    degree = 2 * size // (torch.arange(size) + 2)
    col = torch.arange(size).repeat_interleave(degree)
    col = torch.cat([col, torch.full((HUB,), 7)])
    # Rows of small numbers have many out-edges, too.
    row = mixed(col.numel(), 4, size) * mixed(col.numel(), 5, size) // size
    order = mixed(col.numel(), 6, 1 << 30).argsort(stable=True)
    edges = relation('n', 'to', 'n', row[order], col[order], 7)
    return Graph({'n': size}, (edges,))


@lru_cache
def typed() -> Graph:
    """3 node types, 5 relations; one of them has 300 edges into one item."""
    sizes = {'user': 40, 'item': 60, 'tag': 9}
    out = []
    for i, (src, name, dst, size) in enumerate(
        [
            ('user', 'rates', 'item', 500),
            ('item', 'rev_rates', 'user', 450),
            ('user', 'follows', 'user', 120),
            ('tag', 'marks', 'item', 80),
            ('item', 'similar', 'item', 600),
        ]
    ):
        row = mixed(size, 100 + i, sizes[src])
        col = mixed(size, 200 + i, sizes[dst])
        if name == 'similar':
            col = torch.where(torch.arange(size) % 2 == 0, 3, col)
        out.append(relation(src, name, dst, row, col, 300 + 10 * i))
    return Graph(sizes, tuple(out))


GRAPHS = {'small': small, 'hub': hub, 'typed': typed}


@lru_cache
def data(name: str) -> Data | HeteroData:
    """A graph with its attributes, as PyG has it."""
    graph = GRAPHS[name]()
    out = HeteroData() if graph.is_typed else Data()
    for i, (node_type, size) in enumerate(graph.sizes.items()):
        store = out[node_type] if graph.is_typed else out
        store.x = torch.arange(size).view(-1, 1) + 10_000 * i
        store.wide = (torch.arange(16 * size) / 4).view(-1, 16)
        store.y = mixed(size, i, 5)
        store.num_nodes = size
        store.time = mixed(size, 20 + i, 40)
    for edges in graph.relations:
        store = out[edges.name] if graph.is_typed else out
        store.edge_index = torch.stack([edges.row, edges.col])
        store.edge_attr = torch.arange(edges.num_edges)
        store.weight, store.edge_time = edges.weight, edges.time
    return out


@lru_cache
def matrix(name: str) -> SparseSample:
    """A homogeneous graph with weights above 0, as a matrix."""
    graph = GRAPHS[name]()
    [edges] = graph.relations
    return SparseSample.from_edge_index(
        torch.stack([edges.row, edges.col]),
        edges.weight.double() + 1 / 8,
        graph.sizes['n'],
    )


@lru_cache
def matrices() -> dict[tuple[str, str, str], SparseSample]:
    """The relations of the graph with types as matrices."""
    graph = typed()
    return {
        edges.name: SparseSample.from_coo(
            edges.row,
            edges.col,
            edges.weight.double() + 1 / 8,
            (graph.sizes[edges.name[0]], graph.sizes[edges.name[2]]),
        )
        for edges in graph.relations
    }


def some_nodes(size: int, count: int, salt: int = 0) -> Tensor:
    """Distinct nodes, node 7 among them where there is one."""
    nodes = mixed(size, 400 + salt, 1 << 30).argsort(stable=True)
    nodes = nodes[nodes != 7][: count - 1]
    return torch.cat([nodes, torch.tensor([min(7, size - 1)])])


class Columns(NamedTuple):
    """A relation, column by column; times ascend in each."""

    indptr: Tensor
    indices: Tensor
    weight: Tensor
    time: Tensor


@lru_cache
def columns(graph: Graph, i: int = 0, dtypes: Any = WIDE) -> Columns:
    edges = graph.relations[i]
    order = (edges.col * 64 + edges.time).argsort(stable=True)
    count = edges.col.bincount(minlength=graph.sizes[edges.name[2]])
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)])
    return Columns(
        indptr.to(dtypes[0]),
        edges.row[order].to(dtypes[1]),
        edges.weight[order],
        edges.time[order],
    )
