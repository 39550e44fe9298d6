"""Samples of several types, in tensors whose sizes do not depend on them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops.hetero_neighbor_sample import checked_graphs
from torch_gsample.ops.padded_sample import (
    check_fault,
    most_nodes,
    padded_key,
)


class HeteroPaddedSample(NamedTuple):
    """A heterogeneous sample and, after its nodes and edges, places of -1.

    ``M`` is the most edges of a relation. ``N`` is the most nodes of a type:
    as many as there are seeds of it, and as edges of relations from it or, if
    they are fewer and trees are not disjoint, nodes of it.
    """

    row: list[Tensor]  # [M] local id of each edge's source, by relation
    col: list[Tensor]  # [M] local id of its destination
    node: list[Tensor]  # [N] node of each local id, seeds first, by type
    edge: list[Tensor]  # [M] position in indices, or empty
    batch: list[Tensor]  # [N] seed of each node's tree, or empty
    num_nodes: Tensor  # [num_types, L + 1] new nodes a hop
    num_edges: Tensor  # [num_relations, L] edges a hop
    fault: Tensor  # [4] 0, or what is wrong, where, with which value, of which

    def check(self) -> 'HeteroPaddedSample':
        """Returns the sample; waits for it.

        Raises:
            IndexError: If a seed was not in the graph.
            RuntimeError: If a relation had more edges than its ``max_edges``,
                or a graph is malformed where the sample met it.
        """
        check_fault('hetero_neighbor_sample_padded', self.fault)
        return self


def hetero_neighbor_sample_padded(
    indptr: Sequence[Tensor],
    indices: Sequence[Tensor],
    relations: Sequence[tuple[int, int]],
    num_nodes: Sequence[int],
    seeds: Sequence[Tensor],
    fanouts: Sequence[Sequence[int]],
    *,
    key: Tensor,
    max_edges: Sequence[int],
    call_id: int = 0,
    cum_weight: Sequence[Tensor | None] | None = None,
    edge_time: Sequence[Tensor | None] | None = None,
    seed_time: Sequence[Tensor | None] | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    disjoint: bool = False,
    return_edge_id: bool = True,
    num_threads: int = 0,
) -> HeteroPaddedSample:
    """Samples as :func:`hetero_neighbor_sample`, into tensors of fixed sizes.

    On a GPU nothing waits for the sample, so that a CUDA graph may hold it.
    ``key`` may be on the GPU then: each replay reads it anew. What goes wrong
    there is found in ``fault``: the sample is empty, and
    :meth:`HeteroPaddedSample.check` raises an error.

    Args:
        indptr (List[torch.Tensor]): See :func:`hetero_neighbor_sample`.
        indices (List[torch.Tensor]): See :func:`hetero_neighbor_sample`.
        relations (List[Tuple[int, int]]): See :func:`hetero_neighbor_sample`.
        num_nodes (List[int]): See :func:`hetero_neighbor_sample`.
        seeds (List[torch.Tensor]): See :func:`hetero_neighbor_sample`.
        fanouts (List[List[int]]): See :func:`hetero_neighbor_sample`.
        key (torch.Tensor): int64 ``[1, 3]``, on the CPU or where the seeds
            are.
        max_edges (List[int]): The most edges of each relation in a sample.
        call_id (int, optional): See :func:`hetero_neighbor_sample`.
        cum_weight (List[torch.Tensor], optional): See
            :func:`hetero_neighbor_sample`.
        edge_time (List[torch.Tensor], optional): See
            :func:`hetero_neighbor_sample`.
        seed_time (List[torch.Tensor], optional): See
            :func:`hetero_neighbor_sample`.
        time_window (int, optional): See :func:`hetero_neighbor_sample`.
        temporal_strategy (str, optional): See :func:`hetero_neighbor_sample`.
        replace (bool, optional): See :func:`hetero_neighbor_sample`.
        disjoint (bool, optional): See :func:`hetero_neighbor_sample`.
        return_edge_id (bool, optional): See :func:`hetero_neighbor_sample`.
        num_threads (int, optional): See :func:`hetero_neighbor_sample`.

    Returns:
        HeteroPaddedSample: All tensors are int64, and where the seeds are.

    Raises:
        As :func:`hetero_neighbor_sample`, and a RuntimeError if a relation
        has more than its ``max_edges`` edges; on a GPU by
        :meth:`HeteroPaddedSample.check`.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> # Authors 1 and 0 wrote paper 0.
        >>> out = hetero_neighbor_sample_padded(
        ...     [torch.tensor([0, 2])],
        ...     [torch.tensor([1, 0])],
        ...     [(1, 0)],
        ...     [1, 2],
        ...     [torch.tensor([0]), torch.tensor([], dtype=torch.int64)],
        ...     [[-1]],
        ...     key=make_key(0),
        ...     max_edges=[3],
        ... )
        >>> out.row, out.node
        ([tensor([ 0,  1, -1])], [tensor([0]), tensor([1, 0])])
    """
    op = 'hetero_neighbor_sample_padded'
    arguments = checked_graphs(
        op,
        indptr,
        indices,
        relations,
        num_nodes,
        seeds,
        fanouts,
        cum_weight,
        edge_time,
        seed_time,
        disjoint,
    )
    if len(max_edges) != len(relations):
        raise ValueError(
            f"{op}: 'max_edges' must have one item for each of "
            f'{len(relations)} relations (got {len(max_edges)})'
        )
    device = seeds[0].device if seeds else _check.CPU
    out = _check.call(
        torch.ops.gsample.hetero_neighbor_sample_padded.default,
        *arguments,
        padded_key(op, key, device),
        [_check.count(op, 'max_edges', most, least=0) for most in max_edges],
        call_id,
        time_window=_check.time_window(op, time_window),
        temporal_strategy=_check.strategy(op, temporal_strategy),
        replace=replace,
        disjoint=disjoint,
        return_edge_id=return_edge_id,
        num_threads=num_threads,
    )
    return HeteroPaddedSample(*out)


@torch.library.register_fake('gsample::hetero_neighbor_sample_padded')
def _(
    indptr,
    indices,
    src,
    dst,
    num_nodes,
    seeds,
    fanouts,
    cum_weight,
    edge_time,
    seed_time,
    key,
    max_edges,
    call_id=0,
    *,
    disjoint=False,
    return_edge_id=True,
    **_,
):
    hops = len(fanouts) // max(len(indptr), 1)
    edges = [0 for _ in seeds]  # to sources of each type
    for rows, most in zip(src, max_edges, strict=True):
        edges[rows] += most
    nodes = [
        most_nodes(*of_type, disjoint)
        for of_type in zip(seeds, num_nodes, edges, strict=True)
    ]
    like = seeds[0] if seeds else key
    return (
        [like.new_empty(n) for n in max_edges],
        [like.new_empty(n) for n in max_edges],
        [like.new_empty(n) for n in nodes],
        [like.new_empty(n if return_edge_id else 0) for n in max_edges],
        [like.new_empty(n if disjoint else 0) for n in nodes],
        like.new_empty(len(nodes), hops + 1),
        like.new_empty(len(max_edges), hops),
        like.new_empty(4),
    )
