"""Every convolution of PyG, and how it is called."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch_geometric import nn as pyg

WIDTH, NODES, EDGES = 8, 40, 200


class Case(NamedTuple):
    """A layer and its call.

    Args:
        make (Callable): Makes the layer.
        names (str): The arguments, of :func:`sample`.
        note (str): What of it is left to PyG.
    """

    make: Callable[[], Any]
    names: str = 'x edge_index'
    note: str = ''


def sample(dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Returns a graph with a hub, parallel edges and isolated vertices."""
    make = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=make, dtype=torch.float64)

    edge_index = torch.randint(NODES - 5, (2, EDGES), generator=make)
    edge_index[1, :60] = 3
    edge_index[:, 60:65] = edge_index[:, 65:70]
    found = {
        'x': draw(NODES, WIDTH),
        'x_0': draw(NODES, WIDTH),
        'pos': draw(NODES, 3),
        'edge_attr': draw(EDGES, 4),
        'edge_weight': draw(EDGES).abs(),
    }
    return {
        **{name: value.to(dtype) for name, value in found.items()},
        'edge_index': edge_index,
        'edge_type': torch.randint(3, (EDGES,), generator=make),
        'node_type': torch.randint(2, (NODES,), generator=make),
        'negative': edge_index.flip(1)[:, :90],
        'sequence': found['x'].view(NODES, 2, 4).repeat(1, 1, 2).to(dtype),
        'none': None,
    }


def histogram() -> torch.Tensor:
    """Returns how many vertices have each in-degree."""
    degree = torch.bincount(sample()['edge_index'][1], minlength=NODES)
    return torch.bincount(degree)


def mlp(*widths: int) -> Any:
    return pyg.MLP(list(widths), norm=None)


W = WIDTH
#: Layers with programs of their own, in torch_gsample.vertex.nn.
OWN = ('GCNConv', 'GATConv', 'GATv2Conv', 'APPNP', 'RGCNConv')
OWN += ('SAGEConv', 'GINConv', 'HGTConv')
CASES = {
    'SimpleConv': Case(pyg.SimpleConv, 'x edge_index edge_weight'),
    'ChebConv': Case(lambda: pyg.ChebConv(W, W, 3)),
    'GraphConv': Case(lambda: pyg.GraphConv(W, W), 'x edge_index edge_weight'),
    'GatedGraphConv': Case(lambda: pyg.GatedGraphConv(W, 2)),
    'ResGatedGraphConv': Case(
        lambda: pyg.ResGatedGraphConv(W, W, edge_dim=4),
        'x edge_index edge_attr',
    ),
    'TransformerConv': Case(
        lambda: pyg.TransformerConv(W, 4, heads=2, edge_dim=4, beta=True),
        'x edge_index edge_attr',
    ),
    'AGNNConv': Case(pyg.AGNNConv),
    'TAGConv': Case(lambda: pyg.TAGConv(W, W)),
    'GINEConv': Case(
        lambda: pyg.GINEConv(nn.Linear(W, W), edge_dim=4),
        'x edge_index edge_attr',
    ),
    'ARMAConv': Case(lambda: pyg.ARMAConv(W, W, 2, 2)),
    'SGConv': Case(lambda: pyg.SGConv(W, W, K=2)),
    'SSGConv': Case(lambda: pyg.SSGConv(W, W, 0.1, K=2)),
    'MFConv': Case(lambda: pyg.MFConv(W, W)),
    'FastRGCNConv': Case(
        lambda: pyg.FastRGCNConv(W, W, 3), 'x edge_index edge_type'
    ),
    'RGATConv': Case(
        lambda: pyg.RGATConv(W, 4, 3, heads=2, mod='f-additive', edge_dim=4),
        'x edge_index edge_type edge_attr',
    ),
    'SignedConv': Case(
        lambda: pyg.SignedConv(W, W, True), 'x edge_index negative'
    ),
    'DNAConv': Case(lambda: pyg.DNAConv(W), 'sequence edge_index'),
    'PointNetConv': Case(
        lambda: pyg.PointNetConv(mlp(W + 3, 16, W)),
        'x pos edge_index',
    ),
    'GMMConv': Case(lambda: pyg.GMMConv(W, W, 4, 3), 'x edge_index edge_attr'),
    'NNConv': Case(
        lambda: pyg.NNConv(W, W, nn.Linear(4, W * W)),
        'x edge_index edge_attr',
    ),
    'CGConv': Case(lambda: pyg.CGConv(W, 4), 'x edge_index edge_attr'),
    'EdgeConv': Case(lambda: pyg.EdgeConv(mlp(2 * W, 16, W)), 'x edge_index'),
    'PPFConv': Case(pyg.PPFConv, 'x pos pos edge_index'),
    'FeaStConv': Case(lambda: pyg.FeaStConv(W, W, heads=2), 'x edge_index'),
    'PointTransformerConv': Case(
        lambda: pyg.PointTransformerConv(W, W), 'x pos edge_index'
    ),
    'HypergraphConv': Case(lambda: pyg.HypergraphConv(W, W)),
    'LEConv': Case(lambda: pyg.LEConv(W, W), 'x edge_index edge_weight'),
    'PNAConv': Case(
        lambda: pyg.PNAConv(
            W,
            W,
            ['mean', 'min', 'max', 'std'],
            ['identity', 'amplification', 'attenuation'],
            histogram(),
            edge_dim=4,
        ),
        'x edge_index edge_attr',
    ),
    'ClusterGCNConv': Case(lambda: pyg.ClusterGCNConv(W, W)),
    'GENConv': Case(
        lambda: pyg.GENConv(W, W, edge_dim=4, learn_t=True, t=0.5),
        'x edge_index edge_attr',
    ),
    'GCN2Conv': Case(lambda: pyg.GCN2Conv(W, 0.1), 'x x_0 edge_index'),
    'WLConvContinuous': Case(pyg.WLConvContinuous, 'x edge_index edge_weight'),
    'FiLMConv': Case(lambda: pyg.FiLMConv(W, W, 3), 'x edge_index edge_type'),
    'SuperGATConv': Case(
        lambda: pyg.SuperGATConv(W, 4, heads=2),
        'x edge_index',
        "its loss is PyG's",
    ),
    'FAConv': Case(lambda: pyg.FAConv(W), 'x x_0 edge_index'),
    'EGConv': Case(
        lambda: pyg.EGConv(
            W, W, ['sum', 'mean', 'symnorm', 'max', 'std'], 4, 2
        ),
    ),
    'PDNConv': Case(lambda: pyg.PDNConv(W, W, 4, 8), 'x edge_index edge_attr'),
    'GeneralConv': Case(
        lambda: pyg.GeneralConv(
            W, W, attention=True, heads=2, attention_type='dot_product'
        ),
    ),
    'HEATConv': Case(
        lambda: pyg.HEATConv(W, 4, 2, 3, 5, 4, 5, heads=2),
        'x edge_index node_type edge_type edge_attr',
    ),
    'LGConv': Case(pyg.LGConv),
    'PointGNNConv': Case(
        lambda: pyg.PointGNNConv(mlp(W, 8, 3), mlp(W + 3, 8, W), mlp(W, 8, W)),
        'x pos edge_index',
    ),
    'MixHopConv': Case(lambda: pyg.MixHopConv(W, W)),
    'MeshCNNConv': Case(lambda: pyg.MeshCNNConv(W, W), 'x edge_index'),
}

