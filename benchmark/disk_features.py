"""How fast are features read that are larger than memory?

A file of float32 rows is read batch by batch, shuffled, within the same memory
for all. Ours and the caches (LRU, SIEVE) read past the page cache (O_DIRECT).
The mapped file is advised not to be read ahead (MADV_RANDOM), and its pages
are dropped whenever it may have read as many as the memory holds: the page
cache knows no other limit here. Nothing is trained: times are those of waiting
for a batch, from the first one that XX

"model" is what the plan should take, by what was measured of the disk before,
divided by what its reads took. "of disk" is the rate of bytes read and written
as a share of the disk's rate of long reads. With ``--train``, each batch is
followed by a pause as long as its plan's reads take, and "hidden" is the part
of reads that nobody waited for.

    python benchmark/disk_features.py --nodes 4000000 --memory 256MiB
    python benchmark/disk_features.py --large --train     # 12 GB; an hour
"""

import argparse
import mmap
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import Report, machine
from torch import Tensor
from torch_geometric import loader as pyg
from torch_geometric.data import Data, FeatureStore, TensorAttr
from torch_geometric.testing import MyGraphStore

from torch_gsample import NeighborSampler
from torch_gsample.cli.arguments import parse_bytes
from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import DiskFeatureStore, FeatureFile

FANOUTS = [10, 10]


class OneFeature(FeatureStore):
    """A store with only ``x``."""

    shape: tuple[int, ...]

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return self.shape

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [TensorAttr(None, 'x')]

    _put_tensor = _remove_tensor = None  # type: ignore[assignment]


