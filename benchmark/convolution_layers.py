"""The layers, graphs and calls that `convolutions.py` compares."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from torch_gsample import NeighborSampler, fuse
from torch_gsample.datasets import DebianPackages
from torch_gsample.loader import NeighborLoader

#: Number of edge features, relations and vertex types of all graphs.
EDGE_DIM, RELATIONS, TYPES = 8, 8, 2


class Layer(NamedTuple):
    """A layer.

    Args:
        make (Callable): Makes it for a number of channels.
        inputs (str): Its arguments, of :class:`Inputs`.
        is_bipartite (bool): Whether it accepts a pair of features.
        most (int): Largest number of channels: PyG's needs too much memory.
    """

    make: Callable[[int], Any]
    inputs: str = 'x edge_index'
    is_bipartite: bool = False
    most: int = 256


def mlp(*widths: int) -> Any:
    """Returns an MLP with ReLU between its layers."""
    return pyg.MLP(list(widths), norm=None)


WEIGHT, ATTR = 'x edge_index edge_weight', 'x edge_index edge_attr'
TYPE, POS = 'x edge_index edge_type', 'x pos edge_index'
DEGREES = torch.tensor([0, 30_000, 20_000, 10_000, 5_000, 1_000])
LAYERS = {
    'SimpleConv': Layer(lambda c: pyg.SimpleConv(), WEIGHT, True),
    'GCNConv': Layer(lambda c: pyg.GCNConv(c, c)),
    'ChebConv': Layer(lambda c: pyg.ChebConv(c, c, 3)),
    'SAGEConv': Layer(lambda c: pyg.SAGEConv(c, c), is_bipartite=True),
    'SAGEConv max': Layer(
        lambda c: pyg.SAGEConv(c, c, aggr='max'), is_bipartite=True
    ),
    'GraphConv': Layer(lambda c: pyg.GraphConv(c, c), WEIGHT, True),
    'GatedGraphConv': Layer(lambda c: pyg.GatedGraphConv(c, 2)),
    'ResGatedGraphConv': Layer(
        lambda c: pyg.ResGatedGraphConv(c, c), is_bipartite=True
    ),
    'GATConv': Layer(lambda c: pyg.GATConv(c, c // 4, 4), is_bipartite=True),
    'GATv2Conv': Layer(
        lambda c: pyg.GATv2Conv(c, c // 4, 4), is_bipartite=True
    ),
    'TransformerConv': Layer(
        lambda c: pyg.TransformerConv(c, c // 4, 4), is_bipartite=True
    ),
    'AGNNConv': Layer(lambda c: pyg.AGNNConv()),
    'TAGConv': Layer(lambda c: pyg.TAGConv(c, c)),
    'GINConv': Layer(lambda c: pyg.GINConv(mlp(c, c, c)), is_bipartite=True),
    'GINEConv': Layer(
        lambda c: pyg.GINEConv(mlp(c, c, c), edge_dim=EDGE_DIM), ATTR, True
    ),
    'ARMAConv': Layer(lambda c: pyg.ARMAConv(c, c)),
    'SGConv': Layer(lambda c: pyg.SGConv(c, c, K=2)),
    'SSGConv': Layer(lambda c: pyg.SSGConv(c, c, 0.1, K=2)),
    'APPNP': Layer(lambda c: pyg.APPNP(10, 0.1)),
    'MFConv': Layer(lambda c: pyg.MFConv(c, c, 5), is_bipartite=True),
    'RGCNConv': Layer(lambda c: pyg.RGCNConv(c, c, RELATIONS), TYPE, True),
    'RGATConv': Layer(
        lambda c: pyg.RGATConv(c, c // 4, RELATIONS, heads=4), TYPE, most=16
    ),
    'PointNetConv': Layer(lambda c: pyg.PointNetConv(mlp(c + 3, c, c)), POS),
    'GMMConv': Layer(lambda c: pyg.GMMConv(c, c, EDGE_DIM, 2), ATTR, True, 64),
    'NNConv': Layer(
        lambda c: pyg.NNConv(c, c, nn.Linear(EDGE_DIM, c * c)), ATTR, True, 16
    ),
    'CGConv': Layer(lambda c: pyg.CGConv(c, EDGE_DIM), ATTR, True),
    'EdgeConv': Layer(
        lambda c: pyg.EdgeConv(mlp(2 * c, c, c)), 'x edge_index'
    ),
    'FeaStConv': Layer(lambda c: pyg.FeaStConv(c, c, 2), 'x edge_index', True),
    'PointTransformerConv': Layer(
        lambda c: pyg.PointTransformerConv(c, c), POS
    ),
    'LEConv': Layer(lambda c: pyg.LEConv(c, c), WEIGHT, True),
    'PNAConv': Layer(
        lambda c: pyg.PNAConv(
            *(c, c, ['mean', 'min', 'max', 'std']),
            *(['identity', 'amplification', 'attenuation'], DEGREES),
        ),
    ),
    'ClusterGCNConv': Layer(lambda c: pyg.ClusterGCNConv(c, c)),
    'GENConv': Layer(lambda c: pyg.GENConv(c, c), is_bipartite=True),
    'GCN2Conv': Layer(lambda c: pyg.GCN2Conv(c, 0.1), 'x x_0 edge_index'),
    'FiLMConv': Layer(
        lambda c: pyg.FiLMConv(c, c, 2), 'x edge_index edge_two'
    ),
    'SuperGATConv': Layer(lambda c: pyg.SuperGATConv(c, c // 4, 4)),
    'FAConv': Layer(lambda c: pyg.FAConv(c), 'x x_0 edge_index'),
    'EGConv': Layer(lambda c: pyg.EGConv(c, c, ['sum', 'mean', 'max'], 4, 4)),
    'PDNConv': Layer(lambda c: pyg.PDNConv(c, c, EDGE_DIM, 16), ATTR),
    'GeneralConv': Layer(
        lambda c: pyg.GeneralConv(c, c, attention=True), is_bipartite=True
    ),
    'HEATConv': Layer(
        lambda c: pyg.HEATConv(c, c // 4, TYPES, RELATIONS, 8, EDGE_DIM, 8, 4),
        'x edge_index node_type edge_type edge_attr',
    ),
    'LGConv': Layer(lambda c: pyg.LGConv()),
    'HypergraphConv': Layer(lambda c: pyg.HypergraphConv(c, c)),
    'MixHopConv': Layer(lambda c: pyg.MixHopConv(c, c)),
}


class Inputs:
    """A graph and the inputs of layers.

    Args:
        edge_index (torch.Tensor): int64 ``[2, num_edges]``.
        sizes (Tuple[int, int]): Sources and destinations.
        channels (int): Features per vertex.
        is_fresh (bool, optional): Whether each call gets a copy of the edges,
            as batches of a loader are new.
    """

    def __init__(
        self,
        edge_index: Tensor,
        sizes: tuple[int, int],
        channels: int,
        is_fresh: bool = False,
    ):
        make = torch.Generator().manual_seed(12)
        nodes, edges = sizes[0], edge_index.shape[1]
        self.edge_index, self._sizes = edge_index, sizes
        self._is_fresh = is_fresh
        self.edge_weight = torch.rand(edges, generator=make)
        self.edge_attr = torch.rand(edges, EDGE_DIM, generator=make)
        self.edge_type = torch.arange(edges) % RELATIONS
        self.edge_two = torch.arange(edges) % 2
        self.node_type = torch.arange(nodes) % TYPES
        self.pos = torch.rand(nodes, 3, generator=make)
        self.x_0 = torch.randn(nodes, channels, generator=make)
        self.x = torch.randn(nodes, channels, generator=make).requires_grad_()

    def of(self, layer: Layer) -> list[Any]:
        """Returns the arguments of a layer."""
        names = layer.inputs.split()
        found = [getattr(self, name) for name in names]
        if self._is_fresh:
            found[names.index('edge_index')] = self.edge_index.clone()
        if layer.is_bipartite:
            found[0] = self.x, self.x[: self._sizes[1]]
        return found


def packages() -> tuple[Tensor, tuple[int, int]]:
    """Returns the whole graph of packages."""
    data = DebianPackages(homogeneous=True)[0]
    return data.edge_index, (data.num_nodes, data.num_nodes)


def block() -> tuple[Tensor, tuple[int, int]]:
    """Returns the largest block of three hops around 1,024 packages."""
    data = DebianPackages(homogeneous=True)[0]
    sampler = NeighborSampler(data, [15, 10, 5], seed=12)
    loader = NeighborLoader(
        data, sampler=sampler, batch_size=1024, shuffle=True
    )
    first = next(iter(loader)).blocks[0]
    return first.edge_index.contiguous(), first.size


def tiny() -> tuple[Tensor, tuple[int, int]]:
    """Returns a graph of 100 edges."""
    make = torch.Generator().manual_seed(12)
    return torch.randint(50, (2, 100), generator=make), (50, 50)


def small() -> tuple[Tensor, tuple[int, int]]:
    """Returns a batch of 100 graphs of 20 nodes and 80 edges each."""
    make = torch.Generator().manual_seed(12)
    edges = torch.randint(20, (2, 100, 80), generator=make)
    first = 20 * torch.arange(100)[:, None]
    return (edges + first).reshape(2, -1), (2000, 2000)


GRAPHS = {'packages': packages, 'block': block, 'small': small, 'tiny': tiny}


def steps_of(
    layer: Layer, channels: int, inputs: Inputs, min_nodes: int
) -> dict[str, Callable[[int], object]]:
    """Returns forward and backward of a fused layer and of PyG's.

    Args:
        layer (Layer): The layer.
        channels (int): Its channels.
        inputs (Inputs): Its inputs.
        min_nodes (int): Calls with fewer vertices run PyG's code.
    """
    torch.manual_seed(12)
    theirs = layer.make(channels)
    model = nn.ModuleList([copy.deepcopy(theirs)])
    fuse(model, min_nodes=min_nodes, verbose=False)

    def step_of(conv: Any) -> Callable[[int], object]:
        leaves = [inputs.x, *conv.parameters()]

        def step(_: int) -> object:
            out = conv(*inputs.of(layer))
            ones = torch.ones_like(out)
            return torch.autograd.grad(out, leaves, ones, allow_unused=True)

        return step

    return {'fused': step_of(model[0]), 'PyG': step_of(theirs)}
