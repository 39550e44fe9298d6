"""`benchmark/gpu.py` runs to its end, here on the CPU with its clock."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from torch_gsample.datasets import power_law

TOP = Path(__file__).resolve().parents[2]


def not_compiled(program, backend):
    """The program: compiled ones have tests of their own."""
    assert callable(backend), 'its name is known only where it is installed'
    return program


@pytest.fixture
def programs(monkeypatch):
    """The modules of the benchmark."""
    monkeypatch.syspath_prepend(str(TOP / 'benchmark'))
    monkeypatch.setattr(torch, 'compile', not_compiled)
    import gpu
    import gpu_bounds

    yield gpu, gpu_bounds
    for name in (
        'gpu',
        'gpu_bounds',
        'gpu_kernels',
        'gpu_launches',
        'gpu_profile',
        'gpu_samples',
        'gpu_sectors',
        'gpu_times',
        'gpu_training',
        'harness',
        'neighbor',
    ):
        sys.modules.pop(name, None)


@pytest.fixture
def bench(programs):
    gpu, bounds = programs
    device = torch.device('cpu')
    rates = bounds.measure_rates(device, bounds.host_seconds, 1 << 16)
    assert min(rates.copy, rates.host, *rates.sectors.values()) > 0
    assert list(rates.sectors) == [32, 64, 128, 256]
    assert rates.reads == rates.sectors[32]
    graph = power_law(2_000, 20_000, 300)
    return gpu.Bench(graph, device, rates, once(bounds), num_seeds=1_500)


def once(bounds):
    """A clock that times a single round."""
    return lambda call, rounds: bounds.host_seconds(call, 1)


def test_every_row_is_measured(bench, programs):
    gpu, _ = programs
    written = []
    rows = gpu.measure(bench, write=written.append)
    assert written == rows
    assert [row.note for row in rows if 'failed' in row.note] == []
    assert [row for row in rows if row.ms <= 0] == []
    assert rows[0].note == 'the sample of the CPU'
    assert len(rows) == 49
    unbounded = [row.name for row in rows if row.bound_ms <= 0]
    assert len(unbounded) == 19, unbounded  # epochs, padded, times apart
    assert 'the same sample' in rows[-1].note


def count_seconds(seen):
    """A clock on which each call that is seen takes a second."""

    def seconds(call, rounds):
        out = call(0)
        return float(len(seen)), out

    return seconds


def test_times_are_those_of_a_call(bench, programs):
    """A pipelined time is of one call; kernels are of all that it started."""
    import gpu_times

    seen, clock = [], bench.seconds

    def work(i):
        seen.append(i)
        torch.zeros(1_000_000).sort()

    in_turn, _ = bench.milliseconds(work, rounds=1)
    seen.clear()
    bench.seconds = count_seconds(seen)
    assert gpu_times.pipelined(bench, work) == 1e3
    assert seen == list(range(gpu_times.IN_A_ROW))
    bench.seconds = clock
    alone = gpu_times.kernels_only(bench, work)
    assert in_turn / 30 < alone < in_turn * 30  # milliseconds, too
    names = [row.name for row in gpu_times.times_apart(bench)]
    kinds = [name.rpartition(', ')[2] for name in names]
    assert kinds == ['latency', 'pipelined', 'kernels'] * 3
    assert len(set(names)) == 9


@pytest.mark.parametrize(
    'path', list(TOP.glob('benchmark/*.py')), ids=lambda path: path.name
)
def test_benchmarks_run_where_the_package_is_not_installed(path):
    """No entry point finds the backend then, and rich may be missing."""
    text = path.read_text()
    assert not re.search(r'backend=[\'"]', text)
    assert not re.search(r'^(from|import) rich', text, re.MULTILINE)


def test_a_row_that_fails_says_why(bench, programs):
    gpu, _ = programs
    good = bench.seconds

    def seconds(call, rounds):
        if rounds == 9:
            raise RuntimeError('out of memory')
        return good(call, rounds)

    bench.seconds = seconds
    notes = [row.note for row in gpu.measure(bench)]
    assert notes.count('failed: RuntimeError: out of memory') == 6
    assert [row.note for row in gpu.measure(bench, -1)] == [
        'left out: no time was left'
    ] * 18


def test_results_become_a_file_and_a_table(bench, programs, tmp_path):
    gpu, _ = programs
    rows = [gpu.Row('walks', 2.0, 0.5, 2.5, 'x'), gpu.Row('bad', note='y')]
    for row in rows:
        gpu.write_row(tmp_path, row)
    lines = (tmp_path / 'rows.jsonl').read_text().splitlines()
    assert [json.loads(line)['name'] for line in lines] == ['walks', 'bad']
    path = gpu.write_json(tmp_path, 'NVIDIA H200', 'tiny', bench.rates, rows)
    assert path.name.startswith('cuda-nvidia-h200-20')
    assert json.loads(path.read_text())['rows'][0]['bound_ms'] == 0.5
    page = tmp_path / 'page.md'
    page.write_text((TOP / 'docs/benchmarks.md').read_text())
    gpu.write_page(page, gpu.table('NVIDIA H200', bench.rates, rows))
    text = page.read_text()
    assert '| walks | 2 | 0.5 | 2.5 | 25 % | x |' in text
    assert 'No GPU was measured yet' not in text
    assert 'Goals for an H200' in text
    gpu.write_page(page, 'again')  # what was measured before goes
    assert '| walks |' not in page.read_text()


def test_the_profile_of_kernels_runs(tmp_path):
    command = [sys.executable, 'benchmark/gpu_profile.py', '--graph', 'tiny']
    out = tmp_path / 'kernels.jsonl'
    subprocess.run(
        [*command, '--device', 'cpu', '--out', out],
        cwd=TOP,
        env=os.environ | {'PYTHONPATH': str(TOP)},
        check=True,
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len({row['call'] for row in rows}) == 5
    assert 'gsample::random_walk' in {row['kernel'] for row in rows}


@pytest.mark.skipif(torch.cuda.is_available(), reason='it would measure')
def test_it_asks_for_a_gpu(programs, monkeypatch, capsys):
    gpu, _ = programs
    monkeypatch.setattr(sys, 'argv', ['gpu.py'])
    with pytest.raises(SystemExit) as caught:
        gpu.main()
    assert caught.value.code == 1
    assert 'there is no GPU' in capsys.readouterr().err
