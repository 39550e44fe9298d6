"""Fires burn as the reference says, wherever they start."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import some_seeds
from tests.ops.compare import assert_equals_reference
from tests.ops.test_properties import KEYS, graphs, seeds_of
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

PROBABILITIES = (0.0, 0.3, 0.8, 1 - 1e-12)


def burn(graph, seeds, p, key, **options):
    return assert_equals_reference(
        'forest_fire',
        graph.indptr,
        graph.indices,
        seeds,
        p,
        operator=ops.forest_fire,
        key=key,
        **options,
    )


@with_index_dtypes
@pytest.mark.parametrize('p', PROBABILITIES)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_fires_equal_the_reference(name, p, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    for seed in range(3):
        burnt = burn(graph, some_seeds(graph)[:2], p, make_key(seed))
        assert burnt.dtype == torch.int64


@given(st.data(), graphs(), KEYS, st.floats(0, 0.999))
@settings(deadline=None)
def test_fires_of_any_graph_equal_the_reference(data, graph, key, p):
    burn(graph, data.draw(seeds_of(graph.num_cols)), p, key, call_id=7)


def test_fires_differ_by_key_and_call():
    graph = small_graph('random')
    args = graph.indptr, graph.indices, torch.arange(3), 0.4
    fires = {
        tuple(ops.forest_fire(*args, key=make_key(s), call_id=c).tolist())
        for s in range(3)
        for c in range(3)
    }
    assert len(fires) == 9


def test_certain_fire_burns_all_reachable_nodes():
    indptr = torch.tensor([0, 2, 3, 3, 4])
    indices = torch.tensor([1, 2, 0, 0])
    burnt = ops.forest_fire(
        indptr, indices, torch.tensor([1, 1]), 1 - 1e-15, key=make_key(0)
    )
    assert burnt.tolist() == [0, 1, 2]
