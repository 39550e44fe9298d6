"""Search for the number of batches that run together, by measurement."""

import statistics
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_gsample.locks import new_lock
from torch_gsample.torch_private import TorchDispatchMode, tree_leaves

#: Rounds of timing per size, and the smallest and largest size.
_ROUNDS, _FIRST, _LARGEST = 4, 8, 32

#: Maximum time relative to single runs, so that it is never slower.
_GAIN = 0.93
#: Factor for the memory of more seeds than were measured.
_MARGIN = 1.1
#: The largest size for a graph on disk, and the memory of a run without a
#: budget.
_LARGEST_ON_DISK, _MEMORY_ON_DISK = 1024, 256 << 20
#: Slowdown that is certain after two rounds, and gain on disk, where rounds
#: take long.
_LOSS, _CLEAR_ON_DISK = 1.15, 0.8


class SizeSearch:
    """Chooses the number of batches that run together.

    Tries 8, 16, ... batches as long as the time per batch decreases: fewer
    than eight do not gain if eight do not. Runs of batches together and one by
    one alternate, so that other load affects both. A gain must show in the
    minima of both, as other load only adds time, and in most of the rounds.

    Batches of a graph on disk read a block once if they run together, so the
    more the better: if some gain, as many run together as the memory allows.

    Args:
        size (int or str): The number, or ``'auto'``.
        budget (int, optional): Maximum memory of a run in bytes.
    """

    def __init__(self, size: int | str, budget: int | None):
        self._budget = budget
        self._most = size if isinstance(size, int) else _LARGEST
        self._chosen = size if isinstance(size, int) else None
        self._trying, self._alone_left = _FIRST, 0
        self._together: list[float] = []
        self._alone: list[list[float]] = []
        self._gains: dict[int, float] = {1: 1.0}
        self._offered: list[int] = []
        self._counts = True
        self._bytes_per_seed, self._measured, self._seeds = 0.0, 0, 1
        self._on_disk = False
        self._lock = new_lock()

    @property
    def size(self) -> int:
        """Number of batches that a caller should prepare."""
        if self._chosen is not None:
            return self.best
        return min(self._trying, self._most)

    @property
    def best(self) -> int:
        """Number of batches known to be fastest together."""
        best = min(self._chosen or self._fastest(), self._most)
        if not self._on_disk or self._budget is None:
            return best
        # The caller holds the results of as many batches.
        most: float = 4 * self._measured
        if self._bytes_per_seed > 0:
            most = min(most, self._budget / (_MARGIN * self._bytes_per_seed))
        return max(min(best, int(most / self._seeds)), 1)

    @property
    def is_decided(self) -> bool:
        """Whether the search has ended."""
        return self._chosen is not None

    @property
    def is_alone(self) -> bool:
        """Whether batches run one by one from now on."""
        return self._chosen == 1 or self._most == 1

    def read_disk(self) -> None:
        """Allows larger sizes, and bounds their memory."""
        with self._lock:
            if self._on_disk or self._chosen is not None:
                return
            self._on_disk = True
            if self._budget is None:
                self._budget = _MEMORY_ON_DISK

    def settle(self, size: int) -> None:
        """Decides without a measurement."""
        with self._lock:
            self._chosen = size

    def offer(self, count: int) -> None:
        """Records the number of a caller's batches.

        If it is always below the tried number, it is tried instead.
        """
        with self._lock:
            if self._chosen is not None or count >= self._trying:
                self._offered = []
                return
            self._offered.append(count)
            if len(self._offered) == 2 * _ROUNDS and max(self._offered) > 1:
                self._trying, self._offered = max(self._offered), []

    def take(self, sizes: Sequence[int], tries: bool = True) -> int:
        """Returns the number of batches that run together next.

        Args:
            sizes (List[int]): Numbers of seeds.
            tries (bool, optional): Whether the search decides; otherwise only
                the budget does.
        """
        size = self.size if tries else self._most
        tries = tries and self._chosen is None
        if tries and self._alone_left:
            return 1
        count, seeds = 0, 0
        for number in sizes[:size]:
            seeds += number
            if count and not self._fits(seeds):
                break
            count += 1
        # As many as tried, or fewer if the budget is known to require it.
        return 1 if tries and count == len(sizes) < size else count

    def _fits(self, seeds: int) -> bool:
        """Whether a number of seeds is known to be within the budget.

        Far more seeds than measured are not.
        """
        if self._budget is None:
            return True
        known = seeds <= 4 * self._measured
        margin = 1 if seeds <= self._measured else _MARGIN
        return known and margin * seeds * self._bytes_per_seed <= self._budget

    def wants_memory(self, sizes: Sequence[int]) -> bool:
        """Whether to measure a run's memory: if it has more seeds than yet."""
        return self._budget is not None and sum(sizes) > self._measured

    def note_memory(self, sizes: Sequence[int], peak: int) -> None:
        """Records the memory of a run."""
        with self._lock:
            seeds = max(sum(sizes), 1)
            self._seeds = max(self._seeds, *sizes)
            self._measured = max(self._measured, seeds)
            self._bytes_per_seed = max(self._bytes_per_seed, peak / seeds)
            over = not self._fits(2 * seeds)
            if self._chosen is None and len(sizes) < self._trying and over:
                self._trying = len(sizes)  # no larger size can be tried
                self._most = len(sizes)
                if len(sizes) == 1:
                    self._choose()

    def note_failure(self, size: int) -> None:
        """Records that this number of batches cannot run together."""
        with self._lock:
            self._most = max(size // 2, 1)
            if self._chosen is None:
                self._choose()

    def note_time(
        self, size: int, seconds: float, counts: bool = True
    ) -> None:
        """Records the time of a run, and decides if that is enough.

        Args:
            size (int): Its number of batches.
            seconds (float): Its time.
            counts (bool, optional): Whether later runs take as long.
        """
        with self._lock:
            if self._chosen is not None:
                return
            if self._alone_left and size == 1:
                self._alone[-1].append(seconds)
                self._alone_left -= 1
            elif size == self._trying and not self._alone_left:
                self._together.append(seconds)
                self._alone.append([])
                self._alone_left = size
                self._counts = counts
            if self._alone_left or not self._together:
                return
            if not self._counts:
                self._together, self._alone = [], []
            rounds = len(self._together)
            if rounds < 2:
                return
            pairs = self._together, list(map(sum, self._alone))
            ratios = [t / a for t, a in zip(*pairs, strict=True)]
            least, alone = map(min, pairs)
            gain = max(least / alone, statistics.median(ratios))
            clear = self._on_disk and max(ratios) < _CLEAR_ON_DISK
            if rounds == _ROUNDS or min(ratios) > _LOSS or clear:
                self._next(gain)

    def _next(self, gain: float) -> None:
        """Records the gain of a size, and tries the next one if promising."""
        size = self._trying
        # Noise may hide a small gain, which grows with more batches.
        better = gain < 1.05 * min(self._gains.values())
        self._gains[size] = gain
        self._together, self._alone = [], []
        if self._on_disk and gain < _GAIN:
            self._most = max(self._most, _LARGEST_ON_DISK)
            self._chosen = self._most
        elif better and 2 * size <= self._most:
            self._trying = 2 * size
        else:
            self._choose()

    def _choose(self) -> None:
        self._chosen = self._fastest()

    def _fastest(self) -> int:
        best = min(self._gains, key=lambda size: self._gains[size])
        return best if self._gains[best] < _GAIN else 1


class Memory(TorchDispatchMode):
    """Counts the memory of tensors that operators return.

    ``peak`` is the maximum at any time.
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
