"""How many batches run together, found by measuring."""

import statistics
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: How often each size is timed, after a first run, and the most tried.
_ROUNDS, _LARGEST = 4, 32

#: Batches must be that much faster together than alone: never slower.
_GAIN = 0.93


class SizeSearch:
    """Chooses how many batches run together.

    Tries 2, 4, 8, ... batches for as long as a batch becomes faster. Runs of
    batches together and of as many alone take turns, so that what else the
    machine does disturbs both.

    Args:
        size (int or str): The number, or ``'auto'``.
        budget (int, optional): Bytes that a run may take.
    """

    def __init__(self, size: int | str, budget: int | None):
        self._budget = budget
        self._most = size if isinstance(size, int) else _LARGEST
        self._chosen = size if isinstance(size, int) else None
        self._trying, self._alone_left = 2, 0
        self._together: list[float] = []
        self._alone: list[float] = []
        self._gains: dict[int, float] = {1: 1.0}
        self._warm: set[int] = set()
        self._bytes_per_seed, self._measured = 0.0, 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many batches a caller should have ready."""
        return min(self._chosen or self._trying, self._most)

    @property
    def is_alone(self) -> bool:
        """Whether batches run one by one from now on."""
        return self._chosen == 1 or self._most == 1

    def take(self, sizes: Sequence[int]) -> int:
        """How many of some batches run together next, by their seeds."""
        if self._chosen is None and self._alone_left:
            return 1
        count, seeds = 0, 0
        for number in sizes[: self.size]:
            seeds += number
            if count and not self._fits(seeds):
                break
            count += 1
        return count

    def _fits(self, seeds: int) -> bool:
        """Whether so many seeds are within the budget, as far as is known.

        Nothing is known of far more seeds than were measured.
        """
        if self._budget is None:
            return True
        known = seeds <= 4 * self._measured
        return known and seeds * self._bytes_per_seed <= self._budget

    def wants_memory(self, sizes: Sequence[int]) -> bool:
        """Whether to measure a run's memory: that of more seeds than yet."""
        return self._budget is not None and sum(sizes) > self._measured

    def note_memory(self, sizes: Sequence[int], peak: int) -> None:
        """Notes how many bytes a run took."""
        with self._lock:
            seeds = max(sum(sizes), 1)
            self._measured = max(self._measured, seeds)
            self._bytes_per_seed = max(self._bytes_per_seed, peak / seeds)
            over = not self._fits(2 * seeds)
            if self._chosen is None and len(sizes) < self._trying and over:
                self._choose()  # nothing larger can be tried

    def note_failure(self, size: int) -> None:
        """Notes that as many batches do not run together."""
        with self._lock:
            self._most = max(size // 2, 1)
            if self._chosen is None:
                self._choose()

    def note_time(self, size: int, seconds: float) -> None:
        """Notes how long a run took, and decides if that is enough."""
        with self._lock:
            if self._chosen is not None:
                return
            if self._alone_left and size == 1:
                self._alone.append(seconds)
                self._alone_left -= 1
            elif size == self._trying and size not in self._warm:
                self._warm.add(size)
            elif size == self._trying:
                self._together.append(seconds / size)
                self._alone_left = size
            done = len(self._together) == _ROUNDS and not self._alone_left
            if done:
                self._next()

    def _next(self) -> None:
        """Notes the gain of a size, and tries the next one if it may pay."""
        together, alone = map(statistics.median, (self._together, self._alone))
        size = self._trying
        self._gains[size] = together / alone
        self._together, self._alone = [], []
        # What a run costs beside its batches may hide the gain of two, and
        # noise a small gain.
        worse = self._gains[size] > 1.05 * self._gains[size // 2]
        if (size == 2 or not worse) and 2 * size <= self._most:
            self._trying = 2 * size
        else:
            self._choose()

    def _choose(self) -> None:
        best = min(self._gains, key=lambda size: self._gains[size])
        self._chosen = best if self._gains[best] < _GAIN else 1


class Memory(TorchDispatchMode):
    """Counts the bytes of the tensors that operators return.

    ``peak`` is how many there were at a time at most.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._views: Counter[int] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._hold(tensor)
        return out

    def _hold(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if self._views[place] == 0:
            self.now += size
            self.peak = max(self.peak, self.now)
        self._views[place] += 1
        weakref.finalize(tensor, self._release, place, size)

    def _release(self, place: int, size: int) -> None:
        self._views[place] -= 1
        if self._views[place] == 0:
            self.now -= size
