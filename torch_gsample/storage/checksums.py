"""Which parts of a file are whole: each is checked when it is first read.

Chunks, or ranges of bytes that are wanted, come in; an error goes out if they
are not what was written. Version 1 of the format has checksums of chunks,
version 2 of blocks.
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

from torch_gsample.storage.crc32c import find_damage
from torch_gsample.storage.format import (
    BLOCKS_OF_FILE,
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

_PIECE = 1 << 20  # bytes that a thread reads at a time


#: When data is checked.
VERIFY = ('always', 'once', 'never')


class CheckedFile:
    """Remembers which parts of a relation were read and are whole.

    It holds for this process and those that are forked from it, and until
    the file changes.

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
        with suppress(OSError):  # of a copy where there is no file yet
            self._file = tuple(
                number
                for path in meta.files(folder, relation)
                for number in file_identity(os.stat(path))
            )
        self._whole = shared_zeros(self._num_parts())

    def _num_parts(self) -> int:
        raise NotImplementedError

    def check(self, file: ReadableFile, chunk: int, data: np.ndarray) -> None:
        """Checks the bytes of a chunk that was read.

        Raises:
            ValueError: If they are not those that were written.
        """
        raise NotImplementedError

    def read(
        self, file: ReadableFile, begin: np.ndarray, end: np.ndarray
    ) -> None:
        """Reads and checks what has ranges of bytes that are wanted.

        Args:
            file (ReadableFile): The file.
            begin (numpy.ndarray): int64 ``[n]``, where they begin.
            end (numpy.ndarray): int64 ``[n]``, where they end.

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
            size (numpy.ndarray): int64 ``[n]``, multiples of it but at the
                end of the file.
            out (numpy.ndarray): uint8.
            engine (str): How it reads.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not as it was written.
        """
        raise NotImplementedError

    def _of(self, file: ReadableFile) -> np.ndarray:
        """Returns for each part whether it is whole in this very file."""
        identity = file.identity()
        if self._verify == 'always' or self._file != identity:
            self._whole = shared_zeros(self._num_parts())
            self._file = identity
        return self._whole

    def __reduce__(self) -> Any:
        facts = self._folder, self._meta, self._relation, self._verify
        return type(self), facts


class CheckedChunks(CheckedFile):
    """Remembers which chunks are whole: version 1 of the format."""

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
        # Forked processes that begin together begin at different chunks.
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
        """See :meth:`CheckedFile.read_ranges`: chunks are read before."""
        self.read(file, offset, offset + size)
        return file.read_ranges(offset, size, out, engine)


