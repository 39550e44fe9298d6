"""Copies rows to the order in which chunks read them.

A gather of few rows of each block reads the whole file for each chunk. Instead
the file is read once, in its order, and each row is written to the region of
each chunk that needs it: what chunks need is known before they are computed.
"""

import mmap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.inference.rows import Rows
from torch_gsample.storage.packed_rows import MOST_WAITING, PackedRows
from torch_gsample.storage.read_model import DiskModel, Reads, count_reads
from torch_gsample.storage.scratch_file import (
    FULL,
    ScratchFile,
    free_space,
)


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
        self._lists = ScratchFile(folder)
        self._ends = [0]
        self._gather = Reads()
        self._data: PackedRows | None = None

    def add(self, needed: np.ndarray) -> None:
        """Adds a chunk.

        Args:
            needed (numpy.ndarray): int64 ``[n]``, ascending, its rows.
        """
        self._lists.write(8 * self._ends[-1], needed)
        self._ends.append(self._ends[-1] + len(needed))
        self._gather += count_reads(
            needed, self._rows.row_bytes, self._model.gap
        )

    def needed(self, chunk: int) -> np.ndarray:
        """Returns the rows of a chunk that was added, int64 ``[n]``.

        Raises:
            OSError: If the list cannot be read.
        """
        low, high = self._ends[chunk : chunk + 2]
        out = np.empty(high - low, np.int64)
        if len(out):
            self._lists.read(8 * low, out.view(np.uint8))
        return out

    def pays(self, memory: int, reserved: int) -> bool:
        """Whether a copy takes less time than gathering, and there is room.

        Args:
            memory (int): Bytes of rows that are copied at a time.
            reserved (int): Bytes that the result takes.
        """
        row, count = self._rows.row_bytes, self._ends[-1]
        waiting = max(min(memory // 2 // len(self._ends), MOST_WAITING), 1)
        pack = Reads(count * row / waiting, (len(self._rows) + count) * row)
        pack += Reads(len(self._ends), count * row)  # read again
        free = free_space(self._folder) - reserved
        cheaper = self._model.seconds(pack) < self._model.seconds(self._gather)
        return cheaper and count * row <= free

    def pack(self, memory: int, direct: bool) -> None:
        """Makes the copy; on a disk that is full, rows are gathered.

        Args:
            memory (int): Bytes of rows that are copied at a time.
            direct (bool): Whether the copy passes by the page cache.

        Raises:
            OSError: If the file cannot be read or the copy not be written.
            ValueError: If a block of the file is damaged.
        """
        if self._ends[-1] == 0:
            return
        lists = mmap.mmap(self._lists.fd, 0, access=mmap.ACCESS_READ)
        packed = PackedRows(
            self._folder,
            self._rows.row_bytes,
            np.array(self._ends),
            direct,
        )
        try:
            packed.pack(
                np.frombuffer(lists, np.int64),
                self._rows.scan(memory // 2),
                memory // 2,
            )
        except OSError as error:
            packed.close()
            if error.errno not in FULL:
                raise
            return
        self._data = packed

    def read(self, chunk: int, needed: np.ndarray) -> Tensor:
        """Returns the rows of a chunk, as they are stored.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If what was read is damaged.
        """
        if self._data is None:
            return self._rows.read(needed, self._model.gap)
        rows = self._data.read(chunk)
        self._data.free(chunk)
        assert len(rows) == len(needed)
        return torch.from_numpy(rows)

    def close(self) -> None:
        """Removes the files; once is enough."""
        self._lists.close()
        if self._data is not None:
            self._data.close()
