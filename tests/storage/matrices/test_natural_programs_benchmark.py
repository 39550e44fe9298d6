"""`benchmark/natural_programs.py` compares equal samples, or fails."""

import sys
from pathlib import Path

import pytest
import torch

from torch_gsample import SparseSample

TOP = Path(__file__).resolve().parents[3]
MODULES = 'natural_programs', 'harness'


@pytest.fixture
def natural_programs(monkeypatch):
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    import natural_programs

    yield natural_programs
    for name in MODULES:
        sys.modules.pop(name, None)


def test_a_table_is_written(natural_programs, tmp_path):
    page = tmp_path / 'page.md'
    sizes = ['--nodes', '600', '--edges', '4000', '--batch-size', '8']
    rounds = ['--together', '3', '--rounds', '1', '--cache', '0MiB']
    natural_programs.main([*sizes, *rounds, '--markdown', str(page)])
    rows = page.read_text().splitlines()[4:]
    assert len(rows) == len(natural_programs.programs(5))
    for row in rows:
        alone, together = map(float, row.split('|')[-3:-1])
        assert 0 < together < alone  # MB that were read


def test_other_samples_are_an_error(natural_programs):
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    A = SparseSample.from_edge_index(edge_index)
    natural_programs.assert_equal([A, [A]], [A, [A]])
    with pytest.raises(AssertionError, match='differ'):
        natural_programs.assert_equal([A, [A]], [A, [A[:, [1, 0, 2]]]])
