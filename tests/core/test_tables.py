"""The tables of local ids over more ids than 32 bits can count."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name('tables_test.cpp')


@pytest.mark.parametrize(
    'flags', [['-O2'], ['-O1', '-g', '-fsanitize=address,undefined']]
)
def test_tables_outlive_their_bases_and_calls_that_fail(tmp_path, flags):
    program = tmp_path / 'tables'
    subprocess.run(
        [os.environ.get('CXX', 'g++'), '-std=c++17', '-Wall', *flags]
        + [f'-I{ROOT / "csrc"}', SOURCE, '-o', program],
        check=True,
    )
    run = subprocess.run([program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    for line in run.stdout.splitlines():
        wraps, broken = line.split(': ')[1].split()
        assert int(wraps) > 100
        assert int(broken) > 100
    assert len(run.stdout.splitlines()) == 3
