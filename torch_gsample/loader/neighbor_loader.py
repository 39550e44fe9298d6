"""PyG's ``NeighborLoader`` and ``LinkNeighborLoader`` on our sampler."""

from inspect import signature
from typing import Any

from torch_geometric import loader as pyg_loader

from torch_gsample.loader.adjacency import with_edge_index
from torch_gsample.loader.base import KeyedLoader, split_sampler
from torch_gsample.loader.seeds import link_seeds, node_seeds
from torch_gsample.loader.static_shapes import Shapes
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.graph_input import GraphData
from torch_gsample.samplers.node_wise import NeighborSampler, NumNeighborsType

#: Arguments of the sampler that loaders pass on: all but the graph and the
#: fan-outs, which are theirs as well.
_SAMPLER_OPTIONS = tuple(signature(NeighborSampler).parameters)[2:]


def _make_sampler(
    name: str,
    data: GraphData,
    num_neighbors: NumNeighborsType | None,
    kwargs: dict[str, Any],
) -> NeighborSampler:
    if num_neighbors is None:
        raise ValueError(
            f"{name}: 'num_neighbors' is needed where no 'sampler' is given"
        )
    options = {
        key: kwargs.pop(key) for key in _SAMPLER_OPTIONS if key in kwargs
    }
    options.setdefault('share_memory', kwargs.get('num_workers', 0) > 0)
    return NeighborSampler(data, num_neighbors, **options)


def _check_no_options(name: str, kwargs: dict[str, Any]) -> None:
    given = [key for key in _SAMPLER_OPTIONS if key in kwargs]
    if given:
        raise ValueError(
            f"{name}: {given} must be given to the 'sampler', which is "
            f'configured already'
        )


