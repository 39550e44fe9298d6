"""Rows, columns and edges that are extracted, and their ids."""

import pytest
import torch

from tests.sparse_sample.cases import GRAPHS, case, with_cases
from torch_gsample import SparseSample
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample.ids import column


def check_ids(A, original):
    """Asserts that ids refer to the original edges, rows and columns."""
    row, col = original.coo()
    by_id = torch.empty(original.num_edges, dtype=torch.int64)
    by_id[original.edge_id] = torch.arange(original.num_edges)
    at = by_id[A.edge_id]
    assert torch.equal(A.values(), original.values()[at])
    assert all(map(torch.equal, A.edges(), (row[at], col[at])))


@with_cases
def test_indexing_equals_dense(c):
    # Edges of a slice have ids of a larger matrix: numbers here.
    A = c.matrix
    dense = c.place * c.count
    m, n = A.shape
    generator = torch.Generator().manual_seed(4)
    rows, cols = (
        torch.randint(-size, size, (7,), generator=generator)
        if size
        else torch.empty(0, dtype=torch.int64)
        for size in (m, n)
    )
    masks = torch.arange(m) % 2 == 0, torch.arange(n) % 3 > 0
    for r, s in ((rows, cols), (rows.unique(), cols.unique()), masks):
        assert torch.equal(A[:, s].to_dense(), dense[:, s])
        assert torch.equal(A[r, :].to_dense(), dense[r])
        assert torch.equal(A[r, s].to_dense(), dense[r][:, s])
        assert torch.equal(A.T[s, r].to_dense(), dense[r][:, s].t())
    assert torch.equal(A[rows.tolist(), :].to_dense(), dense[rows])
    assert torch.equal(A[:, cols.int().tolist()].to_dense(), dense[:, cols])
    assert torch.equal(A[1:3, 1:].to_dense(), dense[1:3, 1:])
    assert torch.equal(A[::2, :-1].to_dense(), dense[::2, :-1])
    assert torch.equal(A[::-1, :].to_dense(), dense.flip(0))
    assert torch.equal(A[:, 3:1:-1].to_dense(), dense[:, 2:4].flip(1))
    assert torch.equal(A[:, []].to_dense(), dense[:, :0])
    assert torch.equal(A[3:1, :].to_dense(), dense[3:1])
    assert torch.equal(A[:, 1:3:-1].to_dense(), dense[:, :0])
    assert A[:, :].shape == A.shape
    if m and n:
        assert torch.equal(A[-1, :].to_dense(), dense[-1:])
        assert torch.equal(A[:, torch.tensor(0)].to_dense(), dense[:, :1])


@pytest.mark.parametrize('graph', [g for g in GRAPHS if g != 'nothing'])
@pytest.mark.parametrize('layout', ['csc', 'csr', 'coo', 'transposed'])
def test_ids_are_kept_through_chains(graph, layout):
    A = case(graph, layout).matrix
    m, n = A.shape
    cols, rows = torch.arange(n).repeat(2).flip(0), torch.arange(m).flip(0)
    check_ids(A, A)
    B = A[:, cols]
    check_ids(B, A)
    check_ids(B[rows, :], A)
    check_ids(B[rows.repeat(2), 1:], A)
    check_ids(B.T[::-1, rows].T[1:, :], A)
    for S in (B, B[rows, :], B.T.T[rows.repeat(2), :]):
        S = S.individual_sample(2)
        check_ids(S, A)
        check_ids(S.compact().compact(0), A)
        check_ids(S.collective_sample(2), A)
        check_ids(S.labor_sample(1), A)
        check_ids(S.masked(S.values() > 0.8), A)
        check_ids(S[1:, :], A)
        check_ids(S[:, ::2].individual_sample(3, replace=True), A)
    scaled = B.div(B.sum(0), 0)
    assert torch.equal(scaled.edge_id, B.edge_id)


@with_cases
def test_masked_keeps_the_edges_of_a_mask(c):
    A = c.matrix
    middle = A.values().median() if A.num_edges else 0
    mask = A.values() > middle
    want = torch.where(c.place > middle, c.place * c.count, 0)
    assert torch.equal(A.masked(mask).to_dense(), want)
    assert torch.equal(
        A.masked(mask).edge_id.sort().values, A.edge_id[mask].sort().values
    )
    assert A.masked(~mask).num_edges + int(mask.sum()) == A.num_edges


