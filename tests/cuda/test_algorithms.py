"""All algorithms on simulated CUDA, eager and compiled.

Their graph is there, or in pinned memory.
"""

import copy

import pytest
import torch

from tests.compiler import programs as on_cpu
from tests.compiler.programs import A, X, seeds, tensors
from tests.cuda.captured import Captured
from tests.cuda.gpu import OnGpu
from tests.cuda.test_programs import assert_same
from torch_gsample import SparseSample, algorithms
from torch_gsample.rng import make_key, program_scope


def moved(module, put):
    """A copy of a module with parameters moved by a function."""
    module = copy.deepcopy(module)
    for part in module.modules():
        for tensors_of in (part._parameters, part._buffers):
            for name, tensor in tensors_of.items():
                tensors_of[name] = put(tensor.detach())
    return module


def with_module(module, *args, features=False):
    def program(put, A, s):
        more = [put(X)] if features else []
        return moved(module, put)(A, s, *args, *more)

    return program


def without_tensors(program):
    return lambda _, A, s: program(A, s)


#: Programs of operators that a GPU lacks.
ON_CPU = ('saint_frontier',)
#: Programs that are given again with them below.
TENSORS_OF_THEIR_OWN = (
    *('as_gcn', 'pass', 'vr_gcn', 'gcn_bs', 'gcn_bs-distinct', 'thanos'),
    *('kgcn', 'hetgnn', 'hgt-timed'),
)

#: As functions of what moves tensors, the graph and seeds.
ALGORITHMS = {
    **{
        k: without_tensors(p)
        for k, p in on_cpu.PROGRAMS.items()
        if k not in ON_CPU
    },
    'as_gcn': with_module(on_cpu.AS_GCN, [8, 8], features=True),
    'pass': with_module(on_cpu.PASS, [3, 2], features=True),
    'vr_gcn': with_module(on_cpu.VR_GCN, [3, 2]),
    'gcn_bs': with_module(on_cpu.GCN_BS, [3, 2]),
    'gcn_bs-distinct': with_module(on_cpu.EXP3M, [3, 2]),
    'thanos': with_module(on_cpu.THANOS, [3, 2]),
    'kgcn': lambda put, A, s: algorithms.kgcn(
        A, s, [3, 2], put(X)[s], put(on_cpu.RELATIONS), put(on_cpu.TYPE)
    ),
    'hetgnn': lambda put, A, s: algorithms.hetgnn(
        A, s, put(on_cpu.NODE_TYPE), [2, 2], 5, 3
    ),
    'hgt-timed': lambda put, A, s: on_cpu.timed_hgt(
        A, s, [4, 4], {'n': put(on_cpu.TIME['n'])}
    ),
    'shadow_ppr': lambda _, A, s: algorithms.shadow_ppr(A, s, 3).matrix,
    'seal': lambda _, A, s: algorithms.seal(A, s[:4].view(2, 2), 1).matrix,
}

#: `node2vec-weighted` cumulates the weights of the whole graph on the CPU.
WITH_SEEDS = [
    x
    for x in ALGORITHMS
    if x not in ('saint_node', 'saint_edge', 'node2vec-weighted')
]


def graph():
    """With values; the layout that a program lacks is made where it is."""
    value = torch.rand(A.num_edges, generator=torch.manual_seed(0))
    return SparseSample.from_csc(*A.to_csc()[:2], value, A.num_rows)


def draw(name, put, matrix, ids):
    with program_scope(make_key(4, 1, 2)):
        return tensors(ALGORITHMS[name](put, matrix, ids))


@pytest.mark.parametrize('name', ALGORITHMS)
def test_algorithms_run_where_their_graph_is(programs, name):
    matrix, ids = graph(), seeds(6)
    want = draw(name, lambda x: x, matrix, ids)
    with programs.running():
        there = programs.put_matrix(matrix)
        out = draw(name, programs.put, there, programs.put(ids))
    programs.assert_own()
    assert_same(programs, out, want)


@pytest.mark.parametrize('name', WITH_SEEDS)
def test_algorithms_read_a_graph_in_pinned_memory(programs, name):
    """Seeds say where to sample; of a whole matrix, the CPU computes."""
    matrix, ids = graph(), seeds(6)
    want = draw(name, lambda x: x, matrix, ids)
    with programs.running():
        pinned = programs.pin(matrix, hidden=False)
        out = draw(name, programs.put, pinned, programs.put(ids))
    assert_same(programs, out, want)


#: Programs without tensors but those of the graph and the seeds.
COMPILED = [
    x for x in on_cpu.PROGRAMS if x not in (*TENSORS_OF_THEIR_OWN, *ON_CPU)
]


def draw_compiled(programs, name, matrix, ids):
    """The draws of a program that was captured and compiled there."""
    program, ids = on_cpu.PROGRAMS[name], programs.put(ids)
    if isinstance(programs, OnGpu):
        with program_scope(make_key(4, 1, 2)):
            return tensors(programs.call_compiled(program, matrix, ids))
    captured = Captured(programs)
    with program_scope(make_key(4, 1, 2)):
        out = captured.call(program, matrix, ids)
    with programs.running():
        return [captured.real(x) for x in tensors(out)]


@pytest.mark.parametrize('name', COMPILED)
def test_compiled_algorithms_run_where_their_graph_is(programs, name):
    matrix, ids = graph(), seeds(6)
    want = draw(name, lambda x: x, matrix, ids)
    there = programs.put_matrix(matrix)
    out = draw_compiled(programs, name, there, ids)
    programs.assert_own()
    assert_same(programs, out, want)


#: One of each kind of operator: eager ones above read the graph by the same.
COMPILED_PINNED = (
    *('graphsage', 'ladies', 'labor-1', 'labor-weighted', 'hgt'),
    *('forest_fire', 'shadow', 'saint_walk', 'node2vec', 'pinsage'),
)


@pytest.mark.parametrize('name', COMPILED_PINNED)
def test_compiled_algorithms_read_a_graph_in_pinned_memory(programs, name):
    matrix, ids = graph(), seeds(6)
    want = draw(name, lambda x: x, matrix, ids)
    pinned = programs.pin(matrix, hidden=False)
    out = draw_compiled(programs, name, pinned, ids)
    assert_same(programs, out, want)
