"""Cached values of a sampler's parameters and of its graph."""

import torch

from tests.compiler.programs import compiled, graph, seeds, tensors, trace
from torch_gsample import algorithms
from torch_gsample.compiler import cache
from torch_gsample.rng import make_key, program_scope

A = graph()
X = torch.rand(40, 6, dtype=torch.float64)


def sampler():
    torch.manual_seed(0)
    module = algorithms.AsGCN(6).double()

    def program(A, seeds):
        normal = A.div(A.sum(dim=0), dim=0)  # of the graph alone
        return module(normal, seeds, [8, 8], X)

    return module, program


def run(program):
    with program_scope(make_key(3)):
        return tensors(program(A, seeds(9)))


def assert_close(first, second):
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b)


def test_parameters_are_invariant_without_gradients_only():
    _, program = sampler()
    with torch.no_grad():
        text = trace(program, A, seeds(4)).text
    kept = [line for line in text.splitlines() if 'aten.matmul' in line]
    assert kept
    assert all(line.startswith('^') for line in kept)
    text = trace(program, A, seeds(4)).text
    assert '^' in text  # of the graph
    kept = [line for line in text.splitlines() if 'aten.matmul' in line]
    assert not any(line.startswith('^') for line in kept)


def test_parameters_that_change_are_those_of_the_call():
    module, program = sampler()
    fast = compiled(program)
    with torch.no_grad():
        before = run(fast)
        assert_close(run(fast), run(program))
        module.weight *= torch.arange(6) - 2
        assert_close(run(fast), run(program))
        assert not torch.equal(before[2], run(fast)[2])
        module.weight.data = torch.arange(6.0).double()  # other memory
        assert_close(run(fast), run(program))


def test_values_of_the_graph_stay_when_parameters_change(monkeypatch):
    calls = []
    original = cache.InvariantCache.__init__

    def counted(self, function):
        def call(*inputs):
            calls.append(len(inputs))
            return function(*inputs)

        original(self, call)

    monkeypatch.setattr(cache.InvariantCache, '__init__', counted)
    module, program = sampler()
    fast = compiled(program)
    with torch.no_grad():
        run(fast)
        first = sorted(calls)
        assert len(first) == 2
        module.weight.mul_(2)
        run(fast)
    assert len(calls) == 3
    assert calls[-1] == 2  # the parameter and the features
