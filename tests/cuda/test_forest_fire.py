"""Fires on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_walk import assert_same
from torch_gsample.rng import make_key

SEEDS = torch.tensor([5, 1, 5, 37])
PROBABILITIES = [0.0, 0.5, 0.9, 1 - 1e-12]


@pytest.mark.parametrize('p', PROBABILITIES)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_fires(cuda, shape, p):
    for seed in range(4):
        cuda.configure(seed, *shape)
        graph = skewed_graph(seed)
        args = *graph, SEEDS[seed % 3 :], p, make_key(seed, 1, 2), seed
        assert_same(cuda, 'forest_fire', *args)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_fires_of_dtypes(cuda, dtypes):
    cuda.configure(1, 2, 64, 20)
    indptr, indices = skewed_graph(0)
    graph = indptr.to(dtypes[0]), indices.to(dtypes[1])
    out = assert_same(cuda, 'forest_fire', *graph, SEEDS, 0.8, make_key(0))
    assert out.dtype == torch.int64
    assert out.numel() > 10


@pytest.mark.parametrize('p', [0.5, 0.999, 1 - 1e-12])
def test_a_block_spreads_the_fire_of_a_hub(cuda, p):
    indptr = torch.tensor([0, 5000, *range(5001, 6001)])
    indices = torch.arange(6000) * 7 % 1001
    for seed in range(3):
        cuda.configure(seed, 2, 96, 5)
        args = indptr, indices, EMPTY.new_zeros(1), p, make_key(seed)
        assert_same(cuda, 'forest_fire', *args)


def test_entries_that_repeat_catch_fire_once(cuda):
    indptr = torch.tensor([0, 40, 40, 40])
    indices = torch.arange(40) % 2 + 1
    for seed in range(4):
        cuda.configure(seed, 1, 32, 20)
        args = indptr, indices, EMPTY.new_zeros(2), 0.9, make_key(seed)
        assert_same(cuda, 'forest_fire', *args)


def test_a_fire_goes_a_long_way(cuda):
    indptr = torch.tensor([*range(70), 69])
    indices = torch.arange(1, 70)
    cuda.configure(3, 2, 32, 10)
    args = indptr, indices, torch.tensor([3]), 1 - 1e-12, make_key(0)
    out = assert_same(cuda, 'forest_fire', *args)
    assert out.tolist() == list(range(3, 70))


def test_nothing_burns(cuda):
    cuda.configure()
    args = torch.tensor([0, 1, 1]), torch.tensor([1]), EMPTY, 0.5, make_key(0)
    assert assert_same(cuda, 'forest_fire', *args).numel() == 0
    args = torch.tensor([0]), EMPTY, EMPTY, 0.5, make_key(0)
    assert assert_same(cuda, 'forest_fire', *args).numel() == 0


@pytest.mark.sanitize
def test_fires_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    graph = skewed_graph(0, hub=40, num_nodes=20)
    args = *graph, SEEDS[:2], 0.8, make_key(0)
    assert_same(cuda, 'forest_fire', *args)


def test_malformed_graphs_end_in_an_error(cuda):
    burn, certain = cuda.operator('forest_fire'), (1 - 1e-12, make_key(0))
    good, to = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    first = EMPTY.new_zeros(1)
    cuda.configure()
    with pytest.raises(RuntimeError, match=r"'seeds' must be in \[0, 2\) \(g"):
        burn(good, to, first + 2, *certain)
    with pytest.raises(RuntimeError, match='not at column 1 of relation 0'):
        burn(torch.tensor([0, 1, 3]), to, first, *certain)
    for bad in (-1, 2, 2**40):
        with pytest.raises(RuntimeError, match=rf'\(got {bad} at edge 1 of'):
            burn(good, torch.tensor([1, bad]), first, *certain)
