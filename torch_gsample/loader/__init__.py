"""PyG's loaders with a ``sampler=`` argument.

A graph and seeds come in, PyG mini-batches go out.
"""

from torch_gsample.loader.batch_shape import BatchShape
from torch_gsample.loader.cluster import ClusterData
from torch_gsample.loader.graph_saint import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    GraphSAINTSampler,
)
from torch_gsample.loader.hgt_loader import HGTLoader
from torch_gsample.loader.last_neighbors import LastNeighborLoader
from torch_gsample.loader.neighbor_loader import (
    LinkNeighborLoader,
    NeighborLoader,
)
from torch_gsample.loader.node_loader import LinkLoader, NodeLoader
from torch_gsample.loader.shadow import ShaDowKHopSampler
from torch_gsample.loader.walk_loader import WalkLoader

__all__ = [
    'BatchShape',
    'ClusterData',
    'GraphSAINTEdgeSampler',
    'GraphSAINTNodeSampler',
    'GraphSAINTRandomWalkSampler',
    'GraphSAINTSampler',
    'HGTLoader',
    'LastNeighborLoader',
    'LinkLoader',
    'LinkNeighborLoader',
    'NeighborLoader',
    'NodeLoader',
    'ShaDowKHopSampler',
    'WalkLoader',
]
