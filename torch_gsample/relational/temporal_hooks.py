"""Stateless hooks of recent neighbours for temporal-graph libraries.

A log of events comes in; the history of a batch goes out. It is a function of
the batch, so batches may run in any order, and training may resume anywhere.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.graph import Graph
from torch_gsample.ops import _check
from torch_gsample.ops.features import select_rows
from torch_gsample.relational.events import checked_events

_NEIGHBORS = 'RecentNeighborHook'


class RecentNeighborHook:
    """The most recent neighbours before a batch; replaces TGM's hook.

    TGM's ``RecencyNeighborHook`` (Chmura et al., `"TGM: A Modular Framework
    for Machine Learning on Temporal Graphs"
    <https://arxiv.org/abs/2510.07586>`_) fills ring buffers, so an epoch must
    be replayed in order. This hook searches sorted columns and has no state.
    It returns the same neighbours in the same positions: the last ones of a
    node before its seed's time and before the batch. TGM has fewer if its
    buffer has dropped an event (at further hops, and at equal times); this
    hook returns all of them.

    Args:
        src (torch.Tensor): Integers ``[num_events]``, all events.
        dst (torch.Tensor): Likewise.
        time (torch.Tensor): Likewise, in any order.
        num_nodes (int): Number of nodes.
        num_nbrs (List[int]): Number of neighbours per node at each hop.
        seed_nodes_keys (List[str]): Attributes of a batch with seeds.
        seed_times_keys (List[str]): Attributes of a batch with their times.
        directed (bool, optional): Whether only sources see destinations.
        edge_x (torch.Tensor, optional): ``[num_events, *]``, features.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If ends or times are not integers.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> from types import SimpleNamespace
        >>> src, dst = torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2])
        >>> time = torch.tensor([3, 5, 8])
        >>> hook = RecentNeighborHook(
        ...     src, dst, time, 3, [2], ['edge_src'], ['edge_time']
        ... )
        >>> batch = SimpleNamespace(edge_src=src[2:], edge_time=time[2:])
        >>> hook(None, batch).nbr_nids
        [tensor([[-1,  0]], dtype=torch.int32)]
    """

    requires = {'edge_src', 'edge_dst', 'edge_time'}
    produces = {
        'seed_nids',
        'seed_times',
        'nbr_nids',
        'nbr_edge_time',
        'nbr_edge_x',
        'seed_node_nbr_mask',
    }
    has_state = False

    def __init__(
        self,
        src: Tensor,
        dst: Tensor,
        time: Tensor,
        num_nodes: int,
        num_nbrs: Sequence[int],
        seed_nodes_keys: Sequence[str],
        seed_times_keys: Sequence[str],
        *,
        directed: bool = False,
        edge_x: Tensor | None = None,
    ):
        checked_events(_NEIGHBORS, src, dst, time, num_nodes)
        if not num_nbrs or min(num_nbrs) < 1:
            raise ValueError(
                f"{_NEIGHBORS}: 'num_nbrs' must be positive numbers (got "
                f'{list(num_nbrs)})'
            )
        if len(seed_nodes_keys) != len(seed_times_keys):
            raise ValueError(
                f"{_NEIGHBORS}: 'seed_times_keys' must have one key for "
                f"each of {len(seed_nodes_keys)} 'seed_nodes_keys' (got "
                f'{len(seed_times_keys)})'
            )
        self.num_nbrs = list(num_nbrs)
        self._keys = list(zip(seed_nodes_keys, seed_times_keys, strict=True))
        self._copies = 1 if directed else 2
        src, dst, time = src.long(), dst.long(), time.long()
        edges = torch.stack([dst, src])
        if not directed:  # event by event, so ties keep their order
            edges = torch.stack([edges, edges.flip(0)], 2).flatten(1)
        graph = Graph.from_edge_index(edges, num_nodes)
        times = time.repeat_interleave(self._copies)
        [csc] = graph.with_times({None: times}).columns
        assert csc.edge_time is not None
        self._columns = csc.indptr, csc.indices, csc.edge_time
        self._edge_id = csc.edge_id
        self._edge_x = edge_x

    def reset_state(self) -> None:
        """Does nothing, as there is no state."""

    def __call__(self, dg: Any, batch: Any) -> Any:
        """Adds the neighbours of the seeds to a batch.

        Raises:
            AttributeError: If the batch lacks a seed attribute.
        """
        parts = [
            (name, getattr(batch, name), getattr(batch, times))
            for name, times in self._keys
        ]
        parts = [part for part in parts if part[1] is not None]
        seeds = torch.cat([part[1] for part in parts])
        times = torch.cat([part[2] for part in parts])
        batch.seed_node_nbr_mask, first = {}, 0
        for name, seed, _ in parts:
            last = first + len(seed)
            slots = torch.arange(first, last, device=seeds.device)
            batch.seed_node_nbr_mask[name], first = slots, last
        batch.seed_nids, batch.seed_times = [], []
        batch.nbr_nids, batch.nbr_edge_time, batch.nbr_edge_x = [], [], []
        start = batch.edge_time.min() if len(batch.edge_time) else None
        for hop, k in enumerate(self.num_nbrs):
            if hop > 0:
                seeds = batch.nbr_nids[-1].flatten()
                times = batch.nbr_edge_time[-1].flatten()
            batch.seed_nids.append(seeds.int())
            batch.seed_times.append(times)
            until = times if start is None else times.clamp(max=start)
            neighbor, event, time = self._hop(seeds, until, k)
            batch.nbr_nids.append(neighbor)
            batch.nbr_edge_time.append(time)
            batch.nbr_edge_x.append(self._features(neighbor, event))
        return batch

    def _hop(
        self, seeds: Tensor, until: Tensor, k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns neighbours, edges and times, the latest last."""
        neighbor, edge, time = _check.call(
            torch.ops.gsample.last_neighbors.default,
            *self._columns,
            seeds.long(),
            until.long(),
            k,
            self._edge_id,
            ascending=True,
            return_edge=self._edge_x is not None,
        )
        return neighbor.int(), edge, time

    def _features(self, neighbor: Tensor, edge: Tensor) -> Tensor:
        """Returns the features of the events in slots, 0 in empty slots."""
        x = self._edge_x
        if x is None:
            return torch.zeros(*neighbor.shape, 0, device=neighbor.device)
        if len(x) == 0:  # no events
            return x.new_zeros(*neighbor.shape, *x.shape[1:])
        event = edge.flatten() // self._copies
        empty = event < 0
        rows = select_rows(x, event.masked_fill_(empty, 0))
        rows = rows.index_fill_(0, empty.nonzero().flatten(), 0)
        return rows.view(*neighbor.shape, *x.shape[1:])