class Mapped(OneFeature):
    """A mapped file, the usual way in PyG today."""

    def __init__(self, file: FeatureFile, memory: int):
        super().__init__()
        self.shape, self._memory = tuple(file.shape), memory
        self._fd = os.open(file.path, os.O_RDONLY)
        map_ = mmap.mmap(self._fd, 0, prot=mmap.PROT_READ)
        map_.madvise(mmap.MADV_RANDOM)
        size = len(file) * file.row_bytes
        rows = np.frombuffer(map_, np.float32, size // 4, file.meta.data_at)
        self._map, self._rows = map_, rows.reshape(self.shape)
        self._read = memory  # drop what writing left

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        index = attr.index.numpy()
        new = len(index) * mmap.PAGESIZE
        if self._read + new > self._memory:
            self._map.madvise(mmap.MADV_DONTNEED)
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
            self._read = 0
        self._read += new
        return torch.from_numpy(self._rows[index])


class Cached(OneFeature):
    """The most recently used rows, updated batch by batch."""

    def __init__(self, file: FeatureFile, memory: int):
        super().__init__()
        self.shape, self._file = tuple(file.shape), file
        size = (memory - 4 * len(file)) // (file.row_bytes + 16)
        self._rows = torch.empty(size, self.shape[1])
        self._slot = np.full(len(file), -1, np.int32)
        self._row = np.full(size, -1)
        self._used = np.zeros(size, np.int64)
        self._now = 0

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        index = attr.index.numpy()
        self._now += 1
        slot = self._slot[index]
        hit = np.flatnonzero(slot >= 0)
        miss = np.flatnonzero(slot < 0)
        self._used[slot[hit]] = self._now
        out = torch.empty(len(index), self.shape[1])
        out[torch.from_numpy(hit)] = self._rows[torch.from_numpy(slot[hit])]
        read = self._file.read(torch.from_numpy(index[miss]))
        out[torch.from_numpy(miss)] = read
        count = min(len(miss), len(self._row))
        oldest = np.argpartition(self._used, count - 1)[:count]
        old = self._row[oldest]
        self._slot[old[old >= 0]] = -1
        self._row[oldest] = index[miss[:count]]
        self._slot[index[miss[:count]]] = oldest
        self._used[oldest] = self._now
        self._rows[torch.from_numpy(oldest)] = read[:count]
        return out


class Sieve(OneFeature):
    """SIEVE (https://www.usenix.org/conference/nsdi24), batch by batch.

    A queue in insertion order. A hand moves from the oldest entry to the
    youngest and starts over; it skips entries used since its last visit, and
    evicts the others.
    """

    def __init__(self, file: FeatureFile, memory: int):
        super().__init__()
        self.shape, self._file = tuple(file.shape), file
        # 8 bytes of the list of rows, and 2 of 5 bytes in the queue.
        size = (memory - 4 * len(file)) // (file.row_bytes + 8 + 10)
        self._rows = torch.empty(size, self.shape[1])
        self._slot = np.full(len(file), -1, np.int32)
        self._queue = np.full(2 * size, -1, np.int32)  # slots
        self._used = np.zeros(2 * size, bool)
        self._row = np.full(size, -1)
        self._entry = np.zeros(size, np.int32)
        self._hand = self._end = self._count = 0

    def _get_tensor(self, attr: TensorAttr) -> Tensor:
        index = attr.index.numpy()
        slot = self._slot[index]
        hit, miss = np.flatnonzero(slot >= 0), np.flatnonzero(slot < 0)
        self._used[self._entry[slot[hit]]] = True
        out = torch.empty(len(index), self.shape[1])
        out[torch.from_numpy(hit)] = self._rows[torch.from_numpy(slot[hit])]
        read = self._file.read(torch.from_numpy(index[miss]))
        out[torch.from_numpy(miss)] = read
        count = min(len(miss), len(self._row))
        self._insert(index[miss[:count]], read[:count])
        return out

    def _insert(self, rows: np.ndarray, read: Tensor) -> None:
        fresh = min(len(self._row) - self._count, len(rows))
        slots = np.arange(self._count, self._count + fresh)
        self._count += fresh
        slots = np.concatenate([slots, self._evict(len(rows) - fresh)])
        if self._end + len(rows) > len(self._queue):
            alive = np.flatnonzero(self._queue[: self._end] >= 0)
            self._hand = int(np.searchsorted(alive, self._hand))
            self._end = len(alive)
            self._queue[: self._end] = self._queue[alive]
            self._used[: self._end] = self._used[alive]
            self._entry[self._queue[: self._end]] = np.arange(self._end)
        entries = np.arange(self._end, self._end + len(rows))
        self._queue[entries], self._used[entries] = slots, False
        self._entry[slots], self._row[slots] = entries, rows
        self._slot[rows] = slots
        self._rows[torch.from_numpy(slots)] = read
        self._end += len(rows)

    def _evict(self, count: int) -> np.ndarray:
        parts = [np.empty(0, np.int64)]
        while count > 0:
            if self._hand >= self._end:
                self._hand = 0
            part = slice(self._hand, min(self._hand + (1 << 16), self._end))
            old = (self._queue[part] >= 0) & ~self._used[part]
            found = np.flatnonzero(old)[:count]
            done = part.stop - part.start
            if len(found) == count:
                done = int(found[-1]) + 1
            self._used[self._hand : self._hand + done] = False
            slots = self._queue[self._hand + found]
            self._queue[self._hand + found] = -1
            self._slot[self._row[slots]] = -1
            self._hand += done
            count -= len(found)
            parts.append(slots)
        return np.concatenate(parts)


def write(path: Path, nodes: int, width: int) -> FeatureFile:
    """Writes rows whose values are their numbers."""
    rows = 1 << 16
    pieces = (
        torch.arange(at, min(at + rows, nodes)).float().repeat(width, 1).T
        for at in range(0, nodes, rows)
    )
    return FeatureFile.write(path, pieces)


def timed(
    loader: Iterable[Any], skipped: int, pause: float = 0
) -> tuple[float, float]:
    """Returns the seconds per batch, and the seconds of waiting for it.

    Args:
        loader (Iterable[Any]): Its batches.
        skipped (int): Number of first batches that only fill a cache.
        pause (float, optional): Seconds after each batch.
    """
    start = begin = time.perf_counter()
    waited, count = 0.0, 0
    for i, batch in enumerate(loader):
        now = time.perf_counter()
        if i >= skipped:
            waited, count = waited + now - start, count + 1
        rows = batch.n_id[: batch.x.shape[0]]
        assert torch.equal(batch.x[:, -1], rows.float())
        time.sleep(pause)
        start = time.perf_counter()
        if i + 1 == skipped:
            begin = start
    return (start - begin) / count, waited / count


def columns(
    store: DiskFeatureStore,
    expected: dict[str, Any],
    loader: Iterable[Any],
    train: bool,
) -> tuple[float, list[str]]:
    """Runs a plan; returns the seconds per batch, and the other columns."""
    plan, file = store._plan, store.files[None, 'x']
    before = file.stats()['bytes_read']
    seconds, _ = timed(loader, 0)
    reads = plan.measured()
    stats = plan._reads.stats if plan._reads is not None else {}
    # What is written is read again.
    moved = file.stats()['bytes_read'] - before + 2 * stats.get('written', 0)
    size = moved / max(len(loader), 1)
    rate = size / reads / plan.models[None, 'x'].bytes_per_second
    model = expected.get(plan.plan)
    out = [
        f'{size / 1e6:.0f}',
        '-' if model is None else f'{model[2] / reads:.2f}',
        f'{rate:.0%}',
    ]
    if train:
        _, waited = timed(loader, 0, reads)
        out.append(f'{1 - waited / reads:.2f}')
    return seconds, out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add('--folder', help='where the file is made')
    add('--nodes', type=int, default=200_000)
    add('--degree', type=int, default=10)
    add('--width', type=int, default=128, help='features of a row')
    add('--memory', type=parse_bytes, default='48MiB')
    add('--batch-size', type=int, default=256)
    add('--batches', type=int, default=20)
    add('--ahead', type=int, default=60, help='batches of plans with windows')
    add('--skipped', type=int, default=20, help='batches that fill caches')
    add('--train', action='store_true', help='pauses, hidden reads')
    add('--plans', default='single,hot,window,packed')
    add('--alone', action='store_true', help='leave memmap and caches out')
    add('--large', action='store_true', help='24 M rows, 12.3 GB, in 1.2 GB')
    args = parser.parse_args()
    if args.large:
        args.nodes, args.degree, args.memory = 24_000_000, 4, 1_200_000_000
        args.batch_size, args.ahead, args.skipped = 1_024, 512, 40
    csc = power_law(args.nodes, args.nodes * args.degree, args.nodes // 20)
    edges = torch.stack([csc.indices.long(), csc.col()])
    sampler = NeighborSampler(
        Data(edge_index=edges, num_nodes=args.nodes), FANOUTS, seed=0
    )
    scores = torch.bincount(edges[0], minlength=args.nodes)
    del edges, csc
    report = Report(
        f'{args.nodes:,} rows of {4 * args.width} bytes in '
        f'{args.memory / 1e6:.0f} MB, batches of {args.batch_size}: '
        f'{machine()}',
        ['reads', 'ms a batch', 'over memmap', 'MB', 'model', 'of disk']
        + ['hidden'] * args.train,
    )

    def loader(features: Any, count: int, kind: Any = NeighborLoader) -> Any:
        order = torch.randperm(args.nodes, generator=torch.Generator())
        return kind(
            (features, MyGraphStore()),
            **{
                'node_sampler'
                if kind is pyg.NodeLoader
                else 'sampler': sampler
            },
            input_nodes=order[: count * args.batch_size],
            batch_size=args.batch_size,
            shuffle=True,
        )

    blank = ['-'] * (3 + args.train)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = write(Path(folder) / 'x', args.nodes, args.width).path
        file = FeatureFile(path, direct=True)
        count = max(args.batches // 4, 1) + 1
        base = float('nan')
        if not args.alone:
            mapped = loader(Mapped(file, args.memory), count, pyg.NodeLoader)
            base, _ = timed(mapped, 1)
            report.add('memmap', base * 1e3, '1.0x', *blank)
        for kind in () if args.alone else (Cached, Sieve):
            cached = loader(
                kind(file, args.memory), args.skipped + args.batches
            )
            seconds, _ = timed(cached, args.skipped)
            name = 'LRU' if kind is Cached else 'SIEVE'
            report.add(name, seconds * 1e3, f'{base / seconds:.1f}x', *blank)
            del cached
        store = DiskFeatureStore({'x': file})
        options = {'scores': scores, 'scratch': folder}
        store.plan_reads(args.memory, **options)
        next(iter(loader(store, args.ahead)))
        print(store.explain())
        expected, model = store._plan.expected, store._plan.models[None, 'x']
        for name in args.plans.split(','):
            store.plan_reads(args.memory, plan=name, model=model, **options)
            far = name in ('window', 'packed')
            batches = loader(store, args.ahead if far else args.batches)
            seconds, more = columns(store, expected, batches, args.train)
            report.add(name, seconds * 1e3, f'{base / seconds:.1f}x', *more)
            print(store.explain().splitlines()[-1])
    report.show()


if __name__ == '__main__':
    main()
