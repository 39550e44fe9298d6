"""Numbers batches, so that a sample does not depend on who draws it.

The batch sampler of a loader yields lists of indices; here they become
:class:`BatchIndex` lists that carry (epoch, batch) to whichever worker gets
them.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch.utils.data import Dataset

from torch_gsample.loader.look_ahead import Group, grouped
from torch_gsample.loader.sharding import Shard
from torch_gsample.rng import BatchNumber


class BatchIndex(list):
    """The indices of a batch, and the number of the batch."""

    number: BatchNumber

    def __init__(self, indices: Iterable[int], number: BatchNumber):
        super().__init__(indices)
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.number)


class IndexRange(Dataset):
    """The data set of a loader whose samples are made by its ``collate_fn``.

    Args:
        size (int): Number of seeds.
    """

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        return index

    def __getitems__(self, indices: Sequence[int]) -> Sequence[int]:
        return indices  # as they came: a BatchIndex keeps its number


class Pass:
    """The pass of a loader that began last."""

    epoch: int = 0


class NumberedBatches:
    """Wraps a batch sampler. Each pass over it is an epoch of its own.

    Args:
        batches (Iterable[List[int]]): The batch sampler.
        epoch (Callable): Returns the epoch of the pass that begins; a loader
            whose workers persist makes all its passes over one object.
        size (Callable, optional): Returns how many batches to put in a group
            (:func:`grouped`); there are none if not given.
        num_workers (int, optional): How many workers get groups.
        hand_out (Callable, optional): Called with the epoch and the part of
            the pass that is handed out, batch by batch.
        shard (Shard, optional): Which batches are those of this process; all
            if not given.
    """

    def __init__(
        self,
        batches: Any,
        epoch: Callable[[], int],
        size: Callable[[], int] | None = None,
        num_workers: int = 0,
        hand_out: Callable[[int, float], None] | None = None,
        shard: Shard | None = None,
    ):
        self.batches = batches
        self.epoch = epoch
        self._size, self._num_workers = size, num_workers
        self.hand_out = hand_out
        self.shard = shard

    def __iter__(self) -> Iterator[BatchIndex | Group]:
        numbered = self._number(self.epoch())  # of the pass that begins now
        if self._size is None:
            return numbered
        return grouped(numbered, self._size, self._total(), self._num_workers)

    def _number(self, epoch: int) -> Iterator[BatchIndex]:
        total = self._total()
        shard = self.shard
        numbered = (
            enumerate(self.batches)
            if shard is None
            else shard.number(self.batches, epoch)
        )
        for done, (batch, indices) in enumerate(numbered, start=1):
            if self.hand_out is not None:
                self.hand_out(epoch, done / total)
            yield BatchIndex(indices, BatchNumber(epoch, batch))

    def _total(self) -> int:
        try:
            return len(self)
        except TypeError:  # a sampler without a length
            return sys.maxsize

    def __len__(self) -> int:
        if self.shard is not None:
            return self.shard.count(self.batches)
        return len(self.batches)
