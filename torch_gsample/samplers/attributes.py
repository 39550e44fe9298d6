"""Times and weights of a sampler's graph."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.sampler.base import DataType

from torch_gsample.graph import Graph
from torch_gsample.graph_input import (
    GraphData,
    edge_attributes,
    node_attributes,
)
from torch_gsample.ops._check import check_tensor, node_ids


@dataclass
class Times:
    """Times of nodes.

    Args:
        given (bool): Whether sampling is temporal.
        node (Dict[NodeType, torch.Tensor]): int64 ``[num_nodes]``.
        edge_attr (str, optional): The attribute with times of edges.
    """

    given: bool = False
    node: dict[Any, Tensor] = field(default_factory=dict)
    edge_attr: str | None = None

    def of_seeds(
        self, seeds: dict[Any, Tensor], times: dict[Any, Tensor | None]
    ) -> dict[Any, Tensor] | None:
        """Returns the time of each seed: its own, or that of its node.

        Raises:
            IndexError: If a seed is not in the graph.
            ValueError: If a seed has neither.
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
                        "times ('input_time' or 'edge_label_time'), "
                        'as seeds have no default time'
                    )
                known = self.node[node_type]
                node_ids('NeighborSampler', 'seeds', seed, known.numel())
                time = known[seed]
            out[node_type] = _integer('seed time', time)
        return out

    def share_memory_(self) -> None:
        """Moves the tensors to shared memory."""
        for time in self.node.values():
            time.share_memory_()


def _integer(name: str, time: Tensor) -> Tensor:
    if time.is_floating_point() or time.is_complex():
        raise TypeError(
            f"NeighborSampler: '{name}' must hold integers (got {time.dtype}):"
            ' scale and round it first'
        )
    return time.to(torch.int64).cpu().contiguous()


def read_times(
    data: GraphData,
    graph: Graph,
    time_attr: str | tuple[str, str] | None,
    is_sorted: bool,
) -> tuple[Times, Graph]:
    """Returns the times of nodes, and the graph with the times of edges.

    Raises:
        TypeError: If times are not integers.
        ValueError: If the attribute is missing, has the wrong length or, with
            ``is_sorted``, columns are not sorted by time.
    """
    times = Times()
    if time_attr is None:
        return times, graph
    pair = (time_attr, time_attr) if isinstance(time_attr, str) else time_attr
    if not isinstance(pair, (tuple, list)) or [*map(type, pair)] != [str, str]:
        raise TypeError(
            "NeighborSampler: 'time_attr' must be the name of an attribute, "
            'or those of nodes and of edges (got '
            f'{type(time_attr).__name__})'
        )
    node_attr, edge_attr = pair
    for node_type, time in node_attributes(data, graph, node_attr).items():
        check_tensor('NeighborSampler', node_attr, time)
        size = graph.counts[node_type]
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
            ('an edge', edge_attr) if times.node else ('a node', node_attr)
        )
        raise ValueError(
            "NeighborSampler: 'time_attr' must name two existing "
            f"attributes, but '{name}' is not {level}-level attribute"
        )
    times.given = True
    times.edge_attr = edge_attr if edge_time else None
    edge_times = {
        t: _integer(edge_attr, time.view(-1)) for t, time in edge_time.items()
    }
    return times, graph.with_times(
        edge_times, times.node, is_sorted=is_sorted, name='NeighborSampler'
    )


def read_weights(
    data: GraphData, graph: Graph, weight_attr: str | None
) -> Graph:
    """Returns the graph with the weights of edges.

    Raises:
        NotImplementedError: If a feature store has no such attribute. PyG
            raises the same error, as it reads no weights from stores.
        ValueError: If the attribute is missing, has the wrong length, or
            holds negative or infinite numbers.
    """
    if weight_attr is None:
        return graph
    weights = edge_attributes(data, graph, weight_attr)
    if not weights and DataType.from_data(data) == DataType.remote:
        raise NotImplementedError(
            f"NeighborSampler: 'weight_attr' must name an edge-level tensor "
            f'of the feature store (got {weight_attr!r})'
        )
    if not weights:
        raise ValueError(
            f"NeighborSampler: the weight attribute '{weight_attr}' is "
            f'not an edge-level attribute'
        )
    columns = {t: weight.cpu().view(-1) for t, weight in weights.items()}
    return graph.with_weights(columns, weight_attr, 'NeighborSampler')
