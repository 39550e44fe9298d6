"""Copies rows to the order in which chunks read them.

A gather of few rows of each block reads the whole file for each chunk. Instead
the file is read once, in its order, and each row is written to the region of
each chunk that needs it: what chunks need is known before they are computed.
"""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.feature_format import broken
from torch_gsample.storage.inference.rows import Rows
from torch_gsample.storage.read_model import DiskModel, Reads, count_reads

#: Space of the disk that is left free.
_SPARE = 64 << 20
#: Errors of a disk, a user or a file that has no more room.
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG


class Packing:
    """The rows of one type that chunks read, and maybe a copy of them.

    Files have no name: they are gone with their process.

    Args:
        folder (Path): A folder on the disk to be used.
        rows (Rows): The rows.
        model (DiskModel): What reads cost.
    """

    def __init__(self, folder: Path, rows: Rows, model: DiskModel):
        self._folder, self._rows, self._model = folder, rows, model
        self._open = ExitStack()
        self._lists = self._file()
        self._ends = [0]
        self._gather = Reads()
        self._data: Any = None

    def _file(self) -> Any:
        return self._open.enter_context(
            tempfile.TemporaryFile(dir=self._folder, buffering=0)
        )

    def add(self, needed: np.ndarray) -> None:
        """Adds a chunk.

        Args:
            needed (numpy.ndarray): int64 ``[n]``, ascending, its rows.
        """
        _write(self._lists.fileno(), needed, 8 * self._ends[-1])
        self._ends.append(self._ends[-1] + len(needed))
        self._gather += count_reads(
            needed, self._rows.row_bytes, self._model.gap
        )

    def pays(self, memory: int, reserved: int) -> bool:
        """Whether a copy takes less time than gathering, and there is room.

        Args:
            memory (int): Bytes of rows that are copied at a time.
            reserved (int): Bytes that the result takes.
        """
        row, count = self._rows.row_bytes, self._ends[-1]
        slabs = -(-len(self._rows) * row // memory)
        pack = Reads(slabs * len(self._ends), len(self._rows) * row)
        pack += Reads(len(self._ends), 2 * count * row)  # written and read
        facts = os.statvfs(self._folder)
        free = facts.f_bavail * facts.f_frsize - reserved - _SPARE
        cheaper = self._model.seconds(pack) < self._model.seconds(self._gather)
        return cheaper and count * row <= free

    def pack(self, memory: int, drop: bool) -> None:
        """Makes the copy; on a disk that is full, rows are gathered.

        Args:
            memory (int): Bytes of rows that are copied at a time.
            drop (bool): Whether to drop the copy from the page cache.

        Raises:
            OSError: If the file cannot be read or the copy not be written.
            ValueError: If a block of the file is damaged.
        """
        data = self._file()
        try:
            self._copy(data.fileno(), memory)
            if drop:
                os.fdatasync(data.fileno())
                os.posix_fadvise(data.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            data.close()
            return
        self._data = data

    def _copy(self, fd: int, memory: int) -> None:
        row, ends = self._rows.row_bytes, self._ends
        size = max(memory // (2 * row), 1)  # and what is written of them
        at, self._sums = ends[:-1].copy(), [0] * (len(ends) - 1)
        lists = np.memmap(self._lists, np.int64, 'r')
        for first in range(0, len(self._rows), size):
            last = min(first + size, len(self._rows))
            rows = self._rows.read(np.arange(first, last))
            for i, begin in enumerate(at):
                part = lists[begin : ends[i + 1]]
                ids = np.array(part[: np.searchsorted(part, last)]) - first
                piece = rows.index_select(0, torch.from_numpy(ids)).numpy()
                _write(fd, piece, begin * row)
                self._sums[i] = crc32c(piece.reshape(-1), self._sums[i])
                at[i] += len(ids)

    def read(self, chunk: int, needed: np.ndarray) -> Tensor:
        """Returns the rows of a chunk, as they are stored.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If what was read is damaged.
        """
        if self._data is None:
            return self._rows.read(needed, self._model.gap)
        first = self._ends[chunk]
        assert self._ends[chunk + 1] - first == len(needed)
        at = first * self._rows.row_bytes
        out = torch.empty(len(needed), self._rows.row_bytes, dtype=torch.uint8)
        _read(self._data.fileno(), out.numpy().reshape(-1), at)
        if crc32c(out.numpy().reshape(-1)) != self._sums[chunk]:
            broken(self._folder, at, 'the checksum of copied rows is wrong')
        return out

    def close(self) -> None:
        """Removes the files; once is enough."""
        self._open.close()


def _pieces(data: np.ndarray) -> Iterator[tuple[int, memoryview]]:
    view = data.reshape(-1).view(np.uint8).data
    for at in range(0, len(view), 8 << 20):
        yield at, view[at : at + (8 << 20)]


def _write(fd: int, data: np.ndarray, offset: int) -> None:
    for at, piece in _pieces(data):
        while len(piece):
            count = os.pwrite(fd, piece, offset + at)
            at, piece = at + count, piece[count:]


def _read(fd: int, out: np.ndarray, offset: int) -> None:
    for at, piece in _pieces(out):
        while len(piece):
            count = os.preadv(fd, [piece], offset + at)
            if count == 0:
                raise OSError(errno.EIO, 'a copy of rows ends too early')
            at, piece = at + count, piece[count:]
