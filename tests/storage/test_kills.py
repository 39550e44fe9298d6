"""A few of the kills of ``kills.py``, which draws a hundred of each kind."""

import pytest

from tests.storage import kills


@pytest.mark.parametrize('kind', ['sampler', 'sums', 'inference', 'tables'])
def test_what_a_kill_leaves_is_whole_or_nothing(kind):
    assert kills.kill(kind, 3) > 0
