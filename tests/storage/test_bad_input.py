"""Broken files and arguments: one clear error, nothing that hangs."""

import errno
import os
import re
import threading

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
from torch_gsample.storage.reading import File

SEEDS = torch.arange(60)


@pytest.fixture
def path(tmp_path):
    disk.write(tmp_path / 'g', disk.homogeneous(), True, True)
    return tmp_path / 'g'


def edit_relation(path, **fields):
    disk.edit(path, lambda meta: meta['relations'][0].update(fields))


def edit_chunk(path, column, value, chunk=1):
    def change(meta):
        meta['relations'][0]['chunks'][chunk][column] = value

    disk.edit(path, change)


def drop_chunk(meta):
    del meta['relations'][0]['chunks'][2]


def swap_chunks(meta):
    chunks = meta['relations'][0]['chunks']
    chunks[1], chunks[2] = chunks[2], chunks[1]


HUGE = 2**47
META = {
    "'format' must be 'gsample chunked CSC' (got 'x')": lambda p: disk.edit(
        p, lambda m: m.update(format='x')
    ),
    "'version' must be one of (1, 2) (got 3)": lambda p: disk.edit(
        p, lambda m: m.update(version=3)
    ),
    "'version' must be one of (1, 2) (got True)": lambda p: disk.edit(
        p, lambda m: m.update(version=True)
    ),
    'offset 0: its checksum is wrong': lambda p: disk.edit(
        p, lambda m: m.update(version=1)
    ),
    "'generation' must have 16 hexadecimal digits (got 5)": lambda p: (
        disk.edit(p, lambda m: m.update(generation=5))
    ),
    "'directories' must be absolute paths (got ['x'])": lambda p: disk.edit(
        p, lambda m: m.update(directories=['x'])
    ),
    "'alignment' must be at least 4096 for several": lambda p: disk.edit(
        p, lambda m: m.update(directories=['/x'])
    ),
    "'checksum' must be there for each file": lambda p: edit_relation(
        p, checksum=2**32
    ),
    "'time_checksums' and 'checksum' must be there": lambda p: disk.edit(
        p, lambda m: m.update(time_checksums=[None])
    ),
    'it is no JSON text': lambda p: (p / 'meta.json').write_text('{'),
    'it is no JSON text (maximum recursion': lambda p: (
        p / 'meta.json'
    ).write_text('[' * 100_000),
    'it must hold an object': lambda p: (p / 'meta.json').write_text('[]'),
    "'node_types', 'num_nodes' and 'node_times' must be lists": lambda p: (
        disk.edit(p, lambda m: m.update(num_nodes=[]))
    ),
    "'node_types' must be different names": lambda p: disk.edit(
        p, lambda m: m.update(node_types=[5])
    ),
    "'num_nodes' must be in [0, 2^48)": lambda p: disk.edit(
        p, lambda m: m.update(num_nodes=[2**48])
    ),
    "'alignment' must be a power of 2 from 512": lambda p: disk.edit(
        p, lambda m: m.update(alignment=768)
    ),
    "'node_times' must hold names": lambda p: disk.edit(
        p, lambda m: m.update(node_times=[3])
    ),
    "'time_checksums' must hold null or 32 bits": lambda p: disk.edit(
        p, lambda m: m.update(time_checksums=[2**32])
    ),
    "'time_checksums' must hold null or 32 bits for": lambda p: disk.edit(
        p, lambda m: m.update(time_checksums=[])
    ),
    "'relations' must have different edge types": lambda p: disk.edit(
        p, lambda m: m['relations'].append(m['relations'][0])
    ),
    'a relation must be an object': lambda p: disk.edit(
        p, lambda m: m.update(relations=[3])
    ),
    "'edge_type' must be null": lambda p: edit_relation(p, edge_type='e'),
    "'edge_type' must name two node types": lambda p: disk.edit(
        p, lambda m: m.update(node_types=['a'])
    ),
    "'num_rows', 'num_cols' and 'num_edges' of None must": lambda p: (
        edit_relation(p, num_cols=61)
    ),
    "'widths' must say": lambda p: edit_relation(p, widths={'neighbor': 4}),
    "'chunks' must have 6 numbers": lambda p: edit_chunk(p, 0, -1),
    "'../x' is no name of a file": lambda p: edit_relation(p, file='../x'),
    "'' is no name of a file": lambda p: edit_relation(p, file=''),
    'None is no name of a file': lambda p: edit_relation(p, file=None),
    'must start at the node where the chunk before ends': lambda p: disk.edit(
        p, swap_chunks
    ),
    'must start at the edge where the chunk before ends': lambda p: edit_chunk(
        p, 2, 3
    ),
    'must start at the byte where the chunk before ends': lambda p: edit_chunk(
        p, 4, 0
    ),
    'it must have a node': lambda p: edit_chunk(p, 1, 0),
    'must start at the node': lambda p: disk.edit(p, drop_chunk),
    'must end at edge 899': lambda p: edit_relation(p, num_edges=899),
    'its length must be what it holds': lambda p: disk.edit(
        p, lambda m: m.update(alignment=1024)
    ),
    'must end at node 60': lambda p: edit_chunk(p, 1, HUGE, chunk=-1),
    'must have chunks': lambda p: edit_relation(p, chunks=[]),
    'must end at byte': lambda p: os.truncate(p / 'edges-0.bin', 512),
    'its size must be 480, 8 bytes for each node': lambda p: os.truncate(
        p / 'time-0.bin', 8
    ),
}


