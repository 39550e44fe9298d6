"""Checks the seeds of loaders, before PyG's classes read them.

A graph, its sampler and a user's seeds come in; seeds in a form of PyG's
loaders go out. Errors are raised here instead of at the first batch.
"""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from torch_gsample.graph_input import type_of_data
from torch_gsample.graph_types import GraphTypes
from torch_gsample.ops import _check
from torch_gsample.samplers.neighbor.node_wise import NeighborSampler
from torch_gsample.samplers.seeds import read_nodes


def node_seeds(
    name: str,
    data: Any,
    sampler: Any,
    input_nodes: Any,
    input_time: Any = None,
    input_id: Any = None,
    needs_times: bool = True,
) -> Any:
    """Checks the seeds of a node loader.

    Args:
        name (str): The loader, for errors.
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        sampler (BaseSampler): Its sampler.
        input_nodes (Any): The seeds, in one of PyG's forms.
        input_time (torch.Tensor, optional): Their times.
        input_id (torch.Tensor, optional): Their ids.
        needs_times (bool, optional): Whether missing times of seeds raise an
            error here; otherwise their batch raises it.

    Returns:
        Any: The seeds, in one of PyG's forms.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.
    """
    node_type, nodes = None, input_nodes
    if not _is_homogeneous(name, data):
        node_type, nodes = _typed_nodes(name, data, input_nodes)
    size = _num_nodes(name, 'input_nodes', data, sampler, node_type)
    count = size
    if nodes is not None:
        nodes = read_nodes(name, 'input_nodes', nodes, size)
        is_mask = nodes.dtype == torch.bool
        count = int(nodes.sum()) if is_mask else nodes.numel()
    if needs_times or input_time is not None:
        types = [node_type]
        _check_times(name, 'input_time', sampler, types, input_time, count)
    _check_length(name, 'input_id', input_id, count)
    if node_type is None:
        return nodes
    return node_type if nodes is None else (node_type, nodes)


def link_seeds(
    name: str,
    data: Any,
    sampler: Any,
    edge_label_index: Any,
    edge_label: Any = None,
    edge_label_time: Any = None,
    input_id: Any = None,
) -> None:
    """Checks the seed edges of a link loader.

    Args:
        name (str): The loader, for errors.
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
        sampler (BaseSampler): Its sampler.
        edge_label_index (Any): The seed edges, in one of PyG's forms.
        edge_label (torch.Tensor, optional): Their labels.
        edge_label_time (torch.Tensor, optional): Their times.
        input_id (torch.Tensor, optional): Their ids.

    Raises:
        IndexError: If an end of an edge is not in the graph.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.
    """
    argument = 'edge_label_index'
    edge_type, index = None, edge_label_index
    if not _is_homogeneous(name, data):
        edge_type, index = _typed_edges(name, data, edge_label_index)
    if index is None:
        index = _all_edges(name, data, sampler, edge_type)
    ends = [None] * 2 if edge_type is None else [edge_type[0], edge_type[-1]]
    sizes = [_num_nodes(name, argument, data, sampler, t) for t in ends]
    count = None
    if index is not None:
        if not isinstance(index, Tensor):
            raise TypeError(
                f"{name}: '{argument}' must be a tensor (got {_shown(index)})"
            )
        if index.dim() != 2 or index.size(0) != 2:
            raise ValueError(
                f"{name}: '{argument}' must have shape [2, num_edges] (got "
                f'{list(index.shape)})'
            )
        count = index.size(1)
        for nodes, size in zip(index.cpu(), sizes, strict=True):
            ids = _check.integer_vector(name, argument, nodes)
            if size is not None:
                _check.in_range(name, argument, ids, size)
    _check_length(name, 'edge_label', edge_label, count)
    _check_times(
        name, 'edge_label_time', sampler, ends, edge_label_time, count
    )
    _check_length(name, 'input_id', input_id, count)


def _is_homogeneous(name: str, data: Any) -> bool:
    """Whether the data has no types for sure; stores may have some."""
    if not isinstance(data, (Data, HeteroData)) and not _is_pair(data):
        type_of_data(name, data)  # raises an error with the valid types
    return isinstance(data, Data)


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2


