"""Writing: every source gives the same graph, and nothing half-written."""

import csv
import functools
import os
import re
import shutil
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

from tests.samplers import graphs
from tests.storage import disk
from tests.storage.disk import fill_a_disk, in_a_fork
from torch_gsample import CSC
from torch_gsample.datasets import power_law, power_law_edges
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.chunks import chunk_arrays
from torch_gsample.storage.reading import File

NAMES = 'src', 'dst', 'weight', 'time'


def edges_of(graph, relation=0):
    """All edges on disk, in order: destinations and the arrays of chunks."""
    meta = graph.meta.relations[relation]
    out = {'col': []}
    for i, row in enumerate(meta.chunks.tolist()):
        data = np.empty(row[5], np.uint8)
        File(graph.path / meta.file).read(row[4], data)
        arrays = chunk_arrays(graph.path, meta, i, data)
        nodes = np.arange(row[0], row[0] + row[1])
        out['col'].append(np.repeat(nodes, np.diff(arrays.pop('offset'))))
        for name, values in arrays.items():
            out.setdefault(name, []).append(values)
    return {k: np.concatenate(v).tolist() for k, v in out.items()}


def random_rows(size=3_000):
    rng = np.random.default_rng(0)
    return {
        'src': rng.integers(0, 50, size),
        'dst': rng.integers(0, 50, size) * rng.integers(0, 2, size),
        'weight': rng.random(size),
        'time': rng.integers(0, 9, size),
    }


def expected(rows, by_time=False):
    keys = (rows['time'], rows['dst']) if by_time else (rows['dst'],)
    order = np.lexsort(keys)
    names = {'col': 'dst', 'neighbor': 'src', 'weight': 'weight'}
    out = {k: rows[v][order].tolist() for k, v in names.items()}
    return {**out, 'time': rows['time'][order].tolist(),
            'edge_id': order.tolist()}  # fmt: skip


def write_csv(path, rows):
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(zip(*(rows[n] for n in NAMES), strict=True))


@pytest.mark.parametrize('kind', ['csv', 'parquet', 'parts'])
@pytest.mark.parametrize('by_time', [False, True])
def test_edge_files_become_sorted_columns(tmp_path, kind, by_time):
    rows = random_rows()
    table = pa.table(rows)
    if kind == 'csv':
        paths = tmp_path / 'edges.csv'
        write_csv(paths, rows)
    elif kind == 'parquet':
        paths = str(tmp_path / 'edges.parquet')
        pq.write_table(table, paths, row_group_size=100)
    else:
        paths = [tmp_path / f'{i}.parquet' for i in range(3)]
        for i, path in enumerate(paths):
            pq.write_table(table.slice(1_000 * i, 1_000), path)
    graph = ChunkedGraph.write(
        tmp_path / 'graph',
        paths,
        weight_attr='weight',
        time_attr='time' if by_time else None,
        chunk_bytes=700,
        memory_limit=64 << 20,
    )
    graph.verify()
    want = expected(rows, by_time)
    out = edges_of(graph)
    assert out == {k: want[k] for k in out}
    assert ('time' in out) == by_time


@pytest.mark.parametrize('transposed', [False, True])
def test_arrays_of_numpy_are_read(tmp_path, transposed):
    rows = random_rows()
    edges = np.stack([rows['src'], rows['dst']]).astype(np.int32)
    np.save(tmp_path / 'e.npy', edges.T if transposed else edges)
    graph = ChunkedGraph.write(tmp_path / 'g', tmp_path / 'e.npy')
    want = expected(rows)
    out = edges_of(graph)
    assert out == {k: want[k] for k in out}


def test_files_of_edge_types_share_their_nodes(tmp_path):
    rows = random_rows(100)
    write_csv(tmp_path / 'a.csv', rows)
    write_csv(tmp_path / 'b.csv', {**rows, 'src': rows['src'] + 900})
    graph = ChunkedGraph.write(
        tmp_path / 'g',
        {
            ('user', 'a', 'item'): tmp_path / 'a.csv',
            ('user', 'b', 'user'): tmp_path / 'b.csv',
        },
        num_nodes={'item': 77},
        columns=('src', 'dst'),
    )
    most = int(rows['src'].max()) + 901
    assert graph.num_nodes == {'user': most, 'item': 77}


def test_forms_in_memory_give_one_graph(tmp_path):
    data = disk.homogeneous()
    row, col = data.edge_index
    csc = CSC.from_coo(row, col, 60, 60)
    forms = [data, (row, col), data.edge_index, csc, graphs.as_stores(data)]
    sized = {1: 60, 2: 60}
    outs = [
        edges_of(
            ChunkedGraph.write(
                tmp_path / f'{i}',
                form,
                num_nodes=sized.get(i),
                chunk_bytes=300,
            )
        )
        for i, form in enumerate(forms)
    ]
    assert all(out == outs[0] for out in outs)


