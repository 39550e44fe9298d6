"""Programs as the figures of the paper have them."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.utils import scatter, softmax

from torch_gsample import vertex_program

N = 20
W = torch.nn.Parameter(torch.eye(4, 6, dtype=torch.float64) + 0.1)


@vertex_program
def gcn(v):
    return sum([torch.mm(u.h, W) * u.norm for u in v.innbs]) * v.norm


@vertex_program
def gat(v):
    E = [torch.exp(F.leaky_relu(u.eu + v.ev)) for u in v.innbs]
    Alpha = [e / sum(E) for e in E]
    return sum([Alpha[i] * v.innbs[i].h for i in range(len(v.innbs))])


def given():
    torch.manual_seed(0)
    edges = torch.randint(N - 3, (2, 70))
    h = torch.randn(N, 4, dtype=torch.float64, requires_grad=True)
    return edges, h, torch.rand(N, 1, dtype=torch.float64)


def assert_same(found, want, leaves):
    torch.testing.assert_close(found, want, atol=1e-12, rtol=0)
    weight = torch.randn_like(want)
    first, second = (
        torch.autograd.grad((x * weight).sum(), leaves) for x in (found, want)
    )
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=0)


def test_gcn_of_figure_3():
    (row, col), h, norm = given()
    found = gcn(torch.stack([row, col]), h=h, norm=norm)
    want = scatter((h @ W * norm)[row], col, dim_size=N) * norm
    assert_same(found, want, [h, W])


def test_gat_of_figure_3():
    (row, col), h, score = given()
    found = gat(torch.stack([row, col]), h=h, eu=score, ev=score.flip(0))
    scores = F.leaky_relu(score[row] + score.flip(0)[col])
    alpha = softmax(scores, col, num_nodes=N)
    assert_same(found, scatter(alpha * h[row], col, dim_size=N), [h])


def test_other_lengths_are_those_of_python():
    @vertex_program
    def powers(v):
        out = v.h
        for i in range(1, len([0, 1, 2])):
            out = out * (i + 1)
        return out + sum(u.h for u in v.innbs)

    edges, h, _ = given()
    want = h * 6 + scatter(h[edges[0]], edges[1], dim_size=N)
    torch.testing.assert_close(powers(edges, h=h), want)


@pytest.mark.parametrize(
    ('write', 'says'),
    [
        (lambda v: v.innbs[0].h, 'have no indices'),
        (lambda v: sum(u.h for u in v.innbs) / len(v.innbs), 'not known'),
        (
            lambda v: sum(v.innbs[i + 1].h for i in range(len(v.innbs))),
            'for indexing only',
        ),
        (
            lambda v: sum(v.innbs[i].h * i for i in range(len(v.innbs))),
            'for indexing only',
        ),
        (
            lambda v: sum(v.innbs[i].h for i in range(1, len(v.innbs))),
            'indices of edges',
        ),
    ],
)
def test_other_numbers_of_edges_are_refused(write, says):
    edges, h, _ = given()
    with pytest.raises(ValueError, match=f'line .*: .*{says}'):
        vertex_program(write)(edges, h=h)
