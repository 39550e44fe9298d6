"""Slices of rows and induced subgraphs on the GPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.cuda.test_matrix import COLS, EMPTY, graph_of
from tests.cuda.test_walk import assert_same

NUM_NODES = 80
ROWS = torch.tensor([7, 5, 79, 0, 31, 7, 12, 7, 44])
#: Rows, some of them repeated, and columns.
SLICES = {
    'rows': (ROWS, None),
    'rows and columns': (ROWS, COLS),
    'all': (torch.arange(NUM_NODES), None),
    'no rows': (EMPTY, None),
    'no columns': (ROWS, EMPTY),
}


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_sliced_rows(cuda, shape, dtypes):
    graph = graph_of(dtypes)
    for seed, (rows, cols) in enumerate(SLICES.values()):
        cuda.configure(seed, *shape)
        args = (*graph, NUM_NODES, rows, cols)
        assert_same(cuda, 'slice_rows', *args)


@pytest.mark.parametrize('seed', range(10))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    graph = skewed_graph(seed)
    assert_same(cuda, 'slice_rows', *graph, NUM_NODES, ROWS, COLS)
    nodes = torch.randperm(NUM_NODES)[:30]
    args = (*graph, NUM_NODES, nodes, nodes)
    assert_same(cuda, 'induce_subgraph', *args)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_sliced_rows_of_batches(cuda, dtypes):
    graph = graph_of(dtypes)
    row_ptr = torch.tensor([0, 4, 4, 9])
    cols, col_ptr = COLS, torch.tensor([0, 5, 7, 11])
    parts = torch.tensor([0, 30, 30, NUM_NODES])
    whole = torch.arange(4) * NUM_NODES
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        args = 'slice_rows', *graph, NUM_NODES, ROWS
        assert_same(cuda, *args, cols, row_ptr, col_ptr)
        assert_same(cuda, *args, None, row_ptr, parts, False)
        assert_same(cuda, *args, None, row_ptr, whole)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
@pytest.mark.parametrize('trees', [False, True])
def test_induced_subgraphs(cuda, trees, dtypes):
    graph = graph_of(dtypes)
    rows = torch.tensor([5, 1, 7, 0, 37, 5, 9, 12, 77, 9])
    cols = torch.tensor([1, 5, 5, 37, 79, 0])
    batches = (None, None)
    if trees:  # numbers of trees may be any
        batches = (
            torch.tensor([0, 0, 0, 0, 1, 1, -3, 9, 9, 9]),
            torch.tensor([0, 0, 1, 1, 9, -3]),
        )
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        args = (*graph, NUM_NODES, rows, cols, *batches)
        assert_same(cuda, 'induce_subgraph', *args)
        args = (*graph, NUM_NODES, EMPTY, cols)
        assert_same(cuda, 'induce_subgraph', *args)


@pytest.mark.sanitize
def test_rows_under_a_sanitizer(cuda):
    cuda.configure(3, 2, 64, 30)
    graph = skewed_graph(0, hub=20)
    assert_same(cuda, 'slice_rows', *graph, NUM_NODES, ROWS, COLS)
    assert_same(cuda, 'induce_subgraph', *graph, NUM_NODES, COLS[:2], COLS)
    ptr = torch.tensor([0, 4, 9]), torch.tensor([0, 5, 11])
    args = (*graph, NUM_NODES, ROWS, COLS, *ptr)
    # Threads of OpenMP are not known to ThreadSanitizer.
    assert_same(cuda, 'slice_rows', *args, num_threads=1)


SMALL = torch.tensor([0, 1, 2, 3, 4]), torch.arange(4)


@pytest.mark.parametrize('bad', [-1, 4, 2**62])
def test_rows_and_columns_beyond_the_matrix_end_in_an_error(cuda, bad):
    good, bad_ids = torch.tensor([0, 1]), torch.tensor([0, bad])
    cuda.configure()
    slice_rows = cuda.operator('slice_rows')
    induce = cuda.operator('induce_subgraph')
    got = rf'must be in \[0, 4\) \(got {bad} at position 1'
    with pytest.raises(RuntimeError, match=f"slice_rows: 'rows' {got}"):
        slice_rows(*SMALL, 4, bad_ids)
    with pytest.raises(RuntimeError, match=f"slice_rows: 'cols' {got}"):
        slice_rows(*SMALL, 4, good, bad_ids)
    with pytest.raises(RuntimeError, match=f"subgraph: 'row_nodes' {got}"):
        induce(*SMALL, 4, bad_ids, good)
    with pytest.raises(RuntimeError, match=f"subgraph: 'col_nodes' {got}"):
        induce(*SMALL, 4, good, bad_ids)


@pytest.mark.parametrize('indptr', [[0, 2, 1, 3, 4], [0, 9, 2, 3, 4]])
def test_pointers_that_do_not_ascend_end_in_an_error(cuda, indptr):
    rows = torch.tensor([0, 1])
    cuda.configure()
    args = torch.tensor(indptr), SMALL[1], 4, rows
    for name, cols in (
        ('slice_rows', None),
        ('slice_rows', torch.arange(4)),
        ('induce_subgraph', torch.arange(4)),
    ):
        with pytest.raises(RuntimeError, match="'indptr' must ascend from 0"):
            cuda.operator(name)(*args, cols)


def test_indices_beyond_the_matrix_match_no_row(cuda):
    indices = torch.tensor([-1, 4, 9, 2**62])
    cuda.configure()
    rows, ptr = torch.arange(4).repeat(3), torch.tensor([0, 4, 8, 12])
    args = SMALL[0], indices, 4, rows, None, ptr, torch.arange(4) * 4
    indptr, _, _ = cuda.operator('slice_rows')(*args)
    assert not indptr.any()


@pytest.mark.parametrize('bad', [[0, 3, 2], [1, 1, 2], [0, 1, 1], [0, 1, 9]])
def test_pointers_of_batches_must_ascend(cuda, bad):
    rows, ptr = torch.tensor([0, 1]), torch.tensor([0, 1, 2])
    bad = torch.tensor(bad)
    operator = cuda.operator('slice_rows')
    cuda.configure()
    message = "'row_ptr' and 'col_ptr' must ascend from 0 to the numbers"
    with pytest.raises(RuntimeError, match=message):
        operator(*SMALL, 4, rows, rows, bad, ptr)
    with pytest.raises(RuntimeError, match=message):
        operator(*SMALL, 4, rows, rows, ptr, bad)
    with pytest.raises(RuntimeError, match=message):  # 3 and 5 columns
        operator(*SMALL, 4, rows, None, ptr, torch.tensor([0, 3, 8]))


def test_arguments_of_batches_that_do_not_fit_end_in_an_error(cuda):
    rows, ptr = torch.tensor([0, 1]), torch.tensor([0, 1, 2])
    operator = cuda.operator('slice_rows')
    with pytest.raises(RuntimeError, match="as many elements as 'row_ptr'"):
        operator(*SMALL, 4, rows, rows, ptr, ptr[:2])
    with pytest.raises(RuntimeError, match="'cols' must not be given"):
        operator(*SMALL, 4, rows, rows, ptr, ptr, False)
    with pytest.raises(RuntimeError, match='must be given together'):
        cuda.operator('induce_subgraph')(*SMALL, 4, rows, rows, rows)
    with pytest.raises(RuntimeError, match="'row_ptr' must ascend from 0"):
        operator(*SMALL, 4, rows, rows, ptr[:0], ptr[:0])


def test_slices_too_long_for_their_pointers_are_refused(cuda):
    size = 2**12
    indptr = torch.tensor([0, size], dtype=torch.int32)
    indices = torch.zeros(size, dtype=torch.int32)
    rows = torch.zeros(2**20, dtype=torch.int64)
    cuda.configure()
    with pytest.raises(RuntimeError, match="'indptr' must be int64 to count"):
        cuda.operator('slice_rows')(indptr, indices, 1, rows)
