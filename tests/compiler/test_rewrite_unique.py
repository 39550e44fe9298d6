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
from tests.compiler.programs import trace_of
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
