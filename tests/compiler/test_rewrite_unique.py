"""Nodes are numbered by the operator for nodes."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    after,
    aten,
    gsample,
    text,
)
from tests.compiler.programs import compiled, graph, seeds, trace, trace_of
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.rewrite_unique import rewrite_unique


def rewrite(g):
    canonicalize(g)
    rewrite_unique(g)
    eliminate_dead(g)


def rewritten(function):
    """The text of a function of ids of nodes and their numbers."""

    def program(indptr, indices, seeds, key):
        parts = gsample.unique_nodes.default(indices, 4)
        return function(parts[0], parts[1], indices)

    return after(rewrite, program, INDPTR, INDICES, SEEDS, KEY)


def columns(ids):
    return aten.index.Tensor(torch.stack([ids - 9, ids]), [None, ids])


def held(ids, local, value=True):
    length = aten.sym_size.int(ids, 0)
    mask = aten.zeros.default([length], dtype=torch.bool)
    mask = aten.index_fill.int_Scalar(mask, 0, local, value)
    return aten.index.Tensor(ids, [mask])


def test_unique_nodes_are_sorted_by_their_bound():
    assert rewritten(lambda ids, *_: (ids.unique(),)) == text("""
        %4 = gsample.unique_nodes(indices, 4): 3 parts
        %5 = getitem(%4, 0): int64[4]
        %6 = gsample.unique_nodes(%5, 4, True): 3 parts
        %7 = getitem(%6, 0): int64[4]
        return (%7)
    """)


@pytest.mark.parametrize('unique', [torch.Tensor.unique, torch.unique])
def test_positions_and_counts_are_those_of_local_ids(unique):
    def function(ids, *_):
        node, local, count = unique(
            ids, return_inverse=True, return_counts=True
        )
        return node, local, count

    assert rewritten(function) == text("""
        %4 = gsample.unique_nodes(indices, 4): 3 parts
        %5 = getitem(%4, 0): int64[4]
        %6 = gsample.unique_nodes(%5, 4, True): 3 parts
        %7 = getitem(%6, 0): int64[4]
        %8 = getitem(%6, 1): int64[4]
        %9 = getitem(%6, 1): int64[4]
        %10 = aten.bincount(%9): int64[4]
        return (%7, %8, %10)
    """)


def test_seeds_are_nodes_once_their_columns_were_read():
    def program(indptr, indices, seeds, key):
        before = seeds.unique()
        rows = gsample.slice_cols.default(indptr, indices, seeds)[1]
        both = torch.cat([seeds, rows])
        return before, both.unique(), indices.unique()

    out = after(rewrite, program, INDPTR, INDICES, SEEDS, KEY)
    assert out == text("""
        %4 = !.unique(seeds): int64[2]
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 1): int64[8]
        %7 = aten.cat([seeds, %6]): int64[10]
        %8 = gsample.unique_nodes(%7, 4611686018427387904, True): 3 parts
        %9 = getitem(%8, 0): int64[4]
        %10 = gsample.unique_nodes(indices, 4611686018427387904, True): 3 parts
        %11 = getitem(%10, 0): int64[4]
        return (%4, %9, %11)
    """)


def test_integers_that_were_searched_are_no_nodes():
    """``rewrite_isin`` searches them as rows of a matrix."""

    def program(A, seeds):
        S, ids = A[:, seeds], seeds - 5
        kept = S.masked(torch.isin(S.edges()[0], ids))
        return kept.edge_id, ids.unique()

    args = graph(), seeds(8)
    for found, want in zip(
        compiled(program)(*args), program(*args), strict=True
    ):
        assert torch.equal(found, want)


def test_masks_keep_what_is_not_negative():
    def walked(x):
        x = (x - 2).view(2, -1).flatten()
        return x[x >= 0].unique(), x[x >= -1].unique()

    assert rewritten(lambda ids, *_: walked(ids)) == text("""
        %4 = gsample.unique_nodes(indices, 4): 3 parts
        %5 = getitem(%4, 0): int64[4]
        %6 = aten.sub.Tensor(%5, 2): int64[4]
        %7 = aten.view(%6, (2, -1)): int64[2, 2]
        %8 = aten.flatten.using_ints(%7): int64[4]
        %9 = aten.ge.Scalar(%8, 0): bool[4]
        %10 = aten.index.Tensor(%8, [%9]): int64[2]
        %11 = gsample.unique_nodes(%10, 4611686018427387904, True): 3 parts
        %12 = getitem(%11, 0): int64[2]
        %13 = aten.ge.Scalar(%8, -1): bool[4]
        %14 = aten.index.Tensor(%8, [%13]): int64[3]
        %15 = !.unique(%14): int64[3]
        return (%12, %15)
    """)


def test_masks_that_hold_everywhere_go():
    out = rewritten(lambda ids, local, _: (held(ids, local) * 2,))
    assert out == text("""
        %4 = gsample.unique_nodes(indices, 4): 3 parts
        %5 = getitem(%4, 0): int64[4]
        %6 = aten.mul.Tensor(%5, 2): int64[4]
        return (%6)
    """)


@pytest.mark.parametrize(
    ('function', 'kept'),
    [
        (lambda ids, _, rows: (rows.unique(),), '.unique('),  # any integers
        (lambda ids, *_: ((ids - 1).unique(),), '.unique('),
        (lambda ids, *_: (ids.int().unique(),), '.unique('),  # other dtype
        (lambda ids, *_: (ids.unique(sorted=False),), '.unique('),
        (lambda ids, *_: (columns(ids).unique(),), '.unique('),
        (lambda ids, *_: (ids.unique(dim=0),), '.unique('),
        (lambda ids, *_: torch.unique(ids[:, None], True, True), 'unique'),
        (lambda ids, local, _: (held(ids, local),), 'index_fill'),  # a copy
        (lambda ids, local, _: (held(ids, local, False) * 2,), 'index_fill'),
        (lambda ids, local, _: (held(ids, local[:2]) * 2,), 'index_fill'),
    ],
)
def test_others_are_left(function, kept):
    assert kept in rewritten(function)


def test_ids_changed_in_place_are_not_rewritten():
    def function(ids, *_):
        ids.view(-1).sub_(1)
        return (ids.unique(),)

    assert '.unique(' in rewritten(function)


@pytest.mark.parametrize(
    'name', ['ladies', 'fastgcn', 'as_gcn', 'saint_walk', 'saint_node']
)
def test_samplers_sort_nodes_by_their_bound(name):
    out = trace_of(name).text
    assert '.unique(' not in out
    assert 'index_fill' not in out


def test_programs_relabel_without_a_sort():
    def relabel(A, seeds):
        row = A[:, seeds].individual_sample(2).row()
        S = A[:, row.unique()].individual_sample(2)
        walked = A.random_walk(seeds, 2).nodes.flatten()
        nodes = torch.cat([seeds, row, S.coo()[0], walked[walked >= 0]])
        return nodes.unique(return_inverse=True)

    def positions(A, seeds):
        source, _ = A[:, seeds].individual_sample(2).coo()
        return torch.cat([seeds, source]).unique(return_inverse=True)

    for program in (relabel, positions):
        assert '.unique(' not in trace(program, graph(), seeds(4)).text
