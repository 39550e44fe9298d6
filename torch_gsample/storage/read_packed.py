"""Reads the rows of many future batches by one scan of their file.

Samples come in. While earlier batches are used, a scan copies the rows of each
batch to a scratch file, in the order of batches. The same samples go out, and
the rows of each are one read. If the scratch file is full or damaged, rows are
read from the features, so every batch is right.
"""

import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.copy_rows import copy_rows
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.format import round_up
from torch_gsample.storage.packed_window import PackedWindow, Shares
from torch_gsample.storage.read_model import Reads
from torch_gsample.storage.read_windows import (
    Key,
    Samples,
    sample_bytes,
    sampled_nodes,
)
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.sorted_keys import distinct


@dataclass
class Batch:
    """The rows of a batch by type, and their positions.

    When all features are read, the rows are freed.
    """

    window: PackedWindow
    number: int
    rows: dict[Any, np.ndarray]
    #: Features already read.
    found: set[Key] = field(default_factory=set)
    freed: bool = False


class PackedReads:
    """Packs windows; packs the next one while one is used.

    Args:
        files (Dict[Tuple, RowSource]): The files, by group and name.
        memory (int): Bytes of memory.
        folder (Path): A folder on the target disk.
        most (int): The maximum number of batches of a window.
        missing (Callable): Selects the nodes to pack: a function of type and
            ids that returns bool ``[n]``.
    """

    def __init__(
        self,
        files: dict[Key, RowSource],
        memory: int,
        folder: Path,
        most: int,
        missing: Any,
    ):
        self._files, self._most = files, most
        self._folder, self._missing = folder, missing
        self._shares = Shares(memory, folder)
        self._sizes: dict[Any, int] = {}
        for (group, _), file in files.items():
            self._sizes[group] = max(self._sizes.get(group, 0), len(file))
        self._live: deque[Batch] = deque()
        self._memory = np.empty(0, np.uint8)
        # The garbage collector may close an iteration at any time.
        self._lock = threading.RLock()
        #: The reason why packing stopped.
        self.failure: Exception | None = None
        #: See :class:`WindowReads`; also the bytes written.
        self.stats = {
            'read': 0.0,
            'waited': 0.0,
            'batches': 0,
            'windows': 0,
            'written': 0,
        }

    def needed(self, sample: Any) -> dict[Any, np.ndarray]:
        """Returns the rows of a sample to pack, by type."""
        out = {}
        for group, ids in sampled_nodes(sample).items():
            size = self._sizes.get(group)
            # Ids out of range are an error of their batch.
            if size is not None and ids.max(initial=-1) < size:
                rows = distinct(ids)
                rows = rows[self._missing(group, rows)]
                item = np.uint32 if size <= 1 << 32 else np.int64
                out[group] = rows.astype(item)
        return out

    def expected(
        self, samples: list[Any], total: int
    ) -> tuple[int, dict[Key, Reads]]:
        """Returns the batches of a window, and the reads per batch by file.

        Args:
            samples (List[Any]): Some of the samples.
            total (int): The total number of samples.
        """
        n, lists = max(len(samples), 1), 0
        written = sum(map(sample_bytes, samples))
        rows = dict.fromkeys(self._files, 0)
        copied = dict.fromkeys(self._files, 0)
        for sample in samples:
            needed, nodes = self.needed(sample), sampled_nodes(sample)
            lists += sum(part.nbytes for part in needed.values())
            for key in self._files:
                count = len(needed.get(key[0], ()))
                rows[key] += count
                copied[key] += count + len(nodes.get(key[0], ()))
        size = {key: rows[key] * f.row_bytes for key, f in self._files.items()}
        written += sum(size.values())
        most = min(self._most, total)
        count = self._shares.batches(lists / n, written / n, most)
        # The last window may be shorter.
        windows = -(-total // max(count, 1)) if total < sys.maxsize else 1
        batches = total if total < sys.maxsize else max(count, 1)
        return count, {
            key: Reads(
                written=written / n / len(size),
                scanned=size[key] / n
                + len(file) * file.row_bytes * windows / batches,
                rows=copied[key] / n,
            )
            for key, file in self._files.items()
        }

    def find(
        self,
        key: Key,
        index: np.ndarray,
        out: np.ndarray,
        to: np.ndarray | None,
    ) -> bool:
        """Copies stored rows, or returns False if one is not packed.

        See :meth:`WindowReads.find` for the arguments.
        """
        with self._lock:
            # Batches arrive in order: it is the first one without this
            # feature.
            for batch in sorted(self._live, key=lambda b: key in b.found):
                if self._read(batch, key, index, out, to):
                    batch.found.add(key)
                    if len(batch.found) == len(self._files):
                        self._free(batch)
                    return True
        return False

    def _read(
        self,
        batch: Batch,
        key: Key,
        index: np.ndarray,
        out: np.ndarray,
        to: np.ndarray | None,
    ) -> bool:
        packed, rows = batch.window.packed(key), batch.rows.get(key[0], ())
        if (
            batch.freed
            or packed is None
            or len(rows) == 0
            or len(rows) > len(index)
        ):
            return False
        # Packed rows ascend, so each piece of them has a range of `order`.
        order = np.argsort(index)
        ascending = index[order]
        starts = np.flatnonzero(np.diff(ascending, prepend=-1))
        if not np.array_equal(ascending[starts], rows):
            return False
        at = np.repeat(
            np.arange(len(rows)), np.diff(starts, append=len(index))
        )
        to = order if to is None else to[order]
        try:
            for first, part in packed.pieces(batch.number, self._piece()):
                begin, end = np.searchsorted(at, (first, first + len(part)))
                copy_rows(part, at[begin:end] - first, out, to[begin:end])
            return True
        except (OSError, ValueError) as error:
            warnings.warn(
                f'DiskFeatureStore: {error}; rows are read from the features '
                'instead',
                stacklevel=2,
            )
            batch.window.drop()
        return False

    def _piece(self) -> np.ndarray:
        """Memory for packed rows."""
        if self._memory.size == 0:
            rows = max(file.row_bytes for file in self._files.values())
            least = round_up(rows, BLOCK) + 2 * BLOCK
            self._memory = page_aligned(max(self._shares.batch, least))
        return self._memory

    def run(self, samples: Samples, behind: int) -> Iterator[Any]:
        """Yields samples when their rows are packed or packing has stopped.

        It ends early if the disk is full; ``failure`` has the reason.

        Args:
            samples (Samples): The samples.
            behind (int): How many samples may wait to be joined with their
                features while the next one is requested.
        """
        now = after = later = self._window()
        try:
            now = self._complete(self._window(), samples)
            now.start()
            after = self._complete(self._window(), samples)
            while now.samples:
                self._await(now)
                if self.failure is None:
                    after.start()
                later = self._window()
                yield from self._use(now, later, samples, behind)
                now, after = after, self._complete(later, samples)
                later = self._window()
        except BaseException:  # the last batches are used after the epoch
            self.close(now, after, later)
            raise
        if self.failure is None:
            samples.end()

    def _use(
        self,
        now: PackedWindow,
        later: PackedWindow,
        samples: Samples,
        behind: int,
    ) -> Iterator[Any]:
        """Yields the samples of a window, and adds as many to a later one.

        A thread sorts, writes and reads samples; they are drawn in this one.
        """
        with ThreadPoolExecutor(1) as thread:
            taken = thread.submit(now.take, 0)
            for i in range(len(now.samples)):
                samples.peek()
                added = thread.submit(self._add, later, samples)
                sample, rows = taken.result()
                if i + 1 < len(now.samples):
                    taken = thread.submit(now.take, i + 1)
                self._show(Batch(now, i, rows), behind)
                yield sample
                added.result()

    def _window(self) -> PackedWindow:
        return PackedWindow(self._files, self._shares)

    def _add(self, window: PackedWindow, samples: Samples) -> bool:
        """Adds the next sample to a window, if it exists and fits."""
        full = len(window.samples) == self._most
        if full or self.failure is not None:
            return False
        sample = samples.peek()
        if sample is None:
            return False
        count = len(window.samples)
        try:
            added = window.add(sample, self.needed(sample))
        except OSError as error:
            added = len(window.samples) > count
            self._fail(error)
        if added:
            samples.pop()
        return added

    def _complete(
        self, window: PackedWindow, samples: Samples
    ) -> PackedWindow:
        while self._add(window, samples):
            pass
        return window

    def _await(self, window: PackedWindow) -> None:
        """Waits for a started window."""
        start = time.perf_counter()
        try:
            window.wait()
            self.stats['written'] += window.nbytes
        except Exception as error:
            # Errors of features belong to their batch.
            window.drop()
            if getattr(error, 'filename', None) == str(self._folder):
                self._fail(error)
        self.stats['waited'] += time.perf_counter() - start
        self.stats['read'] += window.seconds
        self.stats['batches'] += len(window.samples)
        self.stats['windows'] += 1

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            warnings.warn(
                f'DiskFeatureStore: packing of rows stopped: {error}',
                stacklevel=2,
            )

    def _show(self, batch: Batch, behind: int) -> None:
        """Makes the rows of a batch available, and drops old ones."""
        with self._lock:
            self._live.append(batch)
            while len(self._live) > behind + 1:
                old = self._live.popleft()
                self._free(old)
                if old.number == len(old.window.samples) - 1:
                    old.window.stop()

    def _free(self, batch: Batch) -> None:
        """Frees the rows of a batch, once."""
        if not batch.freed:
            batch.freed = True
            batch.window.free(batch.number)

    def close(self, *windows: PackedWindow) -> None:
        """Stops threads and removes files."""
        with self._lock:
            for window in (*windows, *(b.window for b in self._live)):
                window.stop()
            self._live.clear()
