"""Hooks of temporal-graph libraries without a state: neighbours, negatives.

A log of events comes in; for a batch of it, what was there before goes out. As
both are functions of the batch, batches may come in any order and resume
anywhere.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.graph import Graph
from torch_gsample.rng import hash_ids, make_key
from torch_gsample.samplers.neighbor.last_neighbors import last_neighbors

_NEIGHBORS = 'RecentNeighborHook'
_NEGATIVES = 'TemporalNegatives'


def _checked_events(
    name: str, src: Tensor, dst: Tensor, time: Tensor, num_nodes: int
) -> None:
    """Checks a log of events.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If they are no integers.
        ValueError: If they have several lengths.
    """
    for what, value in (('src', src), ('dst', dst), ('time', time)):
        if value.is_floating_point() or value.dtype == torch.bool:
            raise TypeError(
                f"{name}: '{what}' must hold integers (got {value.dtype})"
            )
        if value.dim() != 1 or value.shape != src.shape:
            raise ValueError(
                f"{name}: '{what}' must have the shape [{len(src)}] of 'src' "
                f'(got {list(value.shape)})'
            )
        if what == 'time' or len(value) == 0:
            continue
        low, high = map(int, value.aminmax())
        if low < 0 or high >= num_nodes:
            raise IndexError(
                f"{name}: '{what}' must be in [0, {num_nodes}) (got {low} to "
                f'{high})'
            )


class RecentNeighborHook:
    """The last neighbours before a batch, in the place of TGM's hook.

    TGM's ``RecencyNeighborHook`` (Chmura et al., `"TGM: A Modular Framework
    for Machine Learning on Temporal Graphs"
    <https://arxiv.org/abs/2510.07586>`_) fills ring buffers, so an epoch must
    be replayed in order. This one looks up sorted columns: it has no state.
    Equal neighbours come in equal places: the last ones of a node that are
    before its seed's time and before the batch. Where TGM's buffer dropped an
    event of the time asked for (at further hops, and of equal times), it has
    fewer; this one has them all.

    Args:
        src (torch.Tensor): Integers ``[num_events]``, all events.
        dst (torch.Tensor): As well.
        time (torch.Tensor): As well, in any order.
        num_nodes (int): Number of nodes.
        num_nbrs (List[int]): Neighbours of a node, at each hop.
        seed_nodes_keys (List[str]): Attributes of a batch that hold seeds.
        seed_times_keys (List[str]): Those that hold their times.
        directed (bool, optional): Whether only sources see destinations.
        edge_x (torch.Tensor, optional): ``[num_events, *]``, features.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If ends or times are no integers.
        ValueError: If an argument breaks a rule that is named.

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
        _checked_events(_NEIGHBORS, src, dst, time, num_nodes)
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
        """Does nothing: there is no state."""

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


