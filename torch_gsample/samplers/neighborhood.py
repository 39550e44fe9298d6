"""Calls the sampling operators on a sampler's graph.

Seeds of each node type come in, PyG's outputs go out. Where ``backward`` is
set, the columns of the graph are sources, and rows destinations.
"""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.list_cache import ListCache
from torch_gsample.placement import (
    Placement,
    check_kind,
    choose_placement,
)
from torch_gsample.samplers import output
from torch_gsample.samplers.attributes import EdgeWeights, Times
from torch_gsample.samplers.graph_input import SamplerGraph

ByType: TypeAlias = dict[Any, Tensor]

_MIN_TIME = torch.iinfo(torch.int64).min


@dataclass(frozen=True)
class Neighborhood:
    """A graph with its times and weights, ready to be sampled.

    Args:
        graph (SamplerGraph): The graph.
        times (Times): Its times, if there are any.
        weights (Dict[EdgeType, torch.Tensor]): Cumulative edge weights.
        backward (bool): Whether columns are sources.
        placement (Placement, optional): Where it was placed for a GPU.
        caches (List[ListCache]): Neighbour lists that the GPU's memory holds
            of a graph in pinned memory.
    """

    graph: SamplerGraph
    times: Times
    weights: EdgeWeights
    backward: bool
    placement: Placement | None = None
    caches: list[ListCache] = field(default_factory=list)

    def on(
        self,
        device: torch.device,
        kind: str,
        induced: bool,
        cache_bytes: int | None = None,
    ) -> 'Neighborhood':
        """Returns the graph where a device samples from it.

        Args:
            device (torch.device): The device.
            kind (str): See :func:`choose_placement`.
            induced (bool): Whether :meth:`induce` is called.
            cache_bytes (int, optional): Memory for :attr:`caches`; a quarter
                of what is free if not given.

        Raises:
            ValueError: If the kind is not known, or nothing can be induced.
        """
        name = 'NeighborSampler'
        check_kind(name, kind)
        if device.type == 'cpu':
            return self
        if induced and kind == 'uva':
            raise ValueError(
                f"{name}: subgraph_type='induced' needs the graph in the "
                "memory of the GPU (graph_placement='gpu'; got 'uva')"
            )
        if induced and kind == 'auto':
            kind = 'gpu'  # what is pinned is not induced from
        placed = self.place(
            choose_placement(name, device, kind, self._long_tensors())
        )
        return placed.cached(cache_bytes)

    def place(self, placement: Placement) -> 'Neighborhood':
        """Returns the graph where a GPU samples from it.

        Pointers are always on the GPU: every column that is sampled reads
        them.
        """
        csc = {
            edge_type: replace(
                csc,
                indptr=placement.on_device(csc.indptr),
                indices=placement.place(csc.indices),
                perm=None if csc.perm is None else placement.place(csc.perm),
            )
            for edge_type, csc in self.graph.csc.items()
        }

        def place_all(values: ByType) -> ByType:
            return {t: placement.place(value) for t, value in values.items()}

        return replace(
            self,
            graph=replace(self.graph, csc=csc),
            times=replace(self.times, edge=place_all(self.times.edge)),
            weights=place_all(self.weights),
            placement=placement,
        )

    def cached(self, cache_bytes: int | None) -> 'Neighborhood':
        """Returns the graph with a cache of the lists that are read most.

        A node is met in proportion to the lists that it is in.
        """
        assert self.placement is not None
        if not self.placement.pinned:
            return self
        if cache_bytes is None:
            free, _ = torch.cuda.mem_get_info(self.placement.device)
            cache_bytes = free // 4
        met = {
            t: torch.zeros(n, dtype=torch.int64)
            for t, n in self.graph.num_nodes.items()
        }
        sizes, columns = {}, {}
        for edge_type, csc in self.graph.csc.items():
            rows, columns[edge_type] = self._row_and_column_type(edge_type)
            met[rows] += torch.bincount(csc.indices, minlength=csc.num_rows)
            sizes[edge_type] = csc.num_edges
        total = max(sum(sizes.values()), 1)
        caches = [
            ListCache(
                csc.indptr.cpu(),
                csc.indices,
                met[columns[t]],
                cache_bytes * sizes[t] // total,
                self.placement.device,
            )
            for t, csc in self.graph.csc.items()
        ]
        return replace(self, caches=caches)

    def stats(self) -> dict[str, int]:
        """Returns how many edges were read, and of them by the caches.

        Returns:
            Dict[str, int]: ``edges_read`` and ``edges_cached``; their ratio
            is the hit rate. Empty where there are no caches.
        """
        if not self.caches:
            return {}
        reads = [cache.reads() for cache in self.caches]
        return {
            'edges_read': sum(both for _, both in reads),
            'edges_cached': sum(hits for hits, _ in reads),
        }

    def _long_tensors(self) -> list[Tensor]:
        """Returns what has an item for each edge."""
        columns = self.graph.csc.values()
        out = [csc.indices for csc in columns]
        out += [csc.perm for csc in columns if csc.perm is not None]
        return [*out, *self.times.edge.values(), *self.weights.values()]

    def sample(
        self,
        seeds: ByType,
        seed_time: ByType | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
    ) -> Any:
        """Samples neighbours of ``seeds``.

        Args:
            seeds (Dict[NodeType, torch.Tensor]): The seeds of some types.
            seed_time (Dict[NodeType, torch.Tensor], optional): Their times.
            fanouts (List[List[int]]): For each edge type.
            options (Dict[str, Any]): Of the operator.
        """
        disjoint = options['disjoint']
        seeds = self._moved(seeds)
        seed_time = None if seed_time is None else self._moved(seed_time)
        if self.graph.is_hetero:
            return output.to_hetero_sampler_output(
                self._sample_hetero(seeds, seed_time, fanouts, options),
                self.graph,
                disjoint,
                self.backward,
            )
        csc = self.graph.csc[None]
        sample = ops.neighbor_sample(
            csc.indptr,
            csc.indices,
            seeds[None],
            fanouts[0],
            cum_weight=self.weights.get(None),
            edge_time=self.times.edge.get(None),
            seed_time=None if seed_time is None else seed_time[None],
            **options,
        )
        return output.to_sampler_output(sample, disjoint, self.backward)

    def _sample_hetero(
        self,
        seeds: ByType,
        seed_time: ByType | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
    ) -> ops.HeteroNeighborSample:
        node_types, edge_types = self.graph.node_types, self.graph.edge_types
        index = {t: i for i, t in enumerate(node_types)}
        relations = [
            (index[rows], index[cols])
            for rows, cols in map(self._row_and_column_type, edge_types)
        ]
        device = None if self.placement is None else self.placement.device
        none = torch.empty(0, dtype=torch.int64, device=device)
        if seed_time is not None:
            options = dict(
                options,
                edge_time=[self.times.edge.get(t) for t in edge_types],
                seed_time=[seed_time.get(t, none) for t in node_types],
            )
        columns = [self.graph.csc[t] for t in edge_types]
        return ops.hetero_neighbor_sample(
            [csc.indptr for csc in columns],
            [csc.indices for csc in columns],
            relations,
            [self.graph.num_nodes[t] for t in node_types],
            [seeds.get(t, none) for t in node_types],
            fanouts,
            cum_weight=[self.weights.get(t) for t in edge_types],
            **options,
        )

    def _moved(self, values: ByType) -> ByType:
        if self.placement is None:
            return values
        return {t: self.placement.on_device(v) for t, v in values.items()}

    def _row_and_column_type(self, edge_type: Any) -> tuple[Any, Any]:
        src, dst = self.graph.end_types(edge_type)
        return (dst, src) if self.backward else (src, dst)

    def induce(
        self, out: Any, seed_time: ByType | None, options: dict[str, Any]
    ) -> None:
        """Replaces the sampled edges by all edges between sampled nodes.

        In temporal sampling these are the edges that a tree's time allows.
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
        for edge_type, csc in self.graph.csc.items():
            rows, cols = self._row_and_column_type(edge_type)
            trees = (batch[rows], batch[cols]) if options['disjoint'] else ()
            edges = ops.induce_subgraph(
                csc.indptr,
                csc.indices,
                csc.num_rows,
                node[rows],
                node[cols],
                *trees,
                num_threads=options['num_threads'],
            )
            if tree_time is not None and edge_type in self.times.edge:
                latest = tree_time[batch[cols][edges[1]]]
                time = self.times.edge[edge_type][edges[2]]
                mask = time <= latest
                window = options['time_window']
                if window is not None:
                    mask &= (
                        time >= latest.clamp(min=_MIN_TIME + window) - window
                    )
                edges = edges[0][mask], edges[1][mask], edges[2][mask]
            row, col, edge = edges
            if self.backward:
                row, col = col, row
            output.set_edges(out, edge_type, row, col, edge)
        out.num_sampled_edges = None

    def restore_edge_ids(self, out: Any) -> None:
        """Spells edges of compressed formats by their original position.

        On a GPU all edges are: loaders would look them up on the host.
        """
        on_gpu = self.placement is not None
        for edge_type, csc in self.graph.csc.items():
            if csc.perm is None:
                continue
            if edge_type not in self.graph.compressed and not on_gpu:
                continue
            lookup = ops.gather_rows if on_gpu else Tensor.__getitem__
            if self.graph.is_hetero:
                out.edge[edge_type] = lookup(csc.perm, out.edge[edge_type])
            else:
                out.edge = lookup(csc.perm, out.edge)

    def edge_permutation(self) -> Any:
        """Returns the original edge at each position, as PyG's samplers do.

        None for types whose edge ids :meth:`restore_edge_ids` spells out.
        """
        on_gpu = self.placement is not None
        perm = {
            t: None if on_gpu or t in self.graph.compressed else csc.perm
            for t, csc in self.graph.csc.items()
        }
        return perm if self.graph.is_hetero else perm[None]

    def share_memory_(self) -> None:
        """Moves all tensors to shared memory."""
        for csc in self.graph.csc.values():
            csc.share_memory_()
        for values in (self.times.edge, self.times.node, self.weights):
            for value in values.values():
                value.share_memory_()
