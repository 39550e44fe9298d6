"""The first layers of classes, for which PyG makes their code.

Where the first `SAGEConv` of a process aggregates by what has no fused form,
no later one takes a sparse matrix.
"""

from torch_geometric.nn import GraphConv, SAGEConv

FIRST = GraphConv(1, 1), SAGEConv(1, 1)
