"""Which chunks of a file are whole: each is checked when it is first read.

Chunks, or ranges of bytes that are wanted, come in; an error goes out if a
chunk is not what was written.
"""

import mmap
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_gsample.storage.format import (
    CHECKSUM,
    LENGTH,
    OFFSET,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.reading import File, page_aligned

_PIECE = 1 << 20  # bytes that a thread reads at a time


class CheckedChunks:
    """Remembers which chunks of a relation were read and are whole.

    It holds for this process and those that are forked from it, and until
    the file changes.

    Args:
        folder (Path): The folder of the graph.
        relation (RelationMeta): The relation.
    """

    def __init__(self, folder: Path, relation: RelationMeta):
        self._folder, self._relation = folder, relation
        self._file: tuple[int, ...] = ()
        with suppress(OSError):  # of a copy where there is no file yet
            self._file = file_identity(os.stat(folder / relation.file))
        self._whole = shared_zeros(len(relation.chunks))

    def check(self, file: File, chunk: int, data: np.ndarray) -> None:
        """Checks the bytes of a chunk, unless one like it was checked.

        Raises:
            ValueError: If they are not those that were written.
        """
        whole = self._of(file)
        if not whole[chunk]:
            check_checksum(file.path, self._relation, chunk, data)
            whole[chunk] = True

    def read(self, file: File, begin: np.ndarray, end: np.ndarray) -> None:
        """Reads and checks chunks, unless they were checked.

        Args:
            file (File): The file.
            begin (numpy.ndarray): int64 ``[n]``, where ranges of bytes that
                are wanted begin.
            end (numpy.ndarray): int64 ``[n]``, where they end.

        Raises:
            OSError: If a chunk cannot be read.
            ValueError: If one is not as it was written.
        """
        whole = self._of(file)
        if whole.all():
            return
        starts = self._relation.chunks[:, OFFSET]
        first = np.searchsorted(starts, begin, 'right') - 1
        last = np.searchsorted(starts, end, 'left')
        wanted = np.flatnonzero(touched(first, last, len(starts)) & ~whole)
        if len(wanted) == 0:
            return
        # Forked processes that begin together begin at different chunks.
        wanted = np.roll(wanted, os.getpid() % len(wanted))

        def check(chunk: int) -> None:
            if not whole[chunk]:
                _read_chunk(file, self._relation, chunk)
                whole[chunk] = True

        threads = min(torch.get_num_threads(), len(wanted))
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(check, wanted.tolist()))

    def _of(self, file: File) -> np.ndarray:
        """Returns for each chunk whether it is whole in this very file."""
        identity = file_identity(os.fstat(file.fd))
        if self._file != identity:
            self._whole = shared_zeros(len(self._relation.chunks))
            self._file = identity
        return self._whole

    def __reduce__(self) -> Any:
        return CheckedChunks, (self._folder, self._relation)


def file_identity(facts: os.stat_result) -> tuple[int, ...]:
    """Tells a file apart from others, and from itself after a change."""
    return (
        facts.st_dev,
        facts.st_ino,
        facts.st_size,
        facts.st_mtime_ns,
        facts.st_ctime_ns,
    )


def shared_zeros(size: int) -> np.ndarray:
    """Returns bool ``[size]`` that forked processes have in common."""
    return np.frombuffer(mmap.mmap(-1, max(size, 1)), bool)[:size]


def touched(first: np.ndarray, last: np.ndarray, count: int) -> np.ndarray:
    """Returns which of ``count`` items are in one of the ranges.

    Example:
        >>> touched(np.array([0, 3]), np.array([2, 4]), 5).tolist()
        [True, True, False, True, False]
    """
    begins = np.bincount(first, minlength=count + 1)
    ends = np.bincount(last, minlength=count + 1)
    return np.cumsum(begins - ends)[:count] > 0


def _read_chunk(file: File, relation: RelationMeta, chunk: int) -> None:
    offset, length = map(int, relation.chunks[chunk, [OFFSET, LENGTH]])
    buffer, header, checksum = page_aligned(min(length, _PIECE)), b'', 0
    for at in range(0, length, _PIECE):
        part = buffer[: length - at]
        file.read(offset + at, part)
        header = header or part[:64].tobytes()
        checksum = zlib.crc32(part.data, checksum)
    _compare(file.path, relation, chunk, checksum)
    check_header(file.path, relation, chunk, header)


def check_checksum(
    path: Path, relation: RelationMeta, chunk: int, data: np.ndarray
) -> None:
    """Checks the bytes of a chunk.

    Raises:
        ValueError: If they are not those that were written.
    """
    _compare(path, relation, chunk, zlib.crc32(data.data))


def _compare(
    path: Path, relation: RelationMeta, chunk: int, checksum: int
) -> None:
    row = relation.chunks[chunk]
    if checksum != row[CHECKSUM]:
        malformed(
            path,
            int(row[OFFSET]),
            f'the checksum of chunk {chunk} ({row[LENGTH]} bytes) is wrong',
        )


def check_header(
    path: Path, relation: RelationMeta, chunk: int, data: bytes
) -> None:
    """Checks the first bytes of a chunk, its header at least.

    Raises:
        ValueError: If they are not what the chunk table says.
    """
    header = relation.header(chunk)
    if data[: len(header)] != header:
        malformed(
            path,
            int(relation.chunks[chunk, OFFSET]),
            f'the header of chunk {chunk} does not fit the chunk table',
        )


def read_times(path: Path, size: int, checksum: int | None) -> np.ndarray:
    """Reads the times of nodes into memory, which forked processes share.

    Args:
        path (Path): The file.
        size (int): The number of nodes.
        checksum (int, optional): The CRC-32 of the file. Graphs that were
            written before there was one are read without a check.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not as it was written.
    """
    data = page_aligned(8 * size)
    File(path).read(0, data)
    if checksum is not None and zlib.crc32(data.data) != checksum:
        malformed(path, 0, f'the checksum of {size} times is wrong')
    return data.view('<i8')
