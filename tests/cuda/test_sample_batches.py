"""Many batches in a launch against single ones, bit for bit."""

from functools import partial

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.ops import cases
from tests.ops import typed as types
from tests.ops.batches import (
    SEEDS,
    batch_arguments,
    make_keys,
    one_by_one,
    ptr_of,
)
from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import call_one
from torch_gsample.ops import _check
from torch_gsample.rng import EPOCH_SCOPE, make_key

ON_CPU = torch.ops.gsample.sample_neighbors
OPTIONS = {**cases.OPTIONS, 'no-edge': {'return_edge_id': False}}


def assert_same(cuda, indptr, indices, fanouts, batches=SEEDS, **options):
    """One launch against the CPU, batch by batch."""
    keys = options.pop('keys', make_keys(len(batches)))
    seeds, given = batch_arguments(indptr, indices, batches, **options)
    args = indptr, indices, seeds, fanouts, keys, 3
    out = call_one(cuda.operator('sample_neighbors'), *args, **given)
    want = call_one(partial(one_by_one, ON_CPU), *args, **given)
    assert_equal_tensors(out, want)
    return out


@pytest.mark.parametrize('options', OPTIONS)
def test_batches_equal_single_ones_in_any_order(cuda, options):
    for seed, fanouts in enumerate(cases.FANOUTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        assert_same(cuda, *skewed_graph(0), fanouts, **OPTIONS[options])


def test_a_launch_equals_single_launches(cuda):
    """Of the same kernel."""
    graph = skewed_graph(1)
    cuda.configure(3)
    seeds, given = batch_arguments(*graph)
    args = *graph, seeds, [4, 3, 2], make_keys(len(SEEDS)), 3
    operator = cuda.operator('sample_neighbors')
    out = call_one(operator, *args, **given)
    want = call_one(partial(one_by_one, operator), *args, **given)
    assert_equal_tensors(out, want)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_all_dtypes(cuda, dtypes):
    indptr, indices = skewed_graph(2)
    cuda.configure()
    graph = indptr.to(dtypes[0]), indices.to(dtypes[1])
    for options in OPTIONS.values():
        assert_same(cuda, *graph, [5, -1], **options)


@pytest.mark.parametrize('count', [1, 2, 64, 130])
def test_any_number_of_batches(cuda, count):
    cuda.configure(count)
    batches = [[b % 80, 5][: b % 3] for b in range(count)]
    assert_same(cuda, *skewed_graph(1), [3, 2], batches)


def test_batches_without_seeds(cuda):
    cuda.configure()
    for options in OPTIONS.values():
        assert_same(cuda, *skewed_graph(1), [3, 2], [[], [], []], **options)


def test_batches_may_share_keys_and_scopes(cuda):
    """Of each batch its own key says how it draws."""
    keys = make_keys(len(SEEDS))
    keys[2::4, 2] = EPOCH_SCOPE
    keys[3] = keys[2]
    cuda.configure()
    for disjoint in (False, True):
        args = *skewed_graph(1), [3, 2]
        assert_same(cuda, *args, keys=keys, disjoint=disjoint)


@pytest.mark.sanitize
@pytest.mark.parametrize('options', ['plain', 'weighted', 'temporal'])
def test_memory_and_order(cuda, options):
    """Few edges, as sanitizers take their time."""
    cuda.configure(1, 3, 32)
    graph = skewed_graph(1, hub=40, num_nodes=20)
    batches = [[5, 1, 5], [], [1]]
    assert_same(cuda, *graph, [3, 2], batches, **OPTIONS[options])


def test_batches_larger_than_their_bound_are_tried_again(cuda):
    """Nothing bounds the sample of a hub that many seeds name."""
    cuda.configure()
    batches = [[5] * 8, [1], [5] * 7]
    out = assert_same(cuda, *skewed_graph(0, hub=700), [-1], batches)
    assert out[0].numel() == 15 * 700


@pytest.mark.parametrize('options', ['plain', 'temporal-all'])
def test_batches_of_types_equal_single_ones(cuda, options):
    cuda.configure()
    seeds = types.some_seeds()
    graph, times, given = types.graph_and_options(
        types.some_graphs(), seeds, **cases.OPTIONS[options]
    )
    starts = [[0, 1, 1, 3], [0, 0, 2, 4], [0] * 4, [0] * 4]
    strategy = given.pop('temporal_strategy', None)
    args = (
        *(list(graph.tensors), list(graph.ends), list(graph.num_nodes)),
        *(seeds, [2, 1] * len(types.RELATIONS), make_keys(3), 3),
    )
    given |= {
        'last': strategy == 'last',
        'seed_time': times,
        'seed_ptr': [torch.tensor(p) for p in starts],
    }
    out = cuda.operator('sample_neighbors')(*args, **given)
    assert_equal_tensors(out, one_by_one(ON_CPU, *args, **given))


# Faults.


def test_a_wrong_seed_is_named_by_its_position_in_its_batch(cuda):
    cuda.configure()
    batches = [[5, 1], [], [1, 2, 80], [3]]
    with pytest.raises(IndexError, match='got 80 at position 2'):
        _check.call(partial(assert_same, cuda), *skewed_graph(0), [2], batches)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'keys': make_key(0)}, "'key' must be a contiguous .* \\[2, 3\\]"),
        ({'ptr': [0, 2]}, "'key' must be a contiguous"),
        ({'ptr': [0, 3, 2]}, "'seed_ptr' must ascend from 0 to 2"),
        ({'ptr': [0, 1, 1]}, "'seed_ptr' must ascend from 0 to 2"),
        ({'ptr': [1, 1, 2]}, "'seed_ptr' must ascend from 0 to 2"),
        ({'ptr': [0]}, "'seed_ptr' must be on the CPU and have"),
        ({'ptr': []}, "'seed_ptr' must be on the CPU and have"),
        ({'most': 9}, "'seed_ptr' and 'max_edges' must not be given to"),
    ],
)
@pytest.mark.parametrize('where', ['cpu', 'cuda'])
def test_bad_batches_end_in_an_error(cuda, where, change, message):
    cuda.configure()
    seeds = torch.tensor([1, 5])
    ptr = torch.tensor(change.get('ptr', [0, 1, 2]), dtype=torch.int64)
    keys = change.get('keys', make_keys(2))
    on_gpu = cuda.operator('sample_neighbors')
    with pytest.raises(RuntimeError, match=message):
        call_one(
            ON_CPU if where == 'cpu' else on_gpu,
            *(*skewed_graph(0), seeds, [2], keys),
            seed_ptr=[ptr],
            max_edges=change.get('most'),
        )


def test_seeds_of_all_batches_have_an_item_for_each_type(cuda):
    cuda.configure()
    given = {'seed_ptr': [ptr_of([[1], [5]])] * 2}
    args = *skewed_graph(0), torch.tensor([1, 5]), [2], make_keys(2)
    with pytest.raises(RuntimeError, match='one item for each node type'):
        call_one(cuda.operator('sample_neighbors'), *args, **given)
