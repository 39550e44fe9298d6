"""Hops of several relations become one operator."""

import pytest
import torch

from tests.compiler.captured import Captured
from tests.compiler.golden import after, aten, gsample, text
from tests.compiler.programs import compiled, tensors, trace
from torch_gsample import SparseSample, ops
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.fuse_hops import fuse_hops
from torch_gsample.rng import make_key, program_scope

SIZES = {'author': 20, 'paper': 40, 'venue': 6, 'word': 9}
NONE = torch.empty(0, dtype=torch.int64)


def relation(src, dst, num_edges, seed):
    generator = torch.Generator().manual_seed(seed)
    row, col = (
        torch.randint(SIZES[t], (num_edges,), generator=generator)
        for t in (src, dst)
    )
    value = torch.rand(num_edges, generator=generator)
    return SparseSample.from_coo(row, col, value, (SIZES[src], SIZES[dst]))


def graph():
    """Words are of papers, and have no columns; no venue is in a paper."""
    edges = {
        ('paper', 'cites', 'paper'): 150,
        ('author', 'writes', 'paper'): 90,
        ('paper', 'by', 'author'): 90,
        ('venue', 'has', 'paper'): 0,
        ('paper', 'in', 'venue'): 40,
        ('word', 'of', 'paper'): 70,
    }
    return {
        r: relation(r[0], r[2], n, seed)
        for seed, (r, n) in enumerate(edges.items())
    }


A = graph()


def marked(ids):
    torch._dynamo.decorators.mark_unbacked(ids, 0)
    return ids


def union(parts):
    return torch.cat(parts).unique()


def in_order(parts):
    return ops.unique_nodes(torch.cat(parts))[0]


def loop(
    union=union,
    rows=lambda S: S.row(),
    keeps=True,
    skips=False,
    last=True,
    ks=(3, 2),
    **options,
):
    """A program as users write it.

    Args:
        union (Callable): Makes a frontier of its parts.
        rows (Callable): The rows of a sample.
        keeps (bool): Whether a frontier goes on from the one before.
        skips (bool): Whether types without a frontier are left out.
        last (bool): Whether the frontiers of a further hop are returned.
        ks (Tuple[int]): Fan-outs.
        options (Any): `weighted` and `replace`.
    """

    def program(A, seeds):
        types = sorted({t for src, _, dst in A for t in (src, dst)})
        frontier = dict(seeds)
        if not skips:
            frontier |= {t: NONE for t in types if t not in seeds}
        layers = []
        for k in ks:
            layer = {}
            for name, matrix in A.items():
                if name[2] in frontier:
                    S = matrix[:, frontier[name[2]]]
                    layer[name] = S.individual_sample(
                        k,
                        S if options.get('weighted') else None,
                        options.get('replace', False),
                    )
            parts = {t: [] for t in types}
            for t in frontier if keeps else ():
                parts[t].append(frontier[t])
            for (src, _, _), S in layer.items():
                parts[src].append(rows(S))
            frontier = {t: union(p) for t, p in parts.items() if p}
            layers.append(layer)
        out = [S for layer in layers for S in layer.values()]
        return out, list(frontier.values()) if last else []

    return program


def by_relation(A, seeds):
    """Frontiers grow relation by relation."""
    frontier, layers = dict(seeds), []
    for k in (3, 2):
        layers.append(
            {
                r: matrix[:, frontier.get(r[2], NONE)].individual_sample(k)
                for r, matrix in A.items()
            }
        )
        for (src, _, _), S in layers[-1].items():
            parts = [frontier.get(src, NONE), S.row()]
            frontier[src] = torch.unique(torch.cat(parts))
    return [S for layer in layers for S in layer.values()]


LOOPS = {
    'nodes': loop(ks=(3, 2, 2)),
    'nodes-in-order': loop(in_order),
    'nodes-skips': loop(skips=True),
    'nodes-in-order-skips': loop(in_order, skips=True),
    'nodes-not-last': loop(last=False),
    'row': loop(keeps=False, skips=True),
    'row-in-order': loop(in_order, keeps=False, skips=True, ks=(3, 2, 2)),
    'weighted': loop(weighted=True),
    'replace': loop(in_order, replace=True),
    'all-edges': loop(ks=(4, -1)),
    'by-relation': by_relation,
}


def run(program, seeds, scope, A=A):
    torch.manual_seed(7)
    if not scope:
        return tensors(program(A, seeds))
    with program_scope(make_key(7)):
        return tensors(program(A, seeds))


def assert_equal(first, second):
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


SEEDS = [
    torch.arange(5) * 3,
    NONE.clone(),
    torch.tensor([39]),
    torch.tensor([4, 4, 1, 4]),
    torch.arange(40).flip(0),
]


@pytest.mark.parametrize('name', LOOPS)
def test_fused_loops_draw_the_eager_sample(name):
    program = LOOPS[name]
    fast = Captured(program)
    fast(A, {'paper': marked(SEEDS[0].clone())})
    out = fast.rewrite().text
    assert out.count('gsample.sample_layers') == 1
    assert 'sample_columns' not in out
    with torch.compiler.set_stance('fail_on_recompile'):
        for ids in SEEDS:
            seeds = {'paper': marked(ids.clone())}
            for scope in (False, True):
                assert_equal(
                    run(fast, seeds, scope), run(program, seeds, scope)
                )


@pytest.mark.parametrize('name', ['nodes', 'nodes-in-order', 'row'])
def test_seeds_of_several_types(name):
    program = LOOPS[name]
    fast = compiled(program)
    for ids in SEEDS:
        seeds = {'venue': marked(ids % 6), 'author': marked(ids % 20)}
        for scope in (False, True):
            assert_equal(run(fast, seeds, scope), run(program, seeds, scope))


