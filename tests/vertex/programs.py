"""Vertex programs, and the same in operators of torch."""

import torch
import torch.nn.functional as F

from torch_gsample.vertex import mean, vertex_program
from torch_gsample.vertex.kernels import edge_tiles

N, E, H, C = 7, 24, 2, 3


@vertex_program
def gcn(v):
    return sum(u.h * u.norm for u in v.innbs) * v.norm


@vertex_program
def weighted(v):
    return sum(e.w * e.src.h for e in v.inedges)


@vertex_program
def gat(v):
    scores = [F.leaky_relu(u.eu + v.ev, 0.2) for u in v.innbs]
    highest = max(scores).detach()
    e = [torch.exp(s - highest) for s in scores]
    total = sum(c[..., None] * u.h for c, u in zip(e, v.innbs, strict=True))
    return total / (sum(e)[..., None] + 1e-16)


@vertex_program
def gatv2(v, att):
    scores = [
        (F.leaky_relu(e.src.l + v.r + e.w, 0.2) * att).sum(-1)
        for e in v.inedges
    ]
    highest = max(scores).detach()
    e = [torch.exp(s - highest) for s in scores]
    total = sum(c[..., None] * u.l for c, u in zip(e, v.innbs, strict=True))
    return total / (sum(e)[..., None] + 1e-16)


@vertex_program
def softmax_weighted(v):
    """An aggregate of fewer features is read as it is by one of more."""
    e = [torch.exp(u.eu) for u in v.innbs]
    total = sum(c[..., None] * u.h for c, u in zip(e, v.innbs, strict=True))
    return total / sum(e)[..., None]


@vertex_program
def appnp(v):
    return 0.9 * sum(e.w * e.src.h for e in v.inedges) + 0.1 * v.h0


@vertex_program
def rgcn(v, weight):
    return sum(
        mean(e.src.h for e in es) @ weight[es.type] for es in v.inedges.by_type
    )


@vertex_program
def gin(v, eps):
    return (1 + eps) * v.h + sum(u.h for u in v.innbs)


@vertex_program
def sage(v, left, right):
    return mean(u.h for u in v.innbs) @ left + v.h @ right


@vertex_program
def pna(v):
    h = [torch.tanh(u.h - v.h) for u in v.innbs]
    average = mean(h)
    spread = mean(x * x for x in h) - average * average
    deviation = torch.sqrt(torch.relu(spread) + 1e-3)
    return average, max(h), min(h), deviation


@vertex_program
def gated(v, left, right):
    """A product before, between and after aggregates."""
    first = sum(torch.sigmoid(u.h) @ left for u in v.innbs)
    second = sum(u.h @ right * first for u in v.innbs)
    return torch.tanh(second @ left) + first


@vertex_program
def dropped(v):
    """Draws of edges and of vertices (test_dropout.py has a reference)."""
    e = [F.dropout(torch.exp(u.eu), 0.3) for u in v.innbs]
    keep = F.dropout(v.h, 0.5)
    total = sum(
        F.dropout(c[..., None] * u.h * keep, 0.1)
        for c, u in zip(e, v.innbs, strict=True)
    )
    return total / (sum(e)[..., None] + 1)


@vertex_program
def squashed(v):
    """Maxima along features (test_functions.py has a reference)."""
    e = [F.gelu(u.h - v.h) for u in v.innbs]
    return sum(F.softmax(x, dim=-1) + x.amax(-2, keepdim=True) for x in e)


#: Values without a reference of their own.
EXTRA = {
    'softmax_weighted': softmax_weighted,
    'dropped': dropped,
    'squashed': squashed,
}

PROGRAMS = {
    program.__name__: program
    for program in (
        *(gcn, weighted, gat, gatv2, appnp, rgcn, gin, sage, pna, gated),
    )
}


def graph():
    """Random edges, vertices without edges, a loop and a pair twice."""
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(N - 1, (2, E), generator=generator)
    edge_index[:, 0] = 2
    edge_index[:, 1] = edge_index[:, 2]
    return edge_index


