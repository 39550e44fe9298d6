"""The last neighbours of nodes before a time, as padded tensors."""

from typing import Any, NamedTuple

from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph import Graph
from torch_gsample.ops import _check
from torch_gsample.options import TimeInclusive
from torch_gsample.samplers.neighbor.time_interval import TimeInterval

_OP = 'last_neighbors'


class LastNeighbors(NamedTuple):
    """The last neighbours of ``n`` nodes, latest first."""

    neighbor: Tensor  # int64 [n, k], -1 where there is none
    edge: Tensor  # int64 [n, k], the original edge, -1 where there is none
    time: Tensor  # int64 [n, k], its time, 0 where there is none
    mask: Tensor  # bool [n, k], where there is one


def last_neighbors(
    graph: Graph,
    nodes: Tensor,
    times: Tensor,
    k: int,
    *,
    edge_type: Any = None,
    time_inclusive: TimeInclusive = 'left',
    time_window: int | None = None,
) -> LastNeighbors:
    """Returns the last ``k`` in-neighbours of each node before its time.

    A binary search in columns that are sorted by time replaces a buffer of
    recent events. Columns never change, so batches may come in any order, any
    number of times and from any process, and later events cannot leak. Edges
    of the same time keep the order of the graph's edges.

    Args:
        graph (Graph): A graph with times, on any device.
        nodes (torch.Tensor): int64 ``[n]``, on the graph's device.
        times (torch.Tensor): int64 ``[n]``.
        k (int): Maximum number of neighbours of each node.
        edge_type (Tuple[str, str, str], optional): The relation, if the graph
            has several.
        time_inclusive (str, optional): Which ends of the interval belong to
            it; default: ``'left'``, only edges before ``times``. See
            :class:`NeighborSampler`.
        time_window (int, optional): Only edges from ``times - time_window``
            on.

    Raises:
        IndexError: If a node is not in the graph.
        KeyError: If the graph has no such relation.
        TypeError: If an argument has the wrong type.
        ValueError: If the relation has no times, or an argument is invalid.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[1, 2, 3], [0, 0, 0]])
        >>> graph = Graph.from_edge_index(edge_index)
        >>> graph = graph.with_times({None: torch.tensor([5, 7, 9])})
        >>> nodes, times = torch.tensor([0, 0]), torch.tensor([9, 6])
        >>> out = last_neighbors(graph, nodes, times, 2)
        >>> out.neighbor
        tensor([[ 2,  1],
                [ 1, -1]])
    """
    csc = graph[edge_type]
    if csc.edge_time is None:
        raise ValueError(f"{_OP}: 'graph' must have times (see with_times)")
    if not isinstance(k, int) or isinstance(k, bool):
        raise TypeError(f"{_OP}: 'k' must be an integer (got {k!r})")
    if k < 0:
        raise ValueError(f"{_OP}: 'k' must not be negative (got {k})")
    TimeInterval('seed', time_inclusive).width(time_window)
    neighbor, edge, time = ops.last_neighbors(
        csc.indptr,
        csc.indices,
        csc.edge_time,
        _check.node_ids(_OP, 'nodes', nodes, csc.num_cols, nodes.device),
        times,
        k,
        edge_id=csc.edge_id,
        time_window=time_window,
        closed_start=time_inclusive in ('both', 'left'),
        closed_end=time_inclusive in ('both', 'right'),
    )
    return LastNeighbors(neighbor.long(), edge, time, edge >= 0)
