"""Checks of the arguments of a :class:`NeighborSampler`."""

import copy
from typing import Any

from torch_geometric.sampler import NumNeighbors

from torch_gsample.ops._check import fanouts as check_fanouts
from torch_gsample.samplers.graph_input import SamplerGraph

_CHOICES = {
    'sample_direction': ('forward', 'backward'),
    'temporal_strategy': ('uniform', 'last'),
    'exclude_seed_edges': (False, True, 'reverse'),
}


def check_choices(*values: Any) -> None:
    """Checks arguments that have some values only, in the order above.

    Raises:
        ValueError: If one has another value.
    """
    for (name, choices), value in zip(_CHOICES.items(), values, strict=True):
        if value not in choices:
            raise ValueError(
                f"NeighborSampler: '{name}' must be one of {choices} "
                f'(got {value!r})'
            )


def check_count(name: str, value: int | None) -> None:
    """Checks a number of things that may be left out.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative.
    """
    if value is None:
        return
    if not isinstance(value, int):
        raise TypeError(
            f"NeighborSampler: '{name}' must be an integer (got {value!r})"
        )
    if value < 0:
        raise ValueError(
            f"NeighborSampler: '{name}' must not be negative (got {value})"
        )


def check_window(time_window: int | None, time_attr: Any) -> None:
    """Checks the width of a time window.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is negative, or there are no times.
    """
    check_count('time_window', time_window)
    if time_window is not None and time_attr is None:
        raise ValueError(
            f"NeighborSampler: 'time_window' needs 'time_attr' "
            f'(got {time_window})'
        )


def read_fanouts(
    value: Any, graph: SamplerGraph
) -> tuple[NumNeighbors, list[list[int]]]:
    """Returns numbers of neighbours in PyG's form, and for each edge type.

    Raises:
        TypeError: If they are in no form of PyG, or no integers.
        ValueError: If they do not fit the graph, or one is less than -1.
    """
    if not isinstance(value, NumNeighbors):
        value = NumNeighbors(value)
    if not isinstance(value.values, (list, tuple, dict)):
        raise TypeError(
            "NeighborSampler: 'num_neighbors' must be a list, a "
            f'dictionary or NumNeighbors (got {value.values!r})'
        )
    if not graph.is_hetero:
        if isinstance(value.values, dict):
            raise ValueError(
                "NeighborSampler: 'num_neighbors' must be a list for a "
                'homogeneous graph (got a dictionary)'
            )
        fanouts = [value.values]
    else:
        own = copy.copy(value)
        own.__dict__.pop('_values', None)  # PyG keeps those of a graph
        by_type = own.get_values(graph.edge_types)
        fanouts = [by_type[t] for t in graph.edge_types]
    return value, [
        check_fanouts('NeighborSampler', 'num_neighbors', fanout)
        for fanout in fanouts
    ]
