"""PyG's ``HGTLoader`` on our sampler."""

from collections.abc import Callable
from typing import Any

from torch_geometric import loader as pyg_loader
from typing_extensions import Unpack

from torch_gsample.graph_input import GraphData
from torch_gsample.loader.node_loader import NodeBatches
from torch_gsample.loader.options import HGTOptions
from torch_gsample.options import KeyOptions, checked_names, take
from torch_gsample.samplers.program.hgt import HGTSampler, NumSamples


class HGTLoader(NodeBatches, pyg_loader.HGTLoader):
    r"""PyG's ``HGTLoader`` without torch-sparse.

    It takes PyG's arguments and returns PyG's mini-batches, which also have
    ``num_sampled_nodes``. See :class:`HGTSampler` for the distribution, and
    :class:`NeighborLoader` for workers, threads and features.

    Args:
        data (HeteroData or (FeatureStore, GraphStore)): The graph.
        num_samples (List[int] or Dict[NodeType, List[int]]): Nodes of each
            type to sample at each layer.
        input_nodes (str or Tuple[str, torch.Tensor]): The seeds: their type,
            or a pair of the type and its nodes.
        is_sorted (bool, optional): Whether edges are already sorted by
            destination.
        transform (Callable, optional): Transforms a batch.
        transform_sampler_output (Callable, optional): Transforms a sample.
        filter_per_worker (bool, optional): Whether workers join the features.
        **options (optional): ``seed`` and ``rng_scope`` of
            :class:`KeyedSampler`, ``prefetch``, ``rank`` and ``world_size`` of
            :class:`NeighborLoader`, and further arguments of PyG's
            ``NodeLoader`` and of :class:`torch.utils.data.DataLoader`.

    Raises:
        TypeError: If ``num_samples`` are not integers.
        ValueError: If the graph has no node types, or ``num_samples`` do not
            match them.

    Example:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> data = HeteroData()
        >>> data['paper'].num_nodes = data['author'].num_nodes = 3
        >>> data['author', 'writes', 'paper'].edge_index = torch.tensor(
        ...     [[0, 1, 2], [0, 0, 1]]
        ... )
        >>> loader = HGTLoader(data, [2], 'paper', batch_size=2, seed=0)
        >>> [batch['author'].num_nodes for batch in loader]
        [2, 0]
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_samples: NumSamples,
        input_nodes: Any,
        is_sorted: bool = False,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        filter_per_worker: bool | None = None,
        **options: Unpack[HGTOptions],
    ):
        kwargs: dict[str, Any] = {
            **options,
            'transform': transform,
            'transform_sampler_output': transform_sampler_output,
            'filter_per_worker': filter_per_worker,
        }
        keyed = take(KeyOptions, kwargs)
        workers = kwargs.get('num_workers', 0) > 0
        sampler = HGTSampler(data, num_samples, is_sorted, workers, **keyed)
        self._init_nodes(data, sampler, input_nodes, kwargs)
