"""Which blocks programs on disk read, by which plan, in how much memory."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.storage.matrices import programs
from torch_gsample.storage import ChunkedGraph, DiskModel
from torch_gsample.storage.blocks import BLOCK, Items
from torch_gsample.storage.matrices import reads
from torch_gsample.storage.matrices.columns import StoredColumns
from torch_gsample.storage.matrices.reads import choose_plan, read_items
from torch_gsample.storage.matrices.walks import random_walk, virtual_zeros


@pytest.fixture(scope='module')
def dense(tmp_path_factory):
    """Columns of 3,000 edges: a column is three blocks."""
    rows = torch.arange(3000).repeat(60)
    cols = torch.arange(60).repeat_interleave(3000)
    path = tmp_path_factory.mktemp('dense') / 'graph'
    batches = [(rows, cols)]
    return ChunkedGraph.write(path, batches, num_nodes=3000)


def opened(graph, **options):
    A = graph.matrix(cache_bytes=0, **options)
    A._cols.model = DiskModel(1e-9, 2e9)  # no hole is worth a read
    return A, A._cols.reads.files()[0].stats


def test_nothing_is_read_before_it_is_looked_at(dense):
    A, stats = opened(dense)
    part = A[:, torch.arange(50)]
    drawn = part.individual_sample(2)
    assert isinstance(drawn, StoredColumns)
    assert drawn.num_edges == 100
    assert drawn.degree().tolist() == [2] * 50
    assert stats['misses'] == 0
    drawn.row()
    once = stats['blocks_read']
    assert 0 < once <= 100  # of 150
    drawn.coo()
    drawn.nodes()
    assert stats['blocks_read'] == once


def test_a_draw_that_follows_an_extract_reads_drawn_edges_alone(dense):
    A, stats = opened(dense)
    A[:, torch.tensor([7])].individual_sample(1).row()
    assert stats['blocks_read'] == 1
    A[:, torch.tensor([7])].row()
    assert stats['blocks_read'] in (1 + 3, 1 + 4)


def test_a_step_of_a_walk_reads_one_block_a_walker(dense):
    A, stats = opened(dense)
    A.T.random_walk(torch.arange(5), 1)
    assert 0 < stats['blocks_read'] <= 5


def test_rows_that_were_read_are_not_read_again(dense):
    A, stats = opened(dense)
    part = A[:, torch.arange(4)]
    part.row()
    once = stats['blocks_read']
    part.individual_sample(2).row()
    part.masked(torch.ones(part.num_edges, dtype=torch.bool)).row()
    assert stats['blocks_read'] == once


MODEL = DiskModel(1e-5, 2e9)  # a request costs as much as 4.9 blocks


@pytest.mark.parametrize(
    ('block', 'name', 'requests', 'blocks'),
    [
        ([5], 'stream', 1, 1),
        ([0, 1, 2], 'stream', 1, 3),
        ([0, 100, 200], 'random', 3, 3),
        ([0, 4, 8, 12], 'stream', 1, 13),
        ([0, 3, 100, 103], 'merged', 2, 8),
        ([0, 7, 14], 'random', 3, 3),
    ],
)
def test_the_cheapest_plan_is_taken(block, name, requests, blocks):
    plan = choose_plan(np.array(block), MODEL)
    assert plan.name == name
    assert plan.reads.requests == requests
    assert plan.reads.size == blocks * BLOCK
    seconds = requests * 1e-5 + blocks * BLOCK / 2e9
    assert plan.seconds == pytest.approx(seconds)


@pytest.mark.parametrize('group', [1, 3, 2048])
@pytest.mark.parametrize('kind', ['scattered', 'dense', 'one', 'repeated'])
def test_items_are_those_of_the_file(dense, monkeypatch, kind, group):
    monkeypatch.setattr(reads, 'GROUP', group)
    A, _ = opened(dense)
    path = dense.path / dense.meta.relations[0].file
    want = np.fromfile(path, '<i4')
    rng = np.random.default_rng(0)
    index = {
        'scattered': rng.integers(0, len(want), 50),
        'dense': rng.permutation(9000) + 70,
        'one': np.array([len(want) - 1]),
        'repeated': np.repeat([4000, 3, 4000], 5),
    }[kind]
    out = read_items(
        A._cols.reads.files()[0],
        Items(np.array([0]), np.array([0]), torch.int32),
        torch.from_numpy(index),
        MODEL,
        A._cols.counts,
    )
    assert (out.numpy() == want[index]).all()


def test_short_gaps_are_read_in_one_request(dense):
    A = dense.matrix(cache_bytes=0)
    stats = A._cols.reads.files()[0].stats
    A._cols.read('neighbor', torch.tensor([5000, 1000]))  # 3 blocks between
    assert A.stats()['plans'] == {'stream': 1}
    assert A.stats()['requests'] == stats['requests'] == 1
    assert A.stats()['bytes'] == stats['blocks_read'] * BLOCK
    assert stats['blocks_read'] in (4, 5)


def test_reads_are_counted_by_plan(dense):
    A = dense.matrix(cache_bytes=1 << 24)
    every = torch.arange(60)
    for _ in range(2):
        A[:, every].row()
    A[:, torch.tensor([0])].row()
    stats = A.stats()
    assert stats['plans'] == {'stream': 1, 'cached': 2}
    assert stats['requests'] == 1


def test_a_copy_of_cached_items_waits_for_evicted_blocks(dense):
    A = dense.matrix(cache_bytes=1 << 24)
    position = torch.arange(5000)
    want = A._cols.read('neighbor', position)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(A._cols.read('neighbor', position))
    )
    with A._cols.reads.files()[0]._lock:  # as who inserts blocks
        thread.start()
        thread.join(0.2)
        assert not found
    thread.join()
    assert torch.equal(found[0], want)


def test_large_zeros_take_no_data_of_the_process():
    def data():
        lines = Path('/proc/self/status').read_text().split('\n')
        [line] = [x for x in lines if x.startswith('VmData')]
        return int(line.split()[1])

    before = data()
    zeros = virtual_zeros(1 << 27)  # a GiB
    zeros[5] = 7
    assert data() - before < 1 << 17  # of 1 << 20 KiB
    assert int(zeros[5]) == 7
    assert int(zeros[1 << 26]) == 0


def test_walks_from_hubs_have_large_zeros(dense):
    """Degrees of the walkers sum to more than zeros that are allocated."""
    from torch_gsample import SparseSample
    from torch_gsample.rng import make_key, program_scope

    A = dense.matrix()
    seeds = torch.arange(60)
    rows, cols = A[:, seeds].coo()
    known = SparseSample.from_coo(rows, cols, shape=(3000, 3000))
    with program_scope(make_key(1)):
        want = known.T.random_walk(seeds, 3).nodes
    nodes, _ = random_walk(A._cols, seeds, 3, make_key(1), 0)
    assert torch.equal(nodes, want)


_CHILD = """
import resource, sys, torch
from torch_gsample import algorithms
from torch_gsample.storage import ChunkedGraph
A = ChunkedGraph(sys.argv[1]).matrix(cache_bytes=1 << 20)
seeds = torch.arange(0, A.num_cols, A.num_cols // 40)
algorithms.ladies(A, seeds[:1], [4])  # what is allocated once
status = open('/proc/self/status').read().split()
limit = int(status[status.index('VmData:') + 1]) * 1024 + (72 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
for program in (
    lambda: (A ** 2).sum(dim=1),
    lambda: algorithms.ladies(A, seeds, [500, 500]),
    lambda: algorithms.graphsage(A, seeds, [10, 10]),
    lambda: algorithms.shadow(A, seeds, [5, 3]),
    lambda: algorithms.deepwalk(A.T, seeds, 5),
):
    program()
try:
    A[:, torch.arange(A.num_cols)].row()
except RuntimeError:  # it does not fit
    print('done')
"""


def test_programs_run_in_less_memory_than_the_graph(tmp_path):
    size, degree = 100_000, 240  # 96 MB of neighbours
    step = 10_000

    def batches():
        for first in range(0, size, step):
            cols = torch.arange(first, first + step)
            cols = cols.repeat_interleave(degree)
            yield (torch.arange(len(cols)) * 7919 + first) % size, cols

    path = tmp_path / 'graph'
    ChunkedGraph.write(path, batches(), num_nodes=size, chunk_bytes=16 << 20)
    done = subprocess.run(
        [sys.executable, '-c', _CHILD, str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, 'OMP_NUM_THREADS': '1'},
    )
    assert done.stdout == 'done\n', done.stderr


@pytest.mark.parametrize('part', ['neighbor', 'edge_id', 'weight'])
def test_damage_is_an_error_that_names_the_file(tmp_path, part):
    data = programs.make_data()
    graph = programs.on_disk(tmp_path / 'g', data, True, rows=False)
    A = graph.matrix()  # the pointers are known, and not read again
    [meta] = graph.meta.relations
    places = meta.places(int(meta.chunks[2, 1]), int(meta.chunks[2, 3]))
    with open(graph.path / meta.file, 'r+b') as file:
        file.seek(int(meta.chunks[2, 4]) + places[part])
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 64]))
    A = ChunkedGraph(graph.path).matrix()
    with pytest.raises(ValueError, match=rf'{meta.file}, offset \d+'):
        programs.run(lambda A, w: A[:, torch.arange(300)], A)


def test_a_graph_that_is_cut_short_is_an_error(tmp_path):
    data = programs.make_data()
    graph = programs.on_disk(tmp_path / 'g', data, False, rows=False)
    A = ChunkedGraph(graph.path).matrix()
    [meta] = graph.meta.relations
    os.truncate(graph.path / meta.file, 4096)
    with pytest.raises((OSError, ValueError), match=meta.file):
        programs.run(lambda A, w: A[:, torch.arange(300)], A)


def test_an_opened_graph_outlives_its_folder(tmp_path):
    data = programs.make_data()
    graph = programs.on_disk(tmp_path / 'g', data, True, rows=False)
    want = programs.in_memory(data, True)
    A = graph.matrix()
    program = programs.PROGRAMS['ladies']
    programs.run(program, A)
    shutil.rmtree(graph.path)
    programs.assert_same(programs.run(program, A), programs.run(program, want))