class CheckedBlocks(CheckedFile):
    """Checks blocks by the checksums in a file: version 2 of the format.

    That file is read into memory, which forked processes share.

    Raises:
        OSError: If that file cannot be read.
        ValueError: If it is not as it was written.
    """

    def __init__(
        self,
        folder: Path,
        meta: GraphMeta,
        relation: RelationMeta,
        verify: str = 'once',
    ):
        super().__init__(folder, meta, relation, verify)
        self._checksums = np.empty(0, np.uint32)
        if verify != 'never':
            self._checksums = _read_table(folder, meta, relation)

    def _num_parts(self) -> int:
        size = self._meta.sizes[self._relation.file]
        return size // self._meta.block_bytes

    def check(self, file: ReadableFile, chunk: int, data: np.ndarray) -> None:
        """See :meth:`CheckedFile.check`."""
        offset = self._relation.chunks[chunk, [OFFSET]]
        self._check(file, offset, np.array([data.size]), data)

    def read(
        self, file: ReadableFile, begin: np.ndarray, end: np.ndarray
    ) -> None:
        """See :meth:`CheckedFile.read`: blocks are read."""
        if self._verify == 'never':
            return
        whole, size = self._of(file), self._meta.block_bytes
        wanted = touched(begin // size, -(-end // size), len(whole))
        blocks = np.flatnonzero(wanted & ~whole)
        most = max(_PIECE // size, 1)
        buffer = page_aligned(min(len(blocks), most) * size)
        for at in range(0, len(blocks), most):
            first, count = merged(blocks[at : at + most])
            data = buffer[: int(count.sum()) * size]
            self.read_ranges(file, first * size, count * size, data, 'auto')

    def read_ranges(
        self,
        file: ReadableFile,
        offset: np.ndarray,
        size: np.ndarray,
        out: np.ndarray,
        engine: str,
    ) -> str:
        """See :meth:`CheckedFile.read_ranges`."""
        used = file.read_ranges(offset, size, out, engine)
        self._check(file, offset, size, out[: int(size.sum())])
        return used

    def _check(
        self,
        file: ReadableFile,
        offset: np.ndarray,
        size: np.ndarray,
        data: np.ndarray,
    ) -> None:
        if self._verify == 'never':
            return
        meta, number = self._meta, self._relation.number
        damaged = find_damage(
            data,
            offset // meta.block_bytes,
            size // meta.block_bytes,
            self._checksums,
            None if self._verify == 'always' else self._of(file),
            number * BLOCKS_OF_FILE,
            meta.generation,
            meta.block_bytes,
        )
        if damaged >= 0:
            at = damaged * meta.block_bytes
            starts = self._relation.chunks[:, OFFSET]
            chunk = int(np.searchsorted(starts, at, 'right')) - 1
            malformed(
                file.path,
                at,
                f'the checksum of a block ({meta.block_bytes} bytes) of '
                f'chunk {chunk} is wrong',
            )


def checked_file(
    folder: Path, meta: GraphMeta, relation: RelationMeta, verify: str
) -> CheckedFile:
    """Returns what checks a relation of a graph of any version."""
    kind = CheckedChunks if meta.version == 1 else CheckedBlocks
    return kind(folder, meta, relation, verify)


def _read_table(
    folder: Path, meta: GraphMeta, relation: RelationMeta
) -> np.ndarray:
    """Reads the checksums of blocks, uint32 ``[num_blocks]``."""
    path = folder / relation.table_file
    blocks = meta.sizes[relation.file] // meta.block_bytes
    size = os.stat(path).st_size
    if size != 4 * blocks:
        malformed(
            path,
            min(size, 4 * blocks),
            f'its size must be {4 * blocks} (got {size})',
        )
    data = page_aligned(4 * blocks)
    File(path).read(0, data)
    if meta.file_checksum(relation.table_file, data) != relation.checksum:
        malformed(path, 0, f'the checksum of {blocks} checksums is wrong')
    return data.view('<u4')


def merged(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joins neighbours of ascending blocks to ranges.

    Returns:
        Tuple[numpy.ndarray, numpy.ndarray]: The first block of each range,
        and the number of its blocks.

    Example:
        >>> merged(np.array([2, 3, 4, 9]))
        (array([2, 9]), array([3, 1]))
    """
    first = np.flatnonzero(np.diff(block, prepend=-2) != 1)
    return block[first], np.diff(first, append=len(block))


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


def _read_chunk(
    file: ReadableFile, relation: RelationMeta, chunk: int
) -> None:
    offset, length = map(int, relation.chunks[chunk, [OFFSET, LENGTH]])
    buffer, header, checksum = page_aligned(min(length, _PIECE)), b'', 0
    for at in range(0, length, _PIECE):
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


def read_times(folder: Path, meta: GraphMeta, number: int) -> np.ndarray:
    """Reads the times of nodes into memory, which forked processes share.

    Those of graphs that were written before they had a checksum are not
    checked.

    Args:
        folder (Path): The folder of the graph.
        meta (GraphMeta): The graph.
        number (int): The number of the node type, which has times.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not as it was written.
    """
    name, size = meta.node_times[number], meta.num_nodes[number]
    assert name is not None
    data = page_aligned(8 * size)
    File(folder / name).read(0, data)
    want = meta.time_checksums[number]
    if want is not None:
        found = zlib.crc32(data.data)
        if meta.version > 1:
            found = meta.file_checksum(name, data)
        if found != want:
            rule = f'the checksum of {size} times is wrong'
            malformed(folder / name, 0, rule)
    return data.view('<i8')
