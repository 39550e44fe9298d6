"""Many batches in a launch against single ones, bit for bit."""

from functools import partial
from itertools import chain

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


# Batches of several types and relations.

#: The seeds of each type, batch by batch: duplicates, and empty ones.
TYPED = (
    ([3, 29, 3], [0, 49, 7, 7], [], []),
    ([], [7, 0, 7], [1], []),
    ([], [], [], []),
    ([5, 3], [], [2, 2], []),
    ([29], [1, 2, 3, 4, 5, 6], [0], []),
)


def typed_arguments(batches, fanouts, scale=1, **options):
    """Arguments of the operator for batches of seeds by type."""
    of_types = list(zip(*batches, strict=True))
    seeds = [torch.tensor([*chain(*s)], dtype=torch.int64) for s in of_types]
    graph, times, given = types.graph_and_options(
        types.some_graphs(scale), seeds, scale, **options
    )
    strategy = given.pop('temporal_strategy', None)
    args = (
        *(list(graph.tensors), list(graph.ends), list(graph.num_nodes)),
        *(seeds, fanouts, make_keys(len(batches)), 3),
    )
    return args, given | {
        'last': strategy == 'last',
        'seed_time': times,
        'seed_ptr': [ptr_of(s) for s in of_types],
    }


def assert_same_types(cuda, *given, **options):
    """One launch against the CPU, batch by batch."""
    args, given = typed_arguments(*given, **options)
    out = cuda.operator('sample_neighbors')(*args, **given)
    assert_equal_tensors(out, one_by_one(ON_CPU, *args, **given))
    return out


@pytest.mark.parametrize('options', OPTIONS)
def test_batches_of_types_equal_single_ones(cuda, options):
    """Nodes of a type come from several relations, in any order."""
    for seed, fanouts in enumerate(types.FANOUTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        flat = [k for of_relation in fanouts for k in of_relation]
        assert_same_types(cuda, TYPED, flat, **OPTIONS[options])


def test_many_batches_of_types(cuda):
    """More than threads of a block, and blocks that have several."""
    batches = [
        ([b % 30, 5][: b % 3], [b % 50] * (b % 2), [b % 8], [])
        for b in range(70)
    ]
    for blocks in (1, 3, 7):
        cuda.configure(blocks, blocks, 32)
        assert_same_types(cuda, batches, [2, 1] * len(types.RELATIONS))


def test_a_launch_of_types_equals_single_launches(cuda):
    """Of the same kernel, on larger graphs."""
    cuda.configure(3)
    fanouts = [3, 2, 2] * len(types.RELATIONS)
    args, given = typed_arguments(TYPED, fanouts, 3, weighted=True)
    operator = cuda.operator('sample_neighbors')
    out = operator(*args, **given)
    assert out[0].numel() > 500
    assert_equal_tensors(out, one_by_one(operator, *args, **given))


def test_batches_of_types_larger_than_their_bound_are_tried_again(cuda):
    """Many seeds name columns of more edges than the average."""
    batches = [([3] * 400, [7] * 900, [], []), ([1], [7] * 300, [1], [])]
    cuda.configure(1, 3, 96)
    out = assert_same_types(cuda, batches, [-1] * len(types.RELATIONS))
    assert out[0].numel() > 10_000


@pytest.mark.sanitize
@pytest.mark.parametrize('options', ['plain', 'temporal-weighted'])
def test_memory_and_order_of_types(cuda, options):
    cuda.configure(1, 3, 32)
    fanouts = [2, 1] * len(types.RELATIONS)
    assert_same_types(cuda, TYPED, fanouts, **OPTIONS[options])


# Faults.


def test_a_wrong_seed_of_a_type_is_named_by_its_position_in_its_batch(cuda):
    cuda.configure()
    batches = [([3], [1, 2], [], []), ([], [5, 50], [1], [])]
    fanouts = [1] * len(types.RELATIONS)
    with pytest.raises(RuntimeError, match=r'\[0, 50\) .got 50 at position 1'):
        assert_same_types(cuda, batches, fanouts)


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
