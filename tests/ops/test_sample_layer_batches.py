"""Layers of several batches in one call are those of each batch alone."""

from itertools import chain

import pytest
import torch

from tests.ops.batches import SEEDS, make_keys, ptr_of
from tests.ops.cases import some_weights
from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from tests.ops.neighbors import make_graph
from tests.ops.test_plain_layers import PLAIN, weights_of
from torch_gsample import Graph, ops
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

GRAPH = random_graph(80, 500, seed=1)
NONE = torch.empty(0, dtype=torch.int64)
#: Of each batch and type: duplicates, empty ones, and nothing at all.
TYPED = [
    [[3, 9, 3], [1]],
    [[], []],
    [[], [4, 4, 0, 2]],
    [[7], []],
]


def joined(batches):
    return torch.tensor([*chain(*batches)], dtype=torch.int64)


@with_index_dtypes
@pytest.mark.parametrize('frontier', FRONTIERS)
@pytest.mark.parametrize('options', PLAIN)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_batches_equal_the_reference(name, options, frontier, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    given = weights_of(graph, **PLAIN[options])
    tensors = [graph.indptr, graph.indices]
    if 'cum_weight' in given:
        tensors.append(given.pop('cum_weight'))
    nodes = range(min(graph.num_cols, 4))
    batches = [[*nodes], [], [*nodes][:1] * 3, [*reversed(nodes)], []]
    fanouts = [1, 1] if frontier == 'walk' else [3, 2]
    out = assert_equals_reference(
        'sample_layers',
        tensors,
        [0, 0],
        [graph.num_cols],
        [joined(batches)],
        fanouts,
        [make_keys(5), make_keys(5, 2)],
        [4, 0],
        FRONTIERS.index(frontier),
        name == 'random' and frontier in FRONTIERS[:4],
        return_frontier=options != 'plain',
        ptr=[ptr_of(batches)],
        **given,
    )
    for parts, dtype in zip(
        out, (graph.indptr, graph.indices, NONE, NONE, NONE), strict=True
    ):
        assert all(part.dtype == dtype.dtype for part in parts)


@pytest.mark.parametrize('frontier', ['row', 'nodes'])
@pytest.mark.parametrize('of_relations', [False, True])
def test_typed_batches_equal_the_reference(frontier, of_relations):
    """Relations may have keys of their own."""
    first, second = random_graph(20, 90, seed=2), random_graph(20, 60, seed=3)
    draws = 4 if of_relations else 2
    assert_equals_reference(
        'sample_layers',
        [first.indptr, first.indices, second.indptr, second.indices],
        [0, 1, 1, 0],
        [20, 20],
        [joined(of_type) for of_type in zip(*TYPED, strict=True)],
        [2, 3, 3, 1],
        [make_keys(4, i) for i in range(draws)],
        list(range(draws)),
        FRONTIERS.index(frontier),
        return_frontier=True,
        ptr=[ptr_of(of_type) for of_type in zip(*TYPED, strict=True)],
    )


def alone(graph, seeds, fanouts, key, **options):
    """The layers of each batch, by itself."""
    return [
        ops.sample_layers(
            graph, s, fanouts, [k[b : b + 1].clone() for k in key], **options
        )
        for b, s in enumerate(seeds)
    ]


@pytest.mark.parametrize('frontier', FRONTIERS)
def test_the_wrapper_returns_layers_for_each_batch(frontier):
    weight = ops.cumulate_weights(GRAPH.indptr, some_weights(GRAPH))
    graph = make_graph(
        [GRAPH.indptr], [GRAPH.indices], [(0, 0)], [80], [weight]
    )
    seeds = [torch.tensor(s, dtype=torch.int64) for s in SEEDS]
    key = [make_keys(len(SEEDS)), make_keys(len(SEEDS), 2)]
    fanouts = [1, 1] if frontier == 'walk' else [4, 3]
    options = {'frontier': frontier, 'return_frontier': True}
    out = ops.sample_layer_batches(graph, seeds, fanouts, key, **options)
    want = alone(graph, seeds, fanouts, key, **options)
    for a, b in zip(out, want, strict=True):
        assert_equal_tensors(a, b)


def test_the_wrapper_takes_types_and_no_batches():
    tensors = [GRAPH.indptr] * 2, [GRAPH.indices] * 2
    graph = make_graph(*tensors, [(0, 1), (1, 0)], [80, 80])
    seeds = [[torch.tensor(s).long() for s in batch] for batch in TYPED]
    fanouts, key = [[2, 1], [1, 3]], [make_keys(4)] * 2
    out = ops.sample_layer_batches(graph, seeds, fanouts, key)
    for a, b in zip(out, alone(graph, seeds, fanouts, key), strict=True):
        assert_equal_tensors(a, b)
    assert ops.sample_layer_batches(graph, [], fanouts, key) == []


@pytest.mark.parametrize(
    ('error', 'change', 'message'),
    [
        (ValueError, {'key': [make_keys(1)]}, "'key' must have shape [2, 3]"),
        (IndexError, {'seeds': [[1], [0, 80]]}, '(got 80 at position 1)'),
        (
            ValueError,
            {'sampling': ops.Sampling(disjoint=True)},
            "'disjoint' must be False for several batches (got True)",
        ),
        (ValueError, {'frontier': 'all'}, "'frontier' must be one of row, "),
    ],
)
def test_bad_batches_end_in_an_error(error, change, message):
    given = {
        'seeds': [[1], [0, 3]],
        'fanouts': [2],
        'key': [make_keys(2)],
        'graph': Graph.from_csc(GRAPH),
    } | change
    given['seeds'] = [torch.tensor(s) for s in given['seeds']]
    with pytest.raises(error) as raised:
        ops.sample_layer_batches(**given)
    assert message in str(raised.value)
