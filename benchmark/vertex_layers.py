"""The graphs, layers and calls that `vertex.py` compares."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from torch_gsample import NeighborSampler, ops
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader
from torch_gsample.vertex import nn

#: Candidates, in the order of columns.
KINDS = ('fused', 'PyG', 'SpMM', 'compiled')
RELATIONS = 8  # of graphs without their own


def rmat() -> Data:
    """Returns 100,000 vertices and 2,500,000 edges."""
    nodes = 100_000
    row, col = ops.rmat_edges(17, 2_500_000, [0.57, 0.19, 0.19, 0.05], 1)
    edge_index = torch.stack([row % nodes, col % nodes]).long()
    return Data(edge_index=edge_index, num_nodes=nodes)


def block() -> Data:
    """Returns a sample of three hops around 1,024 vertices."""
    data = rmat()
    sampler = NeighborSampler(data, [15, 10, 5], seed=12)
    loader = NeighborLoader(
        data, sampler=sampler, batch_size=1024, input_nodes=None
    )
    return next(iter(loader))


def from_file(path: str) -> Data:
    """Returns the edges of all relations of an ``.npz`` file."""
    with np.load(path) as file:
        names = [key for key in file.files if key.startswith('edge/')]
        types = sorted(
            {
                t
                for n in names
                for t in n.removeprefix('edge/').split('__')[::2]
            }
        )
        sizes = dict.fromkeys(types, 0)
        parts = {}
        for name in names:
            source, _, target = name.removeprefix('edge/').split('__')
            edges = torch.from_numpy(file[name]).long()
            parts[source, name, target] = edges
            for end, kind in enumerate((source, target)):
                sizes[kind] = max(sizes[kind], int(edges[end].max()) + 1)
    start = dict(
        zip(types, np.cumsum([0, *sizes.values()]).tolist(), strict=False)
    )
    edge_index, edge_type = [], []
    for number, ((source, _, target), edges) in enumerate(parts.items()):
        offset = torch.tensor([[start[source]], [start[target]]])
        edge_index.append(edges + offset)
        edge_type.append(torch.full((edges.shape[1],), number))
    return Data(
        edge_index=torch.cat(edge_index, 1),
        edge_type=torch.cat(edge_type),
        num_nodes=sum(sizes.values()),
    )


GRAPHS: dict[str, Callable[[], Data]] = {
    'packages': lambda: DebianPackages(homogeneous=True)[0],
    'rmat': rmat,
    'block': block,
}


def graph_of(name: str) -> Data:
    """Returns a graph by its name, or from a file."""
    return GRAPHS[name]() if name in GRAPHS else from_file(name)


def layers(
    name: str, channels: int, heads: int, relations: int
) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Returns a layer of ours and one of PyG's, with equal weights."""
    make: Callable[[Any], torch.nn.Module] = {
        'GCN': lambda m: m.GCNConv(channels, channels),
        'GAT': lambda m: m.GATConv(channels, channels // heads, heads),
        'APPNP': lambda m: m.APPNP(K=10, alpha=0.1),
        'RGCN': lambda m: m.RGCNConv(channels, channels, relations),
    }[name]
    theirs, ours = make(pyg), make(nn)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def transposed(data: Data) -> Tensor:
    """Returns the adjacency matrix of PyG's products."""
    size = (data.num_nodes, data.num_nodes)
    return to_torch_csr_tensor(data.edge_index.flip(0), size=size)


def edges_of(name: str, data: Data) -> tuple[tuple, int]:
    """Returns a layer's arguments after features; the number of relations."""
    edge_type = data.get('edge_type')
    if edge_type is None:
        edge_type = torch.arange(data.num_edges) % RELATIONS
    given = (data.edge_index,)
    if name == 'RGCN':
        given = (data.edge_index, edge_type)
    return given, int(edge_type.max()) + 1


def both(layer: Any, x: Tensor, args: tuple) -> Callable[[int], object]:
    """Returns a call of a layer and of its backward."""
    leaves = [x]
    if isinstance(layer, torch.nn.Module):
        leaves += layer.parameters()

    def call(_: int) -> object:
        out = layer(x, *args)
        return torch.autograd.grad(out, leaves, torch.ones_like(out))

    return call


class Multiplied(torch.nn.Module):
    """A layer of PyG that multiplies by a matrix in CSR."""

    def __init__(self, layer: torch.nn.Module, adjacency: Tensor):
        super().__init__()
        self.layer, self.adjacency = layer, adjacency

    def forward(self, x: Tensor, *_: Tensor) -> Tensor:
        """Accepts the edges of other layers, and ignores them."""
        return self.layer(x, self.adjacency)


def candidate(
    kind: str, data: Data, name: str, channels: int, heads: int
) -> Callable[..., Tensor]:
    """Returns a layer, ready to be called.

    Args:
        kind (str): One of :data:`KINDS`.
        data (Data): The graph.
        name (str): The layer.
        channels (int): Features, in and out.
        heads (int): Heads of attention.
    """
    torch.manual_seed(12)
    _, relations = edges_of(name, data)
    ours, theirs = layers(name, channels, heads, relations)
    if kind == 'fused':
        return ours
    if kind == 'SpMM':
        return Multiplied(theirs, transposed(data))
    return torch.compile(theirs) if kind == 'compiled' else theirs


def kinds_of(name: str, compiles: bool) -> list[str]:
    """Returns the available candidates of a layer."""
    multiplies = name in ('GCN', 'APPNP')
    return [
        kind
        for kind in KINDS
        if (kind != 'SpMM' or multiplies) and (kind != 'compiled' or compiles)
    ]
