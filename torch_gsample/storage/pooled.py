"""Vectors in memory reused from earlier batches.

The kernel would zero fresh memory page by page, which takes longer than
filling it with a sample. Operators use the same pool.
"""

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import functions

_SMALL = 1 << 13  # items; malloc is as fast below it


class _Memory:
    """A block of the pool, returned when its last array is freed."""

    def __init__(self, data: int, num_bytes: ctypes.c_int64, size: int):
        self._give = functions().gsample_give_memory
        self._data, self._bytes = data, num_bytes
        self.__array_interface__: dict[str, Any] = {
            'version': 3,
            'typestr': '<i8',
            'shape': (size,),
            'data': (data, False),
        }

    def __del__(self) -> None:
        self._give(ctypes.c_void_p(self._data), self._bytes)


def empty_vector(size: int) -> Tensor:
    """Returns an uninitialised int64 vector."""
    num_bytes = ctypes.c_int64(8 * size)
    data = None
    if size >= _SMALL:
        data = functions().gsample_take_memory(ctypes.byref(num_bytes))
    if data is None:  # torch raises the out-of-memory error
        return torch.empty(size, dtype=torch.int64)
    return torch.from_numpy(np.asarray(_Memory(data, num_bytes, size)))


def empty_items(size: int, dtype: torch.dtype) -> Tensor:
    """Returns an uninitialised vector of items of 4 or 8 bytes."""
    if dtype == torch.int64:
        return empty_vector(size)
    words = -(-size * dtype.itemsize // 8)
    return empty_vector(words).view(dtype)[:size]
