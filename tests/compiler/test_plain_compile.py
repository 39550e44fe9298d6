"""``torch.compile(program, backend='gsample')``, in parts where it breaks."""

import pytest
import torch

from tests.compiler.programs import AS_GCN, A, X, tensors
from torch_gsample.rng import make_key, program_scope


def test_a_program_in_parts_has_the_samples_and_gradients_of_eager_code():
    fast = torch.compile(AS_GCN, backend='gsample')
    for size in (9, 4):
        outs, grads = [], []
        for program in (AS_GCN, fast):
            AS_GCN.zero_grad()
            with program_scope(make_key(1)):
                layers = program(A, torch.arange(size) * 3, [8], X)
            outs.append(tensors(layers))
            sum(layer.values().sum() for layer in layers).backward()
            grads.append(AS_GCN.weight.grad)
        torch.testing.assert_close(*outs)
        torch.testing.assert_close(*grads)


@pytest.mark.parametrize('name', ['sum', 'degree'])
def test_a_dimension_may_be_a_symbol(name):
    def reduce(A, dim):
        return getattr(A, name)(dim)

    fast = torch.compile(reduce, backend='eager', dynamic=True)
    for dim in (0, 1):
        assert torch.equal(fast(A, dim), reduce(A, dim))
