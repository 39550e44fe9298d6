"""Values are computed for the edges that are selected, and for these alone."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    VALUE,
    after,
    aten,
    gsample,
    program,
    text,
)
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.raise_selections import raise_selections
from torch_gsample.compiler.passes.sink_gathers import sink_gathers


def rewrite(g):
    canonicalize(g)
    eliminate_common(g)
    raise_selections(g)
    eliminate_dead(g)


def raised(function, replace=False, trained=False):
    """The text of a function of an extract and its selection."""
    value = VALUE.clone().requires_grad_(trained)

    def run(indptr, indices, value, seeds, key):
        parts = gsample.slice_cols.default(indptr, indices, seeds)
        begin, row, edge = parts[0], parts[1], parts[2]
        x = aten.index_select.default(value, 0, edge)
        options = {'replace': True} if replace else {}
        sample = gsample.sample_columns.default(begin, 2, key, **options)
        return tuple(function(x, row, begin, sample[1]))

    return after(rewrite, run, INDPTR, INDICES, value, SEEDS, KEY)


def pick(x, index):
    return aten.index_select.default(x, 0, index)


def test_a_chain_is_computed_for_the_selected_edges():
    def function(x, row, _, chosen):
        return [pick((x * row.float()).exp(), chosen)]

    assert raised(function) == text("""
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 0): int64[3]
        %7 = getitem(%5, 1): int64[8]
        %8 = getitem(%5, 2): int64[8]
        %9 = gsample.sample_columns(%6, 2, key): 2 parts
        %10 = getitem(%9, 1): int64[4]
        %11 = aten.index_select(%8, 0, %10): int64[4]
        %12 = aten.index_select(value, 0, %11): float32[4]
        %13 = aten.index_select(%7, 0, %10): int64[4]
        %14 = aten.to.dtype(%13, torch.float32): float32[4]
        %15 = aten.mul.Tensor(%12, %14): float32[4]
        %16 = aten.exp(%15): float32[4]
        return (%16)
    """)


def test_a_length_is_read_from_a_value_that_remains():
    def function(x, _, begin, chosen):
        y = (x * 2).exp()
        return [pick(y, chosen), begin.new_zeros(aten.sym_size.int(y, 0))]

    out = raised(function)
    assert 'aten.sym_size.int(%7, 0): size' in out
    assert '%7 = getitem(%5, 2): int64[8]' in out
    assert 'float32[8]' not in out


def test_each_selection_has_its_own_chain():
    def function(x, row, begin, chosen):
        other = gsample.sample_columns.default(begin, 1, KEY, 4)[1]
        y = x.exp()
        return [pick(y, chosen), pick(y, other), pick(y, chosen) * 2]

    out = raised(function)
    assert out.count('aten.exp') == 2
    assert 'float32[8]' not in out


def test_nested_selections_use_raised_values():
    def function(x, _, begin, chosen):
        y = pick(x.exp(), chosen)
        begin = aten.clamp.default(begin, 0, 4)
        again = gsample.sample_columns.default(begin, 1, KEY, 4)[1]
        return [pick(y / y.sum() + y, again), y]

    assert raised(function) == text("""
        %5 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        %6 = getitem(%5, 0): int64[3]
        %7 = getitem(%5, 2): int64[8]
        %8 = gsample.sample_columns(%6, 2, key): 2 parts
        %9 = getitem(%8, 1): int64[4]
        %10 = aten.index_select(%7, 0, %9): int64[4]
        %11 = aten.index_select(value, 0, %10): float32[4]
        %12 = aten.exp(%11): float32[4]
        %13 = aten.clamp(%6, 0, 4): int64[3]
        %14 = _tensor_constant0(): int64[1, 3]
        %15 = gsample.sample_columns(%13, 1, %14, 4): 2 parts
        %16 = getitem(%15, 1): int64[1]
        %17 = aten.sum(%12): float32[]
        %18 = aten.index_select(%12, 0, %16): float32[1]
        %19 = aten.div.Tensor(%18, %17): float32[1]
        %20 = aten.add.Tensor(%19, %18): float32[1]
        return (%20, %12)
    """)


def test_gathers_of_the_program_are_not_repeated():
    def function(x, row, begin, chosen):
        y = (x * row).exp()
        return [pick(y, chosen), pick(row, chosen)]

    assert raised(function).count('index_select') == 3  # edge, value, row


def test_second_run_changes_nothing():
    def run(indptr, indices, value, seeds, key):
        sliced = gsample.slice_cols.default(indptr, indices, seeds)
        begin, edge = sliced[0], sliced[2]
        chosen = gsample.sample_columns.default(begin, 2, key)[1]
        x = pick(value, edge)
        return pick(x**2, chosen), pick(x, chosen)

    module = program(run, INDPTR, INDICES, VALUE, SEEDS, KEY)
    rewrite(module.graph)
    out = ir_text(module.graph)
    assert raise_selections(module.graph) == []
    assert sink_gathers(module.graph) == []  # the edges that it would put back
    assert ir_text(module.graph) == out


def changed(x):
    x.view(2, 2).add_(1)
    return [x]


def drawn(begin, weight):
    cumulated = gsample.cumulate_weights.default(begin, weight)
    return gsample.sample_columns.default(begin, 2, KEY, cum_weight=cumulated)[
        1
    ]


@pytest.mark.parametrize(
    'function',
    [
        # somebody else uses the values of all edges
        lambda x, row, begin, i: [pick(x.exp(), i), x.exp()],
        lambda x, row, begin, i: [pick(x.exp(), i), x.exp().sum()],
        lambda x, row, begin, i: [pick(x.exp(), drawn(begin, x.exp()))],
        # not by rows: along the edges, or of an unknown dimension
        lambda x, row, begin, i: [pick(x.cumsum(0), i)],
        lambda x, row, begin, i: [pick(x.softmax(0), i)],
        lambda x, row, begin, i: [pick(x.flip(0), i)],
        lambda x, row, begin, i: [pick(x.view(4, 2).sum(1), i % 4)],
        lambda x, row, begin, i: [pick(torch.cat([x.exp(), x]), i)],
        # any index: there may be fewer values than selected edges
        lambda x, row, begin, i: [pick(x.exp(), row[:2])],
        # draws depend on the bits
        lambda x, row, begin, i: [
            gsample.positive_weights.default(pick(x.exp(), i))[1]
        ],
        # changed in place
        lambda x, row, begin, i: changed(pick(x.exp(), i)),
    ],
)
def test_values_with_other_users_or_without_rows_stay(function):
    out = raised(function)
    assert 'aten.index_select(value, 0, %' in out
    assert 'float32[8]' in out


def test_exact_values_that_draws_depend_on_are_raised():
    def function(x, row, begin, i):
        return [gsample.positive_weights.default(pick(x * x, i))[1]]

    out = raised(function)
    assert 'float32[8]' not in out


def test_a_part_of_a_chain_is_raised_above_values_with_other_users():
    def function(x, row, begin, chosen):
        y = x.exp()
        return [pick(y.tanh(), chosen), y.sum()]

    out = raised(function)
    assert 'aten.exp(%8): float32[8]' in out
    assert 'aten.tanh(%12): float32[4]' in out


def test_values_of_the_graph_alone_stay_before_their_gather():
    def run(indptr, indices, value, seeds, key):
        chosen = gsample.sample_columns.default(indptr, 2, key, cols=seeds)[1]
        return (pick(value.exp(), chosen),)

    def text_of(value):
        return after(rewrite, run, INDPTR, INDICES, value, SEEDS, KEY)

    assert 'aten.exp(value): float32[9]' in text_of(VALUE)
    trained = VALUE.clone().requires_grad_()
    assert 'float32[9]' not in text_of(trained)  # not computed once

    def extract(indptr, indices, value, seeds, key):
        edge = gsample.slice_cols.default(indptr, indices, seeds)[2]
        return (pick(value.exp(), edge),)

    inputs = INDPTR, INDICES, trained, SEEDS, KEY
    assert 'float32[9]' not in after(rewrite, extract, *inputs)