def test_generators_are_written_completely(tmp_path):
    batches = power_law_edges(300, 9_000, 200, batch_size=700)
    graph = ChunkedGraph.write(
        tmp_path / 'g', batches, num_nodes=300, chunk_bytes=2_000
    )
    row, col = map(
        torch.cat, zip(*power_law_edges(300, 9_000, 200), strict=True)
    )
    out = edges_of(graph)
    assert out == {'col': col.tolist(), 'neighbor': row.tolist()}
    degrees = power_law(300, 9_000, 200).indptr.diff()
    assert torch.equal(torch.bincount(col, minlength=300), degrees.long())


@pytest.mark.parametrize('size', [256, 300, 1_000, 10_000])
def test_chunks_are_full_and_hubs_are_split(tmp_path, size):
    data = Data(edge_index=torch.tensor([[1] * 500, [7] * 500]), num_nodes=600)
    graph = disk.write(tmp_path / 'g', data, chunk_bytes=size)
    graph.verify()
    meta = graph.meta.relations[0]
    places = meta.places(meta.chunks[:, 1], meta.chunks[:, 3])
    assert (places['end'] <= size).all()
    split = int((meta.chunks[1:, 0] == 7).sum())
    assert (split > 0) == (size < 5_000)
    assert graph.degree_histogram(meta).sum() == 600
    assert graph.degree_histogram(meta)[9] == 1


def test_graphs_without_edges_or_nodes(tmp_path):
    none = torch.empty(2, 0, dtype=torch.int64)
    for i, size in enumerate((0, 5)):
        graph = ChunkedGraph.write(tmp_path / f'{i}', none, num_nodes=size)
        graph.verify()
        assert graph.num_nodes == {None: size}
        assert edges_of(graph)['col'] == [] if size else True


def files(folder):
    return sorted(os.listdir(folder))


def test_an_error_leaves_nothing(tmp_path):
    def batches():
        yield torch.tensor([0, 1]), torch.tensor([1, 2])
        raise RuntimeError('no more')

    with pytest.raises(RuntimeError, match='no more'):
        ChunkedGraph.write(tmp_path / 'g', batches(), num_nodes=5)
    assert files(tmp_path) == []


def test_a_graph_is_never_overwritten(tmp_path):
    edges = torch.tensor([[0], [1]])
    ChunkedGraph.write(tmp_path / 'g', edges)
    before = (tmp_path / 'g/meta.json').read_text()
    with pytest.raises(FileExistsError, match="'path' must not exist yet"):
        ChunkedGraph.write(tmp_path / 'g', edges.repeat(1, 9))
    assert (tmp_path / 'g/meta.json').read_text() == before
    assert files(tmp_path) == ['g']


@pytest.mark.parametrize('more', [[], ['more']])
def test_the_slower_of_two_writers_is_refused(tmp_path, more):
    options = {'directories': [tmp_path / name for name in more]}
    first, second = torch.tensor([[0], [1]]), torch.tensor([[1], [0]])

    def batches():
        ChunkedGraph.write(tmp_path / 'g', first, **options)
        yield second

    name = 'directories' if more else 'path'
    with pytest.raises(FileExistsError, match=f"'{name}' must not exist yet"):
        ChunkedGraph.write(tmp_path / 'g', batches(), num_nodes=2, **options)
    ChunkedGraph(tmp_path / 'g').verify()
    assert edges_of(ChunkedGraph(tmp_path / 'g'))['col'] == [1]
    assert files(tmp_path) == ['g', *more]


def write_small(folder):
    edges = torch.arange(4_000).view(2, 2_000) % 50
    ChunkedGraph.write(folder / 'g', edges, chunk_bytes=1_000)


def test_a_crash_leaves_no_half_of_a_graph(tmp_path):
    """The process is killed at one step after the other."""

    def write_until(folder, left):
        def hook(event, args):
            nonlocal left
            steps = 'open', 'os.rename', 'os.chmod', 'os.listdir'
            if event in steps and str(folder) in str(args):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        write_small(folder)

    for step in range(1, 40):
        folder = tmp_path / f'{step}'
        folder.mkdir()
        status = in_a_fork(functools.partial(write_until, folder, step))
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        if (folder / 'g').exists():
            ChunkedGraph(folder / 'g').verify()
    assert 5 <= step < 39
    assert files(folder) == ['g']


def test_a_full_disk_is_named_and_left_empty(tmp_path):
    fill_a_disk(6_000, lambda: write_small(tmp_path))
    assert files(tmp_path) == []


FILE_ERRORS = {
    'must have the columns': ('a,b\n1,2\n', {'weight_attr': 'w'}),
    'must hold integers (got DOUBLE)': ('a,b\n1.5,2\n', {}),
    'must hold integers (got VARCHAR)': ('a,b\nx,2\n', {}),
    'must have no empty fields (it has 1)': ('a,b\n1,2\n,4\n', {}),
    'nodes must not be negative (got -1 in': ('a,b\n1,-1\n', {}),
    'each source must be in [0, 3) (got 7)': ('a,b\n7,2\n', {'num_nodes': 3}),
}


