"""Weights that a GPU prepares against the CPU's, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES, skewed_graph
from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_walk import assert_same

DTYPES = [torch.float32, torch.float64]


def some_weights(size, dtype, seed=0):
    """Of all magnitudes, with zeros of both signs and subnormal numbers."""
    generator = torch.Generator().manual_seed(seed)
    power = torch.randint(-30, 30, (size,), generator=generator)
    weight = torch.rand(size, generator=generator) * 2.0**power
    weight[::5] = 0
    weight[1::7] = -0.0
    weight = weight.to(dtype)
    weight[2::11] = torch.finfo(dtype).smallest_normal / 8
    weight[3::29] = torch.finfo(dtype).max
    return weight


@pytest.mark.parametrize('indptr_dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('dtype', DTYPES)
def test_cumulated_weights(cuda, dtype, indptr_dtype):
    for seed, shape in enumerate(SHAPES):
        indptr, indices = skewed_graph(seed)
        indptr = indptr.to(indptr_dtype)
        for change in (1, 0):
            weight = some_weights(indices.numel(), dtype, seed) * change
            cuda.configure(seed, *shape)
            assert_same(cuda, 'cumulate_weights', indptr, weight)
    empty = torch.zeros(0, dtype=dtype)
    for num_cols in (0, 1, 130):
        indptr = torch.zeros(num_cols + 1, dtype=indptr_dtype)
        assert_same(cuda, 'cumulate_weights', indptr, empty)


@pytest.mark.parametrize('dtype', DTYPES)
def test_positive_weights(cuda, dtype):
    for seed, size in enumerate([0, 1, 5, 300]):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        weight = some_weights(size, dtype, seed)
        assert_same(cuda, 'positive_weights', weight)
        assert_same(cuda, 'positive_weights', weight * 0)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize(
    'ptr', [[0, 300], [0, 0, 7, 7, 300, 300], [0, *range(100, 301)], [0]]
)
def test_positive_weights_of_batches(cuda, ptr, dtype):
    ptr = torch.tensor(ptr)
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        weight = some_weights(int(ptr[-1]), dtype, seed)
        assert_same(cuda, 'positive_weights', weight, ptr)


@pytest.mark.sanitize
def test_weights_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    weight = some_weights(90, torch.float32)
    indptr = torch.tensor([0, 0, 70, 75, 90])
    assert_same(cuda, 'cumulate_weights', indptr, weight)
    assert_same(cuda, 'positive_weights', weight, indptr)


@pytest.mark.parametrize('bad', [-1.0, float('inf'), float('nan'), -1e-300])
def test_weights_must_be_finite_and_not_negative(cuda, bad):
    weight = torch.tensor([1.0, bad, 2.0], dtype=torch.float64)
    ptr = torch.tensor([0, 3])
    cuda.configure()
    message = "'weight' must be finite and not negative .* position 1"
    for args in (
        ('cumulate_weights', ptr, weight),
        ('positive_weights', weight),
        ('positive_weights', weight, ptr),
    ):
        with pytest.raises(RuntimeError, match=f'{args[0]}: {message}'):
            cuda.operator(args[0])(*args[1:])


@pytest.mark.parametrize('bad', [[0, 2, 1, 3], [1, 3], [0, 2], [0, 9, 3]])
def test_pointers_must_ascend(cuda, bad):
    weight, ptr = torch.ones(3), torch.tensor(bad)
    cuda.configure()
    with pytest.raises(RuntimeError, match="'indptr' must ascend from 0 to"):
        cuda.operator('cumulate_weights')(ptr, weight)
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 3"):
        cuda.operator('positive_weights')(weight, ptr)


def test_pointers_must_not_be_empty(cuda):
    with pytest.raises(RuntimeError, match="'indptr' must not be empty"):
        cuda.operator('cumulate_weights')(EMPTY, torch.ones(3))
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 3"):
        cuda.operator('positive_weights')(torch.ones(3), EMPTY)
