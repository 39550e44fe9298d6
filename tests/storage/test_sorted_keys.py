"""Keys are found where a search of all of them finds them."""

import numpy as np
import pytest

from torch_gsample.storage.sorted_keys import SortedKeys, distinct


@pytest.mark.parametrize('size', [1, 2, 40, 5_000])
@pytest.mark.parametrize('below', [5_001, 1 << 40])  # dense and sparse keys
@pytest.mark.parametrize('power', [1, 9])
def test_keys_are_found(size, below, power):
    rng = np.random.default_rng(size)
    keys = (below * rng.random(size) ** power).astype(np.int64)
    keys = np.unique(keys)  # by a power of 9, most of them in few runs
    order = rng.permutation(len(keys))
    place, missing = SortedKeys(keys).find(keys[order])
    assert (place.tolist(), missing) == (order.tolist(), -1)


@pytest.mark.parametrize('keys', [[3, 5, 63, 64, 200], [3, 1 << 40], []])
@pytest.mark.parametrize('wrong', [-1, -(1 << 62), 0, 4, 65, 201, 1 << 62])
def test_the_first_unknown_key_is_named(keys, wrong):
    keys = np.array(keys, np.int64)
    asked = np.concatenate([np.tile(keys, 9), [wrong, wrong, *keys]])
    assert SortedKeys(keys).find(asked)[1] == 9 * len(keys)
    assert SortedKeys(keys).find(asked[:0])[1] == -1


@pytest.mark.parametrize('size', [0, 1, 2, 500])
def test_distinct_ids_ascend(size):
    ids = np.random.default_rng(size).integers(-9, 100, size)
    assert distinct(ids).tolist() == sorted(set(ids.tolist()))
