"""Compiled programs give the samples of eager ones."""

import copy
import threading

import pytest
import torch

from tests.algorithms.graphs import features
from tests.compiler.captured import Captured
from tests.compiler.programs import (
    PROGRAMS,
    compiled,
    graph,
    seeds,
    tensors,
    trace,
)
from torch_gsample import SparseSample
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.rng import make_key, program_scope

A = graph()


def assert_same(first, second):
    first, second = tensors(first), tensors(second)
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        if a.is_floating_point():
            torch.testing.assert_close(a, b)
        else:
            assert torch.equal(a, b)


def run(program, args, seed, scope):
    torch.manual_seed(seed)
    if not scope:
        return program(*args)
    with program_scope(make_key(seed)):
        program(*args)  # later draws have other numbers
        return program(*args)


#: Nodes for which algorithms are offered layouts.
OFFERED = {
    'ladies': 'slice_cols[0] slice_cols[1]',
    'ladies-trained': 'slice_cols[0] index_add[2] slice_cols[1] index_add[5]',
    'as_gcn': 'index_add[0] slice_cols[0] index_add[2] slice_cols[1]',
    'pass': 'index_add[0] index_add[2]',
    'saint_node': 'slice_rows[0]',
    'pinsage': 'index_add[0]',
    'pinsage-metapath': 'index_add[0]',
    **dict.fromkeys(
        ('gcn_bs', 'thanos', 'labor-1', 'kgcn'), 'index_add[0] index_add[1]'
    ),
}
LAYOUTS = {
    'slice_cols': ('full', 'compact'),
    'slice_rows': ('csc', 'csr'),
    'index_add': ('coo', 'csc'),
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_samples_are_those_of_eager_programs(name):
    program = PROGRAMS[name]
    fast = Captured(program)
    fast(A, seeds(5))
    with torch.compiler.set_stance('fail_on_recompile'):
        for size in (5, 1, 0, 23):
            if size == 0 and name == 'as_gcn':
                continue  # its probabilities would be 0 / 0
            args = A, seeds(size, start=size)
            for scope in (False, True):
                assert_same(
                    run(fast, args, size, scope),
                    # A graph of its own, which keeps its layouts.
                    run(program, (graph(), args[1]), size, scope),
                )
    found = sites(fast.rewrite())
    assert found == OFFERED.get(name, '').split()
    layouts = {x for site in found for x in LAYOUTS[site.partition('[')[0]]}
    others = [p.name for p in PASSES if p.name != 'select_layout']
    ways = [{'layout': x} for x in sorted(layouts | {'csr', 'coo'})]
    for way in [*ways, {'passes': others}]:
        fast.rewrite(**way)
        for scope in (False, True):
            want = run(program, (graph(), seeds(9)), 3, scope)
            assert_same(run(fast, (A, seeds(9)), 3, scope), want)


def sites(trace):
    """The nodes for which layouts were offered, each by itself."""
    notes = [s.notes for s in trace.steps if s.name == 'select_layout']
    return [
        note.split(':')[0]
        for note in (notes[0] if notes else ())
        if 'together' not in note and 'draws' not in note
    ]


@pytest.mark.parametrize('name', ['graphsage', 'ladies', 'pass', 'shadow'])
def test_each_pass_alone_changes_no_sample(name):
    args = A, seeds(9)
    fast, want = Captured(PROGRAMS[name]), run(PROGRAMS[name], args, 3, True)
    assert_same(run(fast, args, 3, True), want)
    for alone in PASSES:
        fast.rewrite(passes=[alone.name])
        assert_same(run(fast, args, 3, True), want)


def test_one_compilation_without_marks_is_at_most_three():
    count = 0

    def counted(gm, example_inputs):
        nonlocal count
        count += 1
        return gm.forward

    torch._dynamo.reset()
    fast = torch.compile(PROGRAMS['ladies'], backend=counted, fullgraph=True)
    for size in (5, 9, 1, 30, 2, 17):
        fast(A, torch.arange(size))
    assert 1 <= count <= 3


def test_two_draws_of_a_program_stay_two():
    def twice(A, seeds):
        part = A[:, seeds]
        return part.individual_sample(2), part.individual_sample(2)

    fast = compiled(twice)
    for scope in (False, True):
        first, second = run(fast, (A, seeds(20)), 1, scope)
        assert not torch.equal(first.edge_id, second.edge_id)


def test_gradients_are_those_of_eager_programs():
    program = PROGRAMS['pass']
    x, args = features(40), (A, seeds(9))
    grads = []
    for function in (program, compiled(program)):
        from tests.compiler.programs import PASS

        PASS.zero_grad()
        first, second = run(function, args, 5, True)
        loss = (first.T @ x).square().sum() + (second.T @ x).sum()
        loss.backward()
        grads.append([p.grad.clone() for p in PASS.parameters()])
        assert all(grad.abs().sum() > 0 for grad in grads[-1])
    for eager, fast in zip(*grads, strict=True):
        torch.testing.assert_close(eager, fast)


def test_values_of_a_graph_that_changes_in_place_are_computed_again():
    B = A.with_value(A.values().clone())
    program = PROGRAMS['fastgcn']
    fast, args = compiled(program), (B, seeds(9))
    assert_same(run(fast, args, 1, True), run(program, args, 1, True))
    before = run(fast, args, 1, True)
    B.value[::2] *= 50
    after = run(fast, args, 1, True)
    assert_same(after, run(program, args, 1, True))
    assert not torch.equal(before[0].edge_id, after[0].edge_id)


def test_values_that_a_program_changes_are_computed_each_time():
    def program(A, seeds):
        total = A.sum(dim=0)
        total.view(2, -1).add_(1)
        return A[:, seeds].div(total[seeds], dim=0)

    fast, args = compiled(program), (A, seeds(9))
    for _ in range(3):
        assert_same(fast(*args), program(*args))


def test_keys_are_taken_between_other_draws():
    def program(A, seeds):
        first = A[:, seeds].individual_sample(2)
        noise = torch.rand(3)
        return first, noise, A[:, seeds].individual_sample(2)

    fast, args = compiled(program), (A, seeds(9))
    for scope in (False, True):
        assert_same(run(fast, args, 4, scope), run(program, args, 4, scope))


def test_graphs_take_turns():
    program = PROGRAMS['fastgcn']
    graphs = [A.with_value(A.values() ** i) for i in range(1, 5)]
    fast = compiled(program)
    for _ in range(2):
        for B in graphs:
            args = B, seeds(9)
            assert_same(run(fast, args, 1, True), run(program, args, 1, True))


def test_threads_run_one_program():
    fast, args = compiled(PROGRAMS['fastgcn']), (A, seeds(9))
    fast(*args)
    expected = [run(fast, args, i, True) for i in range(8)]
    got, errors = {}, []

    def work(i):
        try:
            with program_scope(make_key(i)):
                fast(*args)
                got[i] = fast(*args)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[i]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for i in range(8):
        assert_same(got[i], expected[i])


def test_layouts_and_widths_of_graphs_do_not_matter():
    program = PROGRAMS['ladies']
    csr = SparseSample.from_csr(*A.to_csr(), num_cols=40)
    for B in (csr, copy.copy(A).T.T):
        fast, args = compiled(program), (B, seeds(9))
        assert_same(run(fast, args, 2, True), run(program, args, 2, True))


def test_values_of_hops_carry_gradients():
    program, grads = PROGRAMS['graphsage'], []
    for function in (program, compiled(program)):
        value = A.values().clone().requires_grad_()
        with program_scope(make_key(3)):
            layers = function(A.with_value(value), seeds(9))
        sum((S.values() ** 2).sum() for S in layers).backward()
        grads.append(value.grad)
    assert grads[0].abs().sum() > 0
    torch.testing.assert_close(*grads)


def test_a_sampling_loop_is_only_samples_and_gathers():
    out = trace(PROGRAMS['graphsage'], graph(), seeds(4)).text
    assert 'slice_cols' not in out
    assert out.count('gsample.sample_') == 1
    assert '!.' not in out


def test_the_text_of_a_program_is_the_same_each_time():
    texts = {trace(PROGRAMS['shadow'], graph(), seeds(4)).text for _ in 'ab'}
    assert len(texts) == 1


def test_a_program_is_measured_and_stays_the_same():
    program, args = PROGRAMS['as_gcn'], (graph(), seeds(9))
    fast = compiled(program)
    for number in range(7):
        out = run(fast, args, number, True)
        assert_same(out, run(program, args, number, True))
