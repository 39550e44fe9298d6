"""Checks of the arguments of a :class:`NeighborSampler`."""

import copy
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.sampler import NumNeighbors
from torch_geometric.sampler.base import SubgraphType

from torch_gsample.graph_input import check_edges
from torch_gsample.graph_types import GraphTypes
from torch_gsample.ops import _check

_CHOICES = {
    'sample_direction': ('forward', 'backward'),
    'temporal_strategy': ('uniform', 'last'),
    'exclude_seed_edges': (False, True, 'reverse'),
}


def check_choices(*values: Any) -> None:
    """Checks arguments with a fixed set of values, in the order above.

    Raises:
        ValueError: If an argument has another value.
    """
    for (name, choices), value in zip(_CHOICES.items(), values, strict=True):
        if value not in choices:
            raise ValueError(
                f"NeighborSampler: '{name}' must be one of {choices} "
                f'(got {value!r})'
            )


def checked_order(order: Any, subgraph_type: SubgraphType) -> Any:
    """Returns the order of a node's sampled edges after checks.

    Raises:
        ValueError: If it is unknown, or if it is ``'random'`` and the
            subgraph has edges that were not sampled.
    """
    if order not in ('slot', 'random'):
        raise ValueError(
            f"NeighborSampler: 'order' must be 'slot' or 'random' (got "
            f'{order!r})'
        )
    if order == 'random' and subgraph_type != SubgraphType.directional:
        raise ValueError(
            "NeighborSampler: order='random' needs "
            f"subgraph_type='directional' (got {subgraph_type.value!r})"
        )
    return order


def flag(op: str, name: str, value: Any) -> bool:
    """Returns a boolean, for which 0 and 1 are accepted, too.

    Raises:
        TypeError: If the value is anything else. Any list with elements would
            count as true.
    """
    boolean = isinstance(value, (bool, np.bool_))
    if not boolean and (type(value) is not int or value not in (0, 1)):
        raise TypeError(
            f"{op}: '{name}' must be True or False (got {value!r})"
        )
    return bool(value)


def check_flags(op: str, **flags: Any) -> None:
    """Checks boolean arguments.

    Raises:
        TypeError: If one is not a boolean.
    """
    for name, value in flags.items():
        flag(op, name, value)


def by_type(
    seed: Any, seed_time: Any = None
) -> tuple[dict[Any, Tensor], dict[Any, Tensor | None]]:
    """Returns seeds and their times by node type.

    Args:
        seed (torch.Tensor or Dict[NodeType, torch.Tensor]): The seeds.
        seed_time (torch.Tensor or Dict, optional): Their times.
    """
    seeds = seed if isinstance(seed, dict) else {None: seed}
    # PyG turns an empty list of seeds into float32.
    seeds = {t: s if s.numel() else s.long() for t, s in seeds.items()}
    if not isinstance(seed_time, dict):
        seed_time = {None: seed_time}
    return seeds, {t: seed_time.get(t) for t in seeds}


def checked_seeds(seeds: Any) -> Any:
    """Returns seeds after a check: a tensor, or a tensor for each node type.

    Raises:
        TypeError: If the seeds are anything else.
    """
    for seed in seeds.values() if isinstance(seeds, dict) else [seeds]:
        if not isinstance(seed, Tensor):
            raise TypeError(
                "NeighborSampler: 'seeds' must be a tensor, or a dictionary "
                f'of tensors by node type (got {type(seed).__name__})'
            )
    return seeds


def check_inputs(owner: object, inputs: Any) -> None:
    """Checks the argument of ``sample_from_nodes``.

    Raises:
        TypeError: If it holds no nodes, such as a plain tensor.
    """
    if not hasattr(inputs, 'node'):
        raise TypeError(
            f"{type(owner).__name__}: 'inputs' must be a "
            f'NodeSamplerInput(None, seeds) (got {type(inputs).__name__})'
        )


def check_count(
    name: str, value: int | None, op: str = 'NeighborSampler'
) -> None:
    """Checks an optional count.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is negative.
    """
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{op}: '{name}' must be an integer (got {value!r})")
    if value < 0:
        raise ValueError(f"{op}: '{name}' must not be negative (got {value})")


def check_window(time_window: int | None, time_attr: Any) -> None:
    """Checks the width of a time window, which needs times.

    Raises:
        TypeError: If it is not an integer.
        ValueError: If it is negative, or the graph has no times.
    """
    check_count('time_window', time_window)
    if time_window is not None and time_attr is None:
        raise ValueError(
            f"NeighborSampler: 'time_window' needs 'time_attr' "
            f'(got {time_window})'
        )