#: Layers of graphs with several types of nodes.
TYPED = ('HANConv',)
METADATA = (['a', 'b'], [('a', 'to', 'b'), ('b', 'of', 'a'), ('a', 'x', 'a')])


def typed_layer(name: str) -> Any:
    """Returns a layer of a graph with types."""
    return getattr(pyg, name)(W, 8, METADATA, heads=2)


def typed_sample(dtype: torch.dtype = torch.float64) -> tuple[dict, dict]:
    """Returns features and edges of each type."""
    make = torch.Generator().manual_seed(0)
    sizes = {'a': 30, 'b': 20}
    x = {
        name: torch.randn(size, W, generator=make, dtype=torch.float64).to(
            dtype
        )
        for name, size in sizes.items()
    }
    edges = {
        key: torch.stack(
            [
                torch.randint(sizes[end], (60,), generator=make)
                for end in key[::2]
            ]
        )
        for key in METADATA[1]
    }
    return x, edges


#: What of these is left to PyG.
TYPED_NOTES = {'HANConv': ''}


#: What no call shows here, and why.
OTHERS = {
    'FusedGATConv': "PyG's: it calls kernels of a package for GPUs",
    'GravNetConv': 'not run here: it needs a search for neighbours',
    'DynamicEdgeConv': 'not run here: it needs a search for neighbours',
    'SplineConv': 'not run here: it needs pyg-lib',
    'PANConv': 'not run here: it needs sparse tensors',
    'XConv': "PyG's: no MessagePassing",
    'WLConv': "PyG's: it hashes, and has no gradient",
    'HeteroConv': 'calls other layers, which are fused',
    'GPSConv': 'calls another layer, which is fused',
    'AntiSymmetricConv': 'calls another layer, which is fused',
    'DirGNNConv': 'calls other layers, which are fused',
    'CuGraphSAGEConv': "PyG's: it calls kernels of a package for GPUs",
    'CuGraphGATConv': "PyG's: it calls kernels of a package for GPUs",
    'CuGraphRGCNConv': "PyG's: it calls kernels of a package for GPUs",
}
