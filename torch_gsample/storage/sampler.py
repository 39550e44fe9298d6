"""The base class of samplers of graphs on disk."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler.base import DataType, SubgraphType

from torch_gsample.ops import Sample, Sampling
from torch_gsample.ops._check import int64_vector, node_ids
from torch_gsample.options import Order, RngScope
from torch_gsample.samplers.arguments import (
    check_count,
    check_flags,
    checked_order,
)
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.link.negatives import Negatives
from torch_gsample.samplers.neighbor.edge_bound import (
    Select,
    sample_by_edge_time,
)
from torch_gsample.samplers.neighbor.node_wise import (
    NeighborSampler,
    NumNeighborsType,
)
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.samplers.output.pyg import output_of, to_sampler_output
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.hops import Draw, sample_by_hops


class DiskNeighborhood:
    """Replaces the in-memory graph of a :class:`NeighborSampler`.

    Args:
        sampler (DiskSampler): The sampler, whose ``draw`` draws at a frontier.
    """

    restores_edge_ids = False  # edges on disk store their ids

    def __init__(self, sampler: 'DiskSampler'):
        self._sampler = sampler
        self.draw: Any = None  # of the batch

    def sample(
        self,
        seeds: dict[Any, Tensor],
        seed_time: dict[Any, Tensor] | None,
        fanouts: list[list[int]],
        key: Tensor,
        sampling: Sampling,
    ) -> Any:
        """Samples neighbours of ``seeds``."""
        sampler, graph = self._sampler, self._sampler.graph
        options = {'key': key} | {
            name: getattr(sampling, name) for name in Sampling.__slots__
        }
        if seed_time is None or sampler.interval.bound != 'edge':
            sample = self._sample_cached(seeds, seed_time, fanouts, options)
            if sample is not None:
                return to_sampler_output(sample, graph, sampling.disjoint)
            self.draw = sampler.begin_batch(fanouts, options)
            found = sample_by_hops(
                graph, seeds, seed_time, fanouts, options, self.draw
            )
            return output_of(graph, *found)
        none = torch.empty(0, dtype=torch.int64)
        nodes = [
            node_ids('NeighborSampler', 'seeds', seeds.get(t, none), count)
            for t, count in graph.counts.items()
        ]
        times = [seed_time.get(t, none) for t in graph.node_types]
        select = sampler.select_edges(fanouts, options)
        sample = sample_by_edge_time(
            graph, nodes, times, fanouts, key, sampler.interval, select
        )
        return to_sampler_output(sample, graph, sampling.disjoint)

    def _sample_cached(
        self,
        seeds: dict[Any, Tensor],
        seed_time: dict[Any, Tensor] | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
    ) -> Sample | None:
        graph = self._sampler.graph
        none = torch.empty(0, dtype=torch.int64)
        nodes = [
            int64_vector(
                'NeighborSampler', 'seeds', seeds.get(t, none)
            ).contiguous()
            for t in graph.node_types
        ]
        times = None
        if seed_time is not None:
            times = [
                seed_time.get(t, none).contiguous() for t in graph.node_types
            ]
        return self._sampler.sample_cached(nodes, times, fanouts, options)

    def stats(self) -> dict[str, Any]:
        """Returns nothing: the sampler reports its own caches."""
        return {}


class DiskSampler(NeighborSampler):
    """A :class:`NeighborSampler` with its graph on disk.

    Args:
        graph (ChunkedGraph): The graph.
        num_neighbors (NumNeighbors or List[int] or Dict): See
            :class:`NeighborSampler`, as for all arguments below.
        subgraph_type (SubgraphType or str, optional): ``'directional'`` or
            ``'bidirectional'``.
        replace (bool, optional): Whether to sample with replacement.
        disjoint (bool, optional): Whether each seed has its own subgraph.
        temporal_strategy (str, optional): ``'uniform'`` or ``'last'``.
        use_weights (bool, optional): Whether to sample by the weights of
            edges, if the graph has them.
        use_times (bool, optional): Whether to sample by times, if the graph
            has them.
        seed (int, optional): Seed of all draws.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        time_window (int, optional): Width of the time window.
        num_threads (int, optional): Maximum number of threads.
        order (str, optional): See :class:`NeighborSampler`.
    """

    _data_type, _has_edges = DataType.remote, True
    _graph_class: type[Any] = ChunkedGraph

    def __init__(
        self,
        graph: Any,
        num_neighbors: NumNeighborsType,
        subgraph_type: SubgraphType | str = 'directional',
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        *,
        use_weights: bool = True,
        use_times: bool = True,
        seed: int | None = None,
        rng_scope: RngScope = 'batch',
        time_window: int | None = None,
        num_threads: int | None = None,
        order: Order = 'slot',
    ):
        # Bypasses the parent's constructor, which needs a graph in memory.
        KeyedSampler.__init__(self, seed, rng_scope)
        name = type(self).__name__
        if not isinstance(graph, self._graph_class):
            raise TypeError(
                f"{name}: 'graph' must be a {self._graph_class.__name__} (got "
                f'{type(graph).__name__})'
            )
        check_flags(
            name,
            replace=replace,
            disjoint=disjoint,
            use_weights=use_weights,
            use_times=use_times,
        )
        check_count('time_window', time_window, name)
        check_count('num_threads', num_threads, name)
        self.subgraph_type = SubgraphType(subgraph_type)
        if self.subgraph_type == SubgraphType.induced:
            raise ValueError(
                f"{name}: 'subgraph_type' must be 'directional' or "
                "'bidirectional' (got 'induced')"
            )
        if temporal_strategy not in ('uniform', 'last'):
            raise ValueError(
                f"{name}: 'temporal_strategy' must be 'uniform' or 'last' "
                f'(got {temporal_strategy!r})'
            )
        types: Any = graph.sampler_graph()  # edges stay on disk
        self.chunked, self.graph = graph, types
        timed = graph.has_edge_times
        times = graph.node_times() if use_times else {}
        self._times = Times(use_times and (timed or bool(times)), times)
        if time_window is not None and not self._times.given:
            raise ValueError(
                f"{name}: 'time_window' needs a graph with times (got "
                f'{time_window})'
            )
        self.use_weights = use_weights
        self.sample_direction = 'forward'
        self.replace, self.disjoint = replace, disjoint
        self.temporal_strategy = temporal_strategy
        self.time_window, self.num_threads = time_window, num_threads
        self.interval.width(time_window)
        if self.interval != TimeInterval() and not self._times.given:
            raise ValueError(
                f"{name}: 'time_bound' and 'time_inclusive' need a graph with "
                f'times (got {self.interval.bound!r} and '
                f'{self.interval.inclusive!r})'
            )
        self.order = checked_order(order, self.subgraph_type)
        self.exclude_seed_edges = self.true_negatives = False
        self.keep_orig_edges = False
        self._negatives = Negatives(self.graph, False)
        self.num_neighbors = num_neighbors

    @property
    def _neighborhood(self) -> Any:  # type: ignore[override]
        # Not stored: without cycles, a sampler is freed with its last
        # reference.
        return DiskNeighborhood(self)

    @property
    def edge_permutation(self) -> None:
        """None: edges of a sample have the ids of the original graph."""
        return None

    def sample_cached(
        self,
        seeds: list[Tensor],
        seed_time: list[Tensor] | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
    ) -> Sample | None:
        """Samples without reading; None if something has to be read."""
        return None

    def begin_batch(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Draw:
        """Returns the function that draws at the frontiers of a batch."""
        raise NotImplementedError

    def select_edges(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Select:
        """Returns the selection of edges whose times bound later hops."""
        raise NotImplementedError
