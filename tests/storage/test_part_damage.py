"""Damage to appended segments and to further directories of a graph."""

import contextlib
import json
import os
import shutil

import numpy as np
import pytest
import torch

from tests.storage import disk
from tests.storage.test_damage import flip, flips
from tests.storage.test_stripes import write
from torch_gsample.storage import ChunkedGraph, segment_list
from torch_gsample.storage.segment_list import SEGMENTS
from torch_gsample.storage.segments import append_segment

SEGMENT_FILES = (
    'segments.json',
    'segment-1/edges-0.bin',
    'segment-1/time-0.bin',
)


@pytest.fixture(scope='module')
def appended(tmp_path_factory):
    """A graph with times, and a segment of three edges and two nodes."""
    path = tmp_path_factory.mktemp('segment') / 'g'
    graph = disk.write(path, disk.homogeneous(9, 60), False, True)
    first = graph.meta.relations[0].num_edges
    edges = {
        'col': np.array([9, 10, 3]),
        'neighbor': np.array([1, 9, 10]),
        'edge_id': np.arange(first, first + 3),
        'time': np.array([40, 41, 42]),
    }
    with append_segment(path, graph.meta) as writer:
        writer.add_edges(0, [edges])
        writer.add_nodes(0, 2, lambda: iter([np.array([30, 31])]))
    assert len(ChunkedGraph(path).segments.entries) == 1
    return path


@pytest.fixture(scope='module')
def striped(tmp_path_factory):
    """A graph in two directories."""
    folder = tmp_path_factory.mktemp('stripes')
    return write(folder, disk.homogeneous(9, 60), chunk_bytes=1_000)


def assert_cuts_are_found(path, file):
    """Cuts a file at each point, one after the other."""
    raw, match = file.read_bytes(), rf'offset \d+: .*{file.name}|{file}'
    for size in reversed(range(len(raw))):
        os.truncate(file, size)
        with pytest.raises(ValueError, match=match):
            ChunkedGraph(path)
    file.write_bytes(raw)
    ChunkedGraph(path)


@pytest.mark.parametrize('name', SEGMENT_FILES)
def test_each_flipped_bit_of_a_segment_is_found(appended, name):
    for at, mask in flips(appended / name):
        flip(appended / name, at, mask)
        with pytest.raises(ValueError, match=rf'{name}, offset \d+: '):
            ChunkedGraph(appended)
        flip(appended / name, at, mask)
    ChunkedGraph(appended)


@pytest.mark.parametrize('name', SEGMENT_FILES)
def test_every_truncation_of_a_segment_is_found(appended, name):
    assert_cuts_are_found(appended, appended / name)


@pytest.fixture
def twice(appended, tmp_path):
    """A copy of the graph with a second segment, and the list of the first."""
    shutil.copytree(appended, tmp_path / 'g')
    shutil.copy(appended / SEGMENTS, tmp_path)
    append(tmp_path / 'g', {'time': 45})
    assert len(ChunkedGraph(tmp_path / 'g').segments.entries) == 2
    return tmp_path / 'g'


def append(path, values):
    """Appends an edge from node 1 to node 0."""
    graph = ChunkedGraph(path)
    edge = {'col': 0, 'neighbor': 1, 'edge_id': graph.num_edges[None]}
    with append_segment(path, graph.meta) as writer:
        arrays = {k: np.array([v]) for k, v in {**edge, **values}.items()}
        writer.add_edges(0, [arrays])


def test_a_lost_or_earlier_list_of_segments_is_found(twice):
    for restore in (
        lambda: (twice / SEGMENTS).unlink(),
        lambda: shutil.copy(twice.parent / SEGMENTS, twice),
    ):
        restore()
        with pytest.raises(
            ValueError, match=r'segments\.json, .*must list 2 segments'
        ):
            ChunkedGraph(twice)
        with pytest.raises(ValueError, match='must list 2 segments'):
            append(twice, {'time': 46})


def test_a_segment_that_a_killed_writer_did_not_list_is_ignored(twice):
    """As one of an earlier release, which has no mark."""
    (twice / 'segment-2/listed').unlink()
    shutil.copy(twice.parent / SEGMENTS, twice)
    assert len(ChunkedGraph(twice).segments.entries) == 1
    append(twice, {'time': 47})
    assert ChunkedGraph(twice).segments.edges[0].time.max() == 47
    (twice / SEGMENTS).unlink()
    with pytest.raises(ValueError, match='must list 2 segments'):
        ChunkedGraph(twice)


def test_a_missing_mark_of_a_segment_is_made_again(twice):
    for path in twice.glob('*/listed'):
        path.unlink()
    assert len(ChunkedGraph(twice).segments.entries) == 2
    append(twice, {'time': 48})
    assert len([*twice.glob('*/listed')]) == 3


def test_a_list_that_grows_while_it_is_read_is_read_again(twice, monkeypatch):
    now, read = (twice / SEGMENTS).read_bytes(), segment_list._read_entries
    shutil.copy(twice.parent / SEGMENTS, twice)

    def then_append(*args):
        out = read(*args)
        (twice / SEGMENTS).write_bytes(now)
        return out

    monkeypatch.setattr(segment_list, '_read_entries', then_append)
    assert len(ChunkedGraph(twice).segments.entries) == 2


def test_each_flipped_bit_of_a_directory_is_found(striped):
    file = striped.path.parent / 'disk1/edges-0.bin'
    for at, mask in flips(file):
        flip(file, at, mask)
        with pytest.raises(ValueError, match=rf'{file}, offset \d+: the chec'):
            ChunkedGraph(striped.path).verify()
        flip(file, at, mask)
    ChunkedGraph(striped.path).verify()


def test_a_flipped_bit_of_a_stripe_is_found_or_harmless(striped):
    """Harmless outside the number and the generation, which are compared."""
    file = striped.path.parent / 'disk1/stripe.json'

    def identity():
        with contextlib.suppress(ValueError):  # also not UTF-8
            found = json.loads(file.read_bytes())
            return found.get('number'), found.get('generation')

    want, found = identity(), 0
    for at, mask in flips(file):
        flip(file, at, mask)
        if identity() == want:
            ChunkedGraph(striped.path).verify()
        else:
            with pytest.raises(ValueError, match=f'{file}, offset 0: '):
                ChunkedGraph(striped.path)
            found += 1
        flip(file, at, mask)
    assert found > 50


@pytest.mark.parametrize('name', ['stripe.json', 'edges-0.bin'])
def test_every_truncation_of_a_directory_is_found(striped, name):
    file = striped.path.parent / 'disk1' / name
    assert_cuts_are_found(striped.path, file)


def test_the_rows_of_a_damaged_graph_are_checked(tmp_path):
    """They are a graph, whose files have checksums of their own."""
    graph = disk.write(tmp_path / 'g', disk.homogeneous(9, 60), False, False)
    graph.write_rows()
    (folder,) = (tmp_path / 'g.derived').glob('*/rows')
    for name in ('meta.json', 'edges-0.bin', 'edges-0.crc'):
        file = folder / name
        for at, mask in list(flips(file))[:70]:
            flip(file, at, mask)
            with pytest.raises(ValueError, match=rf'{file}, offset \d+: '):
                graph.matrix().random_walk(torch.arange(9), 3)
            flip(file, at, mask)
