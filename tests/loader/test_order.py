"""The order of an epoch is a permutation, and all of them look alike."""

import hashlib
import itertools
import math
import time

import numpy as np
import pytest

from tests.algorithms.checks import chi_square_p
from torch_gsample.loader import order
from torch_gsample.loader.order import Order

SORTED, NETWORK = order._MOST_SORTED, order._MOST_SORTED + 1


def whole(seed, epoch, size):
    return Order(seed, epoch, size).at(np.arange(size))


@pytest.fixture
def _small_networks(monkeypatch):
    monkeypatch.setattr(order, '_MOST_SORTED', 0)


@pytest.mark.parametrize(
    'size', [0, 1, 2, 3, 100, SORTED, NETWORK, 20_000, 65_536, 100_003]
)
def test_it_is_a_permutation(size):
    assert sorted(whole(3, 1, size).tolist()) == list(range(size))


@pytest.mark.usefixtures('_small_networks')
@pytest.mark.parametrize('size', [1, 2, 3, 4, 5, 7, 12, 13, 100, 9_999])
def test_a_network_of_any_size_is_a_permutation(size):
    assert sorted(whole(3, 1, size).tolist()) == list(range(size))


@pytest.mark.parametrize('size', [100, NETWORK, 100_003])
def test_parts_are_those_of_the_whole(size):
    every = whole(5, 2, size)
    positions = np.random.default_rng(0).integers(0, size, 500)
    kept = positions.copy()
    assert np.array_equal(Order(5, 2, size).at(positions), every[positions])
    assert np.array_equal(positions, kept)
    assert np.array_equal(
        Order(5, 2, size).at(np.arange(40, 57)), every[40:57]
    )


@pytest.mark.parametrize('size', [60, NETWORK])
def test_seed_epoch_and_size_change_it(size):
    first = whole(1, 0, size)
    assert np.array_equal(whole(1, 0, size), first)
    for other in (whole(2, 0, size), whole(1, 1, size)):
        same = int((other == first).sum())
        assert same < 20  # 1 is expected
    assert not np.array_equal(whole(1, 0, size + 1)[:size], first)


@pytest.mark.parametrize('size', [2, 3, 4, 5])
def test_all_permutations_are_equally_likely(size):
    count = math.factorial(size)
    index = {p: i for i, p in enumerate(itertools.permutations(range(size)))}
    seen = [0] * count
    for seed in range(100 * count):
        seen[index[tuple(whole(seed, seed % 7, size).tolist())]] += 1
    assert chi_square_p(seen, [100] * count) > 0.001


def _check_pairs(size, rounds):
    """Where two positions go, in a grid of parts of the indices."""
    pairs = [(0, 1), (0, size // 2), (3, size - 1)]
    positions = np.array(pairs).ravel()
    cells = min(size // 2, 8)
    part = np.arange(size) * cells // size
    sizes = np.bincount(part)
    seen = np.zeros((len(pairs), cells, cells), dtype=np.int64)
    for seed in range(rounds):
        ends = part[Order(seed, 0, size).at(positions)].reshape(-1, 2)
        for pair, (a, b) in enumerate(ends):
            seen[pair, a, b] += 1
    want = np.outer(sizes, sizes) - np.diag(sizes)
    expected = want / (size * (size - 1)) * rounds
    for pair in seen:
        assert chi_square_p(pair.ravel(), expected.ravel()) > 0.001


@pytest.mark.parametrize('size', [10, 100, 1000])
def test_pairs_of_positions_are_independent(size):
    _check_pairs(size, 6400)


@pytest.mark.usefixtures('_small_networks')
@pytest.mark.parametrize('size', [100, 1000])
def test_pairs_are_independent_in_small_networks(size):
    _check_pairs(size, 3200)


@pytest.mark.parametrize('size', [20_000, 100_000])
def test_neighbors_do_not_stay_neighbors(size):
    """The distances of what was side by side, and equal steps in a row."""
    seen, total = np.zeros(16), 0
    edges = 1 - np.sqrt(1 - np.arange(17) / 16)  # of equal probability
    repeated = fixed = 0
    for seed in range(6):
        steps = np.diff(whole(seed, 0, size))
        seen += np.histogram(np.abs(steps) / size, edges)[0]
        total += steps.size
        repeated += int((np.diff(steps) == 0).sum())
        fixed += int((np.abs(steps) == 1).sum())
    assert chi_square_p(seen, [total / 16] * 16) > 0.001
    # About 6 * 2 / 3 equal steps and 6 * 2 neighbours are expected.
    assert repeated < 18
    assert fixed < 30


def test_any_part_of_a_long_one_takes_microseconds():
    positions = np.arange(10**9, 10**9 + 64)
    Order(1, 0, 20_000).at(positions % 20_000)  # the first call of operators
    start = time.perf_counter()
    found = Order(1, 0, 2 * 10**9).at(positions)
    assert time.perf_counter() - start < 1.0  # 5 ms; a list would take 100 s
    assert len(set(found.tolist())) == 64


@pytest.mark.parametrize(
    ('size', 'want'),
    [
        (1000, 'b0e4b6e8c1801b50'),
        (1_000_003, 'f127ecb5f92ff9be'),
    ],
)
def test_orders_equal_golden_hashes(size, want):
    positions = np.arange(0, size, 101)
    found = Order(12, 3, size).at(positions).astype('<i8')
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == want
