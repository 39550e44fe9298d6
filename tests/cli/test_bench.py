"""The benchmark of a machine, on tiny graphs."""

import json
import sys

import pytest
import torch

from torch_gsample import cli
from torch_gsample.bench import picture, tasks
from torch_gsample.bench.tasks import Row
from torch_gsample.bench.timing import Timing, compare
from torch_gsample.bench.verdict import verdict

TINY = tasks._Size(500, 5_000, 100, 16, 2, 20)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(tasks, '_QUICK', TINY)
    monkeypatch.setattr(tasks, '_ROUNDS', 3)
    monkeypatch.setattr(tasks, '_TRIALS', 1)
    monkeypatch.setattr(tasks, '_LAYERS', [20])


@pytest.fixture
def a_peer(monkeypatch):
    """A walker that is installed."""
    monkeypatch.setattr(
        tasks.peers,
        'walkers',
        lambda graph, seeds, length: {'walker': lambda i: sum(range(100))},
    )


def test_rows_are_printed_written_and_drawn(a_peer, tmp_path, capsys):
    folder = tmp_path / 'made' / 'here'
    args = ['bench', '--quick', '--threads', '1', '--output', str(folder)]
    threads = torch.get_num_threads()
    assert cli.main([*args, '--json']) == 0
    assert torch.get_num_threads() == threads
    found = json.loads(capsys.readouterr().out)
    assert json.loads((folder / 'bench.json').read_text()) == found
    assert [row['task'] for row in found['rows']] == list(tasks.TASKS)
    walks = found['rows'][2]
    assert walks['ratios']['walker'] == pytest.approx(
        walks['median_seconds']['walker']
        / walks['median_seconds']['torch_gsample']
    )
    assert {row['threads'] for row in found['rows']} == {1}
    assert found['versions']['torch'].startswith('2.')
    text = (folder / 'bench.txt').read_text()
    assert found['machine'] in text
    assert f'{found["verdict"][0]}\n' in text
    assert 'as fast as walker' in text or 'slower than walker' in text
    assert (folder / 'bench.png').read_bytes()[1:4] == b'PNG'


def test_interrupted_bench_prints_finished_rows(monkeypatch, tmp_path, capsys):
    def stop(*args):
        raise KeyboardInterrupt

    made = {'walks': tasks._walks, 'loader': stop}
    monkeypatch.setattr(tasks, 'TASKS', made)
    args = ['bench', '--quick', '--threads', '1', '--output', str(tmp_path)]
    assert cli.main([*args, '--json']) == 130
    found = json.loads(capsys.readouterr().out)
    assert [row['task'] for row in found['rows']] == ['walks']
    assert json.loads((tmp_path / 'bench.json').read_text()) == found


def test_the_verdict_names_the_slowest_row():
    def row(task, ours, **peers):
        times = {'torch_gsample': ours, **peers}
        return Row(task, 1, {n: Timing([t]) for n, t in times.items()})

    rows = [row('walks', 1.0, a=8.0, b=1.0), row('loader', 2.0, a=1.0)]
    assert verdict(rows) == [
        'torch_gsample is 2.0x as fast as a (geometric mean, 2 rows); slower '
        'in loader, 1 thread: 0.50x.',
        'torch_gsample is as fast as b (geometric mean, 1 row).',
    ]
    assert verdict([row('walks', 2.0, a=1.0)]) == [
        'torch_gsample is slower than a, which is 2.0x as fast (geometric '
        'mean, 1 row).'
    ]


def test_without_peers_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(tasks, 'TASKS', {'walks': tasks._walks})
    monkeypatch.setattr(tasks.peers, 'walkers', lambda *_: {})
    assert cli.main(['bench', '--quick', '--threads', '1']) == 0
    out = capsys.readouterr().out
    assert 'No peer is installed' in out


def test_without_matplotlib_the_rest_is_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, 'matplotlib.figure', None)
    monkeypatch.setattr(tasks, 'TASKS', {})
    assert cli.main(['bench', '--output', str(tmp_path)]) == 0
    error = capsys.readouterr().err
    assert "needs matplotlib: `pip install 'torch_gsample[viz]'`" in error
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == ['bench.json', 'bench.txt']


def test_a_picture_needs_no_display(monkeypatch, tmp_path):
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.setenv('MPLBACKEND', 'tkagg')  # would need one
    timings = {'torch_gsample': Timing([1.0]), 'peer': Timing([0.5, 3.0, 4.0])}
    row = Row('a task', 2, timings)
    assert row.ratios == {'peer': 3.0}
    picture.draw(tmp_path / 'a.png', 'a machine', [row])
    picture.draw(tmp_path / 'b.png', 'a machine', [])
    assert (tmp_path / 'b.png').stat().st_size > 0


def test_folders_are_checked_before_minutes_go_by(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(tasks, 'run_tasks', None)  # not reached
    (tmp_path / 'file').touch()
    assert cli.main(['bench', '--output', str(tmp_path / 'file')]) == 2
    assert 'file' in capsys.readouterr().err
    assert cli.main(['bench', '--seconds', '0']) == 2
    assert '--seconds must be positive (got 0.0)' in capsys.readouterr().err


def test_candidates_take_turns():
    calls = []  # two rounds are untimed
    candidates = {n: lambda i, n=n: calls.append((n, i)) for n in 'ab'}
    timings = compare(candidates, rounds=2)
    rounds = zip((0, 0, 0, 1), ('ba', 'ab', 'ab', 'ba'), strict=True)
    assert calls == [(n, i) for i, order in rounds for n in order]
    assert [len(t.seconds) for t in timings.values()] == [2, 2]
    calls.clear()
    compare(candidates, rounds=9, max_seconds=0)
    assert len(calls) == 2 * (2 + 3)


def test_all_are_as_often_first():
    called = []
    candidates = {name: lambda i, n=name: called.append(n) for name in 'abc'}
    compare(candidates, rounds=6)
    rounds = [''.join(called[i : i + 3]) for i in range(6, 24, 3)]
    assert rounds == ['abc', 'cba', 'bca', 'acb', 'cab', 'bac']
