"""Chi-square tests of random selection in matrices, with fixed keys."""

import itertools
import math

import pytest
import torch

from tests.ops.test_distribution import assert_law, assert_uniform
from torch_gsample import ops
from torch_gsample.rng import make_key

CALLS = 65_536  # the draws that a program may make
SIZES = (10, 100, 1_000, 10_000, 100_000)


def some_calls(n, k, draws=40_000):
    return range(min(max(draws // k, 1), CALLS))


def nodes_of_calls(n, k, seed, **options):
    """k of n nodes in each of many calls: [calls, k]."""
    key = make_key(seed)
    return torch.stack(
        [
            ops.sample_nodes(n, k, key=key, call_id=call_id, **options)
            for call_id in some_calls(n, k)
        ]
    )


def cumulate(weight):
    return ops.cumulate_weights(torch.tensor([0, len(weight)]), weight)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('n', SIZES)
@pytest.mark.parametrize('k', [1, 5, 80, 1_000])
def test_nodes_are_sampled_uniformly(n, k, replace):
    if k >= n and not replace:
        k = n - 1
    nodes = nodes_of_calls(n, k, n + k, replace=replace)
    bins = min(n, 50)
    counts = torch.bincount(nodes.flatten() * bins // n, minlength=bins)
    size = torch.bincount(torch.arange(n) * bins // n).double()
    # A count has the variance of a hypergeometric law without replacement.
    assert_law(counts, size / n, 1 if replace else (n - 1) / (n - k))


def test_every_subset_of_nodes_is_equally_likely():
    nodes = nodes_of_calls(6, 3, 1).sort(dim=1).values
    counts = torch.unique(nodes, dim=0, return_counts=True)[1]
    assert len(counts) == math.comb(6, 3)
    assert_uniform(counts)


@pytest.mark.parametrize('k', [1, 20, 100])
@pytest.mark.parametrize('n', SIZES)
def test_weighted_nodes_follow_the_weights(n, k):
    weight = (torch.arange(n) % 10).double() ** 2
    cum = cumulate(weight)
    nodes = nodes_of_calls(n, k, n + k, cum_weight=cum, replace=True)
    law = torch.arange(10).double() ** 2
    counts = torch.bincount(nodes.flatten() % 10, minlength=10)
    assert_law(counts, law / law.sum())
    heavy = nodes[nodes % 10 == 9]
    bins = min(10, n // 10)
    if bins > 1:
        assert_uniform(torch.bincount(heavy * bins // n, minlength=bins))


@pytest.mark.parametrize('n', SIZES)
def test_first_weighted_nodes_follow_the_weights(n):
    # Without replacement: the first pick, and that no node comes twice.
    weight = (torch.arange(n) % 10).double() ** 2
    key, cum = make_key(n), cumulate(weight)
    first = []
    for call_id in range(max(400, 20_000_000 // (n * 100))):
        nodes = ops.sample_nodes(
            n, 5, key=key, call_id=call_id, cum_weight=cum
        )
        assert len(set(nodes.tolist())) == 5
        first.append(int(nodes[0]) % 10)
    law = torch.tensor([0, 1, 4, 9, 16, 25, 36, 49, 64, 81]).double()
    counts = torch.bincount(torch.tensor(first), minlength=10)
    if len(first) < 2_000:  # light nodes are too rare by themselves
        counts = torch.stack([counts[:6].sum(), *counts[6:]])
        law = torch.stack([law[:6].sum(), *law[6:]])
    assert_law(counts, law / law.sum())


def test_pairs_of_weighted_nodes_follow_the_weights_that_are_left():
    weight = torch.tensor([3.0, 0.0, 1.0, 0.25, 6.0, 0.0, 2.0])
    nodes = nodes_of_calls(7, 2, 2, cum_weight=cumulate(weight))
    law, total = torch.zeros(7, 7), weight.sum()
    for i, j in itertools.permutations(range(7), 2):
        law[i, j] = weight[i] / total * weight[j] / (total - weight[i])
    pairs = torch.bincount(nodes[:, 0] * 7 + nodes[:, 1], minlength=49)
    assert_law(pairs, law)


@pytest.mark.parametrize('n', SIZES)
@pytest.mark.parametrize('weighted', [False, True])
def test_columns_are_sampled_uniformly(n, weighted):
    degree, k = 30, 4
    indptr = torch.arange(n + 1) * degree
    cum = None
    if weighted:
        cum = ops.cumulate_weights(indptr, torch.ones(n * degree))
    calls = max(20_000 // n, 1)
    positions = torch.cat(
        [
            ops.sample_columns(
                indptr, k, key=make_key(n + 1), call_id=i, cum_weight=cum
            )[1]
            for i in range(calls)
        ]
    )
    counts = torch.bincount(positions % degree, minlength=degree)
    assert len(positions) == n * k * calls
    law = torch.full((degree,), 1 / degree)
    assert_law(counts, law, (degree - 1) / (degree - k))


@pytest.mark.parametrize('n', SIZES)
def test_numbers_are_uniform(n):
    calls = max(50_000 // n, 1)
    numbers = torch.stack(
        [
            ops.random_uniform(torch.arange(n), key=make_key(n), call_id=i)
            for i in range(calls)
        ]
    )
    assert float(numbers.min()) >= 0
    assert float(numbers.max()) < 1
    counts = torch.bincount((numbers.flatten() * 64).long(), minlength=64)
    assert_uniform(counts)
    # The bits below the first twenty, too.
    low = numbers.flatten() * 2**20 % 1
    assert_uniform(torch.bincount((low * 64).long(), minlength=64))


def first_of_eight(numbers):
    return (numbers * 8).long()


def numbers_of(ids=None, call_id=0, **key):
    ids = torch.arange(20_001) if ids is None else ids
    key = make_key(key.get('seed', 0), key.get('epoch', 0))
    return first_of_eight(ops.random_uniform(ids, key=key, call_id=call_id))


def one_of_eight_edges():
    indptr = torch.arange(20_002) * 8
    return ops.sample_columns(indptr, 1, key=make_key(0))[1] % 8


PAIRS = {
    'next id': lambda: (numbers_of()[:-1], numbers_of()[1:]),
    'next call': lambda: (numbers_of(), numbers_of(call_id=1)),
    'next seed': lambda: (numbers_of(), numbers_of(seed=1)),
    'next epoch': lambda: (numbers_of(), numbers_of(epoch=1)),
    'columns': lambda: (numbers_of(), one_of_eight_edges()),
}


@pytest.mark.parametrize('pair', PAIRS)
def test_numbers_are_independent(pair):
    first, second = PAIRS[pair]()
    assert_uniform(torch.bincount(first * 8 + second, minlength=64))
