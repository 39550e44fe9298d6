"""Functions of the elements of a vertex's features."""

import pytest
import torch
import torch.nn.functional as F

from torch_gsample import vertex_program


def test_a_dimension_of_a_program_may_not_meet_itself():
    @vertex_program
    def outer(v):
        return sum(
            ((u.x + v.x)[:, None] * (u.x + v.x)[None, :]).sum(-1)
            for u in v.innbs
        )

    x = torch.randn(30, 8, dtype=torch.float64, requires_grad=True)
    edges = torch.randint(26, (2, 120))
    with pytest.raises(
        ValueError, match=r'outer: a dimension.*combined with itself'
    ):
        outer(edges, x=x)


def test_elu_of_large_values_has_a_gradient():
    @vertex_program
    def program(v):
        return sum(F.elu(u.x) for u in v.innbs)

    x = torch.full((2, 3), 1e4, requires_grad=True)
    program(torch.tensor([[0], [1]]), x=x).sum().backward()
    assert torch.equal(x.grad[0], torch.ones(3))