FIRST = {
    "'chunks' must have 7 numbers": lambda p: edit_chunk(p, 0, -1),
    'its checksum must have 32 bits': lambda p: edit_chunk(p, 6, 2**40),
    "'time_checksums' must hold null or 32 bits": lambda p: disk.edit(
        p, lambda m: m.update(time_checksums=[2**32])
    ),
    'offset 0: its checksum is wrong': lambda p: disk.edit(
        p, lambda m: m.update(generation='0' * 16)
    ),
    'must end at byte': lambda p: os.truncate(p / 'edges-0.bin', 512),
}


@pytest.mark.parametrize('message', FIRST)
def test_a_broken_description_of_version_1_is_an_error(path, message):
    disk.make_first(path)
    FIRST[message](path)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        ChunkedGraph(path)
    assert f'{path}/meta.json, offset 0: ' in str(caught.value)


@pytest.mark.parametrize('message', META)
def test_a_broken_description_is_an_error(path, message):
    META[message](path)
    match = re.escape(message)
    with pytest.raises(ValueError, match=match) as caught:
        ChunkedGraph(path)
    assert str(path) in str(caught.value)
    assert 'offset ' in str(caught.value)


def test_wide_ids_do_not_fit_in_narrow_arrays(tmp_path):
    disk.write(tmp_path / 'g', torch.zeros(2, 1).long(), num_nodes=1)

    def change(meta):
        meta['num_nodes'] = [2**31 + 1]
        meta['relations'][0].update(num_rows=2**31 + 1, num_cols=2**31 + 1)

    disk.edit(tmp_path / 'g', change)
    with pytest.raises(ValueError, match="do not fit in 'neighbor' of 4 b"):
        ChunkedGraph(tmp_path / 'g')


FILES = 'meta.json', 'edges-0.bin', 'edges-0.crc', 'time-0.bin'


@pytest.mark.parametrize('name', FILES)
def test_a_missing_file_is_named(path, name):
    os.unlink(path / name)
    with pytest.raises(FileNotFoundError, match=name):
        ChunkedGraph(path)


def flip(path, at, mask=0xFF, checksum=False):
    """Flips bits of the edges; `checksum` makes them look right."""
    file = path / 'edges-0.bin'
    data = np.fromfile(file, np.uint8)
    data[at] ^= mask
    data.tofile(file)
    if checksum:
        disk.mend(path)


