"""`benchmark/vertex.py` runs to its end, and tries nothing too large."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

TOP = Path(__file__).resolve().parents[2]
MODULES = ('vertex', 'vertex_layers', 'vertex_memory', 'harness')


@pytest.fixture
def vertex(monkeypatch):
    """The benchmark; compiled layers have tests of their own."""
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    monkeypatch.setattr(torch, 'compile', lambda layer: layer)
    import vertex

    yield vertex
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def graph(tmp_path):
    """Two relations in a file."""
    edges = np.random.default_rng(1).integers(20, size=(2, 60))
    path = tmp_path / 'tiny.npz'
    parts = {'edge/a__to__b': edges, 'edge/b__of__b': edges[:, :30]}
    np.savez(path, **parts)
    return str(path)


def rows(vertex, graph, tmp_path, *more):
    """The table, as soon as its rows are done."""
    page = tmp_path / 'page.md'
    vertex.main(
        ['--graphs', graph, '--channels', '8', '--rounds', '1', '--threads']
        + [str(torch.get_num_threads()), '--markdown', str(page), *more]
    )
    lines = [x for x in page.read_text().splitlines() if x.startswith('|')]
    return [[c.strip() for c in x.split('|')[1:-1]] for x in lines[2:]], page


def test_every_row_is_measured(vertex, graph, tmp_path):
    found, page = rows(vertex, graph, tmp_path, '--memory')
    names = [(row[1], row[3]) for row in found]
    heads = [('GAT', '1'), ('GAT', '8')]
    assert names == [('GCN', '1'), *heads, ('APPNP', '1'), ('RGCN', '1')]
    for row in found:
        kinds = [cell for cell in row[4].split(' / ') if cell != '-']
        assert len(kinds) == (4 if row[1] in ('GCN', 'APPNP') else 3)
        assert row[5].endswith('x')
        assert row[7].endswith('x')
        assert 'failed' not in ' '.join(row)
    assert 'aggregation of 64 features' in page.read_text()


def test_benchmark_skips_runs_larger_than_memory(
    vertex, graph, tmp_path, monkeypatch
):
    import vertex_memory

    data = vertex.graph_of(graph)
    between = [
        vertex_memory.estimate(kind, data, 'GAT', 8)
        for kind in ('fused', 'PyG')
    ]
    assert between[0] < between[1]
    monkeypatch.setattr(vertex_memory, 'available', lambda: sum(between) / 2)
    more = '--layers', 'GAT', '--heads', '8', '--memory', '--no-compile'
    [row], _ = rows(vertex, graph, tmp_path, *more)
    assert row[4].endswith('/ too large / - / -')
    assert row[5] == '-'
    monkeypatch.setattr(vertex_memory, 'available', lambda: 0.0)
    [row], _ = rows(vertex, graph, tmp_path, *more)
    assert row[4] == 'too large / too large / - / -'


def test_peaks_are_taken_in_processes_of_their_own(vertex, graph):
    import vertex_memory

    data = vertex.graph_of(graph)
    what = 'GAT', 8, 2
    found = vertex_memory.peak_alone('fused', data, what, 1, first=False)
    assert found is not None
    assert 0 <= found < 1000
    assert vertex_memory.peak_alone('none', data, what, -1, True) is None
