"""Batches of heterogeneous programs, and of matched matrices, together."""

import pytest
import torch

from tests.compiler.programs import graph, tensors, trace
from tests.compiler.test_rewrite_isin import node2vec
from tests.compiler.test_typed_hops import (
    LOOPS,
    NONE,
    SEEDS,
    A,
    assert_equal,
)
from torch_gsample import algorithms, super_batch
from torch_gsample.rng import current_program, make_key, program_scope

TOGETHER = 'several batches run together'


def hgt(A, seeds):
    return list(algorithms.hgt(A, seeds, [3, 2]).values())


def of_papers(program):
    return lambda A, seeds: program(A, {'paper': seeds})


def of_two_types(A, seeds):
    """Venues are the same for all batches."""
    return LOOPS['nodes'](A, {'paper': seeds, 'venue': torch.arange(2)})


PROGRAMS = {
    **{
        name: of_papers(LOOPS[name])
        for name in ('nodes', 'row-in-order', 'weighted', 'by-relation')
    },
    'hgt': of_papers(hgt),
    'two-types': of_two_types,
}


def keys(count):
    return torch.cat([make_key(i, 2, i + 1) for i in range(count)])


def assert_runs_together(program, A, batches):
    """Samples and their numbers of draws are those of single runs."""
    torch._dynamo.reset()
    function = super_batch(program, 8, options={'strict': True})
    key = keys(len(batches))
    with program_scope(key):
        got = function(A, batches)
        number = current_program()[1]
    for i, seeds in enumerate(batches):
        with program_scope(key[i : i + 1]):
            want = program(A, seeds)
            assert number == current_program()[1]
        assert_equal(tensors(got[i]), tensors(want))
    assert function.notes == (TOGETHER,)


@pytest.mark.filterwarnings('error:super_batch')
@pytest.mark.parametrize('name', PROGRAMS)
def test_batches_are_those_of_single_runs(name):
    assert_runs_together(PROGRAMS[name], A, SEEDS)


@pytest.mark.filterwarnings('error:super_batch')
def test_walks_by_hand_run_together():
    assert_runs_together(node2vec, graph(), SEEDS)


@pytest.mark.filterwarnings('error:super_batch')
def test_matched_matrices_run_together():
    def program(A, seeds):
        S, T = A[:, seeds], A[:, seeds * 1]
        return S.individual_sample(2, T**2), S * T

    assert 'match_edges' in compiled_text(program)
    assert_runs_together(program, graph(), SEEDS)


def compiled_text(program):
    return trace(program, graph(), SEEDS[0]).text


def test_frontiers_of_a_batch_are_its_own():
    """One batch does not see what others sampled of a type."""
    program, batch = PROGRAMS['nodes'], torch.tensor([3, 8])
    function = super_batch(program, 8)
    with program_scope(keys(1)):
        want = tensors(program(A, batch))
    for others in ([], [SEEDS[0]], [SEEDS[4], NONE]):
        key = torch.cat([keys(1), keys(3)[1 : 1 + len(others)]])
        with program_scope(key):
            got = function(A, [batch, *others])[0]
        assert_equal(tensors(got), want)
