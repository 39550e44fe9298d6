"""Damaged features: errors name a file, and nothing crashes."""

import random
from collections import Counter

from tests.storage import fuzz_features

INPUTS = 250


def test_damaged_features_give_good_errors():
    draws, outcomes = random.Random(0), Counter()
    for _ in range(INPUTS):
        case = draws.randbytes(draws.randrange(4, 60))
        try:
            outcomes[fuzz_features.one_input(case)] += 1
        except Exception as error:
            raise AssertionError(case.hex()) from error
    assert min(outcomes[k] for k in ('refused', 'damaged', 'whole')) > 15
