"""``torch.compile(program, backend='gsample')``: one graph for a size."""

import functools
import threading

import pytest
import torch
from torch._dynamo.utils import counters

from tests.compiler.programs import AS_GCN, PROGRAMS, A, X, tensors
from torch_gsample.compiler.backend import backend
from torch_gsample.rng import make_key, program_scope
from torch_gsample.torch_private import dynamo


def counted(program, compiler=backend, **kwargs):
    """A compiled program, and the graphs that its backend is given."""
    graphs = []

    @functools.wraps(compiler)
    def count(gm, example_inputs, **options):
        graphs.append(gm)
        return compiler(gm, example_inputs, **options)

    torch._dynamo.reset()
    counters.clear()
    return torch.compile(program, backend=count, **kwargs), graphs


def eager(gm, example_inputs):
    return gm.forward


def outcome(program, *args):
    """The results of a program, and the generator's state after it."""
    torch.manual_seed(3)
    return [*tensors(program(*args)), torch.get_rng_state()]


def assert_same(first, second):
    assert len(first) == len(second) > 1
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        if a.is_floating_point():
            torch.testing.assert_close(a, b)
        else:
            assert torch.equal(a, b)


def seeds(size):
    return torch.arange(size) * 7 % 40


# Algorithms ##################################################################


#: One of each kind, which also have no seeds, and a single one: Dynamo
#: compiles both apart. `test_programs.py` runs all so, compiled once.
NONE_AND_ONE = (
    *('graphsage', 'ladies', 'labor-dependent', 'as_gcn', 'vr_gcn', 'kgcn'),
    *('hgt-timed', 'forest_fire', 'shadow', 'saint_frontier', 'pinsage'),
    *('node2vec-weighted', 'hetgnn'),
)


@pytest.mark.parametrize('name', PROGRAMS)
def test_sizes_take_four_compilations_at_most(name):
    fast, graphs = counted(PROGRAMS[name])
    few = (0, 1) if name in NONE_AND_ONE else ()
    for size in (2, 1000, *few, 7):
        args = A, seeds(size)
        assert_same(outcome(fast, *args), outcome(PROGRAMS[name], *args))
    assert not counters['graph_break']
    count = 1 if name in ('saint_node', 'saint_edge') else 2 + len(few)
    assert len(graphs) == count


@pytest.mark.parametrize('name', ['as_gcn', 'saint_walk'])
def test_another_gradient_mode_takes_three_more(name):
    fast, graphs = counted(PROGRAMS[name])
    for grad in (True, False, True):
        for size in (2, 1000, 0, 1):
            args = A, seeds(size)
            with torch.set_grad_enabled(grad):
                found = outcome(fast, *args)
                assert_same(found, outcome(PROGRAMS[name], *args))
    assert not counters['graph_break']
    assert len(graphs) == 7


def test_marked_seeds_take_one_compilation():
    fast, graphs = counted(PROGRAMS['ladies'])
    for size in (2, 1000, 0, 1):
        ids = seeds(size)
        torch._dynamo.decorators.mark_unbacked(ids, 0)
        found = outcome(fast, A, ids)
        assert_same(found, outcome(PROGRAMS['ladies'], A, seeds(size)))
    assert len(graphs) == 1


def test_samples_and_gradients_are_those_of_eager_code():
    fast, graphs = counted(AS_GCN)
    for size in (9, 4):
        outs, grads = [], []
        for program in (AS_GCN, fast):
            AS_GCN.zero_grad()
            with program_scope(make_key(1)):
                layers = program(A, torch.arange(size) * 3, [8], X)
            outs.append(tensors(layers))
            sum(layer.values().sum() for layer in layers).backward()
            grads.append(AS_GCN.weight.grad)
        torch.testing.assert_close(*outs)
        torch.testing.assert_close(*grads)
    assert len(graphs) == 2


# Programs of users ###########################################################


def unique(A, seeds):
    return A[:, A[:, seeds].row().unique()].individual_sample(2)


def nonzero(A, seeds):
    row = A[:, seeds].row()
    return A[:, row[(row > 3).nonzero().view(-1)]]


def mask(A, seeds):
    row = A[:, seeds].row()
    return A[:, row[row % 2 == 0]].individual_sample(3)


def where(A, seeds):
    (at,) = torch.where(X[A[:, seeds].row(), 0] > 0)
    return A[:, at].sum(dim=0), at


def degrees(A, seeds):
    """Nothing runs before it but a count of edges."""
    return A[:, (A.degree(1) > 3).nonzero().view(-1)].sum(dim=0), seeds


