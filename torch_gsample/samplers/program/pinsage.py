"""PinSAGE as a sampler of PyG's loaders."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch_geometric.typing import EdgeType
from typing_extensions import Unpack

from torch_gsample.algorithms.pinsage import check_metapath, pinsage
from torch_gsample.graph_input import GraphData
from torch_gsample.ops._check import count
from torch_gsample.options import LayerOptions, checked_names
from torch_gsample.samplers.program.input import open_graph, prepare_rows
from torch_gsample.samplers.program.weighted import WeightedSampler
from torch_gsample.sparse_sample import SparseSample


class PinSAGESampler(WeightedSampler):
    r"""Samples the nodes that random walks visit most (PinSAGE).

    At each hop, :func:`torch_gsample.algorithms.pinsage` replaces the
    neighbours of a node with the nodes that its walks visit most, as in
    `"Graph Convolutional Neural Networks for Web-Scale Recommender Systems"
    <https://arxiv.org/abs/1806.01973>`_ (KDD 2018). They need not be
    neighbours, so ``edge_weight`` is the only edge attribute of batches: the
    share of the visits, which sums to 1 for each destination.

    Walks go from sources to destinations: use an undirected graph, such as
    items that occur together. Alternatively, pass the items alone as ``data``
    and a ``metapath`` from items to items through the ``relations`` of a
    heterogeneous graph. A step of a walk is then the whole path, and a walk
    ends with probability ``restart`` after each.

    See :class:`LadiesSampler` for layers and their use in a model.

    Args:
        data (Data or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int]): Number of nodes to select at each hop.
        num_walks (int, optional): Number of walks from each node.
        walk_length (int, optional): Number of steps of each walk.
        restart (float, optional): Probability to return to the node, at each
            step.
        relations (HeteroData or (FeatureStore, GraphStore), optional): The
            graph of the metapath.
        metapath (List[EdgeType], optional): Its relations in order, as in
            :func:`torch_gsample.algorithms.pinsage`. The node type where it
            begins is that of ``data``.
        **options (optional): See :class:`LadiesSampler`: ``seed``,
            ``share_memory``, ...

    Raises:
        TypeError: If ``num_neighbors``, ``num_walks`` or ``walk_length`` are
            not integers.
        ValueError: If they are not positive, ``data`` is heterogeneous,
            ``restart`` is not in ``[0, 1)``, only one of ``relations`` and
            ``metapath`` is given, or the path does not fit.

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
        relations: GraphData | None = None,
        metapath: Sequence[EdgeType] | None = None,
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
        if (relations is None) != (metapath is None):
            raise ValueError(
                f"{self._name}: 'relations' and 'metapath' must be given "
                'together'
            )
        if relations is not None and metapath is not None:
            graphs = self._read_relations(relations, metapath)
            if options.get('share_memory'):
                for matrix in graphs.values():
                    matrix.share_memory_()
            self.program_kwargs |= {
                'relations': graphs,
                'metapath': [tuple(t) for t in metapath],
            }

    def _read_relations(
        self, relations: GraphData, metapath: Sequence[EdgeType]
    ) -> dict[Any, SparseSample]:
        """Returns the relations of a path, with the rows that walks follow."""
        name = self._name
        graph, graphs = open_graph(name, relations)
        if not graph.is_hetero:
            raise ValueError(
                f"{name}: 'relations' must be heterogeneous (got a "
                'homogeneous graph)'
            )
        check_metapath(name, graphs, metapath)
        graphs = {tuple(t): graphs[tuple(t)] for t in metapath}
        items = next(iter(graphs.values())).num_rows
        if items != self.graph.counts[None]:
            raise ValueError(
                f"{name}: 'data' must have the {items} nodes of type "
                f'{metapath[0][0]!r} of the metapath (got '
                f'{self.graph.counts[None]})'
            )
        for matrix in graphs.values():
            prepare_rows(matrix)
        return graphs


def _most_visited(
    A: SparseSample,
    seeds: Tensor,
    fanouts: Sequence[int],
    relations: Mapping[Any, SparseSample] | None = None,
    **walks: Any,
) -> list[SparseSample]:
    layers = []
    for k in fanouts:
        layers.append(pinsage(relations or A, seeds, k, **walks))
        seeds = layers[-1].row()
    return layers
