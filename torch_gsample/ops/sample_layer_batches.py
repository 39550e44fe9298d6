"""Layers of several mini-batches in one call."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _arguments
from torch_gsample.ops.sample_layers import OP, Layers, by_hop, call
from torch_gsample.ops.sampling import PreparedGraph, Sampling

_DEFAULT = Sampling()


def sample_layer_batches(
    graph: PreparedGraph,
    seeds: Sequence[Any],
    fanouts: Sequence[Any],
    key: Sequence[Tensor],
    *,
    call_id: Sequence[int] | None = None,
    frontier: str = 'nodes',
    sorted: bool = False,
    sampling: Sampling = _DEFAULT,
    return_frontier: bool = False,
) -> list[Layers]:
    """Samples layers of several batches of seeds.

    Each item is equal to the result of :func:`sample_layers` for the batch. A
    GPU samples all batches in one launch, so they share its overhead and its
    barriers.

    Args:
        graph (Graph): The graph, with weights if there are any.
        seeds (List[torch.Tensor or List[torch.Tensor]]): The seeds of each
            batch, as in :func:`sample_layers`.
        fanouts (List[int] or List[List[int]]): Number of edges per column at
            each hop, as in :func:`sample_layers`.
        key (List[torch.Tensor]): As in :func:`sample_layers`, but int64
            ``[num_batches, 3]``, one row per batch.
        call_id (List[int], optional): As in :func:`sample_layers`.
        frontier (str, optional): As in :func:`sample_layers`; ``'row'`` or
            ``'nodes'`` on a GPU.
        sorted (bool, optional): As in :func:`sample_layers`; on a CPU only.
        sampling (Sampling, optional): The options, without trees.
        return_frontier (bool, optional): As in :func:`sample_layers`.

    Returns:
        List[Layers]: The layers of each batch.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor or number has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If a sample reads a malformed part of the graph.

    Example:
        >>> from torch_gsample import Graph
        >>> from torch_gsample.rng import make_key
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> seeds = [torch.tensor([0]), torch.tensor([2, 1])]
        >>> key = [torch.cat([make_key(0, batch=b) for b in range(2)])]
        >>> first, second = sample_layer_batches(graph, seeds, [-1], key)
        >>> first.row[0].tolist(), second.row[0].tolist()
        ([1, 2], [2])
    """
    if sampling.disjoint:
        raise ValueError(
            f"{OP}: 'disjoint' must be False for several batches (got True)"
        )
    if len(seeds) == 0:
        return []
    starts = []
    for of_batch in seeds:
        start, counts, _ = _arguments.read(OP, graph, of_batch, fanouts, None)
        starts.append(start)
    of_types = list(zip(*starts, strict=True))
    begins = [_begins([s.shape[0] for s in of_type]) for of_type in of_types]
    out = call(
        graph,
        list(map(torch.cat, of_types)),
        counts,
        key,
        call_id,
        frontier,
        sorted,
        sampling,
        None,
        return_frontier,
        [p.to(of[0].device) for p, of in zip(begins, of_types, strict=True)],
    )
    layers = _split(graph, out, begins, len(seeds))
    if isinstance(seeds[0], Tensor):
        return layers
    return [by_hop(graph, of_batch) for of_batch in layers]


def _begins(sizes: Sequence[int]) -> Tensor:
    """Returns the start of each batch, and the end of the last one."""
    return torch.tensor([0, *sizes]).cumsum(0)


def _split(
    graph: PreparedGraph, out: Layers, begins: list[Tensor], batches: int
) -> list[Layers]:
    """The layers of each batch."""
    relations, types = len(graph.columns), len(begins)
    columns = [*begins, *out.batch]  # of hop after hop, type after type
    edges = []
    for i, indptr in enumerate(out.indptr):
        hop, r = divmod(i, relations)
        of_type = columns[hop * types + graph.ends[2 * r + 1]]
        edges.append(indptr[of_type.to(indptr.device)].long())
    everything = [*(c.to(out.row[0].device) for c in columns), *edges]
    ends = torch.stack(everything).tolist() if edges else []
    of_columns, of_edges = ends[: len(columns)], ends[len(columns) :]
    layers = [Layers([], [], [], [], []) for _ in range(batches)]
    for i, indptr in enumerate(out.indptr):
        hop, r = divmod(i, relations)
        column = of_columns[hop * types + graph.ends[2 * r + 1]]
        for b, layer in enumerate(layers):
            part = slice(of_edges[i][b], of_edges[i][b + 1])
            pointers = indptr[column[b] : column[b + 1] + 1]
            layer.indptr.append(pointers - part.start)
            layer.row.append(out.row[i][part])
            layer.edge.append(out.edge[i][part])
    for node, column in zip(out.node, of_columns[types:], strict=True):
        for b, layer in enumerate(layers):
            layer.node.append(node[column[b] : column[b + 1]])
    return layers
