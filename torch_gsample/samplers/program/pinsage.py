"""PinSAGE's neighbours as a sampler of PyG's loaders."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from typing_extensions import Unpack

from torch_gsample.algorithms.pinsage import pinsage
from torch_gsample.graph_input import GraphData
from torch_gsample.ops._check import count
from torch_gsample.options import LayerOptions, checked_names
from torch_gsample.samplers.program.weighted import WeightedSampler
from torch_gsample.sparse_sample import SparseSample


class PinSAGESampler(WeightedSampler):
    r"""Samples the nodes that random walks visit most (PinSAGE).

    At each hop, :func:`torch_gsample.algorithms.pinsage` replaces the
    neighbours of a node by the nodes that its walks visit most, as in `"Graph
    Convolutional Neural Networks for Web-Scale Recommender Systems"
    <https://arxiv.org/abs/1806.01973>`_ (KDD 2018). They need not be
    neighbours, so batches have no edge attributes but ``edge_weight``: the
    share of the visits, which sums to 1 for each destination.

    Walks go from sources to destinations: give an undirected graph, such as
    one of items that occur together.

    See :class:`LadiesSampler` for layers and what a model does with them.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int]): How many nodes to take at each hop.
        num_walks (int, optional): Walks of each node.
        walk_length (int, optional): Steps of each walk.
        restart (float, optional): Probability to go back to the node, at each
            step.
        **options (optional): See :class:`LadiesSampler`: ``seed``,
            ``share_memory``, ...

    Raises:
        TypeError: If ``num_neighbors``, ``num_walks`` or ``walk_length`` are
            no integers.
        ValueError: If they are not positive, the graph is heterogeneous, or
            ``restart`` is not in ``[0, 1)``.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample.loader import NeighborLoader
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> sampler = PinSAGESampler(data, [2], restart=0.0, seed=0)
        >>> loader = NeighborLoader(data, sampler=sampler, batch_size=1)
        >>> next(iter(loader)).n_id
        tensor([0, 1, 2])
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: Sequence[int],
        *,
        num_walks: int = 10,
        walk_length: int = 3,
        restart: float = 0.5,
        **options: Unpack[LayerOptions],
    ):
        count(self._name, 'num_walks', num_walks)
        count(self._name, 'walk_length', walk_length)
        if not 0 <= restart < 1:
            raise ValueError(
                f"{self._name}: 'restart' must be in [0, 1) (got {restart})"
            )
        super().__init__(
            data,
            _most_visited,
            ('num_neighbors', num_neighbors),
            {
                'num_walks': num_walks,
                'length': walk_length,
                'restart': restart,
            },
            own_edges=True,
            **options,
        )


def _most_visited(
    A: SparseSample, seeds: Tensor, fanouts: Sequence[int], **walks: Any
) -> list[SparseSample]:
    layers = []
    for k in fanouts:
        layers.append(pinsage(A, seeds, k, **walks))
        seeds = layers[-1].row()
    return layers
