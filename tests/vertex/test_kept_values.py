"""Values kept by one pass over edges for later ones; edges without memory."""

import re

import pytest
import torch
import torch.nn.functional as F

from torch_gsample import vertex_program
from torch_gsample.codegen import passes
from torch_gsample.codegen.cpp import cpp_source

N, H, C = 12, 2, 5


def attend(v):
    score = [(F.leaky_relu(u.x + v.y) * v.z).sum(-1) for u in v.innbs]
    highest = max(score).detach()
    weight = [torch.exp(s - highest) for s in score]
    total = sum(weight)
    return sum(
        (w / total).unsqueeze(-1) * u.x
        for w, u in zip(weight, v.innbs, strict=True)
    )


def on_edges(v):
    score = [torch.tanh(e.w * e.src.x).sum(-1) for e in v.inedges]
    least = min(score)
    return sum(torch.exp(s - least) for s in score), score


def with_dropout(v):
    weight = [torch.exp(F.dropout(e.src.x, 0.4)).sum(-1) for e in v.inedges]
    total = sum(weight)
    return sum((w / total) ** 2 for w in weight)


PROGRAMS = {
    function.__name__: function
    for function in (attend, on_edges, with_dropout)
}


def features(dtype):
    make = torch.Generator().manual_seed(3)
    shapes = {'x': N, 'y': N, 'z': N, 'w': 60}
    return {
        name: torch.randn(rows, H, C, generator=make, dtype=dtype)
        for name, rows in shapes.items()
    }


def graph():
    """A hub with 30 edges, vertices with few, and some without."""
    make = torch.Generator().manual_seed(4)
    col = torch.cat([torch.zeros(30, dtype=torch.long), torch.arange(30) % 7])
    return torch.stack([torch.randint(N, (60,), generator=make), col])


def run(function, dtype):
    """Returns results and gradients; each call makes kernels of its own."""
    given = {k: x.requires_grad_() for k, x in features(dtype).items()}
    torch.manual_seed(5)
    out = vertex_program(function)(graph(), **given)
    out = out if isinstance(out, tuple) else (out,)
    loss = sum(x.sin().sum() for x in out)
    grads = torch.autograd.grad(loss, list(given.values()), allow_unused=True)
    return [x for x in (*out, *grads) if x is not None]


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('name', PROGRAMS)
@pytest.mark.parametrize('edges', [1, 7])
def test_edges_without_memory_have_the_same_bits(
    name, edges, dtype, monkeypatch
):
    expected = run(PROGRAMS[name], dtype)
    monkeypatch.setattr(passes, 'BYTES', edges * H * dtype.itemsize)
    found = run(PROGRAMS[name], dtype)
    assert all(map(torch.equal, found, expected))


def source(function):
    plan = vertex_program(function).plan(**features(torch.float32))
    [(unit, _)] = plan.units.values()
    return cpp_source(unit).split('extern "C"')[1]


def test_scores_are_computed_in_the_first_pass_only():
    text = source(attend)
    first, *later = re.split(r'for \(int64_t k = ', text)[1:]
    assert first.count('sum_of<') == 1
    assert 'k0[i' in later[0]
    for text in later:  # where edges have no memory
        again = re.sub(
            r'      if \(k - first >= .*?\n      \}\n', '', text, flags=re.S
        )
        assert 'sum_of<' not in again
        assert text.count('sum_of<') == 1


def test_only_expensive_values_are_kept():
    def cheap(v):
        x = [u.x * 2.0 for u in v.innbs]
        least = min(x)
        return sum(y - least for y in x)

    assert 'kept_' not in source(cheap)
    assert 'kept_k0' in source(attend)
