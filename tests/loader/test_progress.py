"""A bar shows the progress of a pass on a terminal, and nowhere else."""

import io
import sys
from functools import partial

from tqdm import tqdm

from tests.loader.batches import loader_of, run


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Puts a terminal in the place of standard error."""
    out = Terminal()
    monkeypatch.setattr(sys, 'stderr', out)
    each = partial(tqdm, mininterval=0)  # shows each batch
    monkeypatch.setattr('torch_gsample.loader.progress.tqdm', each)
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
    assert not out.getvalue().endswith('\r')
    batches.close()
    assert out.getvalue().endswith(' \r')  # the line is cleared


def test_there_is_no_bar_without_a_terminal(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, 'stderr', out)
    assert run(loader_of(progress=True)) == run(loader_of())
    assert out.getvalue() == ''