@with_cases
def test_compact_drops_rows_and_columns_without_edges(c):
    A, dense = c.matrix, c.place * c.count
    for dim in (0, 1):
        B = A.compact(dim)
        assert bool((B.degree(dim) > 0).all())
        held = B.row() if dim == 1 else column(B)
        ids = A.row_ids if dim == 1 else A.col_ids
        if ids is None:  # ids are positions
            want = dense[held] if dim == 1 else dense[:, held]
            assert torch.equal(B.to_dense(), want)
        assert B.num_edges == A.num_edges


@with_cases
def test_sorted_rows_keep_their_order(c):
    A, dense = c.matrix, c.place * c.count
    B = A.compact(sorted=True)
    assert torch.equal(B.to_dense(), dense[(dense != 0).any(dim=1)])
    assert torch.equal(
        A.compact(0, sorted=True).T.to_dense(),
        A.T.compact(sorted=True).to_dense(),
    )
    # So that it does not change the draws.
    probs = A.degree(dim=1) + 0.5 * torch.arange(A.num_rows).remainder(3)
    held = A.degree(dim=1) > 0
    with program_scope(make_key(1)):
        all_rows = A.collective_sample(2, probs * held)
    with program_scope(make_key(1)):
        rows = B.collective_sample(2, (probs * held)[held])
    assert torch.equal(all_rows.to_dense(), rows.to_dense())


@with_cases
def test_nodes_are_columns_then_new_rows(c):
    A = c.matrix
    row, col = [x.tolist() for x in A.edges()]
    cols = range(A.num_cols) if A.col_ids is None else A.col_ids.tolist()
    assert sorted(A.row().tolist()) == sorted(set(row))
    assert column(A).tolist() == [v for v in cols if v in set(col)]
    new = [u for u in A.row().tolist() if u not in set(cols)]
    assert A.nodes().tolist() == [*cols, *new]


def test_rows_come_in_the_order_of_selection():
    A = case('random').matrix
    rows = torch.tensor([5, 0, 3, 1])
    B = A[rows, :]
    held = set(B.edges()[0].tolist())
    assert B.row().tolist() == [u for u in rows.tolist() if u in held]
    cols = torch.tensor([3, 0, 3])
    assert column(A[:, cols]).tolist() == [3, 0, 3]
    assert A[:, cols].nodes().tolist()[:2] == [3, 0]


def test_coo_is_in_the_order_of_values():
    for layout in ('csc', 'csr'):
        c = case('random', layout)
        row, col = c.matrix.coo()
        assert torch.equal(c.matrix.values(), c.place[row, col])
        assert torch.equal(c.matrix.to_edge_index(), torch.stack([row, col]))


def test_the_transpose_copies_nothing():
    A = case('random').matrix
    assert A.T.value is A.value
    assert A.T.csr is A.csc
    assert A.T.T.csc is A.csc


@pytest.mark.parametrize('threads', [1, 2])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('width', [(), (3,)])
def test_values_of_many_edges(dtype, width, threads):
    gen = torch.Generator().manual_seed(0)
    edges = torch.randint(500, (2, 20_000), generator=gen)
    value = torch.rand((20_000, *width), dtype=dtype, generator=gen)
    value.requires_grad_()
    A = SparseSample.from_edge_index(edges, value, (500, 500))
    torch.set_num_threads(threads)
    part = A[:, torch.randint(500, (400,), generator=gen)]
    assert part.num_edges > 10_000
    by_edge = torch.empty_like(value)
    by_edge[A.edge_id] = A.value
    assert torch.equal(part.value, by_edge[part.edge_id])
    (grad,) = torch.autograd.grad(part.value.sum(), value)
    times = torch.bincount(part.edge_id, minlength=20_000).to(dtype)
    assert torch.equal(grad, times.view(-1, *[1] * len(width)).expand_as(grad))


def test_extracts_of_rows_ignore_cached_columns():
    A = case('random', 'csr').matrix
    rows = torch.tensor([4, 0, 2])
    before = A[rows, :], A[rows, [1, 2]]
    assert A.csc.edge_id is not None  # caches the columns
    after = A[rows, :], A[rows, [1, 2]]
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a.edge_id, b.edge_id)
        assert all(map(torch.equal, a.coo(), b.coo()))
