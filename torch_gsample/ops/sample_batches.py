"""Neighbour sampling of several mini-batches in one call."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _arguments
from torch_gsample.ops.sample_neighbors import Outputs, call
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

    Each sample is equal to that of :func:`sample_neighbors` for the batch. A
    GPU samples all batches of a homogeneous graph in one launch, so they share
    its overhead and its barriers.

    Args:
        graph (Graph): The graph, with weights and times if there are any.
        seeds (List[torch.Tensor or List[torch.Tensor]]): The seeds of each
            batch, as in :func:`sample_neighbors`.
        fanouts (List[int] or List[List[int]]): Number of neighbours at each
            hop, as in :func:`sample_neighbors`.
        key (torch.Tensor): int64 ``[num_batches, 3]``, one row per batch.
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
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If a sample reads a malformed part of the graph.

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
    of_types = list(zip(*starts, strict=True))
    return draw_batches(
        graph,
        list(map(torch.cat, of_types)),
        all_fanouts,
        key,
        sampling,
        None
        if seed_time is None
        else list(map(torch.cat, zip(*all_times, strict=True))),
        call_id,
        [_ptr(of_type) for of_type in of_types],
    )


def draw_batches(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    fanouts: Sequence[int],
    key: Tensor,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None = None,
    call_id: int = 0,
    seed_ptr: Sequence[Tensor] = (),
) -> list[Sample]:
    """Calls the operator, and splits its outputs.

    Arguments are those of :func:`sample_batches`, with the int64 ``seeds`` of
    all batches by node type, which begin at ``seed_ptr``, and the fan-outs of
    all relations in one list.
    """
    outputs = call(
        graph,
        seeds,
        fanouts,
        key,
        sampling,
        seed_time,
        call_id,
        seed_ptr=seed_ptr,
    )
    return _split(outputs, key.shape[0], len(seeds), len(graph.ends) // 2)


def _ptr(of_type: Sequence[Tensor]) -> Tensor:
    """Returns the start of each batch's seeds."""
    ptr = [0]
    for seeds in of_type:
        ptr.append(ptr[-1] + seeds.shape[0])
    return torch.tensor(ptr)


def _split(
    outputs: Outputs, batches: int, types: int, relations: int
) -> list[Sample]:
    """Returns the sample of each batch."""
    counts = outputs[5].view(batches, -1)
    hops = (counts.shape[1] - types) // max(types + relations, 1)
    ends = types * (hops + 1)
    num_nodes = counts[:, :ends].sum(1).tolist()
    num_edges = counts[:, ends:].sum(1).tolist()

    def parts(value: Tensor, sizes: list[int]) -> Sequence[Tensor]:
        return value.split(sizes if value.shape[0] else [0] * batches)

    row, col, edge = (parts(outputs[i], num_edges) for i in (0, 1, 3))
    node, batch = (parts(outputs[i], num_nodes) for i in (2, 4))
    return [
        Sample(
            row[b],
            col[b],
            node[b],
            edge[b],
            batch[b],
            counts[b],
            types,
            relations,
            None,
        )
        for b in range(batches)
    ]
