"""Samples batches of a graph on disk in two threads.

Indices come in, samples go out in the same order. While one thread waits for
its reads, the other one draws. Samples are functions of (seed, epoch, batch),
so the threads do not change them.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.prefetch import Feed, mark_thread
from torch_gsample.torch_private import pins_memory

#: Batches that are sampled at the same time. A further one has nothing to
#: overlap: reads of one graph take turns.
_TOGETHER = 2


def begin_samples(loader: Any, iterate: Callable[[], Any]) -> tuple[Feed, Any]:
    """Returns a feed of indices, and torch's iterator that reads it.

    Args:
        loader (KeyedLoader): One of our loaders, without workers.
        iterate (Callable): Returns torch's iterator. Torch draws a base seed
            for it, so it is called in the caller's thread.
    """
    feed = Feed(loader._index_sampler)
    loader._feed = feed
    try:
        return feed, iterate()
    finally:
        loader._feed = None


def overlapped(loader: Any, feed: Feed, made: Any) -> Iterator[Any]:
    """Returns the samples of torch's iterator, drawn in two threads if useful.

    Args:
        loader (KeyedLoader): See :func:`begin_samples`, as for all arguments.
        feed (Feed): The indices.
        made (Iterator): Torch's iterator.
    """
    if _overlaps(loader) and not pins_memory(made):
        return _in_threads(made.fetch, feed)
    return made


def _overlaps(loader: Any) -> bool:
    """Whether samples read a disk, and call no function of the user.

    A sampler with a maximum number of threads has one.
    """
    return (
        loader.prefetch > 0
        and getattr(loader._graph_sampler(), 'overlaps_reads', False)
        and loader._num_threads() is None
        and loader._ahead_of is None
        and loader._replays is None
        and loader.static_shapes is None
        and loader.transform_sampler_output is None
        and (not loader.filter_per_worker or _joins_in_threads(loader.data))
    )


def _joins_in_threads(data: Any) -> bool:
    """Whether features can be joined in several threads."""
    store = data[0] if isinstance(data, tuple) else data
    in_memory = type(store) in (Data, HeteroData)
    return in_memory or getattr(store, 'reads_in_threads', False)


def _in_threads(
    make: Callable[[Any], Any], feed: Iterable[Any]
) -> Iterator[Any]:
    """Yields ``make(item)`` of each item, in order.

    The first one is made alone: it reads what is computed once for a graph.
    A feed with ``_TOGETHER`` items or more that are not taken never waits for
    an item that is not yielded.
    """
    items = iter(feed)
    for item in items:
        yield make(item)
        break
    begun: deque[Future] = deque()
    with ThreadPoolExecutor(_TOGETHER, initializer=mark_thread) as threads:
        try:
            for item in items:
                begun.append(threads.submit(make, item))
                if len(begun) == _TOGETHER:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()
