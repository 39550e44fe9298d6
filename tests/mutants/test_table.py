"""The table of planted mistakes is that of this tree."""

from pathlib import Path

import pytest

from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize('mutant', MUTANTS, ids=lambda m: m.name)
def test_a_mistake_can_be_planted(mutant):
    text = (ROOT / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.old != mutant.new
    paths = [x for x in mutant.tests.split() if x.startswith('tests/')]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_mistakes_have_names_of_their_own():
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
