"""Reads the rows of many future batches at once.

Samples come in; the same samples go out when their rows are in memory. Rows
are found by index. Missing rows are read individually, so a wrong guess costs
only time.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor

from torch_gsample.storage.background import Background
from torch_gsample.storage.copy_rows import copy_rows
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.sorted_keys import SortedKeys, distinct

Key = tuple[Any, str]

#: Rows that a thread reads between checks for a stop request.
_PIECE = 1 << 16


def sampled_nodes(sample: Any) -> dict[Any, np.ndarray]:
    """Returns the nodes of a sample by type, int64 ``[num_nodes]`` each."""
    node = sample.node
    by_type = node if isinstance(node, dict) else {None: node}
    return {t: ids.cpu().numpy() for t, ids in by_type.items()}


def sample_bytes(sample: Any) -> int:
    """Returns the memory of a sample's tensors."""
    total, sample = 0, getattr(sample, 'out', sample)
    for value in vars(sample).values():
        parts = value.values() if isinstance(value, dict) else [value]
        total += sum(p.nbytes for p in parts if isinstance(p, Tensor))
    return total


class Samples:
    """Future samples; an error is raised after all earlier samples.

    Args:
        samples (Iterable[Any]): The samples.
    """

    def __init__(self, samples: Iterable[Any]):
        self._samples = iter(samples)
        self._held: deque[Any] = deque()  # a sample that did not fit
        self._failure: Exception | None = None

    def peek(self) -> Any:
        """Returns the next sample; None at the end or at an error."""
        if not self._held and self._failure is None:
            try:
                self._held.extend(islice(self._samples, 1))
            except Exception as error:
                self._failure = error
        return self._held[0] if self._held else None

    def put_back(self, samples: list[Any]) -> None:
        """Puts samples back at the front."""
        self._held.extendleft(reversed(samples))

    def pop(self) -> Any:
        """Removes the sample returned by :meth:`peek`."""
        return self._held.popleft()

    def end(self) -> None:
        """Raises the error, after all earlier samples."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def __iter__(self) -> Iterator[Any]:
        while self.peek() is not None:
            yield self.pop()
        self.end()


class Window:
    """A window of batches, and their distinct rows."""

    def __init__(self) -> None:
        self.samples: list[Any] = []
        self.rows: dict[Any, np.ndarray] = {}
        self.row_bytes = self.sample_bytes = 0
        self._new: dict[Any, list[np.ndarray]] = {}
        self._keys: dict[Any, SortedKeys] = {}
        self._data: dict[Key, np.ndarray] = {}
        self._work: Background | None = None
        #: Seconds of its reads.
        self.seconds = 0.0

    def close(self) -> None:
        """Sorts the rows, after the last sample."""
        self.rows = {
            group: np.sort(np.concatenate(parts))
            for group, parts in self._new.items()
        }
        self._keys = {g: SortedKeys(rows) for g, rows in self.rows.items()}
        self._new = {}

    def start(
        self,
        files: dict[Key, RowSource],
        memory: np.ndarray,
        gaps: dict[Key, int],
    ) -> None:
        """Starts a thread that reads the rows into ``memory``."""
        at = 0
        for (group, name), file in files.items():
            rows = self.rows.get(group)
            if rows is not None:
                size = len(rows) * file.row_bytes
                part = memory[at : at + size].reshape(
                    len(rows), file.row_bytes
                )
                self._data[group, name] = part
                at += size

        def work(stopped: threading.Event) -> None:
            start = time.perf_counter()
            for key, data in self._data.items():
                rows = self.rows[key[0]]
                for at in range(0, len(rows), _PIECE):
                    if stopped.is_set():
                        return
                    part = slice(at, at + _PIECE)
                    files[key].read_to(rows[part], data[part], gaps[key])
            self.seconds = time.perf_counter() - start

        self._work = Background(work)

    def wait(self) -> bool:
        """Waits for the rows; returns whether they were read.

        If not, each batch reads its rows itself and raises the error.
        """
        assert self._work is not None
        try:
            self._work.wait()
        except (IndexError, OSError, ValueError):
            return False
        return True

    def stop(self) -> None:
        """Stops the thread, if it runs."""
        if self._work is not None:
            self._work.stop()

    def find(
        self,
        key: Key,
        index: np.ndarray,
        out: np.ndarray,
        to: np.ndarray | None,
    ) -> bool:
        """See :meth:`WindowReads.find`."""
        keys, data = self._keys.get(key[0]), self._data.get(key)
        if keys is None or data is None:
            return False
        at, missing = keys.find(index)
        if missing >= 0:
            return False
        copy_rows(data, at, out, to)
        return True


class Windows:
    """Groups batches into windows of bounded size.

    Args:
        samples (Samples): The samples.
        widths (Dict[Any, int]): Bytes of all rows of a node, by type.
        counts (Dict[Any, int]): Number of nodes, by type.
        budget (int): Memory for rows of two windows and samples of three.
        most (int): The maximum number of batches of a window.
    """

    def __init__(
        self,
        samples: Samples,
        widths: dict[Any, int],
        counts: dict[Any, int],
        budget: int,
        most: int,
    ):
        self.samples, self._widths = samples, widths
        self._budget, self._most = budget, most
        self._seen = {t: np.zeros(counts[t], bool) for t in widths}

    def add(self, window: Window) -> bool:
        """Adds the next batch to a window, if it exists and fits."""
        if len(window.samples) == self._most:
            return False
        sample = self.samples.peek()
        if sample is None:
            return False
        new, size = {}, window.row_bytes
        for group, ids in sampled_nodes(sample).items():
            seen = self._seen.get(group)
            # Ids out of range are an error of their batch.
            if seen is not None and ids.max(initial=-1) < len(seen):
                ids = ids[~seen[ids]]
                # Several trees of a sample may have the same node.
                new[group] = distinct(ids)
                size += len(new[group]) * self._widths[group]
        held = window.sample_bytes + sample_bytes(sample)
        fits = 2 * size + 3 * held <= self._budget
        if not fits and window.samples:
            return False
        window.samples.append(self.samples.pop())
        if not fits:  # too large alone: read on demand
            return True
        for group, ids in new.items():
            self._seen[group][ids] = True
            window._new.setdefault(group, []).append(ids)
        window.row_bytes, window.sample_bytes = size, held
        return True

    def complete(self, window: Window) -> Window:
        """Fills a window and closes it."""
        while self.add(window):
            pass
        window.close()
        for group, rows in window.rows.items():
            self._seen[group][rows] = False
        return window


class WindowReads:
    """Reads windows; reads the next one while one is used.

    Args:
        files (Dict[Tuple, RowSource]): The files, by group and name.
        budget (int): Bytes of memory, without the marks of nodes.
        gaps (Dict[Tuple, int]): See :meth:`RowSource.read`, by file.
        most (int): The maximum number of batches of a window.
    """

    def __init__(
        self,
        files: dict[Key, RowSource],
        budget: int,
        gaps: dict[Key, int],
        most: int,
    ):
        self.files, self.budget = files, budget
        self._gaps, self._most = gaps, most
        self._halves = [page_aligned(budget // 2) for _ in range(2)]
        self._live: list[Window] = []
        self._lock = threading.Lock()
        #: Seconds of reads and of waiting, and numbers of batches and windows.
        self.stats = {'read': 0.0, 'waited': 0.0, 'batches': 0, 'windows': 0}

    def collect(self, samples: Samples) -> Windows:
        """Returns the grouping of samples into windows."""
        widths: dict[Any, int] = {}
        counts: dict[Any, int] = {}
        for (group, _), file in self.files.items():
            # Includes the index of a row, and its share of a lookup table.
            widths[group] = widths.get(group, 16) + file.row_bytes
            counts[group] = max(counts.get(group, 0), len(file))
        return Windows(samples, widths, counts, self.budget, self._most)

    def find(
        self,
        key: Key,
        index: np.ndarray,
        out: np.ndarray,
        to: np.ndarray | None,
    ) -> bool:
        """Copies stored rows, or returns False if one is missing.

        Args:
            key (Tuple): The file.
            index (numpy.ndarray): int64 ``[n]``, the rows.
            out (numpy.ndarray): uint8 ``[num_out, row_bytes]``.
            to (numpy.ndarray, optional): int64 ``[n]``, their positions in
                ``out``; the first ``n`` by default.
        """
        with self._lock:  # prevents reuse of a buffer meanwhile
            return any(
                window.find(key, index, out, to) for window in self._live
            )

    def run(self, windows: Windows, behind: int) -> Iterator[Any]:
        """Yields samples when their rows are read.

        Args:
            windows (Windows): The windows.
            behind (int): How many samples may wait to be joined with their
                features while the next one is requested.
        """
        halves = list(self._halves)
        now, before, after = windows.complete(Window()), Window(), Window()
        try:
            now.start(self.files, halves[0], self._gaps)
            after, turn = windows.complete(after), 1
            while now.samples:
                self._await(now)
                later, started = Window(), False
                with ThreadPoolExecutor(1) as thread:
                    for i, sample in enumerate(now.samples):
                        if i == behind:
                            self._release(before)
                            after.start(self.files, halves[turn], self._gaps)
                            started = True
                        # Samples are drawn in this thread, sorted in another.
                        windows.samples.peek()
                        added = thread.submit(windows.add, later)
                        yield sample
                        added.result()
                if not started:
                    self._release(before)
                    after.start(self.files, halves[turn], self._gaps)
                turn = 1 - turn
                before, now, after = now, after, windows.complete(later)
        except BaseException:  # the last windows are used after the epoch
            for window in (now, after, before):
                window.stop()
                self._release(window)
            raise
        windows.samples.end()

    def _await(self, window: Window) -> None:
        start = time.perf_counter()
        came = window.wait()
        self.stats['waited'] += time.perf_counter() - start
        self.stats['read'] += window.seconds
        self.stats['batches'] += len(window.samples)
        self.stats['windows'] += 1
        if came:
            with self._lock:
                self._live.append(window)

    def _release(self, window: Window) -> None:
        with self._lock:
            if window in self._live:
                self._live.remove(window)
