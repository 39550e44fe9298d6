"""Calls of the sampling operators on a sampler's graph.

Seeds of each node type come in, PyG's outputs go out.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph import Graph
from torch_gsample.list_cache import ListCache
from torch_gsample.ops._arguments import vector
from torch_gsample.ops.sample_neighbors import draw
from torch_gsample.ops.sampling import OP
from torch_gsample.placement import (
    Placement,
    check_kind,
    choose_placement,
)
from torch_gsample.samplers.neighbor.edge_bound import (
    sample_by_edge_time,
    select_in,
)
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.samplers.output import pyg as output

ByType: TypeAlias = dict[Any, Tensor]


#: Number of batches that a loader passes to a GPU at once.
LOOK_AHEAD = 8
#: Edges of a launch with several batches. Memory is allocated for all of
#: them, and the table of nodes should fit in the GPU's cache.
_EDGES_IN_LAUNCH = 2**22


def batches_in_launch(
    sizes: dict[Any, int], graph: Graph, fanouts: list[list[int]]
) -> int:
    """Returns the number of batches in a launch.

    Args:
        sizes (Dict[NodeType, int]): Seeds of a batch, by type.
        graph (Graph): The graph.
        fanouts (List[List[int]]): For each edge type.
    """
    columns = Counter(sizes)
    edges = max(columns.total(), 1)
    for of_hop in zip(*fanouts, strict=False):
        rows: Counter[Any] = Counter()
        for edge_type, fanout in zip(graph.edge_types, of_hop, strict=True):
            row_type, column_type = graph.row_and_column_type(edge_type)
            if fanout < 0 and columns[column_type]:  # no bound is known
                return 1
            rows[row_type] += columns[column_type] * fanout
        columns = rows
        edges += columns.total()
    return max(1, _EDGES_IN_LAUNCH // edges)


_MIN_TIME = torch.iinfo(torch.int64).min


@dataclass(frozen=True)
class Neighborhood:
    """A graph that is ready for sampling.

    Args:
        graph (Graph): The graph, with its times and weights.
        compressed (FrozenSet[EdgeType]): Edge types whose ids refer to
            compressed columns.
        placement (Placement, optional): Its location for a GPU.
        caches (List[ListCache]): Neighbour lists of a pinned graph that are
            cached in GPU memory.
        interval (TimeInterval, optional): The times that are seen from a
            bound.
    """

    graph: Graph
    compressed: frozenset[Any] = frozenset()
    placement: Placement | None = None
    caches: list[ListCache] = field(default_factory=list)
    interval: TimeInterval = field(default_factory=TimeInterval)

    def on(
        self,
        device: torch.device,
        kind: str,
        induced: bool,
        cache_bytes: int | None = None,
    ) -> 'Neighborhood':
        """Returns a copy of the graph placed for ``device``.

        Args:
            device (torch.device): The device.
            kind (str): See :func:`choose_placement`.
            induced (bool): Whether :meth:`induce` is called.
            cache_bytes (int, optional): Memory of :attr:`caches`; default: a
                quarter of the free memory.

        Raises:
            ValueError: If the kind is unknown, a pinned graph would be
                induced from, or edges bound the times of hops, which only
                the CPU supports.
        """
        name = 'NeighborSampler'
        check_kind(name, kind)
        if device.type == 'cpu':
            return self
        if self.interval.bound == 'edge':
            raise ValueError(
                f"{name}: time_bound='edge' needs device='cpu' (got "
                f"'{device}')"
            )
        if induced and kind == 'uva':
            raise ValueError(
                f"{name}: subgraph_type='induced' needs the graph in the "
                "memory of the GPU (graph_placement='gpu'; got 'uva')"
            )
        if induced and kind == 'auto':
            kind = 'gpu'  # inducing does not support pinned graphs
        placed = self.place(
            choose_placement(name, device, kind, self._long_tensors())
        )
        return placed.cached(cache_bytes)

    def place(self, placement: Placement) -> 'Neighborhood':
        """Returns a copy of the graph placed for a GPU."""
        graph = self.graph.place(placement)
        return replace(self, graph=graph, placement=placement)

    def cached(self, cache_bytes: int | None) -> 'Neighborhood':
        """Returns the graph with a cache of its hottest neighbour lists.

        A node is visited in proportion to the number of lists it is in.
        """
        assert self.placement is not None
        if not self.placement.pinned:
            return self
        if cache_bytes is None:
            free, _ = torch.cuda.mem_get_info(self.placement.device)
            cache_bytes = free // 4
        visits = {
            t: torch.zeros(n, dtype=torch.int64)
            for t, n in self.graph.counts.items()
        }
        sizes, columns = {}, {}
        for edge_type, csc in self.graph.items():
            ends = self.graph.row_and_column_type(edge_type)
            rows, columns[edge_type] = ends
            count = torch.bincount(csc.indices, minlength=csc.num_rows)
            visits[rows] += count
            sizes[edge_type] = csc.num_edges
        total = max(sum(sizes.values()), 1)
        caches = [
            ListCache(
                csc.indptr.cpu(),
                csc.indices,
                visits[columns[t]],
                cache_bytes * sizes[t] // total,
                self.placement.device,
            )
            for t, csc in self.graph.items()
        ]
        return replace(self, caches=caches)

    def stats(self) -> dict[str, int]:
        """Returns the number of edges read, and of those the cached ones.

        Returns:
            Dict[str, int]: ``edges_read`` and ``edges_cached``; their ratio
            is the hit rate. Empty without caches.
        """
        if not self.caches:
            return {}
        reads = [cache.reads() for cache in self.caches]
        return {
            'edges_read': sum(both for _, both in reads),
            'edges_cached': sum(hits for hits, _ in reads),
        }

    def _long_tensors(self) -> list[Tensor]:
        """Returns the tensors with an item for each edge."""
        values = [
            (csc.indices, csc.edge_id, csc.edge_time, csc.cum_weight)
            for csc in self.graph.columns
        ]
        return [t for of in values for t in of if t is not None]

    def sample(
        self,
        seeds: ByType,
        seed_time: ByType | None,
        fanouts: list[list[int]],
        key: Tensor,
        sampling: ops.Sampling,
    ) -> Any:
        """Samples neighbours of ``seeds``.

        Args:
            seeds (Dict[NodeType, torch.Tensor]): The seeds of some types.
            seed_time (Dict[NodeType, torch.Tensor], optional): Their times.
            fanouts (List[List[int]]): For each edge type.
            key (torch.Tensor): The key of the batch.
            sampling (Sampling): The options.
        """
        of_types, times = self._by_type(seeds), self._times(seed_time)
        interval = self.interval
        if times is not None and interval.bound == 'edge':
            select = select_in(self.graph, fanouts, key, sampling)
            sample = sample_by_edge_time(
                self.graph, of_types, times, fanouts, key, interval, select
            )
        elif self.graph.is_hetero:
            sample = ops.sample_neighbors(
                self.graph,
                of_types,
                fanouts,
                key,
                sampling=sampling,
                seed_time=times,
            )
        else:  # the sampler has checked the fan-outs
            sample = draw(
                self.graph, of_types, fanouts[0], key, sampling, times
            )
        return output.to_sampler_output(sample, self.graph, sampling.disjoint)

    def sample_batches(
        self,
        seeds: list[ByType],
        seed_time: list[ByType | None],
        fanouts: list[list[int]],
        keys: Tensor,
        sampling: ops.Sampling,
    ) -> list[Any]:
        """Samples several batches at once.

        Args:
            seeds (List[Dict[NodeType, torch.Tensor]]): Seeds of each batch.
            seed_time (List[Dict[NodeType, torch.Tensor]], optional): Their
                times.
            fanouts (List[List[int]]): For each edge type.
            keys (torch.Tensor): A row for each batch.
            sampling (Sampling): The options.
        """
        nodes: list[Any] = [self._by_type(of_batch) for of_batch in seeds]
        times: list[Any] = [self._times(of_batch) for of_batch in seed_time]
        is_hetero, is_temporal = self.graph.is_hetero, None not in times
        if not is_hetero:
            nodes = [of_types[0] for of_types in nodes]
            times = [of_types[0] for of_types in times if is_temporal]
        samples = ops.sample_batches(
            self.graph,
            nodes,
            fanouts if is_hetero else fanouts[0],
            keys,
            sampling=sampling,
            seed_time=times if is_temporal else None,
        )
        return [
            output.to_sampler_output(sample, self.graph, sampling.disjoint)
            for sample in samples
        ]

    def _times(self, seed_time: ByType | None) -> list[Tensor] | None:
        """Returns the times of seeds by type.

        None if no edge has a time: nodes with times may have no out-edges.
        """
        if seed_time is None or not self._is_temporal:
            return None
        return self._by_type(seed_time)

    @cached_property
    def _is_temporal(self) -> bool:
        return self.graph.is_temporal

    def _by_type(self, values: ByType) -> list[Tensor]:
        """Returns a vector for each node type, empty if there is none."""
        values, graph = self._moved(values), self.graph
        if graph.is_hetero:
            none = torch.empty(0, dtype=torch.int64, device=graph.device)
            return [values.get(t, none) for t in graph.node_types]
        return [vector(OP, 'seeds', values[None])]

    def _moved(self, values: ByType) -> ByType:
        if self.placement is None:
            return values
        return {t: self.placement.on_device(v) for t, v in values.items()}

    def induce(
        self, out: Any, seed_time: ByType | None, sampling: ops.Sampling
    ) -> None:
        """Replaces the sampled edges with all edges between sampled nodes.

        In temporal sampling, only edges that the tree's time allows.
        """
        tree_time = None
        if seed_time is not None:
            seed_time = self._moved(seed_time)
            tree_time = torch.cat(
                [seed_time[t] for t in self.graph.node_types if t in seed_time]
            )
        hetero = self.graph.is_hetero
        node = out.node if hetero else {None: out.node}
        batch = out.batch if hetero else {None: out.batch}
        for edge_type, csc in self.graph.items():
            rows, cols = self.graph.row_and_column_type(edge_type)
            trees = (batch[rows], batch[cols]) if sampling.disjoint else ()
            edges = ops.induce_subgraph(
                csc.indptr,
                csc.indices,
                csc.num_rows,
                node[rows],
                node[cols],
                *trees,
                num_threads=sampling.num_threads,
            )
            if tree_time is not None and csc.edge_time is not None:
                latest = tree_time[batch[cols][edges[1]]]
                time = csc.edge_time[edges[2]]
                mask = time <= latest
                window = sampling.time_window
                if window is not None:
                    mask &= (
                        time >= latest.clamp(min=_MIN_TIME + window) - window
                    )
                edges = edges[0][mask], edges[1][mask], edges[2][mask]
            row, col, edge = edges
            if self.graph.is_transposed:
                row, col = col, row
            output.set_edges(out, edge_type, row, col, edge)
        out.num_sampled_edges = None

    def restore_edge_ids(self, out: Any) -> None:
        """Replaces positions of edges with their original ids.

        For compressed formats only, on a GPU for all: loaders would look them
        up on the host.
        """
        on_gpu, hetero = self.placement is not None, self.graph.is_hetero
        for edge_type, edge_id in self._restored.items():
            edge = out.edge[edge_type] if hetero else out.edge
            lookup = ops.gather_rows if on_gpu else Tensor.__getitem__
            edge = lookup(edge_id, edge).long()
            if hetero:
                out.edge[edge_type] = edge
            else:
                out.edge = edge

    @cached_property
    def restores_edge_ids(self) -> bool:
        """Whether :meth:`restore_edge_ids` has anything to do."""
        return bool(self._restored)

    @cached_property
    def _restored(self) -> ByType:
        """Edge ids by position, of types whose ids are restored."""
        return {
            t: csc.edge_id
            for t, csc in self.graph.items()
            if csc.edge_id is not None
            and (t in self.compressed or self.placement is not None)
        }

    @cached_property
    def edge_permutation(self) -> Any:
        """The original edge at each position, in the form of PyG's samplers.

        None for types whose edge ids :meth:`restore_edge_ids` restores.
        """
        perm = {
            t: None if t in self._restored else csc.edge_id
            for t, csc in self.graph.items()
        }
        return perm if self.graph.is_hetero else perm[None]
