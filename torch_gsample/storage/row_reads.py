"""Reads rows of fixed width from blocks with checksums.

Row numbers come in, their bytes go out in the same order. The C++ reader sorts
them, merges adjacent ones into one request and checks each block.
"""

import ctypes
import threading
from dataclasses import dataclass, field

import numpy as np

from torch_gsample.storage.crc32c import BLOCK, functions
from torch_gsample.storage.format import malformed
from torch_gsample.storage.reading import (
    READ_THREADS,
    REFUSED,
    File,
    page_aligned,
)

#: Memory of each reader for blocks in flight.
STAGING = 16 << 20

_DAMAGED, _OUT_OF_RANGE = -2, -3


class _Call(ctypes.Structure):
    """The ``RowRead`` of csrc/storage/read_rows.cpp."""

    _fields_ = [
        ('fd', ctypes.c_int64),
        ('data', ctypes.c_int64),
        ('row_bytes', ctypes.c_int64),
        ('num_rows', ctypes.c_int64),
        ('checksums', ctypes.c_void_p),
        ('checked', ctypes.c_void_p),
        ('generation', ctypes.c_uint64),
        ('index', ctypes.c_void_p),
        ('n', ctypes.c_int64),
        ('out', ctypes.c_void_p),
        ('staging', ctypes.c_void_p),
        ('staging_size', ctypes.c_int64),
        ('gap', ctypes.c_int64),
        ('threads', ctypes.c_int64),
        ('failed', ctypes.c_int64),
        ('requests', ctypes.c_int64),
        ('blocks', ctypes.c_int64),
    ]


@dataclass
class RowReader:
    """Reads rows of an open file; threads take turns.

    Args:
        file (File): The file.
        data (int): Offset of the first row, a multiple of ``BLOCK``. Blocks
            are whole up to the end of the last row.
        row_bytes (int): Bytes of a row.
        num_rows (int): Number of rows.
        generation (int): The generation of the file.
        checksums (numpy.ndarray, optional): uint32 ``[num_blocks]``; blocks
            are not checked if not given.
        checked (numpy.ndarray, optional): bool ``[num_blocks]``, the blocks
            that need no check; if not given, every read is checked.
        engine (str, optional): See :meth:`File.read_ranges`.
    """

    file: File
    data: int
    row_bytes: int
    num_rows: int
    generation: int
    checksums: np.ndarray | None = None
    checked: np.ndarray | None = None
    engine: str = 'auto'
    stats: dict[str, int] = field(
        default_factory=lambda: {'rows': 0, 'requests': 0, 'bytes_read': 0}
    )

    def __post_init__(self) -> None:
        half = -(-self.row_bytes // BLOCK) * BLOCK + 2 * BLOCK
        total = -(-self.num_rows * self.row_bytes // BLOCK) * BLOCK
        size = min(STAGING, 2 * (total + BLOCK))
        self.staging = page_aligned(max(2 * half, size))
        self._lock = threading.Lock()

    def read(self, index: np.ndarray, out: np.ndarray, gap: int = 0) -> None:
        """Reads rows into ``out``, in the order of ``index``.

        Args:
            index (numpy.ndarray): int64 ``[n]``, contiguous.
            out (numpy.ndarray): uint8 ``[n, row_bytes]``, contiguous.
            gap (int, optional): Requests are merged over gaps of at most this
                many blocks.

        Raises:
            IndexError: If a row does not exist.
            OSError: If the file cannot be read; it names file and offset.
            ValueError: If a block is damaged; it names file and offset.
        """
        assert index.dtype == np.int64
        assert index.flags.c_contiguous
        assert out.flags.c_contiguous
        assert out.nbytes == len(index) * self.row_bytes
        with self._lock:
            call = self._call(index, out, gap)
            code = functions().gsample_read_rows(ctypes.byref(call))
            if code in REFUSED and self.engine == 'auto':
                call.threads = READ_THREADS
                code = functions().gsample_read_rows(ctypes.byref(call))
                self.engine = 'threads' if code == 0 else 'auto'
            self.stats['rows'] += len(index)
            self.stats['requests'] += call.requests
            self.stats['bytes_read'] += call.blocks * BLOCK
        if code == _OUT_OF_RANGE:
            raise IndexError(
                f"FeatureFile: 'index' must be in [0, {self.num_rows}), the "
                f'rows of {self.file.path} (got {call.failed})'
            )
        if code == _DAMAGED:
            block = (call.failed - self.data) // BLOCK
            malformed(
                self.file.path,
                call.failed,
                f'the checksum of block {block} ({BLOCK} bytes) is wrong',
                'FeatureFile',
            )
        if code != 0:
            raise self.file.error(code, call.failed)

    def _call(self, index: np.ndarray, out: np.ndarray, gap: int) -> _Call:
        def address(array: np.ndarray | None) -> int | None:
            return None if array is None else array.ctypes.data

        return _Call(
            fd=self.file.fd,
            data=self.data,
            row_bytes=self.row_bytes,
            num_rows=self.num_rows,
            checksums=address(self.checksums),
            checked=address(self.checked),
            generation=self.generation,
            index=address(index),
            n=len(index),
            out=address(out),
            staging=address(self.staging),
            staging_size=self.staging.size,
            gap=gap,
            threads=READ_THREADS if self.engine == 'threads' else 0,
        )
