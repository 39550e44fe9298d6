"""Node-wise sampling: a few neighbours of each node, hop by hop."""

from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.sampler import (
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    NumNeighbors,
    SamplerOutput,
)
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.typing import EdgeType

from torch_gsample.graph_input import GraphData, read_graph
from torch_gsample.ops._check import node_ids
from torch_gsample.options import (
    Direction,
    Exclusion,
    Order,
    RngScope,
    TimeBound,
    TimeInclusive,
    TrueNegatives,
    checked_names,
)
from torch_gsample.placement import GraphPlacement, check_kind, read_device
from torch_gsample.samplers.arguments import (
    by_type,
    check_choices,
    check_count,
    check_flags,
    check_inputs,
    check_window,
    checked_order,
    checked_seeds,
    checked_subgraph_type,
    read_fanouts,
)
from torch_gsample.samplers.attributes import read_times, read_weights
from torch_gsample.samplers.link.batch import LinkBatch
from torch_gsample.samplers.link.negatives import Negatives
from torch_gsample.samplers.neighbor.drawn import Asked, DrawnNeighbors
from torch_gsample.samplers.neighbor.neighborhood import Neighborhood
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.samplers.output.tensors import SampledTensors, to_tensors

NumNeighborsType: TypeAlias = (
    NumNeighbors | list[int] | dict[EdgeType, list[int]]
)
SeedDict: TypeAlias = dict[Any, Tensor]


