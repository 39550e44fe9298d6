"""Checks the parts of a file at their first read.

Chunks, or requested byte ranges, come in; damaged ones are an error. Version 1
of the format has checksums of chunks; `checked_blocks.py` checks those of
blocks.
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
    GraphMeta,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.reading import (
    File,
    ReadableFile,
    file_identity,
    page_aligned,
)

PIECE = 1 << 20  # bytes of one read by a thread


#: When data is checked.
VERIFY = ('always', 'once', 'never')


class CheckedFile:
    """Remembers which parts of a relation were read and found intact.

    This holds for this process and its forks, until the file changes.

    Args:
        folder (Path): The folder of the graph.
        meta (GraphMeta): The graph.
        relation (RelationMeta): The relation.
        verify (str): One of ``VERIFY``.
    """

    def __init__(
        self,
        folder: Path,
        meta: GraphMeta,
        relation: RelationMeta,
        verify: str = 'once',
    ):
        self._folder, self._meta = folder, meta
        self._relation, self._verify = relation, verify
        self._file: tuple[int, ...] = ()
        with suppress(OSError):  # a copy, when the file does not exist yet
            self._file = tuple(
                number
                for path in meta.files(folder, relation)
                for number in file_identity(os.stat(path))
            )
        self._whole = shared_zeros(self._num_parts())

    def _num_parts(self) -> int:
        raise NotImplementedError

    def check(self, file: ReadableFile, chunk: int, data: np.ndarray) -> None:
        """Checks the bytes of a chunk.

        Raises:
            ValueError: If they are damaged.
        """
        raise NotImplementedError

    def read(
        self, file: ReadableFile, begin: np.ndarray, end: np.ndarray
    ) -> None:
        """Reads and checks the blocks or chunks of byte ranges.

        Args:
            file (ReadableFile): The file.
            begin (numpy.ndarray): int64 ``[n]``, the starts of the ranges.
            end (numpy.ndarray): int64 ``[n]``, the ends of the ranges.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not as it was written.
        """
        raise NotImplementedError

    def read_ranges(
        self,
        file: ReadableFile,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str,
    ) -> str:
        """Reads blocks, and checks them; see :meth:`File.read_ranges`.

        Args:
            file (ReadableFile): The file.
            offset (numpy.ndarray): int64 ``[n]``, multiples of 4,096.
            size (numpy.ndarray): int64 ``[n]``, multiples of 4,096, except at
                the end of the file.
            out (numpy.ndarray): uint8.
            engine (str): The read engine.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not as it was written.
        """
        raise NotImplementedError

    def read_bytes(
        self, file: ReadableFile, begin: int, out: np.ndarray
    ) -> None:
        """Reads bytes at any offset, and checks them.

        Args:
            file (ReadableFile): The file.
            begin (int): Their offset.
            out (numpy.ndarray): uint8 ``[size]``.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not as it was written.
        """
        self.read(file, np.array([begin]), np.array([begin + out.size]))
        file.read(begin, out)

    def _of(self, file: ReadableFile) -> np.ndarray:
        """Returns for each part whether it was found intact in this file."""
        identity = file.identity()
        if self._verify == 'always' or self._file != identity:
            self._whole = shared_zeros(self._num_parts())
            self._file = identity
        return self._whole

    def __reduce__(self) -> Any:
        facts = self._folder, self._meta, self._relation, self._verify
        return type(self), facts


class CheckedChunks(CheckedFile):
    """Remembers which chunks are intact: version 1 of the format."""

    def _num_parts(self) -> int:
        return len(self._relation.chunks)

    def check(self, file: ReadableFile, chunk: int, data: np.ndarray) -> None:
        """See :meth:`CheckedFile.check`."""
        if self._verify == 'never':
            return
        whole = self._of(file)
        if not whole[chunk]:
            crc = zlib.crc32(data.data)
            _compare(file.path, self._relation, chunk, crc)
            whole[chunk] = True

    def read(
        self, file: ReadableFile, begin: np.ndarray, end: np.ndarray
    ) -> None:
        """See :meth:`CheckedFile.read`: whole chunks are read."""
        if self._verify == 'never':
            return
        whole = self._of(file)
        if whole.all():
            return
        starts = self._relation.chunks[:, OFFSET]
        first = np.searchsorted(starts, begin, 'right') - 1
        last = np.searchsorted(starts, end, 'left')
        wanted = np.flatnonzero(touched(first, last, len(starts)) & ~whole)
        if len(wanted) == 0:
            return
        # Forked processes that start together start at different chunks.
        wanted = np.roll(wanted, os.getpid() % len(wanted))

        def check(chunk: int) -> None:
            if not whole[chunk]:
                _read_chunk(file, self._relation, chunk)
                whole[chunk] = True

        threads = min(torch.get_num_threads(), len(wanted))
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(check, wanted.tolist()))

    def read_ranges(
        self,
        file: ReadableFile,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str,
    ) -> str:
        """See :meth:`CheckedFile.read_ranges`; whole chunks are read first."""
        self.read(file, offset, offset + size)
        return file.read_ranges(offset, size, out, engine)


def shared_zeros(size: int) -> np.ndarray:
    """Returns bool ``[size]`` that forked processes share."""
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


def _read_chunk(
    file: ReadableFile, relation: RelationMeta, chunk: int
) -> None:
    offset, length = map(int, relation.chunks[chunk, [OFFSET, LENGTH]])
    buffer, header, checksum = page_aligned(min(length, PIECE)), b'', 0
    for at in range(0, length, PIECE):
        part = buffer[: length - at]
        file.read(offset + at, part)
        header = header or part[:64].tobytes()
        checksum = zlib.crc32(part.data, checksum)
    _compare(file.path, relation, chunk, checksum)
    check_header(file.path, relation, chunk, header)


def _compare(
    path: Any, relation: RelationMeta, chunk: int, checksum: int
) -> None:
    row = relation.chunks[chunk]
    if checksum != row[CHECKSUM]:
        malformed(
            path,
            int(row[OFFSET]),
            f'the checksum of chunk {chunk} ({row[LENGTH]} bytes) is wrong',
        )


def check_header(
    path: Any, relation: RelationMeta, chunk: int, data: bytes
) -> None:
    """Checks the first bytes of a chunk, including its header.

    Raises:
        ValueError: If they do not match the chunk table.
    """
    header = relation.header(chunk)
    if data[: len(header)] != header:
        malformed(
            path,
            int(relation.chunks[chunk, OFFSET]),
            f'the header of chunk {chunk} does not fit the chunk table',
        )


def read_times(
    folder: Path,
    meta: GraphMeta,
    number: int,
    appended: np.ndarray | None = None,
) -> np.ndarray:
    """Reads the times of nodes into memory shared with forks.

    Graphs of earlier versions have no checksum, and their times are not
    checked.

    Args:
        folder (Path): The folder of the graph.
        meta (GraphMeta): The graph.
        number (int): The number of the node type, which has times.
        appended (numpy.ndarray, optional): int64, the times that follow.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not as it was written.
    """
    name, size = meta.node_times[number], meta.num_nodes[number]
    assert name is not None
    more = 0 if appended is None else len(appended)
    out = page_aligned(8 * (size + more))
    data = out[: 8 * size]
    File(folder / name).read(0, data)
    want = meta.time_checksums[number]
    if want is not None:
        found = zlib.crc32(data.data)
        if meta.version > 1:
            found = meta.file_checksum(name, data)
        if found != want:
            rule = f'the checksum of {size} times is wrong'
            malformed(folder / name, 0, rule)
    times = out.view('<i8')
    if appended is not None:
        times[size:] = appended
    return times
