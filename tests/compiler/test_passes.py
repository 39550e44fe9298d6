"""Each pass on small programs, programs it must not change, real captures."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    STATE,
    VALUE,
    after,
    aten,
    gsample,
    program,
    text,
)
from tests.compiler.programs import (
    trace_of,
)
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_common import eliminate_common
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.fuse_extract_select import (
    fuse_extract_select,
)
from torch_gsample.compiler.passes.hoist_invariant import hoist_invariant
from torch_gsample.compiler.verify import InvalidGraph, verify

# eliminate_common ############################################################


def test_equal_things_are_computed_once():
    def function(x):
        a, b = aten.neg.default(x), aten.neg.default(x)
        return aten.mul.Tensor(a, 2), aten.mul.Tensor(b, 2)

    assert after(eliminate_common, function, VALUE) == text("""
        %1 = aten.neg(x): float32[9]
        %2 = aten.mul.Tensor(%1, 2): float32[9]
        return (%2, %2)
    """)


def test_numbers_of_different_types_are_different():
    def function(i):
        return aten.mul.Tensor(i, 2), aten.mul.Tensor(i, 2.0)

    module = program(function, SEEDS)
    eliminate_common(module.graph)
    assert ir_text(module.graph).count('aten.mul') == 2


def test_keys_and_changed_tensors_do_not_merge():
    def keys(state):
        return gsample.next_key.default(state), gsample.next_key.default(state)

    module = program(keys, STATE)
    eliminate_common(module.graph)
    assert ir_text(module.graph).count('!gsample.next_key') == 2

    def changed(x):
        a, b = aten.neg.default(x), aten.neg.default(x)
        a.add_(1)
        return a, b

    after(eliminate_common, changed, VALUE)


def test_reads_before_and_after_a_change_do_not_merge():
    def function(x):
        y = x.clone()
        z = aten.view.default(y, [3, 3])
        before = aten.neg.default(z)
        y.add_(1)  # through another view
        return before, aten.neg.default(z), aten.abs.default(x)

    out = after(eliminate_common, function, VALUE)
    assert out.count('aten.neg') == 2


def test_draws_merge_only_under_one_key_and_number():
    def function(indptr, key):
        draws = [
            gsample.sample_columns.default(indptr, 1, key, call_id)[1]
            for call_id in (0, 0, 1)
        ]
        return tuple(draws)

    out = after(eliminate_common, function, INDPTR, KEY)
    assert out.count('gsample.sample_columns') == 2


# eliminate_dead ##############################################################


def test_dead_code_is_removed_except_effects():
    def function(x, state):
        aten.neg.default(aten.abs.default(x))
        gsample.next_key.default(state)
        x.clone().add_(1)
        return (aten.exp.default(x),)

    assert after(eliminate_dead, function, VALUE, STATE) == text("""
        %2 = !gsample.next_key(state): int64[1, 3]
        %3 = !.clone(x): float32[9]
        %4 = !.add_(%3, 1): float32[9]
        %5 = aten.exp(x): float32[9]
        return (%5)
    """)


# fuse_extract_select #########################################################


GRAPH = INDPTR, INDICES, VALUE, SEEDS, KEY


def clean(g):
    """The pass, then the removal of nodes without users."""
    canonicalize(g)
    eliminate_common(g)
    fuse_extract_select(g)
    eliminate_dead(g)


def fused(weights=None, other=None, own=lambda s: {}):
    def function(indptr, indices, value, seeds, key):
        parts = gsample.slice_cols.default(indptr, indices, seeds)
        begin, rows, edge = parts[0], parts[1], parts[2]
        given = {'id': seeds, 'k': 2, 'key': key, **own(seeds)}
        gathered = aten.index_select.default(value, 0, edge)
        if weights is not None:
            given['cum_weight'] = gsample.cumulate_weights.default(
                begin, weights(gathered)
            )
        sample = gsample.sample_columns.default(indptr=begin, **given)
        begins, chosen = sample[0], sample[1]
        out = [
            begins,
            aten.index_select.default(rows, 0, chosen),
            aten.index_select.default(gathered, 0, chosen),
            aten.index.Tensor(edge, [chosen]),
        ]
        if other is not None:
            out.append(other(begin, edge, chosen))
        return tuple(out)

    return after(clean, function, *GRAPH)


def test_chosen_edges_are_read_from_the_graph():
    assert fused() == text("""
        %5 = gsample.sample_columns(indptr, 2, key, cols=seeds): 2 parts
        %6 = getitem(%5, 0): int64[3]
        %7 = getitem(%5, 1): int64[4]
        %8 = aten.index_select(indices, 0, %7): int64[4]
        %9 = aten.index_select(value, 0, %7): float32[4]
        return (%6, %8, %9, %7)
    """)


def test_weights_of_the_graph_are_cumulated_for_the_graph():
    out = fused(weights=lambda w: w)
    assert 'gsample.cumulate_weights(indptr, ' in out
    assert 'slice_cols' not in out
    assert 'cols=seeds' in out


def test_an_extract_with_other_users_stays_next_to_the_fused_sample():
    out = fused(other=lambda begin, edge, chosen: aten.neg.default(edge))
    assert 'gsample.slice_cols(' in out
    assert 'cols=seeds' in out


def test_degrees_of_an_extract_are_those_of_the_graph():
    out = fused(other=lambda begin, edge, chosen: aten.diff.default(begin))
    assert 'gsample.slice_cols(' not in out
    assert '%5 = aten.diff(indptr): int64[4]' in out
    assert 'aten.index_select(%5, 0, seeds): int64[2]' in out


@pytest.mark.parametrize(
    'options',
    [
        {'weights': lambda w: aten.exp.default(w)},
        {'other': lambda begin, edge, chosen: aten.add.Tensor(chosen, 0)},
        {'own': lambda s: {'columns': [s, s]}},
    ],
)
def test_samplings_that_depend_on_the_extract_are_not_fused(options):
    assert 'cols=' not in fused(**options)


# hoist_invariant #############################################################


def test_values_of_the_graph_alone_are_marked_invariant():
    def function(value, indices, seeds):
        square = aten.pow.Tensor_Scalar(value, 2)
        total = aten.index_add.default(
            aten.new_full.default(square, [4], 0.0), 0, indices, square
        )
        return total, aten.index_select.default(total, 0, seeds)

    out = after(hoist_invariant, function, VALUE, INDICES, SEEDS)
    assert out == text("""
        ^%3 = aten.pow.Tensor_Scalar(value, 2): float32[9]
        ^%4 = aten.new_full(%3, [4], 0.0): float32[4]
        ^%5 = aten.index_add(%4, 0, indices, %3): float32[4]
        %6 = aten.index_select(%5, 0, seeds): float32[2]
        return (%5, %6)
    """)


def test_values_changed_in_place_are_not_invariant():
    def function(value):
        (total := aten.exp.default(value)).view(3, 3).add_(1)
        return total, aten.neg.default(value)

    def of_input(value):
        return value.view(3, 3).add_(0), aten.neg.default(value)

    assert '^' not in after(hoist_invariant, of_input, VALUE)
    lines = after(hoist_invariant, function, VALUE).splitlines()
    [marked] = [line for line in lines if line.startswith('^')]
    assert 'aten.neg' in marked


def test_gradients_keys_and_seeds_are_not_invariant():
    def function(value, weight, seeds, state):
        gsample.next_key.default(state)
        return (
            aten.mul.Tensor(value, weight),
            aten.add.Tensor(seeds, 1),
            aten.neg.default(value),
        )

    weight = torch.ones(9, requires_grad=True)
    out = after(hoist_invariant, function, VALUE, weight, SEEDS, STATE)
    marked = [line for line in out.splitlines() if line.startswith('^')]
    assert [line.split(' = ')[1][:8] for line in marked] == ['aten.neg']


# All #########################################################################


def test_a_broken_graph_is_found():
    module = program(lambda x: (aten.neg.default(x),), VALUE)
    nodes = list(module.graph.nodes)
    nodes[0].prepend(nodes[1])
    with pytest.raises(InvalidGraph, match='comes later'):
        verify(module.graph)
    module = program(
        lambda s: (gsample.sample_columns.default(s, 1, KEY)[1],), INDPTR
    )
    part = list(module.graph.nodes)[-2]
    part.update_arg(1, 2)
    with pytest.raises(InvalidGraph, match='takes output 2'):
        verify(module.graph)


FIRED = {
    'graphsage': {'fuse_extract_select', 'fuse_hops', 'eliminate_dead'},
    'fastgcn': {'eliminate_dead', 'hoist_invariant'},
    'ladies': {'eliminate_dead'},
    'pass': {'eliminate_common', 'eliminate_dead'},
    'deepwalk': set(),
}


@pytest.mark.parametrize('name', FIRED)
def test_passes_that_fire_on_an_algorithm(name):
    steps = trace_of(name).steps
    assert {step.name for step in steps} >= FIRED[name] | {'canonicalize'}
