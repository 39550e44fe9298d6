"""Writers that are killed, full disks, read-only folders, replaced graphs."""

import errno
import math
import os
import shutil

import pytest
import torch
from torch_geometric.data import Data

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.storage import ChunkedGraph, RandomReadSampler
from torch_gsample.storage.columns import check_weights

EDGES = torch.arange(40_000).view(2, 20_000) % 50
SEEDS = torch.arange(50)


def write(folder):
    return ChunkedGraph.write(
        folder / 'g', EDGES, chunk_bytes=4_000, directories=[folder / 'd']
    )


def files(folder):
    return sorted(os.listdir(folder))


def test_writers_that_are_killed_at_any_moment_leave_nothing(tmp_path):
    killed = 0
    for is_killed in disk.kill_at_random(lambda: write(tmp_path), 30):
        killed += is_killed
        if (tmp_path / 'g').exists():
            ChunkedGraph(tmp_path / 'g').verify()
            shutil.rmtree(tmp_path / 'g')
            shutil.rmtree(tmp_path / 'd')
    assert killed > 5
    write(tmp_path).verify()
    assert files(tmp_path) == ['d', 'g']


@pytest.mark.parametrize('limit', [1, 170, 2_000, 5_000])
def test_a_full_disk_is_named_and_left_empty(tmp_path, limit):
    disk.fill_a_disk(limit, lambda: write(tmp_path))
    assert files(tmp_path) == []
    write(tmp_path).verify()


def test_a_read_only_folder_is_named(tmp_path):
    (tmp_path / 'd').mkdir(mode=0o555)

    def fail():
        if os.getuid() == 0:
            os.chmod(tmp_path, 0o777)
            os.setuid(65534)
        options = {'directories': [tmp_path / 'd/g']}
        with pytest.raises(PermissionError, match=f'{tmp_path}/d') as caught:
            ChunkedGraph.write(tmp_path / 'g', EDGES, **options)
        raise caught.value

    status = disk.in_a_fork(fail)
    assert os.waitstatus_to_exitcode(status) == errno.EACCES
    assert files(tmp_path) == ['d']


def test_a_read_only_graph_is_read(tmp_path):
    graph = write(tmp_path)
    for folder in (graph.path, tmp_path / 'd'):
        for file in folder.iterdir():
            os.chmod(file, 0o444)
        os.chmod(folder, 0o555)
    ChunkedGraph(graph.path).verify()
    for folder in (graph.path, tmp_path / 'd'):
        os.chmod(folder, 0o755)


def test_a_graph_that_is_replaced_is_an_error_or_the_old_sample(tmp_path):
    """Samplers read the files that they opened, or say that they changed."""

    def sample(graph):
        sampler = RandomReadSampler(graph, [-1], seed=0)
        return sampler.sample_from_nodes(graphs.nodes(SEEDS)).row

    old = ChunkedGraph.write(tmp_path / 'g', EDGES)
    want = sample(old)
    kept = RandomReadSampler(old, [-1], seed=0, cache_bytes=0)
    kept.sample_from_nodes(graphs.nodes(SEEDS))
    other = torch.stack([(EDGES[0] + 1) % 50, EDGES[1]])  # of the same size
    ChunkedGraph.write(tmp_path / 'new', other)
    os.rename(tmp_path / 'g', tmp_path / 'away')
    os.rename(tmp_path / 'new', tmp_path / 'g')
    # Its file is still open.
    assert torch.equal(kept.sample_from_nodes(graphs.nodes(SEEDS)).row, want)
    with pytest.raises(RuntimeError, match='g was replaced since it was open'):
        sample(old)
    shutil.rmtree(tmp_path / 'away')
    assert torch.equal(kept.sample_from_nodes(graphs.nodes(SEEDS)).row, want)


@pytest.mark.parametrize('bad', [-1.0, math.nan, math.inf, -math.inf])
def test_a_weight_that_cannot_be_drawn_is_named(tmp_path, bad):
    weight, position = torch.rand(20), torch.arange(20)
    data = Data(edge_index=torch.arange(20).expand(2, 20), edge_weight=weight)
    graph = ChunkedGraph.write(tmp_path / 'g', data, weight_attr='edge_weight')
    [meta] = graph.meta.relations
    path = graph.path / meta.file
    for good in (weight, torch.zeros(20), weight[:0]):
        found = check_weights(path, meta, good, lambda: position)
        assert found is good
    raw = path.read_bytes()
    place = raw.index(weight[13:14].numpy().tobytes())
    weight[13] = bad
    with pytest.raises(
        ValueError, match=rf'offset {place}: each weight must be finite and'
    ):
        check_weights(path, meta, weight, lambda: position)
