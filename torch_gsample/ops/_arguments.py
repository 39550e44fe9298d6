"""The graph and seeds of the operators that sample hop by hop."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops.sampling import PreparedGraph, Sampling


def read(
    op: str, graph: PreparedGraph, seeds: Any, fanouts: Any, seed_time: Any
) -> tuple[Any, Any, Any]:
    """Returns seeds, fan-outs and times as lists for the operator.

    Raises:
        TypeError: If a tensor does not hold integers, or ``graph`` is not a
            graph.
        ValueError: If there is a single item for a graph with types, or the
            numbers of hops differ.
    """
    if not hasattr(graph, 'ends'):
        raise TypeError(
            f"{op}: 'graph' must be a Graph, as returned by as_graph() (got "
            f'{type(graph).__name__})'
        )
    if not isinstance(seeds, Tensor):
        seeds = [vector(op, 'seeds', value) for value in seeds]
        fanouts = _joined(op, len(graph.ends) // 2, fanouts)
        fanouts = _check.fanouts(op, 'fanouts', fanouts)
        if seed_time is not None:
            seed_time = [vector(op, 'seed_time', t) for t in seed_time]
        return seeds, fanouts, seed_time
    if len(graph.ends) != 2:
        raise ValueError(
            f"{op}: 'seeds' and 'fanouts' must have one item for each node "
            'type and relation of a graph that is not homogeneous'
        )
    if seed_time is not None:
        seed_time = (vector(op, 'seed_time', seed_time),)
    fanouts = _check.fanouts(op, 'fanouts', fanouts)
    return (vector(op, 'seeds', seeds),), fanouts, seed_time


def vector(op: str, name: str, value: Any) -> Tensor:
    """Returns a vector as int64; the operator checks its range."""
    if (
        isinstance(value, Tensor)
        and value.dtype == torch.int64
        and value.is_contiguous()
    ):
        return value
    device = value.device if isinstance(value, Tensor) else _check.CPU
    return _check.as_int64(_check.integer_vector(op, name, value, device))


def _joined(op: str, num_relations: int, fanouts: Any) -> list[int]:
    fanouts = list(map(tuple, fanouts))
    hops = {len(of_relation) for of_relation in fanouts}
    if len(fanouts) != num_relations or len(hops) > 1:
        raise ValueError(
            f"{op}: 'fanouts' must have the same number of hops for each of "
            f'{num_relations} relations (got {[*map(list, fanouts)]})'
        )
    return [fanout for of_relation in fanouts for fanout in of_relation]


def check(
    op: str,
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None,
) -> torch.device:
    """Finds the invalid argument of a failed call; returns the device.

    Raises:
        TypeError: If a tensor or number has the wrong type.
        ValueError: If a length or device is wrong.
    """
    if graph.is_temporal != (seed_time is not None):
        raise ValueError(
            f"{op}: 'seed_time' must be given if, and only if, the graph has "
            f'times'
        )
    if seed_time is not None and not sampling.disjoint:
        raise ValueError(f"{op}: temporal sampling needs 'disjoint=True'")
    device = sampling_device(op, graph, seeds)
    types = len(graph.num_nodes)
    for name, values in (('seeds', seeds), ('seed_time', seed_time)):
        if values is not None and len(values) != types:
            raise ValueError(
                f"{op}: '{name}' must have one item for each of {types} node "
                f'types (got {len(values)})'
            )
        for value in values or ():
            _check.integer_vector(op, name, value, device)
    if seed_time is not None:
        for seed, time in zip(seeds, seed_time, strict=True):
            _check.int64_vector(op, 'seed_time', time, seed.numel(), device)
    for columns in graph.columns:
        _check.graph(op, columns.indptr, columns.indices, device)
    return device


def sampling_device(
    op: str, graph: PreparedGraph, seeds: Sequence[Tensor]
) -> torch.device:
    """Returns the sampling device: a GPU if the graph or seeds are on it."""
    return _check.sampling_device(
        op,
        graph.columns[0].indptr if graph.columns else None,
        seeds[0] if len(seeds) else None,
    )
