"""Matrices of one pattern, and of equal ones, in compiled programs."""

import pytest
import torch
import torch.nn.functional as F

from tests.compiler.captured import Captured
from tests.compiler.golden import INDICES, INDPTR, SEEDS, VALUE, after, text
from tests.compiler.programs import (
    A,
    X,
    compiled,
    graph,
    seeds,
    tensors,
    trace,
)
from torch_gsample import SparseSample
from torch_gsample import compile as compile_program
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.eliminate_matches import eliminate_matches

gsample = torch.ops.gsample


def clean(graph):
    canonicalize(graph)
    eliminate_common(graph)
    eliminate_matches(graph)
    eliminate_dead(graph)


def twice(seeds_of=lambda seeds: seeds, use=torch.mul):
    """The product of two extracts, as it is captured."""

    def function(indptr, indices, value, seeds):
        first = gsample.slice_cols(indptr, indices, seeds)
        other = gsample.slice_cols(indptr, indices, seeds_of(seeds))
        at = gsample.match_edges(first[0], first[1], 4, other[0], other[1], 4)
        mine = value.index_select(0, first[2])
        theirs = value.index_select(0, other[2]).neg()
        return (use(mine, theirs.index_select(0, at)),)

    return after(clean, function, INDPTR, INDICES, VALUE, SEEDS)


def test_an_extract_is_not_compared_with_itself():
    assert twice() == text("""
        %4 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %5 = getitem(%4, 2): int64[8]
        %6 = aten.index_select(value, 0, %5): float32[8]
        %7 = aten.neg(%6): float32[8]
        %8 = aten.mul.Tensor(%6, %7): float32[8]
        return (%8)
    """)


def test_extracts_of_equal_seeds_are_compared_when_the_program_runs():
    out = twice(lambda seeds: seeds.clone())
    assert out.count('gsample.slice_cols') == 2
    assert out.count('gsample.match_edges') == 1


def test_values_that_are_changed_in_place_are_gathered():
    def use(mine, theirs):
        return theirs.view(2, -1).add_(1)

    assert 'gsample.match_edges' in twice(use=use)


def test_values_without_a_gradient_stay_so():
    def program(A, value):
        csc = A.csc.indptr, A.csc.indices
        with torch.no_grad():
            fixed = value.index_select(
                0, gsample.match_edges(*csc, 40, *csc, 40)
            )
        return fixed * 2

    value = A.values().clone().requires_grad_()
    for function in (program, compiled(program)):
        assert not function(A, value).requires_grad


# Programs ####################################################################

VALUE_2 = torch.linspace(0.5, 2.0, A.num_edges, dtype=A.dtype)
#: Another graph with the same edges: in tensors of its own, and the edges of
#: each column in another order, by column and by row.
COPY = SparseSample.from_csc(
    A.csc.indptr.clone(), A.csc.indices.clone(), VALUE_2
)
ORDER = torch.arange(A.num_edges).flip(0)
ROW, COL = (ids[ORDER] for ids in A.coo())
BY_COLUMN = SparseSample.from_coo(ROW, COL, VALUE_2[ORDER], A.shape)
BY_ROW = SparseSample.from_coo(COL, ROW, VALUE_2[ORDER], A.shape).T
RELATIONS = A, A.with_value(VALUE_2), A.with_value(VALUE_2**2)

