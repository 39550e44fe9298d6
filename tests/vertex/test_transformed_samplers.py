"""Compiled samplers under the transforms of `torch.func`."""

import pytest
import torch

import torch_gsample as gsample
from tests.vertex.programs import N, graph
from tests.vertex.test_transforms import MODES, dual
from torch_gsample import SparseSample
from torch_gsample.compiler.backend import backend

GRAPH = graph()


def weights(A, x):
    """Sums of edges, compiled to a kernel."""
    part = A[:, torch.arange(3)]
    value = (x[part.coo()[0]].exp() * 2).sum(-1)
    return part.with_value(value).sum(0)


def test_a_compiled_sampler_runs_as_it_was_written_under_a_transform():
    A = SparseSample.from_edge_index(GRAPH, num_nodes=N)
    compiled, x = gsample.compile(weights), torch.ones(N, 3)
    assert torch.equal(compiled(A, x), weights(A, x))
    for mode in ('jvp', 'dual numbers', 'jacrev'):
        got, want = (
            MODES[mode][0](lambda y, f=f: f(A, y), x)
            for f in (compiled, weights)
        )
        assert torch.equal(got, want)
        assert got.norm() > 0


def test_a_program_of_the_backend_refuses_tangents():
    A = SparseSample.from_edge_index(GRAPH, num_nodes=N)
    compiled = torch.compile(weights, backend=backend)
    with pytest.raises(NotImplementedError, match='compile: forward-mode'):
        dual(lambda x: compiled(A, x), torch.ones(N, 3))