class NeighborLoader(KeyedLoader, pyg_loader.NeighborLoader):
    r"""PyG's ``NeighborLoader`` on our sampler.

    It takes PyG's arguments, and returns PyG's mini-batches. Samples are the
    same for any ``num_workers`` and number of threads. Without workers, the
    next batches are made in a thread while the caller trains. Workers join
    features to samples where ``filter_per_worker`` is set, and by default
    where there is a ``transform`` or a feature store. Mini-batches of
    a graph that is a ``torch.sparse`` tensor have an ``edge_index``.

    With ``device='cuda'`` (here or of the ``sampler``) batches are made on
    the GPU, on a stream of its own, while the caller trains; attributes of
    the host are pinned, and the GPU reads what a batch needs.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int] or Dict, optional): Neighbours to sample at
            each hop; needed unless ``sampler`` is given.
        input_nodes (torch.Tensor or str or Tuple, optional): The seeds.
        input_time (torch.Tensor, optional): Their times.
        sampler (BaseSampler, optional): The graph sampler,
            :class:`NeighborSampler` if not given. A sampler of indices, which
            torch's loader calls by the same name, is passed on to it.
        prefetch (int, optional): Batches that a thread makes ahead, or, with
            workers, joins the features to. Only ``transform`` stays in the
            caller's thread. (default: 2, but 0 for a ``sampler`` that is no
            :class:`KeyedSampler`, whose draws may depend on where it runs, or
            that trains)
        rank (int, optional): The number of this process in distributed
            training, with ``world_size`` and ``seed``.
        world_size (int, optional): How many processes there are: each gets
            every ``world_size``-th batch of an epoch.
        static_shapes (bool or int or List[BatchShape], optional): Pads
            batches to a few shapes, so that ``torch.compile`` compiles a
            model as many times only: how many (:obj:`True`: one), or these
            shapes. See ``docs/static_shapes.md`` for the masks.
        progress (bool, optional): Whether to show a progress bar with sampled
            edges a second, where standard error is a terminal. Needs rich.
        **kwargs (optional): Further arguments of :class:`NeighborSampler`
            (``replace``, ``seed``, ...), of PyG's loader (``transform``, ...)
            and of :class:`torch.utils.data.DataLoader`.

    Raises:
        ImportError: If there is no rich for ``progress``.
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

    def __init__(
        self,
        data: GraphData,
        num_neighbors: NumNeighborsType | None = None,
        input_nodes: Any = None,
        input_time: Any = None,
        *,
        sampler: Any = None,
        prefetch: int | None = None,
        static_shapes: Shapes = False,
        progress: bool = False,
        **kwargs: Any,
    ):
        graph_sampler = split_sampler('NeighborLoader', sampler, kwargs)
        graph_sampler = graph_sampler or kwargs.pop('neighbor_sampler', None)
        if graph_sampler is None:
            if input_time is not None and kwargs.get('time_attr') is None:
                raise ValueError(
                    "NeighborLoader: 'input_time' needs 'time_attr'"
                )
            graph_sampler = _make_sampler(
                'NeighborLoader', data, num_neighbors, kwargs
            )
        else:
            _check_no_options('NeighborLoader', kwargs)
        data = with_edge_index(data)
        input_nodes = node_seeds(
            'NeighborLoader',
            data,
            graph_sampler,
            input_nodes,
            input_time,
            kwargs.get('input_id'),
        )
        self._init_keyed(
            data, prefetch, graph_sampler, kwargs, static_shapes, progress
        )
        pyg_loader.NodeLoader.__init__(
            self,
            data=data,
            node_sampler=graph_sampler,
            input_nodes=input_nodes,
            input_time=input_time,
            **kwargs,
        )


class LinkNeighborLoader(KeyedLoader, pyg_loader.LinkNeighborLoader):
    r"""PyG's ``LinkNeighborLoader`` on our sampler.

    It takes PyG's arguments, and returns PyG's mini-batches. Beside those of
    :class:`NeighborLoader`, ``exclude_seed_edges`` takes the seed edges out of
    the sampled subgraphs, and ``true_negatives`` makes sure that no negative
    is an edge of the graph.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        num_neighbors (List[int] or Dict, optional): Neighbours to sample at
            each hop; needed unless ``sampler`` is given.
        edge_label_index (torch.Tensor or EdgeType or Tuple, optional): The
            seed edges.
        edge_label (torch.Tensor, optional): Their labels.
        edge_label_time (torch.Tensor, optional): Their times.
        sampler (BaseSampler, optional): As in :class:`NeighborLoader`.
        prefetch (int, optional): As in :class:`NeighborLoader`.
        static_shapes (bool or int or List[BatchShape], optional): As in
            :class:`NeighborLoader`. Seed edges are not padded.
        progress (bool, optional): As in :class:`NeighborLoader`.
        **kwargs (optional): As in :class:`NeighborLoader`; ``neg_sampling``
            and ``neg_sampling_ratio`` as in PyG.

    Raises:
        ImportError: If there is no rich for ``progress``.
        ValueError: If arguments contradict each other.
    """

    def __init__(
        self,
        data: GraphData,
        num_neighbors: NumNeighborsType | None = None,
        edge_label_index: Any = None,
        edge_label: Any = None,
        edge_label_time: Any = None,
        *,
        sampler: Any = None,
        prefetch: int | None = None,
        static_shapes: Shapes = False,
        progress: bool = False,
        **kwargs: Any,
    ):
        graph_sampler = split_sampler('LinkNeighborLoader', sampler, kwargs)
        graph_sampler = graph_sampler or kwargs.pop('neighbor_sampler', None)
        if graph_sampler is None:
            temporal = kwargs.get('time_attr') is not None
            if (edge_label_time is not None) != temporal:
                raise ValueError(
                    "LinkNeighborLoader: 'edge_label_time' and 'time_attr' "
                    'must be given together'
                )
            graph_sampler = _make_sampler(
                'LinkNeighborLoader', data, num_neighbors, kwargs
            )
        else:
            _check_no_options('LinkNeighborLoader', kwargs)
        data = with_edge_index(data)
        link_seeds(
            'LinkNeighborLoader',
            data,
            graph_sampler,
            edge_label_index,
            edge_label,
            edge_label_time,
            kwargs.get('input_id'),
        )
        self._init_keyed(
            data, prefetch, graph_sampler, kwargs, static_shapes, progress
        )
        pyg_loader.LinkLoader.__init__(
            self,
            data=data,
            link_sampler=graph_sampler,
            edge_label_index=edge_label_index,
            edge_label=edge_label,
            edge_label_time=edge_label_time,
            **kwargs,
        )
        if isinstance(graph_sampler, KeyedSampler):
            graph_sampler.prepare_negatives(
                self.input_data.input_type, self.neg_sampling
            )
