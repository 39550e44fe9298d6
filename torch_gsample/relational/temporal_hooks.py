"""Recent neighbours for temporal-graph libraries, without state.

The input is a log of events; the output for a batch is its history. It is a
function of the batch, so batches may run in any order and resume anywhere.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.graph import Graph
from torch_gsample.relational.events import checked_events
from torch_gsample.samplers.neighbor.last_neighbors import last_neighbors

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
                f"{_NEIGHBORS}: 'seed_times_keys' must be as many as "
                f"'seed_nodes_keys', {len(seed_nodes_keys)} (got "
                f'{len(seed_times_keys)})'
            )
        self.num_nbrs = list(num_nbrs)
        self._keys = list(zip(seed_nodes_keys, seed_times_keys, strict=True))
        self._copies = 1 if directed else 2
        src, dst, time = src.long(), dst.long(), time.long()
        edges = torch.stack([dst, src])
        if not directed:  # event by event: equal times stay in their order
            edges = torch.stack([edges, edges.flip(0)], 2).flatten(1)
        graph = Graph.from_edge_index(edges, num_nodes)
        times = time.repeat_interleave(self._copies)
        self._graph = graph.with_times({None: times})
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
        seeds = torch.cat([part[1].long() for part in parts])
        times = torch.cat([part[2].long() for part in parts])
        batch.seed_node_nbr_mask, first = {}, 0
        for name, seed, _ in parts:
            at = torch.arange(first, first + len(seed), device=seed.device)
            batch.seed_node_nbr_mask[name] = at
            first += len(seed)
        batch.seed_nids, batch.seed_times = [], []
        batch.nbr_nids, batch.nbr_edge_time, batch.nbr_edge_x = [], [], []
        start = batch.edge_time.min() if len(batch.edge_time) else None
        for k in self.num_nbrs:
            batch.seed_nids.append(seeds.int())
            batch.seed_times.append(times)
            seeds, times = self._hop(seeds, times, start, k, batch)
        return batch

    def _hop(
        self, seeds: Tensor, times: Tensor, start: Any, k: int, batch: Any
    ) -> tuple[Tensor, Tensor]:
        until = times if start is None else times.clamp(max=int(start))
        out = last_neighbors(self._graph, seeds.clamp(min=0), until, k)
        # Latest last; the places of padded seeds are empty.
        mask = out.mask.flip(1) & (seeds >= 0)[:, None]
        neighbor = out.neighbor.flip(1).where(mask, -1)
        time = out.time.flip(1).where(mask, 0)
        batch.nbr_nids.append(neighbor.int())
        batch.nbr_edge_time.append(time)
        x = self._edge_x
        if x is None:
            features = torch.zeros(*mask.shape, 0, device=mask.device)
        else:
            event = out.edge.flip(1).where(mask, 0) // self._copies
            features = x[event] * mask.view(*mask.shape, *[1] * (x.dim() - 1))
        batch.nbr_edge_x.append(features)
        return neighbor.flatten(), time.flatten()
