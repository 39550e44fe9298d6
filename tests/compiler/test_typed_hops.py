"""Hops of several relations become one operator."""

import pytest
import torch

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
    ks=(3, 2, 2),
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
    'nodes': loop(),
    'nodes-in-order': loop(in_order),
    'nodes-skips': loop(skips=True),
    'nodes-in-order-skips': loop(in_order, skips=True),
    'nodes-not-last': loop(last=False),
    'row': loop(keeps=False, skips=True),
    'row-in-order': loop(in_order, keeps=False, skips=True),
    'weighted': loop(weighted=True),
    'replace': loop(in_order, replace=True),
    'two': loop(ks=(4, -1)),
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
def test_loops_draw_what_eager_ones_draw(name):
    program = LOOPS[name]
    out = trace(program, A, {'paper': marked(SEEDS[0].clone())}).text
    assert out.count('gsample.sample_layers') == 1
    assert 'sample_columns' not in out
    fast = compiled(program)
    fast(A, {'paper': marked(SEEDS[0].clone())})
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