#: How many extracts a program has in the end, and comparisons.
PROGRAMS = {
    'bias': (lambda A, s: A[:, s].individual_sample(3, A[:, s] ** 2), 0, 0),
    'arithmetic': (lambda A, s: A[:, s] + RELATIONS[1][:, s], 1, 0),
    'relations': (
        lambda A, s: sum(
            w * B[:, s] for w, B in zip((0.2, 0.3), RELATIONS, strict=False)
        ),
        1,
        0,
    ),
    'stack': (lambda A, s: torch.stack([B[:, s] for B in RELATIONS]), 1, 0),
    'hops': (
        lambda A, s: [
            A[:, s],
            A[:, A[:, s].row()].individual_sample(2, A[:, A[:, s].row()]),
        ],
        1,
        0,
    ),
    'rows': (lambda A, s: A[s, :] / RELATIONS[1][s, :], 0, 0),
    'induced': (lambda A, s: A.induce(s) - COPY.induce(s), 0, 1),
    'masked': (
        lambda A, s: A.masked(A.values() > 0.5) * A.masked(A.values() > 0.5),
        0,
        0,
    ),
    'seeds': (lambda A, s: A[:, s] + A[:, s.clone()], 2, 1),
    'copies': (lambda A, s: A[:, s] * COPY[:, s], 2, 1),
    'order': (lambda A, s: (A * BY_COLUMN)[:, s], 1, 1),
    'by row': (lambda A, s: (BY_ROW * A)[:, s].individual_sample(2), 0, 1),
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_with_two_matrices_compile(name):
    program, extracts, matches = PROGRAMS[name]
    fast = Captured(program)
    fast(A, seeds(9))
    for passes in ([], None):
        out = fast.rewrite(passes=passes).text
        for size in (9, 1, 0, 23):
            torch.manual_seed(size)
            found = tensors(fast(A, seeds(size)))
            torch.manual_seed(size)
            # Eager code caches layouts: with a graph of its own.
            want = tensors(program(graph(), seeds(size)))
            assert all(map(torch.equal, found, want))
    assert out.count('gsample.slice_cols') == extracts
    assert out.count('gsample.match_edges') == matches


def test_two_extracts_are_compiled_as_one():
    def two(A, s):
        scaled = (A[:, s] / 3) * (A[:, s] ** 2 + 1)
        return scaled.div(A[:, s].sum(dim=0), dim=0)

    def one(A, s):
        M = A[:, s]
        scaled = (M / 3) * (M**2 + 1)
        return scaled.div(M.sum(dim=0), dim=0)

    texts = [trace(program, A, seeds(9)).text for program in (one, two)]
    assert texts[0] == texts[1]
    assert '= aten.mul' not in texts[0]  # one kernel


@pytest.mark.parametrize('name', ['arithmetic', 'seeds', 'order', 'by row'])
def test_gradients_pass_a_comparison(name):
    grads = []
    for function in (PROGRAMS[name][0], compiled(PROGRAMS[name][0])):
        value = A.values().clone().requires_grad_()
        torch.manual_seed(2)
        out = function(A.with_value(value), seeds(9))
        out.values().square().sum().backward()
        grads.append(value.grad)
    assert grads[0].abs().sum() > 0
    torch.testing.assert_close(*grads)


def test_comparisons_of_the_graph_run_once():
    program, _, _ = PROGRAMS['order']
    lines = trace(program, A, seeds(9)).text.splitlines()
    [line] = [line for line in lines if 'gsample.match_edges' in line]
    assert line.startswith('^')


def test_other_edges_are_an_error_when_the_program_runs():
    def program(A, s, t):
        return A[:, s] + A[:, t]

    fast = compile_program(program)
    args = A, seeds(4), seeds(4)
    assert torch.equal(fast(*args).values(), program(*args).values())
    with pytest.raises(ValueError, match='must have the same edges'):
        fast(A, seeds(4), seeds(4, start=1))
    with pytest.raises(ValueError, match='must have the same edges'):
        fast(A, seeds(4), seeds(5))


def test_rows_without_an_edge_count():
    def program(A, s, t):
        empty = A.masked(A.values() < 0)
        return empty[s, :] + empty[t, :]

    for function in (program, compile_program(program)):
        assert function(A, seeds(4), seeds(4, start=1)).shape == (4, 40)
        with pytest.raises(ValueError, match='must have the same edges'):
            function(A, seeds(4), seeds(5))


def test_seeds_that_change_in_place_make_another_extract():
    def program(A, s):
        first, s = A[:, s], s.clone()
        second = A[:, s]
        s.add_(0)
        return first * A[:, s] * second

    fast, args = compiled(program), (A, seeds(9))
    assert torch.equal(fast(*args).values(), program(*args).values())

    def other(A, s):
        s = s.clone()
        first = A[:, s]
        s.copy_(s.flip(0))
        return first * A[:, s]

    for function in (other, compiled(other)):
        with pytest.raises(ValueError, match='must have the same edges'):
            function(A, seeds(9))


def attention(A, seeds, w1, w2, w3):
    """PASS, as Figure 3c of gSampler's paper prints it."""
    sub = A[:, seeds]
    A1 = sub * ((X @ w1) @ (X[seeds] @ w1).T)
    A2 = A[:, seeds] * ((X @ w2) @ (X[seeds] @ w2).T)
    A3 = sub.div(sub.sum(dim=0), dim=0)
    att = (torch.stack([A1, A2, A3]) @ F.softmax(w3, dim=0)).relu()
    return sub.individual_sample(3, att + 1e-5), att


def test_pass_runs_as_printed():
    outs = []
    for function in (attention, compiled(attention)):
        torch.manual_seed(7)
        weights = [X[:3], X[3:6], X[6]]
        weights = [w.clone().requires_grad_() for w in weights]
        torch.manual_seed(7)
        S, att = function(A, seeds(9), *weights)
        att.values().square().sum().backward()
        grads = [w.grad for w in weights]
        assert all(grad.abs().sum() > 0 for grad in grads)
        outs.append([*tensors(S), att.values().detach(), *grads])
    eager, fast = outs
    assert all(map(torch.equal, eager[:5], fast[:5]))
    torch.testing.assert_close(eager, fast)


PRODUCTS = {
    'A @ D': lambda A, s: A[:, s] @ X[s],
    'D @ A': lambda A, s: X.T @ A[:, s],
    'A @ d': lambda A, s: A @ X[:, 0],
    'stack @ W': lambda A, s: (
        torch.stack([A[:, s], A[:, s] ** 2]) @ X[:2].sigmoid()
    ),
}


@pytest.mark.parametrize('name', PRODUCTS)
def test_products_keep_their_sides(name):
    program, args = PRODUCTS[name], (A, seeds(9))
    for want, out in zip(
        tensors(program(*args)), tensors(compiled(program)(*args)), strict=True
    ):
        torch.testing.assert_close(out, want)
