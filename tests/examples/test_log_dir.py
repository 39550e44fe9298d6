"""The demo writes to TensorBoard where it is asked to."""

import sys
from types import SimpleNamespace

import pytest

from tests.examples.test_examples import run_here

MODULE = 'torch.utils.tensorboard'


class Writer:
    """Keeps its records, as TensorBoard's writer does in a folder."""

    def __init__(self, log_dir):
        self.log_dir, self.values = log_dir, {}
        Writer.last = self

    def add_scalar(self, name, value, step):
        self.values[name, step] = float(value)

    def flush(self):
        pass


def test_the_demo_logs_each_epoch(monkeypatch):
    fake = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, MODULE, fake)
    run_here(monkeypatch, 'train_debian', '--log-dir', 'runs')
    writer = Writer.last
    assert writer.log_dir == 'runs'
    assert {step for _, step in writer.values} == {1}
    for name in ('loss', 'validation accuracy', 'sampling/edges a second'):
        assert writer.values[name, 1] > 0
    assert writer.values['sampling/nodes a batch, 0', 1] == 64
    assert writer.values['seconds/wait', 1] > 0


def test_without_tensorboard_the_demo_says_so_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, MODULE, None)
    with pytest.raises(SystemExit, match="needs 'tensorboard': pip install"):
        run_here(monkeypatch, 'train_debian', '--log-dir', 'runs')
