"""Splits the batches of an epoch among the processes of a training run.

The arguments of a loader come in; the share of this process goes out.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

from torch.utils.data.distributed import DistributedSampler


@dataclass(frozen=True)
class Shard:
    """The share of one process in the batches of an epoch.

    Of the batches that a single process would have, process ``rank`` of
    ``world_size`` gets batches ``rank``, ``rank + world_size`` and so on. With
    ``drop_last``, an incomplete last round is dropped, too, so that all
    processes have equal numbers of batches.

    Args:
        rank (int): The rank of the process.
        world_size (int): Number of processes.
        is_dealt (bool): Whether torch's index sampler has already split the
            seeds.
    """

    rank: int = 0
    world_size: int = 1
    is_dealt: bool = False


def read_shard(name: str, kwargs: dict[str, Any], seed: int | None) -> Shard:
    """Removes ``rank`` and ``world_size`` from the arguments of a loader.

    A :class:`torch.utils.data.DistributedSampler` among them has already split
    the seeds, and sets the rank and the number of processes.

    Args:
        name (str): The loader, for errors.
        kwargs (Dict[str, Any]): Its arguments.
        seed (int, optional): The user's seed.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If they contradict each other, or there is no seed.
    """
    rank, world_size = kwargs.pop('rank', None), kwargs.pop('world_size', None)
    shared = _distributed_sampler(kwargs)
    if rank is None and world_size is None:
        if shared is None:
            return Shard()
        return Shard(shared.rank, shared.num_replicas, is_dealt=True)
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
            f"{name}: 'rank' and 'world_size' must not be set with a "
            f'DistributedSampler, which already splits the seeds'
        )
    if seed is None:
        raise ValueError(
            f"{name}: 'seed' is required with 'world_size', equal in all "
            f'processes (got None)'
        )
    return Shard(rank, world_size)


def integer(name: str, key: str, value: Any) -> int:
    """Returns an integer, which may be one of NumPy.

    Raises:
        TypeError: If it is not an integer.
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
