"""Programs that cannot be: errors name the line and what to write."""

import pytest
import torch
import torch.nn.functional as F

from torch_gsample import vertex_program
from torch_gsample.vertex import mean, prod

N = 12
W = torch.ones(3, 4)

#: A program and its error.
BAD = [
    (lambda v: sum(u.x.foo for u in v.innbs), 'torch.foo is not supported'),
    (lambda v: sum(u.x.T for u in v.innbs), 'torch.T is not supported'),
    (lambda v: sum(float(u.x) for u in v.innbs), 'float'),
    (lambda v: sum(u.x % 2 for u in v.innbs), '%'),
    (lambda v: sum(u for u in v.innbs), 'Neighbor'),
    (lambda v: (), 'must return a value'),
    (lambda v: None, 'must return values'),
    (lambda v: v.innbs + v.innbs, 'unsupported operand'),
    (lambda v: sum(es.x for es in v.inedges.by_type), "no attribute 'x'"),
    (
        lambda v: sum(
            sum(e.src.x for e in es) @ W[es.type] for es in v.inedges.by_type
        ),
        'tensor from the enclosing scope',
    ),
    (lambda v: sum(u.x[:, :, :] for u in v.innbs), 'fewer dimensions'),
    (lambda v: sum(u.x._foo for u in v.innbs), "no attribute '_foo'"),
    (lambda v: sum(torch.maximum(u.x, 0) for u in v.innbs), 'maximum'),
    (lambda v: sum(torch.exp() for u in v.innbs), 'exp'),
    (lambda v: sum(len(u.x) * u.x for u in v.innbs), r'no len\(\)'),
    (
        lambda v: sum(torch.where(u.x, v.x, 1) for u in v.innbs),
        'condition of torch.where must be a comparison',
    ),
    (
        lambda v: sum(u.x for u in v.innbs for _ in v.inedges),
        'nested in another one',
    ),
    (
        lambda v: sum([u.x * w.x for u in v.innbs for w in v.innbs]),
        'nested in another one',
    ),
    (
        lambda v: sum(i * u.x for i, u in enumerate(v.innbs)),
        'for indexing only',
    ),
    (lambda v: sum(u.x for u in v.innbs if u == v), 'cannot be compared'),
    (lambda v: sum(u.x for u in v.innbs if v != u), 'cannot be compared'),
    (lambda v: torch.zeros(len(v.innbs)), 'zeros'),
    (lambda v: sum(F.dropout(u.x, 2) for u in v.innbs), 'probability'),
]


def call(program):
    torch.manual_seed(0)
    edges = torch.randint(N, (2, 30))
    return vertex_program(program)(edges, x=torch.ones(N, 3), size=(N, N))


@pytest.mark.parametrize(('program', 'says'), BAD)
def test_errors_name_the_line(program, says):
    with pytest.raises(ValueError, match=rf'line \d+, .*{says}'):
        call(program)


def test_loops_that_are_joined_or_aggregated_are_one():
    found = [
        lambda v: sum(
            u.x * e.src.x for u, e in zip(v.innbs, v.inedges, strict=True)
        ),
        lambda v: sum(
            u.x * e.src.x for u, e in zip(v.innbs, v.inedges, strict=False)
        ),
        lambda v: sum(
            u.x * mean(w.x for w in v.innbs) * prod(w.x for w in v.innbs)
            for u in v.innbs
        ),
        lambda v: sum([u.x, 2 * u.x][i] for u in v.innbs for i in range(1)),
    ]
    first, *rest = (call(program) for program in found)
    for other in rest:
        assert torch.equal(first, other)


def test_positions_index_lists_of_edges():
    def program(v):
        first = [u.x * 3 for u in v.innbs]
        return sum(first[i] + e.src.x for i, e in enumerate(v.inedges))

    want = call(lambda v: sum(u.x * 4 for u in v.innbs))
    assert torch.equal(call(program), want)


@pytest.mark.parametrize('what', [3, (call, [1]), sum])
def test_vertex_program_rejects_non_functions(what):
    with pytest.raises(
        TypeError, match='must decorate a function of a vertex'
    ):
        vertex_program(what)
