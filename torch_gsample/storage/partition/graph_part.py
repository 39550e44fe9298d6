"""One process's columns of a partitioned graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout

from torch_gsample.csc import CSC
from torch_gsample.graph import Graph
from torch_gsample.graph_types import GraphTypes


@dataclass(frozen=True, eq=False)
class GraphPart:
    """Consecutive columns of each relation, and the types of the whole graph.

    It is the second part of a loader's data; see :class:`PartitionedFeatures`.

    Args:
        types (GraphTypes): Types and numbers of nodes of the whole graph.
        columns (Tuple[CSC, ...]): This process's columns of each relation,
            with rows and edge ids of the whole graph.
        bounds (Dict[NodeType, torch.Tensor]): For each type, int64
            ``[world_size + 1]``: process ``r`` has the columns of the nodes
            from ``bounds[r]`` to ``bounds[r + 1]``.
        node_time (Dict[NodeType, torch.Tensor], optional): int64
            ``[num_nodes]``, times of seeds that are given none.

    Example:
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> part = GraphPart.of(graph, rank=1, world_size=2)
        >>> part.bounds[None], part.columns[0].indices
        (tensor([0, 1, 3]), tensor([2], dtype=torch.int32))
    """

    types: GraphTypes
    columns: tuple[CSC, ...]
    bounds: dict[Any, Tensor]
    node_time: dict[Any, Tensor] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: Graph,
        rank: int,
        world_size: int,
        node_time: Mapping[Any, Tensor] | None = None,
    ) -> 'GraphPart':
        """Returns the part of a graph for a process.

        Args:
            graph (Graph): The whole graph, which may be mapped from a file.
            rank (int): The process.
            world_size (int): The number of processes.
            node_time (Dict[NodeType, torch.Tensor], optional): int64
                ``[num_nodes]``, the times of all nodes of a type, if seeds
                have those of their nodes.

        Raises:
            ValueError: If ``rank`` is out of range, or ``node_time`` does
                not have a time for each node.
        """
        if not 0 <= rank < world_size:
            raise ValueError(
                f"GraphPart.of: 'rank' must be in [0, {world_size}) (got "
                f'{rank})'
            )
        times = dict(node_time or {})
        for node_type, time in times.items():
            size = graph.counts.get(node_type, 0)
            if time.shape != (size,):
                raise ValueError(
                    f"GraphPart.of: 'node_time' of {node_type!r} must have "
                    f'shape [{size}] (got {list(time.shape)})'
                )
        share = torch.arange(world_size + 1)
        bounds = {t: share * n // world_size for t, n in graph.counts.items()}
        columns = []
        for edge_type, csc in graph.items():
            _, cols = graph.row_and_column_type(edge_type)
            begin, end = bounds[cols][rank : rank + 2].tolist()
            columns.append(_cut(csc, begin, end))
        types = GraphTypes(
            graph.node_types,
            graph.edge_types,
            graph.num_nodes,
            is_transposed=graph.is_transposed,
        )
        return cls(types, tuple(columns), bounds, times)

    def to(self, device: torch.device | str) -> 'GraphPart':
        """Returns a copy with its columns on a device, which draws there."""
        columns = tuple(csc.to(device) for csc in self.columns)
        return replace(self, columns=columns)

    @property
    def has_edge_times(self) -> bool:
        """Whether a relation has times."""
        return any(csc.edge_time is not None for csc in self.columns)

    def sampler_graph(self) -> GraphTypes:
        """Returns types and counts as samplers see them, without edges."""
        return self.types

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Returns the edge types and their sizes, for PyG's loaders."""
        sizes, out = self.types.counts, []
        for edge_type in self.types.edge_types:
            src, dst = map(sizes.__getitem__, self.types.end_types(edge_type))
            out.append(EdgeAttr(edge_type, EdgeLayout.CSC, size=(src, dst)))
        return out

    def node_times(self) -> dict[Any, Tensor]:
        """Returns the times of nodes, by type."""
        return self.node_time


def _cut(csc: CSC, begin: int, end: int) -> CSC:
    """Returns a range of columns, with edge ids."""
    first, last = int(csc.indptr[begin]), int(csc.indptr[end])
    edge_id, cum_weight = torch.arange(first, last), None
    if csc.edge_id is not None:
        edge_id = csc.edge_id[first:last].clone()
    if csc.cum_weight is not None:
        sums, zeros = csc.cum_weight.split(
            [csc.num_edges, len(csc.cum_weight) - csc.num_edges]
        )
        cum_weight = torch.cat(
            [sums[first:last], _cut_bits(zeros, begin, end)]
        )
    return CSC(
        csc.indptr[begin : end + 1] - first,
        csc.indices[first:last].clone(),
        csc.num_rows,
        edge_id,
        cum_weight=cum_weight,
        edge_time=None
        if csc.edge_time is None
        else csc.edge_time[first:last].clone(),
    )


def _cut_bits(words: Tensor, begin: int, end: int) -> Tensor:
    """Returns some of the bits of int64 words, as words."""
    at = torch.arange(begin, end)
    bits = words[at // 64] >> at % 64 & 1
    out = words.new_zeros(-(-len(bits) // 64) * 64)
    out[: len(bits)] = bits
    return (out.unflatten(0, (-1, 64)) << torch.arange(64)).sum(1)
