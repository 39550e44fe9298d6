"""Prefetches batches in a thread.

Indices or samples go in, batches come out in the same order. The only random
draws in the thread are those of samplers, which do not depend on the thread.
"""

import atexit
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch_gsample.loader.look_ahead import Group
from torch_gsample.loader.threads import bound, keep

_END = object()


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
