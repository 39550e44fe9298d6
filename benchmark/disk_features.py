"""How fast are features read that are larger than memory?

A file of float32 rows is read batch by batch, shuffled, within the same memory
for all. Ours and the LRU cache read past the page cache (O_DIRECT). The mapped
file is advised not to be read ahead (MADV_RANDOM), and its pages are dropped
whenever it may have read as many as the memory holds: the page cache knows no
other limit here. Nothing is trained: times are those of waiting for a batch.

    python benchmark/disk_features.py --nodes 4000000 --memory 256MiB
"""

import argparse
import mmap
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import islice
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
from torch_gsample.cli.command import parse_bytes
from torch_gsample.datasets import power_law
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import DiskFeatureStore, FeatureFile

FANOUTS = [10, 10]


class OneFeature(FeatureStore):
    """A store of ``x`` alone."""

    shape: tuple[int, ...]

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        return self.shape

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [TensorAttr(None, 'x')]

    _put_tensor = _remove_tensor = None  # type: ignore[assignment]


class Mapped(OneFeature):
    """A mapped file, which PyG's users read today."""

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
    """The rows that were used last, of whole batches at a time."""

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


def write(path: Path, nodes: int, width: int) -> FeatureFile:
    """Writes rows that tell their numbers."""
    rows = 1 << 16
    pieces = (
        torch.arange(at, min(at + rows, nodes)).float().repeat(width, 1).T
        for at in range(0, nodes, rows)
    )
    return FeatureFile.write(path, pieces)


def timed(loader: Iterable[Any], batches: int, skipped: int) -> float:
    """Returns the seconds of a batch, after some that are not timed."""
    iterator: Iterator[Any] = iter(loader)
    for _ in islice(iterator, skipped):
        pass
    start, count = time.perf_counter(), 0
    for batch in islice(iterator, batches):
        rows = batch.n_id[: batch.x.shape[0]]
        assert torch.equal(batch.x[:, -1], rows.float())
        count += 1
    return (time.perf_counter() - start) / count


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
    add('--skipped', type=int, default=20, help='batches that fill caches')
    args = parser.parse_args()
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
        ['reads', 'ms a batch', 'gain over memmap'],
    )
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = write(Path(folder) / 'x', args.nodes, args.width).path
        file = FeatureFile(path, direct=True)
        options = {
            'input_nodes': torch.arange(args.nodes),
            'batch_size': args.batch_size,
            'shuffle': True,
        }
        mapped = pyg.NodeLoader(
            (Mapped(file, args.memory), MyGraphStore()), sampler, **options
        )
        base = timed(mapped, max(args.batches // 4, 1), 1)
        report.add('memmap', base * 1e3, '1.0x')
        cached = Cached(file, args.memory)
        store = DiskFeatureStore({'x': file})
        for name in ('LRU', 'single', 'hot', 'window', 'auto'):
            if name != 'LRU':
                store.plan_reads(args.memory, plan=name, scores=scores)
            loader = NeighborLoader(
                (cached if name == 'LRU' else store, MyGraphStore()),
                sampler=sampler,
                **options,
            )
            seconds = timed(loader, args.batches, args.skipped)
            report.add(name, seconds * 1e3, f'{base / seconds:.1f}x')
            if name != 'LRU':
                print(store.explain())
    report.show()


if __name__ == '__main__':
    main()
