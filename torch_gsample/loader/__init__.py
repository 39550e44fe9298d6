"""PyG's loaders with a ``sampler=`` argument.

A graph and seeds come in, PyG mini-batches go out.
"""

from typing import TYPE_CHECKING

from torch_gsample._lazy import lazy_names

if TYPE_CHECKING:
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

#: The module of each name, imported on first use.
_MODULES = {
    'batch_shape': ('BatchShape',),
    'cluster': ('ClusterData',),
    'graph_saint': (
        'GraphSAINTEdgeSampler',
        'GraphSAINTNodeSampler',
        'GraphSAINTRandomWalkSampler',
        'GraphSAINTSampler',
    ),
    'hgt_loader': ('HGTLoader',),
    'last_neighbors': ('LastNeighborLoader',),
    'neighbor_loader': (
        'LinkNeighborLoader',
        'NeighborLoader',
    ),
    'node_loader': (
        'LinkLoader',
        'NodeLoader',
    ),
    'shadow': ('ShaDowKHopSampler',),
    'walk_loader': ('WalkLoader',),
}

# In the order of the reference.
__all__ = [  # noqa: RUF022
    'NeighborLoader',
    'LinkNeighborLoader',
    'NodeLoader',
    'LinkLoader',
    'HGTLoader',
    'ShaDowKHopSampler',
    'GraphSAINTSampler',
    'GraphSAINTNodeSampler',
    'GraphSAINTEdgeSampler',
    'GraphSAINTRandomWalkSampler',
    'LastNeighborLoader',
    'WalkLoader',
    'ClusterData',
    'BatchShape',
]

if not TYPE_CHECKING:  # checkers report unknown names
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
