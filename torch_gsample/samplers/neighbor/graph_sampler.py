"""The interface of a graph sampler for PyG's loaders and ours."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch_geometric.sampler import (
    EdgeSamplerInput,
    NegativeSampling,
    NodeSamplerInput,
)
from torch_geometric.sampler.base import DataType
from torch_geometric.typing import EdgeType, NodeType

from torch_gsample.graph import Graph
from torch_gsample.ops import Sampling
from torch_gsample.placement import Placement
from torch_gsample.rng import BatchNumber, batch_scope
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.neighbor.neighborhood import Neighborhood
from torch_gsample.samplers.neighbor.time_interval import TimeInterval


class GraphSampler(KeyedSampler):
    """A sampler with a graph, its times, and options that can be set."""

    graph: Graph
    replace: bool
    temporal_strategy: str
    time_window: int | None
    num_threads: int | None
    interval: TimeInterval = TimeInterval()
    order: str = 'slot'
    #: Location of the graph for a GPU; None on the CPU.
    placement: Placement | None = None
    _disjoint: bool
    _times: Times
    _neighborhood: Neighborhood
    _data_type: DataType
    #: Cached result of :meth:`_sampling`, with its inputs.
    _options: tuple[Any, Sampling] | None = None

    @property
    def data_type(self) -> DataType:
        """Whether the graph is homogeneous, heterogeneous or remote."""
        return self._data_type

    @property
    def is_hetero(self) -> bool:
        """Whether the graph has node and edge types."""
        return self.graph.is_hetero

    @property
    def is_temporal(self) -> bool:
        """Whether the graph has times."""
        return self._times.given

    def knows_time(self, node_type: NodeType | None) -> bool:
        """Whether seeds of a type have times, or need none."""
        return not self.is_temporal or node_type in self._times.node

    @property
    def disjoint(self) -> bool:
        """Whether each seed has its own subgraph."""
        return self._disjoint or self.is_temporal

    @disjoint.setter
    def disjoint(self, disjoint: bool) -> None:
        self._disjoint = disjoint

    @property
    def is_on_gpu(self) -> bool:
        """Whether a GPU samples, and its samples stay there."""
        return self.placement is not None

    @property
    def node_types(self) -> list[NodeType | None]:
        """The node types, ``[None]`` for a homogeneous graph."""
        return list(self.graph.node_types)

    @property
    def edge_types(self) -> list[EdgeType | None]:
        """The edge types, ``[None]`` for a homogeneous graph."""
        return list(self.graph.edge_types)

    @property
    def num_nodes(self) -> int | dict[NodeType, int]:
        """The number of nodes (of each type)."""
        counts: Any = self.graph.counts
        return counts if self.is_hetero else counts[None]

    # Several batches #########################################################

    @property
    def look_ahead(self) -> int:
        """Number of batches that loaders pass to :meth:`sample_batches`."""
        return 1

    def sample_batches(
        self,
        batches: Sequence[NodeSamplerInput | EdgeSamplerInput],
        numbers: Sequence[BatchNumber],
        neg_sampling: NegativeSampling | None = None,
    ) -> list[Any]:
        """Samples several batches; each sample is as if sampled alone.

        Args:
            batches (List[NodeSamplerInput or EdgeSamplerInput]): Their seeds.
            numbers (List[BatchNumber]): Their ids.
            neg_sampling (NegativeSampling, optional): As in
                ``sample_from_edges``.
        """
        outs = []
        for inputs, number in zip(batches, numbers, strict=True):
            with batch_scope(*number):
                outs.append(
                    self.sample_from_nodes(inputs)
                    if isinstance(inputs, NodeSamplerInput)
                    else self.sample_from_edges(inputs, neg_sampling)
                )
        return outs

    def search_look_ahead(
        self, seeds: Callable[[], Sequence[Tensor]], num_batches: int
    ) -> None:
        """Measures the fastest number of batches in one run, if it matters.

        Args:
            seeds (Callable): Returns int64 ``[num_seeds]`` of some batches.
            num_batches (int): Number of batches in an epoch.
        """

    def prepare_workers(self) -> None:
        """Prepares state that forked processes inherit."""

    # Helpers #################################################################

    def _cache_stats(self) -> dict[str, Any]:
        return self._neighborhood.stats()

    def _check_node_type(self, node_type: NodeType | None) -> None:
        if node_type not in self.graph.node_types:
            raise ValueError(
                f'NeighborSampler: the graph has no node type {node_type!r} '
                f'(it has {self.node_types})'
            )

    def _sampling(self) -> Sampling:
        """Returns the options, cached until one is set."""
        options = (
            self.replace,
            self.disjoint,
            self.temporal_strategy,
            self.interval.width(self.time_window),
            self.num_threads,
        )
        if self._options is None or self._options[0] != options:
            sampling = Sampling(*options[:4], num_threads=options[4] or 0)
            self._options = options, sampling
        return self._options[1]
