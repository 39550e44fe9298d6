"""What fails around a graph on disk: one error, and nothing is left behind."""

import errno
import gc
import multiprocessing
import os
import resource
import signal

import pytest
import torch

from tests.loader.batches import run
from tests.storage import disk
from tests.storage.disk import in_a_fork
from torch_gsample.loader import NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)

SEEDS = torch.arange(60)


@pytest.fixture
def path(tmp_path):
    disk.write(tmp_path / 'g', disk.homogeneous(), True, True)
    return tmp_path / 'g'


def test_a_graph_of_someone_else_is_named(path):
    """Of a user who may read nothing here; the one of the tests may all."""
    os.chmod(path, 0o700)

    def read_as_nobody():
        if os.getuid() == 0:
            os.setuid(65534)
        else:
            os.chmod(path / 'meta.json', 0)
        with pytest.raises(PermissionError, match=r'meta.json') as caught:
            ChunkedGraph(path)
        raise caught.value

    status = in_a_fork(read_as_nobody)
    assert os.waitstatus_to_exitcode(status) == errno.EACCES


def test_a_disk_that_fills_ends_preparing(path, tmp_path):
    """A limit of the size of files stands for the disk."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sampler = StreamingSampler(
            ChunkedGraph(path), [-1, -1], spill_dir=tmp_path
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
        named = r"\(writing offset \d{4}\): '.*gsample-"
        with pytest.raises(OSError, match=named) as caught:
            sampler.prepare_epoch(SEEDS, 0, input_time=SEEDS + 30)
        assert list(sampler._disk.iterdir()) == []
        assert sampler._state['folders'] == {}
        sampler.close()
        raise caught.value

    status = in_a_fork(prepare)
    assert os.waitstatus_to_exitcode(status) == errno.EFBIG


def test_a_read_error_in_a_worker_leaves_no_worker(tmp_path):
    data = disk.homogeneous()
    sampler = RandomReadSampler(disk.write(tmp_path / 'g', data), [4, 3])
    loader = NeighborLoader(data, sampler=sampler, num_workers=1)
    os.truncate(sampler.chunked.path / 'edges-0.bin', 1024)
    with pytest.raises(OSError, match='the file ends too early'):
        run(loader)
    del loader
    gc.collect()
    for worker in multiprocessing.active_children():
        worker.join(30)
        assert not worker.is_alive()


def test_samplers_leave_no_folders(path):
    sampler = StreamingSampler(ChunkedGraph(path), [2], memory_limit=1 << 20)
    sampler.prepare_epoch(SEEDS, 0, input_time=SEEDS)
    made = sampler._disk
    assert made.exists()
    del sampler
    assert not made.exists()
