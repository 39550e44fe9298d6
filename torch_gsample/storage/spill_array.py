"""Maps an array held open by a process, and checks it before use.

The writer's description of an array comes in, a tensor goes out. The file has
no name, so nobody truncates it by accident, and the system frees it when the
last process that has it open ends. Other processes open it by the writer's
descriptor.
"""

import errno
import mmap
import os
import zlib
from typing import Any

import numpy as np
import torch

from torch_gsample.storage.checksums import touched

BLOCK = 1 << 20  # bytes per checksum of a file on disk
_BETWEEN = 64  # blocks checked before pages are released


class SpillArray:
    """An array of another process, or of this one.

    Args:
        facts (Dict[str, Any]): The result of :meth:`ArrayWriter.finish`.

    Raises:
        OSError: If its file is missing or too short.
    """

    def __init__(self, facts: dict[str, Any]):
        self._facts = facts
        self._item = np.dtype(facts['dtype']).itemsize
        self._size = facts['size'] * self._item
        self._map = self._open() if self._size > 0 else None
        values = (
            np.empty(0, facts['dtype'])
            if self._map is None
            else np.frombuffer(self._map, facts['dtype'])
        )
        #: The items. Check those of a file on disk before use.
        self.tensor = torch.from_numpy(values)
        self._checksums = facts['checksums'] or []
        self._unchecked = np.ones(len(self._checksums), bool)

    def _open(self) -> mmap.mmap:
        facts = self._facts
        path = f'/proc/{facts["process"]}/fd/{facts["descriptor"]}'
        try:
            with open(path, 'rb') as file:
                state = os.fstat(file.fileno())
                if [state.st_dev, state.st_ino] != facts['file']:
                    raise FileNotFoundError  # descriptor was reused
                self._check_size(state.st_size)
                # A private mapping: nobody writes, but torch requires writable
                # memory.
                return mmap.mmap(
                    file.fileno(), self._size, access=mmap.ACCESS_COPY
                )
        except FileNotFoundError as error:
            raise FileNotFoundError(
                errno.ENOENT,
                f'process {facts["process"]}, which sampled the epoch, ended '
                'or dropped it',
                facts['name'],
            ) from error

    @property
    def is_on_disk(self) -> bool:
        """Whether it is in a file on disk, not in memory."""
        return bool(self._checksums)

    def check(self, begin: np.ndarray, end: np.ndarray) -> None:
        """Checks blocks on disk before use.

        Args:
            begin (numpy.ndarray): int64 ``[n]``, the starts of ranges of
                items.
            end (numpy.ndarray): int64 ``[n]``, the ends of ranges.

        Raises:
            OSError: If the file is too short.
            ValueError: If a block is damaged.
        """
        if self._map is None or not self._checksums:
            return
        self._check_size(self._map.size())
        if not self._unchecked.any():
            return
        first = begin * self._item // BLOCK
        last = -(-end * self._item // BLOCK)
        wanted = touched(first, last, len(self._unchecked))
        blocks = np.flatnonzero(wanted & self._unchecked)
        self._check_blocks(self._map, blocks)

    def check_all(self) -> None:
        """Checks all blocks on disk; see :meth:`check`."""
        if self._map is not None and self._checksums:
            self._check_size(self._map.size())
            self._check_blocks(self._map, np.flatnonzero(self._unchecked))

    def _check_size(self, size: int) -> None:
        """Checks the size; mappings of truncated files kill the process."""
        if size < self._size:
            raise OSError(
                errno.EIO,
                f'the file ends too early ({size} of {self._size} bytes)',
                self._facts['name'],
            )

    def _check_blocks(self, data: mmap.mmap, blocks: np.ndarray) -> None:
        view = memoryview(data)
        for i, block in enumerate(blocks.tolist()):
            part = view[block * BLOCK : (block + 1) * BLOCK]
            if zlib.crc32(part) != self._checksums[block]:
                raise ValueError(
                    f'StreamingSampler: {self._facts["name"]}, offset '
                    f'{block * BLOCK}: the checksum of a block ({len(part)} '
                    'bytes) is wrong'
                )
            self._unchecked[block] = False
            if i % _BETWEEN == _BETWEEN - 1:
                self.release()

    def release(self) -> None:
        """Releases the pages that were read.

        They remain cached, but no longer count as this process's memory.
        """
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
