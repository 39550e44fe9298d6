"""Negative destinations for the sources of seed edges."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.samplers.attributes import Times
from torch_gsample.samplers.link.negatives import MAX_REDRAWS, Negatives
from torch_gsample.samplers.link.sampling import NegativeSampling


@dataclass(frozen=True)
class SeedEdges:
    """The seed edges of a batch, and the seed edge of each negative.

    Args:
        edge_type (Tuple[str, str, str], optional): Their type.
        src (torch.Tensor): int64 ``[num_pos]``.
        dst (torch.Tensor): int64 ``[num_pos]``.
        time (torch.Tensor, optional): int64 ``[num_pos]``.
        positive (torch.Tensor): int64 ``[n]``, the seed edge of each negative.
        ids (torch.Tensor): int64 ``[n]``, the ids that key the draws.
    """

    edge_type: Any
    src: Tensor
    dst: Tensor
    time: Tensor | None
    positive: Tensor
    ids: Tensor

    def part(self, mask: Tensor) -> 'SeedEdges':
        """Returns the same edges with the negatives of ``mask``."""
        positive, ids = self.positive[mask], self.ids[mask]
        return replace(self, positive=positive, ids=ids)


def draw_destinations(
    negatives: Negatives,
    sampling: NegativeSampling,
    edges: SeedEdges,
    times: Times,
    key: Tensor,
) -> Tensor:
    """Draws a destination for each negative.

    Returns:
        torch.Tensor: int64 ``[n]``.

    Raises:
        ValueError: If a source has no candidate, or options contradict each
            other.
    """
    if sampling.among == 'batch':
        out = _draw_in_batch(negatives, edges, times, key)
        none = out < 0
        if bool(none.any()):  # fall back to the graph
            out[none] = _draw_in_graph(
                negatives, sampling, edges.part(none), times, key
            )
        return out
    if sampling.among != 'graph':
        return _draw_in_sets(sampling.among, edges, key)
    return _draw_in_graph(negatives, sampling, edges, times, key)


def _draw_in_graph(
    negatives: Negatives,
    sampling: NegativeSampling,
    edges: SeedEdges,
    times: Times,
    key: Tensor,
) -> Tensor:
    ids, time = edges.ids, edges.time
    time = None if time is None else time[edges.positive]
    if sampling.shared:
        dst_type = negatives.graph.end_types(edges.edge_type)[1]
        timed = time is not None and dst_type in times.node
        if negatives.true_negatives or timed:
            other = 'nodes without times' if timed else 'true_negatives=False'
            raise ValueError(
                f'NegativeSampling: shared=True needs {other}, as the '
                'candidates of seed edges differ'
            )
        ids = torch.arange(len(ids)) // max(len(edges.src), 1)
    return negatives.draw_targets(
        edges.edge_type,
        sampling,
        ids,
        edges.src[edges.positive],
        times,
        time,
        key,
    )


def _draw_in_sets(
    sets: tuple[Tensor, Tensor], edges: SeedEdges, key: Tensor
) -> Tensor:
    """Draws from the set of each source, uniformly with 53 bits."""
    indptr, indices = sets
    src = edges.src[edges.positive]
    if len(src) and int(src.max()) >= len(indptr) - 1:
        raise IndexError(
            f"NegativeSampling: 'indptr' must have {int(src.max()) + 2} "
            f'elements or more, for source {int(src.max())} (got '
            f'{len(indptr)})'
        )
    length = indptr[src + 1] - indptr[src]
    if bool((length == 0).any()):
        raise ValueError(
            "NegativeSampling: 'indptr' must give each source of a batch a "
            f'candidate (got none for source {int(src[length == 0][0])})'
        )
    draw = ops.negative_sample(edges.ids, 1 << 53, key=key)
    place = (draw.double() * 2.0**-53 * length).long()
    return indices[indptr[src] + place]


def _draw_in_batch(
    negatives: Negatives, edges: SeedEdges, times: Times, key: Tensor
) -> Tensor:
    """Draws among the destinations of the other seed edges.

    Rejected draws are repeated; after ``MAX_REDRAWS`` of them, candidates are
    listed.

    Returns:
        torch.Tensor: int64 ``[n]``, -1 if the batch has no candidate.
    """
    edge_type, dst = edges.edge_type, edges.dst
    own, src = dst[edges.positive], edges.src[edges.positive]
    latest, since = torch.zeros_like(own), torch.zeros_like(dst)
    dst_type = negatives.graph.end_types(edge_type)[1]
    if edges.time is not None and dst_type in times.node:
        latest, since = edges.time[edges.positive], times.node[dst_type][dst]
    since, order = since.sort(stable=True)
    order = dst[order]
    negatives.prepare(edge_type)
    neighbors = negatives.neighbors(edge_type)
    out, todo = torch.full_like(own, -1), torch.arange(len(own))
    for call_id in range(MAX_REDRAWS):
        if len(todo) == 0:
            return out
        found = ops.negative_sample(
            edges.ids[todo],
            len(dst),
            key=key,
            call_id=call_id,
            order=order,
            order_time=since,
            max_time=latest[todo],
            anchor=None if neighbors is None else src[todo],
            indptr=None if neighbors is None else neighbors.indptr,
            indices=None if neighbors is None else neighbors.indices,
        )
        good = (found >= 0) & (found != own[todo])
        when = None if edges.time is None else edges.time[edges.positive[todo]]
        good &= ~negatives.is_seen(edge_type, src[todo], found, when)
        out[todo[good]], todo = found[good], todo[~good]
    for i in todo.tolist():
        among = order[(order != own[i]) & (since <= latest[i])]
        if neighbors is not None:
            first, last = neighbors.indptr[src[i] : src[i] + 2].tolist()
            edge = torch.isin(among, neighbors.indices[first:last])
            among = among[~edge]
        when = None if edges.time is None else edges.time[edges.positive[i]]
        pairs = src[i].expand_as(among), among
        among = among[~negatives.is_seen(edge_type, *pairs, when)]
        if len(among):
            place = ops.negative_sample(
                edges.ids[i : i + 1], len(among), key=key, call_id=MAX_REDRAWS
            )
            out[i] = among[place]
    return out
