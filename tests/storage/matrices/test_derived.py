"""Derived values of a graph on disk are kept, and used for no other graph."""

import os
import random
import shutil
import warnings

import pytest
import torch
from torch_geometric.data import HeteroData

from tests.storage.disk import fill_a_disk
from tests.storage.matrices import programs
from torch_gsample.storage import ChunkedGraph, write
from torch_gsample.storage.matrices import derived, scan
from torch_gsample.storage.matrices.derived import DerivedFiles
from torch_gsample.storage.replaced import exchange


@pytest.fixture
def graph(tmp_path):
    data = programs.make_data()
    return programs.on_disk(tmp_path / 'graph', data, True, rows=False)


def files_of(graph):
    folder = graph.path.with_name(graph.path.name + '.derived')
    return sorted(p for p in folder.rglob('*') if p.is_file())


def squares(graph):
    return (graph.matrix() ** 2).sum(dim=1)


def count_scans(monkeypatch):
    calls, reduce = [], scan.reduce

    def counted(*args):
        calls.append(args[1])
        return reduce(*args)

    monkeypatch.setattr(scan, 'reduce', counted)
    return calls


def test_sums_are_scanned_once_for_all_processes(graph, monkeypatch):
    calls = count_scans(monkeypatch)
    want = squares(graph)
    for _ in range(2):  # each opens the graph again
        assert torch.equal(squares(ChunkedGraph(graph.path)), want)
    assert calls == ['sum']
    other = graph.matrix().sum(dim=1)
    assert calls == ['sum', 'sum']
    assert not torch.equal(other, want)


def test_vectors_of_other_operands_are_other_files(graph, monkeypatch):
    calls = count_scans(monkeypatch)
    A, one = graph.matrix(), torch.ones(programs.NODES)
    sums = [A.div(x * one, dim=0).sum(dim=1) for x in (2.0, 4.0, 2.0)]
    assert torch.equal(sums[0], sums[2])
    assert not torch.equal(sums[0], sums[1])
    assert len(calls) == 2


def test_a_graph_that_was_replaced_is_scanned_again(graph):
    before = squares(graph)
    shutil.rmtree(graph.path)
    data = programs.make_data()
    data.weight = data.weight * 2
    other = programs.on_disk(graph.path, data, True, rows=False)
    want = (programs.in_memory(data, True) ** 2).sum(dim=1)
    assert torch.equal(squares(other), want)
    assert not torch.equal(want, before)


def test_rows_of_a_graph_that_was_replaced_are_not_read(graph):
    graph.write_rows(memory_limit=1 << 28, chunk_bytes=4096)
    shutil.rmtree(graph.path)
    data = programs.make_data(num_edges=programs.EDGES)
    data.edge_index = data.edge_index.flip(0)
    other = programs.on_disk(graph.path, data, True, rows=False)
    with pytest.raises(ValueError, match='write_rows'):
        other.matrix().random_walk(programs.SEEDS, 2)


def test_rows_of_another_relation_are_not_read(tmp_path):
    """Both relations have edges of the same types, as many."""
    data, generator = HeteroData(), torch.Generator().manual_seed(0)
    data['a'].num_nodes = 9
    for name in 'rs':
        index = torch.randint(9, (2, 40), generator=generator)
        data['a', name, 'a'].edge_index = index
    graph = ChunkedGraph.write(tmp_path / 'g', data)
    graph.write_rows()
    exchange(*(tmp_path / 'g.derived').glob('*/rows'))
    with pytest.raises(ValueError, match=r'/rows must hold the rows of .*g/'):
        ChunkedGraph(graph.path).matrices()


@pytest.mark.parametrize('at', [0, 9, 20, 30, 60, 100, -1])
def test_a_damaged_file_is_computed_again(graph, at):
    want = squares(graph)
    for path in files_of(graph):
        raw = bytearray(path.read_bytes())
        raw[at] ^= 1
        path.write_bytes(raw)
    with pytest.warns(UserWarning, match='damaged'):
        assert torch.equal(squares(ChunkedGraph(graph.path)), want)
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # the new files are whole
        assert torch.equal(squares(ChunkedGraph(graph.path)), want)


def test_a_file_that_was_cut_short_is_computed_again(graph):
    want = squares(graph)
    for path in files_of(graph):
        os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(UserWarning, match='damaged'):
        assert torch.equal(squares(ChunkedGraph(graph.path)), want)


