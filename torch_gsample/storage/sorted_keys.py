"""Finds many keys at once in an ascending list."""

import ctypes

import numpy as np

from torch_gsample.storage.crc32c import functions, pointer

#: Approximate number of keys in a run.
_RUN = 16
#: Values per key above which a bitmap is larger than the keys.
_DENSE = 32


def distinct(ids: np.ndarray) -> np.ndarray:
    """Returns the distinct ids, ascending.

    Sorting is several times faster than ``np.unique``, which hashes integers.
    """
    ids = np.sort(ids)
    return ids[np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))]


class SortedKeys:
    """Ascending distinct keys with a lookup table.

    Dense keys have a bitmap with a count next to each word: one access per
    key. Sparse keys have a table of the starts of runs, and a short search
    within a run. Tables fit in caches, with many accesses in flight.

    Args:
        keys (numpy.ndarray): int64 ``[num_keys]``, not negative.

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
        # The keys of a run have equal `key >> shift`.
        self._shift = (_RUN * size // max(len(keys), 1)).bit_length()
        last = size >> self._shift
        begins = np.arange(last + 2) << self._shift
        self._table = np.searchsorted(keys, begins)

    @property
    def nbytes(self) -> int:
        """Bytes of the table, without the keys."""
        return self._table.nbytes

    def find(
        self, key: np.ndarray, threads: int = 1
    ) -> tuple[np.ndarray, int]:
        """Returns the position of each key, and the first missing one.

        Args:
            key (numpy.ndarray): int64 ``[n]``, in any order.
            threads (int, optional): Maximum number of threads.

        Returns:
            Tuple[numpy.ndarray, int]: Positions, int64 ``[n]``, and the index
            in ``key`` of the first missing one, or -1.
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
    """Returns the address and length of an array."""
    return pointer(array), ctypes.c_int64(len(array))