def place(graph, name, chunk=0, item=0):
    meta = graph.meta.relations[0]
    row = meta.chunks[chunk].tolist()
    at = meta.places(row[1], row[3])[name]
    return row[4] + at + item * meta.dtype(name).itemsize


def test_every_flipped_byte_is_found(path):
    size = os.path.getsize(path / 'edges-0.bin')
    for at in range(0, size, size // 60):
        flip(path, at)
        with pytest.raises(ValueError, match='the checksum of a block'):
            ChunkedGraph(path).verify()
        flip(path, at)
    ChunkedGraph(path).verify()


STRUCTURE = {
    'the header of chunk 1 does not fit': lambda g: 520,
    'offsets of chunk 1 must ascend from 0 to': lambda g: (
        place(g, 'offset', 1, 1) + 7
    ),
    'each neighbor of chunk 1 must be in [0, 60)': lambda g: (
        place(g, 'neighbor', 1) + 3
    ),
    'each edge_id of chunk 1 must be in [0, ': lambda g: (
        place(g, 'edge_id', 1) + 3
    ),
    'a weight of chunk 1 is negative': lambda g: place(g, 'weight', 1) + 3,
    'times of chunk 1 must ascend': lambda g: place(g, 'time', 1) + 3,
    'padding of chunk 1 must be zero': lambda g: (
        int(g.meta.relations[0].chunks[1, 4:6].sum()) - 1
    ),
}


@pytest.mark.parametrize('message', STRUCTURE)
def test_structure_is_checked_in_addition_to_the_checksum(path, message):
    graph = ChunkedGraph(path)
    flip(path, STRUCTURE[message](graph), checksum=True)
    with pytest.raises(ValueError, match=re.escape(message)):
        ChunkedGraph(path).verify()


def sample(kind, graph, **options):
    if kind is RandomReadSampler:
        sampler = kind(graph, [-1, -1], **options)
    else:
        sampler = kind(graph, [-1, -1], memory_limit=disk.MEMORY, **options)
        try:
            sampler.prepare_epoch(SEEDS, 0, input_time=SEEDS * 0 + 30)
        finally:
            sampler.close()
        return
    sampler.sample_from_nodes(graphs.nodes(SEEDS, time=SEEDS * 0 + 30))


BOTH = pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])


@BOTH
@pytest.mark.parametrize('name', ['offset', 'neighbor'])
def test_samplers_find_hostile_numbers(path, kind, name):
    """Of a chunk with a right checksum."""
    at = place(ChunkedGraph(path), name, chunk=3, item=name == 'offset')
    flip(path, at + (7 if name == 'offset' else 3), 0x7F, checksum=True)
    with pytest.raises(ValueError, match=r'edges-0.bin, offset \d+: ') as e:
        sample(kind, ChunkedGraph(path), use_weights=False)
    assert str(path) in str(e.value)


@BOTH
def test_the_node_after_the_last_one_is_none(path, kind):
    at = place(ChunkedGraph(path), 'neighbor', chunk=3)
    now = (path / 'edges-0.bin').read_bytes()[at]
    flip(path, at, now ^ 60, checksum=True)
    with pytest.raises(ValueError, match=r'must be in .0, 60. .got 60.'):
        sample(kind, ChunkedGraph(path), use_weights=False)


@BOTH
def test_samplers_reject_invalid_weights(path, kind):
    at = place(ChunkedGraph(path), 'weight', chunk=3) + 3
    flip(path, at, checksum=True)
    with pytest.raises(ValueError, match='each weight must be finite') as e:
        sample(kind, ChunkedGraph(path))
    assert f'edges-0.bin, offset {at - 3}: ' in str(e.value)


def test_degrees_are_counted_of_whole_offsets_only(path):
    graph = ChunkedGraph(path)
    flip(path, place(graph, 'offset', 1, 1) + 7, checksum=True)
    with pytest.raises(ValueError, match='offsets of chunk 1 must ascend'):
        graph.degree_histogram(graph.meta.relations[0])


