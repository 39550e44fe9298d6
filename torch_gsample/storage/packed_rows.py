"""Copies rows of a file into the order of future reads.

Lists of rows come in, one for each future batch or chunk. One scan of the file
copies each row to the region of each list that contains it, so a list is one
read instead of one request per row.
"""

import ctypes
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.crc32c import BLOCK, crc32c, functions
from torch_gsample.storage.format import malformed, round_up
from torch_gsample.storage.new_file import write_error
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.scratch_file import ScratchFile

#: Maximum buffered bytes of a list.
MOST_WAITING = 512 << 10
#: Bytes of a read.
_REQUEST = 512 << 10
#: Writes in flight.
_THREADS = 8


class _Call(ctypes.Structure):
    """The ``RowPack`` of csrc/storage/pack_rows.cpp."""

    _fields_ = [
        ('fd', ctypes.c_int64),
        ('rows', ctypes.c_void_p),
        ('first', ctypes.c_int64),
        ('last', ctypes.c_int64),
        ('row_bytes', ctypes.c_int64),
        ('lists', ctypes.c_void_p),
        ('item', ctypes.c_int64),
        ('n', ctypes.c_int64),
        ('cursor', ctypes.c_void_p),
        ('end', ctypes.c_void_p),
        ('buffers', ctypes.c_void_p),
        ('buffer_bytes', ctypes.c_int64),
        ('used', ctypes.c_void_p),
        ('offset', ctypes.c_void_p),
        ('sums', ctypes.c_void_p),
        ('flush', ctypes.c_int64),
        ('threads', ctypes.c_int64),
        ('failed', ctypes.c_int64),
    ]


class PackedRows:
    """The rows of some lists, in an unnamed file.

    Args:
        folder (Path): A folder on the target disk.
        row_bytes (int): Bytes of a row.
        ends (numpy.ndarray): int64 ``[num_lists + 1]``, the starts of lists.
        direct (bool): Whether to bypass the page cache.
    """

    def __init__(
        self,
        folder: Path,
        row_bytes: int,
        ends: np.ndarray,
        direct: bool,
    ):
        self._row_bytes, self._ends = row_bytes, ends
        regions = round_up(np.diff(ends) * row_bytes, BLOCK)
        self._offsets = np.concatenate([[0], np.cumsum(regions)])
        self._sums = np.zeros(len(regions), np.uint32)
        self._file = ScratchFile(folder, direct)

    @property
    def nbytes(self) -> int:
        """Bytes of all regions."""
        return int(self._offsets[-1])

    def region_bytes(self, i: int) -> int:
        """Returns the bytes of a list's rows, rounded up to a block."""
        return int(self._offsets[i + 1] - self._offsets[i])

    def pack(
        self,
        lists: np.ndarray,
        slabs: Iterable[tuple[int, np.ndarray]],
        memory: int,
    ) -> None:
        """Copies the rows.

        Args:
            lists (numpy.ndarray): uint32 or int64 ``[num_items]``: row
                numbers, which ascend in each list.
            slabs (Iterable[Tuple[int, numpy.ndarray]]): The file in pieces, in
                its order: the first row, and uint8 ``[n, row_bytes]``.
            memory (int): Bytes for buffered rows; at least a block for each
                list.

        Raises:
            OSError: If the file cannot be written; it names the folder.
        """
        assert lists.dtype in (np.uint32, np.int64)
        assert lists.flags.c_contiguous
        n, self._sums[:] = len(self._sums), 0
        if n == 0:
            return
        self._file.reserve(self.nbytes)
        most = max(self.region_bytes(i) for i in range(n))
        size = min(memory // n // BLOCK * BLOCK, MOST_WAITING, most)
        size = max(size, BLOCK)
        buffers = page_aligned(n * size)
        cursor, end = self._ends[:-1].copy(), self._ends[1:].copy()
        offset, used = self._offsets[:-1].copy(), np.zeros(n, np.int64)
        call = _Call(
            fd=self._file.fd,
            row_bytes=self._row_bytes,
            lists=lists.ctypes.data,
            item=lists.itemsize,
            n=n,
            cursor=cursor.ctypes.data,
            end=end.ctypes.data,
            buffers=buffers.ctypes.data,
            buffer_bytes=size,
            used=used.ctypes.data,
            offset=offset.ctypes.data,
            sums=self._sums.ctypes.data,
            threads=_THREADS,
        )
        for first, rows in slabs:
            assert rows.flags.c_contiguous
            call.rows, call.first = rows.ctypes.data, first
            call.last = first + len(rows)
            self._run(call)
        call.rows, call.first, call.last, call.flush = None, 0, 0, 1
        self._run(call)

    def _run(self, call: Any) -> None:
        code = functions().gsample_pack_rows(ctypes.byref(call))
        if code != 0:
            raise write_error(self._file.path, call.failed, code)

    def read(self, i: int, memory: np.ndarray | None = None) -> np.ndarray:
        """Returns the rows of a list, uint8 ``[n, row_bytes]``.

        Args:
            i (int): The list.
            memory (numpy.ndarray, optional): Page-aligned memory for them,
                of :meth:`region_bytes` at least.

        Raises:
            OSError: If they cannot be read.
            ValueError: If they are damaged.
        """
        size = self.region_bytes(i)
        region = page_aligned(size) if memory is None else memory
        rows = self._fill(i, 0, size, region)
        rows = rows[: self._count(i) * self._row_bytes]
        self._check(i, crc32c(rows))
        return rows.reshape(-1, self._row_bytes)

    def pieces(
        self, i: int, memory: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the rows of a list in pieces.

        Args:
            i (int): The list.
            memory (numpy.ndarray): Page-aligned memory for a piece, of a row
                and two blocks at least.

        Returns:
            Iterator[Tuple[int, numpy.ndarray]]: The position of the first row
            in the list, and uint8 ``[n, row_bytes]``, which the next piece
            overwrites.

        Raises:
            OSError: If they cannot be read.
            ValueError: If they are damaged, after the last piece.
        """
        count, width = self._count(i), self._row_bytes
        most = (memory.size - 2 * BLOCK) // width
        assert most > 0
        found = 0
        for first in range(0, count, most):
            last = min(first + most, count)
            begin = first * width // BLOCK * BLOCK
            end = round_up(last * width, BLOCK)
            rows = self._fill(i, begin, end - begin, memory)
            rows = rows[first * width - begin : last * width - begin]
            found = crc32c(rows, found)
            yield first, rows.reshape(-1, width)
        self._check(i, found)

    def _count(self, i: int) -> int:
        return int(self._ends[i + 1] - self._ends[i])

    def _fill(
        self, i: int, begin: int, size: int, memory: np.ndarray
    ) -> np.ndarray:
        """Reads bytes of a region, with all requests in flight."""
        offset = np.arange(begin, begin + size, _REQUEST)
        sizes = np.minimum(begin + size - offset, _REQUEST)
        self._file.read_ranges(self._offsets[i] + offset, sizes, memory)
        return memory[:size]

    def _check(self, i: int, checksum: int) -> None:
        if checksum != self._sums[i]:
            malformed(
                self._file.path,
                int(self._offsets[i]),
                'the checksum of rows in a scratch file '
                f'({self._count(i) * self._row_bytes} bytes) is wrong',
                'PackedRows',
            )

    def free(self, i: int) -> None:
        """Frees the disk space of a list."""
        self._file.free(int(self._offsets[i]), self.region_bytes(i))

    def close(self) -> None:
        """Removes the file; further calls have no effect."""
        self._file.close()
