"""Vertex programs: values, gradients, typed text, errors."""

from pathlib import Path

import pytest
import torch

from tests.vertex.programs import (
    PROGRAMS,
    expected,
    features,
    graph,
)
from torch_gsample.vertex import vertex_program
from torch_gsample.vertex.plan.text import explanation, program_text

GOLDEN = Path(__file__).with_name('golden')


def outputs(value):
    return value if isinstance(value, tuple) else (value,)


def gradients(values, f):
    wanted = [x for x in f.values() if x.requires_grad]
    generator = torch.Generator().manual_seed(1)
    loss = sum(
        (v * torch.randn(v.shape, generator=generator, dtype=v.dtype)).sum()
        for v in outputs(values)
    )
    return torch.autograd.grad(loss, wanted)


def assert_same(name, edge_index, dtype, **tolerance):
    f = features(name, dtype)
    got = PROGRAMS[name](edge_index, **f)
    want = expected(name, edge_index, f)
    for a, b in zip(outputs(got), outputs(want), strict=True):
        torch.testing.assert_close(a, b, **tolerance)
    for a, b in zip(gradients(got, f), gradients(want, f), strict=True):
        torch.testing.assert_close(a, b, **tolerance)


@pytest.mark.parametrize('name', PROGRAMS)
def test_values_and_gradients_are_those_of_torch(name):
    assert_same(name, graph(), torch.float64, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('name', ['gat'])
def test_values_in_float32(name):
    assert_same(name, graph(), torch.float32, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('name', PROGRAMS)
def test_gradients_are_those_of_differences(name):
    f = features(name)
    names = [key for key, x in f.items() if x.requires_grad]

    def run(*values):
        return PROGRAMS[name](
            graph(), **{**f, **dict(zip(names, values, strict=True))}
        )

    assert torch.autograd.gradcheck(run, [f[key] for key in names])


@pytest.mark.parametrize('name', PROGRAMS)
def test_the_typed_program(request, name):
    text = program_text(name, PROGRAMS[name].plan(**features(name)))
    path = GOLDEN / f'{name}.txt'
    if request.config.getoption('--update-golden'):
        path.write_text(text)
    assert path.read_text() == text


@vertex_program
def larger(v):
    return sum(torch.maximum(e.src.x, e.y) for e in v.inedges)


def test_equal_operands_of_a_maximum_share_its_gradient():
    edge_index = graph()
    x = torch.arange(7.0).view(-1, 1).requires_grad_()
    y = x.detach()[edge_index[0]].requires_grad_()
    larger(edge_index, x=x, y=y).sum().backward()
    row, _ = edge_index
    assert torch.equal(y.grad, torch.full_like(y, 0.5))
    assert torch.equal(x.grad.view(-1), row.bincount(minlength=7) / 2)


def test_the_explanation_has_the_text_of_the_kernels():
    text = PROGRAMS['gat'].explain(**features('gat', torch.float32))
    assert text == explanation(
        'gat', PROGRAMS['gat'].plan(**features('gat', torch.float32))
    )
    assert text.count('extern "C"') == 3
    assert 'gradients of unit 0, over sources' in text
