"""Threads share samplers and stores on disk."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from tests.loader.batches import run
from tests.storage import disk, test_feature_store, test_read_plan
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import StreamingSampler
from torch_gsample.storage.hot_rows import HotRows


def test_loaders_in_two_threads_share_a_streaming_sampler(tmp_path):
    data = disk.homogeneous(300, 3000)
    graph = disk.write(tmp_path / 'g', data)
    want = None
    for _ in range(3):
        sampler = StreamingSampler(
            graph, [3, 3], memory_limit=disk.MEMORY, seed=1
        )
        begin = threading.Barrier(2)

        def epochs(_, sampler=sampler, begin=begin):
            loader = NeighborLoader(data, sampler=sampler, batch_size=64)
            begin.wait()
            return [run(loader) for _ in range(3)]

        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(epochs, range(2))
        sampler.close()
        want = want or first
        assert first == second == want


def test_rows_are_read_while_another_thread_loads_hot_rows(
    tmp_path, monkeypatch
):
    name = 'homogeneous'
    data, (store, _), _ = test_feature_store.make(name, tmp_path)
    test_read_plan.plan(data, store, name, 'auto')
    reads, load, found = store._plan, HotRows.load, []
    key, index = next(iter(reads.files)), np.arange(5)
    want = reads.read(key, index)

    def slow(hot, gaps):
        found.append(reads.read(key, index))
        load(hot, gaps)
        found.append(reads.read(key, index))

    monkeypatch.setattr(HotRows, 'load', slow)
    reads._choose('hot')
    assert len(found) == 2
    assert all(torch.equal(rows, want) for rows in found)
    assert torch.equal(reads.read(key, index), want)