def _typed_nodes(name: str, data: Any, value: Any) -> tuple[Any, Any]:
    """Returns the node type of seeds, and the seeds (None for all)."""
    stores = not isinstance(data, HeteroData)
    if isinstance(value, str):
        return value, None
    if stores and isinstance(value, Tensor):
        return None, value
    if _is_pair(value) and isinstance(value[0], str):
        return value[0], value[1]
    kind = ValueError if value is None else TypeError
    also = ', or a tensor of nodes without types' if stores else ''
    raise kind(
        f"{name}: 'input_nodes' must be a node type or a pair (node type, "
        f'nodes){also} (got {_shown(value)})'
    )


def _typed_edges(name: str, data: Any, value: Any) -> tuple[Any, Any]:
    """Returns the edge type of seed edges, and the edges (None for all)."""
    edge_type, index = value, None
    if _is_pair(value) and not isinstance(value[0], str):
        edge_type, index = value
    hetero = isinstance(data, HeteroData)
    if edge_type is None and index is not None and not hetero:
        return None, index  # from stores without types
    if _is_edge_type(edge_type):
        canonical = data._to_canonical(*edge_type) if hetero else edge_type
        return tuple(canonical), index
    kind = ValueError if value is None else TypeError
    raise kind(
        f"{name}: 'edge_label_index' must be an edge type or a pair (edge "
        f'type, edges of shape [2, num_edges]) (got {_shown(value)})'
    )


def _is_edge_type(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) in (2, 3)
        and all(isinstance(part, str) for part in value)
    )


def _all_edges(name: str, data: Any, sampler: Any, edge_type: Any) -> Any:
    """Returns the edges of a type, or None if only a store knows them."""
    if isinstance(data, Data):
        if data.edge_index is None:
            raise ValueError(
                f"{name}: 'edge_label_index' is required if 'data' has no "
                f"'edge_index' (got None)"
            )
        return data.edge_index
    known = None
    if isinstance(data, HeteroData):
        known = data.edge_types
    elif isinstance(getattr(sampler, 'graph', None), GraphTypes):
        known = list(sampler.graph.edge_types)
    if known is not None and edge_type not in known:
        raise ValueError(
            f"{name}: 'edge_label_index' must be an edge type of the graph, "
            f'{known} (got {edge_type})'
        )
    return data[edge_type].edge_index if isinstance(data, HeteroData) else None


def _num_nodes(
    name: str, argument: str, data: Any, sampler: Any, node_type: Any
) -> int | None:
    """Returns the number of nodes of a type, if it is known."""
    graph = getattr(sampler, 'graph', None)
    sizes: Any
    if isinstance(graph, GraphTypes):
        sizes = graph.counts
    elif isinstance(data, Data):
        return data.num_nodes
    elif isinstance(data, HeteroData):
        sizes = dict.fromkeys(data.node_types)
    else:
        return None
    if node_type not in sizes:
        raise ValueError(
            f"{name}: '{argument}' must be of a node type of the graph, "
            f'{list(sizes)} (got {node_type!r})'
        )
    if isinstance(graph, GraphTypes):
        return sizes[node_type]
    return data[node_type].num_nodes


def _check_times(
    name: str,
    argument: str,
    sampler: Any,
    node_types: list[Any],
    time: Any,
    count: int | None,
) -> None:
    _check_length(name, argument, time, count)
    if not isinstance(sampler, NeighborSampler):
        return
    if time is None:
        missing = [t for t in node_types if not sampler.knows_time(t)]
        if missing:
            raise ValueError(
                f"{name}: '{argument}' is required in temporal sampling, as "
                f'the seeds have no times (got None)'
            )
        return
    if not sampler.is_temporal:
        raise ValueError(
            f"{name}: '{argument}' needs 'time_attr' or a 'sampler' with times"
        )
    if time.is_floating_point() or time.is_complex():
        raise TypeError(
            f"{name}: '{argument}' must hold integers (got {time.dtype}): "
            'scale and round it first'
        )
    if time.dim() != 1:
        raise ValueError(
            f"{name}: '{argument}' must be a vector (got shape "
            f'{list(time.shape)})'
        )


def _check_length(
    name: str, argument: str, value: Any, count: int | None
) -> None:
    if value is None:
        return
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: '{argument}' must be a tensor (got {_shown(value)})"
        )
    if value.dim() == 0 or (count is not None and value.size(0) != count):
        raise ValueError(
            f"{name}: '{argument}' must have {count} elements, one for each "
            f'seed (got shape {list(value.shape)})'
        )


def _shown(value: Any) -> str:
    """Returns a value for an error: of long ones only the type."""
    short = value is None or isinstance(value, (int, float, str))
    return repr(value) if short else type(value).__name__
