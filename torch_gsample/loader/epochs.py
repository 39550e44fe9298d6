"""The batches of each epoch of a loader: which seeds, in which order.

An epoch and a batch come in; the batches of this process from there on go out,
as lists of indices with batch ids. In our own order, earlier batches are not
computed.
"""

import itertools
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torch_gsample import rng
from torch_gsample.loader.order import order_of
from torch_gsample.loader.sharding import Shard, integer
from torch_gsample.loader.state import VERSION, check_state

#: Indices computed at a time.
_WINDOW = 1 << 14


class Place:
    """The caller's position in an epoch.

    Args:
        epoch (int): The epoch.
        first (int): The first batch.
        step (int): The number of processes.
        count (int, optional): The number of this process's batches from there.
    """

    def __init__(self, epoch: int, first: int, step: int, count: int | None):
        self.epoch, self.first, self.step = epoch, first, step
        self._left = count
        self._handed = 0

    def advance(self) -> None:
        """Counts a delivered batch."""
        self._handed += 1

    def end(self) -> None:
        """Marks the end of the epoch."""
        self._left = self._handed

    def is_new(self, epoch: int) -> bool:
        """Whether no batch of the epoch was delivered."""
        return self.epoch == epoch and self._handed == 0

    def upcoming(self) -> tuple[int, int]:
        """Returns the next epoch and batch."""
        if self._handed == self._left:
            return self.epoch + 1, 0
        return self.epoch, self.first + self._handed * self.step


