"""Finds many keys at once among ascending ones."""

import numpy as np

#: Keys of a run, about.
_RUN = 16


class SortedKeys:
    """Ascending distinct keys, and a table of where runs of them begin.

    The table leaves a few steps of a binary search, which are taken for all
    keys at a time. A search of all keys for one after the other guesses a
    branch wrong at most of its steps.

    Args:
        keys (numpy.ndarray): int64 ``[num_keys]``, from 0 on.

    Example:
        >>> keys = SortedKeys(np.array([2, 5, 9]))
        >>> keys.find(np.array([5, 6, 9]))
        (array([1, 2, 2]), array([ True, False,  True]))
    """

    def __init__(self, keys: np.ndarray):
        self._keys = keys
        size = int(keys[-1]) + 1 if len(keys) > 0 else 0
        # A run has the keys of equal `key >> shift`.
        self._shift = (_RUN * size // max(len(keys), 1)).bit_length()
        last = size >> self._shift
        begins = np.arange(last + 2) << self._shift
        self._begin = np.searchsorted(keys, begins)
        most = int(np.diff(self._begin).max()).bit_length()
        self._steps = [1 << i for i in reversed(range(most))]

    def find(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the place of each key, and whether it is there.

        Args:
            key (numpy.ndarray): int64 ``[n]``; in ascending order it is
                found soonest.
        """
        if len(self._keys) == 0:
            return np.zeros_like(key), np.zeros(len(key), bool)
        run = np.clip(key >> self._shift, 0, len(self._begin) - 1)
        place = self._begin[run]
        for step in self._steps:
            # All keys before `place` are less.
            less = self._keys.take(place + (step - 1), mode='clip') < key
            place += less * step
        place = np.minimum(place, len(self._keys) - 1)
        return place, self._keys.take(place) == key
