"""Masks of elements in super-batched programs."""

import pytest

from tests.compiler.test_super_batch_text import IDS, assert_equal
from torch_gsample.compiler.ir import aten


def test_masks_of_elements_counts_of_values_and_quotients():
    def f(seeds):
        pairs = aten.stack.default([seeds, seeds + 1], 1)
        held = aten.index.Tensor(pairs, [aten.ne.Scalar(pairs, 1)])
        distinct = held.unique(return_counts=True)
        half = aten.floor_divide.default(seeds, 2)
        return held, distinct[0], distinct[1], half

    assert_equal(f, IDS)


@pytest.mark.parametrize('width', [1, 2])
def test_rows_are_written_where_the_same_mask_selected_them(width):
    def f(seeds):
        pairs = aten.stack.default([seeds] * width, 1)
        mask = aten.ne.Scalar(pairs, 1)
        held = aten.index.Tensor(pairs, [mask]) * 3
        return (aten.index_put.default(pairs, [mask], held),)

    def other(seeds):
        pairs = aten.stack.default([seeds] * width, 1)
        held = aten.index.Tensor(pairs, [aten.ne.Scalar(pairs, 1)])
        again = [aten.ne.Scalar(pairs * 2, 2)]
        return (aten.index_put.default(pairs, again, held),)

    assert_equal(f, IDS)
    assert_equal(other, IDS)  # by a mask of its own