def features(name, dtype=torch.float64, n=N, e=E, h=H, c=C):
    """The arguments of a program, with gradients."""
    shapes = {
        'gcn': {'h': (n, c), 'norm': (n,)},
        'weighted': {'h': (n, c), 'w': (e,)},
        'gat': {'eu': (n, h), 'ev': (n, h), 'h': (n, h, c)},
        'softmax_weighted': {'eu': (n, h), 'h': (n, h, c)},
        'dropped': {'eu': (n, h), 'h': (n, h, c)},
        'squashed': {'h': (n, h, c)},
        'gatv2': {
            **{'l': (n, h, c), 'r': (n, h, c)},
            **{'w': (e, h, c), 'att': (h, c)},
        },
        'appnp': {'h': (n, c), 'h0': (n, c), 'w': (e,)},
        'rgcn': {'h': (n, c), 'weight': (4, c, 2)},
        'gin': {'h': (n, c), 'eps': (1,)},
        'sage': {'h': (n, c), 'left': (c, 4), 'right': (c, 4)},
        'pna': {'h': (n, c)},
        'gated': {'h': (n, c), 'left': (c, c), 'right': (c, c)},
    }[name]
    generator = torch.Generator().manual_seed(5)
    out = {
        key: torch.randn(shape, generator=generator, dtype=dtype)
        for key, shape in shapes.items()
    }
    for x in out.values():
        x.requires_grad_()
    if name == 'rgcn':
        out['type'] = torch.randint(3, (e,), generator=generator)
    return out


def total(value, index):
    out = value.new_zeros((N, *value.shape[1:]))
    return out.index_add(0, index, value)


def extreme(value, index, op):
    out = value.new_zeros((N, *value.shape[1:]))
    place = index.view(-1, *[1] * (value.dim() - 1)).expand_as(value)
    return out.scatter_reduce(0, place, value, op, include_self=False)


def softmax(score, col):
    highest = extreme(score, col, 'amax').detach()
    e = torch.exp(score - highest[col])
    return e / (total(e, col) + 1e-16)[col]


def expected(name, edge_index, f):
    """Returns the expected result of a program, edge by edge."""
    row, col = edge_index
    degree = total(torch.ones(E, dtype=torch.float64), col).clamp(min=1)
    degree = degree.to(next(iter(f.values())).dtype)[:, None]
    if name == 'gcn':
        norm = f['norm'][:, None]
        return total((f['h'] * norm)[row], col) * norm
    if name in ('weighted', 'appnp'):
        out = total(f['w'][:, None] * f['h'][row], col)
        return out if name == 'weighted' else 0.9 * out + 0.1 * f['h0']
    if name == 'gat':
        score = F.leaky_relu(f['eu'][row] + f['ev'][col], 0.2)
        alpha = softmax(score, col)
        return total(alpha[..., None] * f['h'][row], col)
    if name == 'gatv2':
        x = F.leaky_relu(f['l'][row] + f['r'][col] + f['w'], 0.2)
        alpha = softmax((x * f['att']).sum(-1), col)
        return total(alpha[..., None] * f['l'][row], col)
    if name == 'rgcn':
        out = 0
        for t in range(4):
            mask = f['type'] == t
            count = total(mask.to(f['h'].dtype), col).clamp(min=1)[:, None]
            h = total(f['h'][row[mask]], col[mask]) / count
            out = out + h @ f['weight'][t]
        return out
    if name == 'gin':
        return (1 + f['eps']) * f['h'] + total(f['h'][row], col)
    if name == 'sage':
        average = total(f['h'][row], col) / degree
        return average @ f['left'] + f['h'] @ f['right']
    if name == 'gated':
        first = total(torch.sigmoid(f['h'])[row] @ f['left'], col)
        second = total((f['h'] @ f['right'])[row] * first[col], col)
        return torch.tanh(second @ f['left']) + first
    h = torch.tanh(f['h'][row] - f['h'][col])
    average = total(h, col) / degree
    spread = total(h * h, col) / degree - average * average
    return (
        *(average, extreme(h, col, 'amax'), extreme(h, col, 'amin')),
        torch.sqrt(torch.relu(spread) + 1e-3),
    )


@vertex_program
def deep(v, weight):
    return sum(torch.tanh(u.x + v.x) @ weight for u in v.innbs)


@vertex_program
def highest(v, weight):
    return max(torch.tanh(u.x + v.x) @ weight for u in v.innbs)


def in_tiles(graph, program=deep, **features):
    """Runs a product of values of edges on tiles of four."""
    before = edge_tiles._LEAST, edge_tiles._MOST
    edge_tiles._LEAST = edge_tiles._MOST = 4
    try:
        return program(graph, **features)
    finally:
        edge_tiles._LEAST, edge_tiles._MOST = before
