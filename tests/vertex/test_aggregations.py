"""Products, variances, medians and quantiles of vertex programs."""

import pytest
import torch

from torch_gsample import vertex_program
from torch_gsample.vertex import median, prod, quantile, std, var
from torch_gsample.vertex.frontend.aggregations import INTERPOLATIONS

N = 20


@vertex_program
def products(v):
    return prod(u.x * v.x for u in v.innbs)


@vertex_program
def variances(v):
    return var(u.x * v.x for u in v.innbs)


@vertex_program
def deviations(v):
    return std(u.x * v.x for u in v.innbs)


@vertex_program
def medians(v):
    return median(u.x * v.x for u in v.innbs) * v.x


def quantile_program(interpolation):
    @vertex_program
    def quantiles(v):
        return quantile((u.x * v.x for u in v.innbs), 0.3, interpolation)

    return quantiles


def graph(edges):
    """Returns edges with a hub, parallel edges and isolated vertices."""
    make = torch.Generator().manual_seed(3)
    found = torch.randint(N - 4, (2, edges), generator=make)
    found[1, : edges // 3] = 2
    return found


def features(edges):
    """Returns features with zeros: one, or several, of a vertex's edges."""
    torch.manual_seed(edges)
    x = torch.randn(N, 3, dtype=torch.float64)
    x[5], x[7, 1] = 0.0, 0.0
    return x.requires_grad_()


def looped(reduce, empty, edges, x):
    """Aggregates one vertex after the other."""
    rows = []
    for v in range(N):
        sources = edges[0, edges[1] == v]
        values = x[sources] * x[v]
        rows.append(reduce(values) if len(sources) else x[v] * 0 + empty)
    return torch.stack(rows)


def deviation(values):
    found = values.var(0, correction=0)
    return torch.where(found > 0, found.clamp(min=1e-300).sqrt(), 0.0)


CASES = {
    'prod': (products, lambda x: x.prod(0), 1.0),
    'var': (variances, lambda x: x.var(0, correction=0), 0.0),
    'std': (deviations, deviation, 0.0),
    **{
        f'quantile {mode}': (
            quantile_program(mode),
            lambda x, mode=mode: x.quantile(0.3, 0, interpolation=mode),
            0.0,
        )
        for mode in INTERPOLATIONS
    },
}


@pytest.mark.parametrize('edges', [90, 1, 0])
@pytest.mark.parametrize('name', CASES)
def test_aggregations_equal_loops(name, edges):
    program, reduce, empty = CASES[name]
    edges, x = graph(edges), features(edges)
    found = program(edges, x=x)
    want = looped(reduce, empty, edges, x)
    torch.testing.assert_close(found, want, atol=1e-10, rtol=1e-10)
    weight = torch.randn_like(want)
    [a], [b] = (
        torch.autograd.grad((y * weight).sum(), x) for y in (found, want)
    )
    # Equal values are more than one smallest: any may have the gradient.
    kept = torch.ones(N, 1) if 'quantile' not in name else rows_of_ties(x)
    torch.testing.assert_close(a * kept, b * kept, atol=1e-9, rtol=1e-9)


def rows_of_ties(x):
    """Returns 0 for vertices with values of 0, equal to others."""
    return (x.detach() != 0).all(1, keepdim=True).double()


def test_median_is_the_lower_one():
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1, 1]])
    x = torch.tensor([4.0, 3.0, 1.0, 2.0, 6.0, 5.0, 7.0])

    @vertex_program
    def plain(v):
        return median(u.x for u in v.innbs)

    assert plain(edges, x=x).tolist() == [2, 6, 0, 0, 0, 0, 0]


def test_quantiles_of_features_of_edges():
    edges, x = graph(90), features(90)
    w = torch.randn(90, 3, dtype=torch.float64, requires_grad=True)

    @vertex_program
    def above(v):
        middle = median(e.w for e in v.inedges)
        return sum(torch.relu(e.w - middle) * e.src.x for e in v.inedges)

    found = above(edges, x=x, w=w)
    rows = []
    for v in range(N):
        of_v = edges[1] == v
        rest = w[of_v]
        if len(rest):
            rest = torch.relu(rest - rest.median(0).values)
        rows.append((rest * x[edges[0, of_v]]).sum(0))
    want = torch.stack(rows)
    torch.testing.assert_close(found, want, atol=1e-12, rtol=0)
    for a, b in zip(
        torch.autograd.grad(found.square().sum(), [x, w]),
        torch.autograd.grad(want.square().sum(), [x, w]),
        strict=True,
    ):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def test_quantiles_of_tiles_of_edges():
    torch.manual_seed(0)
    edges = torch.randint(400, (2, 20_000))
    x = torch.randn(400, 3, dtype=torch.float64, requires_grad=True)
    found = medians(edges, x=x)
    values = (x[edges[0]] * x[edges[1]]).detach()
    for v in range(0, 400, 37):
        rows = values[edges[1] == v]
        want = rows.median(0).values * x[v]
        torch.testing.assert_close(found[v], want, atol=1e-12, rtol=0)
    [grad] = torch.autograd.grad(found.sum(), x)
    step = torch.randn_like(x)
    with torch.no_grad():
        above = medians(edges, x=x + 1e-7 * step).sum()
        below = medians(edges, x=x - 1e-7 * step).sum()
    slope = (above - below) / 2e-7
    assert abs(slope - (grad * step).sum()) < 1e-3 * grad.norm()


@pytest.mark.parametrize('name', ['prod', 'var', 'std', 'quantile linear'])
def test_derivatives_of_aggregations(name):
    program, edges = CASES[name][0], graph(40)
    x = torch.randn(N, 2, dtype=torch.float64, requires_grad=True)

    def call(x):
        return program(edges, x=x)

    assert torch.autograd.gradcheck(
        call, (x,), check_forward_ad=True, fast_mode=True
    )
    assert torch.autograd.gradgradcheck(call, (x,), fast_mode=True)


def test_quantiles_break_the_graph_of_torch_compile():
    edges, x = graph(90), features(90)
    compiled = torch.compile(lambda x: medians(edges, x=x), backend='eager')
    assert torch.equal(compiled(x), medians(edges, x=x))


def test_aggregations_outside_of_programs():
    for function in (prod, var, std, median):
        with pytest.raises(RuntimeError, match='in a vertex program'):
            function([1.0, 2.0])


@pytest.mark.parametrize(
    'write',
    [
        lambda v: var(v.x for _ in v.innbs),
        lambda v: prod([v.x, v.x]),
        lambda v: quantile((u.x for u in v.innbs), 1.5),
        lambda v: quantile((u.x for u in v.innbs), 0.5, 'cubic'),
        lambda v: median(u.x for u in v.innbs) + var(v.x),
    ],
)
def test_rejects_aggregations_of_other_values(write):
    with pytest.raises(ValueError, match='line'):
        vertex_program(write)(graph(9), x=features(9))
