"""Rows that threads number together, against one thread."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.built import CSRC, program

SOURCE = Path(__file__).with_name('number_rows_test.cpp')
THREADS = ['-DGSAMPLE_STD_THREADS', '-pthread']


@pytest.mark.parametrize(
    ('calls', 'flags'),
    [
        (40, ['-O2']),
        (8, ['-O1', '-g', '-fsanitize=address,undefined']),
        (8, ['-O1', '-g', '-fsanitize=thread']),
    ],
    ids=['fast', 'address', 'thread'],
)
def test_threads_number_rows_as_one_does(calls, flags):
    compiler = [os.environ.get('CXX', 'g++'), '-std=c++17', '-Wall', *flags]
    built = program(
        [*compiler, *THREADS, f'-I{CSRC}', '-ldl'],
        *(SOURCE, CSRC / 'cpu' / 'parallel.cpp'),
    )
    # setarch -R: ThreadSanitizer needs a fixed memory layout.
    run = subprocess.run(
        ['setarch', '-R', built, str(calls)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
