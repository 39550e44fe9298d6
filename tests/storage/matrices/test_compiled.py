"""Compiled programs on a graph on disk equal uncompiled ones."""

import pytest
import torch

import torch_gsample as gsample
from tests.compiler.programs import trace
from tests.storage.matrices import programs
from torch_gsample import algorithms
from torch_gsample.storage.matrices import scan

COMPILED = {
    name: programs.PROGRAMS[name]
    for name in (
        *('graphsage', 'ladies', 'fastgcn', 'labor', 'labor_star', 'as_gcn'),
        *('shadow', 'saint_walk', 'deepwalk', 'node2vec', 'pinsage'),
        *('arithmetic', 'rows', 'walks'),
    )
}


@pytest.mark.parametrize('name', COMPILED)
def test_compiled_programs_equal_those_in_memory(stored, name):
    A, graph = stored[True]
    program = COMPILED[name]
    B = graph.matrix(cache_bytes=1 << 15)
    compiled = gsample.compile(lambda A: program(A, True))
    for key in (3, 4):
        want = programs.run(program, A, True, key)
        out = programs.run(lambda A, w: compiled(A), B, True, key)
        programs.assert_same(out, want)


def _sage(A, seeds):
    return algorithms.graphsage(A, seeds, [2, 2])


def test_one_compilation_serves_all_numbers_of_seeds(stored):
    A, graph = stored[False]
    B = graph.matrix()
    compiled = torch.compile(_sage, backend='gsample', fullgraph=True)
    for size in (3, 7, 16):
        seeds = programs.SEEDS[:size]
        want = programs.run(_sage, A, seeds)
        out = programs.run(compiled, B, seeds)
        programs.assert_same(out, want)


def test_a_draw_reads_drawn_edges_alone(stored):
    B = stored[False][1].matrix(cache_bytes=0)
    edges = B._cols
    sizes, read = [], edges.read
    edges.read = lambda name, at: sizes.append(len(at)) or read(name, at)
    compiled = gsample.compile(lambda A, s: A[:, s].individual_sample(2).row())
    compiled(B, programs.SEEDS)
    degree = B.degree()[programs.SEEDS]
    assert sizes == [int(degree.clamp(max=2).sum())]


def test_explain_says_how_edges_are_read(stored):
    B = stored[False][1].matrix(cache_bytes=1 << 20)
    text = gsample.explain(_sage, B, programs.SEEDS)
    assert 'Read from disk' in str(text)
    first, *_ = text.reads.split('\n')
    assert 'edges-0.bin: 3' in first  # two of each of 16 columns
    assert 'requests' in first
    assert 'by the model' in first
    A = stored[False][0]
    assert gsample.explain(_sage, A, programs.SEEDS).reads == ''
    assert B._cols.counts.log is None


def test_exports_refuse_a_graph_on_disk(stored):
    B = stored[False][1].matrix()
    with pytest.raises(
        ValueError, match='export: arguments must be in memory'
    ):
        gsample.export(_sage, B, programs.SEEDS, path='unused')


def test_sums_of_a_graph_run_once(stored, monkeypatch):
    B, calls, reduce = stored[True][1].matrix(), [], scan.reduce
    monkeypatch.setattr(
        scan, 'reduce', lambda *args: calls.append(1) or reduce(*args)
    )
    scale = torch.rand(programs.NODES)  # no other test's file

    def sums(A, seeds):
        return A.mul(scale, dim=0).sum(dim=1)[seeds]

    compiled = gsample.compile(sums)
    for _ in range(3):
        out = compiled(B, programs.SEEDS)
    assert len(calls) == 1
    want = sums(stored[True][0], programs.SEEDS)
    assert torch.equal(out, want)


def test_nodes_that_were_read_are_numbered_without_a_sort(stored):
    def relabel(A, seeds):
        row = A[:, seeds].individual_sample(2).coo()[0]
        return torch.cat([seeds, row]).unique(return_inverse=True)

    B = stored[False][1].matrix()
    assert '.unique(' not in trace(relabel, B, programs.SEEDS).text
