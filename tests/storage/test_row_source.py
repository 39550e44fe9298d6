"""Rows of other sources are planned as those of files."""

import numpy as np
import pytest
import torch

from tests.storage.test_feature_store import joined, make
from tests.storage.test_read_packed import loader_of
from torch_gsample.storage import DiskModel, FeatureFile, RowSource


class Remote(RowSource):
    """A double of another machine: requests are counted, and may fail."""

    def __init__(self, x, seconds):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype
        self.row_bytes, self.seconds = x[0].nbytes, seconds
        self.calls = []

    def read_to(self, index, out, gap=0):
        self.calls.append(len(index))
        rows = self.x[torch.from_numpy(index)].contiguous()
        out[:] = rows.view(torch.uint8).numpy()

    def decode(self, rows):
        return rows.view(self.dtype)

    def cost(self, scratch=None):
        return DiskModel(self.seconds, 1e9, 1e9)


@pytest.mark.parametrize('kind', ['single', 'hot', 'window', 'packed', 'auto'])
def test_rows_of_another_machine_are_planned_alike(tmp_path, kind):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    want = joined(loader_of((store, graph)))
    remote = Remote(data.x, 1.0)
    store[None, 'x', None] = remote
    store.plan_reads(
        4 << 20,
        plan=kind,
        max_batches=5,
        scratch=tmp_path,
        scores=torch.arange(30) if kind == 'hot' else None,
    )
    assert joined(loader_of((store, graph))) == want
    text = store.explain()
    assert 'disk: 1000000.0 us a request, 1.00 GB/s' in text
    if kind == 'single':
        assert len(remote.calls) == 15
    else:  # of each window, or once
        assert len(remote.calls) == (1 if kind == 'hot' else 3)
    if kind == 'auto':
        assert store._plan.plan in ('window', 'packed')


def test_each_source_has_its_own_cost(tmp_path):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    store[None, 'far', None] = Remote(data.x + 1, 0.5)
    store[None, 'near', None] = Remote(data.x + 2, 1e-6)
    store.plan_reads(4 << 20, plan='window', max_batches=5)
    for batch in loader_of((store, graph)):
        assert torch.equal(batch.far, data.x[batch.n_id] + 1)
        assert torch.equal(batch.near, data.x[batch.n_id] + 2)
    models = store._plan.models
    assert models[None, 'far'].request_seconds == 0.5
    assert models[None, 'near'].request_seconds == 1e-6
    lines = store.explain().splitlines()
    assert sum(line.startswith('disk: ') for line in lines) == 3


def test_a_remote_that_fails_is_an_error_of_its_batch(tmp_path):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    remote = Remote(data.x, 1.0)
    read = remote.read_to

    def fail(index, out, gap=0):
        if (index == 29).any():
            raise ConnectionError('the machine is gone')
        read(index, out)

    remote.read_to = fail
    store[None, 'x', None] = remote
    for kind in ('window', 'packed'):
        store.plan_reads(4 << 20, plan=kind, max_batches=5, scratch=tmp_path)
        with pytest.raises(ConnectionError, match='the machine is gone'):
            list(loader_of((store, graph)))


@pytest.mark.parametrize('row_bytes', [4, 100, 512, 5_000])
@pytest.mark.parametrize('memory', [1, 9_000, 1 << 20])
def test_a_scan_has_each_row_once(tmp_path, row_bytes, memory):
    x = torch.arange(3_000 * row_bytes // 4).view(3_000, -1).float()
    for direct in (False, True):
        file = FeatureFile.write(tmp_path / f'x{direct}', x)
        file = FeatureFile(file.path, direct=direct)
        parts, at = [], 0
        for first, rows in file.scan(memory):
            assert first == at
            at += len(rows)
            parts.append(rows.copy())
        out = file.decode(torch.from_numpy(np.concatenate(parts)))
        assert torch.equal(out, x)
        assert len(parts) > 1 or memory == 1 << 20
        assert file._checked.all()
