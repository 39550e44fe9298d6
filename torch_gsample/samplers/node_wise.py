"""Node-wise sampling: a few neighbours of each node, hop by hop."""

from typing import Any, Literal

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
from torch_geometric.sampler.base import DataType, SubgraphType
from torch_geometric.typing import EdgeType, EdgeTypeStr, NodeType

from torch_gsample import ops
from torch_gsample.formats import CSC
from torch_gsample.ops._check import fanouts as check_fanouts
from torch_gsample.samplers import links, output
from torch_gsample.samplers.attributes import (
    EdgeWeights,
    Times,
    read_times,
    read_weights,
)
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.graph_input import GraphData, read_graph
from torch_gsample.samplers.negatives import Negatives

NumNeighborsType = NumNeighbors | list[int] | dict[EdgeType, list[int]]
SeedDict = dict[NodeType | None, Tensor]


class NeighborSampler(KeyedSampler):
    r"""Samples neighbours hop by hop, as :class:`NeighborLoader` needs it.

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
            sample at each hop, -1 for all; a dictionary gives them for each
            edge type. Can be set later.
        subgraph_type (SubgraphType or str, optional): ``'directional'`` holds
            the sampled edges, ``'bidirectional'`` these and their reverse
            ones, ``'induced'`` all edges between the sampled nodes.
        replace (bool, optional): Whether to sample with replacement.
        disjoint (bool, optional): Whether each seed has a subgraph of its
            own; always so in temporal sampling.
        temporal_strategy (str, optional): ``'uniform'`` among the edges that
            are early enough, or the ``'last'`` ones of them.
        time_attr (str or Tuple[str, str], optional): The attribute that holds
            the times (integers) of nodes or of edges; a pair names one for
            nodes and one for edges. An edge can be seen from a seed's time on
            when its own time and that of its source have come.
        weight_attr (str, optional): The attribute that holds the weights of
            edges. Edges of weight 0 are never sampled.
        is_sorted (bool, optional): Whether edges are sorted by destination
            already (and then by time, if there is one).
        share_memory (bool, optional): Whether to move the graph to shared
            memory, for workers that are spawned.
        directed (bool, optional): Deprecated, as in PyG.
        sample_direction (str, optional): ``'forward'`` samples along edges
            towards their source, ``'backward'`` towards their destination.
        seed (int, optional): Seed of all draws; drawn from torch's default
            generator if not given.
        rng_scope (str, optional): See :class:`KeyedSampler`.
        time_window (int, optional): Only edges of
            ``[seed_time - time_window, seed_time]`` are sampled.
        index_dtype (torch.dtype, optional): Dtype of the graph inside the
            sampler; int32 takes half the memory and bandwidth. If not given,
            int32 for edge lists where it suffices.
        num_threads (int, optional): At most this many threads; if not given,
            as many as torch uses.
        exclude_seed_edges (bool or str, optional): Whether the seed edges of
            :meth:`sample_from_edges` are taken out of the sampled subgraph
            (``'reverse'``: their reverse ones, too), so that a link is never
            predicted from itself.
        true_negatives (bool, optional): Whether sampled negatives are never
            edges of the graph.

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
        sample_direction: Literal['forward', 'backward'] = 'forward',
        *,
        seed: int | None = None,
        rng_scope: str = 'batch',
        time_window: int | None = None,
        index_dtype: torch.dtype | None = None,
        num_threads: int | None = None,
        exclude_seed_edges: bool | Literal['reverse'] = False,
        true_negatives: bool = False,
    ):
        super().__init__(seed, rng_scope)
        if sample_direction not in ('forward', 'backward'):
            raise ValueError(
                f"NeighborSampler: 'sample_direction' must be 'forward' or "
                f"'backward' (got {sample_direction!r})"
            )
        if temporal_strategy not in ('uniform', 'last'):
            raise ValueError(
                f"NeighborSampler: 'temporal_strategy' must be 'uniform' or "
                f"'last' (got {temporal_strategy!r})"
            )
        if time_window is not None and (time_attr is None or time_window < 0):
            raise ValueError(
                f"NeighborSampler: 'time_window' must not be negative and "
                f"needs 'time_attr' (got {time_window})"
            )
        if exclude_seed_edges not in (False, True, 'reverse'):
            raise ValueError(
                f"NeighborSampler: 'exclude_seed_edges' must be a bool or "
                f"'reverse' (got {exclude_seed_edges!r})"
            )
        self.subgraph_type = SubgraphType(
            subgraph_type if directed else 'induced'
        )
        self.sample_direction = sample_direction
        self.replace = replace
        self.disjoint = disjoint
        self.temporal_strategy = temporal_strategy
        self.time_window = time_window
        self.num_threads = num_threads
        self.exclude_seed_edges = exclude_seed_edges
        self.true_negatives = true_negatives
        self.keep_orig_edges = False

        self.graph = read_graph(
            data, is_sorted=is_sorted, index_dtype=index_dtype
        )
        if sample_direction == 'backward':
            for key, csc in self.graph.csc.items():
                self.graph.csc[key] = csc.transpose()
        self._times: Times = read_times(
            data, self.graph, time_attr, is_sorted, self._backward
        )
        self._weights: EdgeWeights = read_weights(
            data, self.graph, weight_attr
        )
        self._negatives = Negatives(self.graph, true_negatives, self._backward)
        self.num_neighbors = num_neighbors
        if share_memory:
            self._share_memory()

    # Properties of PyG's sampler #############################################

    @property
    def num_neighbors(self) -> NumNeighbors:
        """Neighbours to sample at each hop; can be set in PyG's forms."""
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, value: NumNeighborsType) -> None:
        if not isinstance(value, NumNeighbors):
            value = NumNeighbors(value)
        if not self.is_hetero:
            if isinstance(value.values, dict):
                raise ValueError(
                    "NeighborSampler: 'num_neighbors' must be a list for a "
                    'homogeneous graph (got a dictionary)'
                )
            fanouts = [value.values]
        else:
            mapped = value.get_mapped_values(self.graph.edge_types)
            fanouts = [mapped[EdgeTypeStr(t)] for t in self.graph.edge_types]
        self._fanouts = [
            check_fanouts('NeighborSampler', 'num_neighbors', fanout)
            for fanout in fanouts
        ]
        self._num_neighbors = value

    @property
    def data_type(self) -> DataType:
        """Whether the graph is homogeneous, heterogeneous or remote."""
        return self.graph.data_type

    @property
    def is_hetero(self) -> bool:
        """Whether the graph has node and edge types."""
        return self.graph.is_hetero

    @property
    def is_temporal(self) -> bool:
        """Whether there are times."""
        return self._times.given

    @property
    def disjoint(self) -> bool:
        """Whether each seed has a subgraph of its own."""
        return self._disjoint or self.is_temporal

    @disjoint.setter
    def disjoint(self, disjoint: bool) -> None:
        self._disjoint = disjoint

    @property
    def node_types(self) -> list[NodeType | None]:
        """The node types, ``[None]`` for a homogeneous graph."""
        return self.graph.node_types

    @property
    def edge_types(self) -> list[EdgeType | None]:
        """The edge types, ``[None]`` for a homogeneous graph."""
        return self.graph.edge_types

    @property
    def num_nodes(self) -> int | dict[NodeType, int]:
        """The number of nodes (of each type)."""
        counts: Any = self.graph.num_nodes
        return counts if self.is_hetero else counts[None]

    @property
    def edge_permutation(self) -> Any:
        """The original edge at each position of the sampler's graph."""
        perm = {
            key: None if key in self.graph.compressed else csc.perm
            for key, csc in self.graph.csc.items()
        }
        return perm if self.is_hetero else perm[None]

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
            ValueError: If times are needed and missing.
        """
        seeds: SeedDict = {inputs.input_type: inputs.node}
        times = {inputs.input_type: inputs.time}
        key = self.batch_key(inputs.node, inputs.time)
        out = self._sample(seeds, times, key)
        out.metadata = (inputs.input_id, inputs.time)
        return self._finish(out)

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
            ValueError: If times are needed and missing, or if
                ``true_negatives`` cannot be had.
        """
        key = self.batch_key(inputs.row, inputs.col, inputs.time)
        ends = links.LinkBatch(inputs, NegativeSampling.cast(neg_sampling))
        ends.add_negatives(self._negatives, self._times, key)
        seeds, times = ends.seeds(self.disjoint)
        out = self._sample(seeds, times, key)
        if self.exclude_seed_edges:
            ends.exclude_edges(
                out,
                self.graph,
                self.disjoint,
                reverse=self.exclude_seed_edges == 'reverse',
            )
        ends.label(out, self.graph, self.disjoint)
        return self._finish(out)

    def prepare_negatives(self, edge_type: EdgeType | None) -> None:
        """Builds what ``true_negatives`` needs for an edge type.

        Otherwise it is built at the first draw, in each worker for itself.
        """
        self._negatives.prepare(edge_type)

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self._num_neighbors.values}, '
            f'seed={self.seed})'
        )

    # Helpers #################################################################

    @property
    def _backward(self) -> bool:
        return self.sample_direction == 'backward'

    def _sample(
        self, seeds: SeedDict, times: dict[Any, Tensor | None], key: Tensor
    ) -> SamplerOutput | HeteroSamplerOutput:
        graph = self.graph
        disjoint = self.disjoint
        seed_time = self._times.of_seeds(seeds, times)
        options: dict[str, Any] = dict(
            key=key,
            time_window=self.time_window,
            temporal_strategy=self.temporal_strategy,
            replace=self.replace,
            disjoint=disjoint,
            num_threads=self.num_threads or 0,
        )
        out: Any
        if self.is_hetero:
            out = output.to_hetero_sampler_output(
                self._call_hetero(seeds, seed_time, options),
                graph,
                disjoint,
                self._backward,
            )
        else:
            csc = graph.csc[None]
            sample = ops.neighbor_sample(
                csc.indptr,
                csc.indices,
                seeds[None],
                self._fanouts[0],
                cum_weight=self._weights.get(None),
                edge_time=self._times.edge.get(None),
                seed_time=seed_time and seed_time[None],
                **options,
            )
            out = output.to_sampler_output(sample, disjoint, self._backward)
        if self.subgraph_type == SubgraphType.induced:
            self._induce(out, seed_time)
        self._restore_compressed_ids(out)
        return out

    def _call_hetero(
        self,
        seeds: SeedDict,
        seed_time: dict[Any, Tensor] | None,
        options: dict[str, Any],
    ) -> ops.HeteroNeighborSample:
        graph = self.graph
        index = {t: i for i, t in enumerate(graph.node_types)}
        for node_type in seeds:
            if node_type not in index:
                raise ValueError(
                    f'NeighborSampler: the graph has no node type '
                    f'{node_type!r} (it has {graph.node_types})'
                )
        none = torch.empty(0, dtype=torch.int64)
        ends = [graph.end_types(t) for t in graph.edge_types]
        columns = [graph.csc[t] for t in graph.edge_types]
        temporal = seed_time is not None
        return ops.hetero_neighbor_sample(
            [csc.indptr for csc in columns],
            [csc.indices for csc in columns],
            [
                (index[dst], index[src])
                if self._backward
                else (index[src], index[dst])
                for src, dst in ends
            ],
            [graph.num_nodes[t] for t in graph.node_types],
            [seeds.get(t, none) for t in graph.node_types],
            self._fanouts,
            cum_weight=[self._weights.get(t) for t in graph.edge_types],
            edge_time=[self._times.edge.get(t) for t in graph.edge_types]
            if temporal
            else None,
            seed_time=[seed_time.get(t, none) for t in graph.node_types]
            if seed_time is not None
            else None,
            **options,
        )

    def _induce(
        self, out: Any, seed_time: dict[Any, Tensor] | None
    ) -> None:
        """Replaces the sampled edges by all edges between sampled nodes.

        In temporal sampling these are the edges that a tree's time allows.
        """
        hetero = self.is_hetero
        tree_time = None
        if seed_time is not None:
            tree_time = torch.cat([
                seed_time[t] for t in self.graph.node_types if t in seed_time
            ])
        for edge_type in self.graph.edge_types:
            csc: CSC = self.graph.csc[edge_type]
            src, dst = self.graph.end_types(edge_type)
            if self._backward:
                src, dst = dst, src
            batch = out.batch if hetero else {None: out.batch}
            node = out.node if hetero else {None: out.node}
            rows, cols = (batch[src], batch[dst]) if self.disjoint else (None,) * 2
            row, col, edge = ops.induce_subgraph(
                csc.indptr,
                csc.indices,
                csc.num_rows,
                node[src],
                node[dst],
                rows,
                cols,
                num_threads=self.num_threads or 0,
            )
            if tree_time is not None and edge_type in self._times.edge:
                time = self._times.edge[edge_type][edge]
                latest = tree_time[cols[col]]
                mask = time <= latest
                if self.time_window is not None:
                    mask &= time >= latest - self.time_window
                row, col, edge = row[mask], col[mask], edge[mask]
            if self._backward:
                row, col = col, row
            if hetero:
                out.row[edge_type] = row
                out.col[edge_type] = col
                out.edge[edge_type] = edge
            else:
                out.row, out.col, out.edge = row, col, edge
        out.num_sampled_edges = None

    def _restore_compressed_ids(self, out: Any) -> None:
        """Spells edges of compressed formats by their original position."""
        for edge_type in self.graph.compressed:
            perm = self.graph.csc[edge_type].perm
            if perm is None:
                continue
            if self.is_hetero:
                out.edge[edge_type] = perm[out.edge[edge_type]]
            else:
                out.edge = perm[out.edge]

    def _finish(self, out: Any) -> Any:
        if self.subgraph_type == SubgraphType.bidirectional:
            metadata = out.metadata
            out = out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
            out.metadata = metadata
        return out

    def _share_memory(self) -> None:
        for csc in self.graph.csc.values():
            csc.share_memory_()
        for values in (self._times.edge, self._times.node, self._weights):
            for value in values.values():
                value.share_memory_()
        self._negatives.share_memory_()
