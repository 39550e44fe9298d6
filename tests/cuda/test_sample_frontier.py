"""One hop of columns that lie elsewhere on the GPU, bit for bit."""

import pytest
import torch

from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_neighbor_sample import SHAPES, skewed_graph
from tests.cuda.test_walk import assert_same, some_weights
from tests.ops.test_sample_frontier import OPTIONS
from torch_gsample.ops import cumulate_weights
from torch_gsample.rng import make_key

COUNTS = [-1, 0, 1, 3, 33, 600]


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


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('shape', SHAPES[:3], ids=str)
def test_frontiers(cuda, shape, options):
    indptr, _ = skewed_graph(0, hub=700, num_nodes=50)
    n = indptr.numel() - 1
    given = arguments(indptr, **OPTIONS[options])
    for seed, k in enumerate(COUNTS):
        cuda.configure(seed, *shape)
        assert_same(
            cuda,
            'sample_frontier',
            indptr,
            torch.arange(n) * 1000,
            torch.arange(n) * 3 % 11 + 2**33,
            k,
            make_key(seed, 2, 7),
            seed,
            4,
            root=torch.arange(n) % 5 if k % 2 else None,
            **given,
        )


@pytest.mark.parametrize('temporal', [False, True])
@pytest.mark.parametrize('seed', range(8))
def test_many_weighted_draws_of_a_column(cuda, seed, temporal):
    """By a warp with a tree; columns take turns with it."""
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    indptr, _ = skewed_graph(seed, hub=1500, num_nodes=50)
    n = indptr.numel() - 1
    given = arguments(indptr, weighted=True, temporal=temporal)
    for k in (33, 39, 700):
        args = indptr, torch.arange(n) * 1000, torch.arange(n) + 2**33, k
        assert_same(cuda, 'sample_frontier', *args, make_key(seed), **given)


@pytest.mark.parametrize('seed', range(8))
def test_many_draws_of_a_column_that_repeat(cuda, seed):
    """Blocks look them up; most draws of a hub give way in chains."""
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    indptr, _ = skewed_graph(seed, hub=1500, num_nodes=12)
    n = indptr.numel() - 1
    for k in (37, 600, 1499):
        args = indptr, indptr[:-1], torch.arange(n), k, make_key(seed)
        assert_same(cuda, 'sample_frontier', *args)


def test_no_columns(cuda):
    cuda.configure()
    args = torch.tensor([0]), EMPTY, EMPTY, 2, make_key(0)
    out = assert_same(cuda, 'sample_frontier', *args)
    assert [x.tolist() for x in out] == [[0], []]


@pytest.mark.sanitize
def test_frontiers_under_a_sanitizer(cuda):
    indptr, _ = skewed_graph(0, hub=40, num_nodes=12)
    for seed, options in enumerate(OPTIONS.values()):
        cuda.configure(seed, 2, 64, 30)
        given = arguments(indptr, **options)
        for k in (3, 36):
            args = indptr, indptr[:-1], torch.arange(12), k, make_key(1)
            assert_same(cuda, 'sample_frontier', *args, **given)


@pytest.mark.parametrize('bad', [[1, 2, 3], [0, 3, 2], [0, -1, 3], [0, 5, 3]])
def test_columns_that_are_none_end_in_an_error(cuda, bad):
    two, time = torch.tensor([0, 1]), torch.tensor([0, 0, 0])
    cum_weight = cumulate_weights(torch.tensor([0, 1, 3]), torch.ones(3))
    cuda.configure()
    for given in (
        {},
        {'cum_weight': cum_weight},
        {'edge_time': time, 'column_time': two},
    ):
        with pytest.raises(RuntimeError, match="'indptr' must ascend from 0"):
            cuda.operator('sample_frontier')(
                torch.tensor(bad), two, two, 2, make_key(0), **given
            )


def test_lengths_that_do_not_fit_end_in_an_error(cuda):
    indptr, two = torch.tensor([0, 1, 3]), torch.tensor([0, 1])
    sample, cuda_key = cuda.operator('sample_frontier'), make_key(0)
    cuda.configure()
    with pytest.raises(RuntimeError, match="'start' must have 2 elements"):
        sample(indptr, two[:1], two, 2, cuda_key)
    with pytest.raises(RuntimeError, match="'cum_weight' must have at least"):
        sample(indptr, two, two, 2, cuda_key, cum_weight=two[:0])
    with pytest.raises(RuntimeError, match="'cum_weight' must have 4 elem"):
        sample(
            indptr, two, two, 2, cuda_key, cum_weight=two,
            edge_time=torch.arange(3), column_time=two,
        )  # fmt: skip
