"""Dense products are computed where there is an edge."""

import pytest
import torch

from tests.compiler.golden import INDICES, program, text
from tests.compiler.programs import compiled, graph, seeds, tensors, trace
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.rewrite_sddmm import rewrite_sddmm
from torch_gsample.compiler.verify import verify

X, Y = torch.rand(4, 3), torch.rand(5, 3)
COLUMN = torch.tensor([0, 0, 1, 1, 2, 3, 4, 4, 4])


def rewritten(function, *inputs):
    module = program(function, *inputs)
    canonicalize(module.graph)
    notes = rewrite_sddmm(module.graph)
    verify(module.graph)
    module.recompile()
    for a, b in zip(function(*inputs), module(*inputs), strict=True):
        torch.testing.assert_close(a, b)
    return ir_text(module.graph), notes


def test_a_gather_of_a_product_is_a_product_of_gathers():
    def function(X, Y, row, col):
        dense = torch.matmul(X, Y.t())
        return (dense.reshape(20).index_select(0, row * 5 + col),)

    out, notes = rewritten(function, X, Y, INDICES, COLUMN)
    assert out.split('col: int64[9]\n')[1] == text("""
        %4 = aten.index_select(x, 0, row): float32[9, 3]
        %5 = aten.index_select(y, 0, col): float32[9, 3]
        %6 = aten.mul.Tensor(%4, %5): float32[9, 3]
        %7 = aten.sum.dim_IntList(%6, [-1]): float32[9]
        return (%7)
    """)
    assert 'no dense product of 4 rows, 5 columns' in notes[0]


def test_a_factor_that_is_not_transposed_is():
    def function(X, Z, row, col):
        dense = torch.matmul(X, Z)
        return (
            dense.reshape(20).index_select(0, row.to(torch.int64) * 5 + col),
        )

    out, _ = rewritten(function, X, Y.t().clone(), INDICES.int(), COLUMN)
    assert 'matmul' not in out
    assert 'aten.t(z)' in out
    assert 'aten.index_select(x, 0, row)' in out


def place(dense, row, col, width=5):
    return dense.reshape(20).index_select(0, row * width + col)


def used_twice(X, Y, r, c):
    dense = X @ Y.t()
    return place(dense, r, c), dense


@pytest.mark.parametrize(
    'function',
    [
        used_twice,
        lambda X, Y, r, c: (place((X @ Y.t()).relu(), r, c),),
        lambda X, Y, r, c: (place(X @ Y.t(), r, c, 4),),
        lambda X, Y, r, c: ((X @ Y.t()).reshape(5, 4).index_select(0, r),),
        lambda X, Y, r, c: ((X @ Y.t()).reshape(20).index_select(0, c),),
        lambda X, Y, r, c: ((X @ Y[0]).reshape(4).index_select(0, r),),
    ],
)
def test_other_gathers_stay(function):
    out, notes = rewritten(function, X, Y, INDICES, COLUMN)
    assert 'matmul' in out
    assert notes == []


PROGRAMS = {
    'left': lambda A, s, X, Y: A[:, s] * (X @ Y[s].T),
    'right': lambda A, s, X, Y: (X @ Y[s].t()) + A[:, s],
    'whole': lambda A, s, X, Y: A * (X @ Y.T),
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_have_no_dense_product(name):
    A = graph()
    X = torch.rand(40, 5, dtype=torch.float64, requires_grad=True)
    Y = torch.rand(40, 5, dtype=torch.float64, requires_grad=True)
    function = PROGRAMS[name]
    args = A, seeds(6), X, Y
    out = trace(function, *args)
    assert 'rewrite_sddmm' in [step.name for step in out.steps]
    assert 'matmul' not in out.text
    assert 'sum_axis' in out.text
    got, want = compiled(function)(*args), function(*args)
    for a, b in zip(tensors(got), tensors(want), strict=True):
        torch.testing.assert_close(a, b)
    weight = torch.rand_like(want.values())
    grads = [
        torch.autograd.grad((S.values() * weight).sum(), [X, Y])
        for S in (got, want)
    ]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)
