"""Values of edges that vertex programs return."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.utils import scatter, softmax

from torch_gsample import vertex_program
from torch_gsample.vertex import Loops

N = 30


@vertex_program
def attention(v):
    score = [F.leaky_relu(u.eu + v.ev) for u in v.innbs]
    top = max(score).detach()
    weight = [torch.exp(s - top) for s in score]
    total = sum(weight)
    weight = [w / total for w in weight]
    out = sum(
        w.unsqueeze(-1) * u.x for w, u in zip(weight, v.innbs, strict=True)
    )
    return out, weight


@vertex_program
def scores(v):
    return [(u.x * v.x).sum(-1) for u in v.innbs]


@vertex_program
def multiplied(v, w):
    return [torch.relu(u.x + v.x) @ w for u in v.innbs]


def graph(edges=120):
    """Returns edges with a hub, parallel edges and isolated vertices."""
    make = torch.Generator().manual_seed(3)
    found = torch.randint(N - 4, (2, edges), generator=make)
    found[1, : edges // 3] = 2
    return found


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def reference(edges, eu, ev, x):
    row, col = edges
    weight = softmax(F.leaky_relu(eu[row] + ev[col]), col, num_nodes=N)
    out = scatter(weight.unsqueeze(-1) * x[row], col, dim_size=N)
    return out, weight


@pytest.mark.parametrize('edges', [120, 1, 0])
def test_attention_weights(edges):
    torch.manual_seed(0)
    edges, given = graph(edges), (draw(N, 2), draw(N, 2), draw(N, 2, 3))
    eu, ev, x = given
    found = attention(edges, eu=eu, ev=ev, x=x)
    want = reference(edges, *given)
    weights = [torch.randn_like(y) for y in want]
    grads = []
    for results in (found, want):
        total = sum(
            (y * w).sum() for y, w in zip(results, weights, strict=True)
        )
        grads += [torch.autograd.grad(total, given)]
    for a, b in zip([*found, *grads[0]], [*want, *grads[1]], strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


def test_derivatives_of_values_of_edges():
    edges, eu, ev = graph(20), draw(N, 2), draw(N, 2)
    x = torch.ones(N, 2, 1, dtype=torch.float64)

    def call(eu, ev):
        return attention(edges, eu=eu, ev=ev, x=x)[1]

    assert torch.autograd.gradcheck(
        call, (eu, ev), check_forward_ad=True, fast_mode=True
    )
    assert torch.autograd.gradgradcheck(call, (eu, ev), fast_mode=True)


def test_scores_of_links():
    edges, x = graph(), draw(N, 5)
    found = scores(edges, x=x)
    want = (x[edges[0]] * x[edges[1]]).sum(-1)
    torch.testing.assert_close(found, want, atol=1e-12, rtol=0)
    weight = torch.randn_like(want)
    [a], [b] = (
        torch.autograd.grad((y * weight).sum(), x) for y in (found, want)
    )
    torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


@pytest.mark.parametrize('edges', [100, 20_000])
def test_products_with_tiles_of_edges(edges):
    edges, x, w = graph(edges), draw(N, 3), draw(3, 16)
    found = multiplied(edges, x=x, w=w)
    want = torch.relu(x[edges[0]] + x[edges[1]]) @ w
    torch.testing.assert_close(found, want, atol=1e-12, rtol=0)
    weight = torch.randn_like(want)
    first, second = (
        torch.autograd.grad((y * weight).sum(), [x, w]) for y in (found, want)
    )
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=0)


@pytest.mark.parametrize('loops', [Loops.REMOVE, Loops.REPLACE])
def test_loops_have_rows_as_features_of_edges_do(loops):
    edges, x = graph(), draw(N, 5)
    edges[0, :7] = edges[1, :7]
    found = scores(edges, loops=loops, x=x)
    row, col = edges
    want = (x[row] * x[col]).sum(-1) * (row != col)
    if loops == Loops.REPLACE:
        want = torch.cat([want, (x * x).sum(-1)])
    torch.testing.assert_close(found, want, atol=1e-12, rtol=0)


def test_half_precision():
    edges, x = graph(), draw(N, 5).detach().bfloat16()
    found = scores(edges, x=x)
    wide = x.float()
    want = (wide[edges[0]] * wide[edges[1]]).sum(-1).bfloat16()
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, want)


def test_torch_compile():
    edges, x = graph(), draw(N, 5)
    found = torch.compile(
        lambda x: scores(edges, x=x), backend='eager', fullgraph=True
    )(x)
    assert torch.equal(found, scores(edges, x=x))


@vertex_program
def of_sources(v):
    return [u.x for u in v.innbs]


@vertex_program
def of_edges(v):
    return [e.x for e in v.inedges]


@vertex_program
def bare(v):
    for u in v.innbs:
        return u.x + v.x


@vertex_program
def doubled(v):
    return [u.x + v.x for u in v.innbs] * 2


@pytest.mark.parametrize('program', [of_sources, of_edges, bare, doubled])
def test_rejects_outputs_that_are_not_edge_values(program):
    features = {'x': draw(120, 5) if program is of_edges else draw(N, 5)}
    with pytest.raises(ValueError, match=f'{program.name}: line'):
        program(graph(), size=(N, N), **features)
