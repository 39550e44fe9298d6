"""Times and weights of a sampler's graph."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler.base import DataType

from torch_gsample import ops
from torch_gsample.ops._check import node_ids
from torch_gsample.samplers.graph_input import (
    GraphData,
    SamplerGraph,
    edge_attributes,
    node_attributes,
)

#: Cumulative weights of each edge type that has weights.
EdgeWeights = dict[Any, Tensor]


@dataclass
class Times:
    """When nodes exist, and when edges can be seen.

    Args:
        given (bool): Whether sampling is temporal.
        node (Dict[NodeType, torch.Tensor]): int64 ``[num_nodes]``.
        edge (Dict[EdgeType, torch.Tensor]): int64 ``[num_edges]``, ascending
            in each column: the later one of the time of the edge and the time
            of its source.
    """

    given: bool = False
    node: dict[Any, Tensor] = field(default_factory=dict)
    edge: dict[Any, Tensor] = field(default_factory=dict)

    def of_seeds(
        self, seeds: dict[Any, Tensor], times: dict[Any, Tensor | None]
    ) -> dict[Any, Tensor] | None:
        """Returns the time of each seed: as given, or that of its node.

        Raises:
            IndexError: If a seed is not in the graph.
            ValueError: If neither is known.
        """
        if not self.given:
            return None
        out = {}
        for node_type, seed in seeds.items():
            time = times.get(node_type)
            if time is None:
                if node_type not in self.node:
                    raise ValueError(
                        "NeighborSampler: temporal sampling needs the seeds' "
                        "times ('input_time' or 'edge_label_time'), as "
                        'the seeds have no time of their own'
                    )
                known = self.node[node_type]
                node_ids('NeighborSampler', 'seeds', seed, known.numel())
                time = known[seed]
            out[node_type] = _integer('seed time', time)
        return out


def _integer(name: str, time: Tensor) -> Tensor:
    if time.is_floating_point() or time.is_complex():
        raise TypeError(
            f"NeighborSampler: '{name}' must hold integers (got {time.dtype}):"
            ' scale and round it first'
        )
    return time.to(torch.int64).cpu().contiguous()


def read_times(
    data: GraphData,
    graph: SamplerGraph,
    time_attr: str | tuple[str, str] | None,
    is_sorted: bool,
    backward: bool,
) -> Times:
    """Collects the times, and sorts the columns of ``graph`` by them.

    Raises:
        TypeError: If times are no integers.
        ValueError: If the attribute is missing, has the wrong length or, with
            ``is_sorted``, columns are not sorted by time.
    """
    times = Times()
    if time_attr is None:
        return times
    node_attr, edge_attr = (
        (time_attr, time_attr) if isinstance(time_attr, str) else time_attr
    )
    for node_type, time in node_attributes(data, graph, node_attr).items():
        size = graph.num_nodes[node_type]
        if time.numel() != size:
            raise ValueError(
                f"NeighborSampler: '{node_attr}' must have {size} elements, "
                f'one for each node (got {time.numel()})'
            )
        times.node[node_type] = _integer(node_attr, time.view(-1))
    edge_time = edge_attributes(data, graph, edge_attr)
    if not times.node and not edge_time:
        raise ValueError(
            f"NeighborSampler: the time attribute '{time_attr}' is neither a "
            f'node-level nor an edge-level attribute'
        )
    if node_attr != edge_attr and not (times.node and edge_time):
        level, name = (
            ('edge', edge_attr) if times.node else ('node', node_attr)
        )
        raise ValueError(
            f"NeighborSampler: 'time_attr' must name two attributes that "
            f"exist, but '{name}' is no {level}-level attribute"
        )
    times.given = True
    for edge_type, csc in graph.csc.items():
        source = graph.end_types(edge_type)[1 if backward else 0]
        parts = []
        if edge_type in edge_time:
            parts.append(_integer(edge_attr, edge_time[edge_type].view(-1)))
        if source in times.node:
            parts.append(times.node[source][csc.indices])
        if not parts:
            continue
        time = parts[0] if len(parts) == 1 else torch.maximum(*parts)
        _sort_by_time(graph, times, edge_type, time, is_sorted)
    return times


def _sort_by_time(
    graph: SamplerGraph,
    times: Times,
    edge_type: Any,
    time: Tensor,
    is_sorted: bool,
) -> None:
    csc = graph.csc[edge_type]
    descends = time[1:] < time[:-1]
    starts = csc.indptr[1:-1].long()
    starts = starts[(starts > 0) & (starts < csc.num_edges)]
    descends[starts - 1] = False
    if bool(descends.any()):
        if is_sorted:
            raise ValueError(
                "NeighborSampler: with 'is_sorted', edges must be sorted by "
                'time for each destination (they are not)'
            )
        graph.csc[edge_type], order = csc.sort_columns(time)
        time = time[order]
    times.edge[edge_type] = time


def read_weights(
    data: GraphData, graph: SamplerGraph, weight_attr: str | None
) -> EdgeWeights:
    """Collects the weights of edges, cumulated along each column.

    Raises:
        NotImplementedError: If a feature store does not have the attribute;
            PyG knows no weights of stores, and raises the same.
        ValueError: If the attribute is missing, has the wrong length, or
            holds negative or infinite numbers.
    """
    if weight_attr is None:
        return {}
    weights = edge_attributes(data, graph, weight_attr)
    if not weights and graph.data_type == DataType.remote:
        raise NotImplementedError(
            f"NeighborSampler: 'weight_attr' must name an edge-level tensor "
            f'of the feature store (got {weight_attr!r})'
        )
    if not weights:
        raise ValueError(
            f"NeighborSampler: the weight attribute '{weight_attr}' is no "
            f'edge-level attribute'
        )
    return {
        edge_type: ops.cumulate_weights(
            graph.csc[edge_type].indptr, weight.cpu().view(-1), weight_attr
        )
        for edge_type, weight in weights.items()
    }
