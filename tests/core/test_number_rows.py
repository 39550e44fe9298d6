"""Rows that threads number together, against one thread."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
def test_threads_number_rows_as_one_does(tmp_path, calls, flags):
    program = tmp_path / 'number_rows'
    subprocess.run(
        [os.environ.get('CXX', 'g++'), '-std=c++17', '-Wall', *flags, *THREADS]
        + [f'-I{ROOT / "csrc"}', SOURCE, ROOT / 'csrc/cpu/parallel.cpp']
        + ['-ldl', '-o', program],
        check=True,
    )
    # setarch -R: ThreadSanitizer needs a fixed memory layout.
    run = subprocess.run(
        ['setarch', '-R', program, str(calls)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
