"""Batch ids, so that a sample does not depend on the process that draws it.

The batches of an epoch come in; lists of indices that carry (epoch, batch) go
out to any worker or wrapper.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torch.utils.data import (
    BatchSampler,
    Dataset,
    DistributedSampler,
    Sampler,
    SequentialSampler,
)

from torch_gsample.loader.epochs import Epochs, GivenBatches, Place
from torch_gsample.loader.look_ahead import Group, grouped
from torch_gsample.loader.sharding import Shard
from torch_gsample.rng import BatchNumber


class BatchIndex(list):
    """The indices of a batch, with its id.

    Slices and sums, which wrappers make, keep the id.
    """

    number: BatchNumber

    def __init__(self, indices: Iterable[int], number: BatchNumber):
        super().__init__(indices)
        self.number = number

    def __getitem__(self, item: Any) -> Any:
        out = super().__getitem__(item)
        return BatchIndex(out, self.number) if type(item) is slice else out

    def __add__(self, other: Any) -> 'BatchIndex':
        return BatchIndex(super().__add__(other), self.number)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.number)


class OwnIndex(BatchIndex):
    """A batch index of our own iterators, which may join features later."""


class NumberedInt(int):
    """An index that carries the id of its batch."""

    number: BatchNumber

    def __new__(cls, index: int, number: BatchNumber) -> 'NumberedInt':
        out = super().__new__(cls, index)
        out.number = number
        return out

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (int(self), self.number)


def number_of(index: Any) -> BatchNumber | None:
    """Returns the id that the indices of a batch carry, or None."""
    if isinstance(index, BatchIndex):
        return index.number
    first = index[0] if isinstance(index, list) and index else None
    return first.number if isinstance(first, NumberedInt) else None


class IndexRange(Dataset):
    """The data set of a loader whose ``collate_fn`` makes the samples.

    Args:
        size (int): Number of seeds.
    """

    def __init__(self, size: int):
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        return index  # unchanged, as it may carry a batch id

    def __getitems__(self, indices: Sequence[int]) -> Sequence[int]:
        return indices


class Seeds(Sampler):
    """The seeds of each epoch: a loader's ``sampler``.

    Each index carries the id of its batch, for wrappers that batch the
    indices again. An iteration is an epoch of the loader.

    Args:
        epochs (Epochs): The batches of the loader.
    """

    def __init__(self, epochs: Epochs):
        self._epochs = epochs
        self._given = 0  # seeds of the next batch that were handed out

    def __iter__(self) -> Iterator[NumberedInt]:
        skip, self._given = self._given, 0
        place = self._epochs.begin()
        for number, indices in self._epochs.numbered(place):
            mark = BatchNumber(place.epoch, number)
            for index in indices[skip:]:
                self._given = skip = skip + 1
                if skip == len(indices):
                    place.advance()
                    self._given = skip = 0
                yield NumberedInt(index, mark)
        place.end()

    def __len__(self) -> int:
        return self._epochs.num_seeds()

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self._given *= epoch == self._epochs.epoch
        self._epochs.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the next index, for torchdata."""
        return {**self._epochs.state(), 'given': self._given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a state at the next iteration."""
        self._epochs.load(state)
        self._given = state['given']


class SequentialSeeds(Seeds, SequentialSampler):
    """Seeds in their order, as a type that torch's wrappers recognise."""


class SharedSeeds(Seeds, DistributedSampler):
    """Seeds of one process of several, which wrappers do not split again."""

    def __init__(self, epochs: Epochs):
        super().__init__(epochs)
        self.rank = epochs.shard.rank
        self.num_replicas = epochs.shard.world_size


class Batches(BatchSampler):
    """The batches of each epoch: a loader's ``batch_sampler``.

    Each batch carries its id. An iteration is an epoch of the loader.

    Args:
        sampler (Sampler): The sampler of the indices.
        batch_size (int): Number of seeds of a batch.
        drop_last (bool): Whether to drop an incomplete last batch.
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool):
        super().__init__(sampler, batch_size, drop_last)
        torchs = BatchSampler(sampler, batch_size, drop_last)
        self._epochs = Epochs(type(self).__name__, None, Shard())
        self._epochs.batches = GivenBatches(torchs, None)

    @classmethod
    def of(cls, epochs: Epochs, sampler: Any) -> 'Batches':
        """Returns the batches of a loader.

        Wrappers call the constructor instead, with their own sampler.
        """
        out = cls.__new__(cls)
        out.sampler, out._epochs = sampler, epochs
        out.batch_size = epochs.batches.batch_size  # type: ignore[assignment]
        out.drop_last = epochs.batches.drop_last
        return out

    def __iter__(self) -> Iterator[BatchIndex]:
        place = self._epochs.begin()
        for number, indices in self._epochs.numbered(place):
            place.advance()
            yield BatchIndex(indices, BatchNumber(place.epoch, number))
        place.end()

    def __len__(self) -> int:
        return len(self._epochs)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self._epochs.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the next batch, for torchdata."""
        return self._epochs.state()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resumes from a state at the next iteration."""
        self._epochs.load(state)


class NumberedBatches:
    """The index sampler of a loader's iterators: the epoch begun last.

    Args:
        epochs (Epochs): The batches of the loader.
        size (Callable, optional): Returns the number of batches in a group
            (:func:`grouped`); default: no groups.
        num_workers (int, optional): Number of workers that get groups.
        hand_out (Callable, optional): Called for each batch with the epoch and
            the share of it that is handed out.
        record (Callable, optional): Returns the index of a batch with further
            data for the workers.
    """

    def __init__(
        self,
        epochs: Epochs,
        size: Callable[[], int] | None = None,
        num_workers: int = 0,
        hand_out: Callable[[int, float], None] | None = None,
        record: Callable[['OwnIndex'], Any] | None = None,
    ):
        self.epochs = epochs
        self._size, self._num_workers = size, num_workers
        self.hand_out, self._record = hand_out, record

    def __iter__(self) -> Iterator[BatchIndex | Group]:
        # The epoch that has begun, or begins now.
        place = self.epochs.place or self.epochs.begin()
        numbered = self._number(place)
        if self._size is None:
            return numbered
        left = self.epochs.left(place.first)
        return grouped(numbered, self._size, left, self._num_workers)

    def _number(self, place: Place) -> Iterator[BatchIndex]:
        total = self.epochs.left(0)
        done = total - self.epochs.left(place.first)
        for number, indices in self.epochs.numbered(place):
            done += 1
            if self.hand_out is not None:
                self.hand_out(place.epoch, done / total)
            index = OwnIndex(indices, BatchNumber(place.epoch, number))
            yield index if self._record is None else self._record(index)

    def __len__(self) -> int:
        return len(self.epochs)
