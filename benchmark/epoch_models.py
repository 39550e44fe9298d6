"""The graphs, layers and forward passes of the benchmark of a step."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn as pyg
from torch_geometric import transforms
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import trim_to_layer

from torch_gsample.datasets import DebianPackages, power_law
from torch_gsample.vertex import nn

Forward = Callable[[torch.nn.ModuleList, Any, list[Any]], Tensor]


def packages(num_features: int) -> Data:
    """Returns Debian's packages with relations in both directions."""
    typed = transforms.ToUndirected()(DebianPackages()[0])
    data = typed.to_homogeneous(node_attrs=[], edge_attrs=[])
    data.x = torch.randn(data.num_nodes, num_features)
    return data


def large(num_features: int) -> Data:
    """Returns 1.5 M nodes and 30 M edges."""
    graph = power_law(1_500_000, 30_000_000, 20_000)
    edge_index = torch.stack([graph.indices, graph.col()]).long()
    edge_type = edge_index.sum(0) % 8
    x = torch.randn(1_500_000, num_features)
    return Data(x=x, edge_index=edge_index, edge_type=edge_type)


def typed(num_features: int) -> HeteroData:
    """Returns Debian's packages with node types, in both directions."""
    data: HeteroData = transforms.ToUndirected()(DebianPackages()[0])
    for store in data.node_stores:
        store.x = torch.randn(store.num_nodes, num_features)
    return data


GRAPHS = {'packages': packages, 'large': large, 'typed': typed}


class TypedLayer(torch.nn.Module):
    """A layer of R-GCN over types of nodes."""

    def __init__(self, module: Any, sizes: tuple[int, int], types: Any):
        super().__init__()
        # A convolution is a linear mean: HeteroConv is PyG's.
        convs = {
            key: module.SAGEConv(sizes, sizes[1], root_weight=False)
            for key in types
        }
        self.conv = pyg.HeteroConv(convs)
        names = sorted({name for key in types for name in key[::2]})
        self.own = torch.nn.ModuleDict(
            {name: torch.nn.Linear(*sizes) for name in names}
        )

    def forward(self, x: Any, edges: Any, own: Any = None) -> Any:
        own = x if own is None else own
        return {
            key: (value + self.own[key](own[key])).relu()
            for key, value in self.conv(x, edges).items()
        }


def layer(module: Any, name: str, sizes: tuple[int, int], types: Any) -> Any:
    """Returns a layer of a model."""
    if not isinstance(types, int):
        return TypedLayer(module, sizes, types)
    if name in ('GAT', 'GAT-dropout'):
        dropout = 0.3 if name == 'GAT-dropout' else 0.0
        width = sizes[1] // 4
        return module.GATConv(sizes[0], width, heads=4, dropout=dropout)
    if name == 'RGCN':
        return module.RGCNConv(*sizes, types)
    return getattr(module, f'{name}Conv')(*sizes)


def whole(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv in convs:
        x = conv(x, batch.edge_index, *more).relu()
    return x


def trimmed(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x, edge_index, edge_attr = batch.x, batch.edge_index, (more or [None])[0]
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    for i, conv in enumerate(convs):
        x, edge_index, edge_attr = trim_to_layer(
            i, *counts, x, edge_index, edge_attr
        )
        x = conv(x, edge_index, *([edge_attr] if more else [])).relu()
    return x


def blocks(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv, block in zip(convs, batch.blocks, strict=True):
        x = conv(x, block, *more).relu()
    return x


def pairs(convs: torch.nn.ModuleList, batch: Any, more: list[Any]) -> Tensor:
    x = batch.x
    for conv, block in zip(convs, batch.blocks, strict=True):
        edges = [value[: block.num_edges] for value in more]
        x = conv(block.pair(x), block.edge_index, *edges).relu()
    return x


def typed_whole(convs: Any, batch: Any, more: list[Any]) -> Any:
    x = batch.x_dict
    for conv in convs:
        x = conv(x, batch.edge_index_dict)
    return x


def typed_trimmed(convs: Any, batch: Any, more: list[Any]) -> Any:
    x, edges = batch.x_dict, batch.edge_index_dict
    counts = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
    for i, conv in enumerate(convs):
        x, edges, _ = trim_to_layer(i, *counts, x, edges)
        x = conv(x, edges)
    return x


def typed_blocks(convs: Any, batch: Any, more: list[Any]) -> Any:
    x = batch.x_dict
    for conv, block in zip(convs, batch.blocks, strict=True):
        x = conv(
            x, block, {key: x[key][:n] for key, n in block.num_dst.items()}
        )
    return x


def typed_pairs(convs: Any, batch: Any, more: list[Any]) -> Any:
    x = batch.x_dict
    for conv, block in zip(convs, batch.blocks, strict=True):
        own = {key: x[key][:n] for key, n in block.num_dst.items()}
        x = conv(block.pairs(x), block.edge_index_dict, own)
    return x


class Model(torch.nn.Module):
    """PyG's layers in the usual code."""

    def __init__(self, convs: torch.nn.ModuleList):
        super().__init__()
        self.convs = convs

    def forward(self, x: Any, edge_index: Any, *more: Tensor) -> Any:
        for conv in self.convs:
            x = conv(x, edge_index, *more)
            x = x if isinstance(x, dict) else x.relu()
        return x


def ways_of(name: str, is_typed: bool) -> dict[str, tuple[Any, Forward]]:
    """Returns the layers and the forward pass of each candidate."""
    forwards = [whole, trimmed, pairs, blocks]
    if is_typed:
        forwards = [typed_whole, typed_trimmed, typed_pairs, typed_blocks]
    all_rows, trims, of_pairs, of_blocks = forwards
    ways: dict[str, tuple[Any, Forward]] = {
        'PyG': (pyg, all_rows),
        'PyG, trimmed': (pyg, trims),
        'PyG on blocks': (pyg, of_pairs),
        'fused': (nn, all_rows),
        'fused on blocks': (nn, of_blocks),
        'fuse(model)': (pyg, all_rows),
    }
    if name == 'GCN':
        del ways['PyG on blocks']
    return ways
