"""``gsample spark-sample`` and ``spark-quality``, also under spark-submit."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
import torch
from torch_geometric.data import Data

from torch_gsample import cli, graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.loader import NeighborLoader
from torch_gsample.spark import SampledParquetLoader

NAMES = [f'v{i}' for i in range(30)]
ENDS = [(i, (i * i + 1) % 30) for i in range(30)]


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp('graph')
    src, dst = map(list, zip(*ENDS, strict=True))
    tables = {
        'edges': {'src': src, 'dst': dst, 'id': list(range(30))},
        'seeds': {'position': [0, 1, 2], 'id': [4, 5, 6]},
        'named': {
            'a': [NAMES[i] for i in src],
            'b': [NAMES[i] for i in dst],
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f'{name}.parquet')
    return {name: str(folder / f'{name}.parquet') for name in tables}


@pytest.fixture
def run(spark, capsys):
    def run(*words, command='spark-sample'):
        status = cli.main([command, *map(str, words)])
        return status, capsys.readouterr()

    yield run
    log = logging.getLogger('torch_gsample.spark')
    assert (log.handlers, log.level) == ([], logging.NOTSET)


def local(operator, *args, **options):
    data = Data(edge_index=torch.tensor(ENDS).T, num_nodes=30)
    return getattr(graph_sampling, operator)(data, *args, seed=3, **options)


def rows(path, *names):
    table = pq.read_table(path)
    return set(zip(*(table[n].to_pylist() for n in names), strict=True))


def test_samples_are_written(run, files, tmp_path):
    out, metrics = tmp_path / 'out', tmp_path / 'metrics.json'
    words = ['random_vertex', '--edges', files['edges'], '--fraction', 0.7]
    words += ['--seed', 3, '--output', out]
    status, shown = run(*words, '--metrics', metrics, '--json')
    assert status == 0
    found = local('random_vertex', 0.7)
    assert rows(out / 'edges', 'id') == {(e,) for e in found.e_id.tolist()}
    assert rows(out / 'vertices', 'id') == {(v,) for v in found.n_id.tolist()}
    report = json.loads(metrics.read_text())
    assert json.loads(shown.out)['stages'] == len(report['stages']) > 0
    status, shown = run(*words)  # the folder is there
    assert status == 2
    assert 'already exists' in shown.err
    assert run(*words, '--overwrite', '--quiet')[0] == 0


def test_keys_are_mapped_and_come_back(run, files, tmp_path):
    out = tmp_path / 'out'
    words = ['--edges', files['named'], '--columns', 'a,b', '--id', 'name']
    words += ['--keys', 'dense', '--fraction', 0.6, '--output', out]
    assert run('random_vertex', *words, '--quiet')[0] == 0
    kept = {name for (name,) in rows(out / 'vertices', 'name')}
    assert 0 < len(kept) < 30
    assert rows(out / 'ids', 'name') == {(name,) for name in NAMES}
    named = {(NAMES[a], NAMES[b]) for a, b in ENDS}
    got = rows(out / 'edges', 'a', 'b')
    assert got
    assert got == {(a, b) for a, b in named if {a, b} <= kept}


def test_batches_are_written(run, files, tmp_path):
    words = ['--edges', files['edges'], '--seeds', files['seeds']]
    words += ['--fanouts', '2,1', '--batch-size', 2, '--seed', 3]
    words += ['--output', tmp_path / 'out', '--quiet']
    assert run('neighbor_sample', *words)[0] == 0
    data = Data(edge_index=torch.tensor(ENDS).T, num_nodes=30)
    want = NeighborLoader(
        data,
        [2, 1],
        input_nodes=torch.tensor([4, 5, 6]),
        batch_size=2,
        seed=3,
        rng_scope='epoch',
    )
    got = SampledParquetLoader(str(tmp_path / 'out'))
    pairs = [(a.n_id.tolist(), b.n_id.tolist()) for a, b in zip(got, want)]  # noqa: B905
    assert len(pairs) == 2
    assert all(a == b for a, b in pairs)


def test_wrong_options_are_one_line(run, files, tmp_path):
    edges = '--edges', files['edges']
    out = '--output', tmp_path / 'out'
    for words, message in (
        (['random_edge'], '--fraction is missing'),
        (['random_edge', '--fraction', 0.5], '--edges is missing'),
        (['random_edge', '--fraction', 0.5, *edges], '--output is missing'),
        ([*edges, *out], 'an operator is missing'),
        (
            ['random_edge', '--fraction', 0.5, *edges, *out, '--walkers', 2],
            '--walkers is not an option of random_edge',
        ),
        (['neighbor_sample', *edges, *out], '--seeds is missing'),
        (
            ['random_edge', '--fraction', 1.5, *edges, *out, '--quiet'],
            "'fraction' must be in [0, 1]",
        ),
        (
            ['random_edge', '--fraction', 1, *out, '--edges', 'no.parquet'],
            'PATH_NOT_FOUND',
        ),
    ):
        status, shown = run(*words)
        assert (status, shown.out) == (2, '')
        assert message in shown.err.splitlines()[-1]


def measured(*graphs, wedges, seed):
    """The quality in memory, which takes a tenth of the time."""
    assert (wedges, seed) == (50, 4)
    found = []
    for vertices, edges in graphs:
        ids = sorted(row.id for row in vertices.collect())
        ends = [(row.src, row.dst) for row in edges.collect()]
        place = torch.searchsorted(torch.tensor(ids), torch.tensor(ends)).T
        found.append(Data(edge_index=place, num_nodes=len(ids)))
    return graph_sampling.sample_quality(*found)


def test_samples_are_compared_with_their_graph(
    run, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(on_spark, 'sample_quality', measured)
    data = Data(edge_index=torch.tensor(ENDS).T, num_nodes=30)
    part = torch.tensor(ENDS[:12])
    ids, part = part.unique(return_inverse=True)
    part = Data(edge_index=part.T, num_nodes=len(ids))
    quality = graph_sampling.sample_quality(data, part)
    want = quality.rows()
    for name, id, columns, to in (
        ('ints', 'id', ('src', 'dst'), int),
        ('names', 'name', ('a', 'b'), NAMES.__getitem__),
    ):
        ends = zip(*ENDS[:12], strict=True)
        edges = {c: [*map(to, e)] for c, e in zip(columns, ends, strict=True)}
        for kind, table in (
            ('edges', edges),
            ('vertices', {id: [to(i) for i in ids.tolist()]}),
        ):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(pa.table(table), tmp_path / name / kind)

    def compare(name, edges, *words):
        words = [tmp_path / name, '--edges', files[edges], '--quiet', *words]
        words += ['--wedges', 50, '--seed', 4]
        status, shown = run(*words, command='spark-quality')
        assert status == 0, shown.err
        return shown.out

    picture = tmp_path / 'degrees.svg'
    found = json.loads(compare('ints', 'edges', '--json', '--output', picture))
    assert found['stages'] > 0
    assert found['original'] == {name: value for name, value, _ in want}
    assert found['sampled'] == {name: value for name, _, value in want}
    assert '</svg>' in picture.read_text()
    columns = '--columns', 'a,b', '--id', 'name'
    lines = compare('names', 'named', *columns).splitlines()
    cells = quality.table().splitlines()[2:]
    shown = [f'| {" | ".join(re.split("  +", line))} |' for line in lines]
    assert shown == ['| property | original | sampled |', *cells]
    out = '--output', tmp_path / 'no' / 'a.svg'
    edges = '--edges', files['edges']
    for words, message in (
        ([], 'the folder of a sample is missing'),
        ([tmp_path], '--edges is missing'),
        ([tmp_path, *edges, *out], 'does not exist'),
        ([tmp_path, *edges, '--quiet'], 'PATH_NOT_FOUND'),
    ):
        status, shown = run(*words, command='spark-quality')
        assert (status, shown.out) == (2, '')
        assert message in shown.err.splitlines()[-1]


def submit(command, *words):
    """Spark starts Python here, with its own master and settings."""
    script = subprocess.run(
        [sys.executable, '-m', 'torch_gsample.cli', command, '--script'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    home = Path(pyspark.__file__).parent
    place = {'SPARK_HOME': str(home), 'PYTHONPATH': os.getcwd()}
    python = {'PYSPARK_PYTHON': sys.executable, 'SPARK_LOCAL_IP': '127.0.0.1'}
    done = subprocess.run(
        [home / 'bin/spark-submit', '--master', 'local[1]']
        + ['--conf', 'spark.ui.enabled=false', script, *map(str, words)],
        env={**os.environ, **place, **python},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.interop
def test_spark_submit_runs_both(files, tmp_path):
    words = ['--edges', files['edges'], '--seed', 3, '--fraction', 0.5]
    done = submit(
        'spark-sample', 'random_edge', *words, '--output', tmp_path / 'out'
    )
    found = local('random_edge', 0.5, edge_id=torch.arange(30))
    assert rows(tmp_path / 'out/edges', 'src', 'dst') == {
        ENDS[e] for e in found.e_id.tolist()
    }
    # The launcher prints both streams of Python on one.
    assert 'gsample spark-sample random_edge: done after' in done.stdout
    done = submit('spark-quality', tmp_path / 'out', '--edges', files['edges'])
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ['edges', '30', str(len(found.e_id))] in lines
