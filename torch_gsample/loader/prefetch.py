"""Prefetches batches in a thread.

Indices or samples go in, batches come out in the same order. The only random
draws in the thread are those of samplers, which do not depend on the thread.

A graph on disk is sampled in two further threads: while one waits for its
reads, the other one draws.
"""

import atexit
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.look_ahead import Group
from torch_gsample.loader.threads import bound, keep
from torch_gsample.torch_private import pins_memory

_END = object()
#: Batches that are sampled at the same time. A further one has nothing to
#: overlap: reads of one graph take turns.
_TOGETHER = 2


class _Failure:
    """An exception of the thread, for the caller."""

    def __init__(self, error: BaseException):
        self._error: BaseException | None = error

    def take(self) -> BaseException:
        """Returns the exception and drops it, to avoid a reference cycle."""
        error, self._error = self._error, None
        assert error is not None
        return error


class Feed:
    """An iterable that the caller's thread fills.

    The indices of batches are drawn in the calling thread, so that torch's
    default generator is used in the same order as without prefetching.
    """

    def __init__(self, items: Iterable[Any]):
        self._items = iter(items)
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._ended = self._closed = False

    def advance(self) -> int:
        """Passes on the next item or the end; returns its batch count."""
        if self._ended:
            return 0
        try:
            item = next(self._items, _END)
        except Exception as error:
            item = _Failure(error)  # in the order of the batches
        self._ended = item is _END or isinstance(item, _Failure)
        self._queue.put(item)
        return (
            0 if self._ended else len(item) if isinstance(item, Group) else 1
        )

    def close(self) -> None:
        """Ends the iteration; items that are not read yet are dropped."""
        self._ended = self._closed = True
        self._queue.put(_END)

    def __iter__(self) -> Iterator[Any]:
        while (item := self._queue.get()) is not _END and not self._closed:
            if isinstance(item, _Failure):
                raise item.take()
            yield item


#: The running threads and their feeds.
_running: dict[threading.Thread, Feed] = {}


@atexit.register
def _stop_all() -> None:
    """Ends the threads of unfinished epochs.

    At exit, the interpreter would stop them inside an operator, which aborts
    the process.
    """
    for thread, feed in list(_running.items()):
        feed.close()
        thread.join()


#: Has the attribute ``prefetches`` in prefetching threads.
_this_thread = threading.local()


def mark_thread() -> None:
    """Makes the calling thread a prefetching one."""
    _this_thread.prefetches = True


def in_prefetch_thread() -> bool:
    """Whether the caller runs in a prefetching thread."""
    return getattr(_this_thread, 'prefetches', False)


def prefetched(
    feed: Feed,
    make_batches: Callable[[], Iterable[Any]],
    ahead: Callable[[], int],
    num_threads: int | None = None,
) -> Iterator[Any]:
    """Yields the batches that ``make_batches()`` makes from ``feed``.

    Args:
        feed (Feed): The indices, or the samples.
        make_batches (Callable): Returns an iterable of batches that reads
            ``feed``; called and iterated in the thread.
        ahead (Callable): Returns the number of batches to prefetch.
        num_threads (int, optional): Maximum number of threads that work on a
            batch.
    """
    results: queue.SimpleQueue = queue.SimpleQueue()
    is_bound = threading.Event()

    def work() -> None:
        mark_thread()
        try:
            try:
                bound(num_threads)
            finally:
                is_bound.set()
            for batch in make_batches():
                results.put(batch)
            results.put(_END)
        except BaseException as error:
            results.put(_Failure(error))

    waiting = 0

    def fill() -> None:
        nonlocal waiting
        while waiting <= ahead() and (count := feed.advance()):
            waiting += count

    fill()
    thread = threading.Thread(
        target=work, name='torch_gsample_prefetch', daemon=True
    )
    _running[thread] = feed
    try:
        thread.start()
        if num_threads is not None:
            is_bound.wait()
            keep()
        while (batch := results.get()) is not _END:
            if isinstance(batch, _Failure):
                raise batch.take()
            yield batch
            waiting -= 1
            fill()
    finally:
        feed.close()
        # The garbage collector may close this in any thread.
        if thread.is_alive() and thread is not threading.current_thread():
            thread.join()
        _running.pop(thread, None)


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
        and _reads_disk(loader._graph_sampler())
        and loader._num_threads() is None
        and loader._ahead_of is None
        and loader._replays is None
        and loader.static_shapes is None
        and loader.transform_sampler_output is None
        and (not loader.filter_per_worker or _joins_in_threads(loader.data))
    )


def _reads_disk(sampler: Any) -> bool:
    """Whether two threads overlap the reads of a sampler."""
    if not getattr(sampler, 'overlaps_reads', False):
        return False
    matrices = getattr(sampler, 'matrices', None)
    return matrices is None or any(
        A._disk is not None for A in matrices.values()
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
