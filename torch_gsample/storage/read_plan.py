"""Chooses how the rows of coming batches are read, and reads them so.

Samples of an epoch come in; the plan that a model of the disk finds cheapest
reads their features.
"""

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.read_model import DiskModel, Reads, count_reads
from torch_gsample.storage.read_windows import (
    Key,
    Window,
    WindowReads,
    sampled_nodes,
)

PLANS = ('auto', 'single', 'hot', 'window')
#: The least memory for rows.
_LEAST = 1 << 20


class HotRows:
    """The rows of the nodes that are needed most, in memory.

    Args:
        files (Dict[Tuple, FeatureFile]): The files, by group and name.
        scores (Dict[Any, torch.Tensor]): For each type of nodes how often one
            is needed, ``[num_nodes]``.
        budget (int): Bytes of memory, shared by the size of files.
    """

    def __init__(
        self,
        files: dict[Key, FeatureFile],
        scores: dict[Any, Tensor],
        budget: int,
    ):
        self._files = files
        self.rows: dict[Any, np.ndarray] = {}
        self._data: dict[Key, Tensor] = {}
        widths: dict[Any, int] = {}
        for (group, _), file in files.items():
            widths[group] = widths.get(group, 8) + file.row_bytes
        total = sum(w * len(scores[g]) for g, w in widths.items())
        share = min(budget / max(total, 1), 1.0)
        for group in widths:
            score = scores[group]
            best = score.topk(int(share * len(score)), sorted=False).indices
            self.rows[group] = best.sort().values.numpy()

    def load(self, gap: int) -> None:
        """Reads the rows, once."""
        for key, file in self._files.items():
            if key not in self._data:
                self._data[key] = file.read_bytes(self.rows[key[0]], gap)

    def misses(self, group: Any, ids: np.ndarray) -> np.ndarray:
        """Returns which nodes are not among them, bool ``[n]``."""
        return self._find(group, ids)[1]

    def _find(
        self, group: Any, ids: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = self.rows[group]
        if len(rows) == 0:
            return np.zeros(len(ids), np.int64), np.ones(len(ids), bool)
        at = np.searchsorted(rows, ids)
        at[at == len(rows)] = 0
        return at, rows[at] != ids

    def read(self, key: Key, index: np.ndarray, gap: int) -> Tensor:
        """Returns rows as they are on disk, read where they are not here."""
        at, miss = self._find(key[0], index)
        missing = np.flatnonzero(miss)
        out = self._data[key].index_select(0, torch.from_numpy(at))
        if len(missing):
            read = self._files[key].read_bytes(index[missing], gap)
            out[torch.from_numpy(missing)] = read
        return out


class ReadPlan:
    """How the features of coming batches are read.

    Args:
        files (Dict[Tuple, FeatureFile]): The files of nodes' features.
        memory_limit (int): See :meth:`DiskFeatureStore.plan_reads`.
        plan (str): See there, as for all others.
        scores (Dict[Any, torch.Tensor], optional): See there.
        model (DiskModel, optional): See there.
        most (int): See there.
    """

    def __init__(
        self,
        files: dict[Key, FeatureFile],
        memory_limit: int,
        plan: str,
        scores: dict[Any, Tensor] | None,
        model: DiskModel | None,
        most: int,
    ):
        self.files, self.plan = files, None if plan == 'auto' else plan
        self._process, self._most = os.getpid(), most
        counts: dict[Any, int] = {}
        for (group, _), file in files.items():
            counts[group] = max(counts.get(group, 0), len(file))
        self.memory = {
            'limit': memory_limit,
            'marks of nodes': sum(counts.values()),
            'checksums, blocks': sum(f.memory for f in files.values()),
        }
        fixed = sum(self.memory.values()) - memory_limit
        self.budget = memory_limit - fixed
        if self.budget < _LEAST:
            raise ValueError(
                f"DiskFeatureStore.plan_reads: 'memory_limit' must be at "
                f'least {fixed + _LEAST}: {fixed} for marks of nodes, '
                f'checksums and blocks, and {_LEAST} for rows (got '
                f'{memory_limit})'
            )
        largest = max(files.values(), key=lambda f: len(f) * f.row_bytes)
        self.model = model or DiskModel.calibrate(largest)
        self.hot: HotRows | None = None
        if scores is not None and plan in ('auto', 'hot'):
            self.hot = HotRows(files, scores, self.budget)
        if plan == 'hot':
            assert self.hot is not None
            self.hot.load(self.model.gap)
        self._windows: WindowReads | None = None
        #: What each plan takes a batch, by the samples of the first window.
        self.expected: dict[str, tuple[int, Reads]] = {}
        self._seconds, self._batches = 0.0, 0

    def read(self, key: Key, index: np.ndarray) -> Tensor:
        """Returns rows as they are on disk, uint8 ``[n, row_bytes]``."""
        start = time.perf_counter()
        try:
            # A forked process has neither the thread nor its lock.
            if self._windows is not None and self._process == os.getpid():
                found = self._windows.find(key, index)
                if found is not None:
                    return found
            if self.plan == 'hot' and self.hot is not None:
                return self.hot.read(key, index, self.model.gap)
            return self.files[key].read_bytes(index, self.model.gap)
        finally:
            self._seconds += time.perf_counter() - start

    def read_ahead(self, samples: Iterable[Any], behind: int) -> Iterator[Any]:
        """Yields samples, whose rows may have been read by then."""
        reads = WindowReads(
            self.files, self.budget, self.model.gap, self._most
        )
        windows = reads.collect(samples)
        if self.plan in (None, 'window'):
            first = windows.complete(Window())
            if not self.expected:
                self._compare(first, behind)
            if self.plan is None:
                self.plan = min(self.expected, key=self._seconds_of)
                if self.plan == 'hot' and self.hot is not None:
                    self.hot.load(self.model.gap)
                if self.plan != 'hot':
                    self.hot = None  # its list takes memory
            if self.plan == 'window':
                yield from self._read_windows(reads, windows, first, behind)
                return
            yield from self._count(first.samples)
        yield from self._count(windows.rest())

    def _count(self, samples: Iterable[Any]) -> Iterator[Any]:
        for sample in samples:
            self._batches += 1
            yield sample

    def _read_windows(
        self, reads: WindowReads, windows: Any, first: Window, behind: int
    ) -> Iterator[Any]:
        self._windows = reads
        yield from self._count(reads.run(windows, first, behind))

    def _compare(self, window: Window, behind: int) -> None:
        """Counts the reads of a window's batches under each plan."""
        gap, count = self.model.gap, max(len(window.samples), 1)
        single, hot = Reads(), Reads()
        for sample in window.samples:
            for group, ids in sampled_nodes(sample).items():
                if not any(key[0] == group for key in self.files):
                    continue
                rows = np.unique(ids)
                single += self._reads(group, rows, gap)
                if self.hot is not None:
                    rows = rows[self.hot.misses(group, rows)]
                    hot += self._reads(group, rows, gap)
        together = Reads()
        for group, rows in window.rows.items():
            together += self._reads(group, rows, gap)

        def share(reads: Reads) -> Reads:
            return Reads(reads.requests / count, reads.size / count)

        self.expected = {'single': (1, share(single))}
        if self.hot is not None:
            self.expected['hot'] = 1, share(hot)
        # Rows are gone before the last batches of few are joined with them.
        if window.rows and (count > behind or self.plan == 'window'):
            self.expected['window'] = count, share(together)

    def _reads(self, group: Any, rows: np.ndarray, gap: int) -> Reads:
        out = Reads()
        for key, file in self.files.items():
            if key[0] == group:
                out += count_reads(rows, file.row_bytes, gap)
        return out

    def _seconds_of(self, plan: str) -> float:
        return self.model.seconds(self.expected[plan][1])

    def measured(self) -> float | None:
        """Returns the seconds of reads a batch in this process, if any."""
        if self._windows is not None and self._windows.stats['batches']:
            stats = self._windows.stats
            return stats['read'] / stats['batches']
        return self._seconds / self._batches if self._batches else None

    def explain(self) -> str:
        """Returns what each plan costs, and which one was chosen."""
        memory = [f'{k} {v / 1e6:.1f} MB' for k, v in self.memory.items()]
        memory.append(f'rows and samples {self.budget / 1e6:.1f} MB')
        lines = [
            f'disk: {self.model.request_seconds * 1e6:.1f} us a request, '
            f'{self.model.bytes_per_second / 1e9:.2f} GB/s; gaps of up to '
            f'{self.model.gap} blocks are read',
            'memory: ' + ', '.join(memory),
        ]
        if self.expected:
            lines.append(
                f'{"plan":8}{"batches":>9}{"requests":>10}{"MB":>9}{"ms":>9}'
                '  (requests, MB and ms a batch)'
            )
        for plan, (count, reads) in self.expected.items():
            mark = '  <- chosen' if plan == self.plan else ''
            lines.append(
                f'{plan:8}{count:9}{reads.requests:10.0f}'
                f'{reads.size / 1e6:9.1f}{self._seconds_of(plan) * 1e3:9.1f}'
                + mark
            )
        measured = self.measured()
        if measured is None:
            lines.append('no batch has been read yet')
        else:
            lines.append(f'measured: {measured * 1e3:.1f} ms a batch')
        return '\n'.join(lines)
