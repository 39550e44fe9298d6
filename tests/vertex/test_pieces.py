"""The order of sums over many edges: in pieces of 1,024."""

import numpy as np
import pytest
import torch

from torch_gsample.vertex import prod, vertex_program


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
