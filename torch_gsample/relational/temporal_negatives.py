"""Negatives of a log of events, as a function of the batch."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.relational.events import checked_events
from torch_gsample.rng import hash_ids, make_key

_NEGATIVES = 'TemporalNegatives'


class TemporalNegatives:
    """Historical and random negatives of events, as in TGB.

    A historical negative of an event is an earlier destination of its source
    that is not a destination at this time (Huang et al., `"Temporal Graph
    Benchmark" <https://arxiv.org/abs/2307.01026>`_). Those of an event are
    distinct; if there are too few, random destinations replace them. These are
    drawn with replacement from ``destinations``, except the source's
    destinations at this time. All draws are a function of (seed, epoch,
    batch).

    Args:
        src (torch.Tensor): Integers ``[num_events]``, the log.
        dst (torch.Tensor): Likewise.
        time (torch.Tensor): Likewise.
        num_nodes (int): Number of nodes.
        num_negatives (int): Number of negatives per event.
        num_historical (int, optional): Number of historical ones among them;
            default: half.
        destinations (Tuple[int, int], optional): The first destination, and
            the last one plus one; default: those of the log.
        until (int, optional): Upper bound of the time of historical ones, such
            as the end of training.
        seed (int, optional): Random seed.

    Raises:
        IndexError: If a node does not exist.
        TypeError: If ends or times are not integers.
        ValueError: If an argument is invalid; the message names the rule.

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
        checked_events(_NEGATIVES, src, dst, time, num_nodes)
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
            dst (torch.Tensor): Likewise.
            time (torch.Tensor): Likewise.
            batch (int, optional): Index of the batch.
            epoch (int, optional): The epoch.

        Returns:
            torch.Tensor: int64 ``[n, num_negatives]``.

        Raises:
            IndexError: If a node does not exist.
            ValueError: If a source has all destinations at its time.
        """
        checked_events(_NEGATIVES, src, dst, time, self._size)
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
        """Returns the group of (source, time), -1 for unknown ones."""
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
        """Draws from all destinations except those of the source."""
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
        # The j-th free destination is j plus the number of taken ones below.
        for column in taken.T:
            out += out >= column[:, None]
        return out

    def _taken(self, dst: Tensor, group: Tensor) -> Tensor:
        """Returns the excluded destinations of rows, ascending."""
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

    The draws are a function of the events of a batch and :attr:`epoch`, and do
    not depend on earlier batches.

    Args:
        negatives (TemporalNegatives): The negatives.

    Attributes:
        epoch (int): Set it before each epoch.
    """

    requires = {'edge_src', 'edge_dst', 'edge_time'}
    produces = {'neg', 'neg_time', 'neg_batch_list'}
    has_state = False

    def __init__(self, negatives: TemporalNegatives):
        self._negatives, self.epoch = negatives, 0

    def reset_state(self) -> None:
        """Does nothing, as there is no state."""

    def __call__(self, dg: Any, batch: Any) -> Any:
        """Adds ``neg``, ``neg_time`` and ``neg_batch_list`` to a batch."""
        src, dst, time = batch.edge_src, batch.edge_dst, batch.edge_time
        number = hash_ids(*(part.cpu() for part in (src, dst, time)))
        drawn = self._negatives(src, dst, time, number, self.epoch)
        batch.neg = drawn.flatten().int()
        batch.neg_time = time.repeat_interleave(drawn.shape[1])
        batch.neg_batch_list = list(drawn.int())
        return batch
