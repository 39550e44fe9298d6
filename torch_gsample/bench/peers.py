"""The samplers of others that are installed, as functions of a round.

Each function returns those that can do a task; none is a dependency. They
take int64 graphs, as their libraries do.
"""

import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import NodeSamplerInput

from torch_gsample.csc import CSC

Call = Callable[[int], object]


def pyg_lib_operators() -> Any:
    """Returns pyg-lib's operators if it is installed."""
    return torch.ops.pyg if _imports('pyg_lib') else None


def dgl_module() -> Any:
    """Returns DGL if it is installed."""
    try:
        import dgl
    except Exception:  # it fails in many ways with a newer torch
        return None
    return dgl


def _imports(name: str) -> bool:
    if importlib.util.find_spec(name) is None:
        return False
    try:
        importlib.import_module(name)
    except Exception:  # built for another torch
        return False
    return True


def neighbor_samplers(
    graph: CSC, data: Data, batches: list[Tensor], fanouts: list[int]
) -> dict[str, Call]:
    """Returns the peers that sample neighbours."""
    indptr, indices = graph.indptr.long(), graph.indices.long()
    peers: dict[str, Call] = {}

    def batch(i: int) -> Tensor:
        return batches[i % len(batches)]

    pyg = pyg_lib_operators()
    if pyg is not None:
        peers['pyg-lib'] = lambda i: pyg.neighbor_sample(
            indptr, indices, batch(i), fanouts, csc=True
        )
    if _imports('torch_sparse'):
        sparse = torch.ops.torch_sparse.neighbor_sample
        peers['torch-sparse'] = lambda i: sparse(
            indptr, indices, batch(i), fanouts, False, True
        )
    if peers:
        from torch_geometric.sampler import NeighborSampler

        sampler = NeighborSampler(data, fanouts)
        peers["PyG's sampler"] = lambda i: sampler.sample_from_nodes(
            NodeSamplerInput(None, batch(i))
        )
    dgl = dgl_module()
    if dgl is not None:
        none = torch.empty(0, dtype=torch.int64)
        g = dgl.graph(('csc', (indptr, indices, none))).formats('csc')
        blocks = dgl.dataloading.NeighborSampler(fanouts[::-1])
        peers['DGL'] = lambda i: blocks.sample_blocks(g, batch(i))
    return peers


def loaders(data: Data, fanouts: list[int], **options: Any) -> dict[str, Call]:
    """Returns PyG's loader, where it has something to sample with."""
    if not (_imports('pyg_lib') or _imports('torch_sparse')):
        return {}
    from torch_geometric.loader import NeighborLoader

    loader = NeighborLoader(data, fanouts, **options)
    return {"PyG's loader": lambda _: sum(1 for _ in loader)}


def walkers(graph: CSC, seeds: Tensor, length: int) -> dict[str, Call]:
    """Returns the peers that walk at random."""
    indptr, indices = graph.indptr.long(), graph.indices.long()
    peers: dict[str, Call] = {}
    pyg = pyg_lib_operators()
    if pyg is not None:
        peers['pyg-lib'] = lambda _: pyg.random_walk(
            indptr, indices, seeds, length, 1.0, 1.0
        )
    if _imports('torch_cluster'):
        walk = torch.ops.torch_cluster.random_walk
        peers['torch-cluster'] = lambda _: walk(
            indptr, indices, seeds, length, 1.0, 1.0
        )
    dgl = dgl_module()
    if dgl is not None:
        none = torch.empty(0, dtype=torch.int64)
        g = dgl.graph(('csr', (indptr, indices, none))).formats('csr')
        peers['DGL'] = lambda _: dgl.sampling.random_walk(
            g, seeds, length=length
        )
    return peers
