"""Out-neighbours and out-edges in vertex programs."""

import pytest
import torch

from torch_gsample import vertex_program
from torch_gsample.vertex import Loops, mean, median, std
from torch_gsample.vertex.kernels.layouts import layouts_of

N, E = 9, 40
EDGES = torch.randint(N, (2, E), generator=torch.Generator().manual_seed(3))
EDGES[0, EDGES[0] == 4] = 5  # 4 has no out-edge, the last vertex neither
EDGES[0, EDGES[0] == N - 1] = 0


def draw(*shape):
    torch.manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


X, FACTOR, WEIGHT = draw(N, 3), draw(E, 1), draw(3, 5)


def total(values, rows):
    return values.new_zeros(N, values.shape[1]).index_add(0, rows, values)


@vertex_program
def both(v, weight):
    inward = sum(u.x for u in v.innbs)
    hidden = [torch.tanh(e.dst.x * e.w + inward) for e in v.outedges]
    outward = sum(hidden)
    spread = max(h * outward for h in hidden)
    back = sum(u.x * outward for u in v.innbs)
    count = sum(1.0 for _ in v.outnbs)
    return mean(u.x @ weight for u in v.outnbs), back + spread, count


def both_by_torch(x, w, weight):
    row, col = EDGES
    inward = total(x[row], col)
    hidden = torch.tanh(x[col] * w + inward[row])
    outward = total(hidden, row)
    spread = torch.zeros(N, 3, dtype=x.dtype).scatter_reduce(
        *(0, row[:, None].expand(-1, 3), hidden * outward[row], 'amax'),
        include_self=False,
    )
    count = torch.bincount(row, minlength=N).to(x.dtype)
    projected = total((x @ weight)[col], row) / count.clamp(min=1)[:, None]
    return projected, inward * outward + spread, count


def test_both_directions_with_gradients():
    leaves = [X, FACTOR, WEIGHT]
    found = both(EDGES, x=X, w=FACTOR, weight=WEIGHT)
    want = both_by_torch(*leaves)
    for a, b in zip(found, want, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)
    grads = [
        torch.autograd.grad(sum(y.tanh().sum() for y in out), leaves)
        for out in (found, want)
    ]
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


@vertex_program
def differences(v):
    scores = [torch.exp(u.x - v.x) for u in v.outnbs]
    whole = sum(scores)
    return sum(s / whole * u.x for s, u in zip(scores, v.outnbs, strict=True))


def test_derivatives_in_both_modes():
    def call(x):
        return differences(EDGES, x=x)

    assert torch.autograd.gradcheck(
        call, (X,), check_forward_ad=True, fast_mode=True
    )


def test_a_program_is_that_of_edges_in_the_other_direction():
    @vertex_program
    def inward(v):
        return std(u.x * v.x for u in v.innbs), max(u.x for u in v.innbs)

    @vertex_program
    def outward(v):
        return std(u.x * v.x for u in v.outnbs), max(u.x for u in v.outnbs)

    for loops in Loops:
        found = outward(EDGES, x=X, loops=loops)
        want = inward(EDGES.flip(0), x=X, loops=loops)
        for a, b in zip(found, want, strict=True):
            torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


def test_the_layouts_are_those_of_the_graph():
    made = layouts_of([EDGES], N, N)
    assert made.turned.incoming is made.outgoing
    assert made.turned.outgoing is made.incoming


def test_torch_compile():
    compiled = torch.compile(
        lambda x: differences(EDGES, x=x), backend='aot_eager', fullgraph=True
    )
    assert torch.equal(compiled(X), differences(EDGES, x=X))


REFUSED = {
    'cannot be combined': lambda v: sum(
        a.x * b.x for a, b in zip(v.innbs, v.outnbs, strict=True)
    ),
    'at once': lambda v: sum(v.x for _ in zip(v.innbs, v.outnbs, strict=True)),
    'cannot be returned': lambda v: [e.w * e.dst.x for e in v.outedges],
    'by_type supports in-edges': lambda v: sum(
        sum(e.dst.x for e in es) for es in v.outedges.by_type
    ),
    'in-edges only': lambda v: median(u.x for u in v.outnbs),
    'no features': lambda v: sum(u.y for u in v.outnbs),
    'nested in another': lambda v: sum(
        b.x for _ in v.outnbs for b in v.outnbs
    ),
    'dropout supports vertices': lambda v: sum(
        torch.dropout(u.x, 0.5, True) for u in v.outnbs
    ),
    'multiplied by a matrix': lambda v: sum(
        torch.relu(u.x + v.x) @ PARAMETER for u in v.outnbs
    ),
}
PARAMETER = torch.nn.Parameter(WEIGHT.detach())


@pytest.mark.parametrize('text', REFUSED)
def test_refusals_name_the_line(text):
    program = vertex_program(REFUSED[text])
    with pytest.raises(ValueError, match=r'<lambda>: line \d+, ') as caught:
        program(EDGES, x=X, w=FACTOR)
    assert text in str(caught.value.__cause__)


def test_two_kinds_of_vertices_are_refused():
    with pytest.raises(ValueError, match=r'as many sources .* 12 and 9'):
        differences(EDGES, x=(draw(12, 3), X))
