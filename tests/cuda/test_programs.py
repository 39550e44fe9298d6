"""Whole programs on simulated CUDA draw the samples of the CPU."""

import pytest
import torch

from tests.algorithms.graphs import skewed_graph
from tests.cuda.gpu import OnGpu
from tests.cuda.simulated import OnCuda, Simulated, held
from torch_gsample import SparseSample, algorithms, ops
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample import NodeProbs

A = SparseSample.from_csc(*skewed_graph().to_csc())
SEEDS = torch.tensor([0, 3, 17])
PROGRAMS = {
    'graphsage': algorithms.graphsage,
    'weighted': lambda A, seeds, fanouts: [
        A[:, seeds].individual_sample(k, A[:, seeds].values()) for k in fanouts
    ],
    'ladies': algorithms.ladies,
    'ladies without replacement': lambda *args: algorithms.ladies(
        *args, replace=False, normalize=True
    ),
    'fastgcn': algorithms.fastgcn,
    'labor': algorithms.labor,
    'uniform rows': lambda A, seeds, fanouts: [
        A[:, seeds].collective_sample(k) for k in fanouts
    ],
    'induced': lambda A, seeds, fanouts: [A.induce(A[:, seeds].row())],
    'top': lambda A, seeds, fanouts: [A[:, seeds].top(k) for k in fanouts],
    'rows of a transpose': lambda A, seeds, fanouts: [
        A.T[seeds, :].individual_sample(k) for k in fanouts
    ],
}


@pytest.fixture
def simulated(emulated):
    emulated.configure(5, 2, 64, 10)
    return Simulated(emulated)


def draw(program, matrix, seeds):
    with program_scope(make_key(4, 1, 2)):
        return [
            part
            for S in program(matrix, seeds, [4, 5])
            for part in (*S.coo(), S.row_ids, S.edge_id, S.values())
            if part is not None
        ]


@pytest.mark.parametrize('name', PROGRAMS)
def test_programs_draw_the_samples_of_the_cpu(programs, name):
    program = PROGRAMS[name]
    want = draw(program, A, SEEDS)
    with programs.running():
        matrix = SparseSample.from_csc(*programs.put(A.to_csc()), A.num_rows)
        out = draw(program, matrix, programs.put(SEEDS))
    assert_same(programs, out, want)


def assert_same(programs, out, want):
    programs.assert_own()
    for x, y in zip(programs.get(out), want, strict=True):
        # On a GPU, only values come from sums of torch in another order.
        same = isinstance(programs, OnGpu) and y.is_floating_point()
        assert torch.allclose(x, y) if same else torch.equal(x, y)


#: Of a whole matrix in pinned memory the CPU computes, which in the emulator
#: sees rubbish there: probabilities of rows are prepared.
Q = (A**2).sum(dim=1)
PINNED = {
    **PROGRAMS,
    'fastgcn': lambda *args: algorithms.fastgcn(
        *args, NodeProbs(Q.to(args[1].device))
    ),
    'walks': lambda A, seeds, fanouts: [
        A.visit_count(seeds, 3, length) for length in fanouts
    ],
}


@pytest.mark.parametrize('layout', ['csc', 'both'])
@pytest.mark.parametrize('name', PINNED)
def test_programs_read_a_graph_in_pinned_memory(programs, name, layout):
    program, value = PINNED[name], torch.rand(A.num_edges)
    matrix = SparseSample.from_csc(*A.to_csc()[:2], value, A.num_rows)
    matrix._edge_id = torch.randperm(A.num_edges)
    want = draw(program, matrix, SEEDS)
    if layout == 'both' or name in ('rows of a transpose', 'walks'):
        # Made here: the CPU cannot read the simulated pinned memory.
        assert matrix.csr is matrix.csr
    with programs.running():
        out = draw(program, programs.pin(matrix), programs.put(SEEDS))
    assert_same(programs, out, want)


def test_matrices_are_built_on_a_gpu(simulated):
    row, col = torch.randint(9, (2, 40))
    want = SparseSample.from_coo(row, col, shape=(9, 9))
    with simulated:
        out = SparseSample.from_coo(OnCuda(row), OnCuda(col), shape=(9, 9))
        assert torch.equal(held(out.csc.indices), want.csc.indices)
        assert torch.equal(held(out.csr.indptr), want.csr.indptr)
        assert out.device == OnCuda(row).device
    assert simulated.kernels == {'coo_to_csc'}


def test_ids_beyond_the_graph_are_index_errors(simulated):
    good, bad = torch.tensor([0, 1]), torch.tensor([0, 99])
    with simulated:
        graph = OnCuda(torch.tensor([0, 1, 2])), OnCuda(torch.tensor([1, 0]))
        good, bad = OnCuda(good), OnCuda(bad)
        for call in (
            lambda: ops.slice_cols(*graph, bad),
            lambda: ops.slice_rows(*graph, 2, bad),
            lambda: ops.slice_rows(*graph, 2, good, bad),
            lambda: ops.induce_subgraph(*graph, 2, bad, good),
            lambda: ops.induce_subgraph(*graph, 2, good, bad),
            lambda: ops.coo_to_csc(bad, good, 2, 2),
            lambda: ops.coo_to_csc(good, bad, 2, 2),
        ):
            with pytest.raises(IndexError, match=r'must be in \[0, 2\)'):
                call()


def test_invalid_weights_are_value_errors(simulated):
    bad = torch.tensor([1.0, -1.0])
    with simulated:
        indptr, bad = OnCuda(torch.tensor([0, 1, 2])), OnCuda(bad)
        message = 'must be finite and not negative'
        for call in (
            lambda: ops.cumulate_weights(indptr, bad),
            lambda: ops.formats.positive_weights(bad),
            lambda: ops.formats.positive_weights(bad, ptr=indptr),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        with pytest.raises(ValueError, match='must have 2 elements'):
            ops.cumulate_weights(indptr, bad[:1])


def test_tensors_of_two_devices_do_not_meet(simulated):
    with simulated, pytest.raises(AssertionError):
        OnCuda(SEEDS) + SEEDS
