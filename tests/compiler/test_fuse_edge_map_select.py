"""Weights of candidates are computed where one of them is drawn."""

import itertools

import pytest
import torch

from tests.codegen.edges import fix_numbers
from tests.compiler.captured import Captured
from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    VALUE,
    after,
    aten,
    gsample,
    text,
)
from tests.compiler.programs import graph
from tests.compiler.test_rewrite_isin import PROGRAMS, node2vec
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.fuse_edge_map_select import (
    fuse_edge_map_select,
)
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.rng import make_key, program_scope

X = torch.linspace(1, 2, 4)


def fuse(g):
    fix_numbers(g)
    canonicalize(g)
    fuse_edge_map_select(g)
    eliminate_dead(g)


def drawn(weight, k=1, also=None, value=VALUE, returned=None):
    """A draw by weights of (rows, edges, columns, pointers, ...)."""

    def function(p, i, value, x, seeds):
        extract = gsample.slice_cols.default(p, i, seeds)
        ptr, rows, edges = extract[0], extract[1], extract[2]
        counts = aten.diff.default(ptr)
        columns = aten.arange.default(aten.sym_size.int(counts, 0))
        size = aten.sym_size.int(rows, 0)
        col = aten.repeat_interleave.self_Tensor(
            columns, counts, output_size=size
        )
        w = weight(p, i, value, x, seeds, ptr, rows, edges, col)
        cum = None
        if w is not None:
            cum = gsample.cumulate_weights.default(ptr, w)
        out = gsample.sample_columns.default(ptr, k, KEY, cum_weight=cum)
        more = () if also is None else (also(w, out[1]),)
        return (out[0], aten.index_select.default(rows, 0, out[1]), *more)

    return after(fuse, function, INDPTR, INDICES, value, X, SEEDS)


def of_edges(p, i, value, x, seeds, ptr, rows, edges, col):
    return value[edges] * x.index_select(0, rows) + x[seeds][col]


def test_a_draw_takes_the_weights():
    out = drawn(of_edges)
    assert out == text("""
        %5 = aten.index.Tensor(x, [seeds]): float32[2]
        %6 = _tensor_constant0(): int64[1, 3]
        %7 = number_of[edge_map[(x0 * x2[x1]) + x4[col]]](): size
        %8 = gsample.sample_by_kernel(p, i, seeds, %7, [value, i, x, p, %5], [2, 2, 0, 4, 1], %6): 2 parts
        %9 = getitem(%8, 0): int64[3]
        %10 = getitem(%8, 1): int64[2]
        %11 = aten.index_select(i, 0, %10): int64[2]
        return (%9, %11)
    """)  # noqa: E501


def searched(p, i, value, x, seeds, ptr, rows, edges, col):
    found = gsample.has_edges.default(p, i, ptr, rows, seeds)
    return torch.where(found, 1.0, 2.0) * (rows == seeds[col])


WEIGHTS = {
    'searched': searched,
    'ones': lambda p, i, v, *_: torch.ones_like(v[_[4]]),
    'ids of edges': lambda p, i, v, x, s, ptr, r, e, c: v[i[e]] * 2,
    'negative rows': lambda p, i, v, x, s, ptr, r, e, c: x[r] * 2,
    'integers': lambda p, i, v, x, s, ptr, r, e, c: (r + 1).float(),
}


@pytest.mark.parametrize('name', WEIGHTS)
def test_weights_are_read(name):
    out = drawn(WEIGHTS[name])
    assert 'sample_by_kernel' in out
    assert 'slice_cols' not in out


LEFT = {
    'two edges': {'k': 2},
    'another user of the weights': {'also': lambda w, e: w.sum()},
    'another user of the edges': {'also': lambda w, e: e + 1},
    'drawn weights': {'also': lambda w, e: w.index_select(0, e)},
    'exponential': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: torch.exp(v[e])
    },
    'bits of integers': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: (~r).float() + 9
    },
    'no weight': {'weight': lambda *_: None},
    'a sum': {'weight': lambda p, i, v, x, s, ptr, r, e, c: v[e].cumsum(0)},
    'a broadcast value': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: v[e] * v[:1]
    },
    'more values than edges': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: v[e] * 2,
        'value': torch.linspace(0.1, 0.9, 12),
    },
    'other columns': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: torch.where(
            gsample.has_edges.default(p, i + 0, ptr, r, s), 1.0, 2.0
        )
    },
    'two searches': {
        'weight': lambda p, i, v, x, s, ptr, r, e, c: (
            torch.where(gsample.has_edges.default(p, i, ptr, r, s), 1.0, 2.0)
            * torch.where(
                gsample.has_edges.default(p, i, ptr, r, s.flip(0)), 1.0, 2.0
            )
        )
    },
}


@pytest.mark.parametrize('name', LEFT)
def test_other_draws_are_left(name):
    case = {'weight': of_edges, **LEFT[name]}
    assert 'sample_by_kernel' not in drawn(**case)


def test_nothing_is_fused_without_a_compiler(monkeypatch):
    monkeypatch.setattr(
        'torch_gsample.codegen.kernel.load_unit', lambda u: None
    )
    assert 'sample_by_kernel' not in drawn(of_edges)


def walk(A, seeds, weigh):
    """Steps by weights, as a user writes them."""
    out = [seeds, seeds]
    for _ in range(3):
        S, at = A[:, out[-1]], out[-1]
        x, walker = S.coo()
        bias = weigh(S.values(), x, at[walker], out[-2][walker])
        S.col_ids = None
        x, walker = S.individual_sample(1, bias).coo()
        at = at.clone()
        at[walker] = x.long()
        out.append(at)
    return torch.stack(out)


P = torch.linspace(0, 3, 40, dtype=torch.float64)
WALKS = {
    'nodes': lambda value, x, at, before: torch.where(
        x == before, P[x], value
    ),
    'not back': lambda value, x, at, before: torch.where(
        x == before, 0.0, value
    ),
    'nothing': lambda value, x, at, before: value * (x == at) * (x != at),
}


@pytest.mark.parametrize('name', WALKS)
def test_walks_are_those_of_eager_code(name):
    def program(A, seeds):
        return walk(A, seeds, WALKS[name])

    check(program, 3)


@pytest.mark.parametrize('name', PROGRAMS)
def test_second_order_walks_are_those_of_eager_code(name):
    def program(A, seeds):
        return node2vec(A, seeds, **PROGRAMS[name])

    check(program, 3 + (name != 'weighted'))


def check(program, least):
    A, fast, got = graph(), Captured(program), []
    nodes = torch.arange(1, 38, 2).repeat(2)
    batches = [marked(x) for x in (nodes, nodes[:1], nodes[:0], nodes.flip(0))]

    def samples(function):
        out = []
        for seeds, number in itertools.product(batches, range(3)):
            with program_scope(make_key(number)):
                out.append(function(A, seeds))
        return out

    want = samples(program)
    got.append(samples(fast))
    assert fast.rewrite().text.count('sample_by_kernel') >= least
    without = [n for n in names() if n != 'fuse_edge_map_select']
    assert 'sample_by_kernel' not in fast.rewrite(passes=without).text
    got.append(samples(fast))
    for found in got:
        assert all(map(torch.equal, found, want))


def marked(ids):
    """Seeds of a variable number."""
    ids = ids.clone()
    torch._dynamo.decorators.mark_unbacked(ids, 0)
    return ids


def names():
    return [item.name for item in PASSES]
