"""Checks blocks of a relation by their checksums: version 2 of the format.

Blocks come in; damaged ones are an error.
"""

import os
from pathlib import Path

import numpy as np

from torch_gsample.storage.checksums import (
    PIECE,
    CheckedChunks,
    CheckedFile,
    touched,
)
from torch_gsample.storage.crc32c import find_damage
from torch_gsample.storage.format import (
    BLOCKS_OF_FILE,
    OFFSET,
    GraphMeta,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.reading import File, ReadableFile, page_aligned


class CheckedBlocks(CheckedFile):
    """Checks blocks by the checksums in a file: version 2 of the format.

    The checksum file is read into memory that forked processes share.

    Raises:
        OSError: If the checksum file cannot be read.
        ValueError: If it is damaged.
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
        most = max(PIECE // size, 1)
        buffer = page_aligned(min(len(blocks), most) * size)
        for at in range(0, len(blocks), most):
            first, count = merged(blocks[at : at + most])
            data = buffer[: int(count.sum()) * size]
            self.read_ranges(file, first * size, count * size, data, 'auto')

    def read_bytes(
        self, file: ReadableFile, begin: int, out: np.ndarray
    ) -> None:
        """See :meth:`CheckedFile.read_bytes`: each block is read once."""
        size, end = self._meta.block_bytes, begin + out.size
        first, last = begin // size * size, -(-end // size) * size
        buffer = page_aligned(min(last - first, PIECE))
        for at in range(first, last, PIECE):
            data = buffer[: last - at]
            where = np.array([at]), np.array([data.size])
            self.read_ranges(file, *where, data, 'threads')
            low, high = max(begin, at), min(end, at + data.size)
            out[low - begin : high - begin] = data[low - at : high - at]

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
    """Returns the checker for a relation, for any version of the format."""
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
    """Merges adjacent ascending blocks into ranges.

    Returns:
        Tuple[numpy.ndarray, numpy.ndarray]: The first block of each range,
        and the number of its blocks.

    Example:
        >>> merged(np.array([2, 3, 4, 9]))
        (array([2, 9]), array([3, 1]))
    """
    first = np.flatnonzero(np.diff(block, prepend=-2) != 1)
    return block[first], np.diff(first, append=len(block))
