"""The examples run at toy size, and give the same result for a seed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent.parent
TOY = ['--epochs', '1', '--max-batches', '2', '--batch-size', '64']
EXAMPLES = {
    'train_debian.py': ['--hidden', '8'],
    'train_debian_hetero.py': ['--hidden', '8'],
    'link_prediction_gcc.py': ['--hidden', '8', '--eval-events', '200'],
}


def run(name: str) -> str:
    command = [sys.executable, f'examples/{name}', *TOY, *EXAMPLES[name]]
    done = subprocess.run(
        command, cwd=TOP, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize('name', EXAMPLES)
def test_example_reports_its_quality_reproducibly(name):
    pattern = r'(?:accuracy|AUC)\D*(\d\.\d+)'
    first, second = (re.findall(pattern, run(name)) for _ in range(2))
    assert first
    assert first == second
