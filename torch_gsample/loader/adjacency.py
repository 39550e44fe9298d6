"""Spells ``torch.sparse`` adjacencies so that PyG's loaders can filter them.

A graph comes in; where it holds ``adj_t`` or ``adj`` as a tensor, a shallow
copy with ``edge_index`` goes out.
"""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.samplers.graph_input import GraphData

_LAYOUTS = (torch.sparse_csr, torch.sparse_csc)


def with_edge_index(data: GraphData) -> GraphData:
    """Replaces ``torch.sparse`` adjacencies by ``edge_index``.

    Their values become ``edge_weight``. Edges keep the order of the
    adjacency, to which a sampler's edge ids refer.

    Example:
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
            if not isinstance(adj, Tensor) or adj.layout not in _LAYOUTS:
                continue
            found = True
            del store[key]
            store.edge_index = _edge_index(adj, transposed=key == 'adj_t')
            if 'edge_weight' not in store:
                store.edge_weight = adj.values()
    return out if found else data


def _edge_index(adj: Tensor, transposed: bool) -> Tensor:
    by_row = adj.layout == torch.sparse_csr
    pointers, minor = (
        (adj.crow_indices(), adj.col_indices())
        if by_row
        else (adj.ccol_indices(), adj.row_indices())
    )
    major = torch.arange(pointers.numel() - 1, device=pointers.device)
    major = major.to(minor.dtype).repeat_interleave(pointers.diff())
    return torch.stack(
        [major, minor] if by_row != transposed else [minor, major]
    )
