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


class NumberedBatches:
    """Wraps a batch sampler. Each pass over it is an epoch of its own.

    Args:
        batches (Iterable[List[int]]): The batch sampler.
        epoch (Callable): Returns the epoch of the pass that begins; a loader
            whose workers persist makes all its passes over one object.
        size (Callable, optional): Returns how many batches to put in a group
            (:func:`grouped`); there are none if not given.
        num_workers (int, optional): How many workers get groups.
    """

    def __init__(
        self,
        batches: Any,
        epoch: Callable[[], int],
        size: Callable[[], int] | None = None,
        num_workers: int = 0,
    ):
        self.batches = batches
        self.epoch = epoch
        self._size, self._num_workers = size, num_workers

    def __iter__(self) -> Iterator[BatchIndex | Group]:
        numbered = self._number(self.epoch())  # of the pass that begins now
        if self._size is None:
            return numbered
        try:
            total = len(self)
        except TypeError:  # a sampler without a length
            total = sys.maxsize
        return grouped(numbered, self._size, total, self._num_workers)

    def _number(self, epoch: int) -> Iterator[BatchIndex]:
        for batch, indices in enumerate(self.batches):
            yield BatchIndex(indices, BatchNumber(epoch, batch))

    def __len__(self) -> int:
        return len(self.batches)
