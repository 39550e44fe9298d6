"""Weights that the graph alone decides are computed once for it."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    SEEDS,
    VALUE,
    after,
    aten,
    gsample,
    text,
)
from tests.compiler.programs import X, compiled, graph, seeds, tensors
from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes import hoist_weights as module
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.hoist_weights import hoist_weights
from torch_gsample.rng import make_key, program_scope

A = graph()
ROW = X[:, 0].abs() + 0.5


# Text ########################################################################


def rewrite(g):
    canonicalize(g)
    eliminate_common(g)
    hoist_weights(g)
    eliminate_dead(g)


def hoisted(function, value=VALUE):
    """The text of a program that computes its weights from an extract."""

    def run(indptr, indices, value, degree, seeds):
        parts = gsample.slice_cols.default(indptr, indices, seeds)
        x = aten.index_select.default(value, 0, parts[2])
        weight = function(x, parts[0], parts[1], degree, seeds)
        out = gsample.cumulate_weights.default(parts[0], weight)
        return (out[:8],)  # behind these, there may be columns of a graph

    degree = torch.tensor([2.0, 2.0, 2.0, 3.0])
    return after(rewrite, run, INDPTR, INDICES, value, degree, SEEDS)


def test_a_weight_of_values_and_degrees_is_one_of_the_graph():
    out = hoisted(lambda x, begin, row, degree, _: x**2 / degree[row])
    assert out == text("""
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 2): int64[8]
        %7 = getitem(%5, 0): int64[3]
        %8 = aten.pow.Tensor_Scalar(value, 2): float32[9]
        %9 = aten.index.Tensor(degree, [indices]): float32[9]
        %10 = aten.div.Tensor(%8, %9): float32[9]
        %11 = aten.index_select(%10, 0, %6): float32[8]
        %12 = gsample.cumulate_weights(%7, %11): int64[9]
        %13 = aten.slice.Tensor(%12, end=8): int64[8]
        return (%13)
    """)


@pytest.mark.parametrize(
    'function',
    [
        lambda x, *_: x.exp(),  # not rounded alike everywhere
        lambda x, *_: x + (x - x).cumsum(0),  # not element-wise
        lambda x, begin, *_: x * begin[1],  # of the batch
        lambda x, b, r, degree, seeds: x * seeds.sum(),
        lambda x, b, r, degree, seeds: x * degree[seeds].sum(),
    ],
)
def test_values_of_call_inputs_are_not_hoisted(function):
    out = hoisted(function)
    assert 'aten.index_select(value, 0, %' in out
    assert 'float32[9]' not in out


def test_trained_or_mutated_values_are_not_hoisted():
    def in_place(x, *_):
        y = x * 2
        x.view(-1).add_(1)
        return y

    assert 'float32[9]' not in hoisted(in_place)
    trained = VALUE.clone().requires_grad_()
    assert 'float32[9]' not in hoisted(lambda x, *_: (x * 2).detach(), trained)


def test_weights_that_are_too_large_are_left(monkeypatch):
    monkeypatch.setattr(module, '_MOST_BYTES', 35)
    assert 'float32[9]' not in hoisted(lambda x, *_: x * 2)
    monkeypatch.setattr(module, '_MOST_BYTES', 36)
    assert 'float32[9]' in hoisted(lambda x, *_: x * 2)


# Real captures ###############################################################


def biased(bias):
    """A program that samples by a function of the extract."""

    def program(A, seeds):
        P = A[:, seeds]
        return P.individual_sample(3, bias(P, A, seeds))

    return program


BIASES = {
    'square': lambda P, A, s: (P**2).values(),
    'row': lambda P, A, s: P.mul(ROW, dim=1).values(),
    'column': lambda P, A, s: P.mul(ROW[s], dim=0).values(),
    'row-degree': lambda P, A, s: P.div(
        A.degree(1).to(torch.float64), dim=1
    ).values(),
    'column-degree': lambda P, A, s: P.div(
        P.degree(0).to(torch.float64), dim=0
    ).values(),
    'column-sum': lambda P, A, s: P.div(P.sum(0), dim=0).values() ** 2,
    'graph-sum': lambda P, A, s: P.div(A.sum(0)[s], dim=0).values(),
    'edge-data': lambda P, A, s: P.values() + ROW.max() * P.edge_id,
    'float': lambda P, A, s: (P.values().float() + 1).relu(),
    'again': lambda P, A, s: A[:, s].values() ** 2 / 3,
    'minus': lambda P, A, s: 1 / (P.values() + 1),
}


def run(program, args, seed=1):
    with program_scope(make_key(seed)):
        return tensors(program(*args))


def assert_equal(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)


def kept(program):
    """A program that is compiled, and a list of its texts."""
    texts = []

    def backend(gm, example_inputs):
        made, found = optimize(gm, Options.read({'strict': True}))
        texts.append(found.text)
        return lower(made)

    return torch.compile(program, backend=backend, fullgraph=True), texts


@pytest.mark.parametrize('name', BIASES)
def test_samples_are_those_of_eager_programs(name):
    program = biased(BIASES[name])
    fast, texts = kept(program)
    for size, start in ((9, 0), (1, 3), (0, 0)):
        args = A, seeds(size, start)
        assert_equal(run(fast, args), run(program, args))
    [out] = texts
    [line] = [s for s in out.split('\n') if 'gsample.cumulate_weights' in s]
    assert line.startswith('^')
    assert 'gsample.slice_cols' not in out


def test_a_graph_that_is_changed_in_place_has_other_weights():
    program = biased(BIASES['row-degree'])
    fast = compiled(program)
    B = A.with_value(A.values().clone())
    for _ in range(2):
        args = B, seeds(9)
        assert_equal(run(fast, args), run(program, args))
        B.value[::2] *= 50
    before = run(program, args)
    assert not all(map(torch.equal, before, run(program, (A, seeds(9)))))


def test_arguments_of_a_call_are_not_hoisted():
    def program(A, seeds, x):
        P = A[:, seeds]
        return P.individual_sample(3, P.mul(x, dim=1).values())

    fast, texts = kept(program)
    args = A, seeds(9), ROW.clone()
    assert_equal(run(fast, args), run(program, args))
    assert 'float64[267]' not in texts[0].split('u0: size')[1].split('%9')[1]


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('x', ROW.clone())

    def forward(self, A, seeds):
        P = A[:, seeds]
        return P.individual_sample(3, P.mul(self.x, dim=1).values())


def test_attributes_of_a_module_are_not_hoisted():
    program = Module()
    fast, texts = kept(program)
    args = A, seeds(9)
    assert_equal(run(fast, args), run(program, args))
    assert '^' not in texts[0]
    program.x *= torch.arange(1, 41)
    assert_equal(run(fast, args), run(program, args))


def test_weights_of_a_graph_that_is_trained_are_left():
    program = biased(BIASES['row'])
    value = A.values().clone().requires_grad_()
    fast, texts = kept(program)
    args = A.with_value(value), seeds(9)
    got, expected = run(fast, args), run(program, args)
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)
        assert a.requires_grad == b.requires_grad
    assert '^' not in texts[0]


def test_two_extracts_of_the_same_columns_are_known_to_be_as_long():
    def program(A, seeds):
        first, second = A[:, seeds].values(), A[:, seeds].values()
        return (first + 1) * second

    fast, texts = kept(program)
    args = A, seeds(9)
    assert_equal(run(fast, args), run(program, args))
    assert texts[0].count('edge_map') == 1
    assert 'aten.mul' not in texts[0]
