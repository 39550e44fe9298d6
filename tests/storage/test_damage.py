"""A bit that changed on disk is found before it decides a draw."""

import os
import pickle
import random
import shutil
import warnings
from pathlib import Path

import pytest
import torch

from tests.samplers import graphs
from tests.storage import disk
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.reading import File

SEEDS = torch.arange(60)
TIME = torch.full((60,), 30)
FLIPS = 200


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A graph with weights and times; the widest nodes fill some chunks."""
    path = tmp_path_factory.mktemp('damage') / 'g'
    data = disk.homogeneous()
    data.edge_index[1, :300] = 7
    data.edge_index[1, 300:400] = 8
    return disk.write(path, data, True, True, chunk_bytes=2000).path


@pytest.fixture
def path(made, tmp_path):
    """A copy to be damaged."""
    return Path(shutil.copytree(made, tmp_path / 'g'))


@pytest.fixture
def first(path):
    """One of version 1."""
    return disk.make_first(path).path


@pytest.fixture(params=[1, 2])
def any_version(request, path):
    return disk.make_first(path).path if request.param == 1 else path


def flips(path, seed=0):
    """Positions and masks of bits that are drawn from all of a file."""
    draws = random.Random(seed)
    size = os.path.getsize(path)
    for _ in range(FLIPS):
        yield draws.randrange(size), 1 << draws.randrange(8)


def flip(path, at, mask):
    with open(path, 'r+b', buffering=0) as file:
        (old,) = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([old ^ mask]), at)


def by_io_uring(graph):
    sampler = RandomReadSampler(graph, [-1], seed=0, engine='io_uring')
    sampler.sample_from_nodes(graphs.nodes(SEEDS))


def by_threads(graph):
    sampler = RandomReadSampler(graph, [-1], seed=0, engine='threads')
    sampler.sample_from_nodes(graphs.nodes(SEEDS))


def by_streaming(graph):
    sampler = StreamingSampler(graph, [-1], memory_limit=disk.MEMORY)
    try:
        sampler.prepare_epoch(SEEDS, 0)
    finally:
        sampler.close()


READERS = by_io_uring, by_threads, by_streaming


@pytest.mark.parametrize('read', READERS)
@pytest.mark.parametrize('name', ['edges-0.bin', 'time-0.bin'])
def test_each_flipped_bit_is_found(any_version, name, read):
    file, found = any_version / name, 0
    for at, mask in flips(file):
        flip(file, at, mask)
        with pytest.raises(ValueError, match=f'{name}, offset .* checksum of'):
            read(ChunkedGraph(any_version))
        flip(file, at, mask)
        found += 1
    assert found == FLIPS
    read(ChunkedGraph(any_version))


def test_each_flipped_bit_of_checksums_is_found(made):
    for at, mask in flips(made / 'edges-0.crc'):
        flip(made / 'edges-0.crc', at, mask)
        with pytest.raises(ValueError, match=r'edges-0.crc, offset 0: the ch'):
            ChunkedGraph(made)
        flip(made / 'edges-0.crc', at, mask)
    ChunkedGraph(made)


def test_each_flipped_bit_of_the_description_is_found(made):
    for at, mask in flips(made / 'meta.json'):
        flip(made / 'meta.json', at, mask)
        with pytest.raises(ValueError, match=r'meta.json, offset \d+: '):
            ChunkedGraph(made)
        flip(made / 'meta.json', at, mask)
    ChunkedGraph(made)


def test_an_error_names_the_block(path):
    """4,096 bytes, or `alignment` if that is less."""
    for at in (0, 511, 512, 3_000):
        flip(path / 'edges-0.bin', at, 1)
        with pytest.raises(ValueError, match=f'offset {at // 512 * 512}: '):
            ChunkedGraph(path).verify()
        flip(path / 'edges-0.bin', at, 1)


FILES = 'meta.json', 'edges-0.bin', 'edges-0.crc', 'time-0.bin'


@pytest.mark.parametrize('name', FILES)
def test_every_truncation_is_found_when_it_is_opened(tmp_path, name):
    data = disk.homogeneous(9, 60)
    path = disk.write(tmp_path / 'g', data, True, True).path
    for size in range(os.path.getsize(path / name) - 1, -1, -1):
        os.truncate(path / name, size)
        with pytest.raises(ValueError, match=r', offset \d+: ') as caught:
            ChunkedGraph(path)
        assert name in str(caught.value)


def test_a_flipped_bit_of_version_1_is_an_error_or_harmless(first):
    path = first

    def read():
        sampler = RandomReadSampler(ChunkedGraph(path), [4, 3], seed=0)
        out = sampler.sample_from_nodes(graphs.nodes(SEEDS))
        return out.node.tolist(), out.edge.tolist(), out.row.tolist()

    want, errors = read(), 0
    for at, mask in flips(path / 'meta.json'):
        flip(path / 'meta.json', at, mask)
        try:
            out = read()
        except (ValueError, OSError) as error:
            out, errors = want, errors + (str(path) in str(error))
        flip(path / 'meta.json', at, mask)
        assert out == want
    assert errors > FLIPS * 0.9


def test_times_that_are_cut_off_are_an_error_or_were_read(path):
    """They are not mapped: a map would end the process by SIGBUS."""
    graph = ChunkedGraph(path)
    sampler = RandomReadSampler(graph, [-1], seed=0)
    os.truncate(path / 'time-0.bin', 0)

    def sample():
        sampler.sample_from_nodes(graphs.nodes(SEEDS))
        with pytest.raises(OSError, match='the file ends too early'):
            RandomReadSampler(graph, [-1], seed=0)

    assert disk.in_a_fork(sample) == 0


def test_times_without_a_checksum_are_read_and_named_by_verify(first):
    path = first
    disk.edit(path, lambda meta: meta.pop('time_checksums'))
    with pytest.warns(UserWarning, match=r'time-0.bin has no checksum'):
        ChunkedGraph(path).verify()
    for read in READERS:
        read(ChunkedGraph(path))


def test_verify_finds_damaged_times_and_warns_of_nothing(path):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        ChunkedGraph(path).verify()
    flip(path / 'time-0.bin', 77, 4)
    with pytest.raises(ValueError, match=r'time-0.bin, offset 0: the check'):
        ChunkedGraph(path).verify()


def reads(monkeypatch):
    """The ranges that are read of files."""
    out, read = [], File.read

    def note(self, offset, data, *args):
        out.append((offset, data.size))
        read(self, offset, data, *args)

    monkeypatch.setattr(File, 'read', note)
    return out


def test_a_chunk_is_checked_once_by_all_samplers_of_a_graph(
    first, monkeypatch
):
    path = first
    graph = ChunkedGraph(path)
    noted, chunks = reads(monkeypatch), graph.meta.relations[0].chunks
    by_io_uring(graph)
    by_threads(graph)
    noted.remove((0, 480))  # the times, of each sampler
    noted.remove((0, 480))
    assert sorted(noted) == [tuple(row) for row in chunks[:, 4:6].tolist()]


def test_only_chunks_that_are_read_are_checked(first, monkeypatch):
    path = first
    graph = ChunkedGraph(path)
    noted, chunks = reads(monkeypatch), graph.meta.relations[0].chunks
    sampler = RandomReadSampler(graph, [-1], seed=0)
    sampler.sample_from_nodes(graphs.nodes(torch.tensor([59])))
    assert 0 < len(noted) < len(chunks) / 2


@pytest.mark.parametrize('read', READERS)
def test_a_file_that_changed_is_checked_again(any_version, read):
    path = any_version
    graph = ChunkedGraph(path)
    read(graph)
    flip(path / 'edges-0.bin', 600, 1)
    with pytest.raises(ValueError, match='the checksum of'):
        read(graph)


def test_an_open_file_that_changed_is_checked_again(any_version):
    """Of blocks that are not in the cache of the sampler."""
    path = any_version
    graph = ChunkedGraph(path)
    sampler = RandomReadSampler(graph, [-1], seed=0, cache_bytes=0)
    sampler.sample_from_nodes(graphs.nodes(SEEDS))
    flip(path / 'edges-0.bin', 600, 1)
    with pytest.raises(ValueError, match='the checksum of'):
        sampler.sample_from_nodes(graphs.nodes(SEEDS))


def test_forked_processes_check_a_chunk_once_and_copies_again(any_version):
    path = any_version
    graph = ChunkedGraph(path)
    file = graph.open(graph.meta.relations[0])
    assert disk.in_a_fork(lambda: by_threads(graph)) == 0
    assert graph.checked[0]._of(file).all()
    copy = pickle.loads(pickle.dumps(graph))
    assert not copy.checked[0]._of(file).any()


@pytest.mark.parametrize('read', READERS)
def test_a_chunk_of_another_layout_is_found(first, read):
    """Its checksum is right, but the description is of other chunks."""

    def change(meta):
        meta['relations'][0]['widths'].update(edge_id=0, weight=8)

    disk.edit(first, change)
    with pytest.raises(ValueError, match=r'the header of chunk \d+ does n'):
        read(ChunkedGraph(first))