class TemporalNegatives:
    """Negatives of events as TGB has them: historical ones and random ones.

    A historical negative of an event is a destination that its source had
    before, and does not have at this time (Huang et al., `"Temporal Graph
    Benchmark" <https://arxiv.org/abs/2307.01026>`_). Those of an event differ;
    where there are too few, random destinations take their places. These are
    drawn with replacement from ``destinations``, without those that the
    source has at this time. All are a function of (seed, epoch, batch).

    Args:
        src (torch.Tensor): Integers ``[num_events]``, the log.
        dst (torch.Tensor): As well.
        time (torch.Tensor): As well.
        num_nodes (int): Number of nodes.
        num_negatives (int): Of each event.
        num_historical (int, optional): How many of them are historical; half
            if not given.
        destinations (Tuple[int, int], optional): The first destination, and
            one more than the last; those of the log if not given.
        until (int, optional): Historical ones are earlier than this, as the
            end of training.
        seed (int, optional): Of the draws.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If ends or times are no integers.
        ValueError: If an argument breaks a rule that is named.

    Example:
        >>> src, dst = torch.tensor([0, 0, 0]), torch.tensor([5, 6, 7])
        >>> time = torch.tensor([1, 2, 3])
        >>> draw = TemporalNegatives(src, dst, time, 8, 2, num_historical=2)
        >>> draw(src[2:], dst[2:], time[2:]).sort().values
        tensor([[5, 6]])
    """

    def __init__(
        self,
        src: Tensor,
        dst: Tensor,
        time: Tensor,
        num_nodes: int,
        num_negatives: int,
        *,
        num_historical: int | None = None,
        destinations: tuple[int, int] | None = None,
        until: int | None = None,
        seed: int = 0,
    ):
        _checked_events(_NEGATIVES, src, dst, time, num_nodes)
        if num_historical is None:
            num_historical = num_negatives // 2
        if not 0 <= num_historical <= num_negatives or num_negatives < 1:
            raise ValueError(
                f"{_NEGATIVES}: 'num_historical' must be in [0, "
                f'{num_negatives}], and there must be a negative (got '
                f'{num_historical})'
            )
        src, dst, time = src.long(), dst.long(), time.long()
        low, high = destinations or (
            (int(dst.min()), int(dst.max()) + 1) if len(dst) else (0, 0)
        )
        if not 0 <= low < high <= num_nodes:
            raise ValueError(
                f"{_NEGATIVES}: 'destinations' must be in [0, {num_nodes}] "
                f'and not empty (got {(low, high)})'
            )
        self._low, self._high, self._size = low, high, num_nodes
        self._num, self._historical = num_negatives, num_historical
        self._seed, self._until = seed, until
        # The first time of each pair, by source.
        pair, index = (src * num_nodes + dst).unique(return_inverse=True)
        first = torch.full_like(pair, torch.iinfo(torch.int64).max)
        first.scatter_reduce_(0, index, time, 'amin')
        self._past, self._first = pair % num_nodes, first
        ends = torch.arange(num_nodes + 1, device=pair.device) * num_nodes
        self._indptr = torch.searchsorted(pair, ends)
        # Destinations of a source at a time, group by group.
        self._times = time.unique()
        self._groups, group = self._code(src, time).unique(return_inverse=True)
        self._present = (group * num_nodes + dst).unique()

    def _code(self, src: Tensor, time: Tensor) -> Tensor:
        return src * len(self._times) + torch.searchsorted(self._times, time)

    def __call__(
        self,
        src: Tensor,
        dst: Tensor,
        time: Tensor,
        batch: int = 0,
        epoch: int = 0,
    ) -> Tensor:
        """Returns the negatives of events, historical ones first.

        Args:
            src (torch.Tensor): Integers ``[n]``.
            dst (torch.Tensor): As well.
            time (torch.Tensor): As well.
            batch (int, optional): Which batch draws are for.
            epoch (int, optional): Of which epoch.

        Returns:
            torch.Tensor: int64 ``[n, num_negatives]``.

        Raises:
            IndexError: If a node does not exist.
            ValueError: If a source has all destinations at its time.
        """
        _checked_events(_NEGATIVES, src, dst, time, self._size)
        src, dst, time = src.long(), dst.long(), time.long()
        key = make_key(self._seed, epoch, batch).to(src.device)
        group = self._group(src, time)
        out = self._random(dst, group, key)
        row, past = self._candidates(src, dst, time, group)
        score = ops.random_uniform(
            torch.arange(len(row), device=row.device), key=key, call_id=2
        )
        order = torch.argsort(score, stable=True)
        order = order[torch.argsort(row[order], stable=True)]
        row = row[order]
        count = row.bincount(minlength=len(src))
        rank = torch.arange(len(row), device=row.device)
        rank -= (count.cumsum(0) - count)[row]
        kept = rank < self._historical
        out[row[kept], rank[kept]] = past[order][kept]
        return out

    def _group(self, src: Tensor, time: Tensor) -> Tensor:
        """Returns the group of (source, time), -1 if there is none."""
        if not len(self._times):
            return torch.full_like(src, -1)
        known = torch.searchsorted(self._times, time)
        known = self._times[known.clamp(max=len(self._times) - 1)] == time
        code = self._code(src, time)
        group = torch.searchsorted(self._groups, code)
        group = group.clamp(max=len(self._groups) - 1)
        return group.where(known & (self._groups[group] == code), -1)

    def _candidates(
        self, src: Tensor, dst: Tensor, time: Tensor, group: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns rows and destinations of all historical negatives."""
        start = self._indptr[src]
        count = self._indptr[src + 1] - start
        row = torch.arange(len(src), device=src.device)
        row = row.repeat_interleave(count)
        at = torch.arange(len(row), device=src.device)
        at += (start - (count.cumsum(0) - count))[row]
        until = time if self._until is None else time.clamp(max=self._until)
        past = self._past[at]
        kept = (self._first[at] < until[row]) & (past != dst[row])
        code = group[row] * self._size + past
        found = torch.searchsorted(self._present, code)
        found = found.clamp(max=max(len(self._present) - 1, 0))
        if len(self._present):
            kept &= (group[row] < 0) | (self._present[found] != code)
        return row[kept], past[kept]

    def _random(self, dst: Tensor, group: Tensor, key: Tensor) -> Tensor:
        """Draws from all destinations but those that are there."""
        taken = self._taken(dst, group)
        size = self._high - self._low
        free = size - (taken < self._high).sum(1)
        if len(free) and int(free.min()) < 1:
            i = int(free.argmin())
            raise ValueError(
                f'{_NEGATIVES}: event {i} must have a destination in '
                f'[{self._low}, {self._high}) that its source does not have'
            )
        id = torch.arange(len(dst) * self._num, device=dst.device)
        coarse, fine = (
            ops.random_uniform(id, key=key, call_id=call).double()
            for call in (0, 1)
        )
        drawn = (coarse + fine * 2**-24).view(len(dst), self._num)
        out = (drawn * free[:, None]).long().minimum(free[:, None] - 1)
        out += self._low
        # The j-th free destination is j plus the taken ones up to it.
        for column in taken.T:
            out += out >= column[:, None]
        return out

    def _taken(self, dst: Tensor, group: Tensor) -> Tensor:
        """Returns what rows must not draw, ascending, then ``high``."""
        ends = torch.stack([group, group + 1]) * self._size
        begin, end = torch.searchsorted(self._present, ends)
        width = int((end - begin).max()) if len(dst) else 0
        at = begin[:, None] + torch.arange(width, device=dst.device)
        there = (at < end[:, None]) & (group >= 0)[:, None]
        last = max(len(self._present) - 1, 0)
        taken = dst[:, None]
        if width:
            own = self._present[at.clamp(max=last)] % self._size
            taken = torch.cat([own.where(there, self._high), taken], 1)
        taken = taken.where(taken >= self._low, self._high)
        taken = taken.clamp(max=self._high).sort(1).values
        again = taken[:, 1:] == taken[:, :-1]
        taken[:, 1:] = taken[:, 1:].where(~again, self._high)
        return taken.sort(1).values


class TemporalNegativesHook:
    """Adds :class:`TemporalNegatives` to the batches of TGM.

    The draws are a function of the events of a batch and of :attr:`epoch`,
    whatever was sampled before.

    Args:
        negatives (TemporalNegatives): The negatives.

    Attributes:
        epoch (int): To be set before each epoch.
    """

    requires = {'edge_src', 'edge_dst', 'edge_time'}
    produces = {'neg', 'neg_time', 'neg_batch_list'}
    has_state = False

    def __init__(self, negatives: TemporalNegatives):
        self._negatives, self.epoch = negatives, 0

    def reset_state(self) -> None:
        """Does nothing: there is no state."""

    def __call__(self, dg: Any, batch: Any) -> Any:
        """Adds ``neg``, ``neg_time`` and ``neg_batch_list`` to a batch."""
        src, dst, time = batch.edge_src, batch.edge_dst, batch.edge_time
        number = hash_ids(*(part.cpu() for part in (src, dst, time)))
        drawn = self._negatives(src, dst, time, number, self.epoch)
        batch.neg = drawn.flatten().int()
        batch.neg_time = time.repeat_interleave(drawn.shape[1])
        batch.neg_batch_list = list(drawn.int())
        return batch