class NeighborSampler(DrawnNeighbors):
    r"""Samples neighbours hop by hop: the sampler of :class:`NeighborLoader`.

    A drop-in replacement of :class:`torch_geometric.sampler.NeighborSampler`
    (Hamilton et al., `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_): same arguments, same output. Its
    samples are unbiased at any degree, and the same for any number of threads
    and workers.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph, as
            ``edge_index``, ``adj_t`` or ``adj`` (``SparseTensor``,
            ``torch.sparse_csr`` or ``torch.sparse_csc``).
        num_neighbors (NumNeighbors or List[int] or Dict): Neighbours to
            sample at each hop, -1 for all; a dictionary has a list for each
            edge type. Can be set later.
        subgraph_type (SubgraphType or str, optional): ``'directional'`` has
            the sampled edges, ``'bidirectional'`` also their reverse edges,
            ``'induced'`` all edges between the sampled nodes.
        replace (bool, optional): Whether to sample with replacement.
        disjoint (bool, optional): Whether each seed has its own subgraph;
            always true in temporal sampling.
        temporal_strategy (str, optional): ``'uniform'`` among the edges that
            are early enough, or the ``'last'`` of them.
        time_attr (str or Tuple[str, str], optional): The attribute with the
            times (integers) of nodes or of edges; a pair names one for nodes
            and one for edges. A seed sees an edge if neither the edge nor its
            source is later than the seed's time.
        weight_attr (str, optional): The attribute with the weights of edges.
            Edges of weight 0 are never sampled.
        is_sorted (bool, optional): Whether edges are already sorted by
            destination (and then by time, if there is one).
        share_memory (bool, optional): Whether to move the graph to shared
            memory, for spawned workers.
        directed (bool, optional): Deprecated, as in PyG.
        sample_direction (str, optional): ``'forward'`` samples in-edges, from
            a node towards their sources, ``'backward'`` out-edges.
        seed (int, optional): Seed of all draws; default: drawn from torch's
            generator.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        time_window (int, optional): Samples only edges in
            ``[seed_time - time_window, seed_time]``.
        time_bound (str, optional): The time that bounds the edges of a hop:
            that of the ``'seed'``, the earliest one of the ``'batch'``, or
            that of the ``'edge'`` that led to their destination, as in
            temporal random walks (CPU only; each sampled edge then has its
            own source).
        time_inclusive (str, optional): Which ends of that interval belong to
            it: ``'both'``, ``'left'`` (only earlier edges), ``'right'`` or
            ``'neither'``.
        index_dtype (torch.dtype, optional): Dtype of the graph's indices in
            the sampler; int32 takes half of the memory and bandwidth.
            Default: int32 for edge lists if it suffices.
        num_threads (int, optional): Maximum number of threads, also for all
            work of our loaders on a batch; default: torch's number.
        order (str, optional): Order of a node's sampled edges: ``'slot'``,
            the order of the draws, or ``'random'``, for aggregations that
            depend on the order (an LSTM); see ``docs/randomness.md``.
        exclude_seed_edges (bool or str, optional): Whether to remove the seed
            edges of :meth:`sample_from_edges` from the sampled subgraph
            (``'reverse'``: and their reverse edges), so that no link is
            predicted from itself.
        true_negatives (bool or str, optional): Whether negatives are never
            edges of the graph; ``'uniform'``: uniform over all pairs that are
            not edges; ``'unseen'``: may be edges later than the time of their
            seed edge.
        device (torch.device or str, optional): Device to sample on. On a GPU,
            samples are the same and stay there. Negatives are drawn on the
            host.
        graph_placement (str, optional): Memory of the graph for a GPU: its
            own (``'gpu'``), pinned host memory that it reads directly
            (``'uva'``), or ``'auto'``: ``'gpu'`` if the graph fits in half of
            the free memory.
        cache_bytes (int, optional): GPU memory that caches the hottest
            neighbour lists of a pinned graph; default: a quarter of the free
            memory. See :meth:`stats`.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.sampler import NodeSamplerInput
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> data = Data(edge_index=edge_index, num_nodes=3)
        >>> sampler = NeighborSampler(data, [2, 1], seed=0)
        >>> inputs = NodeSamplerInput(None, torch.tensor([0]))
        >>> sampler.sample_from_nodes(inputs).node
        tensor([0, 1, 2])
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
        sample_direction: Direction = 'forward',
        *,
        seed: int | None = None,
        rng_scope: RngScope = 'batch',
        time_window: int | None = None,
        time_bound: TimeBound = 'seed',
        time_inclusive: TimeInclusive = 'both',
        index_dtype: torch.dtype | None = None,
        num_threads: int | None = None,
        order: Order = 'slot',
        exclude_seed_edges: Exclusion = False,
        true_negatives: TrueNegatives = False,
        device: torch.device | str = 'cpu',
        graph_placement: GraphPlacement = 'auto',
        cache_bytes: int | None = None,
    ):
        super().__init__(seed, rng_scope)
        check_choices(sample_direction, temporal_strategy, exclude_seed_edges)
        check_flags(
            type(self).__name__,
            replace=replace,
            disjoint=disjoint,
            is_sorted=is_sorted,
            share_memory=share_memory,
            directed=directed,
        )
        check_window(time_window, time_attr)
        self.interval = TimeInterval(time_bound, time_inclusive)
        check_count('num_threads', num_threads)
        check_count('cache_bytes', cache_bytes)
        check_kind('NeighborSampler', graph_placement)
        where = read_device('NeighborSampler', device)
        self.subgraph_type = checked_subgraph_type(subgraph_type, directed)
        self.sample_direction = sample_direction
        self.replace = replace
        self.disjoint = disjoint
        self.temporal_strategy = temporal_strategy
        self.time_window, self.num_threads = time_window, num_threads
        self.order = checked_order(order, self.subgraph_type)
        self.exclude_seed_edges = exclude_seed_edges
        self.true_negatives = true_negatives
        self.keep_orig_edges = False
        source = read_graph(
            data,
            is_sorted=is_sorted,
            index_dtype=index_dtype,
            name=type(self).__name__,
        )
        self._data_type, self._has_edges = source.data_type, source.has_edges
        graph = source.graph
        if sample_direction == 'backward':
            graph = graph.transpose()
        self._times, graph = read_times(data, graph, time_attr, is_sorted)
        self.edge_time_attr = self._times.edge_attr
        induced = self.subgraph_type == SubgraphType.induced
        self.interval.check(graph, time_attr, time_window, induced)
        self.graph = read_weights(data, graph, weight_attr)
        self._neighborhood = Neighborhood(
            self.graph, source.compressed, interval=self.interval
        )
        self._negatives = Negatives(self.graph, true_negatives)
        if share_memory:
            self.graph.share_memory_()
            self._times.share_memory_()
            self._negatives.share_memory_()
        self._neighborhood = self._neighborhood.on(
            where, graph_placement, induced, cache_bytes
        )
        self.placement = self._neighborhood.placement
        self.num_neighbors = num_neighbors

    # Properties of PyG's sampler #############################################

    @property
    def num_neighbors(self) -> NumNeighbors:
        """Neighbours to sample at each hop; can be set in PyG's forms."""
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, value: NumNeighborsType) -> None:
        self._num_neighbors, self._fanouts = read_fanouts(
            value, self.graph, self._has_edges
        )

    @property
    def edge_permutation(self) -> Any:
        """The original edge at each position of the sampler's graph.

        None if edge ids of samples are the original ones, as on a GPU.
        """
        return self._neighborhood.edge_permutation

    # Sampling ################################################################

    def sample_from_nodes(
        self, inputs: NodeSamplerInput, **kwargs: Any
    ) -> SamplerOutput | HeteroSamplerOutput:
        """Samples a subgraph around the nodes of a batch.

        Args:
            inputs (NodeSamplerInput): The seeds, and optionally their times.
            **kwargs (optional): Ignored, as in PyG.

        Raises:
            IndexError: If a seed is not in the graph.
            ValueError: If times are required and missing.
        """
        asked = self._ask_nodes(inputs)
        return asked.finish(self._draw(*asked[:3]))

    def tensors(
        self,
        seeds: Tensor | SeedDict,
        time: Tensor | SeedDict | None = None,
    ) -> SampledTensors:
        """Samples around nodes, and returns tensors without PyG's objects.

        The draws are those of :meth:`sample_from_nodes`. It is faster for
        small batches of seeds.

        Args:
            seeds (torch.Tensor or Dict[NodeType, torch.Tensor]): The seeds,
                in a heterogeneous graph by node type.
            time (torch.Tensor or Dict[NodeType, torch.Tensor], optional):
                Their times.

        Raises:
            IndexError: If a seed is not in the graph.
            TypeError: If seeds are not integer tensors.
            ValueError: If times are required and missing, or the graph does
                not have the node type.

        Example:
            >>> from torch_geometric.data import Data
            >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
            >>> data = Data(edge_index=edge_index, num_nodes=3)
            >>> sampler = NeighborSampler(data, [2, 1], seed=0)
            >>> out = sampler.tensors(torch.tensor([0]))
            >>> out.node, out.num_sampled_nodes
            (tensor([0, 1, 2]), [1, 2, 0])
        """
        nodes, times = by_type(checked_seeds(seeds), time)
        ids: list[Tensor | None] = []
        for node_type, node in nodes.items():
            self._check_node_type(node_type)
            ids += node, times[node_type]
        out = self._finish(self._draw(nodes, times, self.batch_key(*ids)))
        return to_tensors(out, self.edge_permutation)

    def sample_from_edges(
        self,
        inputs: EdgeSamplerInput,
        neg_sampling: NegativeSampling | None = None,
        **kwargs: Any,
    ) -> SamplerOutput | HeteroSamplerOutput:
        """Samples a subgraph around the ends of a batch of edges.

        Args:
            inputs (EdgeSamplerInput): The seed edges.
            neg_sampling (NegativeSampling, optional): How to sample negative
                edges.
            **kwargs (optional): Ignored, as in PyG.

        Raises:
            IndexError: If a node is not in the graph.
            ValueError: If times are required and missing, or a source has no
                true negative.
        """
        asked = self._ask_edges(inputs, neg_sampling)
        return asked.finish(self._draw(*asked[:3]))

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self._num_neighbors.values}, '
            f'seed={self.seed})'
        )

    # Helpers #################################################################

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {'sample_from_nodes', 'sample_from_edges'} & vars(cls).keys()
        cls._samples_otherwise |= bool(own)

    def _ask_nodes(self, inputs: NodeSamplerInput) -> Asked:
        check_inputs(self, inputs)
        self._check_node_type(inputs.input_type)

        def finish(out: Any) -> Any:
            out.metadata = (inputs.input_id, inputs.time)
            return self._finish(out)

        return Asked(
            {inputs.input_type: inputs.node},
            {inputs.input_type: inputs.time},
            self.batch_key(inputs.node, inputs.time),
            finish,
        )

    def _ask_edges(
        self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None
    ) -> Asked:
        key = self.batch_key(inputs.row, inputs.col, inputs.time)
        ends = LinkBatch(inputs, NegativeSampling.cast(neg_sampling))
        for node_type, nodes in zip(
            ends.end_types, (inputs.row, inputs.col), strict=True
        ):
            self._check_node_type(node_type)
            size = self.graph.counts[node_type]
            node_ids('NeighborSampler', 'edge_label_index', nodes, size)
        with self.counts.phase('negatives'):
            ends.add_negatives(self._negatives, self._times, key)

        def finish(out: Any) -> Any:
            if self.exclude_seed_edges:
                # PyG restores both directions if one of them remains.
                both = self.subgraph_type == SubgraphType.bidirectional
                ends.exclude_edges(
                    out,
                    self.graph,
                    self.disjoint,
                    reverse=both or self.exclude_seed_edges == 'reverse',
                )
            ends.label(out, self.graph, self.disjoint)
            return self._finish(out)

        return Asked(*ends.seeds(self.disjoint), key, finish)

    def _sample(
        self,
        seed: Tensor | SeedDict,
        seed_time: Tensor | SeedDict | None = None,
        **kwargs: Any,
    ) -> SamplerOutput | HeteroSamplerOutput:
        """Samples around nodes, for PyG's samplers that call this method."""
        seeds, times = by_type(seed, seed_time)
        key = self.call_key(*seeds.values(), *times.values())
        return self._draw(seeds, times, key)
