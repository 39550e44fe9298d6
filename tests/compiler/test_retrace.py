"""Calls that are no operators are those that they make, with their effects."""

import pytest
import torch
from torch.nn import functional as F

import torch_gsample as gsample
from tests.compiler.programs import compiled, graph, seeds

A = graph()
X = torch.linspace(0.1, 2, 36).sin().view(9, 4)


def both(function, *inputs):
    """Results of a program and its inputs afterwards: eager, and compiled."""
    out = []
    for run in (function, compiled(function)):
        given = [x.clone() for x in inputs]
        torch.manual_seed(0)
        out.append((run(*given), given))
    (expected, left), (got, changed) = out
    for a, b in zip((*got, *changed), (*expected, *left), strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    return got


def written(value, write):
    write(value)
    return value


#: Changes after which a result or an input could be wrong.
CHANGES = {
    'a view that its schema does not name': lambda x: (
        written(x.type_as(x), lambda y: y.add_(1)),
    ),
    'a view of several': lambda x: (
        written(torch.broadcast_tensors(x, x)[0], lambda y: y.add_(1)),
    ),
    'a view that was read': lambda x: (
        (y := x * 1).view(-1),
        written(y, lambda y: y.add_(1)),
    ),
    'a wider operand': lambda x: (
        written(x * 1, lambda y: y.add_(x.double())),
    ),
    'a draw': lambda x: (written(torch.ones(3), lambda y: y.normal_()),),
    'a turn': lambda x: (written(x * 1, lambda y: y.t_()) * 2, x),
    'a result that was read': lambda x: (
        (y := x * 1) + 1,
        written(y, lambda y: y.mul_(2)),
    ),
    'an input': lambda x: (written(x, lambda y: y.clamp_(max=0.5)) * 2,),
    'rows': lambda x: (written(x * 1, lambda y: y[1:].add_(1)),),
    'a column': lambda x: (written(x * 1, lambda y: y[:, 0].zero_()),),
    'statistics': lambda x: (
        (mean := torch.zeros(4)),
        F.batch_norm(x, mean, torch.ones(4), training=True),
        mean * 2,
    ),
    'out=': lambda x: (torch.exp(x, out=(y := torch.zeros(9, 4))), y * 2),
    'twice': lambda x: ((x * 1).add_(1).mul_(2).sub_(1),),
}


@pytest.mark.parametrize('name', CHANGES)
def test_changes_in_place_are_those_of_eager_code(name):
    both(CHANGES[name], X)


def test_a_change_under_no_grad_keeps_its_gradient():
    def program(x):
        y = x * 2
        with torch.no_grad():
            y.clamp_(max=0.5)
            scale = 1 / x[:, None].sum(2)
        return y * scale

    grads = []
    for run in (program, compiled(program)):
        x = X.clone().requires_grad_()
        run(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_products_with_and_without_a_gradient_do_not_merge():
    def program(x, w):
        with torch.no_grad():
            fixed = x @ w
        return fixed, x @ w

    w = torch.ones(4, 2, requires_grad=True)
    fixed, product = compiled(program)(X, w)
    assert not fixed.requires_grad
    assert product.requires_grad


@pytest.mark.parametrize(
    'mode', [lambda: torch.autocast('cpu', torch.bfloat16), torch.no_grad]
)
def test_modes_of_a_program_hold_in_it(mode):
    def program(x):
        with mode():
            y = F.normalize(x @ x.t(), dim=1)
        return (1 / y, F.linear(y, y))

    both(program, X)


def test_other_functions_run_each_time():
    calls = []

    @torch._dynamo.allow_in_graph
    def noted(x):
        calls.append(1)
        return x * 2

    fast = compiled(lambda x: (noted(x) + 1,))
    fast(X)
    before = len(calls)
    fast(X)
    assert len(calls) == before + 1


def test_draws_of_torch_are_those_of_eager_code():
    def program(x):
        y = F.dropout(x, 0.5) + torch.rand_like(x)
        return y, F.gumbel_softmax(x, hard=True), torch.zeros(3).uniform_()

    both(program, X)


def test_weights_of_degrees_are_computed_once_for_the_graph():
    def program(A, s):
        weight = 1 / A.degree(1)[A.coo()[0]]
        weight = weight + (2 ** -A.values())[:, None].sum(1)
        part = A.with_value(weight)[:, s]
        return part.individual_sample(2, part)

    out = gsample.explain(program, A, seeds(4))
    assert out.opaque == []
    names = [op.text.split(' = ')[1].split('(')[0] for op in out.operators]
    assert set(names) == {
        '!current_program',
        'gsample.sample_columns',
        'aten.index_select',
    }
