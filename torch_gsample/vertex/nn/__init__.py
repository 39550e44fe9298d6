"""PyG's layers as vertex programs, under PyG's names.

A layer takes PyG's arguments and loads PyG's ``state_dict``. Calls that it
cannot fuse run PyG's own code.
"""

from torch_gsample.vertex.nn.appnp import APPNP
from torch_gsample.vertex.nn.gat_conv import GATConv
from torch_gsample.vertex.nn.gatv2_conv import GATv2Conv
from torch_gsample.vertex.nn.gcn_conv import GCNConv
from torch_gsample.vertex.nn.gin_conv import GINConv
from torch_gsample.vertex.nn.hgt_conv import HGTConv
from torch_gsample.vertex.nn.rgcn_conv import RGCNConv
from torch_gsample.vertex.nn.sage_conv import SAGEConv

__all__ = [
    'APPNP',
    'GATConv',
    'GATv2Conv',
    'GCNConv',
    'GINConv',
    'HGTConv',
    'RGCNConv',
    'SAGEConv',
]
