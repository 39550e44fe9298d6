"""PyG's ``HGTLoader`` on our sampler."""

from collections.abc import Callable
from typing import Any

from torch_geometric import loader as pyg_loader

from torch_gsample.loader.adjacency import with_edge_index
from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.seeds import node_seeds
from torch_gsample.samplers.graph_input import GraphData
from torch_gsample.samplers.hgt import HGTSampler, NumSamples


class HGTLoader(KeyedLoader, pyg_loader.HGTLoader):
    r"""PyG's ``HGTLoader`` without torch-sparse.

    It takes PyG's arguments, and returns PyG's mini-batches. They also count
    their nodes in ``num_sampled_nodes``. See :class:`HGTSampler` for what is
    drawn, and :class:`NeighborLoader` for workers, threads and features.

    Args:
        data (HeteroData or (FeatureStore, GraphStore)): The graph.
        num_samples (List[int] or Dict[NodeType, List[int]]): Nodes of each
            type to sample at each layer.
        input_nodes (str or Tuple[str, torch.Tensor]): The seeds: their type,
            and which of its nodes.
        is_sorted (bool, optional): Whether edges are sorted by destination
            already.
        transform (Callable, optional): What to do with a batch.
        transform_sampler_output (Callable, optional): What to do with a
            sample.
        filter_per_worker (bool, optional): Whether workers join the features.
        seed (int, optional): See :class:`KeyedSampler`.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        prefetch (int, optional): As in :class:`NeighborLoader`.
        **kwargs (optional): Further arguments of PyG's ``NodeLoader`` and of
            :class:`torch.utils.data.DataLoader`.

    Raises:
        TypeError: If ``num_samples`` are no integers.
        ValueError: If the graph has no node types, or ``num_samples`` do not
            fit them.

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

    def __init__(
        self,
        data: GraphData,
        num_samples: NumSamples,
        input_nodes: Any,
        is_sorted: bool = False,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        filter_per_worker: bool | None = None,
        *,
        seed: int | None = None,
        rng_scope: str = 'batch',
        prefetch: int | None = None,
        **kwargs: Any,
    ):
        sampler = HGTSampler(
            data,
            num_samples,
            is_sorted=is_sorted,
            share_memory=kwargs.get('num_workers', 0) > 0,
            seed=seed,
            rng_scope=rng_scope,
        )
        kwargs |= {
            'transform': transform,
            'transform_sampler_output': transform_sampler_output,
            'filter_per_worker': filter_per_worker,
        }
        data = with_edge_index(data)
        input_nodes = node_seeds(
            'HGTLoader',
            data,
            sampler,
            input_nodes,
            kwargs.get('input_time'),
            kwargs.get('input_id'),
        )
        self._init_keyed(data, prefetch, sampler, kwargs)
        pyg_loader.NodeLoader.__init__(
            self,
            data=data,
            node_sampler=sampler,
            input_nodes=input_nodes,
            **kwargs,
        )
