"""Runs the slow tests (``make test-slow``), or lists them.

A slow test takes over half a second of processor time, with its children, and
has a line in ``slow.txt``; ``make test`` leaves it out, and ``.ci/run`` does
not. With ``--list``, all tests run, and the list is written again.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fast import MARKERS

LIST = Path(__file__).with_name('slow.txt')
#: Seconds of processor time.
LIMIT = 0.5
#: Where each process of pytest writes the tests that are slow.
FOLDER = 'GSAMPLE_SLOW_TESTS'
RUN = ['-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder']


def listed() -> frozenset[str]:
    """Returns the names of the slow tests."""
    return frozenset(LIST.read_text().splitlines())


def processor_time() -> float:
    """Returns the seconds of this process and of children that ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Writes the name of a test that was slow."""
    begin = processor_time()
    yield
    if processor_time() - begin > LIMIT:
        with open(Path(os.environ[FOLDER]) / str(os.getpid()), 'a') as file:
            file.write(f'{item.nodeid}\n')


def main(arguments: list[str]) -> int:
    """Runs pytest; ``--list`` writes the list, others are for pytest."""
    if '--list' not in arguments:
        files = sorted({test.partition('::')[0] for test in listed()})
        # The files of slow tests alone: to collect all takes half a minute.
        return pytest.main(['-m', 'slow', *RUN, *arguments, *files])
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER] = folder
        status = pytest.main(['-p', 'tests.slow', '-m', MARKERS, *RUN])
        found = [file.read_text() for file in Path(folder).iterdir()]
    lines = sorted({line for text in found for line in text.splitlines()})
    LIST.write_text(''.join(f'{line}\n' for line in lines))
    return status


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