def read_fanouts(
    value: Any, graph: GraphTypes, has_edges: bool = True
) -> tuple[NumNeighbors, list[list[int]]]:
    """Returns fan-outs in PyG's form, and those of each edge type.

    Raises:
        TypeError: If they are not in one of PyG's forms, or not integers.
        ValueError: If they do not fit the graph, or one is below -1.
    """
    if isinstance(value, dict):
        _check_edge_types(value, graph)
    if not isinstance(value, NumNeighbors):
        value = NumNeighbors(value)
    if not isinstance(value.values, (list, tuple, dict)):
        raise TypeError(
            "NeighborSampler: 'num_neighbors' must be a list, a "
            f'dictionary or NumNeighbors (got {value.values!r})'
        )
    _check_hops(value, has_edges)
    if not graph.is_hetero:
        if isinstance(value.values, dict):
            raise ValueError(
                "NeighborSampler: 'num_neighbors' must be a list for a "
                'homogeneous graph (got a dictionary)'
            )
        fanouts = [value.values]
    else:
        own = copy.copy(value)
        own.__dict__.pop('_values', None)  # PyG caches those of one graph
        by_type = _values_by_type(own, list(graph.edge_types))
        fanouts = [by_type[t] for t in graph.edge_types]
    return value, [
        _check.fanouts('NeighborSampler', 'num_neighbors', fanout)
        for fanout in fanouts
    ]


def _values_by_type(
    value: NumNeighbors, edge_types: list[Any]
) -> dict[Any, Any]:
    """Returns the fan-outs of each edge type, with errors of this package."""
    lists: Any = value.values
    if isinstance(lists, dict):
        missing = [t for t in edge_types if '__'.join(t) not in lists]
        if missing and value.default is None:
            raise ValueError(
                "NeighborSampler: 'num_neighbors' must have fan-outs for each "
                f'edge type, or a default: NumNeighbors(..., default=[...]) '
                f'(missing {", ".join(map(str, missing))})'
            )
        hops = {t: len(fanouts) for t, fanouts in lists.items()}
        if missing:
            hops['default'] = len(value.default or ())
        if len({*hops.values()}) > 1:
            # With words of PyG's error.
            raise ValueError(
                'NeighborSampler: the number of hops must be the same across '
                f"all edge types of 'num_neighbors' (got {hops})"
            )
    out: Any = value.get_values(edge_types)
    return out


def _check_edge_types(values: dict[Any, Any], graph: GraphTypes) -> None:
    """Checks that the keys of fan-outs are edge types of the graph."""
    if not graph.is_hetero:
        raise ValueError(
            "NeighborSampler: 'num_neighbors' must be a list for a "
            'homogeneous graph (got a dictionary)'
        )
    for edge_type in values:
        known = edge_type
        if isinstance(edge_type, str):  # the form of PyG's files
            known = tuple(edge_type.split('__'))
        if known not in graph.edge_types:
            raise ValueError(
                "NeighborSampler: 'num_neighbors' must have edge types of "
                f'the graph, {list(graph.edge_types)} (got {edge_type!r})'
            )


def checked_subgraph_type(value: Any, directed: bool) -> SubgraphType:
    """Returns the subgraph type as PyG's enumeration.

    Raises:
        ValueError: If it is unknown.
    """
    try:
        return SubgraphType(value if directed else 'induced')
    except ValueError as error:
        known = [item.value for item in SubgraphType]
        raise ValueError(
            f"NeighborSampler: 'subgraph_type' must be one of {known} (got "
            f'{value!r})'
        ) from error


def _check_hops(value: NumNeighbors, has_edges: bool) -> None:
    """Checks that a graph with edges has hops, and one without has none."""
    lists = value.values
    if isinstance(lists, dict):
        lists = [*lists.values(), value.default or []]
        for fanouts in lists:
            if not isinstance(fanouts, (list, tuple)):
                raise TypeError(
                    "NeighborSampler: 'num_neighbors' must have a list for "
                    f'each edge type (got {fanouts!r})'
                )
    if value.num_hops > 0:
        check_edges('NeighborSampler', has_edges)
    elif has_edges:
        raise ValueError(
            "NeighborSampler: 'num_neighbors' must have a number for each "
            f'hop, and at least one (got {value.values!r})'
        )
