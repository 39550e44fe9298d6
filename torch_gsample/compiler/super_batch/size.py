"""How many batches run together, found by measuring."""

import statistics
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: How often each size is timed, and the most that is tried.
_ROUNDS, _LARGEST = 5, 64

#: By how much more batches must be faster to be chosen: never slower.
_GAIN = 0.95


class SizeSearch:
    """Chooses how many batches run together.

    Tries 1, 2, 4, ... batches for as long as a batch becomes faster, or at
    least not slower than alone.

    Args:
        size (int or str): The number, or ``'auto'``.
        budget (int, optional): Bytes that a run may take.
    """

    def __init__(self, size: int | str, budget: int | None):
        self._fixed = size if isinstance(size, int) else None
        self._budget = budget
        self._most = _LARGEST if self._fixed is None else self._fixed
        self._trying, self._chosen = 1, self._fixed
        self._seconds: dict[int, list[float]] = {}
        self._bytes_per_seed, self._measured = 0.0, 0
        self._warm: set[int] = set()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many batches to run next."""
        return min(self._chosen or self._trying, self._most)

    def take(self, sizes: Sequence[int]) -> int:
        """How many of some batches run together, by their seeds."""
        count, seeds = 0, 0
        for number in sizes[: self.size]:
            seeds += number
            over = self._budget and seeds * self._bytes_per_seed > self._budget
            if count and (over or self._unknown(seeds)):
                break
            count += 1
        return count

    def _unknown(self, seeds: int) -> bool:
        """Whether nothing like a run of as many seeds was measured."""
        return self._budget is not None and seeds > 4 * self._measured

    def wants_memory(self, sizes: Sequence[int]) -> bool:
        """Whether to measure a run's memory: that of more seeds than yet."""
        return self._budget is not None and sum(sizes) > self._measured

    def note_memory(self, sizes: Sequence[int], peak: int) -> None:
        """Notes how many bytes a run took."""
        with self._lock:
            seeds = max(sum(sizes), 1)
            self._measured = max(self._measured, int(1.5 * seeds))
            self._bytes_per_seed = max(self._bytes_per_seed, peak / seeds)

    def note_failure(self, size: int) -> None:
        """Notes that as many batches do not run together."""
        with self._lock:
            self._most = max(size // 2, 1)
            if self._chosen is None:
                self._choose()

    def note_time(self, size: int, seconds: float) -> None:
        """Notes how long a run took, and decides if that is enough."""
        if self._chosen is not None or size != self.size:
            return
        with self._lock:
            if size not in self._warm:
                self._warm.add(size)
                return
            times = self._seconds.setdefault(size, [])
            times.append(seconds / size)
            if len(times) < _ROUNDS:
                return
            slower = self._median(size) > self._median(1) * 1.1
            if slower or 2 * size > self._most:
                self._choose()
            else:
                self._trying = 2 * size

    def _median(self, size: int) -> float:
        return statistics.median(self._seconds[size])

    def _choose(self) -> None:
        known = [s for s, t in self._seconds.items() if len(t) == _ROUNDS]
        best = min(known, key=self._median, default=1)
        pays = best > 1 and self._median(best) < _GAIN * self._median(1)
        self._chosen = best if pays else 1


class _Memory(TorchDispatchMode):
    """Counts the bytes of the tensors that operators return."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._held: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and tensor._base is None:
                self._hold(tensor)
        return out

    def _hold(self, tensor: Tensor) -> None:
        size, key = tensor.untyped_storage().nbytes(), id(tensor)
        if key in self._held:
            return
        self._held.add(key)
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(tensor, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._held.discard(key)
        self.now -= size


class _Nothing:
    peak = 0


@contextmanager
def counted(measure: bool) -> Iterator[Any]:
    """Counts the bytes of a run, if that is wanted."""
    if not measure:
        yield _Nothing
        return
    with _Memory() as memory:
        yield memory
