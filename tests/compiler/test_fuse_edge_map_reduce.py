"""Reductions of edges run in the kernel that computes the edges."""

import pytest
import torch

from tests.codegen.edges import fix_numbers
from tests.compiler.golden import (
    INDICES,
    INDPTR,
    VALUE,
    after,
    text,
)
from tests.compiler.programs import trace_of
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.fuse_edge_map import fuse_edge_map
from torch_gsample.compiler.passes.fuse_edge_map_reduce import (
    fuse_edge_map_reduce,
)

TOTAL = torch.linspace(1, 2, 4)


def fuse(g):
    fix_numbers(g)
    canonicalize(g)
    fuse_edge_map(g)
    return fuse_edge_map_reduce(g)


def column(indptr, cols):
    return torch.repeat_interleave(torch.arange(cols), indptr.diff())


def test_rows_are_reduced_by_their_index():
    def function(value, indices):
        square = value**2
        return (square.new_full((4,), 0.0).index_add(0, indices, square),)

    assert after(fuse, function, VALUE, INDICES) == text("""
        %2 = edge_map_reduce[sum(pow(x0, 2.0)) by x1](value, indices, num_rows=4): float32[4]
        return (%2)
    """)  # noqa: E501


def test_columns_are_reduced_by_pointers():
    def function(value, indptr, total, cols):
        col = column(indptr, cols)
        scaled = value / total.index_select(0, col) + 1
        zeros = scaled.new_zeros(cols)
        return (zeros.index_add(0, col, scaled),)

    assert after(fuse, function, VALUE, INDPTR, TOTAL, 4) == text("""
        %4 = edge_map_reduce[sum((x0 / x2[col]) + 1.0) by col](value, indptr, total): float32[4]
        return (%4)
    """)  # noqa: E501


def test_rows_of_columns_take_both():
    def function(value, indptr, indices, total, cols):
        scaled = value / total.index_select(0, column(indptr, cols))
        zeros = scaled.new_full((cols,), 0.0)
        return (zeros.index_add(0, indices, scaled),)

    out = after(fuse, function, VALUE, INDPTR, INDICES, TOTAL, 4)
    assert out == text("""
        %5 = edge_map_reduce[sum(x0 / x2[col]) by x3](value, indptr, total, indices, num_rows=4): float32[4]
        return (%5)
    """)  # noqa: E501


@pytest.mark.parametrize('reduce', ['amax', 'amin', 'prod'])
def test_other_reductions_are_by_columns(reduce):
    def function(value, indptr, cols):
        col = column(indptr, cols)
        index = col.to(torch.int64).view(-1).expand_as(value)
        return (
            value.new_full((cols,), 1.0).scatter_reduce(
                0, index, value, reduce, include_self=False
            ),
        )

    out = after(fuse, function, VALUE, INDPTR, 4)
    assert f'= edge_map_reduce[{reduce}(x0) by col](value, indptr)' in out
    assert 'scatter_reduce' not in out


def test_a_stored_value_is_read():
    def function(value, indptr, cols):
        shared = value.exp() * 2
        col = column(indptr, cols)
        return shared.new_zeros(cols).index_add(0, col, shared), shared

    out = after(fuse, function, VALUE, INDPTR, 4)
    assert '= edge_map_reduce[sum(x0) by col](%3, indptr)' in out


@pytest.mark.parametrize(
    'function',
    [
        lambda x, i, t: (t.index_add(0, i, x * 2),),  # starts elsewhere
        lambda x, i, t: (
            x.new_full((4,), 1.0).index_add(0, i, x * 2),
        ),
        lambda x, i, t: (x.new_zeros(4).index_add(0, i, x),),  # it is stored
        lambda x, i, t: (x.new_zeros(4).index_add(0, i, x * 2, alpha=3),),
        lambda x, i, t: (
            x.new_zeros(4).scatter_reduce(
                0, i, x * 2, 'amax', include_self=False
            ),
        ),
        lambda x, i, t: (x.new_zeros(4).double().index_add(0, i, x.double()),),
    ],
)  # fmt: skip
def test_other_reductions_stay(function):
    out = after(fuse, function, VALUE, INDICES, TOTAL)
    assert 'edge_map_reduce' not in out


def test_a_maximum_that_needs_a_gradient_stays():
    def function(value, indptr, cols):
        col = column(indptr, cols)
        return (
            value.new_zeros(cols).scatter_reduce(
                0, col, value * 2, 'amax', include_self=False
            ),
        )

    value = VALUE.clone().requires_grad_()
    out = after(fuse, function, value, INDPTR, 4)
    assert 'edge_map_reduce' not in out


def test_values_changed_in_place_are_not_fused():
    def function(value, indices):
        square = value**2
        index = indices.clone()
        out = square.new_zeros(4).index_add(0, index, square)
        index.view(-1).add_(1)
        return (out,)

    assert 'edge_map_reduce' not in after(fuse, function, VALUE, INDICES)


#: Others move work to the graph, or choose another layout for it.
ALONE = (
    *('eliminate_common', 'rewrite_sddmm', 'fuse_extract_select'),
    *('eliminate_dead', 'fuse_edge_map', 'fuse_edge_map_reduce'),
)
FIRED = {
    'ladies': ['sum(pow(x0, 2.0)) by x1', 'sum(pow(x1[x0], 2.0)) by x2'],
    'ladies-trained': ['sum(x0) by col'],
    'as_gcn': ['sum(x0) by col', 'sum(x0 / x2[col]) by x3'],
    'pass': ['sum(x0) by col'],
    'gcn_bs': ['amax(x0) by col', 'sum(x0) by col'],
    'fastgcn': ['sum(pow(x0, 2.0)) by x1'],
}


@pytest.mark.parametrize('name', FIRED)
def test_reductions_of_an_algorithm(name):
    out = trace_of(name, passes=ALONE).text
    for expression in FIRED[name]:
        assert f'edge_map_reduce[{expression}]' in out
    assert 'index_add' not in out
    assert 'scatter_reduce' not in out