class OrderedBatches:
    """Batches of all seeds, in order or shuffled by a seed.

    Args:
        size (int): The number of seeds.
        batch_size (int): The number of seeds of a batch.
        drop_last (bool): Whether to drop a smaller last batch.
        seed (int, optional): The seed of the order, if shuffled.
    """

    def __init__(
        self, size: int, batch_size: int, drop_last: bool, seed: int | None
    ):
        self.size, self.batch_size, self.seed = size, batch_size, seed
        self.drop_last = drop_last

    def __len__(self) -> int:
        full, rest = divmod(self.size, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def read(self, epoch: int, batches: range) -> Iterator[list[int]]:
        """Yields some of the batches of an epoch."""
        at_once = max(_WINDOW // self.batch_size, 1)
        for start in range(0, len(batches), at_once):
            some = np.array(batches[start : start + at_once])
            first = some[:, None] * self.batch_size
            index = (first + np.arange(self.batch_size)).ravel()
            index = index[index < self.size]
            if self.seed is not None:
                index = order_of(self.seed, epoch, self.size).at(index)
            every = index.tolist()
            for i in range(0, len(every), self.batch_size):
                yield every[i : i + self.batch_size]


class GivenBatches:
    """Batches of a user's sampler, read in order.

    With a seed, draws of torch's default generator for the sampler are a
    function of (seed, epoch), and the generator's state is restored. A sampler
    with epochs, such as a :class:`torch.utils.data.DistributedSampler`, gets
    them, unless the user sets them.

    Args:
        batches (Iterable[List[int]]): The batch sampler.
        seed (int, optional): The seed.
    """

    def __init__(self, batches: Any, seed: int | None):
        self.batches, self.seed = batches, seed
        self._told = getattr(self.sampler, 'epoch', None)

    @property
    def sampler(self) -> Any:
        """The sampler of indices, if known."""
        return getattr(self.batches, 'sampler', None)

    @property
    def batch_size(self) -> int | None:
        """The number of seeds of a batch, if known."""
        return getattr(self.batches, 'batch_size', None)

    @property
    def drop_last(self) -> bool:
        """Whether to drop a smaller last batch."""
        return getattr(self.batches, 'drop_last', False)

    def __len__(self) -> int:
        return len(self.batches)

    def read(self, epoch: int, batches: range) -> Iterator[list[int]]:
        """Yields some of the batches of an epoch."""
        sampler = self.sampler
        if self._told is not None and sampler.epoch != self._told:
            self._told = None  # the user sets it
        if self._told is not None and hasattr(sampler, 'set_epoch'):
            sampler.set_epoch(epoch)
            self._told = sampler.epoch
        rest = self.batches if self.seed is None else self._in_order(epoch)
        return itertools.islice(
            rest, batches.start, batches.stop, batches.step
        )

    def _in_order(self, epoch: int) -> Iterator[list[int]]:
        assert self.seed is not None
        in_order = _generator(rng.hash_ids(self.seed, epoch))
        with in_order():
            rest = iter(self.batches)
        while True:
            with in_order():
                batch = next(rest, None)
            if batch is None:
                return
            yield batch


def _generator(seed: int) -> Any:
    """Returns a context with another state of torch's default generator.

    Index samplers draw from it, and processes with models that draw
    differently must still agree.
    """
    state = torch.Generator().manual_seed(seed).get_state()

    @contextmanager
    def in_order() -> Iterator[None]:
        nonlocal state
        outer = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            yield
        finally:
            state = torch.get_rng_state()
            torch.set_rng_state(outer)

    return in_order


class Epochs:
    """The batches of a loader, and the start of its next epoch.

    It does not refer to the loader, because iterators hold it.

    Args:
        name (str): The loader, for messages.
        seed (int, optional): The seed of the order, if it has one.
        shard (Shard): The share of this process.
    """

    batches: OrderedBatches | GivenBatches

    def __init__(self, name: str, seed: int | None, shard: Shard):
        self.name, self.seed, self.shard = name, seed, shard
        self.epoch = self.batch = 0
        #: The latest epoch, unless another one was set.
        self.place: Place | None = None

    def set_epoch(self, epoch: int) -> None:
        """Sets the next epoch, from its start.

        The epoch of a loaded state continues at its position, even if a
        trainer sets the epoch of an existing iterator.
        """
        if integer('set_epoch', 'epoch', epoch) < 0:
            raise ValueError(
                f"set_epoch: 'epoch' must not be negative (got {epoch})"
            )
        place = self.place
        if place is not None and place.is_new(epoch):
            self.epoch, self.batch = epoch, place.first
            return
        if epoch != self.epoch:
            self.epoch, self.batch = epoch, 0
        self.place = None

    def begin(self) -> Place:
        """Starts the next epoch."""
        numbers = self._numbers(self.batch)
        count = None if self._total() is None else len(numbers)
        place = Place(self.epoch, self.batch, self.shard.world_size, count)
        self.epoch, self.batch, self.place = self.epoch + 1, 0, place
        return place

    def numbered(self, place: Place) -> Iterator[tuple[int, list[int]]]:
        """Yields the batches of an epoch with their ids."""
        numbers = own = self._numbers(place.first)
        size = self.shard.world_size
        if self.shard.is_dealt:  # its sampler has only this process's batches
            own = range(place.first // size, sys.maxsize)
        elif isinstance(self.batches, GivenBatches) and size == 1:
            # Independent of the sampler's length.
            numbers = own = range(place.first, sys.maxsize)
        elif self._total() is None and self.batches.drop_last:
            every = range(place.first, sys.maxsize)
            rounds = self.batches.read(place.epoch, every)
            return zip(numbers, self._of_whole_rounds(rounds), strict=False)
        lists = self.batches.read(place.epoch, own)
        return zip(numbers, lists, strict=False)

    def _of_whole_rounds(
        self, batches: Iterator[list[int]]
    ) -> Iterator[list[int]]:
        """Yields this process's batch of each round of all processes."""
        size = self.shard.world_size
        while len(round_ := list(itertools.islice(batches, size))) == size:
            yield round_[self.shard.rank]

    def _numbers(self, first: int) -> range:
        """The ids of this process's batches."""
        rank, step = self.shard.rank, self.shard.world_size
        total = self._total()
        if total is None:
            return range(first + rank, sys.maxsize, step)
        if self.shard.is_dealt:
            first, total = first // step * step, total * step
        elif self.batches.drop_last:
            total -= (total - first) % step
        return range(min(first + rank, total), total, step)

    def one(self, epoch: int, batch: int) -> list[int]:
        """Returns the indices of a batch of any process."""
        if self.shard.is_dealt:
            batch //= self.shard.world_size
        found = self.batches.read(epoch, range(batch, batch + 1))
        return next(iter(found))

    def __len__(self) -> int:
        len(self.batches)  # raises an error if unknown
        return len(self._numbers(0))

    def total(self) -> int:
        """Returns the number of batches of an epoch, over all processes."""
        dealt = self.shard.world_size if self.shard.is_dealt else 1
        return len(self.batches) * dealt

    def left(self, first: int) -> int:
        """Returns the number of this process's batches from one on."""
        return len(self._numbers(first))

    def num_seeds(self) -> int:
        """Returns the number of seeds of this process's batches."""
        assert isinstance(self.batches, OrderedBatches)
        numbers = self._numbers(0)
        size, per_batch = self.batches.size, self.batches.batch_size
        short = len(numbers) > 0 and numbers[-1] == size // per_batch
        missing = per_batch - size % per_batch if short else 0
        return len(numbers) * per_batch - missing

    def _total(self) -> int | None:
        try:
            return len(self.batches)
        except TypeError:  # of a sampler without a length
            return None

    def upcoming(self) -> tuple[int, int]:
        """Returns the caller's next epoch and batch."""
        if self.place is None:
            return self.epoch, self.batch
        return self.place.upcoming()

    def state(self) -> dict[str, Any]:
        """Returns the next position, and a description of the loader."""
        epoch, batch = self.upcoming()
        return {
            'version': VERSION,
            'seed': self.seed,
            'epoch': epoch,
            'batch': batch,
            'order': self._facts(),
        }

    def _facts(self) -> dict[str, Any]:
        batches = self.batches
        facts = {
            'shuffle': isinstance(batches, OrderedBatches)
            and batches.seed is not None,
            'batch_size': batches.batch_size,
            'drop_last': batches.drop_last,
        }
        if isinstance(batches, OrderedBatches):
            facts['seeds'] = batches.size
        return facts

    def load(self, state: dict[str, Any]) -> None:
        """Continues at the position of a state.

        Raises:
            TypeError: If it is not a state.
            ValueError: If it belongs to another loader; the message names the
                difference.
        """
        check_state(self.name, state, self.state())
        self.place = None
        self.epoch, self.batch = state['epoch'], state['batch']
        if self.seed is None and self.batch > 0:
            warnings.warn(
                f"{self.name}: without a 'seed', the order of epoch "
                f'{self.epoch} is lost: it restarts from batch 0, not '
                f'{self.batch}',
                stacklevel=3,
            )
            self.batch = 0
