"""`benchmark/convolutions.py` measures rows, and resumes after them."""

import json
import sys
from pathlib import Path

import pytest
import torch

TOP = Path(__file__).resolve().parents[2]
MODULES = ('convolutions', 'convolution_layers', 'harness')


@pytest.fixture
def convolutions(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    import convolutions

    yield convolutions
    for name in MODULES:
        sys.modules.pop(name, None)


def test_rows_are_measured_once(convolutions, tmp_path):
    file, page = tmp_path / 'rows.jsonl', tmp_path / 'page.md'
    options = ['--graphs', 'tiny', '--channels', '8', '--rounds', '1']
    options += ['--threads', str(torch.get_num_threads())]
    options += ['--rows', str(file), '--markdown', str(page)]
    convolutions.main([*options, '--layers', 'SimpleConv'])
    convolutions.main([*options, '--layers', 'SimpleConv', 'NNConv'])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row['layer'] for row in rows] == ['SimpleConv', 'NNConv']
    assert all(row['PyG ms'] > 0 for row in rows)
    assert 'median of 2' in page.read_text()