def test_streaming_checks_checksums(path):
    flip(path, place(ChunkedGraph(path), 'weight', chunk=3), 1)
    with pytest.raises(ValueError, match='of chunk 3 is wrong'):
        sample(StreamingSampler, ChunkedGraph(path))


@BOTH
def test_a_read_error_names_file_and_offset(path, kind):
    """The file was cut after the graph was opened."""
    graph = ChunkedGraph(path)
    os.truncate(path / 'edges-0.bin', 2048)
    match = r'the file ends too early \(reading offset \d+\).*edges-0.bin'
    before = threading.active_count()
    with pytest.raises(OSError, match=match) as caught:
        sample(kind, graph)
    assert caught.value.errno == errno.EIO
    assert threading.active_count() == before


@BOTH
def test_a_directory_in_place_of_a_file(path, kind):
    graph = ChunkedGraph(path)
    os.unlink(path / 'edges-0.bin')
    (path / 'edges-0.bin').mkdir()
    with pytest.raises(OSError, match='Is a directory'):
        sample(kind, graph)


def test_both_engines_report_errors(path):
    file = File(path / 'edges-0.bin')
    out = np.zeros(8192, np.uint8)
    offset = np.array([0, 1 << 40, 1 << 41])
    for engine in ('threads', 'io_uring'):
        with pytest.raises(OSError, match=r'early \(reading offset 1099511'):
            file.read_ranges(offset, np.full(3, 100), out, engine)
    file.close()
    for engine in ('threads', 'io_uring'):
        with pytest.raises(OSError, match='Bad file descriptor'):
            file.read_ranges(offset[:1], np.array([8]), out, engine)


ARGUMENTS = {
    "RandomReadSampler: 'graph' must be a ChunkedGraph (got str)": lambda g: (
        RandomReadSampler('g', [1])
    ),
    "'subgraph_type' must be 'directional' or 'bidirectional'": lambda g: (
        RandomReadSampler(g, [1], 'induced')
    ),
    "'temporal_strategy' must be 'uniform' or 'last' (got 'x')": lambda g: (
        RandomReadSampler(g, [1], temporal_strategy='x')
    ),
    "'time_window' needs a graph with times (got 3)": lambda g: (
        RandomReadSampler(g, [1], use_times=False, time_window=3)
    ),
    "'engine' must be one of": lambda g: RandomReadSampler(g, [1], engine='x'),
    "'cache_bytes' must be a number of bytes": lambda g: RandomReadSampler(
        g, [1], cache_bytes=-1
    ),
    "'rng_scope' must be 'epoch', because whole epochs": lambda g: (
        StreamingSampler(g, [1], rng_scope='batch')
    ),
    "'memory_limit' must be at least 4 times the largest chunk": lambda g: (
        StreamingSampler(g, [1], memory_limit=1000)
    ),
    "'seeds' must be in [0, 60) (got 60)": lambda g: prepare(g, SEEDS + 1),
    "the graph has no node type 'x'": lambda g: prepare(g, SEEDS, 'x'),
    'edges stay on disk': lambda g: g.get_edge_index(None, 'csc'),
    'edges cannot be added': lambda g: g.put_edge_index(
        (SEEDS, SEEDS), None, 'coo'
    ),
    'edges cannot be removed': lambda g: g.remove_edge_index(None, 'csc'),
    'edges cannot be seeds': lambda g: one_hop(g).sample_from_edges(None),
    'epoch 0 is not prepared': lambda g: one_hop(g).sample_from_nodes(
        graphs.nodes([1])
    ),
}


def one_hop(graph):
    return StreamingSampler(graph, [1])


def prepare(graph, seeds, *of_type):
    one_hop(graph).prepare_epoch(seeds, 0, *of_type)


@pytest.mark.parametrize('message', ARGUMENTS)
def test_arguments_are_checked(path, message):
    kinds = ValueError, TypeError, IndexError, NotImplementedError
    with pytest.raises(kinds, match=re.escape(message)):
        ARGUMENTS[message](ChunkedGraph(path))
