"""A graph in several directories: the same samples, and clear errors."""

import functools
import os
import re
import shutil
import signal
import sys

import numpy as np
import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.reading import File, page_aligned
from torch_gsample.storage.stripes import Stripes

SEEDS = torch.arange(60)


def hub():
    """A node with edges in several chunks."""
    data = disk.homogeneous(60, 6_000)
    data.edge_index[1, :3_000] = 7
    return data


def write(folder, data=None, count=2, **options):
    others = [folder / f'disk{i}' for i in range(1, count)]
    options = {'chunk_bytes': 9_000, 'alignment': 4096, **options}
    options['directories'] = others
    return disk.write(folder / 'g', data or hub(), True, True, **options)


@pytest.fixture
def graph(tmp_path):
    return write(tmp_path, count=3)


def samples(graph, kind, **options):
    sampler = kind(graph, [4, -1], seed=1, rng_scope='epoch', **options)
    nodes = graphs.nodes(SEEDS, time=SEEDS * 0 + 15)
    if kind is StreamingSampler:
        sampler.prepare_epoch(nodes, 0)
    out = sampler.sample_from_nodes(nodes)
    if kind is StreamingSampler:
        sampler.close()
    return out


@pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])
@pytest.mark.parametrize('direct', [False, True])
@pytest.mark.parametrize('verify', ['always', 'once', 'never'])
def test_samples_are_those_of_one_directory(
    graph, tmp_path, kind, direct, verify
):
    table = graph.meta.relations[0].chunks
    assert len(table) > 6
    assert (table[1:, 0] == 7).sum() > 2  # the hub
    one = disk.write(tmp_path / 'one', hub(), True, True)
    opened = ChunkedGraph(graph.path, direct=direct, verify=verify)
    out = samples(opened, kind)
    disk.assert_same(out, samples(one, kind), None)
    opened.verify()


def test_chunks_are_dealt_in_turns(graph, tmp_path):
    """The chunks of all directories are those of one, in order."""
    one = disk.write(
        tmp_path / 'one', hub(), True, True, chunk_bytes=9_000, alignment=4096
    )
    meta = one.meta.relations[0]
    text = (one.path / meta.file).read_bytes()
    chunks = [text[r[4] : r[4] + r[5]] for r in meta.chunks.tolist()]
    for i, folder in enumerate([graph.path, *graph.meta.directories]):
        own = b''.join(chunks[i::3])
        assert (tmp_path / folder / meta.file).read_bytes() == own
    assert graph.num_bytes == one.num_bytes


def test_any_range_is_read(graph, tmp_path):
    """Also over the ends of chunks, and many at once."""
    meta = graph.meta.relations[0]
    one = disk.write(
        tmp_path / 'one', hub(), True, True, chunk_bytes=9_000, alignment=4096
    )
    text = np.fromfile(one.path / meta.file, np.uint8)
    draws = np.random.default_rng(0)
    offset = draws.integers(0, len(text) - 1, 200)
    size = np.minimum(draws.integers(1, 40_000, 200), len(text) - offset)
    file, out = graph.open(meta), page_aligned(int(size.sum()))
    want = np.concatenate(
        [text[a : a + b] for a, b in zip(offset, size, strict=True)]
    )
    for engine in ('io_uring', 'threads', 'auto'):
        out[:] = 0
        file.read_ranges(offset, size, out, engine)
        assert np.array_equal(out, want)
    data = page_aligned(len(text))
    file.read(0, data)
    assert np.array_equal(data, text)
    with pytest.raises(OSError, match=r'ends too early.*edges-0.bin'):
        file.read(len(text) - 10, page_aligned(20))
    for at in offset.tolist():
        path, place = file.path.where(at)
        byte = page_aligned(1)
        File(path).read(place, byte)
        assert byte[0] == text[at]


def test_errors_name_the_file_of_the_directory(graph):
    meta = graph.meta.relations[0]
    where = Stripes(graph.meta.files(graph.path, meta), meta).where
    for chunk in range(len(meta.chunks)):
        path, at = where(int(meta.chunks[chunk, 4]))
        with open(path, 'r+b') as file:
            os.pwrite(file.fileno(), b'x', at)
        match = re.escape(f'{path}, offset {at}: the checksum of a block')
        with pytest.raises(ValueError, match=match):
            ChunkedGraph(graph.path).verify()
        with open(path, 'r+b') as file:
            os.pwrite(file.fileno(), b'g', at)
    ChunkedGraph(graph.path).verify()


def test_a_missing_directory_is_named(graph):
    lost = graph.meta.directories[1]
    os.rename(lost, f'{lost}.away')
    match = rf'directory 2 of the graph .*{lost}/stripe.json'
    with pytest.raises(FileNotFoundError, match=match):
        ChunkedGraph(graph.path)
    os.symlink(f'{lost}.away', lost)
    ChunkedGraph(graph.path).verify()


