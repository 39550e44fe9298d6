"""A small graph, and programs for checks of all derivatives."""

import torch
import torch.nn.functional as F

from tests.vertex.programs import EXTRA, PROGRAMS, features
from torch_gsample.vertex import mean, vertex_program

N = 5
#: A hub with a loop and a pair twice, and vertices without edges.
GRAPH = torch.tensor([[0, 1, 2, 2, 3, 1, 3], [1, 1, 1, 1, 1, 0, 2]])
E = GRAPH.shape[1]
TYPES = torch.tensor([0, 2, 1, 1, 0, 2, 0])
EMPTY = torch.empty(2, 0, dtype=torch.int64)
generator = torch.Generator().manual_seed(11)


def normal(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@vertex_program
def mixed(v, scale):
    """Values of both ends, edges and parameters, detached ones, maxima."""
    score = [(e.src.x * v.y + e.w) * scale for e in v.inedges]
    highest = max(score).detach()
    weight = [torch.exp(s - highest) for s in score]
    total = sum(weight)
    near = max(F.gelu(s) for s in score)
    out = sum(
        w * e.src.x / (total + 1e-16)  # the same for any shift
        for w, e in zip(weight, v.inedges, strict=True)
    )
    return out * near.sum(-1, keepdim=True), torch.tanh(near) * scale


@vertex_program
def reduced(v, weight):
    """A product after an aggregate that an edge reads again."""
    average = mean(u.x for u in v.innbs)
    spread = sum((u.x - average).abs() * u.x.amax(-1) for u in v.innbs)
    return F.softmax(spread @ weight, dim=-1) * v.y


@vertex_program
def levels(v, weight):
    """Sums of edges of a type, then of types, that no operator joins."""
    return v.y * sum(
        torch.tanh(sum(torch.exp(e.src.x) for e in es) @ weight[es.type])
        for es in v.inedges.by_type
    )


@vertex_program
def narrow(v):
    """The gradient of a feature does not depend on which one it is."""
    shift = v.y.sum(-1, keepdim=True)
    total = sum((u.x + shift).sum(-1, keepdim=True) for u in v.innbs)
    return total * total * v.y


OWN = {
    'levels': (levels, {'x': (N, 2), 'y': (N, 2), 'weight': (3, 2, 2)}),
    'narrow': (narrow, {'x': (N, 2), 'y': (N, 2)}),
    'mixed': (
        mixed,
        {'x': (N, 2), 'y': (N, 2), 'w': (E, 2), 'scale': (2,)},
    ),
    'reduced': (reduced, {'x': (N, 2), 'y': (N, 2), 'weight': (2, 2)}),
}


def program_of(name):
    """A program and its arguments."""
    if name in OWN:
        program, shapes = OWN[name]
        given = {key: normal(*shape) for key, shape in shapes.items()}
        return program, given | ({'type': TYPES} if name == 'levels' else {})
    program = {**PROGRAMS, **EXTRA}[name]
    return program, features(name, n=N, e=E, h=1, c=2)
