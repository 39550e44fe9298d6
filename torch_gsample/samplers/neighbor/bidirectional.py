"""PyG's bidirectional sampler, made of two of our samplers."""

from typing import Any, get_args

from torch_geometric.sampler import BidirectionalNeighborSampler as PyGSampler
from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

from torch_gsample.graph_input import GraphData
from torch_gsample.options import Direction, NeighborOptions, checked_names
from torch_gsample.samplers.neighbor.node_wise import (
    NeighborSampler,
    NumNeighborsType,
)


class _OneDirection(NeighborSampler):
    """Returns edge ids of the data, so that both directions can be joined."""

    def _sample(self, *args: Any, **kwargs: Any) -> Any:
        out = super()._sample(*args, **kwargs)
        perm = self.edge_permutation
        if perm is not None:
            out.edge = perm[out.edge]
        return out


class BidirectionalNeighborSampler(PyGSampler):
    """Samples along edges and against them, hop by hop.

    :func:`torch_gsample.patch_pyg` replaces PyG's sampler of this name, which
    its GraphRAG store uses. Edge ids of samples are those of the data in any
    order. As in PyG, the graph must be homogeneous and have no times.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_neighbors (NumNeighbors or List[int]): Neighbours to sample at
            each hop in each direction.
        **options (optional): As in :class:`NeighborSampler`.

    Raises:
        RuntimeError: If ``num_neighbors`` is a dictionary.
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: NumNeighborsType,
        subgraph_type: SubgraphType | str = 'directional',
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        time_attr: str | tuple[str, str] | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        share_memory: bool = False,
        directed: bool = True,
        **options: Unpack[NeighborOptions],
    ):
        given = {**locals(), **options}
        del given['self'], given['options']
        values = num_neighbors
        if isinstance(values, NumNeighbors):
            values = values.values
        if isinstance(values, dict):
            raise RuntimeError(
                f"{type(self).__name__}: 'num_neighbors' must be a list (got "
                f'{values})'
            )

        self.forward_sampler, self.backward_sampler = (
            _OneDirection(sample_direction=direction, **given)
            for direction in get_args(Direction)
        )
        self.num_neighbors = num_neighbors
        self.subgraph_type = self.forward_sampler.subgraph_type
        # PyG's class reads these to sample from edges.
        self.num_nodes = self.forward_sampler.num_nodes
        self.node_time = None
        self.keep_orig_edges = False

    @property
    def edge_permutation(self) -> None:
        """None: edge ids of a sample are those of the data."""
        return None
