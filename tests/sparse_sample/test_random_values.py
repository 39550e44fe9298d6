"""Random values of edges, comparisons, and masks of them."""

from unittest import mock

import pytest
import torch
from scipy.stats import chisquare

import torch_gsample as gsample
from tests.compiler.programs import graph
from tests.sparse_sample.cases import case
from torch_gsample import SparseSample, ops
from torch_gsample.rng import make_key, program_scope


def drawn(A, key=12):
    with program_scope(make_key(key)):
        return A.rand()


def test_a_number_is_a_function_of_key_and_edge():
    A, nodes = graph(), torch.tensor([7, 0, 7, 31])
    whole = drawn(A).values()
    of_id = whole[A.edge_id.argsort()]
    for part in (drawn(A[:, nodes]), drawn(A[nodes, :])):
        assert torch.equal(part.values(), of_id[part.edge_id])
    assert not torch.equal(whole, drawn(A, 13).values())
    with program_scope(make_key(12)):
        first, second = A.rand().values(), A.rand().values()
    assert torch.equal(first, whole)
    assert not torch.equal(first, second)
    # These never change.
    want = [0.90628129, 0.93836451, 0.24798287]
    assert whole[:3].tolist() == pytest.approx(want, abs=1e-8)


def test_numbers_are_uniform():
    edge_index = torch.zeros(2, 100_000, dtype=torch.int64)
    values = drawn(SparseSample.from_edge_index(edge_index)).values()
    counts = torch.histc(values, 50, 0, 1)
    assert chisquare(counts.numpy()).pvalue > 0.001


@pytest.mark.parametrize(
    'dtype', [torch.float64, torch.float32, torch.float16, torch.bfloat16]
)
def test_the_greatest_number_is_below_1(dtype):
    A = graph().to(dtype)
    most = torch.full((A.num_edges,), 1 - 2.0**-53, dtype=torch.float64)
    with mock.patch.object(ops, 'random_uniform', return_value=most):
        values = A.rand().values()
    assert values.dtype == dtype
    assert values.max() < 1


def test_values_that_are_no_fractions_get_the_default_dtype():
    A = graph()
    whole = A.with_value(torch.ones(A.num_edges, dtype=torch.int64))
    assert whole.rand().values().dtype == torch.float32


def test_bernoulli_draws_by_the_value():
    edge_index = torch.zeros(2, 40_000, dtype=torch.int64)
    probs = torch.tensor([0.0, 0.2, 0.7, 1.0]).repeat(10_000)
    A = SparseSample.from_edge_index(edge_index, probs)
    with program_scope(make_key(5)):
        held = torch.bernoulli(A).values().view(-1, 4).sum(0)
    assert held[0] == 0
    assert held[3] == 10_000
    for count, p in zip(held[1:3].tolist(), (2_000, 7_000), strict=True):
        assert chisquare([count, 10_000 - count], [p, 10_000 - p])[1] > 0.001


@pytest.mark.parametrize('layout', ['csc', 'csr', 'coo'])
@pytest.mark.parametrize('name', ['lt', 'le', 'gt', 'ge', 'eq', 'ne'])
def test_comparisons_are_those_of_a_tensor(layout, name):
    c = case('random', layout)
    compare = getattr(torch, name)
    for other in (0.5, random_like(c.matrix.num_cols)):
        c.assert_edges(compare(c.matrix, other), compare(c.place, other))
    if name in ('eq', 'ne'):  # Python compares objects
        return
    operator = f'__{name}__'
    held = getattr(c.matrix, operator)(0.5)
    c.assert_edges(held, compare(c.place, 0.5))
    values = c.matrix.values()
    kept = c.matrix.masked(held).values().sort().values
    assert torch.equal(kept, values[compare(values, 0.5)].sort().values)
    counts = held.sum(dim=0)
    assert counts.dtype == torch.int64
    assert torch.equal(counts, held.with_value(held.values().long()).sum(0))


def random_like(size):
    return torch.rand(size, dtype=torch.float64)


def test_masks_must_have_the_same_edges():
    A = graph()
    with pytest.raises(ValueError, match=r'masked: .*same edges'):
        A.masked(A[:, [0, 1]] > 0)
    with pytest.raises(ValueError, match="masked: 'mask' must be a bool"):
        A.masked(A)
    with pytest.raises(TypeError, match=r'such as A > 0.* \(got True\)'):
        A.masked(A != 0)


def program(A, seeds):
    S = A[:, seeds]
    noise = -torch.log(-torch.log(S.rand().clamp(min=1e-6)))
    kept = S.masked(S.rand() < 0.5)
    return kept, (S.log() + noise).top(2), S * torch.bernoulli(S.sigmoid())


def test_compiled_programs_and_several_batches_draw_the_same():
    A, batches = graph(), [torch.arange(9), torch.tensor([3, 1])]
    keys = torch.cat([make_key(12), make_key(13)])
    fast, together = gsample.compile(program), gsample.super_batch(program, 2)
    with program_scope(keys):
        found = together(A, batches)
    assert together.notes[0] == 'several batches run together'
    for i, seeds in enumerate(batches):
        with program_scope(keys[i : i + 1]):
            want = program(A, seeds)
        with program_scope(keys[i : i + 1]):
            compiled = fast(A, seeds)
        for first, *others in zip(want, compiled, found[i], strict=True):
            for other in others:
                assert torch.equal(other.edge_id, first.edge_id)
                torch.testing.assert_close(other.values(), first.values())
