"""Dropout in vertex programs: draws, distribution, gradients, errors."""

import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from tests.vertex.dropout import factors, key_of
from tests.vertex.programs import total
from torch_gsample import vertex_program
from torch_gsample.vertex import Loops
from torch_gsample.vertex.kernels import operator

N, E, H, C = 7, 24, 3, 4


@vertex_program
def attends(v):
    weight = [F.dropout(torch.exp(u.s - v.t), 0.3) for u in v.innbs]
    out = sum(w[..., None] * u.y for w, u in zip(weight, v.innbs, strict=True))
    return F.dropout(out / (sum(weight) + 1)[..., None], 0.5)


def graph():
    generator = torch.Generator().manual_seed(3)
    return torch.randint(N - 1, (2, E), generator=generator)


def features(dtype=torch.float64):
    generator = torch.Generator().manual_seed(5)
    shapes = {'s': (N, H), 't': (N, H), 'y': (N, H, C)}
    return {
        name: torch.randn(shape, generator=generator, dtype=dtype)
        .double()
        .to(dtype)
        .requires_grad_()
        for name, shape in shapes.items()
    }


def expected(edges, f, key, loops=Loops.KEEP):
    row, col = edges
    rows = torch.arange(row.numel())
    if loops == Loops.REPLACE:
        kept, vertices = row != col, torch.arange(N)
        row = torch.cat([row[kept], vertices])
        col = torch.cat([col[kept], vertices])
        rows = torch.cat([rows[kept], edges.shape[1] + vertices])
    # Calls count in the order of the program.
    shape, dtype = (rows.numel(), H), f['s'].dtype
    keep = factors(key, 0, shape, 0.3, dtype, rows.tolist())
    weight = torch.exp(f['s'][row] - f['t'][col]) * keep
    out = total(weight[..., None] * f['y'][row], col)
    out = out / (total(weight, col) + 1)[..., None]
    return out * factors(key, 1, (N, H, C), 0.5, dtype)


@pytest.mark.parametrize('loops', [Loops.KEEP, Loops.REPLACE])
@pytest.mark.parametrize('ordered', [False, True])
def test_values_and_gradients_are_those_of_the_reference(loops, ordered):
    edges, f = graph(), features()
    if ordered:
        edges = edges[:, edges[1].argsort(stable=True)]
    key = key_of(0)
    out, want = (
        attends(edges, loops=loops, **f),
        expected(edges, f, key, loops),
    )
    torch.testing.assert_close(out, want, rtol=1e-12, atol=1e-12)
    weight = torch.randn(out.shape, dtype=out.dtype)
    for x, y in zip(
        torch.autograd.grad((out * weight).sum(), f.values()),
        torch.autograd.grad((want * weight).sum(), f.values()),
        strict=True,
    ):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)


def test_values_in_single_precision():
    f = features(torch.float32)
    key = key_of(1)
    out = attends(graph(), **f)
    torch.testing.assert_close(out, expected(graph(), f, key))


def test_operators_of_torch_draw_the_same(monkeypatch):
    f = features()
    torch.manual_seed(0)
    want = attends(graph(), **f)
    wanted = torch.autograd.grad(want.square().sum(), f.values())
    calls = []
    run = operator.Fused._evaluated
    monkeypatch.setattr(operator.Fused, '_loaded', lambda *_: None)
    monkeypatch.setattr(
        operator.Fused,
        '_evaluated',
        lambda *args: calls.append(1) or run(*args),
    )
    torch.manual_seed(0)
    out = attends(graph(), **f)
    found = torch.autograd.grad(out.square().sum(), f.values())
    assert len(calls) == 3
    for x, y in zip([out, *found], [want, *wanted], strict=True):
        torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_differences():
    f = features()

    def run(*values):
        torch.manual_seed(2)
        return attends(graph(), **dict(zip(f, values, strict=True)))

    assert torch.autograd.gradcheck(run, list(f.values()))


@vertex_program
def drops(v):
    return sum(F.dropout(e.x, 0.3) for e in v.inedges)


def masks(edges, shape, seed=0):
    """Which of the values of edges are kept: each has a vertex of its own."""
    torch.manual_seed(seed)
    own = torch.arange(edges)
    size = edges, edges
    x = torch.ones(edges, *shape)
    out = drops(torch.stack([own, own]), x=x, size=size)
    assert out.unique().tolist() == [0, 1 / torch.tensor(0.7)]
    return out > 0


def chi_square(counts, shares):
    counts = torch.as_tensor(counts, dtype=torch.float64)
    want = torch.as_tensor(shares, dtype=torch.float64) * counts.sum()
    return float(((counts - want) ** 2 / want).sum())


def bound(freedom):
    """Of chi-square at p = 0.001, by Wilson and Hilferty."""
    share = 2 / (9 * freedom)
    return freedom * (1 - share + 3.0902 * math.sqrt(share)) ** 3


