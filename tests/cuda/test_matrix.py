"""Matrix operators on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.test_neighbor_sample import DTYPES, SHAPES, skewed_graph
from tests.cuda.test_walk import assert_same, some_weights
from torch_gsample.rng import make_key

COLS = torch.tensor([5, 1, 5, 0, 37, 79, 12, 40, 77, 3, 4])
IDS = torch.arange(100, 100 + 7 * COLS.numel(), 7)
EMPTY = torch.empty(0, dtype=torch.int64)
#: None, few, the slots of a warp, more, nearly all of a hub, all.
COUNTS = [0, 1, 3, 5, 31, 32, 33, 60, 69, 70, 71, -1]
SELECTIONS = {
    'plain': {},
    'cols': {'cols': COLS},
    'cols and ids': {'cols': COLS, 'id': IDS},
}


def graph_of(dtypes, seed=0):
    graph = zip(skewed_graph(seed), dtypes, strict=True)
    return [tensor.to(dtype) for tensor, dtype in graph]


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_sliced_columns(cuda, shape, dtypes):
    graph = graph_of(dtypes)
    for seed, cols in enumerate([COLS, COLS[:1], EMPTY, torch.arange(80)]):
        cuda.configure(seed, *shape)
        assert_same(cuda, 'slice_cols', *graph, cols)


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('options', SELECTIONS.values(), ids=SELECTIONS)
def test_selected_edges(cuda, options, replace, weighted):
    indptr, indices = skewed_graph(0)
    options = options | {'replace': replace}
    if weighted:
        options['cum_weight'] = some_weights(indptr, indices.numel(), 1)
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        key = make_key(seed, 1, 2)
        assert_same(cuda, 'sample_cols', indptr, k, key, 3, **options)


@pytest.mark.parametrize('k', [511, 512, 513, 600, 699, 700, -1])
@pytest.mark.parametrize('replace', [False, True])
def test_hubs_are_taken_by_blocks(cuda, replace, k):
    indptr, indices = skewed_graph(3, hub=700)
    cum_weight = some_weights(indptr, indices.numel(), 1)
    cols = torch.tensor([5, 1])
    for weights in (None, cum_weight):
        cuda.configure(k & 7)
        args = indptr, k, make_key(9)
        options = {'cols': cols, 'cum_weight': weights, 'replace': replace}
        assert_same(cuda, 'sample_cols', *args, **options)


@pytest.mark.parametrize('seed', range(12))
def test_many_draws_of_a_column_depend_on_each_other(cuda, seed):
    """By a warp with a tree, which columns share; by lists, if uniform."""
    indptr, indices = skewed_graph(seed, hub=1500, num_nodes=60)
    weight = some_weights(indptr, indices.numel(), seed)
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    options = {'cols': torch.tensor([5, 1, 5, 37, 0, 59, 5])}
    for k in (32, 33, 38, [700, 1025, 1499][seed % 3]):
        args = 'sample_cols', indptr, k, make_key(seed), 2
        assert_same(cuda, *args, **options)
        assert_same(cuda, *args, **options, cum_weight=weight)
    narrow = indptr.int(), 40, make_key(seed)
    assert_same(cuda, 'sample_cols', *narrow, cum_weight=weight)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_selected_edges_of_all_dtypes(cuda, dtype):
    indptr = skewed_graph(1)[0].to(dtype)
    cuda.configure()
    for replace in (False, True):
        key = make_key(4)
        assert_same(cuda, 'sample_cols', indptr, 4, key, replace=replace)


@pytest.mark.parametrize('seed', range(25))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    graph = skewed_graph(2)
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    assert_same(cuda, 'slice_cols', *graph, COLS)
    assert_same(cuda, 'sample_cols', graph[0], 6, make_key(1))
    for is_sorted in (False, True):
        assert_same(cuda, 'unique_nodes', graph[1], 80, is_sorted)


@pytest.mark.parametrize('num_nodes', [0, 1, 3])
def test_matrices_without_edges(cuda, num_nodes):
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    cuda.configure()
    cols = torch.arange(num_nodes)
    assert_same(cuda, 'slice_cols', indptr, EMPTY, cols)
    for replace in (False, True):
        options = {'cols': cols, 'replace': replace}
        assert_same(cuda, 'sample_cols', indptr, 2, make_key(0), **options)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('is_sorted', [False, True])
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_distinct_nodes(cuda, shape, is_sorted, dtype):
    generator = torch.Generator().manual_seed(0)
    for num_nodes, size in [(1, 5), (64, 300), (65, 300), (5000, 300), (9, 0)]:
        cuda.configure(size + num_nodes, *shape)
        id = torch.randint(num_nodes, (size,), generator=generator)
        id = id.to(dtype)
        assert_same(cuda, 'unique_nodes', id, num_nodes, is_sorted)


def test_distinct_nodes_of_a_large_graph(cuda):
    id = torch.tensor([2**40, 3, 2**40, 2**62 - 1, 3])
    cuda.configure()
    assert_same(cuda, 'unique_nodes', id, 2**62)


def test_uniform_numbers(cuda):
    id = torch.tensor([0, 5, -3, 2**62, 5, *range(200)])
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        assert_same(cuda, 'random_uniform', id, make_key(seed), 7)
    assert_same(cuda, 'random_uniform', EMPTY, make_key(0), 7)


ASCENDS = "'indptr' must ascend from 0 to the 4 edges"
COLUMNS = {
    "'cols' must be in \\[0, 4\\) \\(got 4 at position 1": {'cols': [0, 4, 2]},
    "'cols' must be in \\[0, 4\\) \\(got -1 at position 0": {'cols': [-1]},
}
POINTERS = [[0, 2, 1, 3, 4], [0, 9, 2, 3, 4], [-5, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ('message', 'change'),
    [*COLUMNS.items(), *[(ASCENDS, {'indptr': p}) for p in POINTERS]],
)
def test_bad_columns_end_in_an_error(cuda, message, change):
    given = {'indptr': [0, 1, 2, 3, 4], 'cols': [0, 1, 2, 3]} | change
    indptr, cols = map(torch.tensor, given.values())
    cuda.configure()
    with pytest.raises(RuntimeError, match=f'slice_cols: {message}'):
        cuda.operator('slice_cols')(indptr, torch.arange(4), cols)
    for k in (-1, 2):
        with pytest.raises(RuntimeError, match=f'sample_cols: {message}'):
            cuda.operator('sample_cols')(indptr, k, make_key(0), cols=cols)


def test_slices_too_long_for_their_pointers_are_refused(cuda):
    # 1,100 copies of two million edges: more than int32 counts.
    indptr = torch.tensor([0, 2_000_000], dtype=torch.int32)
    indices = torch.zeros(2_000_000, dtype=torch.int32)
    cuda.configure()
    with pytest.raises(
        RuntimeError, match='must be int64 to count 2200000000'
    ):
        cuda.operator('slice_cols')(indptr, indices, torch.zeros(1_100).long())


@pytest.mark.parametrize('last', [-1, 3, 5, 2**62])
def test_weights_of_other_edges_end_in_an_error(cuda, last):
    indptr = torch.tensor([0, 1, 2, 3, 4])
    cum_weight = torch.ones(5, dtype=torch.int64)
    indptr[-1] = last
    cuda.configure()
    with pytest.raises(RuntimeError, match=ASCENDS):
        cuda.operator('sample_cols')(
            indptr, 2, make_key(0), cum_weight=cum_weight
        )


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('cum', [-1, 0, 2**62, -(2**63)])
def test_weights_that_are_no_sums_do_no_harm(cuda, cum, replace):
    indptr, indices = skewed_graph(0)
    cum_weight = some_weights(indptr, indices.numel(), 1)
    cum_weight[: indices.numel() : 3] = cum
    cuda.configure()
    for k in (4, 36):
        _, edge = cuda.operator('sample_cols')(
            indptr, k, make_key(0), cum_weight=cum_weight, replace=replace
        )
        assert ((edge >= 0) & (edge < indices.numel())).all()


def test_more_edges_than_int32_counts_end_in_an_error(cuda):
    size = 2**16
    indptr = torch.tensor([0, size], dtype=torch.int32)
    indices = torch.zeros(size, dtype=torch.int32)
    cols = torch.zeros(size // 2, dtype=torch.int64)
    cuda.configure()
    message = "'indptr' must be int64 "
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('slice_cols')(indptr, indices, cols)
    for replace in (False, True):
        with pytest.raises(RuntimeError, match=message):
            cuda.operator('sample_cols')(
                indptr, size, make_key(0), cols=cols, replace=replace
            )


@pytest.mark.parametrize('is_sorted', [False, True])
@pytest.mark.parametrize('bad', [-1, 9, 2**62, -(2**63)])
def test_a_node_beyond_the_graph_ends_in_an_error(cuda, bad, is_sorted):
    id = torch.tensor([0, 8, bad, 1])
    cuda.configure()
    message = rf"unique_nodes: 'id' must be in \[0, 9\) \(got {bad} at posi"
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('unique_nodes')(id, 9, is_sorted)
    with pytest.raises(RuntimeError, match=r"'id' must be in \[0, 0\)"):
        cuda.operator('unique_nodes')(id, 0, is_sorted)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('options', SELECTIONS.values(), ids=SELECTIONS)
def test_batches_have_draws_of_their_own(cuda, options, replace):
    indptr, _ = skewed_graph(0)
    last = options['cols'].numel() if 'cols' in options else 80
    ptr = torch.tensor([0, 3, 3, 7, last])
    keys = torch.cat([make_key(seed) for seed in range(4)])
    options = options | {'replace': replace, 'ptr': ptr}
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        assert_same(cuda, 'sample_cols', indptr, 4, keys, 3, **options)


@pytest.mark.parametrize('bad', [[0, 3, 2], [1, 1, 2], [0, 1, 1], [0, 9, 2]])
def test_pointers_of_batches_must_ascend(cuda, bad):
    indptr = torch.tensor([0, 1, 2])
    cuda.configure()
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 2"):
        cuda.operator('sample_cols')(
            indptr, 1, torch.cat([make_key(0)] * 2), ptr=torch.tensor(bad)
        )
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 2"):
        cuda.operator('sample_cols')(
            indptr, 1, torch.empty(0, 3).long(), ptr=torch.tensor([0])
        )


def test_weights_need_room_for_their_bits(cuda):
    indptr = torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="'cum_weight' must have at least"):
        cuda.operator('sample_cols')(
            indptr, 1, make_key(0), cum_weight=torch.ones(0).long()
        )
