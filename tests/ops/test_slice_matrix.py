import pytest
import torch

from tests.ops.cases import some_ids
from tests.ops.compare import assert_equals_reference, digest, lists
from torch_gsample import ops
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    from_columns,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

NONE = torch.tensor([], dtype=torch.int64)
BIG = random_graph(20_000, 200_000, num_rows=500, seed=1)


def assert_dtypes(out, graph):
    dtypes = [graph.indptr.dtype, graph.indices.dtype, torch.int64]
    assert [tensor.dtype for tensor in out] == dtypes


def cols_checked(graph, cols):
    out = assert_equals_reference(
        'slice_cols',
        graph.indptr,
        graph.indices,
        cols,
        operator=ops.slice_cols,
    )
    assert_dtypes(out, graph)
    return out


def rows_checked(graph, rows, cols=None):
    out = assert_equals_reference(
        'slice_rows',
        graph.indptr,
        graph.indices,
        graph.num_rows,
        rows,
        cols,
        operator=ops.slice_rows,
    )
    assert_dtypes(out, graph)
    return out


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_slices_equal_the_reference(name, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    for size in (0, 1, 5, 60):  # 60 ids hold duplicates
        cols = some_ids(graph.num_cols, size, seed=size)
        rows = some_ids(graph.num_rows, size, seed=size + 1)
        for dtype in (torch.int64, torch.int32):
            cols_checked(graph, cols.to(dtype))
            rows_checked(graph, rows.to(dtype))
            rows_checked(graph, rows.to(dtype), cols.to(dtype))


@with_index_dtypes
def test_slices_of_two_node_types_equal_the_reference(index_dtypes):
    graph = random_graph(30, 500, num_rows=12, seed=0)
    graph = to_dtypes(graph, index_dtypes)
    assert cols_checked(graph, some_ids(30, 20, seed=1))[1].numel() > 100
    rows = some_ids(12, 4, seed=2)
    assert rows_checked(graph, rows)[1].numel() > 100
    assert rows_checked(graph, rows, torch.arange(30))[1].numel() > 100


def test_a_matrix_without_columns_or_rows_has_empty_slices():
    no_columns, no_edges = from_columns([], 5), from_columns([[], []], 0)
    assert lists(cols_checked(no_columns, NONE)) == [[0], [], []]
    assert lists(rows_checked(no_columns, torch.arange(5))) == [[0], [], []]
    assert lists(rows_checked(no_edges, NONE)) == [[0, 0, 0], [], []]


def test_all_columns_are_the_matrix():
    graph = small_graph('random')
    indptr, indices, edge = cols_checked(graph, torch.arange(40))
    assert torch.equal(indptr, graph.indptr)
    assert torch.equal(indices, graph.indices)
    assert torch.equal(edge, torch.arange(400))
    indptr, indices, edge = rows_checked(graph, torch.arange(40))
    assert torch.equal(indptr, graph.indptr)
    assert torch.equal(indices, graph.indices)


def test_duplicate_columns_are_copied():
    graph = from_columns([[0, 1], [], [1]])
    out = cols_checked(graph, torch.tensor([0, 2, 0, 1]))
    assert lists(out) == [
        [0, 2, 3, 5, 5],
        [0, 1, 1, 0, 1],
        [0, 1, 2, 0, 1],
    ]


def test_duplicate_rows_are_copied():
    graph = from_columns([[1, 1], [0]])
    out = rows_checked(graph, torch.tensor([1, 0, 1]))
    assert lists(out) == [[0, 4, 5], [0, 2, 0, 2, 1], [0, 0, 1, 1, 2]]
    # More copies than the matrix has edges.
    out = rows_checked(graph, torch.ones(50).long(), torch.tensor([0, 0]))
    assert out[0].tolist() == [0, 100, 200]


def test_strided_arguments_are_taken():
    graph = small_graph('random')
    cols = torch.arange(40)[::3]
    cols_checked(graph, cols)
    rows_checked(graph, cols)
    rows_checked(graph, cols, cols)


def big_digests(cols, rows, graph, num_threads):
    """Of what does not depend on dtypes."""
    with_cols = ops.slice_cols(
        graph.indptr, graph.indices, cols, num_threads=num_threads
    )
    with_rows = ops.slice_rows(
        graph.indptr,
        graph.indices,
        graph.num_rows,
        rows,
        num_threads=num_threads,
    )
    with_both = ops.slice_rows(
        graph.indptr,
        graph.indices,
        graph.num_rows,
        rows,
        cols,
        num_threads=num_threads,
    )
    for out in (with_cols, with_rows, with_both):
        assert out[1].numel() > 4 * 16_384
    return digest(with_cols), digest(with_rows), digest(with_both)


def test_threads_and_dtypes_change_no_slice():
    cols, rows = some_ids(20_000, 15_000, seed=3), some_ids(500, 300, seed=4)
    digests = set()
    for threads, dtypes in zip((1, 2, 4), INDEX_DTYPES, strict=True):
        torch.set_num_threads(threads)
        graph = to_dtypes(BIG, dtypes)
        for num_threads in (0, 1, 2, 4):
            digests.add(big_digests(cols, rows, graph, num_threads))
    assert len(digests) == 1


def test_slices_of_many_threads_are_right():
    cols, rows = some_ids(20_000, 15_000, seed=3), some_ids(500, 300, seed=4)
    indptr, indices, edge = ops.slice_cols(BIG.indptr, BIG.indices, cols)
    degree = BIG.indptr.diff()[cols]
    assert torch.equal(indptr.diff(), degree)
    shift = torch.arange(len(edge)) - indptr[:-1].repeat_interleave(degree)
    start = BIG.indptr[:-1][cols].repeat_interleave(degree)
    assert torch.equal(edge, start + shift)
    assert torch.equal(indices, BIG.indices[edge])
    rows = rows.unique()
    out = ops.slice_rows(BIG.indptr, BIG.indices, 500, rows)
    kept = torch.isin(BIG.indices, rows).nonzero().flatten()
    assert torch.equal(out[2], kept)
    assert torch.equal(rows[out[1]], BIG.indices[kept])
    counts = torch.bincount(BIG.col()[kept], minlength=20_000)
    assert torch.equal(out[0].diff(), counts)


def test_a_slice_with_one_long_column_is_split_right():
    # Cuts between threads fall inside of it, and among columns without edges.
    graph = from_columns([[]] * 50 + [list(range(70_000))] + [[]] * 50, 70_000)
    cols = torch.arange(101)
    for num_threads in (1, 2, 4):
        out = ops.slice_cols(
            graph.indptr, graph.indices, cols, num_threads=num_threads
        )
        assert torch.equal(out[0], graph.indptr)
        assert torch.equal(out[1], graph.indices)
        out = ops.slice_rows(
            graph.indptr,
            graph.indices,
            70_000,
            torch.arange(70_000),
            num_threads=num_threads,
        )
        assert torch.equal(out[0], graph.indptr)
        assert torch.equal(out[1], graph.indices)


def test_slices_too_long_for_their_pointers_are_refused():
    # 1,100 copies of two million edges: more than int32 counts.
    n = 2_000_000
    args = (torch.tensor([0, n]), torch.zeros(n, dtype=torch.int32))
    cols = torch.zeros(1_100, dtype=torch.int64)
    with pytest.raises(RuntimeError, match='able to count the edges'):
        ops.slice_cols(args[0].int(), args[1], cols)


@pytest.mark.parametrize('num_nodes', [5, 60, 100_000, 2**26 + 1, 2**62])
def test_unique_nodes_equal_the_reference(num_nodes):
    for size in (0, 1, 4, 200):
        ids = some_ids(min(num_nodes, 2**60), size, seed=size)
        ids = torch.cat([ids, ids[::3], ids[:5]])
        for dtype in (torch.int64, torch.int32):
            if num_nodes > 2**31 and dtype == torch.int32:
                continue
            for ascending in (False, True):
                node, local = assert_equals_reference(
                    'unique_nodes',
                    ids.to(dtype),
                    num_nodes,
                    ascending,
                    operator=ops.unique_nodes,
                )
                assert (node.dtype, local.dtype) == (torch.int64, dtype)


def test_unique_nodes_forget_calls_that_failed():
    bad = torch.tensor([3, 1, 9, 2])
    for num_nodes in (9, 1_000_000):  # a dense table, a hash table
        for _ in range(3):
            with pytest.raises(RuntimeError, match="'id' must be in"):
                torch.ops.gsample.unique_nodes(bad + num_nodes - 9, num_nodes)
            with pytest.raises(RuntimeError, match="'id' must be in"):
                torch.ops.gsample.unique_nodes(
                    bad + num_nodes - 9, num_nodes, True
                )
            ids = torch.tensor([num_nodes - 1, 3, 1, 3])
            node, local = ops.unique_nodes(ids, num_nodes)
            assert node.tolist() == [num_nodes - 1, 3, 1]
            assert local.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize('num_nodes', [9_000, 2**26, 2**32, 2**33, 2**40])
def test_ascending_nodes_are_those_of_torch(num_nodes):
    ids = some_ids(num_nodes, 4_000, seed=1)
    node, local = ops.unique_nodes(ids, num_nodes, sorted=True)
    expected = torch.unique(ids, sorted=True, return_inverse=True)
    assert torch.equal(node, expected[0])
    assert torch.equal(local, expected[1])
