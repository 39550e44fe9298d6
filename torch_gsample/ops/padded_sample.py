"""Neighbour sampling into tensors whose sizes do not depend on the sample."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops.neighbor_sample import checked_graph

_FAULTS = {
    1: "'seeds' must be in the graph (got {value} at position {where}{of})",
    2: "'indptr' must ascend to the edges (it does not at column {where}{of})",
    3: "'indices' must be nodes (it is not at edge {where}{of})",
    4: "a sample has more edges than 'max_edges' (at least {value}{of})",
}


class PaddedSample(NamedTuple):
    """A sample and, after its nodes and edges, places of -1.

    ``M`` is the most edges, and ``N`` the most nodes: as many as there are
    seeds, and as edges or, if they are fewer and trees are not disjoint, nodes
    of the graph.
    """

    row: Tensor  # [M] local id of each edge's source
    col: Tensor  # [M] local id of its destination
    node: Tensor  # [N] node of each local id, seeds first
    edge: Tensor  # [M] position in indices, or empty
    batch: Tensor  # [N] seed of each node's tree, or empty
    num_nodes: Tensor  # [L + 1] new nodes a hop, where the sample is
    num_edges: Tensor  # [L] edges a hop, where the sample is
    fault: Tensor  # [3] 0, or what is wrong, where and with which value

    def check(self) -> 'PaddedSample':
        """Returns the sample; waits for it.

        Raises:
            IndexError: If a seed was not in the graph.
            RuntimeError: If there were more edges than ``max_edges``, or the
                graph is malformed where the sample met it.
        """
        check_fault('neighbor_sample_padded', self.fault)
        return self


def check_fault(op: str, fault: Tensor) -> None:
    """Raises an error of what is wrong; waits for it.

    Args:
        op (str): The operator.
        fault (torch.Tensor): 0, or what is wrong, where, with which value
            and, of several graphs, in which relation (or node type).

    Raises:
        IndexError: If a seed was not in the graph.
        RuntimeError: If something else was wrong.
    """
    kind, where, value, *relation = fault.tolist()
    if kind == 0:
        return
    graph = 'node type' if kind == 1 else 'relation'
    of = ''.join(f' of {graph} {number}' for number in relation)
    error = IndexError if kind == 1 else RuntimeError
    rule = _FAULTS[kind].format(where=where, value=value, of=of)
    raise error(f'{op}: {rule}')


def neighbor_sample_padded(
    indptr: Tensor,
    indices: Tensor,
    seeds: Tensor,
    fanouts: Sequence[int],
    *,
    key: Tensor,
    max_edges: int,
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
) -> PaddedSample:
    """Samples as :func:`neighbor_sample`, into tensors of fixed sizes.

    On a GPU nothing waits for the sample, so that a CUDA graph may hold it.
    ``key`` may be on the GPU then: each replay reads it anew. What goes wrong
    there is found in ``fault``: the sample is empty, and
    :meth:`PaddedSample.check` raises an error.

    Args:
        indptr (torch.Tensor): See :func:`neighbor_sample`.
        indices (torch.Tensor): See :func:`neighbor_sample`.
        seeds (torch.Tensor): See :func:`neighbor_sample`.
        fanouts (List[int]): See :func:`neighbor_sample`.
        key (torch.Tensor): int64 ``[1, 3]``, on the CPU or where the seeds
            are.
        max_edges (int): The most edges of a sample.
        call_id (int, optional): See :func:`neighbor_sample`.
        cum_weight (torch.Tensor, optional): See :func:`neighbor_sample`.
        edge_time (torch.Tensor, optional): See :func:`neighbor_sample`.
        seed_time (torch.Tensor, optional): See :func:`neighbor_sample`.
        time_window (int, optional): See :func:`neighbor_sample`.
        temporal_strategy (str, optional): See :func:`neighbor_sample`.
        replace (bool, optional): See :func:`neighbor_sample`.
        disjoint (bool, optional): See :func:`neighbor_sample`.
        return_edge_id (bool, optional): See :func:`neighbor_sample`.
        num_threads (int, optional): See :func:`neighbor_sample`.

    Returns:
        PaddedSample: All tensors are int64, and where the seeds are.

    Raises:
        As :func:`neighbor_sample`, and a RuntimeError if there are more than
        ``max_edges`` edges; on a GPU by :meth:`PaddedSample.check`.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr = torch.tensor([0, 2, 3, 3])
        >>> indices = torch.tensor([1, 2, 2])
        >>> out = neighbor_sample_padded(
        ...     indptr,
        ...     indices,
        ...     torch.tensor([0]),
        ...     [-1],
        ...     key=make_key(0),
        ...     max_edges=4,
        ... )
        >>> out.row, out.node
        (tensor([ 1,  2, -1, -1]), tensor([ 0,  1,  2, -1]))
    """
    op = 'neighbor_sample_padded'
    graph, optional = checked_graph(
        op, indptr, indices, seeds, cum_weight, edge_time, seed_time, disjoint
    )
    out = _check.call(
        torch.ops.gsample.neighbor_sample_padded.default,
        *graph,
        _check.fanouts(op, 'fanouts', fanouts),
        padded_key(op, key, graph[2].device),
        _check.count(op, 'max_edges', max_edges, least=0),
        call_id,
        **optional,
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        replace=replace,
        disjoint=disjoint,
        return_edge_id=return_edge_id,
        num_threads=num_threads,
    )
    return PaddedSample(*out)


def padded_key(op: str, key: Any, device: torch.device) -> Tensor:
    """Returns a key that is on the CPU or, as it is, on the device."""
    if isinstance(key, Tensor) and key.is_cuda and key.device == device:
        return _check.contiguous(key)
    return _check.random_key(op, key)


def most_nodes(
    seeds: Tensor, num_nodes: int, max_edges: int, disjoint: bool
) -> int:
    """Returns the most nodes of a type in a sample of so many edges."""
    # One node at least, where a faulty edge is.
    known = torch.sym_max(num_nodes, 1)
    more = max_edges if disjoint else torch.sym_min(max_edges, known)
    return seeds.shape[0] + more


@torch.library.register_fake('gsample::neighbor_sample_padded')
def _(
    indptr,
    indices,
    seeds,
    fanouts,
    key,
    max_edges,
    call_id=0,
    *,
    disjoint=False,
    return_edge_id=True,
    **_,
):
    num_nodes = most_nodes(seeds, indptr.shape[0] - 1, max_edges, disjoint)
    return (
        seeds.new_empty(max_edges),
        seeds.new_empty(max_edges),
        seeds.new_empty(num_nodes),
        seeds.new_empty(max_edges if return_edge_id else 0),
        seeds.new_empty(num_nodes if disjoint else 0),
        seeds.new_empty(len(fanouts) + 1),
        seeds.new_empty(len(fanouts)),
        seeds.new_empty(3),
    )
