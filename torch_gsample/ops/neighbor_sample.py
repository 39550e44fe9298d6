"""Multi-hop neighbour sampling."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size


class NeighborSample(NamedTuple):
    """A sampled subgraph; ``L`` is the number of hops."""

    row: Tensor  # [num_sampled_edges] local id of each edge's source
    col: Tensor  # [num_sampled_edges] local id of its destination
    node: Tensor  # [num_sampled_nodes] node of each local id, seeds first
    edge: Tensor  # [num_sampled_edges] position in indices, or empty
    batch: Tensor  # [num_sampled_nodes] seed of each node's tree, or empty
    num_nodes: Tensor  # [L + 1] new nodes a hop
    num_edges: Tensor  # [L] edges a hop


def neighbor_sample(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: Tensor,
    call_id: int = 0,
    cum_weight: Tensor | None = None,
    edge_time: Tensor | None = None,
    seed_time: Tensor | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    disjoint: bool = False,
    return_edge_id: bool = True,
    num_threads: int = 0,
) -> NeighborSample:
    r"""Samples in-neighbours of ``seeds`` hop by hop.

    A node is sampled at the first hop that meets it (Hamilton et al.,
    `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_). Local ids follow the order of first
    occurrence: seeds, then hop by hop in the order of the frontier and of the
    slots. The result is a pure function of the arguments: neither
    ``num_threads`` nor the dtype of the graph changes it.

    Weighted sampling is successive: each draw takes an edge with probability
    proportional to its weight among those that are left. Edges of weight 0
    are never taken, whatever the fan-out.

    Temporal sampling restricts a column to the edges of
    ``[seed_time - time_window, seed_time]``.

    On a GPU, where all tensors but ``key`` then are, the sample is the same;
    only the counts come back to the CPU. The GPU also reads a graph (with its
    weights and times) in pinned memory itself, see
    :func:`torch_gsample.placement.pin`.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_nodes + 1]``, where each
            column (destination) starts in ``indices``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``, the row
            (source) of each edge. Use :func:`check_csc` on graphs that you do
            not trust: what a call touches is checked, the rest is not.
        seeds (torch.Tensor): int32 or int64 ``[num_seeds]``. Duplicates keep
            a place each.
        fanouts (List[int]): Neighbours to sample at each hop; -1 takes all.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Number of the draw in a program; hop ``h``
            draws as ``call_id + h``.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned; uniform sampling if not given.
        edge_time (torch.Tensor, optional): int64 ``[num_edges]``, when each
            edge can be seen first; ascending in each column.
        seed_time (torch.Tensor, optional): int64 ``[num_seeds]``.
        time_window (int, optional): Width of the window, in units of time.
        temporal_strategy (str, optional): ``'uniform'``, or ``'last'`` for
            the latest edges.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        disjoint (bool, optional): Whether each seed has a tree of its own;
            temporal sampling needs it.
        return_edge_id (bool, optional): Whether to fill ``edge``.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        NeighborSample: All tensors are int64.

    Raises:
        IndexError: If a seed is not in the graph.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument breaks a rule that is named.
        RuntimeError: If the graph is malformed where the sample met it.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 2, 3, 3])
        >>> indices = torch.tensor([1, 2, 2])
        >>> out = neighbor_sample(
        ...     indptr, indices, torch.tensor([0]), [-1], key=make_key(0)
        ... )
        >>> out.node
        tensor([0, 1, 2])
        >>> out.row, out.col
        (tensor([1, 2]), tensor([0, 0]))
    """
    op = 'neighbor_sample'
    graph, optional = checked_graph(
        op, indptr, indices, seeds, cum_weight, edge_time, seed_time, disjoint
    )
    out = _check.call(
        torch.ops.gsample.neighbor_sample.default,
        *graph,
        _check.fanouts(op, 'fanouts', fanouts),
        _check.random_key(op, key),
        call_id,
        **optional,
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        replace=replace,
        disjoint=disjoint,
        return_edge_id=return_edge_id,
        num_threads=num_threads,
    )
    return NeighborSample(*out)


def checked_graph(
    op: str,
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    cum_weight: Tensor | None,
    edge_time: Tensor | None,
    seed_time: Tensor | None,
    disjoint: bool,
) -> tuple[list[Tensor], dict[str, Tensor | None]]:
    """Returns a graph with its seeds, and its weights and times, by name.

    Raises:
        As :func:`neighbor_sample`.
    """
    device = _check.sampling_device(op, indptr, seeds)
    indptr, indices = _check.graph(op, indptr, indices, device)
    seeds = _check.node_ids(op, 'seeds', seeds, indptr.numel() - 1, device)
    num_edges = indices.numel()
    if cum_weight is not None:
        size = cum_weight_size(num_edges, indptr.numel() - 1)
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, size, device, or_pinned=True
        )
    check_times(op, edge_time, seed_time, disjoint)
    if edge_time is not None and seed_time is not None:
        edge_time = _check.int64_vector(
            op, 'edge_time', edge_time, num_edges, device, or_pinned=True
        )
        seed_time = _check.int64_vector(
            op, 'seed_time', seed_time, seeds.numel(), device
        )
    return [indptr, indices, seeds], {
        'cum_weight': cum_weight,
        'edge_time': edge_time,
        'seed_time': seed_time,
    }


def check_times(
    op: str, edge_time: object, seed_time: object, disjoint: bool
) -> None:
    """Checks that times are complete, and trees disjoint.

    Raises:
        ValueError: If not.
    """
    if (edge_time is None) != (seed_time is None):
        raise ValueError(
            f"{op}: 'edge_time' and 'seed_time' must be given together"
        )
    if edge_time is not None and not disjoint:
        raise ValueError(f"{op}: temporal sampling needs 'disjoint=True'")


@torch.library.register_fake('gsample::neighbor_sample')
def _(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    call_id=0,
    *,
    disjoint=False,
    return_edge_id=True,
    **_,
):
    num_edges, num_nodes = dynamic_size(), dynamic_size()
    return (
        seeds.new_empty(num_edges),
        seeds.new_empty(num_edges),
        seeds.new_empty(num_nodes),
        seeds.new_empty(num_edges if return_edge_id else 0),
        seeds.new_empty(num_nodes if disjoint else 0),
        seeds.new_empty(len(fanouts) + 1, device='cpu'),
        seeds.new_empty(len(fanouts), device='cpu'),
    )
