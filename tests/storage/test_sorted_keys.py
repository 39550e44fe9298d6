"""Keys are found where a search of all of them finds them."""

import numpy as np
import pytest

from torch_gsample.storage.sorted_keys import SortedKeys


@pytest.mark.parametrize('size', [1, 2, 40, 5_000])
@pytest.mark.parametrize('below', [5_001, 1 << 40])
@pytest.mark.parametrize('power', [1, 9])
def test_keys_are_found(size, below, power):
    rng = np.random.default_rng(size)
    keys = (below * rng.random(size) ** power).astype(np.int64)
    keys = np.unique(keys)  # by a power of 9, most of them in few runs
    near = np.concatenate([keys - 1, keys, keys + 1, [0, below, 2 * below]])
    place, found = SortedKeys(keys).find(near)
    assert found.tolist() == np.isin(near, keys).tolist()
    want = np.searchsorted(keys, near)
    assert place.tolist() == np.minimum(want, len(keys) - 1).tolist()


def test_nothing_is_found_among_no_keys():
    none = np.array([], np.int64)
    place, found = SortedKeys(none).find(np.array([0, 3]))
    assert (place.tolist(), found.tolist()) == ([0, 0], [False, False])
    assert len(SortedKeys(np.array([4])).find(none)[0]) == 0