def test_no_flipped_bit_or_truncation_is_taken(tmp_path):
    """Of 200 bits, and at every point of a small file."""
    files, value = DerivedFiles(tmp_path / 'g', 'mark' * 8), torch.arange(10)
    files.vector('x', lambda: value)
    path, draws = files.folder / 'x.bin', random.Random(0)
    raw = path.read_bytes()
    assert torch.equal(files._read('x'), value)
    damaged = [raw[:size] for size in range(len(raw))]
    for _ in range(200):
        flipped = bytearray(raw)
        flipped[draws.randrange(len(raw))] ^= 1 << draws.randrange(8)
        damaged.append(flipped)
    for data in damaged:
        path.write_bytes(data)
        with pytest.warns(UserWarning, match=f'{path} is damaged'):
            assert files._read('x') is None


def test_a_file_under_another_name_is_not_taken(graph):
    """Its digest has the name in it, and the graph."""
    want = squares(graph)
    A = graph.matrix()
    A.sum(dim=1)
    sums = [p for p in files_of(graph) if p.name.startswith('sum')]
    assert len(sums) == 2
    for path, raw in zip(
        sums, [p.read_bytes() for p in sums][::-1], strict=False
    ):
        path.write_bytes(raw)
    with pytest.warns(UserWarning, match='damaged'):
        assert torch.equal(squares(ChunkedGraph(graph.path)), want)


def test_a_folder_that_cannot_be_written_is_no_error(graph, monkeypatch):
    want = squares(graph)
    shutil.rmtree(graph.path.with_name(graph.path.name + '.derived'))

    def refused(*_):
        raise PermissionError(13, 'refused')

    monkeypatch.setattr(derived, 'OwnedFolder', refused)
    assert torch.equal(squares(ChunkedGraph(graph.path)), want)
    assert files_of(graph) == []


@pytest.mark.parametrize('moment', ['OwnedFolder', 'sync'])
def test_a_folder_that_is_deleted_meanwhile_is_no_error(
    graph, monkeypatch, moment
):
    want, kept = squares(graph), getattr(derived, moment)
    shutil.rmtree(f'{graph.path}.derived')

    def delete(*args):
        if moment == 'sync':
            shutil.rmtree(f'{graph.path}.derived')
            return kept(*args)
        made = kept(*args)
        shutil.rmtree(f'{graph.path}.derived')
        return made

    monkeypatch.setattr(derived, moment, delete)
    assert torch.equal(squares(graph), want)


def test_two_processes_that_write_rows_have_the_same(graph, monkeypatch):
    read = write.file_source

    def written_meanwhile(*args):
        monkeypatch.undo()
        graph.write_rows()
        return read(*args)

    monkeypatch.setattr(write, 'file_source', written_meanwhile)
    graph.write_rows()
    assert graph.matrix()[torch.arange(3), :].num_edges > 0


def test_a_disk_that_fills_while_rows_are_written_is_named(graph):
    for limit in (200, 9_000):
        fill_a_disk(limit, graph.write_rows)
        assert {p.name for p in files_of(graph)} <= {'pointers.bin'}
    graph.write_rows()


def test_a_writer_that_fails_leaves_nothing(graph, monkeypatch):
    monkeypatch.setattr(
        derived.os, 'replace', lambda *_: (_ for _ in ()).throw(OSError(5))
    )
    with pytest.raises(OSError, match='5'):
        squares(graph)
    assert files_of(graph) == []


@pytest.mark.parametrize('dtype', derived._DTYPES)
@pytest.mark.parametrize('size', [0, 1, 1000])
def test_vectors_come_back_as_they_were(tmp_path, dtype, size):
    files = DerivedFiles(tmp_path / 'graph', 'a' * 64)
    value = torch.arange(size).to(dtype)
    files.vector('x', lambda: value)
    out = files.vector('x', lambda: pytest.fail('computed again'))
    assert out.dtype == dtype
    assert torch.equal(out, value)
    other = DerivedFiles(tmp_path / 'graph', 'a' * 63 + 'b')  # one folder
    assert other.folder == files.folder
    with pytest.warns(UserWarning, match='damaged'):
        assert other.vector('x', lambda: value[:0]).numel() == 0
