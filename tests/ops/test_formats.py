import math

import pytest
import torch

from tests.ops.compare import assert_equals_reference, lists
from torch_gsample import ops
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

INT32, INT64 = torch.int32, torch.int64


def shuffled_edges(graph, seed=0):
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(graph.num_edges, generator=generator)
    return graph.indices[order], graph.col()[order]


# Conversion to compressed columns.


@pytest.mark.parametrize('wide', [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize('dtype', [INT32, INT64])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_columns_equal_the_reference(name, dtype, wide):
    graph = small_graph(name)
    row, col = (part.to(dtype) for part in shuffled_edges(graph))
    indptr, indices, perm = assert_equals_reference(
        'coo_to_csc', row, col, graph.num_cols, *wide
    )
    assert indptr.dtype == (INT64 if wide[0] else INT32)
    assert indices.dtype == (INT64 if wide[1] else INT32)
    assert perm.dtype == INT64
    assert torch.equal(indptr.long(), graph.indptr)


def test_columns_are_sorted_stably_by_all_threads(threads):
    # Enough edges a column for the threads to sort a part each.
    row, col = shuffled_edges(random_graph(1_000, 300_000, seed=0))
    want = torch.sort(col, stable=True)
    for dtype in (INT32, INT64):
        indptr, indices, perm = ops.coo_to_csc(
            row.to(dtype), col.to(dtype), 1_000, 1_000
        )
        assert torch.equal(perm, want.indices)
        assert torch.equal(indices, row[perm].int())
        assert torch.equal(indptr.diff(), torch.bincount(col).int())


def test_rows_and_columns_may_differ_in_dtype_and_number():
    row, col = torch.tensor([6, 5, 4]).int(), torch.tensor([1, 0, 1])
    for edges in ((row, col), (row.long(), col.int())):
        indptr, indices, perm = ops.coo_to_csc(*edges, 7, 2)
        assert indptr.tolist() == [0, 1, 3]
        assert indices.tolist() == [5, 6, 4]
        assert perm.tolist() == [1, 0, 2]


def test_columns_without_edges_are_kept():
    none = torch.tensor([], dtype=INT64)
    assert lists(ops.coo_to_csc(none, none, 0, 0)) == [[0], [], []]
    assert lists(ops.coo_to_csc(none, none, 3, 2)) == [[0, 0, 0], [], []]


def test_int32_is_taken_where_it_suffices():
    largest = 2**31 - 1
    widths = [
        ops.formats.index_widths('op', num_edges, num_nodes, None)
        for num_edges in (largest, largest + 1)
        for num_nodes in (largest, largest + 1)
    ]
    assert widths == [(False, False), (True, True), (True, False), (True,) * 2]
    assert ops.formats.index_widths('op', largest, largest, INT32) == (
        False,
        False,
    )
    assert ops.formats.index_widths('op', 1, 1, INT64) == (True, True)


# Checks.


FAULTS = {
    'nothing': lambda indptr, indices: None,
    'first': lambda indptr, indices: indptr[:1].fill_(1),
    'negative first': lambda indptr, indices: indptr[:1].fill_(-1),
    'descends': lambda indptr, indices: indptr[1:3].copy_(indptr[1:3].flip(0)),
    'last': lambda indptr, indices: indptr[-1:].add_(1),
    'index': lambda indptr, indices: indices[-1:].fill_(40),
    'negative index': lambda indptr, indices: indices[2:3].fill_(-1),
}


@with_index_dtypes
@pytest.mark.parametrize('fault', FAULTS)
def test_checks_equal_the_reference(fault, index_dtypes):
    graph = to_dtypes(small_graph('random'), index_dtypes)
    indptr, indices = graph.indptr.clone(), graph.indices.clone()
    FAULTS[fault](indptr, indices)
    rule, _, _ = assert_equals_reference('check_csc', indptr, indices, 40)
    assert (rule == 0) == (fault == 'nothing')


def test_checks_of_small_graphs_pass():
    for name in SMALL_GRAPHS:
        graph = small_graph(name)
        ops.formats.check_csc(graph.indptr, graph.indices, graph.num_rows)
        ops.formats.check_csc(
            graph.indptr.int(), graph.indices, graph.num_rows
        )


def test_the_first_of_many_faults_is_reported_by_all_threads(threads):
    graph = random_graph(200_000, 300_000, seed=1)
    indptr, indices = graph.indptr.clone(), graph.indices.clone()
    indices[[70_000, 140_001, 299_999]] = torch.tensor([-5, 200_000, -1])
    result = torch.ops.gsample.check_csc(indptr, indices, 200_000)
    assert result.tolist() == [4, 70_000, -5]
    indptr[[60_000, 150_000, 199_999]] = 0
    result = torch.ops.gsample.check_csc(indptr, indices, 200_000)
    assert result.tolist() == [2, 60_000, 0]


# Weights.


def some_weights(size, seed=0):
    """Of many magnitudes, a fifth of them 0."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(size, generator=generator, dtype=torch.float64)
    power = torch.randint(-40, 40, (size,), generator=generator)
    zero = torch.randint(5, (size,), generator=generator) == 0
    return torch.ldexp(weight, power).masked_fill(zero, 0)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('index_dtype', [INT32, INT64])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_sums_of_weights_equal_the_reference(name, index_dtype, dtype):
    graph = small_graph(name)
    assert_equals_reference(
        'cumulate_weights',
        graph.indptr.to(index_dtype),
        some_weights(graph.num_edges).to(dtype),
    )


def test_sums_of_weights_are_the_same_for_all_threads(threads):
    graph = random_graph(5_000, 20_000, seed=2)
    assert_equals_reference(
        'cumulate_weights', graph.indptr, some_weights(20_000)
    )


@pytest.mark.parametrize(
    'dtype',
    [torch.float16, torch.bfloat16, torch.uint8, torch.int32, torch.int64]
    + [torch.bool],
)
def test_weights_of_any_real_dtype_are_exact(dtype):
    graph = small_graph('random')
    weight = (torch.arange(400) % 3).to(dtype)
    assert torch.equal(
        ops.cumulate_weights(graph.indptr, weight),
        ops.cumulate_weights(graph.indptr, weight.double()),
    )


def test_large_int64_weights_keep_their_order():
    weight = torch.tensor([2**52, 2**52 + 1])
    sums = ops.cumulate_weights(torch.tensor([0, 2]), weight)
    low, both = sums[:2].tolist()
    assert both - low > low


def test_positive_weights_stay_positive_however_small():
    tiny, huge = 5e-324, 1.7e308
    weight = torch.tensor([tiny, huge, 0, tiny, huge], dtype=torch.float64)
    indptr = torch.tensor([0, 5])
    sums = assert_equals_reference('cumulate_weights', indptr, weight)
    assert sums[5] == 1  # there is a zero in column 0
    sums = sums[:5]
    parts = sums.diff(prepend=torch.zeros(1, dtype=INT64)).tolist()
    assert parts[0] == parts[3] == 1
    assert parts[2] == 0
    assert parts[1] > 2**57
    assert sums[-1] < 2**63 - 1


def test_sums_come_near_to_two_to_the_62():
    for n in (1, 2, 3, 1_000):
        indptr = torch.tensor([0, n])
        sums = ops.cumulate_weights(indptr, torch.full((n,), 0.7))
        assert 60 < math.log2(sums[-2]) <= 62 + 1e-9


def test_columns_with_a_weight_of_zero_are_marked():
    weight = torch.ones(130)
    weight[[0, 63, 64, 129]] = 0
    sums = ops.cumulate_weights(torch.arange(131), weight)
    words = [word % 2**64 for word in sums[130:].tolist()]
    assert words == [2**63 + 1, 1, 2]
    assert ops.cumulate_weights(
        torch.tensor([0] * 65), weight[:0]
    ).tolist() == [0]


def test_weights_of_a_gradient_are_welcome():
    weight = torch.ones(3, requires_grad=True)
    sums = ops.cumulate_weights(torch.tensor([0, 3]), weight)
    assert not sums.requires_grad


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
@pytest.mark.parametrize('share', [0.0, 0.01, 0.5, 1.0])
def test_positive_weights_equal_the_reference(share, dtype):
    for size in (0, 1, 15, 16, 17, 1_000):
        generator = torch.Generator().manual_seed(size)
        weight = torch.rand(size, generator=generator, dtype=dtype)
        weight *= torch.rand(size, generator=generator) < share
        assert_equals_reference(
            'positive_weights', weight, operator=ops.formats.positive_weights
        )
    weight = torch.arange(-3, 30).clamp(min=0)  # converted
    index, sums = ops.formats.positive_weights(weight)
    assert torch.equal(index, weight.nonzero().view(-1))
    assert len(sums) == len(index) + 1


def test_huge_pages_change_no_number():
    tensor = torch.arange(2_000_000)
    assert torch.ops.gsample.advise_huge_pages(tensor) is None
    assert torch.equal(tensor, torch.arange(2_000_000))


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_a_negative_zero_is_a_weight_of_zero(dtype):
    indptr = torch.tensor([0, 2, 300])
    weight = torch.ones(300, dtype=dtype)
    weight[1] = weight[299] = -0.0
    found = ops.cumulate_weights(indptr, weight)
    assert torch.equal(found, ops.cumulate_weights(indptr, weight.abs()))
    assert int(found[300]) == 0b11  # both columns have a weight of zero