def test_a_directory_of_another_graph_is_named(graph, tmp_path):
    (tmp_path / 'b').mkdir()
    other = write(tmp_path / 'b', count=3)
    first, second = graph.meta.directories
    shutil.rmtree(first)
    shutil.copytree(other.meta.directories[0], first)
    with pytest.raises(ValueError, match=r'it must be directory 1 of the gra'):
        ChunkedGraph(graph.path)
    shutil.rmtree(first)
    shutil.copytree(second, first)  # its own, in the wrong place
    with pytest.raises(ValueError, match=r'directory 1 of .* \(got 2 of '):
        ChunkedGraph(graph.path)
    for text in ('[', '[]', '{"number": 1}'):
        (tmp_path / 'disk1/stripe.json').write_text(text)
        with pytest.raises(ValueError, match=r'stripe.json, offset 0: '):
            ChunkedGraph(graph.path)


def test_a_file_of_another_graph_is_found_by_its_blocks(tmp_path):
    """Of the same size and contents: only the generation differs."""
    paths = []
    for name in 'ab':
        (tmp_path / name).mkdir()
        paths.append(write(tmp_path / name).path)
    a, b = paths
    for name in ('edges-0.bin', 'time-0.bin'):
        assert (a / name).read_bytes() == (b / name).read_bytes()
    opened = ChunkedGraph(a)
    opened.node_times()
    shutil.copy(b / 'edges-0.crc', a / 'edges-0.crc')
    with pytest.raises(ValueError, match=r'edges-0.crc, offset 0: the checks'):
        ChunkedGraph(a)
    meta = b / 'meta.json'
    directories = [str(tmp_path / 'a/disk1')]
    disk.edit(b, lambda m: m.update(directories=directories))
    shutil.copy(meta, a / 'meta.json')
    with pytest.raises(ValueError, match=r'it must be directory 1 of the'):
        ChunkedGraph(a)


def test_a_block_in_another_place_is_found(tmp_path):
    """Two chunks have the same bytes but for their headers."""
    graph = write(tmp_path, count=1)
    path = graph.path / 'edges-0.bin'
    data = path.read_bytes()
    path.write_bytes(data[4096:8192] + data[:4096] + data[8192:])
    with pytest.raises(ValueError, match='offset 0: the checksum of a block'):
        ChunkedGraph(graph.path).verify()
    path.write_bytes(data[:4096] * (len(data) // 4096))
    with pytest.raises(ValueError, match='offset 4096: the checksum'):
        ChunkedGraph(graph.path).verify()


ARGUMENTS = {
    "'alignment' must be at least 4096 for several": {'alignment': 512},
    "'path' and 'directories' must differ": {'directories': ['g']},
    "'path' and 'directories' must diffe": {'directories': ['a', './a']},
}


@pytest.mark.parametrize('message', ARGUMENTS)
def test_arguments_are_checked(tmp_path, monkeypatch, message):
    monkeypatch.chdir(tmp_path)
    edges = torch.tensor([[0], [1]])
    options = {'directories': ['a'], **ARGUMENTS[message]}
    with pytest.raises(ValueError, match=re.escape(message)):
        ChunkedGraph.write('g', edges, **options)
    assert os.listdir(tmp_path) == []


def test_a_directory_is_never_overwritten(tmp_path):
    (tmp_path / 'disk1').mkdir()
    with pytest.raises(FileExistsError, match="'directories' must not exist"):
        write(tmp_path)
    assert os.listdir(tmp_path) == ['disk1']
    os.rmdir(tmp_path / 'disk1')
    write(tmp_path)
    with pytest.raises(FileExistsError, match="'path' must not exist yet"):
        write(tmp_path)
    shutil.rmtree(tmp_path / 'g')
    with pytest.raises(FileExistsError, match="'directories' must not exist"):
        write(tmp_path)  # a whole directory, without its graph


@pytest.mark.parametrize('first', ['a', 'b'])
def test_the_second_of_two_writers_fails(tmp_path, first):
    """By the name of the directory, or by that of the graph."""
    edges = torch.tensor([[0], [1]])

    def write(data, name):
        directories = [tmp_path / name]
        ChunkedGraph.write(
            tmp_path / 'g', data, num_nodes=5, directories=directories
        )

    def batches():
        yield edges[0], edges[1]
        write(edges, first)  # meanwhile

    with pytest.raises(FileExistsError, match='must not exist yet'):
        write(batches(), 'a')
    ChunkedGraph(tmp_path / 'g').verify()
    assert sorted(os.listdir(tmp_path)) == [first, 'g']


def test_a_kill_leaves_nothing_that_the_next_writer_keeps(tmp_path):
    def write_until(folder, left):
        def hook(event, args):
            nonlocal left
            steps = 'os.mkdir', 'os.rename', 'os.chmod', 'os.remove'
            if event in steps and str(folder) in str(args):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        write_small(folder)

    seen = set()
    for step in range(1, 90):
        folder = tmp_path / f'{step}'
        folder.mkdir()
        status = disk.in_a_fork(functools.partial(write_until, folder, step))
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        there = tuple(n for n in ('disk1', 'g') if (folder / n).exists())
        seen.add(there)
        if 'g' in there:
            ChunkedGraph(folder / 'g').verify()
        else:
            write_small(folder)
            ChunkedGraph(folder / 'g').verify()
            assert sorted(os.listdir(folder)) == ['disk1', 'g']
    assert 7 < step < 89
    assert seen == {(), ('disk1',), ('disk1', 'g')}


def write_small(folder):
    edges = torch.arange(4_000).view(2, 2_000) % 50
    ChunkedGraph.write(
        folder / 'g',
        edges,
        chunk_bytes=4_000,
        directories=[folder / 'disk1'],
    )
