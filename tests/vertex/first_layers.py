"""The first layers of classes, for which PyG makes their code.

Where the first `SAGEConv` of a process aggregates by what has no fused form,
no later one takes a sparse matrix. A subclass, such as ours, has its own code.
"""

from torch_geometric.nn import GraphConv, SAGEConv

from torch_gsample.vertex import nn

FIRST = GraphConv(1, 1), SAGEConv(1, 1), nn.SAGEConv(1, 1)
