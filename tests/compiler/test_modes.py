"""Parts of a program under ``no_grad``, ``inference_mode``, ``autocast``."""

import pytest
import torch

from tests.compiler.programs import A, X, compiled, tensors, trace

SEEDS = torch.arange(5)
Y = X.float() @ X.float().t()


def dense(A, seeds, w):
    with torch.no_grad():
        fixed = X[seeds] @ w
    return fixed * 2, X[seeds] @ w


def dense_first(A, seeds, w):
    value = X[seeds] @ w
    with torch.no_grad():
        fixed = X[seeds] @ w
    return value, fixed * w.sum()


def inference(A, seeds, w):
    with torch.inference_mode():
        fixed = X[seeds] * 2
    return fixed + 0, (X[seeds] * 2) * w


def edges(A, seeds, w):
    part, weight = A[:, seeds], (X * w).sum(1)
    with torch.no_grad():
        total = part.mul(weight, dim=1).sum(dim=0)
    return part.mul(weight, dim=1).div(total, dim=0).values()


def dense_product(A, seeds, w):
    part, scaled = A[:, seeds], X * w
    with torch.no_grad():
        product = scaled @ X[seeds].t()
    return (part * product).values() * w.sum()


def in_place(A, seeds, w):
    value = X[seeds] * w
    with torch.no_grad():
        value.mul_(2)
    return value


def autocast(A, seeds, w):
    with torch.autocast('cpu'):
        narrow = Y @ Y
    return narrow[seeds], (Y @ Y)[seeds] * w.sum()


@pytest.mark.parametrize(
    'program',
    [
        *(dense, dense_first, inference, edges, dense_product, in_place),
        autocast,
    ],
    ids=lambda program: program.__name__,
)
def test_parts_under_a_mode_have_their_values_dtypes_and_gradients(program):
    outs, grads = [], []
    for function in (program, compiled(program)):
        w = X[0].clone().requires_grad_()
        found = tensors(function(A, SEEDS, w))
        sum(t.sum() for t in found if t.requires_grad).backward()
        outs.append([t.detach() for t in found])
        grads.append([w.grad, *[t.requires_grad for t in found]])
    torch.testing.assert_close(*outs)
    torch.testing.assert_close(*grads)


def test_equal_parts_under_no_grad_are_one_where_nothing_needs_a_gradient():
    def program(A, seeds):
        with torch.no_grad():
            first = A[:, seeds].sum(dim=0)
        return first, A[:, seeds].sum(dim=0)

    assert trace(program, A, SEEDS).text.count('slice_cols') == 1
