"""Keeps the rows in memory that batches need most often.

Scores of nodes come in; rows of batches are copied, and missing ones named.
"""

from typing import Any

import numpy as np
from torch import Tensor

from torch_gsample.storage.copy_rows import copy_rows
from torch_gsample.storage.read_windows import Key
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.sorted_keys import SortedKeys


class HotRows:
    """The rows of the most frequently needed nodes, in memory.

    Args:
        files (Dict[Tuple, RowSource]): The files, by group and name.
        scores (Dict[Any, torch.Tensor]): How often each node is needed, by
            type, ``[num_nodes]``.
        budget (int): Bytes of memory, divided in proportion to file sizes.
    """

    def __init__(
        self,
        files: dict[Key, RowSource],
        scores: dict[Any, Tensor],
        budget: int,
    ):
        self._files = files
        self.rows: dict[Any, np.ndarray] = {}
        self._keys: dict[Any, SortedKeys] = {}
        self._data: dict[Key, Tensor] = {}
        widths: dict[Any, int] = {}
        for (group, _), file in files.items():
            # An id, and its share of a lookup table.
            widths[group] = widths.get(group, 16) + file.row_bytes
        total = sum(w * len(scores[g]) for g, w in widths.items())
        share = min(budget / max(total, 1), 1.0)
        for group in widths:
            score = scores[group]
            best = score.topk(int(share * len(score)), sorted=False).indices
            self.rows[group] = best.sort().values.numpy()
            self._keys[group] = SortedKeys(self.rows[group])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, their ids and lookup tables."""
        widths = [
            (f.row_bytes, self.rows[g]) for (g, _), f in self._files.items()
        ]
        rows = sum(width * len(rows) for width, rows in widths)
        tables = sum(keys.nbytes for keys in self._keys.values())
        return rows + tables + sum(rows.nbytes for rows in self.rows.values())

    def load(self, gaps: dict[Key, int]) -> None:
        """Reads the rows, once."""
        for key, file in self._files.items():
            if key not in self._data:
                self._data[key] = file.read_bytes(self.rows[key[0]], gaps[key])

    def misses(self, group: Any, ids: np.ndarray) -> np.ndarray:
        """Returns which nodes are missing, bool ``[n]``."""
        return self._find(group, ids)[1]

    def _find(
        self, group: Any, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = self.rows[group]
        if len(rows) == 0:
            return np.zeros(len(ids), np.int64), np.ones(len(ids), bool)
        at, missing = self._keys[group].find(ids)
        if missing < 0:
            return at, np.zeros(len(ids), bool)
        np.minimum(at, len(rows) - 1, out=at)
        return at, rows[at] != ids

    def copy(
        self, key: Key, index: np.ndarray, out: np.ndarray
    ) -> np.ndarray | None:
        """Copies the rows in memory, and returns which are missing.

        Args:
            key (Tuple): The file.
            index (numpy.ndarray): int64 ``[n]``, the rows.
            out (numpy.ndarray): uint8 ``[n, row_bytes]``.

        Returns:
            numpy.ndarray, optional: int64 ``[m]``, the positions of missing
            rows; None if all are.
        """
        at, miss = self._find(key[0], index)
        missing = np.flatnonzero(miss)
        if len(missing) == len(index):
            return None
        found = np.flatnonzero(~miss)
        copy_rows(self._data[key].numpy(), at[found], out, found)
        return missing
