"""Counters of sampled nodes and edges, and the time of each phase.

Samples come in, plain numbers go out. In a profiler's trace, phases are
ranges.
"""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from time import perf_counter
from typing import Any

import torch

from torch_gsample.locks import new_lock
from torch_gsample.torch_private import is_profiling


class Counts:
    """Counters of one process. Threads may count at the same time.

    Example:
        >>> counts = Counts()
        >>> counts.add([[2, 3], [0, 1]], [[5], [1]])
        >>> counts.stats()['nodes'], counts.stats()['edges']
        ([2, 4], [6])
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self.reset()

    def reset(self) -> None:
        """Resets all counters to zero."""
        with self._lock:
            self._batches = 0
            self._nodes: list[int] = []
            self._edges: list[int] = []
            self._seconds: dict[str, float] = {}

    def add(
        self,
        nodes: Iterable[Sequence[int]],
        edges: Iterable[Sequence[int]],
        **seconds: float,
    ) -> None:
        """Counts a batch.

        Args:
            nodes (Iterable[List[int]]): For each node type, new nodes at each
                hop, seeds first.
            edges (Iterable[List[int]]): For each edge type, edges at each
                hop.
            **seconds (float): Time of phases.
        """
        with self._lock:
            self._batches += 1
            _add(self._nodes, nodes)
            _add(self._edges, edges)
            for name, time in seconds.items():
                self._seconds[name] = self._seconds.get(name, 0.0) + time

    def add_sample(self, out: Any) -> None:
        """Counts a ``SamplerOutput`` or a ``HeteroSamplerOutput``."""
        self.add(
            _by_type(out.num_sampled_nodes, out.node),
            _by_type(out.num_sampled_edges, out.row),
        )

    def phase(self, name: str) -> '_Phase':
        """Returns a context that adds its time to a phase.

        A profiler shows it as ``gsample::<name>``.
        """
        return _Phase(self, name)

    def add_seconds(self, name: str, seconds: float) -> None:
        """Adds time to a phase."""
        with self._lock:
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def stats(self) -> dict[str, Any]:
        """Returns the counters; see :meth:`KeyedSampler.stats`."""
        with self._lock:
            new, edges = sum(self._nodes[1:]), sum(self._edges)
            return {
                'batches': self._batches,
                'nodes': list(self._nodes),
                'edges': list(self._edges),
                'duplicates': 1 - new / edges if edges else 0.0,
                'seconds': dict(self._seconds),
            }

    def __reduce__(self) -> tuple[Any, ...]:
        return Counts, ()  # another process starts at zero


class _Phase:
    __slots__ = ('_counts', '_name', '_range', '_start')

    def __init__(self, counts: Counts, name: str):
        self._counts, self._name = counts, name

    def __enter__(self) -> None:
        # A range costs microseconds, even without a profiler.
        self._range = None
        if is_profiling():
            self._range = torch.profiler.record_function(
                f'gsample::{self._name}'
            )
            self._range.__enter__()
        self._start = perf_counter()

    def __exit__(self, *error: Any) -> None:
        seconds, counts = perf_counter() - self._start, self._counts
        with counts._lock:
            total = counts._seconds
            total[self._name] = total.get(self._name, 0.0) + seconds
        if self._range is not None:
            self._range.__exit__(*error)


def _add(totals: list[int], by_type: Iterable[Sequence[int]]) -> None:
    totals[:] = map(sum, zip_longest(totals, *by_type, fillvalue=0))


def _by_type(counts: Any, values: Any) -> Iterable[Sequence[int]]:
    if isinstance(counts, dict):
        return counts.values()
    if counts is not None:
        return [counts]
    if isinstance(values, dict):
        return [[v.numel()] for v in values.values()]
    return [[values.numel()]]
