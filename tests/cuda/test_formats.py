"""Compressed columns on the GPU against the CPU's, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.cuda.test_matrix import EMPTY, graph_of
from tests.cuda.test_walk import assert_same
from tests.ops.compare import assert_equal_tensors

WIDTHS = [(False, False), (True, False), (True, True)]


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('widths', WIDTHS, ids=str)
def test_sorted_edges(cuda, widths, dtype):
    generator = torch.Generator().manual_seed(0)
    for seed, (size, num_cols) in enumerate([(300, 17), (5, 90), (0, 3)]):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        edges = torch.randint(num_cols, (2, size), generator=generator)
        row, col = edges.to(dtype)
        assert_same(cuda, 'coo_to_csc', row, col, num_cols, *widths)
    empty = EMPTY.to(dtype)
    assert_same(cuda, 'coo_to_csc', empty, empty, 0, *widths)


@pytest.fixture
def few_at_once(cuda):
    """Lets torch sort at most 40 numbers, as it sorts 2**31 - 1 of a GPU."""
    cuda.sort_at_once(40)
    yield cuda
    cuda.sort_at_once(2**31 - 1)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_more_edges_than_torch_sorts(few_at_once, dtype):
    generator = torch.Generator().manual_seed(1)
    for seed, (size, num_cols) in enumerate([(333, 7), (41, 90), (81, 1)]):
        few_at_once.configure(seed, *SHAPES[seed % len(SHAPES)])
        row, col = torch.randint(num_cols, (2, size), generator=generator)
        edges = row.to(dtype), col.to(dtype)
        assert_same(few_at_once, 'coo_to_csc', *edges, num_cols, True, True)


@pytest.mark.parametrize('bad', [-1, 3, 2**40])
def test_columns_beyond_the_matrix_end_in_an_error(cuda, bad):
    col = torch.tensor([0, bad, 2])
    cuda.configure()
    message = rf"coo_to_csc: 'col' must be in \[0, 3\) \(got {bad} at posit"
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('coo_to_csc')(col, col, 3, True, True)


@pytest.mark.parametrize('bad', [-1, 3, 2**40])
def test_rows_beyond_the_matrix_end_in_an_error(cuda, bad):
    row, col = torch.tensor([0, bad, 2]), torch.arange(3)
    cuda.configure()
    message = rf"coo_to_csc: 'row' must be in \[0, 3\) \(got {bad} at posit"
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('coo_to_csc')(row, col, 3, True, True, 3)


def test_edges_must_be_pairs(cuda):
    with pytest.raises(RuntimeError, match="'col' must have 3 elements"):
        cuda.operator('coo_to_csc')(torch.arange(3), EMPTY, 3, True, True)
    with pytest.raises(RuntimeError, match="'num_cols' must not be negative"):
        cuda.operator('coo_to_csc')(EMPTY, EMPTY, -1, True, True)


#: Pointers and indices of four columns and three rows.
CHECKS = {
    'right': ([0, 1, 1, 3, 4], [0, 2, 1, 0]),
    'first': ([1, 1, 1, 3, 4], [0, 2, 1, 0]),
    'descends': ([0, 2, 1, 0, 4], [0, 2, 1, 0]),
    'last': ([0, 1, 1, 3, 3], [0, 2, 1, 0]),
    'indices': ([0, 1, 1, 3, 4], [0, 2, 3, -1]),
    'all': ([0, 2, 1, 3, 9], [5, 2, 3, -1]),
}


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
@pytest.mark.parametrize('graph', CHECKS.values(), ids=CHECKS)
def test_checked_columns(cuda, graph, dtypes):
    graph = [torch.tensor(x).to(d) for x, d in zip(graph, dtypes, strict=True)]
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        out = cuda.operator('check_csc')(*graph, 3)
        assert_equal_tensors(out, torch.ops.gsample.check_csc(*graph, 3))


def test_a_whole_graph_is_checked(cuda):
    cuda.configure()
    for num_rows in (0, 79, 80):
        assert_same(cuda, 'check_csc', *graph_of(DTYPES[0]), num_rows)
    with pytest.raises(RuntimeError, match="'num_rows' must not be negative"):
        cuda.operator('check_csc')(*graph_of(DTYPES[0]), -1)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_scales_of_labor(cuda, dtype):
    indptr, indices = skewed_graph(0)
    generator = torch.Generator().manual_seed(1)
    weight = torch.rand(indices.numel(), generator=generator).double() + 1e-3
    for seed, k in enumerate([1, 2, 5, 31, 2**40]):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        assert_same(cuda, 'labor_scale', indptr.to(dtype), weight**3, k)


@pytest.mark.parametrize('bad', [0.0, -1.0, 1e-310, float('inf')])
def test_weights_of_labor_must_be_positive(cuda, bad):
    weight = torch.tensor([1.0, bad], dtype=torch.float64)
    cuda.configure()
    labor_scale = cuda.operator('labor_scale')
    with pytest.raises(
        RuntimeError, match=r"'weight' must be positive.* position 1"
    ):
        labor_scale(torch.tensor([0, 2]), weight, 1)
    for indptr in ([0, 1], [1, 2], [0, 3, 2], [0, -1, 2]):
        with pytest.raises(RuntimeError, match="'indptr' must ascend from 0"):
            labor_scale(torch.tensor(indptr), weight.new_ones(2), 1)
    with pytest.raises(RuntimeError, match="'k' must be positive"):
        labor_scale(torch.tensor([0, 2]), weight, 0)
    with pytest.raises(RuntimeError, match="'indptr' must not be empty"):
        labor_scale(EMPTY, weight, 1)


@pytest.mark.sanitize
def test_formats_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    row, col = torch.randint(9, (2, 70))
    out = assert_same(cuda, 'coo_to_csc', row, col, 9, True, True)
    assert_same(cuda, 'check_csc', out[0], out[1], 9)
    assert_same(cuda, 'labor_scale', out[0], torch.rand(70).double() + 1, 2)
