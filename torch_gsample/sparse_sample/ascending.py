"""Sorted entries of columns, which second-order walks search.

Columns come in; a sorted copy of their entries goes out. It is cached for the
lifetime of the columns, with 4 or 8 bytes per edge.
"""

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.locks import new_lock
from torch_gsample.snapshot import Snapshot, add_keeper

#: Number of walk steps over unsorted columns that cost as much as sorting an
#: edge.
_STEPS_PER_EDGE = 4


@dataclass
class _Known:
    """Cached state of some columns, valid until their tensors change."""

    snapshot: Snapshot
    steps: int = 0
    entries: Tensor | None = None


class _Cache:
    def __init__(self) -> None:
        self._known: WeakKeyDictionary[CSC, _Known] = WeakKeyDictionary()
        self._lock = new_lock()

    def forget(self) -> None:
        with self._lock:
            self._known.clear()

    def entries(self, columns: CSC, steps: int) -> Tensor | None:
        tensors = columns.indptr, columns.indices
        with self._lock:
            known = self._known.get(columns)
            if known is None or not known.snapshot.holds(tensors):
                known = self._known[columns] = _Known(Snapshot(tensors))
            known.steps += steps
            enough = known.steps >= _STEPS_PER_EDGE * columns.num_edges
            if known.entries is None and enough:
                known.entries = _sort(columns)
            return known.entries


_cache = add_keeper(_Cache())


def ascending_entries(columns: CSC, steps: int) -> Tensor | None:
    """Returns the entries of each column in ascending order, for a call.

    Columns are sorted once walks have lost the time of sorting them. So the
    total time is at most about twice the optimum.

    Args:
        columns (CSC): A square matrix on the CPU.
        steps (int): Number of steps of the walks in the call.

    Returns:
        torch.Tensor, optional: ``[num_edges]``: ``columns.indices``, or a
        sorted copy; None before enough steps.
    """
    return _cache.entries(columns, steps)


def _sort(columns: CSC) -> Tensor:
    """Returns a sorted copy, or the entries themselves if they ascend."""
    indices, starts = columns.indices, columns.indptr[1:-1].long()
    descends = indices[1:] < indices[:-1]
    descends[starts[(starts > 0) & (starts < columns.num_edges)] - 1] = False
    if not bool(descends.any()):
        return indices
    plain = replace(columns, edge_id=None)
    # Transposing is stable; twice makes rows ascend within columns.
    return plain.transpose().transpose().indices
