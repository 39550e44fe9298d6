"""Walks on unsorted columns search a sorted copy of them."""

import pytest
import torch

import torch_gsample
from torch_gsample import SparseSample, rng
from torch_gsample.sparse_sample import ascending
from torch_gsample.testing import random_graph

SEEDS = torch.arange(60)


@pytest.fixture(autouse=True)
def _nothing_cached():
    torch_gsample.forget()


def unsorted_matrix():
    graph = random_graph(60, 600, seed=3)
    return SparseSample.from_csr(graph.indptr, graph.indices, num_cols=60)


def walks(matrix, length=40, p=2.0, q=0.5):
    with rng.program_scope(rng.make_key(5)):
        return matrix.node2vec_walk(SEEDS, length, p, q)


def cached_entries():
    return [known.entries for known in ascending._cache._known.values()]


def test_columns_are_sorted_once_steps_outnumber_edges():
    """Four for each of 600 edges: each call makes 1,200."""
    matrix = unsorted_matrix()
    first = walks(matrix, 20)
    assert cached_entries() == [None]
    again = walks(matrix, 20)
    (entries,) = cached_entries()
    assert all(map(torch.equal, first, again))
    assert not torch.equal(entries, matrix.csr.indices)
    for begin, end in matrix.csr.indptr.unfold(0, 2, 1).tolist():
        want = matrix.csr.indices[begin:end].sort().values
        assert torch.equal(entries[begin:end], want)


def test_a_sorted_copy_changes_no_walk():
    matrix = unsorted_matrix()
    plain = walks(matrix, 9)  # too few steps for a copy
    assert cached_entries() == [None]
    walks(matrix)
    assert cached_entries() != [None]
    assert all(map(torch.equal, plain, walks(matrix, 9)))


def test_columns_that_change_are_sorted_again():
    matrix = unsorted_matrix()
    walks(matrix)
    (before,) = cached_entries()
    matrix.csr.indices.copy_(matrix.csr.indices.flip(0))
    changed = walks(matrix)
    (after,) = cached_entries()
    assert not torch.equal(before, after)
    torch_gsample.forget()
    assert all(
        torch.equal(part, other[:, : part.shape[1]])
        for part, other in zip(walks(matrix, 5), changed, strict=True)
    )
    assert cached_entries() == [None]


def test_ascending_lists_are_not_copied():
    graph = unsorted_matrix().T.csc  # sorted by the transposition
    graph = graph.transpose().transpose()
    matrix = SparseSample.from_csr(graph.indptr, graph.indices, num_cols=60)
    walks(matrix)
    (entries,) = cached_entries()
    assert entries is matrix.csr.indices


def test_nothing_is_sorted_that_nobody_searches():
    matrix = unsorted_matrix()
    walks(matrix, p=1.0, q=1.0)
    edges = torch.stack((SEEDS, SEEDS.roll(1)))
    sorted_by_row = SparseSample.from_edge_index(edges, num_nodes=60)
    walks(sorted_by_row)
    assert cached_entries() == []
