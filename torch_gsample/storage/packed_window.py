"""A window of batches whose rows are packed in a scratch file.

Samples and their rows come in; a thread packs the rows, and the samples go out
one by one.
"""

import threading
import time
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.background import Background
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.packed_rows import PackedRows
from torch_gsample.storage.read_windows import Key, sample_bytes
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.sample_spill import SampleSpill, Spilled
from torch_gsample.storage.scratch_file import free_space

#: Maximum bytes of a piece of a scan.
_SLAB = 16 << 20
#: Maximum bytes of a piece of a batch.
_PIECE = 8 << 20


@dataclass
class Shares:
    """The memory and disk budget of packing.

    Half of the memory holds the lists of two windows, one being packed and one
    being collected. The rest holds a piece of a batch, two pieces of a scan,
    and buffered rows.

    Args:
        memory (int): Bytes of memory.
        folder (Path): A folder on the target disk.
    """

    memory: int
    folder: Path

    def __post_init__(self) -> None:
        self.lists = self.memory // 4
        self.batch = min(self.memory // 8, _PIECE) // BLOCK * BLOCK
        self.scan = min(self.memory // 8, 2 * _SLAB)
        self.waiting = self.memory // 2 - self.batch - self.scan
        #: Bytes of a window's scratch files; two windows exist at a time.
        self.scratch = free_space(self.folder) // 2

    def batches(self, lists: float, scratch: float, most: int) -> int:
        """Returns the number of batches of a window.

        Args:
            lists (float): Bytes of memory of a batch.
            scratch (float): Bytes on disk of a batch.
            most (int): The maximum.
        """
        limits = (
            most,
            self.lists / max(lists, 1),
            self.scratch / max(scratch, 1),
            self.waiting / BLOCK,
        )
        return int(min(limits))


class PackedWindow:
    """Batches, and their rows in a scratch file.

    Args:
        files (Dict[Tuple, RowSource]): The files, by group and name.
        shares (Shares): Memory and disk.
    """

    def __init__(self, files: dict[Key, RowSource], shares: Shares):
        self._files, self._shares = files, shares
        #: Samples with their rows, or the positions of these.
        self.samples: list[Any] = []
        self._lists: dict[Any, list[np.ndarray]] = {k: [] for k, _ in files}
        self._joined: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self._packed: dict[Key, PackedRows] = {}
        self._spill: SampleSpill | None = None
        self._work: Background | None = None
        #: Bytes of memory, and of scratch files.
        self.held, self.nbytes = 0, 0
        self.seconds = 0.0

    def add(self, sample: Any, needed: dict[Any, np.ndarray]) -> bool:
        """Adds a sample, if it fits.

        Args:
            sample (Any): The sample.
            needed (Dict[Any, numpy.ndarray]): The rows to pack, by type,
                distinct and ascending.

        Raises:
            OSError: If it cannot be written; it is added nevertheless.
        """
        size = sum(
            len(needed[key[0]]) * file.row_bytes + BLOCK
            for key, file in self._files.items()
            if key[0] in needed
        )
        held = sum(rows.nbytes for rows in needed.values())
        shares, count = self._shares, len(self.samples) + 1
        fits = (
            self.held + held <= shares.lists
            and self.nbytes + size <= shares.scratch
            and count * BLOCK <= shares.waiting
        )
        if self.samples and not fits:
            return False
        if not fits:  # read on demand
            needed, size, held = {}, 0, 0
        for group, lists in self._lists.items():
            lists.append(needed.get(group, np.empty(0, np.uint32)))
        self.held += held
        self.nbytes += size
        self.samples.append((sample, needed))
        self._put_aside(sample, held)
        return True

    def _put_aside(self, sample: Any, held: int) -> None:
        if self._spill is None:
            self._spill = SampleSpill(self._shares.folder)
        before = self._spill.nbytes
        spilled = self._spill.add(self.samples[-1])
        if spilled is None:
            self.held += sample_bytes(sample) + held
        else:
            self.samples[-1] = spilled
            self.nbytes += self._spill.nbytes - before

    def start(self) -> None:
        """Starts a thread that packs the rows."""
        for group, lists in self._lists.items():
            ends = np.cumsum([0, *map(len, lists)])
            joined = np.concatenate([np.empty(0, np.uint32), *lists])
            lists.clear()
            self._joined[group] = joined, ends

        def work(stopped: threading.Event) -> None:
            start = time.perf_counter()
            for key, file in self._files.items():
                lists, ends = self._joined[key[0]]
                if len(lists) == 0:
                    continue
                self._packed[key] = PackedRows(
                    self._shares.folder, file.row_bytes, ends, True
                )
                scan = file.scan(self._shares.scan)
                self._packed[key].pack(
                    lists,
                    takewhile(lambda _: not stopped.is_set(), scan),
                    self._shares.waiting,
                )
            self.seconds = time.perf_counter() - start

        self._work = Background(work)

    def wait(self) -> None:
        """Waits until the rows are packed.

        Raises:
            Exception: The error of packing; errors of the scratch file name
                its folder.
        """
        if self._work is not None:
            try:
                self._work.wait()
            finally:
                self._joined.clear()

    def stop(self) -> None:
        """Stops the thread, if it runs, and removes the files."""
        if self._work is not None:
            self._work.stop()
        self.drop()
        if self._spill is not None:
            self._spill.close()

    def drop(self) -> None:
        """Removes packed rows; another plan reads their batches."""
        for packed in self._packed.values():
            packed.close()
        self._packed.clear()

    def take(self, i: int) -> tuple[Any, dict[Any, np.ndarray]]:
        """Returns a sample and its rows, once."""
        found, self.samples[i] = self.samples[i], None
        if isinstance(found, Spilled):
            assert self._spill is not None
            return self._spill.take(found)
        return found

    def packed(self, key: Key) -> PackedRows | None:
        """Returns the packed rows of a file, if any."""
        return self._packed.get(key)

    def free(self, i: int) -> None:
        """Frees the space of a batch's rows."""
        for packed in self._packed.values():
            packed.free(i)
