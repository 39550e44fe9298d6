"""Hops of several batches are one operator, whatever their frontier is."""

import pytest
import torch

from tests.compiler.programs import graph, tensors
from tests.compiler.test_fuse_hops import GRAPHS, LOOPS, walk
from tests.compiler.test_super_batch import batches, keys
from torch_gsample import super_batch
from torch_gsample.compiler.passes import fuse_hops
from torch_gsample.rng import program_scope

SIZES = [5, 9, 0, 3]
#: One of each frontier.
NAMED = ['row', 'nodes-sorted', 'new', 'unseen', 'edges', 'walk']


def operators(function, *args):
    """The results of a call, and its operators of this package."""
    with torch.profiler.profile() as profile:
        out = function(*args)
    names = [event.name for event in profile.events()]
    return out, [n for n in names if n.startswith('gsample::sample')]


def assert_same_batches(program, A, expected):
    torch._dynamo.reset()
    function = super_batch(program, 8, options={'strict': True})
    seeds, key = batches(SIZES), keys(len(SIZES))
    function(A, seeds)
    with program_scope(key):
        function(A, seeds)  # later draws have other numbers
        out, called = operators(function, A, seeds)
    assert function.notes == ('several batches run together',)
    assert called == expected
    for b, s in enumerate(seeds):
        with program_scope(key[b : b + 1]):
            program(A, s)
            want = tensors(program(A, s))
        for x, y in zip(tensors(out[b]), want, strict=True):
            assert x.dtype == y.dtype
            assert torch.equal(x, y)


@pytest.mark.parametrize('name', NAMED)
def test_batches_equal_single_ones(name):
    A = GRAPHS.get(name, graph())
    assert_same_batches(LOOPS[name], A, ['gsample::sample_layers'])


def steps(A, seeds):
    """Where walkers are, from where they began."""
    out, columns = [], seeds
    for _ in range(2):
        columns, _ = walk(A[:, columns].individual_sample(1), columns, None)
        out.append(columns - seeds)
    return out


def rows_of_edges(A, seeds):
    """Frontiers with a number of each edge."""
    out = []
    for k in (2, 3):
        S = A[:, seeds].individual_sample(k)
        seeds = S.edges()[0]
        out.append(seeds - S.edges()[1])
    return out


@pytest.mark.parametrize('program', [steps, rows_of_edges])
def test_frontiers_in_order_are_rows_of_their_hop(program):
    """They are computed with other values of its columns, or edges."""
    A = GRAPHS['walk']
    assert_same_batches(program, A, ['gsample::sample_layers'])


@pytest.mark.parametrize(('name', 'fused'), [('row', True), ('new', False)])
def test_a_gpu_has_the_frontiers_of_its_queue(monkeypatch, name, fused):
    """Captured on the CPU, and rewritten as for a GPU."""
    real = fuse_hops.example

    def on_gpu(node):
        value = real(node)
        return value.to('meta') if node.name.endswith('indptr') else value

    monkeypatch.setattr(fuse_hops, 'example', on_gpu)
    layers = ['gsample::sample_layers']
    columns = ['gsample::sample_columns'] * 3
    assert_same_batches(LOOPS[name], graph(), layers if fused else columns)
