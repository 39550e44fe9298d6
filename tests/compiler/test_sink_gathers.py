"""Gathers move behind arithmetic and selections where that pays."""

import pytest
import torch

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
from tests.compiler.programs import (
    compiled,
    graph,
    seeds,
    tensors,
    trace,
)
from torch_gsample.compiler.passes import sink_gathers as module
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.sink_gathers import sink_gathers
from torch_gsample.rng import make_key, program_scope

A = graph()
GRAPH = INDPTR, INDICES, VALUE, SEEDS, KEY


def rewrite(g):
    canonicalize(g)
    eliminate_common(g)
    sink_gathers(g)
    eliminate_dead(g)


def sunk(function):
    """The text of functions of the values of a slice and of its sample."""

    def program(indptr, indices, value, seeds, key):
        parts = gsample.slice_cols.default(indptr, indices, seeds)
        gathered = aten.index_select.default(value, 0, parts[2])
        chosen = gsample.sample_columns.default(parts[0], 2, key)[1]
        return tuple(function(gathered, chosen))

    return after(rewrite, program, *GRAPH)


def test_arithmetic_of_the_graph_comes_before_its_gather():
    assert sunk(lambda x, _: [x**2 / 3]) == text("""
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 2): int64[8]
        %7 = aten.pow.Tensor_Scalar(value, 2): float32[9]
        %8 = aten.div.Tensor(%7, 3): float32[9]
        %9 = aten.index_select(%8, 0, %6): float32[8]
        return (%9)
    """)


@pytest.mark.parametrize(
    'function',
    [
        lambda x, _: [x, x**2],  # the gather stays
        lambda x, _: [x**2, x.abs()],  # two gathers for one
        lambda x, chosen: [x**2, x[chosen]],  # reads of the graph for a few
        lambda x, _: [x.exp()],  # not rounded alike everywhere
        lambda x, _: [x**2.5],
        lambda x, _: [x[torch.tensor([0, 0, 1])]],  # may be more than before
    ],
)
def test_gathers_without_gain_or_equality_stay(function):
    out = sunk(function)
    assert 'aten.index_select(value, 0, %6)' in out
    assert 'float32[9]' not in out


def test_values_changed_in_place_are_not_sunk():
    def function(x, _):
        y = x**2
        x.view(-1).add_(1)
        return [y, x * 1]

    assert 'index_select(value' in sunk(function)


def test_values_that_are_too_large_are_left(monkeypatch):
    monkeypatch.setattr(module, '_MOST_BYTES', 35)
    assert 'float32[9]' not in sunk(lambda x, _: [x**2])
    monkeypatch.setattr(module, '_MOST_BYTES', 36)
    assert 'float32[9]' in sunk(lambda x, _: [x**2])


# Real captures ###############################################################


def squares(A, seeds):
    part = A[:, seeds]
    S = (part**2).individual_sample(3, part**2)
    return S, part[torch.arange(3), :]


def run(program, args, seed=1):
    with program_scope(make_key(seed)):
        return tensors(program(*args))


def test_squares_of_a_graph_are_kept_until_it_changes():
    program = squares
    out = trace(program, A, seeds(4)).text
    [line] = [s for s in out.split('\n') if 'pow.Tensor_Scalar' in s]
    assert line.startswith('^')
    assert line.endswith('(l_a_value, 2): float64[267]')
    B = A.with_value(A.values().clone())
    fast, args = compiled(program), (B, seeds(9))
    for _ in range(2):
        for a, b in zip(run(fast, args), run(program, args), strict=True):
            torch.testing.assert_close(a, b)
        B.value[::2] *= 50


def test_weights_of_squares_are_cumulated_for_the_graph():
    out = trace(squares, A, seeds(9)).text
    assert '^' in out.split(' = gsample.cumulate_weights')[0].split('\n')[-1]
    args = A, seeds(9)
    for a, b in zip(
        run(compiled(squares), args), run(squares, args), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_values_computed_from_degrees_are_cached():
    def program(A, seeds):
        part = A[:, seeds]
        rank = A.degree(1)[part.edges()[0]] + 1
        return part.individual_sample(3, rank.to(torch.float64))

    lines = trace(program, A, seeds(4)).text.splitlines()
    [line] = [line for line in lines if 'aten.add' in line]
    assert line.startswith('^')
    assert line.endswith(', 1): int64[40]')
    args = A, seeds(9)
    for a, b in zip(
        run(compiled(program), args), run(program, args), strict=True
    ):
        assert torch.equal(a, b)


def test_gathers_of_unknown_size_stay():
    def program(A, seeds):
        return torch.bincount(A.csc.indices)[seeds] + 1

    lines = trace(program, A, seeds(4)).text.splitlines()
    assert 'aten.index.Tensor' in lines[-3]
    assert 'aten.add' in lines[-2]
    args = A, seeds(9)
    assert torch.equal(*run(compiled(program), args), *run(program, args))


def test_values_that_need_a_gradient_are_left():
    grads = []
    for function in (squares, compiled(squares)):
        value = A.values().clone().requires_grad_()
        with program_scope(make_key(3)):
            first, second = function(A.with_value(value), seeds(9))
        (first.values().sum() + second.values().sum()).backward()
        grads.append(value.grad)
    torch.testing.assert_close(*grads)
