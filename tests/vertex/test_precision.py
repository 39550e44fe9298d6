"""Programs in half precision: the dtypes of torch's promotion."""

import pytest
import torch

from tests.vertex.programs import PROGRAMS, expected, features, graph
from tests.vertex.test_nn import inputs, layers
from torch_gsample.vertex import vertex_program

HALF = [torch.bfloat16, torch.float16]
CLOSE = {'rtol': 2e-2, 'atol': 2e-2}


def converted(values, dtype):
    """Tensors as leaves of another dtype; integers as they are."""
    return {
        key: x.detach().to(dtype).requires_grad_()
        if x.is_floating_point()
        else x
        for key, x in values.items()
    }


@pytest.mark.parametrize('name', ['gcn', 'sage'])
def test_a_compiled_layer_under_autocast_is_that_of_pyg(name):
    x, given = inputs(name, torch.float32)
    theirs, ours = layers(name, torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(ours, fullgraph=True, backend='aot_eager')
    with torch.autocast('cpu'):
        out, want = compiled(x, graph(), **given), theirs(x, graph(), **given)
    torch.testing.assert_close(out, want, **CLOSE)


def compare(name, out, f):
    """Compares a program in half precision with torch in float64."""
    double = converted(f, torch.float64)
    want = expected(name, graph(), double)
    leaves = [x for x in f.values() if x.requires_grad]
    doubles = [x for x in double.values() if x.requires_grad]
    outs = out if isinstance(out, tuple) else (out,)
    wants = want if isinstance(want, tuple) else (want,)
    for a, b in zip(outs, wants, strict=True):
        torch.testing.assert_close(a.double(), b, **CLOSE)
        # Of a linear function: rounded results do not change it.
        grads = torch.autograd.grad(a.sum(), leaves, retain_graph=True)
        wanted = torch.autograd.grad(b.sum(), doubles, retain_graph=True)
        for x, g, h in zip(leaves, grads, wanted, strict=True):
            assert g.dtype == x.dtype
            torch.testing.assert_close(g.double(), h, rtol=2e-2, atol=6e-2)
    return {a.dtype for a in outs}


@pytest.mark.parametrize('dtype', HALF)
@pytest.mark.parametrize('name', PROGRAMS)
def test_a_program_in_half_precision_is_torch_rounded(name, dtype):
    f = converted(features(name), dtype)
    assert compare(name, PROGRAMS[name](graph(), **f), f) == {dtype}


@pytest.mark.parametrize('name', ['gcn', 'sage', 'gated', 'rgcn'])
def test_autocast_is_off_in_a_program(name):
    f = converted(features(name), torch.float32)
    want = PROGRAMS[name](graph(), **f)
    with torch.autocast('cpu'):
        out = PROGRAMS[name](graph(), **f)
        half = PROGRAMS[name](graph(), **converted(f, torch.bfloat16))
    assert torch.equal(out, want)
    assert half.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ('dtypes', 'result'),
    [
        ((torch.bfloat16, torch.float32), torch.float32),
        ((torch.bfloat16, torch.float16), torch.float32),
    ],
)
def test_mixed_features_are_promoted_as_by_torch(dtypes, result):
    f = features('gcn', torch.float32)
    f = {
        key: converted({key: f[key]}, dtype)[key]
        for key, dtype in zip(('h', 'norm'), dtypes, strict=True)
    }
    assert compare('gcn', PROGRAMS['gcn'](graph(), **f), f) == {result}


def test_a_parameter_that_a_program_holds_may_be_of_half_precision():
    h = features('gcn', torch.float32)['h'].detach()
    for given, held, result in (
        (torch.bfloat16, torch.bfloat16, torch.bfloat16),
        (torch.float32, torch.bfloat16, torch.float32),
        (torch.bfloat16, torch.float32, torch.float32),
    ):
        scale = torch.nn.Parameter(torch.full((3,), 2.0, dtype=held))

        @vertex_program
        def holds(v):
            return sum(u.h * scale for u in v.innbs)  # noqa: B023

        out = holds(graph(), h=h.to(given))
        assert out.dtype == result
        [grad] = torch.autograd.grad(out.sum(), scale)
        assert grad.dtype == held


def test_a_compiled_program_in_half_precision_is_one_graph():
    f, edge_index = converted(features('gat'), torch.bfloat16), graph()
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda **f: PROGRAMS['gat'](edge_index, **f),
        fullgraph=True,
        backend='aot_eager',
    )
    with torch.autocast('cpu'):
        out = compiled(**f)
    assert torch.equal(out, PROGRAMS['gat'](edge_index, **f))
