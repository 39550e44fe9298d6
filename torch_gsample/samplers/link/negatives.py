"""Negative nodes for link prediction, drawn by key."""

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.sampler import NegativeSampling

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.ops.formats import cumulate_argument
from torch_gsample.options import TrueNegatives
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.link.unseen import SeenEdges
from torch_gsample.snapshot import Snapshot

#: Maximum number of draws of a source whose destinations are all neighbours.
MAX_REDRAWS = 16


class Negatives:
    """Draws the end nodes of negative edges.

    Args:
        graph (Graph): The graph.
        true_negatives (bool or str): Whether negatives are never edges of the
            graph. ``'uniform'``: uniform over all pairs that are not edges.
            ``'unseen'``: may be edges later than the time of the seed edge.
        name (str, optional): The sampler, for errors.

    Raises:
        TypeError: If ``true_negatives`` is anything else.
    """

    def __init__(
        self,
        graph: Graph,
        true_negatives: TrueNegatives,
        name: str = 'NeighborSampler',
    ):
        self.graph = graph
        self.is_uniform = true_negatives == 'uniform'
        self.is_unseen = true_negatives == 'unseen'
        self.true_negatives = (
            self.is_uniform
            or self.is_unseen
            or flag(name, 'true_negatives', true_negatives)
        )
        self._neighbors: dict[Any, CSC] = {}
        self._order: dict[Any, tuple[Tensor, Tensor]] = {}
        self._weights: dict[Any, tuple[Tensor, Snapshot, Tensor]] = {}
        self._non_edges: dict[Any, Tensor] = {}
        self._seen: dict[Any, SeenEdges] = {}
        if not graph.is_hetero:
            self.prepare(None)

    def prepare(self, edge_type: Any) -> None:
        """Builds the tables of an edge type's true negatives.

        Without this call, each worker builds them at its first draw.

        Raises:
            ValueError: If the edge type has no times and needs them.
        """
        if not self.true_negatives or edge_type in self._neighbors:
            return
        if self.is_unseen:
            return self._prepare_seen(edge_type)
        if edge_type not in self.graph.edge_types:
            return
        csc = self.graph[edge_type].without_values()
        by_source = csc if self.graph.is_transposed else csc.transpose()
        by_source, _ = by_source.sort_columns(by_source.indices)
        by_source = CSC(
            by_source.indptr.long(), by_source.indices.long(), csc.num_cols
        )
        self._neighbors[edge_type] = by_source
        if self.is_uniform:
            self._non_edges[edge_type] = self._count_non_edges(
                by_source, self.graph.end_types(edge_type)[1]
            )

    def _prepare_seen(self, edge_type: Any) -> None:
        csc = self.graph[edge_type]
        if csc.edge_time is None:
            raise ValueError(
                "NeighborSampler: true_negatives='unseen' needs times "
                f"('time_attr') of edges of type {edge_type} or of their "
                'sources (got none)'
            )
        if edge_type not in self._seen:
            self._seen[edge_type] = SeenEdges(csc)

    def _count_non_edges(self, by_source: CSC, dst: Any) -> Tensor:
        """Returns the cumulated numbers of non-edges of the sources."""
        row, source = by_source.indices, by_source.col()
        repeated = (row[1:] == row[:-1]) & (source[1:] == source[:-1])
        distinct = by_source.indptr.diff()
        distinct -= torch.bincount(
            source[1:][repeated], minlength=distinct.numel()
        )
        return ops.cumulate_weights(
            torch.tensor([0, distinct.numel()]),
            (self.graph.counts[dst] - distinct).double(),
        )

    def neighbors(self, edge_type: Any) -> CSC | None:
        """Returns the destinations that are not negatives, for each source.

        They ascend. None if edges may be negatives.
        """
        return self._neighbors.get(edge_type)

    def check_weights(
        self, edge_type: Any, sampling: NegativeSampling | None
    ) -> None:
        """Checks that there is one weight for each node.

        Raises:
            ValueError: If the number of weights is wrong, or if uniform pairs
                have weights.
        """
        if sampling is None:
            return
        src, dst = self.graph.end_types(edge_type)
        for end, node_type, weight in (
            ('src', src, sampling.src_weight),
            ('dst', dst, sampling.dst_weight),
        ):
            size = self.graph.counts[node_type]
            if weight is not None and self.is_uniform:
                raise ValueError(
                    f"NegativeSampling: '{end}_weight' must be None with "
                    "true_negatives='uniform' (got a tensor)"
                )
            if weight is not None and weight.numel() != size:
                raise ValueError(
                    f"NegativeSampling: '{end}_weight' must have {size} "
                    f'elements, one for each node (got {weight.numel()})'
                )

    def share_memory_(self) -> None:
        """Moves tensors to shared memory."""
        for csc in self._neighbors.values():
            csc.share_memory_()
        for count in self._non_edges.values():
            count.share_memory_()
        for seen in self._seen.values():
            seen.share_memory_()

    def draw_pairs(
        self,
        edge_type: Any,
        sampling: NegativeSampling,
        ids: Tensor,
        times: Times,
        max_time: Tensor | None,
        key: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Draws a source and a destination for each of ``ids``.

        Returns:
            Tuple[torch.Tensor, torch.Tensor]: int64 ``[n]`` each.

        Raises:
            ValueError: If no pair was found.
        """

        def draw_source(part: Tensor, call_id: int) -> Tensor:
            return self._draw(
                edge_type,
                'src',
                sampling,
                ids[part],
                times,
                None if max_time is None else max_time[part],
                key,
                call_id=call_id,
            )

        todo = torch.arange(ids.numel())
        src = draw_source(todo, 0)
        dst = torch.full_like(src, -1)
        for call_id in range(MAX_REDRAWS):
            if call_id > 0:
                src[todo] = draw_source(todo, call_id)
            dst[todo] = self._draw(
                edge_type,
                'dst',
                sampling,
                ids[todo],
                times,
                None if max_time is None else max_time[todo],
                key,
                anchor=src[todo],
                call_id=call_id,
            )
            todo = todo[dst[todo] < 0]
            if todo.numel() == 0:
                return src, dst
        raise self._no_candidate(edge_type, int(src[todo[0]]))

    def draw_targets(
        self,
        edge_type: Any,
        sampling: NegativeSampling,
        ids: Tensor,
        src: Tensor,
        times: Times,
        max_time: Tensor | None,
        key: Tensor,
    ) -> Tensor:
        """Draws a destination for each source.

        Returns:
            torch.Tensor: int64 ``[n]``.

        Raises:
            ValueError: If a source is linked to every node.
        """
        dst = self._draw(
            edge_type, 'dst', sampling, ids, times, max_time, key, anchor=src
        )
        if bool((dst < 0).any()):
            raise self._no_candidate(edge_type, int(src[dst < 0][0]))
        return dst

    @staticmethod
    def _no_candidate(edge_type: Any, src: int) -> ValueError:
        return ValueError(
            f'NeighborSampler: there is no negative destination for source '
            f'{src} of edge type {edge_type}: all nodes that could be drawn '
            f'are its neighbors'
        )

    def _draw(
        self,
        edge_type: Any,
        end: Literal['src', 'dst'],
        sampling: NegativeSampling,
        ids: Tensor,
        times: Times,
        max_time: Tensor | None,
        key: Tensor,
        anchor: Tensor | None = None,
        call_id: int = 0,
    ) -> Tensor:
        node_type = self.graph.end_types(edge_type)[end == 'dst']
        self.check_weights(edge_type, sampling)
        self.prepare(edge_type)
        weight = sampling.src_weight if end == 'src' else sampling.dst_weight
        time, source = max_time, anchor
        order = order_time = None
        if max_time is not None and node_type in times.node:
            if self.is_uniform:
                raise self._timed(node_type)
            order, order_time = self._order_by_time(node_type, times)
        else:
            max_time = None
        neighbors = self._neighbors.get(edge_type)
        if neighbors is None or anchor is None:
            neighbors = anchor = None
        cum_weight = self._cumulate(node_type, end, weight, order)
        if end == 'src':
            cum_weight = self._non_edges.get(edge_type, cum_weight)

        def draw(part: Any, call_id: int) -> Tensor:
            return ops.negative_sample(
                ids[part],
                self.graph.counts[node_type],
                key=key,
                call_id=call_id,
                target=end == 'dst',
                cum_weight=cum_weight,
                order=order,
                order_time=order_time,
                max_time=None if max_time is None else max_time[part],
                anchor=None if anchor is None else anchor[part],
                indptr=None if neighbors is None else neighbors.indptr,
                indices=None if neighbors is None else neighbors.indices,
            )

        def candidates(i: int) -> tuple[Tensor, Tensor]:
            nodes = torch.arange(self.graph.counts[node_type])
            if max_time is not None:
                nodes = nodes[times.node[node_type] <= max_time[i]]
            every = torch.ones(len(nodes))
            return nodes, every if weight is None else weight.cpu()[nodes]

        out = draw(slice(None), call_id)
        if anchor is None and bool((out < 0).any()):
            raise self._no_node(edge_type, end)
        if self.is_unseen and source is not None:
            seen, time = self._seen[edge_type], self._time_of(edge_type, time)
            items = source, time, ids, key, call_id
            return seen.draw(draw, candidates, *items)
        return out

    @staticmethod
    def _timed(node_type: Any) -> ValueError:
        return ValueError(
            "NeighborSampler: true_negatives='uniform' needs nodes without "
            f'times (got times of {node_type!r})'
        )

    def _no_node(self, edge_type: Any, end: str) -> ValueError:
        if self.is_uniform:
            return ValueError(
                'NeighborSampler: there is no negative of edge type '
                f'{edge_type}: all pairs of nodes are edges'
            )
        return ValueError(
            f"NegativeSampling: '{end}_weight' must not be 0 for all "
            f'nodes that can be drawn'
        )

    def _time_of(self, edge_type: Any, time: Tensor | None) -> Tensor:
        if time is None:
            raise ValueError(
                "NeighborSampler: true_negatives='unseen' needs times of the "
                f'seed edges of type {edge_type} (got None)'
            )
        return time

    def is_seen(
        self, edge_type: Any, src: Tensor, dst: Tensor, time: Tensor | None
    ) -> Tensor:
        """Whether pairs are edges up to a time; false unless ``'unseen'``."""
        if not self.is_unseen:
            return torch.zeros_like(dst, dtype=torch.bool)
        time = self._time_of(edge_type, time)
        return self._seen[edge_type].has(src, dst, time)

    def _order_by_time(
        self, node_type: Any, times: Times
    ) -> tuple[Tensor, Tensor]:
        if node_type not in self._order:
            time, order = torch.sort(times.node[node_type], stable=True)
            self._order[node_type] = order, time
        return self._order[node_type]

    def _cumulate(
        self,
        node_type: Any,
        end: str,
        weight: Tensor | None,
        order: Tensor | None,
    ) -> Tensor | None:
        """Returns cumulated weights, cached until a weight changes."""
        if weight is None:
            return None
        place = node_type, end, order is not None
        known = self._weights.get(place)
        if (
            known is None
            or known[0] is not weight
            or not known[1].holds([weight])
        ):
            snapshot = Snapshot([weight])
            cum_weight = cumulate_argument(
                'NeighborSampler',
                f'{end}_weight',
                torch.tensor([0, weight.numel()]),
                weight.cpu(),
                order,
            )
            known = weight, snapshot, cum_weight
            self._weights[place] = known
        return known[2]


def num_negatives(num_positives: int, sampling: NegativeSampling) -> int:
    """Returns the number of negatives that PyG samples for some positives."""
    return math.ceil(num_positives * sampling.amount)
