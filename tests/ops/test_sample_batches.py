import pytest
import torch

from tests.ops import cases
from tests.ops import typed as types
from tests.ops.batches import (
    SEEDS,
    batch_arguments,
    make_keys,
    one_by_one,
)
from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from tests.ops.neighbors import call_one
from torch_gsample import Graph, ops
from torch_gsample.rng import make_key
from torch_gsample.testing import random_graph

OPERATOR = torch.ops.gsample.sample_neighbors
GRAPH = random_graph(80, 500, seed=1)


def by_name(*args, **options):
    return assert_equals_reference('sample_neighbors', *args, **options)


@pytest.mark.parametrize('options', cases.OPTIONS)
def test_batches_equal_single_ones_and_the_reference(options):
    args = GRAPH.indptr, GRAPH.indices
    seeds, given = batch_arguments(*args, **cases.OPTIONS[options])
    args = *args, seeds, [3, 2], make_keys(len(SEEDS)), 3

    def each(*args, **options):
        return one_by_one(OPERATOR, *args, **options)

    out = call_one(by_name, *args, **given)
    assert_equal_tensors(out, call_one(each, *args, **given))


@pytest.mark.parametrize('options', ['plain', 'disjoint', 'temporal'])
def test_the_wrapper_returns_a_sample_for_each_batch(options):
    """Of one relation and of several, as it is alone."""
    seeds = types.some_seeds()
    graph, times, given = types.graph_and_options(
        types.some_graphs(), seeds, **cases.OPTIONS[options]
    )
    sampling = ops.Sampling(**given)
    starts = [seeds, [s.flip(0) for s in seeds], [s[:1] for s in seeds]]
    at = None if times is None else [times, times, [t[:1] for t in times]]
    keys, fanouts = make_keys(3), [[2, 1]] * len(types.RELATIONS)
    out = ops.sample_batches(
        *(graph, starts, fanouts, keys), sampling=sampling, seed_time=at
    )
    for b, sample in enumerate(out):
        want = ops.sample_neighbors(
            *(graph, starts[b], fanouts, keys[b : b + 1].clone()),
            sampling=sampling,
            seed_time=None if at is None else at[b],
        )
        assert_equal_tensors(sample[:6], want[:6])
        assert sample[6:] == want[6:]


def test_the_wrapper_takes_integers_of_one_type():
    graph = Graph.from_csc(GRAPH)
    seeds = [torch.tensor([3, 3, 7], dtype=torch.int32), torch.tensor([])]
    seeds[1] = seeds[1].long()
    out = ops.sample_batches(graph, seeds, [2, 2], make_keys(2))
    want = ops.sample_neighbors(graph, seeds[0], [2, 2], make_keys(1))
    assert_equal_tensors(out[0][:6], want[:6])
    assert out[1].node.numel() == 0
    assert ops.sample_batches(graph, [], [2], make_keys(1)[:0]) == []


@pytest.mark.parametrize(
    ('error', 'change', 'message'),
    [
        (ValueError, {'key': make_key(0)}, "'key' must have shape [2, 3]"),
        (TypeError, {'key': None}, "'key' must be an int64 tensor"),
        (IndexError, {'seeds': [[1], [0, 80]]}, '(got 80 at position 1)'),
        (ValueError, {'seed_time': [None]}, 'one item for each of 2 batches'),
        (TypeError, {'fanouts': [0.5]}, "'fanouts' must hold integers"),
    ],
)
def test_bad_batches_end_in_an_error(error, change, message):
    given = {
        'seeds': [[1], [0, 3]],
        'fanouts': [2],
        'key': make_keys(2),
        'graph': Graph.from_csc(GRAPH),
    } | change
    given['seeds'] = [torch.tensor(s) for s in given['seeds']]
    with pytest.raises(error) as raised:
        ops.sample_batches(**given)
    assert message in str(raised.value)
