"""Shares the batches of an epoch among the processes of a training run.

Batches of indices come in; those of one process go out, each with its number
among the batches of all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler

from torch_gsample import rng


@dataclass(frozen=True)
class Shard:
    """Which batches of an epoch are those of one process.

    Of ``world_size`` processes, number ``rank`` takes the batches ``rank``,
    ``rank + world_size`` and so on of the epoch that one process would have.
    With ``drop_last`` the batches of an incomplete last round are dropped,
    too, so that all processes have as many.

    Args:
        rank (int): The number of the process.
        world_size (int): How many processes there are.
        seed (int, optional): Seed of the order of the indices, which all
            processes must draw alike; none if torch's sampler of indices made
            the shares already.
    """

    rank: int
    world_size: int
    seed: int | None

    def number(
        self, batches: Any, epoch: int
    ) -> Iterator[tuple[int, list[int]]]:
        """Yields the batches of this process with their numbers.

        Args:
            batches (Iterable[List[int]]): A batch sampler.
            epoch (int): The epoch that begins.
        """
        if self.seed is None:
            for step, indices in enumerate(batches):
                yield step * self.world_size + self.rank, indices
            return
        in_order = _order(rng.hash_ids(self.seed, epoch))
        rest, first = iter(batches), 0
        while True:
            with in_order():
                round_ = list(islice(rest, self.world_size))
            if len(round_) < self.world_size and _drops_last(batches):
                return
            if self.rank < len(round_):
                yield first + self.rank, round_[self.rank]
            if len(round_) < self.world_size:
                return
            first += self.world_size

    def count(self, batches: Any) -> int:
        """Returns how many batches of a batch sampler are of this process."""
        if self.seed is None:
            return len(batches)
        rounds, rest = divmod(len(batches), self.world_size)
        return rounds + (self.rank < rest and not _drops_last(batches))


def _drops_last(batches: Any) -> bool:
    return getattr(batches, 'drop_last', False)


def _order(seed: int) -> Any:
    """Returns a context in which torch's default generator is another one.

    Samplers of indices draw from it, and processes whose models draw
    otherwise must still agree.
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


def read_shard(
    name: str, kwargs: dict[str, Any], seed: int | None
) -> Shard | None:
    """Takes ``rank`` and ``world_size`` out of the arguments of a loader.

    A :class:`torch.utils.data.DistributedSampler` among them has shared the
    seeds already: it says what else there is.

    Args:
        name (str): The loader, for messages.
        kwargs (Dict[str, Any]): Its arguments.
        seed (int, optional): The seed that its user gave.

    Raises:
        TypeError: If a number is no integer.
        ValueError: If they contradict each other, or there is no seed.
    """
    rank, world_size = kwargs.pop('rank', None), kwargs.pop('world_size', None)
    shared = _distributed_sampler(kwargs)
    if rank is None and world_size is None:
        if shared is None:
            return None
        return Shard(shared.rank, shared.num_replicas, None)
    if rank is None or world_size is None:
        raise ValueError(
            f"{name}: 'rank' and 'world_size' must be given together (got "
            f'{rank} and {world_size})'
        )
    rank = integer(name, 'rank', rank)
    world_size = integer(name, 'world_size', world_size)
    if world_size < 1:
        raise ValueError(
            f"{name}: 'world_size' must be positive (got {world_size})"
        )
    if not 0 <= rank < world_size:
        raise ValueError(
            f"{name}: 'rank' must be in [0, {world_size}) (got {rank})"
        )
    if shared is not None:
        raise ValueError(
            f"{name}: 'rank' and 'world_size' must not be given with a "
            f'DistributedSampler, which shares the seeds already'
        )
    if seed is None:
        raise ValueError(
            f"{name}: 'seed' must be given with 'world_size', the same in all "
            f'processes (got None)'
        )
    return Shard(rank, world_size, seed)


def integer(name: str, key: str, value: Any) -> int:
    """Returns a number that may be one of NumPy.

    Raises:
        TypeError: If it is no integer.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name}: '{key}' must be an integer (got {value!r})")
    return int(value)


def _distributed_sampler(kwargs: dict[str, Any]) -> DistributedSampler | None:
    batches = kwargs.get('batch_sampler')
    for sampler in (kwargs.get('sampler'), getattr(batches, 'sampler', None)):
        if isinstance(sampler, DistributedSampler):
            return sampler
    return None
