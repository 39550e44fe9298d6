"""Rows are copied from and to the positions that were given."""

import numpy as np
import pytest

from torch_gsample.storage.copy_rows import copy_rows


@pytest.mark.parametrize('width', [1, 5, 64, 300])
@pytest.mark.parametrize('count', [0, 1, 9, 40])
@pytest.mark.parametrize('given', ['at', 'to', 'both', 'none'])
def test_rows_are_copied(width, count, given):
    rng = np.random.default_rng(count)
    data = rng.integers(0, 255, (50, width), np.uint8)
    at = rng.integers(0, 50, count) if given in ('at', 'both') else None
    to = rng.permutation(60)[:count] if given in ('to', 'both') else None
    data = data if at is not None else data[:count]
    out = np.zeros((60, width), np.uint8)
    want = out.copy()
    want[np.arange(count) if to is None else to] = (
        data if at is None else data[at]
    )
    copy_rows(data, at, out, to)
    assert np.array_equal(out, want)
