"""Converts ``torch.sparse`` adjacencies for PyG's loaders.

A graph comes in; if ``adj_t`` or ``adj`` is a tensor, a shallow copy with
``edge_index`` goes out.
"""

import copy

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.adjacency import read_adjacency
from torch_gsample.graph_input import SPARSE_LAYOUTS, GraphData


def with_edge_index(data: GraphData) -> GraphData:
    """Replaces ``torch.sparse`` adjacencies by ``edge_index``.

    Their values become ``edge_weight``. Edges keep the order of the
    adjacency, to which a sampler's edge ids refer.

    Example:
        >>> import torch
        >>> adj_t = torch.eye(2).to_sparse_csr()
        >>> with_edge_index(Data(adj_t=adj_t)).edge_index
        tensor([[0, 1],
                [0, 1]])
    """
    if not isinstance(data, (Data, HeteroData)):
        return data
    out = copy.copy(data)
    found = False
    for store in out.edge_stores:
        for key in ('adj', 'adj_t'):
            adj = store.get(key)
            if not isinstance(adj, Tensor) or adj.layout not in SPARSE_LAYOUTS:
                continue
            found = True
            del store[key]
            edges = read_adjacency(
                'NeighborLoader', key, adj, transposed=key == 'adj_t'
            )
            store.edge_index = edges.edge_index()
            if 'edge_weight' not in store:
                store.edge_weight = edges.value
    return out if found else data
