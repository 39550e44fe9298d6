"""The layouts of a program: offered and chosen ones."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    VALUE,
    aten,
    gsample,
    program,
    text,
)
from tests.compiler.programs import PROGRAMS, graph, seeds, trace
from torch_gsample.compiler.errors import OptionError
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.select_layout import select_layout
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.compiler.verify import verify

GRAPH = INDPTR, INDICES, VALUE, SEEDS, KEY
ROWS = 6  # of which two have no edge


def after(function, *inputs, layout='auto'):
    """The text after the pass, which must not change the results."""
    module = program(function, *inputs)
    canonicalize(module.graph)
    eliminate_dead(module.graph)
    select_layout(module.graph, layout)
    verify(module.graph)
    module.recompile()
    expected, got = function(*inputs), module(*inputs)
    for a, b in zip(expected, got, strict=True):
        assert torch.equal(a, b)
    lines = ir_text(module.graph).splitlines(keepends=True)
    return ''.join(n for n in lines if n.startswith(('%', '^', 'return')))


# Rows of an extract ##########################################################


def sampled(weights=None, use=None, compact=False, size=ROWS):
    """Samples rows of an extract by weights that are sums of its rows."""

    def function(indptr, indices, value, seeds, key):
        extract = gsample.slice_cols.default(indptr, indices, seeds)
        rows, n = extract[1], size
        if compact:
            unique = gsample.unique_nodes.default(rows, n, True)
            ids, rows = unique[0], unique[1]
            n = aten.sym_size.int(ids, 0)
        v = aten.index_select.default(value, 0, extract[2])
        fill = aten.new_full.default(v, [n], 0.0)
        p = aten.index_add.default(fill, 0, rows, v)
        w = p if weights is None else weights(p)
        found = gsample.positive_weights.default(w)
        count, sums = aten.sym_size.int(found[0], 0), {'cum_weight': found[1]}
        drawn = gsample.sample_nodes.default(count, 2, key, **sums)[0]
        chosen = aten.index_select.default(found[0], 0, drawn)
        part = gsample.slice_rows.default(extract[0], rows, n, chosen)
        q = aten.index_select.default(w, 0, chosen)
        nodes = (
            aten.index_select.default(ids, 0, chosen) if compact else chosen
        )
        out = part[0], part[1], part[2], nodes, q
        return out if use is None else (*out, use(p, chosen))

    return function


def test_rows_of_an_extract_are_compacted():
    assert after(sampled(), *GRAPH, layout='compact') == text("""
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 1): int64[8]
        %7 = gsample.unique_nodes(%6, 6, True): 3 parts
        %8 = getitem(%7, 0): int64[4]
        %9 = getitem(%7, 1): int64[8]
        %10 = aten.sym_size.int(%8, 0): size
        %11 = getitem(%5, 2): int64[8]
        %12 = aten.index_select(value, 0, %11): float32[8]
        %13 = aten.new_full(%12, [%10], 0.0): float32[4]
        %14 = aten.index_add(%13, 0, %9, %12): float32[4]
        %15 = gsample.positive_weights(%14): 3 parts
        %16 = getitem(%15, 0): int64[4]
        %17 = aten.sym_size.int(%16, 0): size
        %18 = getitem(%15, 1): int64[5]
        %19 = gsample.sample_nodes(%17, 2, key, cum_weight=%18): 2 parts
        %20 = getitem(%19, 0): int64[2]
        %21 = aten.index_select(%16, 0, %20): int64[2]
        %22 = aten.index_select(%8, 0, %21): int64[2]
        %23 = getitem(%5, 0): int64[3]
        %24 = gsample.slice_rows(%23, %9, %10, %21): 3 parts
        %25 = aten.index_select(%14, 0, %21): float32[2]
        %26 = getitem(%24, 0): int64[3]
        %27 = getitem(%24, 1): int64[5]
        %28 = getitem(%24, 2): int64[5]
        return (%26, %27, %28, %22, %25)
    """)


def test_a_compaction_that_is_written_is_dropped():
    written = after(sampled(), *GRAPH, layout='full')
    assert after(sampled(compact=True), *GRAPH, layout='full') == written
    assert 'unique_nodes' not in written


def test_an_open_choice_computes_both():
    out = after(sampled(), *GRAPH)
    assert out.count('choose(slice_cols[0], full=') == 5
    assert out.count('gsample.slice_rows') == 2


def test_many_rows_are_not_tried_where_few_are_written():
    """All rows take memory that a compact program does not have to have."""
    out = after(sampled(compact=True, size=1 << 22), *GRAPH)
    assert 'unique_nodes' in out
    assert 'choose' not in out
    out = after(sampled(size=1 << 22), *GRAPH)
    assert 'choose' in out


def test_dense_vectors_are_read_where_rows_have_an_edge():
    dense = torch.arange(1.0, ROWS + 1)

    def function(indptr, indices, value, seeds, key, dense):
        scale = aten.add.Tensor(aten.abs.default(dense), 1)
        weights = sampled(lambda p: aten.mul.Tensor(p, scale))
        return weights(indptr, indices, value, seeds, key)

    out = after(function, *GRAPH, dense, layout='compact')
    assert 'aten.index_select(dense, 0, %' in out
    assert 'float32[6]' not in out


@pytest.mark.parametrize(
    ('weights', 'use'),
    [
        # A row without an edge could be sampled.
        (lambda p: aten.add.Tensor(p, 1.0), None),
        # A weight would depend on how a sum is rounded.
        (lambda p: aten.div.Tensor(p, aten.sum.default(p)), None),
        # Not each element by itself.
        (lambda p: aten.mul.Tensor(p, aten.softmax.int(p, 0)), None),
        # All rows are seen.
        (None, lambda p, chosen: aten.neg.default(p)),
        (None, lambda p, chosen: aten.index_select.default(p, 0, chosen * 1)),
    ],
)
def test_rows_that_are_needed_stay(weights, use):
    out = after(sampled(weights, use), *GRAPH, layout='compact')
    assert 'unique_nodes' not in out
    out = after(sampled(weights, use, True), *GRAPH, layout='full')
    assert 'unique_nodes' in out


def test_infinite_values_outside_the_extract_are_not_read():
    """0 times infinity is no weight, where a compact program never looks."""
    scale = torch.tensor([float('inf'), 1, 2, 3, float('inf'), 5])

    def function(indptr, indices, value, seeds, key):
        extract = gsample.slice_cols.default(indptr, indices, seeds[1:])
        unique = gsample.unique_nodes.default(extract[1], ROWS, True)
        v = aten.index_select.default(value, 0, extract[2])
        n = aten.sym_size.int(unique[0], 0)
        fill = aten.new_full.default(v, [n], 0.0)
        p = aten.index_add.default(fill, 0, unique[1], v)
        dense = aten.index_select.default(scale * 1, 0, unique[0])
        return gsample.positive_weights.default(aten.mul.Tensor(p, dense))

    out = after(function, *GRAPH, layout='full')
    assert 'unique_nodes' in out


def test_other_uses_of_rows_are_no_matter():
    def function(indptr, indices, value, seeds, key):
        extract = gsample.slice_cols.default(indptr, indices, seeds)
        v = aten.index_select.default(value, 0, extract[2])
        fill = aten.new_full.default(v, [ROWS], 0.0)
        p = aten.index_add.default(fill, 0, extract[1], v)
        found = gsample.positive_weights.default(p)
        wide = aten.to.dtype(extract[1], torch.float64)
        edges = aten.index_select.default(p, 0, extract[1])
        return found[0], found[1], wide, edges

    out = after(function, *GRAPH, layout='compact')
    assert 'float32[6]' not in out
    assert 'aten.to.dtype(' in out


def test_a_total_that_is_only_a_value_does_not_matter():
    def total(p, chosen):
        return aten.div.Tensor(
            aten.index_select.default(p, 0, chosen), aten.sum.default(p)
        )

    out = after(sampled(use=total), *GRAPH, layout='compact')
    assert 'float32[6]' not in out


@pytest.mark.parametrize('i', [0, 1])
def test_a_value_changed_in_place_keeps_its_layout(i):
    change = sampled(use=lambda *given: given[i].view(-1).add_(0))
    out = after(change, *GRAPH, layout='compact')
    assert 'unique' not in out


# Rows of the graph ###########################################################


def held(use=None):
    def function(indptr, indices, rows):
        part = gsample.slice_rows.default(indptr, indices, 4, rows)
        unique = gsample.unique_nodes.default(part[1], 3, True)
        out = [aten.index_select.default(rows, 0, unique[0])]
        return tuple(out if use is None else [*out, use(part, unique)])

    return function


ROWS_OF_GRAPH = INDPTR, INDICES, torch.tensor([2, 0, 2])


def test_rows_with_edges_are_counted_by_pointers():
    assert after(held(), *ROWS_OF_GRAPH, layout='csr') == text("""
        ^%3 = aten.bincount(indices, None, 4): int64[4]
        %4 = aten.index_select(%3, 0, rows): int64[3]
        %5 = aten.to.dtype(%4, torch.int64): int64[3]
        %6 = aten.repeat_interleave.Tensor(%5): int64[6]
        %7 = gsample.unique_nodes(%6, 3, True): 3 parts
        %8 = getitem(%7, 0): int64[3]
        %9 = aten.index_select(rows, 0, %8): int64[3]
        return (%9)
    """)


@pytest.mark.parametrize(
    'use',
    [
        lambda part, unique: part[0],
        lambda part, unique: aten.index_select.default(INDICES, 0, part[2]),
        lambda part, unique: unique[1],
    ],
)
def test_the_order_of_edges_is_kept_where_it_is_seen(use):
    out = after(held(use), *ROWS_OF_GRAPH, layout='csr')
    assert 'bincount' not in out


def test_costs_that_are_far_apart_are_not_measured():
    indptr = torch.tensor([0, 1 << 20, 1 << 20, 1 << 20, 1 << 20])
    indices = torch.ones(1 << 20, dtype=torch.int64)
    indices[7] = 2
    out = after(held(), indptr, indices, ROWS_OF_GRAPH[2])
    assert 'bincount' in out
    assert 'choose' not in out


# Columns #####################################################################


def column_sums(indptr, value):
    degree = aten.diff.default(indptr)
    n = aten.sym_size.int(degree, 0)
    columns = aten.repeat_interleave.self_Tensor(
        aten.arange.default(n), degree, output_size=9
    )
    zeros = aten.new_full.default(value, [n], 0.0)
    return (aten.index_add.default(zeros, 0, columns, value),)


def test_columns_are_summed_between_pointers():
    assert after(column_sums, INDPTR, VALUE, layout='csc') == text("""
        %2 = aten.segment_reduce(value, sum, offsets=indptr, unsafe=True, \
initial=0): float32[4]
        return (%2)
    """)
    out = after(column_sums, INDPTR, VALUE, layout='coo')
    assert 'aten.index_add(' in out
    assert 'choose(index_add[0], coo=' in after(column_sums, INDPTR, VALUE)


def test_sums_between_pointers_round_alike():
    """A weight may depend on them."""
    torch.manual_seed(0)
    degree = torch.tensor([0, 100_000, 1, 0, 7, 3_000, 0])
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    column = torch.arange(7).repeat_interleave(degree)
    for dtype in (torch.float32, torch.float64):
        value = torch.randn(int(indptr[-1]), dtype=dtype)
        a = torch.zeros(7, dtype=dtype).index_add(0, column, value)
        b = aten.segment_reduce.default(
            value, 'sum', offsets=indptr, unsafe=True, initial=0
        )
        assert torch.equal(a, b)


def test_sums_of_other_columns_stay():
    def function(indptr, value):
        return (
            aten.index_add.default(
                aten.new_full.default(value, [4], 0.0), 0, INDICES % 4, value
            ),
            aten.index_add.default(value[:4], 0, INDICES % 4, value),
        )

    out = after(function, INDPTR, VALUE, layout='csc')
    assert out.count('aten.index_add(') == 2


def test_values_that_need_a_gradient_are_summed_as_written():
    value = VALUE.clone().requires_grad_()
    out = after(column_sums, INDPTR, value, layout='csc')
    assert 'segment_reduce' not in out


# Options #####################################################################


@pytest.mark.parametrize(
    ('layout', 'error', 'message'),
    [
        ('dense', ValueError, r"'layout' must be in .*\(got 'dense'\)"),
        ({'x': 'dense'}, ValueError, r"'layout' must be in"),
        (3, TypeError, r"'layout' must be a string or a dict.*\(got 3\)"),
        ({'x': 3}, TypeError, r"'layout' must be a string or a dictionary"),
    ],
)
def test_layouts_are_checked(layout, error, message):
    with pytest.raises(error, match=message):
        Options.read({'layout': layout})


def test_one_node_is_chosen_by_name():
    out = after(sampled(), *GRAPH, layout={'slice_cols[0]': 'compact'})
    assert out == after(sampled(), *GRAPH, layout='compact')
    auto = {'slice_cols[0]': 'auto'}
    assert 'choose' in after(sampled(), *GRAPH, layout=auto)
    for bad in ({'slice_cols[7]': 'compact'}, {'slice_cols[0]': 'csr'}):
        with pytest.raises(OptionError, match=r"must be in \{'slice_co"):
            after(sampled(), *GRAPH, layout=bad)


# Real programs ###############################################################


def test_a_program_that_gains_nothing_is_left_alone():
    """Once it is decided, nothing of the other candidates is left."""
    others = [p.name for p in PASSES if p.name != 'select_layout']
    args = PROGRAMS['ladies'], graph(), seeds(9)
    alone = trace(*args, passes=others).text
    assert trace(*args, layout='compact').text == alone
