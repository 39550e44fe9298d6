"""Idioms of users have no node that compilation does not know."""

import copy
import sys

import pytest
import torch

from tests.compiler.idioms import IDIOMS
from tests.compiler.programs import compiled
from torch_gsample.compiler.ir import is_pure
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.torch_private.dynamo import SET_GRAD_ENABLED

# The package has a function of the module's name.
backend_module = sys.modules['torch_gsample.compiler.backend']

T = torch.linspace(0.05, 0.95, 12)
IDS = torch.arange(12) * 5 % 9
X = torch.linspace(0.1, 2, 36).sin().view(9, 4)


def inputs():
    """Values of edges and of nodes, with gradients."""
    t = T.clone().requires_grad_()
    torch._dynamo.decorators.mark_unbacked(t, 0)
    i = IDS.clone()
    torch._dynamo.decorators.mark_unbacked(i, 0)
    return t, i, X.clone().requires_grad_()


def flat(value):
    return list(value) if isinstance(value, (tuple, list)) else [value]


def opaque(graph):
    calls = [n for n in graph.nodes if n.op.startswith('call')]
    known = [n for n in calls if n.target is SET_GRAD_ENABLED]
    return [n for n in calls if not is_pure(n) and n not in known]


@pytest.mark.parametrize('name', IDIOMS)
def test_an_idiom_is_known_and_equal(name, monkeypatch):
    seen, optimize = [], backend_module.optimize

    def look(gm, options):
        out = optimize(gm, options)
        seen.append(copy.deepcopy(out[0].graph))
        return out

    monkeypatch.setattr(backend_module, 'optimize', look)
    expected, got = inputs(), inputs()
    want = flat(IDIOMS[name](*expected))
    out = flat(compiled(IDIOMS[name])(*got))
    [graph] = seen
    assert not opaque(graph), ir_text(graph)
    for a, b in zip(out, want, strict=True):
        assert a.dtype == b.dtype
        assert a.requires_grad == b.requires_grad
        torch.testing.assert_close(a, b, rtol=1.2e-7, atol=0)
    losses = [[v.sum() for v in o if v.requires_grad] for o in (out, want)]
    if losses[0]:
        for loss in losses:
            sum(loss).backward()
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(
                a.grad, b.grad, rtol=1e-6, atol=1e-6, equal_nan=True
            )
