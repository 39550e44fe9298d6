"""Slow tests are those of the list, and the list has tests alone."""

import re
from types import SimpleNamespace

import pytest

from tests import conftest, slow
from tests.fast import TOP


def test_the_list_has_tests_alone():
    lines = slow.LIST.read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        path, *_, name = line.partition('[')[0].split('::')
        assert re.search(rf'def {name}\(', (TOP / path).read_text()), line


def test_tests_of_the_list_are_marked():
    marks = {}
    names = [min(slow.listed()), 'tests/test_slow.py::test_that_is_quick']
    conftest.pytest_collection_modifyitems(
        [
            SimpleNamespace(
                nodeid=name,
                add_marker=lambda mark, n=name: marks.update({n: mark}),
            )
            for name in names
        ]
    )
    assert marks == {names[0]: 'slow'}


@pytest.mark.parametrize('seconds', [0.4, 0.6])
def test_tests_over_the_limit_are_written(tmp_path, monkeypatch, seconds):
    monkeypatch.setenv(slow.FOLDER, str(tmp_path))
    times = iter([5.0, 5.0 + seconds])
    monkeypatch.setattr(slow, 'processor_time', lambda: next(times))
    name = 'tests/test_a.py::test_b'
    run = slow.pytest_runtest_protocol(SimpleNamespace(nodeid=name))
    assert list(run) == [None]
    written = [file.read_text() for file in tmp_path.iterdir()]
    assert written == ([f'{name}\n'] if seconds > 0.5 else [])
