"""Operators of several batches: each batch gets its own result."""

import pytest
import torch

from tests.ops.cases import some_ids
from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

#: Sizes of batches: none, empty ones, unequal ones.
SIZES = [], [0], [5], [0, 3, 0], [2, 2, 2], [1, 9, 0, 4]
REPLACE = [False, True]


def ptr_of(sizes):
    return torch.tensor([0, *sizes]).cumsum(0)


def keys(count):
    empty = torch.empty(0, 3, dtype=torch.int64)
    return torch.cat([empty, *(make_key(7, 1, b) for b in range(count))])


@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('sorted', [False, True])
@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('num_nodes', [6, 2**40])
def test_unique_nodes_equal_the_reference(sizes, sorted, dtype, num_nodes):
    out = assert_equals_reference(
        'unique_nodes',
        some_ids(6, sum(sizes)).to(dtype),
        num_nodes,
        sorted,
        ptr=ptr_of(sizes),
        operator=ops.unique_nodes,
    )
    assert [t.dtype for t in out] == [torch.int64, dtype, torch.int64]


@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_positive_weights_equal_the_reference(sizes, dtype):
    weight = some_ids(3, sum(sizes), seed=1).to(dtype) / 7
    index, cum_weight, ptr = assert_equals_reference(
        'positive_weights',
        weight,
        ptr=ptr_of(sizes),
        operator=ops.formats.positive_weights,
    )
    want = ops.cumulate_weights(ptr, weight[index])
    assert torch.equal(cum_weight, want)


def test_positive_weights_of_many_batches_have_more_bits():
    assert_equals_reference(
        'positive_weights', torch.ones(130), ptr=torch.arange(131)
    )


@pytest.mark.parametrize('replace', REPLACE)
@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('k', [0, 1, 4, 70])
@pytest.mark.parametrize('weighted', [False, True])
def test_sampled_nodes_equal_the_reference(sizes, k, replace, weighted):
    ptr, cum_weight = ptr_of(sizes), None
    if weighted:  # some are zero
        weight = some_ids(3, sum(sizes), seed=2).double()
        cum_weight = ops.cumulate_weights(ptr, weight)
    assert_equals_reference(
        'sample_nodes',
        sum(sizes),
        k,
        key=keys(len(sizes)),
        call_id=3,
        ptr=ptr,
        cum_weight=cum_weight,
        replace=replace,
        operator=ops.sample_nodes,
    )


@pytest.mark.parametrize('replace', REPLACE)
@pytest.mark.parametrize('num_nodes', [0, 1, 9])
@pytest.mark.parametrize('weighted', [False, True])
def test_batches_sample_of_the_same_nodes(num_nodes, replace, weighted):
    cum_weight = None
    if weighted:
        weight = torch.arange(num_nodes) % 3
        cum_weight = ops.cumulate_weights(torch.tensor([0, num_nodes]), weight)
    node, ptr = assert_equals_reference(
        'sample_nodes',
        num_nodes,
        4,
        key=keys(3),
        cum_weight=cum_weight,
        replace=replace,
    )
    for b in range(3):
        alone = ops.sample_nodes(
            num_nodes,
            4,
            key=keys(3)[b : b + 1],
            cum_weight=cum_weight,
            replace=replace,
        )
        assert torch.equal(node[ptr[b] : ptr[b + 1]], alone)


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('cols', ['chosen', 'all', 'own'])
def test_slices_equal_the_reference(name, index_dtypes, sizes, cols):
    graph = to_dtypes(small_graph(name), index_dtypes)
    num_cols = graph.indptr.numel() - 1
    if graph.num_rows == 0 or num_cols == 0:
        sizes = [0] * len(sizes)
    batches, wanted = len(sizes), None
    if cols == 'chosen':
        col_ptr = ptr_of([n % 4 for n in sizes])
        wanted = some_ids(num_cols, int(col_ptr[-1]), seed=4)
    elif cols == 'all':
        col_ptr = torch.arange(batches + 1) * num_cols
    elif batches == 0:
        return  # nobody has the columns
    else:
        col_ptr = torch.arange(batches + 1) * num_cols // batches
    out = assert_equals_reference(
        'slice_rows',
        graph.indptr,
        graph.indices,
        graph.num_rows,
        some_ids(graph.num_rows, sum(sizes), seed=3),
        wanted,
        row_ptr=ptr_of(sizes),
        col_ptr=col_ptr,
        whole=cols != 'own',
        operator=ops.slice_rows,
    )
    dtypes = [graph.indptr.dtype, graph.indices.dtype, torch.int64]
    assert [tensor.dtype for tensor in out] == dtypes


@with_index_dtypes
@pytest.mark.parametrize('sizes', SIZES)
@pytest.mark.parametrize('k', [-1, 0, 3, 80])
@pytest.mark.parametrize('replace', REPLACE)
def test_columns_draw_under_the_key_of_their_batch(
    index_dtypes, sizes, k, replace
):
    graph = to_dtypes(small_graph('random'), index_dtypes)
    cols = some_ids(40, sum(sizes), seed=5)
    for weighted in (False, True):
        weight = (torch.arange(graph.indices.numel()) % 4).double()
        assert_equals_reference(
            'sample_columns',
            graph.indptr,
            k,
            key=keys(len(sizes)),
            call_id=2,
            cols=cols,
            cum_weight=ops.cumulate_weights(graph.indptr, weight)
            if weighted
            else None,
            replace=replace,
            ptr=ptr_of(sizes),
            operator=ops.sample_columns,
        )


def test_samples_of_batches_do_not_depend_on_threads():
    graph = random_graph(20_000, 200_000, seed=1)
    sizes = [6_000, 1, 3_000, 0, 9_000]
    cols = some_ids(20_000, sum(sizes))
    outs = [
        ops.sample_columns(
            graph.indptr,
            4,
            key=keys(5),
            cols=cols,
            ptr=ptr_of(sizes),
            num_threads=threads,
        )
        for threads in (1, 2, 3)
    ]
    first = 0
    for b, size in enumerate(sizes):
        at = slice(first, first + size)
        indptr, edge = ops.sample_columns(
            graph.indptr, 4, key=keys(5)[b : b + 1], cols=cols[at]
        )
        for out in outs:
            begin, end = out[0][first], out[0][first + size]
            assert torch.equal(
                out[0][first : first + size + 1] - begin, indptr
            )
            assert torch.equal(out[1][begin:end], edge)
        first += size