def test_a_hop_that_drops_the_rows_of_a_relation_is_left():
    def program(A, seeds):
        frontier, out = seeds, []
        for i, k in enumerate((2, 2, 2)):
            hop = [M[:, frontier].individual_sample(k) for M in A.values()]
            rows = [S.row() for S in hop][: 2 - i % 2]
            frontier = torch.cat([frontier, *rows]).unique()
            out += hop
        return out

    names = [('paper', 'cites', 'paper'), ('paper', 'like', 'paper')]
    typed = {r: relation(*r[::2], 150, i) for i, r in enumerate(names)}
    seeds = marked(SEEDS[0].clone())
    out = trace(program, typed, seeds).text
    assert out.count('sample_columns') == 4  # two are a loop of their own
    fast = compiled(program)
    assert_equal(
        run(fast, seeds, True, typed), run(program, seeds, True, typed)
    )


def test_values_of_hops_carry_gradients():
    program, grads = LOOPS['nodes'], []
    for function in (program, compiled(program)):
        value = A['paper', 'cites', 'paper'].values().clone()
        value.requires_grad_()
        name = 'paper', 'cites', 'paper'
        typed = {**A, name: A[name].with_value(value)}
        with program_scope(make_key(3)):
            samples, _ = function(typed, {'paper': marked(SEEDS[0].clone())})
        sum((S.values() ** 2).sum() for S in samples).backward()
        grads.append(value.grad)
    assert grads[0].abs().sum() > 0
    torch.testing.assert_close(*grads)


# Hand-made programs ##########################################################

POINTERS = torch.tensor([0, 2, 3, 3, 5])
ROWS = torch.tensor([1, 3, 0, 2, 3])
KEYS = [make_key(i) for i in range(4)]
MANY = 2**62


def rewrite(g):
    canonicalize(g)
    fuse_hops(g)
    eliminate_dead(g)


def hops(first, second=None, sizes=(4, 4)):
    """Two hops of two relations, and what makes the columns of the second.

    Both relations are of one type; ``second`` makes columns of its own for
    the second relation, which is from another type then.
    """

    def function(p, i, q, j, seeds, a, b, c, d):
        def hop(indptr, indices, key, columns, call_id=0):
            edge = gsample.sample_columns.default(
                indptr, 2, key, call_id, cols=columns
            )[1]
            return aten.index_select.default(indices, 0, edge)

        rows = hop(p, i, a, seeds), hop(q, j, b, seeds)
        unique = [
            gsample.unique_nodes.default(r, n)[0]
            for r, n in zip(rows, sizes, strict=True)
        ]
        columns = first(seeds, *unique)
        other = second(seeds, *unique) if second else columns
        return (*rows, hop(p, i, c, columns, 3), hop(q, j, d, other, 1))

    return after(
        rewrite,
        function,
        *(POINTERS, ROWS, POINTERS.clone(), ROWS.clone()),
        *(torch.tensor([2, 0]), *KEYS),
    )


def distinct(*parts):
    return gsample.unique_nodes.default(torch.cat(parts), MANY)[0]


def test_two_relations_of_one_type():
    assert hops(lambda s, x, y: torch.cat([s, x, y]).unique()) == text("""
        %9 = gsample.sample_layers([p, i, q, j], [0, 0, 0, 0], [4], [seeds], [2, 2, 2, 2], [a, b, c, d], [0, 0, 3, 1], sorted=True): 5 parts
        %10 = getitem(%9, 1): 4 parts
        %11 = getitem(%10, 0): int64[2]
        %12 = getitem(%10, 1): int64[2]
        %13 = getitem(%10, 2): int64[5]
        %14 = getitem(%10, 3): int64[5]
        return (%11, %12, %13, %14)
    """)  # noqa: E501


@pytest.mark.parametrize(
    'first',
    [
        lambda s, x, y: distinct(s, x, y),
        lambda s, x, y: distinct(x, y),
        lambda s, x, y: torch.cat([y, x]).unique(),
        lambda s, x, y: torch.cat([torch.cat([x, s]).unique(), y]).unique(),
        lambda s, x, y: distinct(s, x),  # other rows are of another type
        lambda s, x, y: torch.cat([s, x]).unique(),
    ],
)
def test_unions_are_found(first):
    assert 'sample_layers' in hops(first)


@pytest.mark.parametrize(
    'first',
    [
        lambda s, x, y: distinct(s, y, x),  # another order
        lambda s, x, y: distinct(x, s, y),
        lambda s, x, y: torch.cat([s, x % 3, y]).unique(),
        lambda s, x, y: torch.cat([s, x, y]),  # not unique
        lambda s, x, y: torch.cat([s, s * 1, x, y]).unique(),
        lambda s, x, y: torch.cat([s, x, y]).unique()[1:],
        lambda s, x, y: torch.cat([s * 1, x, y]).unique(),
    ],
)
def test_other_unions_are_left(first):
    assert 'sample_layers' not in hops(first)


def test_types_follow_the_data_flow():
    out = hops(
        lambda s, x, y: torch.cat([s, x]).unique(),
        lambda s, x, y: torch.cat([s, y]).unique(),
    )
    assert 'sample_layers' in out  # a loop each
    assert '[0, 0, 1, 1]' not in out
    out = hops(
        lambda s, x, y: torch.cat([s, y]).unique(),
        lambda s, x, y: torch.cat([s, x]).unique(),
    )
    assert 'sample_layers' not in out  # one type would be two


def test_rows_that_may_be_no_columns_are_left():
    assert 'sample_layers' not in hops(distinct, sizes=(4, 5))
