"""Compressed sparse columns: columns are destinations, rows sources."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_gsample import CSC

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=30)


def from_pairs(pairs, **options):
    row, col = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t()
    return CSC.from_coo(row, col, 6, 4, **options)


def pairs_of(csc):
    return list(zip(csc.indices.tolist(), csc.col().tolist(), strict=True))


@settings(deadline=None, max_examples=50)
@given(EDGES, st.sampled_from([None, torch.int32, torch.int64]))
def test_edges_are_sorted_by_column_stably(pairs, dtype):
    csc = from_pairs(pairs, index_dtype=dtype)
    order = sorted(range(len(pairs)), key=lambda e: pairs[e][1])
    assert csc.edge_id.tolist() == order
    assert pairs_of(csc) == [pairs[e] for e in order]
    assert (csc.num_rows, csc.num_cols, csc.num_edges) == (6, 4, len(pairs))
    assert csc.indptr.dtype == csc.indices.dtype == (dtype or torch.int32)


@settings(deadline=None, max_examples=50)
@given(EDGES)
def test_the_transpose_reverses_edges_and_keeps_their_names(pairs):
    for dtype in (torch.int32, torch.int64):
        csc = from_pairs(pairs, index_dtype=dtype)
        reverse = csc.transpose()
        assert (reverse.num_rows, reverse.num_cols) == (4, 6)
        assert reverse.indices.dtype == dtype
        assert reverse.indptr.numel() == 7
        named = [pairs[e] for e in reverse.edge_id.tolist()]
        assert [(v, u) for u, v in named] == pairs_of(reverse)
        again = reverse.transpose()
        assert sorted(pairs_of(again)) == sorted(pairs)


def test_the_transpose_of_unsorted_columns_names_positions():
    csc = CSC(torch.tensor([0, 2, 2, 3]), torch.tensor([2, 0, 1]), 3)
    reverse = csc.transpose()
    assert reverse.indptr.tolist() == [0, 1, 2, 3]
    assert reverse.indices.tolist() == [0, 2, 0]
    assert reverse.edge_id.tolist() == [1, 2, 0]


@settings(deadline=None, max_examples=50)
@given(EDGES, st.randoms())
def test_columns_are_sorted_by_a_value_stably(pairs, random):
    csc = from_pairs(pairs)
    by = torch.tensor([random.randint(0, 3) for _ in pairs], dtype=torch.long)
    out, former = csc.sort_columns(by)
    assert torch.equal(out.indptr, csc.indptr)
    assert torch.equal(out.indices, csc.indices[former])
    assert torch.equal(out.edge_id, csc.edge_id[former])
    col = csc.col().tolist()
    assert former.tolist() == sorted(
        range(len(pairs)), key=lambda e: (col[e], int(by[e]))
    )


def test_sorted_edges_are_not_permuted():
    csc = from_pairs([(3, 0), (1, 0), (2, 3)], is_sorted=True)
    assert csc.edge_id is None
    assert csc.indptr.tolist() == [0, 2, 2, 2, 3]
    out, former = csc.sort_columns(torch.tensor([5, 4, 3]))
    assert out.edge_id.tolist() == former.tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="with 'is_sorted', edges must be"):
        from_pairs([(0, 1), (0, 0)], is_sorted=True)


@pytest.mark.parametrize('wrong', [None, 0, 1_500_000, 2_999_999])
def test_ids_that_are_positions_are_dropped(wrong):
    """Ids are compared part by part: a difference may be in any of them."""
    ids = torch.arange(3_000_000)
    if wrong is not None:
        ids[wrong] = 7
    csc = CSC(torch.tensor([0, 0]), ids, 1, edge_id=ids).drop_identity()
    assert csc.edge_id is (None if wrong is None else ids)
    assert csc.drop_identity() is csc


def test_compressed_columns_are_shared():
    indptr, indices = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    csc = CSC.from_compressed(indptr, indices, 2, 2)
    assert csc.indptr.data_ptr() == indptr.data_ptr()
    assert csc.indices.data_ptr() == indices.data_ptr()
    assert csc.edge_id is None
    narrow = CSC.from_compressed(
        indptr, indices, 2, 2, index_dtype=torch.int32
    )
    assert narrow.indices.dtype == narrow.indptr.dtype == torch.int32
    assert narrow.indices.tolist() == [1, 0]


def test_missing_columns_are_empty():
    csc = CSC.from_compressed(torch.tensor([0, 1]), torch.tensor([2]), 3, 4)
    assert csc.indptr.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ('indptr', 'indices', 'error', 'text'),
    [
        (
            [0, 1, 1, 1],
            [0],
            ValueError,
            r"'indptr' of roads must have at most",
        ),
        ([1, 1], [0], ValueError, r"'indptr' of roads must start at 0"),
        ([0, 2], [0], ValueError, r"'indptr' of roads must end at"),
        ([0, 2, 1], [0], ValueError, r"'indptr' of roads must not descend"),
        ([0, 1], [5], IndexError, r"'indices' of roads must be in \[0, 5\)"),
        ([], [], ValueError, r"'indptr' must have at least one element"),
    ],
)
def test_malformed_columns_are_named(indptr, indices, error, text):
    indptr = torch.tensor(indptr, dtype=torch.long)
    indices = torch.tensor(indices, dtype=torch.long)
    with pytest.raises(error, match=text):
        CSC.from_compressed(indptr, indices, 5, 2, name='roads')


@pytest.mark.parametrize('num_edges', [0, 3])
def test_all_tensors_move_to_shared_memory(num_edges):
    csc = from_pairs([(0, 1)] * num_edges).share_memory_()
    for tensor in (csc.indptr, csc.indices, csc.edge_id):
        assert tensor.is_shared()


def test_it_is_frozen():
    csc = from_pairs([(0, 1)])
    with pytest.raises(AttributeError):
        csc.indptr = None
