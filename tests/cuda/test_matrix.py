"""Matrix operators on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.cuda.test_walk import assert_same
from torch_gsample.rng import make_key

COLS = torch.tensor([5, 1, 5, 0, 37, 79, 12, 40, 77, 3, 4])
EMPTY = torch.empty(0, dtype=torch.int64)


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


@pytest.mark.parametrize('seed', range(25))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    graph = skewed_graph(2)
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    assert_same(cuda, 'slice_cols', *graph, COLS)
    assert_same(cuda, 'sample_columns', graph[0], 6, make_key(1))
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
        assert_same(cuda, 'sample_columns', indptr, 2, make_key(0), **options)


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
        with pytest.raises(RuntimeError, match=f'sample_columns: {message}'):
            cuda.operator('sample_columns')(indptr, k, make_key(0), cols=cols)


def test_slices_too_long_for_their_pointers_are_refused(cuda):
    # 1,100 copies of two million edges: more than int32 counts.
    indptr = torch.tensor([0, 2_000_000], dtype=torch.int32)
    indices = torch.zeros(2_000_000, dtype=torch.int32)
    cuda.configure()
    with pytest.raises(
        RuntimeError, match='must be int64 to count 2200000000'
    ):
        cuda.operator('slice_cols')(indptr, indices, torch.zeros(1_100).long())


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
            cuda.operator('sample_columns')(
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
