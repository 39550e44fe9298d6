"""PyG's ``NeighborLoader`` and ``LinkNeighborLoader`` on our sampler."""

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any

from torch_geometric import loader as pyg_loader
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import BaseSampler, NegativeSampling
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

from torch_gsample.graph_input import GraphData
from torch_gsample.loader.node_loader import LinkBatches, NodeBatches
from torch_gsample.loader.options import NeighborLoaderOptions
from torch_gsample.loader.sharding import integer
from torch_gsample.options import checked_names
from torch_gsample.samplers.neighbor.node_wise import (
    NeighborSampler,
    NumNeighborsType,
)

#: Options of the sampler without the graph and the fan-outs.
_OF_SAMPLER = list(signature(NeighborSampler).parameters.values())[2:]

#: Arguments of both loaders that go to their samplers or to PyG's loaders.
_SHARED = (
    'replace subgraph_type disjoint temporal_strategy time_attr weight_attr '
    'transform transform_sampler_output is_sorted filter_per_worker directed'
).split()


def _passed_on(arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    """Returns the options of a constructor, and selected arguments.

    Args:
        arguments (Dict[str, Any]): Its ``locals()``.
        *names (str): Arguments that only this loader has.
    """
    passed = {name: arguments[name] for name in (*_SHARED, *names)}
    return {**arguments['options'], **passed}


def _check_times(name: str, edge_label_time: Any, time_attr: Any) -> None:
    if (edge_label_time is None) != (time_attr is None):
        known, missing = 'time_attr', 'edge_label_time'
        if time_attr is None:
            known, missing = missing, known
        raise ValueError(
            f"{name}: '{missing}' is not set, but '{known}' is: set both or "
            'neither'
        )


def _check_fanouts(name: str, num_neighbors: Any, sampler: Any) -> None:
    """Checks fan-outs that a loader and its sampler both have."""
    known = getattr(getattr(sampler, 'num_neighbors', None), 'values', None)
    if not isinstance(known, (list, tuple)):
        return
    if isinstance(num_neighbors, (list, tuple)) and (
        [*num_neighbors] != [*known]
    ):
        raise ValueError(
            f"{name}: 'num_neighbors' must be that of the 'sampler', "
            f'{[*known]}, or not be given (got {num_neighbors})'
        )


def _read_sampler(
    name: str,
    data: GraphData,
    num_neighbors: NumNeighborsType | None,
    samplers: tuple[Any, Any],
    kwargs: dict[str, Any],
) -> BaseSampler:
    """Returns the graph sampler of a loader, and removes its options.

    Of ``samplers``, ours takes precedence over PyG's argument, unless it is
    an index sampler, torch's argument of the same name.
    """
    defaults = {p.name: p.default for p in _OF_SAMPLER}
    options = {k: kwargs.pop(k) for k in defaults if k in kwargs}
    sampler, graph_sampler = samplers
    if isinstance(sampler, BaseSampler):
        graph_sampler = sampler
    elif hasattr(sampler, '__iter__') and not isinstance(
        sampler, (Data, HeteroData, str)
    ):
        kwargs['sampler'] = sampler
    elif sampler is not None:
        raise TypeError(
            f"{name}: 'sampler' must be a graph sampler (a 'BaseSampler') or "
            f'a sampler of indices (got {type(sampler).__name__})'
        )
    if graph_sampler is not None:
        given = [k for k, v in options.items() if v != defaults[k]]
        if given:
            raise ValueError(
                f"{name}: {given} must be arguments of the 'sampler', which "
                f'is already configured'
            )
        _check_fanouts(name, num_neighbors, graph_sampler)
        return graph_sampler
    if num_neighbors is None:
        raise ValueError(
            f"{name}: 'num_neighbors' is required without a 'sampler'"
        )
    workers = integer(name, 'num_workers', kwargs.get('num_workers', 0))
    options.setdefault('share_memory', workers > 0)
    return NeighborSampler(data, num_neighbors, **options)


class NeighborLoader(NodeBatches, pyg_loader.NeighborLoader):
    r"""PyG's ``NeighborLoader`` on our sampler.

    It takes PyG's arguments and returns PyG's mini-batches. Samples are the
    same for any ``num_workers`` and number of threads. Without workers, a
    thread prefetches batches while the caller trains. Workers join features
    to samples if ``filter_per_worker`` is set, and by default if there is a
    ``transform`` or a feature store. Mini-batches of a graph given as a
    ``torch.sparse`` tensor have an ``edge_index``, and those of an ``adj_t``
    also an ``adj_t`` in CSR layout, without ``static_shapes``.

    With ``device='cuda'`` (here or in the ``sampler``), a thread makes batches
    on the GPU, on its own stream, while the caller trains. Attributes on the
    host are pinned, and the GPU reads the rows of a batch.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int] or Dict, optional): Neighbours to sample at
            each hop; required without a ``sampler``.
        input_nodes (torch.Tensor or str or Tuple, optional): The seeds.
        input_time (torch.Tensor, optional): The times of the seeds.
        transform (Callable, optional): Transforms a batch.
        transform_sampler_output (Callable, optional): Transforms a sample.
        filter_per_worker (bool, optional): Whether workers join the features.
        neighbor_sampler (BaseSampler, optional): PyG's name of ``sampler``.
        sampler (BaseSampler, optional): The graph sampler; default:
            :class:`NeighborSampler`. An index sampler, torch's argument of
            the same name, is passed to torch's loader.
        prefetch (int, optional): Number of batches that a thread prefetches;
            with workers, the thread only joins features. ``transform`` runs
            in the caller's thread. (default: 2, but 0 for a ``sampler`` that
            trains, or that is not a :class:`KeyedSampler`, because its draws
            may depend on the thread)
        rank (int, optional): The rank of this process in distributed
            training, with ``world_size`` and ``seed``.
        world_size (int, optional): Number of processes: each gets every
            ``world_size``-th batch of an epoch.
        static_shapes (bool or int or List[BatchShape], optional): Pads
            batches to a few shapes, so that ``torch.compile`` compiles a
            model once for each: the number of shapes (:obj:`True`: one), or
            the shapes. See ``docs/static_shapes.md`` for the masks.
        widen_features (bool, optional): Whether batches get float32 node
            attributes where ``data`` has fewer bits: bfloat16, float16 and,
            if ``data`` has their scales, int8, as in
            ``data.x, data.x_scale = quantize_rows(x)``. Batches have no
            scales. (default: :obj:`False`)
        progress (bool, optional): Whether to show a progress bar with sampled
            edges a second, if standard error is a terminal.
        **options (optional): Further arguments of :class:`NeighborSampler`
            (such as ``replace`` and ``seed``), of PyG's loader (``input_id``,
            ``custom_cls``) and of :class:`torch.utils.data.DataLoader`.

    Raises:
        ValueError: If arguments contradict each other, or a ``sampler`` that
            trains gets workers or a ``prefetch``.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, x=torch.randn(3, 4))
        >>> loader = NeighborLoader(data, [2, 2], batch_size=2, seed=0)
        >>> [batch.batch_size for batch in loader]
        [2, 1]
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: NumNeighborsType | None = None,
        input_nodes: Any = None,
        input_time: Any = None,
        replace: bool = False,
        subgraph_type: SubgraphType | str = 'directional',
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        time_attr: str | tuple[str, str] | None = None,
        weight_attr: str | None = None,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: BaseSampler | None = None,
        directed: bool = True,
        *,
        sampler: BaseSampler | Iterable[int] | None = None,
        **options: Unpack[NeighborLoaderOptions],
    ):
        kwargs = _passed_on(locals(), 'input_time')
        name = type(self).__name__
        samplers = sampler, neighbor_sampler
        graph_sampler = _read_sampler(
            name, data, num_neighbors, samplers, kwargs
        )
        # Lightning recreates the loader from its attributes.
        self.neighbor_sampler = graph_sampler
        self._init_nodes(data, graph_sampler, input_nodes, kwargs)


class LinkNeighborLoader(LinkBatches, pyg_loader.LinkNeighborLoader):
    r"""PyG's ``LinkNeighborLoader`` on our sampler.

    It takes PyG's arguments and returns PyG's mini-batches. In addition to
    the options of :class:`NeighborLoader`, ``exclude_seed_edges`` removes the
    seed edges from the sampled subgraphs, and ``true_negatives`` ensures that
    no negative is an edge of the graph.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int] or Dict, optional): Neighbours to sample at
            each hop; required without a ``sampler``.
        edge_label_index (torch.Tensor or EdgeType or Tuple, optional): The
            seed edges.
        edge_label (torch.Tensor, optional): The labels of the seed edges.
        edge_label_time (torch.Tensor, optional): The times of the seed edges.
        neg_sampling (NegativeSampling, optional): As in PyG; ours adds hard,
            shared and in-batch negatives.
        neg_sampling_ratio (float, optional): As in PyG.
        **options (optional): As in :class:`NeighborLoader`. With
            ``static_shapes``, seed edges are not padded.

    Raises:
        ValueError: If arguments contradict each other.
    """

    @checked_names
    def __init__(
        self,
        data: GraphData,
        num_neighbors: NumNeighborsType | None = None,
        edge_label_index: Any = None,
        edge_label: Any = None,
        edge_label_time: Any = None,
        replace: bool = False,
        subgraph_type: SubgraphType | str = 'directional',
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        neg_sampling: NegativeSampling | str | None = None,
        neg_sampling_ratio: float | None = None,
        time_attr: str | tuple[str, str] | None = None,
        weight_attr: str | None = None,
        transform: Callable[..., Any] | None = None,
        transform_sampler_output: Callable[..., Any] | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: BaseSampler | None = None,
        directed: bool = True,
        *,
        sampler: BaseSampler | Iterable[int] | None = None,
        **options: Unpack[NeighborLoaderOptions],
    ):
        kwargs = _passed_on(locals(), 'neg_sampling', 'neg_sampling_ratio')
        name = type(self).__name__
        samplers = sampler, neighbor_sampler
        graph_sampler = _read_sampler(
            name, data, num_neighbors, samplers, kwargs
        )
        if graph_sampler not in samplers:
            _check_times(name, edge_label_time, time_attr)
        # Lightning recreates the loader from its attributes.
        self.neighbor_sampler = graph_sampler
        seeds = edge_label_index, edge_label, edge_label_time
        self._init_links(data, graph_sampler, seeds, kwargs)
