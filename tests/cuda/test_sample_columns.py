"""Edges of columns on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES, skewed_graph
from tests.cuda.test_matrix import ASCENDS, COLS, EMPTY
from tests.cuda.test_walk import assert_same, some_weights
from tests.ops.compare import numbers
from tests.ops.test_sample_columns import OPTIONS
from torch_gsample.ops import cumulate_weights
from torch_gsample.rng import make_key

OP = 'sample_columns'
IDS = torch.arange(100, 100 + 7 * COLS.numel(), 7)
#: None, few, the slots of a warp, more, nearly all of a hub, all.
COUNTS = [0, 1, 3, 5, 31, 32, 33, 60, 69, 70, 71, -1]
SELECTIONS = {
    'plain': {},
    'cols': {'cols': COLS},
    'cols and ids': {'cols': COLS, 'id': IDS},
    'cols elsewhere': {'cols': COLS, 'start': IDS * 1000, 'root': IDS % 5},
}


def arguments(indptr, weighted=False, temporal=False, **options):
    size = indptr.diff()
    if weighted:
        options['cum_weight'] = some_weights(indptr, int(indptr[-1]), 1)
    if temporal:
        position = torch.arange(int(indptr[-1]))
        start = torch.repeat_interleave(indptr[:-1], size)
        options['edge_time'] = (position - start) // 2
        options['column_time'] = torch.arange(size.numel()) % 37
    return options


@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('options', SELECTIONS.values(), ids=SELECTIONS)
def test_selected_edges(cuda, options, replace, weighted):
    indptr, _ = skewed_graph(0)
    options = arguments(indptr, weighted, replace=replace, **options)
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        key = make_key(seed, 1, 2)
        assert_same(cuda, OP, indptr, k, key, 3, **options)


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('shape', SHAPES[:3], ids=str)
def test_columns_that_lie_elsewhere(cuda, shape, options):
    indptr, _ = skewed_graph(0, hub=700, num_nodes=50)
    n = torch.arange(50)
    given = arguments(indptr, **OPTIONS[options])
    given |= {'start': n * 1000, 'id': n * 3 % 11 + 2**33}
    for seed, k in enumerate([-1, 0, 1, 3, 33, 600]):
        cuda.configure(seed, *shape)
        root = n % 5 if k % 2 else None
        args = indptr, k, make_key(seed, 2, 7), seed
        assert_same(cuda, OP, *args, relation=4, root=root, **given)


@pytest.mark.parametrize('k', [511, 512, 513, 600, 699, 700, -1])
@pytest.mark.parametrize('replace', [False, True])
def test_hubs_are_taken_by_blocks(cuda, replace, k):
    indptr, indices = skewed_graph(3, hub=700)
    cum_weight = some_weights(indptr, indices.numel(), 1)
    cols = torch.tensor([5, 1])
    for weights in (None, cum_weight):
        cuda.configure(k & 7)
        args = indptr, k, make_key(9)
        options = {'cols': cols, 'cum_weight': weights, 'replace': replace}
        assert_same(cuda, OP, *args, **options)


@pytest.mark.parametrize('seed', range(12))
def test_many_draws_of_a_column_depend_on_each_other(cuda, seed):
    """By a warp with a tree, which columns share; by lists, if uniform."""
    indptr, indices = skewed_graph(seed, hub=1500, num_nodes=60)
    weight = some_weights(indptr, indices.numel(), seed)
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    options = {'cols': torch.tensor([5, 1, 5, 37, 0, 59, 5])}
    for k in (32, 33, 38, [700, 1025, 1499][seed % 3]):
        args = OP, indptr, k, make_key(seed), 2
        assert_same(cuda, *args, **options)
        assert_same(cuda, *args, **options, cum_weight=weight)
    narrow = indptr.int(), 40, make_key(seed)
    assert_same(cuda, OP, *narrow, cum_weight=weight)


@pytest.mark.parametrize('temporal', [False, True])
@pytest.mark.parametrize('seed', range(8))
def test_many_draws_of_all_columns(cuda, seed, temporal):
    """By a warp with a tree; in chains of draws of a hub that give way."""
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    indptr, _ = skewed_graph(seed, hub=1500, num_nodes=50)
    for weighted, counts in ((True, (33, 39, 700)), (False, (37, 600, 1499))):
        given = arguments(indptr, weighted, temporal)
        for k in counts:
            assert_same(cuda, OP, indptr, k, make_key(seed), **given)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_selected_edges_of_all_dtypes(cuda, dtype):
    indptr = skewed_graph(1)[0]
    cuda.configure()
    for options in OPTIONS.values():
        given = arguments(indptr, **options)
        assert_same(cuda, OP, indptr.to(dtype), 4, make_key(4), **given)


def test_no_columns(cuda):
    cuda.configure()
    args = torch.tensor([0]), 2, make_key(0)
    for given in ({}, {'start': EMPTY, 'id': EMPTY}, {'cols': EMPTY}):
        out = assert_same(cuda, OP, *args, **given)
        assert [x.tolist() for x in out] == [[0], []]


@pytest.mark.sanitize
def test_columns_under_a_sanitizer(cuda):
    indptr, _ = skewed_graph(0, hub=40, num_nodes=12)
    for seed, options in enumerate(OPTIONS.values()):
        cuda.configure(seed, 2, 64, 30)
        given = arguments(indptr, **options, start=indptr[:-1])
        for k in (3, 36):
            assert_same(cuda, OP, indptr, k, make_key(1), **given)


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('options', SELECTIONS.values(), ids=SELECTIONS)
def test_batches_have_draws_of_their_own(cuda, options, replace):
    indptr, _ = skewed_graph(0)
    last = options['cols'].numel() if 'cols' in options else 80
    ptr = torch.tensor([0, 3, 3, 7, last])
    keys = torch.cat([make_key(seed) for seed in range(4)])
    options = options | {'replace': replace, 'ptr': ptr}
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        assert_same(cuda, OP, indptr, 4, keys, 3, **options)


@pytest.mark.parametrize('bad', [[0, 3, 2], [1, 1, 2], [0, 1, 1], [0, 9, 2]])
def test_pointers_of_batches_must_ascend(cuda, bad):
    indptr = torch.tensor([0, 1, 2])
    cuda.configure()
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 2"):
        cuda.operator(OP)(
            indptr, 1, torch.cat([make_key(0)] * 2), ptr=torch.tensor(bad)
        )
    with pytest.raises(RuntimeError, match="'ptr' must ascend from 0 to 2"):
        cuda.operator(OP)(
            indptr, 1, torch.empty(0, 3).long(), ptr=torch.tensor([0])
        )


@pytest.mark.parametrize('bad', [[1, 2, 3], [0, 3, 2], [0, -1, 3], [0, 5, 3]])
def test_malformed_columns_are_an_error(cuda, bad):
    two, time = torch.tensor([0, 1]), torch.tensor([0, 0, 0])
    cum_weight = cumulate_weights(torch.tensor([0, 1, 3]), torch.ones(3))
    cuda.configure()
    for given in (
        {'start': two},
        {'cum_weight': cum_weight},
        {'edge_time': time, 'column_time': two},
    ):
        with pytest.raises(RuntimeError, match="'indptr' must ascend from 0"):
            cuda.operator(OP)(
                torch.tensor(bad), 2, make_key(0), **numbers(OP, given)
            )


@pytest.mark.parametrize('last', [-1, 3, 5, 2**62])
def test_weights_of_other_edges_end_in_an_error(cuda, last):
    indptr = torch.tensor([0, 1, 2, 3, 4])
    cum_weight = torch.ones(5, dtype=torch.int64)
    indptr[-1] = last
    cuda.configure()
    with pytest.raises(RuntimeError, match=ASCENDS):
        cuda.operator(OP)(indptr, 2, make_key(0), cum_weight=cum_weight)


def test_lengths_that_do_not_fit_end_in_an_error(cuda):
    indptr, two = torch.tensor([0, 1, 3]), torch.tensor([0, 1])
    times = {'edge_time': torch.arange(3), 'column_time': two}
    cuda.configure()
    for message, given in (
        ("'start' must have 2 elements", {'start': two[:1]}),
        ("'cum_weight' must have at least 1", {'cum_weight': two[:0]}),
        ("'cum_weight' must have 4 elem", {'cum_weight': two, **times}),
    ):
        with pytest.raises(RuntimeError, match=message):
            cuda.operator(OP)(indptr, 2, make_key(0), **numbers(OP, given))


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('cum', [-1, 0, 2**62, -(2**63)])
def test_weights_that_are_no_sums_do_no_harm(cuda, cum, replace):
    indptr, indices = skewed_graph(0)
    cum_weight = some_weights(indptr, indices.numel(), 1)
    cum_weight[: indices.numel() : 3] = cum
    cuda.configure()
    for k in (4, 36):
        _, edge = cuda.operator(OP)(
            indptr, k, make_key(0), cum_weight=cum_weight, replace=replace
        )
        assert ((edge >= 0) & (edge < indices.numel())).all()
