"""Neighbour sampling of several mini-batches in one call."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _arguments
from torch_gsample.ops.sample_neighbors import call
from torch_gsample.ops.sampling import OP, PreparedGraph, Sample, Sampling

_DEFAULT = Sampling()


def sample_batches(
    graph: PreparedGraph,
    seeds: Sequence[Any],
    fanouts: Sequence[Any],
    key: Tensor,
    *,
    call_id: int = 0,
    sampling: Sampling = _DEFAULT,
    seed_time: Sequence[Any] | None = None,
) -> list[Sample]:
    r"""Samples in-neighbours of several batches of seeds.

    Each sample is that of :func:`sample_neighbors` with the batch alone. A GPU
    samples all batches of a homogeneous graph in one launch, so that they
    share its barriers and the time that a launch takes.

    Args:
        graph (Graph): The graph, with weights and times if there are any.
        seeds (List[torch.Tensor or List[torch.Tensor]]): The seeds of each
            batch, as :func:`sample_neighbors` takes them.
        fanouts (List[int] or List[List[int]]): Neighbours to sample at each
            hop, as of :func:`sample_neighbors`.
        key (torch.Tensor): int64 ``[num_batches, 3]``, a row for each batch.
        call_id (int, optional): Id of the draw in a program.
        sampling (Sampling, optional): The options.
        seed_time (List[torch.Tensor or List[torch.Tensor]], optional): The
            times of ``seeds``.

    Returns:
        List[Sample]: The sample of each batch. The tensors of all batches
        share their memory.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If an argument has the wrong type or dtype.
        ValueError: If an argument breaks a rule that is named.
        RuntimeError: If the graph is malformed where a sample read it.

    Example:
        >>> from torch_gsample import Graph
        >>> from torch_gsample.rng import make_key
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> seeds = [torch.tensor([0]), torch.tensor([2, 1])]
        >>> keys = torch.cat([make_key(0, batch=b) for b in range(2)])
        >>> first, second = sample_batches(graph, seeds, [-1], keys)
        >>> first.node, second.node
        (tensor([0, 1, 2]), tensor([2, 1]))
    """
    if seed_time is not None and len(seed_time) != len(seeds):
        raise ValueError(
            f"{OP}: 'seed_time' must have one item for each of {len(seeds)} "
            f'batches (got {len(seed_time)})'
        )
    if len(seeds) == 0:
        return []
    times: Any = [None] * len(seeds) if seed_time is None else seed_time
    starts, all_times = [], []
    for of_batch, time in zip(seeds, times, strict=True):
        start, all_fanouts, of_seeds = _arguments.read(
            OP, graph, of_batch, fanouts, time
        )
        starts.append(start)
        all_times.append(of_seeds)
    return draw_batches(
        graph,
        starts,
        all_fanouts,
        key,
        sampling,
        None if seed_time is None else all_times,
        call_id,
    )


def draw_batches(
    graph: PreparedGraph,
    seeds: Sequence[Sequence[Tensor]],
    fanouts: Sequence[int],
    key: Tensor,
    sampling: Sampling,
    seed_time: Sequence[Sequence[Tensor]] | None = None,
    call_id: int = 0,
) -> list[Sample]:
    """Calls the operator, and takes its outputs apart.

    Args are those of :func:`sample_batches`, with int64 ``seeds`` of each
    batch and node type, and the fan-outs of all relations in one list.
    """
    by_type = list(zip(*seeds, strict=True))
    outputs = call(
        graph,
        [torch.cat(of_type) for of_type in by_type],
        fanouts,
        key,
        sampling,
        None
        if seed_time is None
        else [torch.cat(t) for t in zip(*seed_time, strict=True)],
        call_id,
        seed_ptr=[_ptr(of_type) for of_type in by_type],
    )
    return _split(outputs, len(seeds), len(by_type), len(graph.ends) // 2)


def _ptr(of_type: Sequence[Tensor]) -> Tensor:
    """Where the seeds of each batch begin."""
    ptr = [0]
    for seeds in of_type:
        ptr.append(ptr[-1] + seeds.shape[0])
    return torch.tensor(ptr)


def _split(
    outputs: tuple[Tensor, ...], batches: int, types: int, relations: int
) -> list[Sample]:
    """The outputs of each batch."""
    row, col, node, edge, batch, counts = outputs
    counts = counts.view(batches, -1)
    hops = (counts.shape[1] - types) // max(types + relations, 1)
    ends = types * (hops + 1)
    num_nodes = counts[:, :ends].sum(1).tolist()
    num_edges = counts[:, ends:].sum(1).tolist()
    sizes = num_edges, num_edges, num_nodes, num_edges, num_nodes
    parts = (
        value.split(size if value.shape[0] else [0] * batches)
        for value, size in zip(
            (row, col, node, edge, batch), sizes, strict=True
        )
    )
    return [
        Sample(*of_batch, count, types, relations, None)
        for *of_batch, count in zip(*parts, counts, strict=True)
    ]
