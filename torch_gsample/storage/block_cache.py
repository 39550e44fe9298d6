"""The cache of a file's blocks.

Offsets of items come in; items of cached blocks, and the places of others, go
out.
"""

import ctypes

import numpy as np

from torch_gsample.storage.crc32c import BLOCK, functions, pointer
from torch_gsample.storage.reading import page_aligned

#: Blocks that a full cache remembers without their data, by its capacity.
_REFUSED = 8


class _Blocks(ctypes.Structure):
    """The blocks of a cache, as C functions receive them."""

    _fields_ = (
        ('slot', ctypes.c_void_p),
        ('num_blocks', ctypes.c_int64),
        ('data', ctypes.c_void_p),
        ('marked', ctypes.c_void_p),
        ('guard', ctypes.c_void_p),
    )


class BlockCache:
    """Caches blocks, as many as fit in memory.

    A block that is used again is marked. For eviction, a hand moves around the
    slots, clears marks and evicts the first unmarked block (the second chance
    of CLOCK, as in SIEVE). A full cache only takes blocks that were read
    recently: most blocks are read once, and cost a copy.

    Args:
        num_blocks (int): Number of blocks of the file.
        capacity (int): Number of blocks that the cache holds.
    """

    def __init__(self, num_blocks: int, capacity: int):
        self._functions = functions()
        self.capacity = min(capacity, num_blocks)
        self.data = page_aligned(self.capacity * BLOCK, huge=True)
        # Slot + 1 of each block. Pages of zeros take no memory.
        self._slot = page_aligned(4 * num_blocks).view(np.int32)
        self._block = np.full(self.capacity, -1)
        self._marked = np.zeros(self.capacity, bool)
        # Blocks that a full cache did not take.
        self._refused = page_aligned(num_blocks)
        # The hand's position, and the number of refused blocks.
        self._position = np.zeros(2, np.int64)
        #: For C functions that read items of cached blocks.
        self.blocks = _Blocks(
            self._slot.ctypes.data,
            num_blocks,
            self.data.ctypes.data,
            self._marked.ctypes.data,
            self._functions.gsample_new_guard(),
        )
        if self.blocks.guard is None:
            raise MemoryError('BlockCache: not enough memory for a lock')
        self.blocks_pointer = ctypes.pointer(self.blocks)

    def __del__(self) -> None:
        if (blocks := getattr(self, 'blocks', None)) is not None:
            guard = ctypes.c_void_p(blocks.guard)
            self._functions.gsample_free_guard(guard)

    def find(self, offset: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Copies items of cached blocks, and marks these blocks.

        Args:
            offset (numpy.ndarray): int64 ``[n]``, offsets in the file,
                multiples of the item size.
            out (numpy.ndarray): ``[n]``, items of 4 or 8 bytes, or blocks.

        Returns:
            numpy.ndarray: int64, the indices of the missing items.
        """
        assert out.itemsize in (4, 8, BLOCK), out.dtype
        missing = np.empty(len(offset), np.int64)
        offset = np.ascontiguousarray(offset, np.int64)
        count = self._functions.gsample_find_items(
            self.blocks_pointer,
            pointer(offset),
            ctypes.c_int64(len(offset)),
            ctypes.c_int64(out.itemsize),
            pointer(out),
            pointer(missing),
        )
        return missing[:count]

    def insert(self, block: np.ndarray, data: np.ndarray) -> None:
        """Adds distinct blocks, unless they are cached; the last ones remain.

        Args:
            block (numpy.ndarray): int64 ``[n]``.
            data (numpy.ndarray): uint8 ``[n * BLOCK]``.
        """
        if self.capacity == 0:
            return
        block = np.ascontiguousarray(block, np.int64)
        self._functions.gsample_insert_blocks(
            pointer(block),
            ctypes.c_int64(len(block)),
            pointer(data),
            ctypes.c_int64(self.capacity),
            ctypes.c_int64(len(self._slot)),
            ctypes.c_int64(_REFUSED * self.capacity),
            pointer(self._slot),
            pointer(self._block),
            pointer(self._marked),
            pointer(self._refused),
            pointer(self._position),
            pointer(self.data),
            ctypes.c_void_p(self.blocks.guard),
        )