def test_values_are_kept_independently_with_the_probability():
    """Patterns of 4 heads, of 4 edges in a row, and of 4 calls."""
    found = masks(40_000, (4,))
    calls = torch.stack([masks(40_000, (), seed) for seed in range(4)], -1)
    rows = found[:, 1].view(-1, 4)
    patterns = list(product([0, 1], repeat=4))
    shares = [0.7 ** sum(p) * 0.3 ** (4 - sum(p)) for p in patterns]
    powers = torch.tensor([8, 4, 2, 1])
    for x in (found, rows, calls):
        counts = (x.long() @ powers).bincount(minlength=16)
        assert chi_square(counts, shares) < bound(15)
    each = found.long().sum(0)
    assert chi_square(each, [0.25] * 4) < bound(3)


def test_two_calls_of_a_program_draw_apart():
    @vertex_program
    def both(v):
        return (
            sum(F.dropout(e.x) for e in v.inedges),
            sum(F.dropout(e.x) for e in v.inedges),
        )

    own = torch.arange(10_000)
    a, b = both(
        torch.stack([own, own]), x=torch.ones(10_000), size=(10_000, 10_000)
    )
    counts = (2 * (a > 0) + (b > 0)).bincount(minlength=4)
    assert chi_square(counts, [0.25] * 4) < bound(3)


def test_draws_follow_the_seed_of_torch():
    x, y = masks(1000, (2,)), masks(1000, (2,), 1)
    assert torch.equal(x, masks(1000, (2,)))
    assert not torch.equal(x, y)
    assert int(x.sum()) == 1400


def test_draws_are_made_once_a_call():
    torch.manual_seed(0)
    attends(graph(), **features())
    state = torch.get_rng_state()
    key_of(0)
    torch.randint((1 << 63) - 1, (1,))
    assert torch.equal(torch.get_rng_state(), state)


def test_checkpoint_repeats_its_dropout():
    f = features()
    outs = []
    for run in (
        attends,
        lambda *a, **k: checkpoint(attends, *a, use_reentrant=False, **k),
    ):
        torch.manual_seed(4)
        out = run(graph(), **f)
        outs.append(torch.autograd.grad(out.square().sum(), f.values()))
    for x, y in zip(*outs, strict=True):
        assert torch.equal(x, y)


def test_no_mask_is_kept_for_gradients():
    saved = []
    f = features()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: saved.append(x.numel()) or x, lambda x: x
    ):
        attends(graph().repeat(1, 50), **f)
    # Features of vertices, the graph, and the key.
    assert max(saved) <= 2 * E * 50
    assert 1 in saved
    assert len([n for n in saved if n > N * H * C]) == 1


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()

        @vertex_program
        def program(v):
            return sum(F.dropout(u.x, 0.5, self.training) for u in v.innbs)

        self.program = program

    def forward(self, edges, x):
        return self.program(edges, x=x)


def test_training_of_the_module_that_holds_a_program_is_read():
    layer, x = Layer(), torch.ones(N, 50)
    edges = torch.arange(N).expand(2, N)
    for _ in range(2):
        assert set(layer.train()(edges, x).unique().tolist()) == {0.0, 2.0}
        torch.manual_seed(0)
        state = torch.get_rng_state()
        assert torch.equal(layer.eval()(edges, x), x)
        assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(('p', 'value'), [(0.0, 1.0), (1.0, 0.0)])
def test_probabilities_that_need_no_draw(p, value):
    @vertex_program
    def program(v):
        return sum(F.dropout(u.x, p) for u in v.innbs)

    edges = torch.arange(N).expand(2, N)
    out = program(edges, x=torch.ones(N, 5))
    assert torch.equal(out, torch.full((N, 5), value))


BAD = {
    'p': (
        lambda v: sum(F.dropout(u.x, 1.5) for u in v.innbs),
        r'line \d+.*in \[0, 1\] \(got 1.5\)',
    ),
    'training': (
        lambda v: sum(F.dropout(u.x, 0.5, u.x) for u in v.innbs),
        "'training' of dropout must be a bool",
    ),
    'types': (
        lambda v: sum(
            sum(F.dropout(e.src.x) for e in es) for es in v.inedges.by_type
        ),
        'dropout must be outside of by_type',
    ),
}


@pytest.mark.parametrize('name', BAD)
def test_errors_name_line_and_rule(name):
    function, text = BAD[name]
    types = (
        {'type': torch.zeros(E, dtype=torch.long)} if name == 'types' else {}
    )
    with pytest.raises(ValueError, match=text):
        vertex_program(function)(graph(), x=torch.ones(N, 2), **types)


def test_dropout_of_a_parameter_is_refused():
    @vertex_program
    def program(v, weight):
        return sum(u.x * F.dropout(weight) for u in v.innbs)

    with pytest.raises(ValueError, match='to values of vertices and edges'):
        program(graph(), x=torch.ones(N, 2), weight=torch.ones(2))
