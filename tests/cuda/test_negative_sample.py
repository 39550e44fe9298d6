"""Negatives on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES
from tests.cuda.test_matrix import EMPTY
from tests.cuda.test_walk import assert_same
from tests.ops.negative_sample_cases import OPTIONS, arguments, neighbors
from torch_gsample.rng import make_key

IDS = torch.arange(200) * 7 % 150


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_negatives(cuda, shape, options):
    for seed, n in enumerate([1, 66, 200]):
        cuda.configure(seed, *shape)
        args = IDS[:n], 6, seed % 2 == 0, make_key(seed, 4, 2), seed
        given = arguments(n, **OPTIONS[options])
        out = assert_same(cuda, 'negative_sample', *args, **given)
        assert -1 <= int(out.min()) <= int(out.max()) < 6


def test_negatives_of_a_node_that_nearly_all_are_neighbours_of(cuda):
    cuda.configure(3, 2, 64, 30)
    near = neighbors([[*range(150), *range(151, 170)]] + [[]] * 5)
    anchor = torch.zeros(40, dtype=torch.int64)
    args = IDS[:40], 170, True, make_key(2), 0
    out = assert_same(cuda, 'negative_sample', *args, anchor=anchor, **near)
    assert set(out.tolist()) == {150}


def test_no_negatives(cuda):
    cuda.configure()
    args = EMPTY, 0, True, make_key(0), 0
    assert assert_same(cuda, 'negative_sample', *args).numel() == 0


@pytest.mark.sanitize
def test_negatives_under_a_sanitizer(cuda):
    cuda.configure(2, 2, 64, 30)
    args = IDS[:66], 6, True, make_key(0), 1
    given = arguments(66, **OPTIONS['all'])
    assert_same(cuda, 'negative_sample', *args, **given)


@pytest.mark.parametrize(
    ('anchor', 'indptr'),
    [(-1, [0, 1]), (1, [0, 1]), (0, [0, 2]), (0, [1, 0]), (0, [-1, 1])],
)
def test_anchors_that_cannot_be_read_end_in_an_error(cuda, anchor, indptr):
    cuda.configure()
    for operator in (
        cuda.operator('negative_sample'),
        torch.ops.gsample.negative_sample,
    ):
        with pytest.raises(RuntimeError, match=rf'\(got {anchor}\) and'):
            operator(
                IDS[:2], 6, True, make_key(0),
                anchor=torch.tensor([0, anchor])[1:].repeat(2),
                indptr=torch.tensor(indptr),
                indices=torch.tensor([2]),
            )  # fmt: skip
