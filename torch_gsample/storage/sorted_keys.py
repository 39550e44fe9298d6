"""Finds many keys at once among ascending ones."""

import ctypes

import numpy as np

from torch_gsample.storage.crc32c import functions, pointer

#: Keys of a run, about.
_RUN = 16
#: Numbers a key, above which a table by number is larger than the keys.
_DENSE = 32


class SortedKeys:
    """Ascending distinct keys, and a table by which they are found.

    Dense keys have a bit for each number, next to a count, which is one access
    a key; a table of where runs of keys begin leaves a short search among
    others. Tables are small enough for caches, and many accesses in flight.

    Args:
        keys (numpy.ndarray): int64 ``[num_keys]``, from 0 on.

    Example:
        >>> keys = SortedKeys(np.array([2, 5, 9]))
        >>> keys.find(np.array([5, 6, 9]))
        (array([1, 2, 2]), 1)
    """

    def __init__(self, keys: np.ndarray):
        self._keys = keys
        size = int(keys[-1]) + 1 if len(keys) > 0 else 0
        self._is_dense = 0 < size <= _DENSE * len(keys)
        if self._is_dense:
            self._table = np.zeros((size // 64 + 1, 2), np.int64)
            functions().gsample_index_keys(
                *_vector(keys), *_vector(self._table)
            )
            return
        # A run has the keys of equal `key >> shift`.
        self._shift = (_RUN * size // max(len(keys), 1)).bit_length()
        last = size >> self._shift
        begins = np.arange(last + 2) << self._shift
        self._table = np.searchsorted(keys, begins)

    def find(
        self, key: np.ndarray, threads: int = 1
    ) -> tuple[np.ndarray, int]:
        """Returns how many keys are below each, and the first unknown one.

        Args:
            key (numpy.ndarray): int64 ``[n]``, in any order.
            threads (int, optional): Number of threads, at most.

        Returns:
            Tuple[numpy.ndarray, int]: Positions, int64 ``[n]``, and where in
            ``key`` the first one is that is not there, or -1.
        """
        key = np.ascontiguousarray(key, np.int64)
        place, count = np.empty_like(key), ctypes.c_int64(threads)
        if self._is_dense:
            missing = functions().gsample_find_indexed(
                *_vector(self._table), *_vector(key), count, pointer(place)
            )
        else:
            missing = functions().gsample_find_keys(
                *_vector(self._keys),
                pointer(self._table),
                ctypes.c_int64(len(self._table) - 1),
                ctypes.c_int64(self._shift),
                *_vector(key),
                count,
                pointer(place),
            )
        return place, missing


def _vector(array: np.ndarray) -> tuple[ctypes.c_void_p, ctypes.c_int64]:
    """Returns where an array is, and its length."""
    return pointer(array), ctypes.c_int64(len(array))
