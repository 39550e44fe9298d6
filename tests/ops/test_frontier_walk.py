"""Frontiers walk as the reference says, by the law of the paper."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algorithms.checks import chi_square_p
from tests.ops.cases import some_seeds
from tests.ops.compare import assert_equals_reference
from tests.ops.test_properties import KEYS, graphs, seeds_of
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


def walk(graph, seeds, length, key, **options):
    return assert_equals_reference(
        'frontier_walk',
        graph.indptr,
        graph.indices,
        seeds,
        length,
        operator=ops.frontier_walk,
        key=key,
        **options,
    )


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_frontiers_equal_the_reference(name, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    for seed, length in enumerate((0, 1, 12)):
        walks = walk(graph, some_seeds(graph), length, make_key(seed))
        assert walks.nodes.dtype == walks.edges.dtype == torch.int64


@given(st.data(), graphs(), KEYS, st.integers(0, 20))
@settings(deadline=None)
def test_frontiers_of_any_graph_equal_the_reference(data, graph, key, length):
    walk(graph, data.draw(seeds_of(graph.num_cols)), length, key, call_id=7)


@pytest.mark.parametrize('size', [1, 2, 3, 63, 64, 65, 1000])
def test_any_number_of_walkers_equals_the_reference(size):
    """The tree of their degrees need not have a power of two as size."""
    graph = random_graph(50, 300, seed=2)
    seeds = torch.arange(size) * 7 % 50
    walk(graph, seeds, 40, make_key(size))


def test_a_step_is_uniform_over_the_edges_of_the_frontier():
    """Of walkers at 0, 0 and 2, of degrees 3, 3 and 1; 1 has none."""
    indptr, indices = torch.tensor([0, 3, 3, 4]), torch.tensor([1, 1, 2, 0])
    seeds, times = torch.tensor([0, 1, 2, 0]), 7000
    counts = Counter(
        ops.frontier_walk(
            indptr, indices, seeds, 1, key=make_key(3, batch=i)
        ).edges.item()
        for i in range(times)
    )
    expected = [times * p / 7 for p in (2, 2, 2, 1)]
    observed = [counts[edge] for edge in range(4)]
    assert chi_square_p(observed, expected) > 0.001


def test_edges_are_uniform_in_the_long_run():
    """Also those of components that hold few walkers."""
    u = torch.tensor([0, 1, 0, 2, 0, 3, 4, 5])  # a star, and a pair
    v = torch.tensor([1, 0, 2, 0, 3, 0, 5, 4])
    order = u.argsort(stable=True)
    indptr = torch.cat([torch.zeros(1).long(), u.bincount().cumsum(0)])
    seeds = torch.arange(6).repeat(50)
    edges = ops.frontier_walk(
        indptr, v[order], seeds, 80_000, key=make_key(1)
    ).edges
    share = edges.bincount(minlength=8) / edges.numel()
    assert (share - 1 / 8).abs().max() < 0.01


def test_a_frontier_without_edges_stays():
    indptr, indices = torch.tensor([0, 1, 1]), torch.tensor([1])
    for seeds, left in (
        ([0, 1], [0, -1, -1]),
        ([1], [-1] * 3),
        ([], [-1] * 3),
    ):
        nodes, edges = ops.frontier_walk(
            *(indptr, indices, torch.tensor(seeds, dtype=torch.int64), 3),
            key=make_key(0),
        )
        assert nodes.tolist() == left
        assert edges.tolist() == left


def test_frontiers_differ_by_key_and_call():
    graph = small_graph('random')
    args = graph.indptr, graph.indices, torch.arange(3), 12
    walks = {
        tuple(ops.frontier_walk(*args, key=make_key(s), call_id=c).edges)
        for s in range(3)
        for c in range(3)
    }
    assert len(walks) == 9
