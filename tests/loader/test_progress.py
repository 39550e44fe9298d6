"""A bar shows the progress of a pass on a terminal, and nowhere else."""

import io
import sys

import pytest

from tests.loader.batches import graph, loader_of, run
from torch_gsample.loader import LinkNeighborLoader


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Puts a terminal in the place of standard error."""
    out = Terminal()
    monkeypatch.setattr(sys, 'stderr', out)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', '100')
    return out


def test_a_bar_shows_edges_a_second(monkeypatch):
    out = terminal(monkeypatch)
    loader = loader_of(progress=True)
    assert run(loader) == run(loader_of())
    text = out.getvalue()
    assert 'edges/s' in text
    assert f'{len(loader)}/{len(loader)}' in text


def test_a_bar_ends_with_a_pass_that_is_left(monkeypatch):
    out = terminal(monkeypatch)
    batches = iter(loader_of(progress=True))
    next(batches)
    batches.close()
    text = out.getvalue()
    assert text.count('\x1b[?25l') == text.count('\x1b[?25h') > 0  # a cursor


def test_there_is_no_bar_without_a_terminal(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, 'stderr', out)
    assert run(loader_of(progress=True)) == run(loader_of())
    assert out.getvalue() == ''


def test_without_rich_a_bar_is_refused_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, 'rich', None)
    with pytest.raises(ImportError, match="NeighborLoader: 'progress' needs"):
        loader_of(progress=True)
    with pytest.raises(ImportError, match="LinkNeighborLoader: 'progress'"):
        LinkNeighborLoader(graph(), [2], progress=True)
    assert len(run(loader_of())) > 1