@pytest.mark.parametrize('message', FILE_ERRORS)
def test_broken_edge_files_are_named(tmp_path, message):
    text, options = FILE_ERRORS[message]
    path = tmp_path / 'e.csv'
    path.write_text(text)
    kinds = ValueError, TypeError, IndexError
    with pytest.raises(kinds, match=re.escape(message)):
        ChunkedGraph.write(tmp_path / 'g', path, **options)
    assert files(tmp_path) == ['e.csv']


def damaged_files(tmp_path):
    """Files that DuckDB or NumPy refuses, and the kind of error."""
    plain = tmp_path / 'plain.parquet'
    pq.write_table(pa.table({'a': range(3_000), 'b': range(3_000)}), plain)
    data = bytearray(plain.read_bytes())
    foot = bytearray(data)
    foot[-60:-30] = b'\xff' * 30
    lines = [f'{i},{i}' for i in range(30_000)]
    lines[25_000] = '1,z'  # behind the rows that decide a column's type
    return {
        'cut.parquet': (bytes(data[:900]), ValueError),
        'foot.parquet': (bytes(foot), ValueError),
        'empty.parquet': (b'', ValueError),
        'late.csv': ('\n'.join(['a,b', *lines]).encode(), ValueError),
        'text.gz': (b'no gzip' * 99, OSError),
        'empty.npy': (b'', ValueError),
    }


def test_damaged_edge_files_are_named(tmp_path):
    for name, (data, kind) in damaged_files(tmp_path).items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(kind, match=rf'^ChunkedGraph.write: {path}: '):
            ChunkedGraph.write(tmp_path / 'g', path)
        path.unlink()
    assert files(tmp_path) == ['plain.parquet']


def test_edges_beyond_the_memory_of_duckdb_are_named(tmp_path):
    path = tmp_path / 'e.parquet'
    pq.write_table(pa.table({n: range(200_000) for n in 'ab'}), path)
    limit = 6 * 4096
    with pytest.raises(MemoryError, match=rf"{path}: 'memory_limit' must"):
        ChunkedGraph.write(
            tmp_path / 'g', path, chunk_bytes=4096, memory_limit=limit
        )
    assert files(tmp_path) == ['e.parquet']


def test_a_graph_larger_than_its_disk_is_refused_at_once(
    tmp_path, monkeypatch
):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(
        shutil, 'disk_usage', lambda path: usage._replace(free=7_000)
    )
    with pytest.raises(OSError, match=r'1000 nodes needs .* \(free: 7000\)'):
        ChunkedGraph.write(tmp_path / 'g', EDGES, num_nodes=1_000)
    with pytest.raises(OSError, match=r'\(free: 7000\)'):  # of one disk
        ChunkedGraph.write(
            *(tmp_path / 'g', EDGES),
            num_nodes=1_000,
            directories=[tmp_path / 'other'],
        )
    assert files(tmp_path) == []
    ChunkedGraph.write(tmp_path / 'g', EDGES, num_nodes=800)


EDGES = torch.tensor([[0], [1]])
ARGUMENTS = {
    "'chunk_bytes' must be at least 256 (got 255)": {'chunk_bytes': 255},
    "'alignment' must be a power of 2 from 512": {'alignment': 1000},
    "'memory_limit' must be at least 6 times": {'memory_limit': 1 << 30},
    "'weight_attr' 'w' is not an edge-level attribute": {'weight_attr': 'w'},
    'must have shape [2, num_edges] (got [3, 1])': {
        'data': torch.zeros(3, 1).long()
    },
    'must be a graph, a tensor, batches of edges, or paths': {'data': 5},
    "batches of edges need 'num_nodes' (got None)": {'data': iter([])},
    "'num_nodes' must be None for a graph": {
        'data': Data(edge_index=EDGES, num_nodes=2),
        'num_nodes': 3,
    },
    'edges must be sorted by destination (they are not)': {
        'data': [(EDGES[0], EDGES[1]), (EDGES[0], EDGES[0])],
        'num_nodes': 3,
    },
    'edge files must be of one kind of': {'data': [__file__]},
    "No such file or directory: 'no.csv'": {'data': ['no.csv']},
}


@pytest.mark.parametrize('message', ARGUMENTS)
def test_arguments_of_write_are_checked(tmp_path, message):
    options = {'data': EDGES, **ARGUMENTS[message]}
    kinds = ValueError, TypeError, FileNotFoundError
    with pytest.raises(kinds, match=re.escape(message)):
        ChunkedGraph.write(tmp_path / 'g', **options)
    assert files(tmp_path) == []


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / 'e.npy', np.array([print, 1], object))
    with pytest.raises(ValueError, match=r'e\.npy: Array can'):
        ChunkedGraph.write(tmp_path / 'g', tmp_path / 'e.npy')
    np.save(tmp_path / 'e.npy', np.zeros((3, 3), np.int64))
    with pytest.raises(ValueError, match='must hold integers of shape'):
        ChunkedGraph.write(tmp_path / 'g', tmp_path / 'e.npy')
