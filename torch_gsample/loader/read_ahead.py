"""Prefetches samples for a store that reads their features early.

Samples come in as they are made; they go out when the store has read the rows
of their nodes, or has decided not to.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch_gsample.loader.look_ahead import one_by_one
from torch_gsample.loader.prefetch import (
    begin_samples,
    overlapped,
    prefetched,
)
from torch_gsample.torch_private import pins_memory


def store_plans_reads(data: Any) -> bool:
    """Whether the data of a loader has a store that prefetches rows."""
    return isinstance(data, tuple) and getattr(data[0], 'plans_reads', False)


def plans_reads(loader: Any) -> bool:
    """Whether the features of a loader's samples are prefetched."""
    data = getattr(loader, 'data', None)
    return not loader.filter_per_worker and store_plans_reads(data)


def read_ahead(
    loader: Any, iterate: Callable[[], Iterator[Any]]
) -> tuple[Iterator[Any], bool]:
    """Begins an epoch of samples whose features are prefetched.

    Without workers, a thread samples while features are read and joined.

    Args:
        loader (KeyedLoader): One of our loaders.
        iterate (Callable): Returns torch's iterator of samples.

    Returns:
        Tuple[Iterator[Any], bool]: The samples, and whether batches are copied
        to pinned memory.
    """
    in_thread = loader.prefetch > 0
    if loader.num_workers > 0 or not in_thread:
        made = samples = iterate()
    else:
        feed, made = begin_samples(loader, iterate)
        samples = prefetched(
            feed,
            lambda: overlapped(loader, feed, made),
            lambda: loader.prefetch,
            loader._num_threads(),
        )
    # One batch is being joined, another one is queued.
    behind = loader.prefetch + 2 if in_thread else 0
    ahead = loader.data[0].read_ahead(one_by_one(samples), behind, len(loader))
    return ahead, pins_memory(made)
