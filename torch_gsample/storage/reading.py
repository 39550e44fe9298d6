"""Reads files: many small ranges at once, or whole chunks one by one.

Only file descriptors outlive a call, so a process may fork at any time.
"""

import ctypes
import errno
import mmap
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from torch_gsample.storage.crc32c import functions

ENGINES = ('auto', 'io_uring', 'threads')
#: Reads in flight with threads.
READ_THREADS = 16

_END_OF_FILE = -1
_PIECE = 8 << 20  # bytes of one read of a chunk; Ctrl-C waits for it
#: Errors of a kernel that refuses io_uring.
REFUSED = (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP)


def page_aligned(size: int, huge: bool = False) -> np.ndarray:
    """Returns page-aligned zeroed bytes, for direct reads.

    Pages take no memory until written, and a forked process has its own.

    Args:
        size (int): Number of bytes.
        huge (bool, optional): Whether to ask for huge pages: a read at a
            random position of small ones also misses the TLB.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, max(size, 1), flags)
    if huge:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)[:size]


def file_identity(facts: os.stat_result) -> tuple[int, ...]:
    """Returns an identity that changes with the file."""
    return (
        facts.st_dev,
        facts.st_ino,
        facts.st_size,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
    )


class ReadableFile(Protocol):
    """One file, or several in turns: :class:`File` or `StripedFile`."""

    #: The file; :class:`Stripes` of several files.
    path: Any
    #: Useful number of reads in flight.
    depth: int

    def close(self) -> None:
        """Closes it."""

    def identity(self) -> tuple[int, ...]:
        """An identity that changes with the file."""

    def read(
        self,
        offset: int,
        out: np.ndarray,
        stopped: threading.Event | None = None,
    ) -> None:
        """Fills ``out`` from ``offset`` on."""

    def read_ranges(
        self,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str = 'auto',
    ) -> str:
        """Reads ranges into ``out``, concatenated, all in flight."""


class File:
    """A file opened for reading.

    Args:
        path (Path): Its path.
        direct (bool, optional): Whether to bypass the page cache, if the file
            system supports it.

    Raises:
        OSError: If it cannot be opened.
    """

    depth = 1

    def __init__(self, path: Path, direct: bool = False):
        self.path, self.direct = path, direct
        self.fd = -1
        if direct:
            try:
                self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self.direct = False
        if self.fd < 0:
            self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Closes the file; further calls have no effect."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if hasattr(self, 'fd'):
            self.close()

    def identity(self) -> tuple[int, ...]:
        """An identity that changes with the file."""
        return file_identity(os.fstat(self.fd))

    def read(
        self,
        offset: int,
        out: np.ndarray,
        stopped: threading.Event | None = None,
    ) -> None:
        """Fills ``out``, uint8 ``[size]``, from ``offset`` on.

        Another thread can stop it by ``stopped``.

        Raises:
            OSError: If it cannot be read, also beyond the end of the file.
        """
        done = 0
        while done < out.size and not (stopped and stopped.is_set()):
            piece = out.data[done : done + _PIECE]
            try:
                count = os.preadv(self.fd, [piece], offset + done)
            except OSError as error:
                raise self.error(error.errno or 0, offset + done) from error
            if count == 0:
                raise self.error(_END_OF_FILE, offset + done)
            done += count

    def read_ranges(
        self,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str = 'auto',
    ) -> str:
        """Reads ranges into ``out``, concatenated, all in flight.

        Args:
            offset (numpy.ndarray): int64 ``[num_ranges]``.
            size (numpy.ndarray): int64 ``[num_ranges]``, their bytes.
            out (numpy.ndarray): uint8, at least the sum of sizes.
            engine (str, optional): ``'io_uring'``, ``'threads'``, or
                ``'auto'`` for the first one that works.

        Returns:
            str: The engine used.

        Raises:
            OSError: If a range cannot be read.
        """
        ends = np.cumsum(size)
        assert len(ends) == 0 or int(ends[-1]) <= out.size
        return self.read_to(
            np.stack([offset, size, ends - size], 1), out, engine
        )

    def read_to(
        self, ranges: np.ndarray, out: np.ndarray, engine: str = 'auto'
    ) -> str:
        """Reads ranges to given offsets of ``out``; see :meth:`read_ranges`.

        Args:
            ranges (numpy.ndarray): int64 ``[num_ranges, 3]``: offset, size,
                offset in ``out``.
            out (numpy.ndarray): uint8.
            engine (str, optional): See :meth:`read_ranges`.
        """
        ranges = np.ascontiguousarray(ranges, np.int64)
        if engine != 'threads':
            code, failed = _read_ranges(self.fd, ranges, out, 0)
            if code in REFUSED and engine == 'auto':
                engine = 'threads'
        if engine == 'threads':
            code, failed = _read_ranges(self.fd, ranges, out, READ_THREADS)
        if code != 0:
            at = int(ranges[failed, 0]) if len(ranges) else 0
            raise self.error(code, at)
        return 'io_uring' if engine == 'auto' else engine

    def error(self, code: int, offset: int) -> OSError:
        """Returns the error of a read, with file and offset."""
        if code == _END_OF_FILE:
            code, text = errno.EIO, 'the file ends too early'
        else:
            text = os.strerror(code)
        return OSError(
            code, f'{text} (reading offset {offset})', str(self.path)
        )


def _read_ranges(
    fd: int, ranges: np.ndarray, out: np.ndarray, threads: int
) -> tuple[int, int]:
    failed = ctypes.c_int64(0)
    code = functions().gsample_read_ranges(
        ctypes.c_int(fd),
        ctypes.c_void_p(ranges.ctypes.data),
        ctypes.c_int64(len(ranges)),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_int(threads),
        ctypes.byref(failed),
    )
    return code, failed.value


class ReadAhead:
    """Prefetches ranges in order, in threads.

    It reads one range while another is used, or one per directory of a striped
    file. Use it in a ``with`` statement, which ends the threads.

    Args:
        file (ReadableFile): The file.
        ranges (List[Tuple[int, int]]): Offset and size of each.

    Example:
        >>> path = Path(__file__)
        >>> with ReadAhead(File(path), [(0, 3), (3, 5)]) as parts:
        ...     [part.tobytes() for part in parts]
        [b'\"\"\"', b'Reads']
    """

    def __init__(self, file: ReadableFile, ranges: Sequence[tuple[int, int]]):
        self._file, self._ranges = file, list(ranges)
        largest = max((size for _, size in ranges), default=0)
        count = min(file.depth + 1, len(ranges))
        self._free = deque(page_aligned(largest) for _ in range(count))
        self._stopped = threading.Event()
        self._threads = ThreadPoolExecutor(file.depth)

    def __enter__(self) -> Iterator[np.ndarray]:
        return self._parts()

    def __exit__(self, *_: Any) -> None:
        self._stopped.set()
        self._threads.shutdown(cancel_futures=True)

    def _read(self, offset: int, data: np.ndarray) -> np.ndarray:
        self._file.read(offset, data, self._stopped)
        return data

    def _parts(self) -> Iterator[np.ndarray]:
        """Yields the ranges; each is overwritten by the next."""
        waiting = deque(self._ranges)
        coming: deque[Any] = deque()
        for _ in self._ranges:
            while waiting and self._free:
                offset, size = waiting.popleft()
                buffer = self._free.popleft()
                future = self._threads.submit(
                    self._read, offset, buffer[:size]
                )
                coming.append((future, buffer))
            future, buffer = coming.popleft()
            yield future.result()
            self._free.append(buffer)
