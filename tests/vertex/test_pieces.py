"""The order of sums over many edges: in pieces of 1,024."""

import numpy as np
import pytest
import torch

from tests.vertex.programs import EXTRA, PROGRAMS, features
from torch_gsample.codegen import pieces
from torch_gsample.vertex import prod, vertex_program
from torch_gsample.vertex.kernels import fused_unit
from torch_gsample.vertex.kernels import layout as layouts

N, E = 16, 150


@vertex_program
def add(v):
    return sum(e.w for e in v.inedges) + v.zero


@vertex_program
def multiply(v):
    return prod(e.w for e in v.inedges) + v.zero


def in_pieces(accumulate, x):
    """Each piece one by one, then the pieces one by one."""
    parts = [accumulate(x[i : i + 1024])[-1] for i in range(0, len(x), 1024)]
    return accumulate(np.array(parts, x.dtype))[-1]


@pytest.mark.parametrize('degree', [1, 1023, 1024, 1025, 2048, 5000])
@pytest.mark.parametrize(
    ('program', 'accumulate'),
    [(add, np.add.accumulate), (multiply, np.multiply.accumulate)],
    ids=['sum', 'prod'],
)
def test_sums_of_hubs_are_in_pieces(degree, program, accumulate):
    # Vertex 1 is the hub, between two small ones.
    col = torch.tensor([0] * 3 + [1] * degree + [2] * 2)
    edge_index = torch.stack([torch.zeros_like(col), col])
    torch.manual_seed(degree)
    w = torch.rand(col.numel()) / 100 + 0.995
    got = program(edge_index, w=w, zero=torch.zeros(3))
    parts = w.numpy()[:3], w.numpy()[3:-2], w.numpy()[-2:]
    want = [in_pieces(accumulate, x) for x in parts]
    assert got.view(-1).tolist() == want


@pytest.fixture
def short_pieces(monkeypatch):
    """Small graphs have hubs; returns those that threads share."""
    split, over_hubs = [], fused_unit.over_hubs

    def spy(unit, hubs, *args):
        split.append(hubs)
        over_hubs(unit, hubs, *args)

    monkeypatch.setattr(pieces, 'PIECE', 4)
    monkeypatch.setattr(layouts, 'FEW', 0)
    monkeypatch.setattr(fused_unit, 'over_hubs', spy)
    forget_kernels()
    yield split
    forget_kernels()


def forget_kernels():
    """Drops compiled kernels, whose pieces have another size."""
    for fused in list(fused_unit.fused_units.values()):
        fused._kernels.clear()


def hubs():
    """Edges of which most have one source, and most one destination."""
    generator = torch.Generator().manual_seed(4)
    edge_index = torch.randint(N, (2, E), generator=generator)
    for end, vertex in zip(edge_index, (5, 3), strict=True):
        end[torch.randperm(E, generator=generator)[:100]] = vertex
    return edge_index


# Softmax in half precision, maxima, draws, gradients of edges.
@pytest.mark.parametrize(
    ('name', 'dtype'),
    [
        ('gat', torch.bfloat16),
        *((x, torch.float32) for x in ('pna', 'dropped', 'gatv2')),
    ],
)
def test_threads_share_a_hub_without_changing_bits(name, dtype, short_pieces):
    program, edge_index = (PROGRAMS | EXTRA)[name], hubs()
    found = {}
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        given = features(name, dtype, N, E)
        out = program(edge_index, **given)
        outs = out if isinstance(out, tuple) else (out,)
        sum((x * x).sum() for x in outs).backward()
        found[threads] = [*outs, *(x.grad for x in given.values())]
        if threads == 1:
            assert not short_pieces
    assert {len(x.bounds) > 2 for x in short_pieces} == {True}
    assert {int(x.vertices[0]) for x in short_pieces} == {3, 5}
    for threads in (2, 5):
        for a, b in zip(found[1], found[threads], strict=True):
            assert torch.equal(a, b)


def test_one_thread_computes_a_hub_whose_stages_do_not_compile(
    short_pieces, monkeypatch
):
    torch.set_num_threads(2)
    given, edge_index = features('gat', torch.float32, N, E), hubs()
    want = PROGRAMS['gat'](edge_index, **given)
    assert short_pieces
    short_pieces.clear()
    for fused in list(fused_unit.fused_units.values()):
        monkeypatch.setattr(fused, '_stages', {torch.int32: None})
    assert torch.equal(PROGRAMS['gat'](edge_index, **given), want)
    assert not short_pieces
