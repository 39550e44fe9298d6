"""Damaged graphs that the fuzzer kept: errors name a file, nothing crashes.

Whatever passes all checks gives the same samples by both samplers.
"""

from pathlib import Path

from tests.storage import fuzz

CASES = Path(__file__).with_name('fuzz_corpus.txt').read_text().split()


def test_damaged_graphs_give_good_errors():
    outcomes = set()
    for case in CASES:
        try:
            outcomes.add(fuzz.one_input(bytes.fromhex(case)))
        except Exception as error:
            raise AssertionError(case) from error
    assert outcomes == {'refused', 'damaged', 'whole'}
