"""Where the edges of a matrix are in another matrix of the same edges."""

import pytest
import torch

from tests.ops.compare import assert_equals_reference
from tests.ops.fake_cuda import FAKE, on_cuda
from torch_gsample import ops
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


def matched(graph, indptr, indices):
    out = assert_equals_reference(
        'match_edges',
        graph.indptr,
        graph.indices,
        graph.num_rows,
        indptr,
        indices,
        graph.num_rows,
        operator=ops.match_edges,
    )
    assert out.dtype == torch.int64
    return out


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_edges_in_another_order_are_found(name, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    size = graph.num_edges
    for dtypes in INDEX_DTYPES:  # of the other matrix
        same = to_dtypes(small_graph(name), dtypes)
        out = matched(graph, same.indptr, same.indices)
        assert out.tolist() == list(range(size))
        # Columns as they are, each with its edges shuffled.
        order = torch.rand(size, generator=torch.Generator().manual_seed(3))
        order = order.argsort()
        order = order[graph.col(torch.int64)[order].argsort(stable=True)]
        out = matched(graph, same.indptr, same.indices[order])
        assert torch.equal(same.indices[order][out], same.indices)


def test_parallel_edges_match_as_they_are_stored():
    indptr, row = torch.tensor([0, 4]), torch.tensor([1, 0, 1, 0])
    out = ops.match_edges(
        indptr, row, 2, indptr, torch.tensor([0, 0, 1, 1]), 2
    )
    assert out.tolist() == [2, 0, 3, 1]


@pytest.mark.parametrize(
    'other',
    [
        ([0, 2, 3], [1, 2, 0], 3),  # another edge
        ([0, 1, 3], [1, 0, 2], 3),  # another column
        ([0, 2, 2], [0, 1], 3),  # fewer edges
        ([0, 2, 3, 3], [0, 1, 2], 3),  # more columns
        ([0, 2, 3], [0, 1, 2], 4),  # more rows
        ([0, 2, 3], [0, 0, 2], 3),  # another multiplicity
    ],
    ids=['edge', 'column', 'fewer', 'columns', 'rows', 'parallel'],
)
def test_other_edges_are_an_error(other):
    indptr, indices = torch.tensor([0, 2, 3]), torch.tensor([0, 1, 2])
    *columns, num_rows = other
    columns = map(torch.tensor, columns)
    with pytest.raises(ValueError, match='must have the same edges'):
        ops.match_edges(indptr, indices, 3, *columns, num_rows)


def test_matrices_on_a_gpu_are_compared_by_the_operator():
    graph = on_cuda(torch.tensor([0, 2, 3])), on_cuda(torch.tensor([0, 1, 2]))
    with FAKE:  # which has no values to look at
        out = ops.match_edges(*graph, 3, *graph, 3)
    assert out.device == graph[0].device
    assert out.shape == (3,)
