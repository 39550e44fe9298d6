"""Gradients: of every operator, and through samples."""

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from tests.sparse_sample.cases import case, random

M, N = 6, 4
OPERATORS = {
    'add': (lambda A, x: A + x, (M, N)),
    'sub_column': (lambda A, x: x - A, (M, 1)),
    'mul_row': (lambda A, x: A * x, (1, N)),
    'div_vector': (lambda A, x: A / x, (N,)),
    'divided': (lambda A, x: x / A, (M, N)),
    'pow': (lambda A, x: A**x, (M, N)),
    'power': (lambda A, x: x**A, (M, N)),
    'add_dim': (lambda A, x: A.add(x, 0), (N,)),
    'sub_dim': (lambda A, x: A.sub(x, 1), (M,)),
    'mul_dim': (lambda A, x: A.mul(x, 1), (M,)),
    'div_dim': (lambda A, x: A.div(x, 0), (N,)),
    'features': (lambda A, x: A * x, (M, N, 2)),
    'same_edges': (lambda A, x: A * (A * x), (M, N)),
    'neg': (lambda A, x: -A * x, (N,)),
    'sum': (lambda A, x: A.sum(0) * x, (N,)),
    'sum_all': (lambda A, x: A.sum() * x, (N,)),
    'mean': (lambda A, x: A.mean(1) * x, (M,)),
    'max': (lambda A, x: A.max(0) * x, (N,)),
    'min': (lambda A, x: A.min(1) * x, (M,)),
    'prod': (lambda A, x: A.prod(0) * x, (N,)),
    'norm': (lambda A, x: A.norm(2, 1) * x, (M,)),
    'softmax': (lambda A, x: (A * x).softmax(0), (M, N)),
    'softmax_rows': (lambda A, x: F.softmax(A * x, dim=1), (M, N)),
    'exp': (lambda A, x: torch.exp(A * x), (M, N)),
    'stack': (lambda A, x: torch.stack([A, A * x], -1), (M, N)),
    'matmul': (lambda A, x: A @ x, (N, 2)),
    'matvec': (lambda A, x: A @ x, (N,)),
    'matmul_left': (lambda A, x: x @ A, (2, M)),
    'sddmm_left': (lambda A, x: A * A.sddmm(x, random(N, 2) * 0 + 2), (M, 2)),
    'sddmm_right': (lambda A, x: A * A.sddmm(random(M, 2) * 0 + 2, x), (N, 2)),
    'slice': (lambda A, x: (A * x)[[5, 0, 0], [1, 1, 2, 0]], (M, N)),
    'masked': (lambda A, x: (A * x).masked(A.coo()[0] > 1), (M, N)),
    'compact': (lambda A, x: (A * x).compact(), (M, N)),
    'dense': (lambda A, x: (A * x).T.to_dense(), (M, N)),
    'csr': (lambda A, x: (A * x).to_csr()[2], (M, N)),
}


@pytest.mark.parametrize('name', OPERATORS)
@pytest.mark.parametrize('layout', ['csc', 'csr'])
def test_gradients_are_right(name, layout):
    function, shape = OPERATORS[name]
    A = case('random', layout).matrix

    def values_of(value, operand):
        out = function(A.with_value(value), operand)
        return out if isinstance(out, torch.Tensor) else out.value

    value = A.value.clone().requires_grad_()
    operand = random(*shape).requires_grad_()
    assert gradcheck(values_of, (value, operand))


def test_gradients_of_vectors_of_values():
    A = case('random').matrix
    value = random(A.num_edges, 2).requires_grad_()
    for function in (
        lambda v: A.with_value(v).softmax(0).value,
        lambda v: A.with_value(v).max(1),
        lambda v: A.with_value(v).norm(2, 0),
    ):
        assert gradcheck(function, (value,))


def test_nothing_is_undefined_where_there_is_no_edge():
    A = case('isolated').matrix
    value = A.value.clone()
    value[A.coo()[1] == 1] = 0  # a column of zeros: no root's gradient
    value.requires_grad_()
    B = A.with_value(value)
    total = B.norm(2, 0).sum() + B.softmax(1).sum() + B.mean(1).sum()
    (grad,) = torch.autograd.grad(total + B.max(0).sum(), value)
    assert bool(grad.isfinite().all())


SELECT = {
    'individual': lambda A: A.individual_sample(2),
    'weighted': lambda A: A.individual_sample(2, A.value),
    'replace': lambda A: A.individual_sample(3, replace=True),
    'collective': lambda A: A.collective_sample(3, A.sum(1)),
    'labor': lambda A: A.labor_sample(1),
}


@pytest.mark.parametrize('name', SELECT)
@pytest.mark.parametrize('layout', ['csc', 'csr'])
def test_gradients_reach_the_chosen_edges_only(name, layout):
    A = case('random', layout).matrix
    value = A.value.clone().requires_grad_()
    out = SELECT[name](A.with_value(value))
    assert out.num_edges > 0
    factor = random(out.num_edges)
    (out.value * factor).sum().backward()
    want = torch.zeros_like(value).index_add(0, out.edge_id, factor)
    torch.testing.assert_close(value.grad, want)
    if out.edge_id.unique().numel() != A.num_edges:
        assert bool((value.grad == 0).any())