def columns(A, seeds):
    return A[:, X[:, 0] > 0], A[X[:, 1] > 0, :], seeds


def edges(A, seeds):
    kept = A.masked(A.values() > 0.1)
    return kept, kept.coo()[0].unique(), seeds


def walks(A, seeds):
    node, count = A.random_walk(seeds, 3).nodes.unique(return_counts=True)
    return A[:, node[count > 1]].individual_sample(1)


def draws(A, seeds):
    part = A[:, seeds].individual_sample(2)
    return part, part.row()[torch.unique_consecutive(part.row()) > 2]


USERS = [unique, nonzero, mask, where, degrees, columns, edges, walks]


@pytest.mark.parametrize('program', USERS, ids=lambda p: p.__name__)
def test_lengths_that_depend_on_values_are_captured(program):
    fast, graphs = counted(program)
    for size in (5, 9, 0, 1, 23):
        args = A, seeds(size)
        assert_same(outcome(fast, *args), outcome(program, *args))
    assert not counters['graph_break']
    assert len(graphs) <= 4


def first_line(A, seeds):
    seeds = seeds.unique()
    return A[:, seeds].individual_sample(2)


@pytest.mark.parametrize('fullgraph', [False, True])
def test_before_the_graph_is_used_fullgraph_captures_lengths(fullgraph):
    fast, graphs = counted(first_line, fullgraph=fullgraph)
    for size in (5, 9, 0, 1):
        args = A, seeds(size)
        assert_same(outcome(fast, *args), outcome(first_line, *args))
    # Without it, that line runs by itself, and the rest is one graph.
    assert bool(counters['graph_break']) is not fullgraph
    assert len(graphs) <= 4


def truth(A, seeds):
    row = A[:, seeds].row().unique()
    return (A[:, row].individual_sample(1) if row.numel() else A), row


def compared(A, seeds):
    part = A[:, seeds]
    return part.individual_sample(1) if part.num_edges > 10 else part


def listed(A, seeds):
    row = A[:, seeds].row().unique()
    return [A[:, torch.tensor([i])].degree(0) for i in row.tolist()], seeds


def halved(A, seeds):
    row = A[:, seeds].row().unique()
    while row.numel() > 5:
        row = row[::2]
    return A[:, row].individual_sample(1), row


def divided(A, seeds):
    row = A[:, seeds].row().unique()
    return [A[:, part].degree(0) for part in row.split(3)], row


@pytest.mark.parametrize(
    'program',
    [truth, compared, listed, halved, divided],
    ids=lambda p: p.__name__,
)
def test_python_branches_on_lengths_break_the_graph(program):
    fast, graphs = counted(program)
    for size in (5, 9, 0):
        args = A, seeds(size)
        assert_same(outcome(fast, *args), outcome(program, *args))
    assert graphs


def test_threads_capture_as_well():
    fast, graphs = counted(unique)
    errors = []

    def call():
        try:
            for size in (5, 9, 23):
                with program_scope(make_key(1)):
                    found = tensors(fast(A, seeds(size)))
                with program_scope(make_key(1)):
                    assert_same(found, tensors(unique(A, seeds(size))))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert not errors
    assert not counters['graph_break']
    assert len(graphs) == 2


def test_other_backends_are_unchanged():
    before, graphs = counted(unique, eager)
    expected = outcome(before, A, seeds(5))
    broken = len(graphs), sum(counters['graph_break'].values())
    assert min(broken) > 0
    ours, _ = counted(unique)
    assert_same(outcome(ours, A, seeds(5)), expected)
    assert not counters['graph_break']
    after, graphs = counted(unique, eager)
    assert_same(outcome(after, A, seeds(5)), expected)
    assert (len(graphs), sum(counters['graph_break'].values())) == broken
    assert not torch._dynamo.config.capture_dynamic_output_shape_ops


def test_without_the_setting_of_torch_graphs_break(monkeypatch):
    monkeypatch.setattr(dynamo, 'tls', None)
    fast, graphs = counted(unique)
    assert_same(outcome(fast, A, seeds(5)), outcome(unique, A, seeds(5)))
    assert counters['graph_break']
    assert len(graphs) > 1


@pytest.mark.parametrize('name', ['sum', 'degree'])
def test_a_dimension_may_be_a_symbol(name):
    def reduce(A, dim):
        return getattr(A, name)(dim)

    fast = torch.compile(reduce, backend='eager', dynamic=True)
    for dim in (0, 1):
        assert torch.equal(fast(A, dim), reduce(A, dim))
