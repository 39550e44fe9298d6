"""A few of the kills of ``kills.py``, which draws a hundred of each kind."""

import pytest

from tests.storage import kills


@pytest.mark.parametrize('kind', ['sampler', 'sums', 'inference', 'tables'])
def test_killed_writers_leave_a_complete_result_or_none(kind):
    assert kills.kill(kind, 3) > 0
