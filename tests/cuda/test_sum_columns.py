"""Sums along columns on the GPU and the CPU: in order, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES, skewed_graph
from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_walk import assert_same
from tests.ops.compare import assert_equals_reference
from torch_gsample import ops

DTYPES = [torch.float32, torch.float64]


def some_values(size, dtype, width=()):
    """Of many magnitudes, so that the order of a sum shows."""
    generator = torch.Generator().manual_seed(size)
    shape = (size, *width)
    power = torch.randint(-12, 12, shape, generator=generator)
    return (torch.randn(shape, generator=generator) * 2.0**power).to(dtype)


def permutation(size):
    return torch.randperm(size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize('indptr_dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('width', [(), (1,), (3,)])
def test_sums(cuda, width, dtype, indptr_dtype):
    for seed, shape in enumerate(SHAPES):
        indptr, indices = skewed_graph(seed)
        value = some_values(indices.numel(), dtype, width)
        cuda.configure(seed, *shape)
        args = 'sum_columns', indptr.to(indptr_dtype), value
        assert_same(cuda, *args)
        assert_same(cuda, *args, permutation(indices.numel()))
    assert_same(cuda, 'sum_columns', torch.tensor([0, 0]), value[:0])


@pytest.mark.parametrize('dtype', DTYPES)
def test_sums_are_those_of_index_add(dtype):
    indptr, indices = skewed_graph(1)
    value = some_values(indices.numel(), dtype)
    column = torch.repeat_interleave(indptr.diff())
    want = value.new_zeros(80).index_add(0, column, value)
    assert torch.equal(ops.sum_columns(indptr, value), want)
    perm = permutation(indices.numel())
    stored = torch.empty_like(value).index_copy(0, perm, value)
    assert torch.equal(ops.sum_columns(indptr, stored, perm), want)


def test_sums_equal_the_reference():
    value = torch.tensor([1.0, 0.5, 4.0, -2.0], dtype=torch.float64)
    indptr = torch.tensor([0, 2, 2, 4])
    for perm in (None, torch.tensor([3, 1, 0, 2])):
        assert_equals_reference('sum_columns', indptr, value, perm)


def test_gradients():
    indptr = torch.tensor([0, 2, 2, 5])
    value = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    for perm in (None, torch.tensor([3, 1, 4, 0, 2])):
        assert torch.autograd.gradcheck(
            lambda x, perm=perm: ops.sum_columns(indptr, x, perm), value
        )


@pytest.mark.sanitize
def test_sums_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    indptr = torch.tensor([0, 3, 3, 40])
    value = some_values(40, torch.float32, (2,))
    assert_same(cuda, 'sum_columns', indptr, value, permutation(40))


@pytest.mark.parametrize('bad', [-1, 2, 2**62])
def test_places_beyond_the_values_end_in_an_error(cuda, bad):
    indptr, value = torch.tensor([0, 1, 2]), torch.ones(2)
    cuda.configure()
    sum_columns = cuda.operator('sum_columns')
    with pytest.raises(RuntimeError, match=r"'perm' must be in \[0, 2\)"):
        sum_columns(indptr, value, torch.tensor([0, bad]))
    with pytest.raises(RuntimeError, match="'indptr' must ascend from 0"):
        sum_columns(torch.tensor([0, bad, 1]), value)
    with pytest.raises(RuntimeError, match="'indptr' must not be empty"):
        sum_columns(EMPTY, value)
