"""Chooses a plan for reading the rows of future batches, and reads them.

Samples of an epoch come in; the cheapest plan by the disk model reads their
features.
"""

import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.copy_rows import copy_rows
from torch_gsample.storage.hot_rows import HotRows
from torch_gsample.storage.read_model import DiskModel, Reads
from torch_gsample.storage.read_packed import PackedReads
from torch_gsample.storage.read_windows import (
    Key,
    Samples,
    Window,
    WindowReads,
    sampled_nodes,
)
from torch_gsample.storage.row_source import RowSource
from torch_gsample.storage.sorted_keys import distinct

PLANS = ('auto', 'single', 'hot', 'window', 'packed')
#: Minimum memory for rows.
_LEAST = 1 << 20


class ReadPlan:
    """The plan for reading the features of future batches.

    Args:
        files (Dict[Tuple, RowSource]): The files of node features.
        memory_limit (int): See :meth:`DiskFeatureStore.plan_reads`.
        plan (str): See :meth:`DiskFeatureStore.plan_reads`, as for all
            arguments below.
        scores (Dict[Any, torch.Tensor], optional): See there.
        model (DiskModel, optional): See there.
        most (int): See there.
        scratch (Path, optional): See there.
    """

    def __init__(
        self,
        files: dict[Key, RowSource],
        memory_limit: int,
        plan: str,
        scores: dict[Any, Tensor] | None,
        model: DiskModel | None,
        most: int,
        scratch: Path | None = None,
    ):
        self.files, self.plan = files, None if plan == 'auto' else plan
        self._process, self._most, self._scratch = os.getpid(), most, scratch
        self._lock = threading.Lock()
        self._count_memory(memory_limit)
        self.models = _models(files, model, scratch)
        self._gaps = {key: model.gap for key, model in self.models.items()}
        #: The hot rows of plans, and of the chosen plan.
        self._hot_of: dict[str, HotRows] = {}
        self.hot: HotRows | None = None
        if scores is not None:
            shares = {'hot': self.budget, 'packed': self.budget // 2}
            if scratch is None:
                shares.pop('packed')
            self._hot_of = {
                name: HotRows(files, scores, share)
                for name, share in shares.items()
                if plan in ('auto', name)
            }
        if self.plan is not None:
            self._choose(self.plan)
        self._reads: WindowReads | PackedReads | None = None
        #: The cost of each plan per batch, from the samples of the first
        #: window: the batches of a window, reads, seconds.
        self.expected: dict[str, tuple[int, Reads, float]] = {}
        self._seconds, self._batches = 0.0, 0

    def _count_memory(self, limit: int) -> None:
        counts: dict[Any, int] = {}
        for (group, _), file in self.files.items():
            counts[group] = max(counts.get(group, 0), len(file))
        self.memory = {
            'limit': limit,
            'marks of nodes': sum(counts.values()),
            'checksums, blocks': sum(f.memory for f in self.files.values()),
        }
        fixed = sum(self.memory.values()) - limit
        self.budget = limit - fixed
        if self.budget < _LEAST:
            raise ValueError(
                f"DiskFeatureStore.plan_reads: 'memory_limit' must be at "
                f'least {fixed + _LEAST}: {fixed} for marks of nodes, '
                f'checksums and blocks, and {_LEAST} for rows (got {limit})'
            )

    def _choose(self, plan: str) -> None:
        """Selects a plan, and loads its hot rows."""
        hot = self._hot_of.get(plan)
        self._hot_of = {}  # frees the lists of other plans
        if hot is not None:
            hot.load(self._gaps)  # first: other threads may read now
        self.plan, self.hot = plan, hot

    def read(self, key: Key, index: np.ndarray) -> Tensor:
        """Returns stored rows, uint8 ``[n, row_bytes]``."""
        start = time.perf_counter()
        try:
            out = torch.empty(
                len(index), self.files[key].row_bytes, dtype=torch.uint8
            )
            missing = None
            if self.hot is not None:
                missing = self.hot.copy(key, index, out.numpy())
            rest = index if missing is None else index[missing]
            if len(rest) > 0:
                self._read_to(key, rest, out.numpy(), missing)
            return out
        finally:
            self._seconds += time.perf_counter() - start

    def _read_to(
        self,
        key: Key,
        index: np.ndarray,
        out: np.ndarray,
        to: np.ndarray | None,
    ) -> None:
        """See :meth:`WindowReads.find`; rows of other batches are read."""
        # A forked process has no threads and no lock.
        reads = self._reads if self._process == os.getpid() else None
        if reads is not None and reads.find(key, index, out, to):
            return
        if to is None:
            self.files[key].read_to(index, out, self._gaps[key])
            return
        rows = self.files[key].read_bytes(index, self._gaps[key])
        copy_rows(rows.numpy(), None, out, to)

    def read_ahead(
        self, samples: Iterable[Any], behind: int, total: int
    ) -> Iterator[Any]:
        """Yields samples; their rows may have been prefetched."""
        coming = Samples(samples)
        if self.plan is None:
            window = self._window_reads().collect(coming).complete(Window())
            with self._lock:
                if self.plan is None:  # no loader in another thread chose it
                    self._compare(window, behind, total)
                    self._choose(min(self.expected, key=self._seconds_of))
            coming.put_back(window.samples)
        if self.plan == 'packed':
            reads = self._packed_reads()
            self._reads = reads
            yield from self._count(reads.run(coming, behind))
            if reads.failure is None:
                return
            self._fall_back()
        if self.plan == 'window':
            windows = self._window_reads()
            self._reads = windows
            first = windows.collect(coming)
            yield from self._count(windows.run(first, behind))
        else:
            yield from self._count(coming)

    def _fall_back(self) -> None:
        """Selects the next plan if packing fails."""
        self.expected.pop('packed', None)
        known = [name for name in self.expected if name != 'hot']
        self._choose(min(known, key=self._seconds_of, default='window'))

    def _window_reads(self) -> WindowReads:
        return WindowReads(self.files, self.budget, self._gaps, self._most)

    def _packed_reads(self) -> PackedReads:
        assert self._scratch is not None
        hot = self.hot or self._hot_of.get('packed')
        return PackedReads(
            self.files,
            self.budget - (hot.nbytes if hot is not None else 0),
            self._scratch,
            self._most,
            hot.misses if hot is not None else _all_of,
        )

    def _count(self, samples: Iterable[Any]) -> Iterator[Any]:
        for sample in samples:
            self._batches += 1
            yield sample

    def _compare(self, window: Window, behind: int, total: int) -> None:
        """Counts the reads of a window under each plan."""
        count = max(len(window.samples), 1)
        hot = self._hot_of.get('hot')
        single: dict[Key, Reads] = {}
        missed: dict[Key, Reads] = {}
        together: dict[Key, Reads] = {}
        for sample in window.samples:
            for group, ids in sampled_nodes(sample).items():
                rows = distinct(ids)
                self._add_reads(single, group, rows, len(ids))
                # The rows of a window are copied twice.
                self._add_reads(together, group, rows[:0], len(ids))
                if hot is not None:
                    self._add_reads(
                        missed,
                        group,
                        rows[hot.misses(group, rows)],
                        len(ids),
                    )
        for group, rows in window.rows.items():
            self._add_reads(together, group, rows, len(rows))
        self._expect('single', 1, single, count)
        if hot is not None:
            self._expect('hot', 1, missed, count)
        # In a small window, rows would be dropped before the last batches use
        # them.
        if window.rows and count > behind:
            self._expect('window', count, together, count)
        if self._scratch is not None:
            packed = self._packed_reads()
            batches, reads = packed.expected(window.samples, total)
            if batches > behind:
                self._expect('packed', batches, reads, 1)

    def _add_reads(
        self,
        reads: dict[Key, Reads],
        group: Any,
        rows: np.ndarray,
        copied: int,
    ) -> None:
        """Adds the reads of rows, and the rows copied in memory."""
        for key, file in self.files.items():
            if key[0] == group:
                made = file.count_reads(rows, self._gaps[key])
                made.rows += copied
                reads[key] = reads.get(key, Reads()) + made

    def _expect(
        self, plan: str, batches: int, reads: dict[Key, Reads], count: int
    ) -> None:
        seconds = sum(self.models[k].seconds(r) for k, r in reads.items())
        total = sum(reads.values(), Reads())
        self.expected[plan] = batches, total / count, seconds / count

    def _seconds_of(self, plan: str) -> float:
        return self.expected[plan][2]

    def measured(self) -> float | None:
        """Returns the measured read seconds per batch, if any.

        They are those of all threads, with the lookups and copies of batches.
        """
        if self._batches == 0:
            return None
        out = self._seconds / self._batches
        if self._reads is not None and self._reads.stats['batches']:
            out += self._reads.stats['read'] / self._reads.stats['batches']
        return out

    def explain(self) -> str:
        """Returns the cost of each plan, and the chosen plan."""
        memory = [f'{k} {v / 1e6:.1f} MB' for k, v in self.memory.items()]
        memory.append(f'rows and samples {self.budget / 1e6:.1f} MB')
        lines = [
            f'{model.explain()}; gaps of up to {model.gap} blocks are read'
            for model in dict.fromkeys(self.models.values())
        ]
        lines.append('memory: ' + ', '.join(memory))
        if self.expected:
            lines.append(
                f'{"plan":8}{"batches":>9}{"requests":>10}{"MB":>9}'
                f'{"scanned":>9}{"written":>9}{"ms":>9}  (MB and ms a batch)'
            )
        for plan, (count, reads, seconds) in self.expected.items():
            mark = '  <- chosen' if plan == self.plan else ''
            lines.append(
                f'{plan:8}{count:9}{reads.requests:10.0f}'
                f'{reads.size / 1e6:9.1f}{reads.scanned / 1e6:9.1f}'
                f'{reads.written / 1e6:9.1f}'
                f'{seconds * 1e3:9.1f}' + mark
            )
        measured = self.measured()
        if measured is None:
            lines.append('no batch has been read yet')
        else:
            lines.append(f'measured: {measured * 1e3:.1f} ms a batch')
        return '\n'.join(lines)


def _all_of(group: Any, ids: np.ndarray) -> np.ndarray:
    return np.ones(len(ids), bool)


def _models(
    files: dict[Key, RowSource], model: DiskModel | None, scratch: Path | None
) -> dict[Key, DiskModel]:
    """Returns the disk model of each file, measured once per disk."""
    if model is not None:
        return dict.fromkeys(files, model)
    out: dict[Key, DiskModel] = {}
    disks: dict[Any, DiskModel] = {}
    largest = sorted(files, key=lambda k: -len(files[k]) * files[k].row_bytes)
    for key in largest:
        source = files[key]
        disk = source.disk
        if disk is None or disk not in disks:
            disks[disk] = source.cost(scratch)
        out[key] = disks[disk]
    return out
