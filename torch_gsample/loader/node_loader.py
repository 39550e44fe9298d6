"""PyG's ``NodeLoader`` and ``LinkLoader``, with numbered batches."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch_geometric.loader import LinkLoader as PyGLinkLoader
from torch_geometric.loader import NodeLoader as PyGNodeLoader
from torch_geometric.sampler import BaseSampler
from typing_extensions import Unpack

from torch_gsample.graph_input import GraphData
from torch_gsample.loader.adjacency import (
    AdjacencyBatches,
    adj_t_values,
    attributes_of,
    with_edge_index,
    with_sampled_edges,
)
from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.check_arguments import (
    check_negatives,
    check_sampler,
    naming_options,
)
from torch_gsample.loader.options import SamplerLoaderOptions
from torch_gsample.loader.seeds import link_seeds, node_seeds
from torch_gsample.options import checked_names
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.link.sampling import check_given


class NodeBatches(AdjacencyBatches, KeyedLoader, PyGNodeLoader):
    """Loads batches of seed nodes."""

    #: Whether seeds of a temporal sampler need times before the first batch.
    _needs_times = True

    def _init_nodes(
        self,
        data: Any,
        sampler: BaseSampler,
        input_nodes: Any,
        kwargs: dict[str, Any],
    ) -> None:
        name = type(self).__name__
        check_sampler(name, sampler, 'sample_from_nodes')
        self.adj_t_values = adj_t_values(data)
        graph = with_sampled_edges(name, with_edge_index(data), sampler)
        time, ids = kwargs.get('input_time'), kwargs.get('input_id')
        seeds = node_seeds(
            name, graph, sampler, input_nodes, time, ids, self._needs_times
        )
        self._init_keyed(graph, sampler, kwargs)
        with naming_options(type(self).__name__):
            PyGNodeLoader.__init__(self, graph, sampler, seeds, **kwargs)
        self.__dict__['data'] = data


class NodeLoader(NodeBatches):
    """PyG's ``NodeLoader`` for any graph sampler.

    With a sampler of this package, a batch is a function of (seed, epoch,
    batch). PyG's Lightning data modules use it under :func:`.patch_pyg`.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        node_sampler (BaseSampler): The graph sampler.
        input_nodes (torch.Tensor or str or Tuple, optional): The seeds.
        input_time (torch.Tensor, optional): The times of the seeds.
        transform (Callable, optional): Transforms a batch.
        transform_sampler_output (Callable, optional): Transforms a sample.
        filter_per_worker (bool, optional): Whether workers join the features.
        custom_cls (Any, optional): As in PyG.
        input_id (torch.Tensor, optional): Ids of the seeds.
        **options (optional): As in :class:`NeighborLoader`; ``sampler`` is
            an index sampler.

    Raises:
        ValueError: If arguments contradict each other.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_gsample import NeighborSampler
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> sampler = NeighborSampler(data, [2], seed=0)
        >>> loader = NodeLoader(data, sampler, batch_size=2)
        >>> [batch.batch_size for batch in loader]
        [2, 1]
    """

    # RelBench only calls `filter_fn`, with its own samples.
    _needs_times = False

    @checked_names
    def __init__(
        self,
        data: GraphData,
        node_sampler: BaseSampler,
        input_nodes: Any = None,
        input_time: Tensor | None = None,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        filter_per_worker: bool | None = None,
        custom_cls: Any = None,
        input_id: Tensor | None = None,
        **options: Unpack[SamplerLoaderOptions],
    ):
        kwargs: dict[str, Any] = {
            **options,
            'input_time': input_time,
            'transform': transform,
            'transform_sampler_output': transform_sampler_output,
            'filter_per_worker': filter_per_worker,
            'custom_cls': custom_cls,
            'input_id': input_id,
        }
        self._init_nodes(data, node_sampler, input_nodes, kwargs)


class LinkBatches(AdjacencyBatches, KeyedLoader, PyGLinkLoader):
    """Loads batches of seed edges."""

    def _init_links(
        self,
        data: Any,
        sampler: BaseSampler,
        seeds: tuple[Any, Any, Any],
        kwargs: dict[str, Any],
    ) -> None:
        name = type(self).__name__
        check_sampler(name, sampler, 'sample_from_edges')
        mode, ratio = map(kwargs.get, ('neg_sampling', 'neg_sampling_ratio'))
        check_negatives(name, mode, ratio, seeds[1])
        self.adj_t_values = adj_t_values(data)
        graph = with_edge_index(attributes_of(data, sampler))
        if isinstance(graph, tuple) and isinstance(seeds[0], Tensor):
            types = getattr(getattr(sampler, 'graph', None), 'counts', ())
            if None in types:
                seeds = (None, seeds[0]), *seeds[1:]
        link_seeds(name, graph, sampler, *seeds, kwargs.get('input_id'))
        graph = with_sampled_edges(name, graph, sampler)
        self._init_keyed(graph, sampler, kwargs)
        _, self.edge_label, self.edge_label_time = seeds
        with naming_options(type(self).__name__):
            PyGLinkLoader.__init__(self, graph, sampler, *seeds, **kwargs)
        self.__dict__['data'] = data
        check_given(name, self.neg_sampling, self.input_data)
        if isinstance(sampler, KeyedSampler):
            sampler.prepare_negatives(
                self.input_data.input_type, self.neg_sampling
            )


class LinkLoader(LinkBatches):
    """PyG's ``LinkLoader`` for any graph sampler; see :class:`NodeLoader`.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        link_sampler (BaseSampler): The graph sampler.
        edge_label_index (torch.Tensor or EdgeType or Tuple, optional): The
            seed edges.
        edge_label (torch.Tensor, optional): The labels of the seed edges.
        edge_label_time (torch.Tensor, optional): The times of the seed edges.
        neg_sampling (NegativeSampling, optional): As in PyG.
        neg_sampling_ratio (float, optional): As in PyG.
        transform (Callable, optional): Transforms a batch.
        transform_sampler_output (Callable, optional): Transforms a sample.
        filter_per_worker (bool, optional): Whether workers join the features.
        custom_cls (Any, optional): As in PyG.
        input_id (torch.Tensor, optional): Ids of the seeds.
        **options (optional): As in :class:`LinkNeighborLoader`; ``sampler``
            is an index sampler.

    Raises:
        ValueError: If arguments contradict each other.
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        link_sampler: BaseSampler,
        edge_label_index: Any = None,
        edge_label: Any = None,
        edge_label_time: Any = None,
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        filter_per_worker: bool | None = None,
        custom_cls: Any = None,
        input_id: Tensor | None = None,
        **options: Unpack[SamplerLoaderOptions],
    ):
        kwargs: dict[str, Any] = {
            **options,
            'neg_sampling': neg_sampling,
            'neg_sampling_ratio': neg_sampling_ratio,
            'transform': transform,
            'transform_sampler_output': transform_sampler_output,
            'filter_per_worker': filter_per_worker,
            'custom_cls': custom_cls,
            'input_id': input_id,
        }
        seeds = edge_label_index, edge_label, edge_label_time
        self._init_links(data, link_sampler, seeds, kwargs)
