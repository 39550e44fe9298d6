"""Multi-hop neighbour sampling in graphs with any node and edge types."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample.ops import _arguments, _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.sampling import OP, PreparedGraph, Sample, Sampling

#: row, col, node, edge, batch and counts.
Outputs: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]

_DEFAULT = Sampling()


def sample_neighbors(
    graph: PreparedGraph,
    seeds: Tensor | Sequence[Tensor],
    fanouts: Sequence[Any],
    key: Tensor,
    *,
    call_id: int = 0,
    sampling: Sampling = _DEFAULT,
    seed_time: Tensor | Sequence[Tensor] | None = None,
    max_edges: Sequence[int] | None = None,
) -> Sample:
    r"""Samples in-neighbours of ``seeds`` hop by hop.

    A node is sampled at the first hop that visits it (Hamilton et al.,
    `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_). At each hop, relations are sampled
    in their order. Local ids of a type follow the order of first occurrence:
    seeds, then hop by hop by relation, frontier and slot. The result is a pure
    function of the arguments; it does not depend on ``num_threads`` or the
    dtype of the graph.

    Weighted sampling is successive: each draw takes an edge with probability
    proportional to its weight among those that remain. Edges of weight 0 are
    never selected, for any fan-out.

    Temporal sampling restricts a column to the edges of
    ``[seed_time - time_window, seed_time]``.

    With ``seeds`` on a GPU, the GPU draws the same sample and returns only the
    counts to the CPU. The graph must be on the GPU as well, or in pinned
    memory.

    With ``max_edges``, the sizes of outputs do not depend on the sample: a
    relation has ``max_edges`` edges, and a type has one node for each seed and
    each edge from it (at most the nodes of the type, unless trees are
    disjoint). On a GPU, the call does not wait for such a sample, so a CUDA
    graph can capture it; ``key`` may be on the GPU, where each replay reads
    it. After a fault the sample is empty, and :meth:`Sample.check` raises an
    error.

    Args:
        graph (Graph): The graph, with weights and times if there are any.
        seeds (torch.Tensor or List[torch.Tensor]): int32 or int64
            ``[num_seeds]``, a tensor for each node type unless the graph is
            homogeneous. Duplicates have separate local ids.
        fanouts (List[int] or List[List[int]]): Number of neighbours at each
            hop, -1 for all; a list for each relation unless the graph is
            homogeneous.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program; hop ``h`` uses
            ``call_id + h``.
        sampling (Sampling, optional): The options.
        seed_time (torch.Tensor or List[torch.Tensor], optional): int64, as
            ``seeds``; required if and only if the graph has times.
        max_edges (List[int], optional): Maximum number of edges of each
            relation.

    Returns:
        Sample: All tensors are int64.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If an argument has the wrong type or dtype.
        ValueError: If an argument is invalid; the message names the rule.
        RuntimeError: If the sample reads a malformed part of the graph, or a
            relation has more than its ``max_edges`` edges.

    Example:
        >>> from torch_gsample import Graph
        >>> from torch_gsample.rng import make_key
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> seeds = torch.tensor([0])
        >>> out = sample_neighbors(graph, seeds, [-1], make_key(0))
        >>> out.node
        tensor([0, 1, 2])
        >>> out.row, out.col
        (tensor([1, 2]), tensor([0, 0]))
    """
    starts, all_fanouts, times = _arguments.read(
        OP, graph, seeds, fanouts, seed_time
    )
    sample = draw(
        graph, starts, all_fanouts, key, sampling, times, call_id, max_edges
    )
    if max_edges is None:
        return sample
    sizes = padded_sizes(
        graph.ends, graph.num_nodes, starts, sampling.disjoint, max_edges
    )
    return Sample(*sample[:-1], sizes)


def draw(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    fanouts: Sequence[int],
    key: Tensor,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None = None,
    call_id: int = 0,
    max_edges: Sequence[int] | None = None,
) -> Sample:
    """Calls the operator, and raises a clear error if it fails.

    Arguments are those of :func:`sample_neighbors`, with the int64 ``seeds``
    of each node type and the fan-outs of all relations in one list.
    """
    outputs = call(
        graph, seeds, fanouts, key, sampling, seed_time, call_id, max_edges
    )
    return Sample(*outputs, len(seeds), len(graph.ends) // 2, None)


def call(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    fanouts: Sequence[int],
    key: Tensor,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None = None,
    call_id: int = 0,
    max_edges: Sequence[int] | None = None,
    seed_ptr: Sequence[Tensor] | None = None,
) -> Outputs:
    """Returns the operator's outputs, of several batches with ``seed_ptr``."""
    try:
        return _operator(
            graph.tensors,
            graph.ends,
            graph.num_nodes,
            seeds,
            fanouts,
            key,
            call_id,
            sampling.replace,
            sampling.disjoint,
            sampling.temporal_strategy == 'last',
            sampling.time_window,
            sampling.return_edge_id,
            sampling.num_threads,
            seed_time,
            max_edges,
            seed_ptr,
        )
    except RuntimeError as error:
        batches = 1 if seed_ptr is None else seed_ptr[0].numel() - 1
        _check_arguments(
            graph, seeds, key, sampling, seed_time, max_edges, batches
        )
        exception = _check.raised(error)
        raise exception from None


_operator = torch.ops.gsample.sample_neighbors.default


def _check_arguments(
    graph: PreparedGraph,
    seeds: Sequence[Tensor],
    key: Any,
    sampling: Sampling,
    seed_time: Sequence[Tensor] | None,
    max_edges: Any,
    batches: int,
) -> None:
    """Finds the invalid argument of a failed call."""
    device = _arguments.check(OP, graph, seeds, sampling, seed_time)
    on_gpu = isinstance(key, Tensor) and key.is_cuda and key.device == device
    if max_edges is None or not on_gpu:
        _check.random_keys(OP, key, batches)
    for most in max_edges or ():
        _check.count(OP, 'max_edges', most, least=0)
    if max_edges is not None and len(max_edges) != len(graph.columns):
        raise ValueError(
            f"{OP}: 'max_edges' must have one item for each of "
            f'{len(graph.columns)} relations (got {len(max_edges)})'
        )


def padded_sizes(
    ends: Sequence[int],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    disjoint: bool,
    max_edges: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Returns the edges of each relation and the nodes of each type."""
    nodes = []
    for t, known in enumerate(num_nodes):
        new: Any = sum(
            most
            for src, most in zip(ends[::2], max_edges, strict=True)
            if src == t
        )
        if not disjoint:  # a faulty edge has a slot, too
            new = _least(new, known)
        nodes.append(seeds[t].shape[0] + new)
    return list(max_edges), nodes


def _least(new: Any, known: Any) -> Any:
    """Returns the smaller count, with a slot for a faulty node."""
    if isinstance(new, int) and isinstance(known, int):
        return min(new, max(known, 1))
    return torch.sym_min(new, torch.sym_max(known, 1))


@torch.library.register_fake('gsample::sample_neighbors')
def _(
    graph,
    ends,
    num_nodes,
    seeds,
    fanouts,
    key,
    call_id=0,
    replace=False,
    disjoint=False,
    last=False,
    time_window=None,
    return_edge_id=True,
    num_threads=0,
    seed_time=None,
    max_edges=None,
    seed_ptr=None,
):
    relations = len(ends) // 2
    hops = len(fanouts) // max(relations, 1)
    counts = len(seeds) * (hops + 1) + relations * hops
    counts *= 1 if seed_ptr is None else seed_ptr[0].shape[0] - 1
    like = seeds[0] if len(seeds) else key
    sizes: Any
    if max_edges is None:
        sizes = dynamic_size(), dynamic_size()
        counted = like.new_empty(counts, device='cpu')
    else:
        sizes = padded_sizes(ends, num_nodes, seeds, disjoint, max_edges)
        sizes = map(sum, sizes)
        counted = like.new_empty(counts + 4)
    num_edges, nodes = sizes
    return (
        like.new_empty(num_edges),
        like.new_empty(num_edges),
        like.new_empty(nodes),
        like.new_empty(num_edges if return_edge_id else 0),
        like.new_empty(nodes if disjoint else 0),
        counted,
    )
