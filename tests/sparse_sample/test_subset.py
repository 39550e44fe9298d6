"""Selections without chance: the greatest edges, induced subgraphs."""

import pytest
import torch

from tests.sparse_sample.cases import with_cases
from torch_gsample import SparseSample


@with_cases
@pytest.mark.parametrize('own', [False, True])
def test_the_greatest_edges_of_each_column_are_kept(c, own):
    """The first of equal edges; a number of edges for each column."""
    A = c.matrix
    by = A.values() if own else (10 * A.values()).round()
    k = torch.arange(A.num_cols) % 3
    col = A.coo()[1].tolist()
    kept = []
    for v in range(A.num_cols):
        edges = [e for e in range(A.num_edges) if col[e] == v]
        edges.sort(key=lambda e: -float(by[e]))  # stable
        kept += edges[: int(k[v])]
    out = A.top(k, None if own else by)
    want = A.edge_id[torch.tensor(kept, dtype=torch.int64)]
    assert torch.equal(out.edge_id.sort().values, want.sort().values)
    assert torch.equal(
        A.top(2, by).degree(dim=0), A.degree(dim=0).clamp(max=2)
    )


def test_the_first_of_many_equal_edges_are_kept():
    row = torch.arange(500)
    A = SparseSample.from_coo(row, row * 0, torch.ones(500), (500, 1))
    assert A.top(7).edge_id.tolist() == list(range(7))


@pytest.mark.parametrize('transposed', [False, True])
def test_induced_subgraphs_of_a_part_keep_ids(transposed):
    generator = torch.Generator().manual_seed(1)
    row, col = torch.randint(9, (2, 60), generator=generator)
    A = SparseSample.from_coo(row, col, torch.rand(60), (9, 9))
    part = A[[8, 2, 5, 0, 7], [3, 1, 6, 2, 4]]
    part = part.T if transposed else part
    nodes = torch.tensor([4, 0, 3])
    out, want = part.induce(nodes), part[nodes, nodes]
    assert out.num_edges > 0
    assert torch.equal(out.row_ids, part.row_ids[nodes])
    assert torch.equal(out.col_ids, part.col_ids[nodes])
    assert torch.equal(out.to_dense(), want.to_dense())
    ends = (col, row) if transposed else (row, col)
    want = torch.stack(ends)[:, out.edge_id]
    assert torch.equal(torch.stack(out.edges()), want)


def test_batches_are_induced_block_by_block():
    generator = torch.Generator().manual_seed(2)
    A = SparseSample.from_coo(
        *torch.randint(6, (2, 50), generator=generator), shape=(6, 6)
    )
    nodes = torch.tensor([0, 3, 5, 3, 1, 0])
    batch = torch.tensor([0, 0, 0, 1, 1, 1])
    dense = A.induce(nodes, batch).to_dense()
    first = A[nodes[:3], nodes[:3]].to_dense()
    second = A[nodes[3:], nodes[3:]].to_dense()
    assert torch.equal(dense, torch.block_diag(first, second))
