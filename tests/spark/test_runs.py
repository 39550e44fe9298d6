"""An interrupted run continues, with the results of a complete one."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from torch_geometric.data import Data

from tests.spark.graphs import assert_same_batches, homogeneous, seed_frame
from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.loader import NeighborLoader
from torch_gsample.spark import (
    SampledParquetLoader,
    run_folder,
    runs,
    sample_epochs,
)
from torch_gsample.spark import walk as walks
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.replaced import exchange

SEEDS = [5, 1, 9, 1, 20, 33, 2]


@pytest.fixture(scope='module')
def data():
    data = homogeneous()
    return Data(edge_index=data.edge_index, num_nodes=40)


@pytest.fixture(scope='module')
def graph(data, tmp_path_factory):
    path = tmp_path_factory.mktemp('graph') / 'graph'
    return ChunkedGraph.write(path, data)


def local(data, epoch):
    loader = NeighborLoader(
        data,
        [3, 2],
        input_nodes=torch.tensor(SEEDS[epoch:] + SEEDS[:epoch]),
        batch_size=2,
        seed=12,
        rng_scope='epoch',
    )
    loader.set_epoch(epoch)
    return loader


def in_epoch(spark):
    """The seeds, turned round by the epoch."""
    return lambda epoch: seed_frame(spark, SEEDS[epoch:] + SEEDS[:epoch])


def sample(graph, seeds, path, epochs=2, **options):
    options = {'batch_size': 2, 'seed': 12, 'batches_per_job': 2} | options
    sample_epochs(graph, seeds, [3, 2], path, epochs=epochs, **options)


def test_a_run_that_was_interrupted_does_the_rest(
    spark, data, graph, tmp_path, monkeypatch
):
    run, seeds, real = tmp_path / 'run', in_epoch(spark), runs.sample_counted
    jobs = []

    def counted(*args, **options):
        jobs.append((options['key'][1], options['batches']))
        if len(jobs) == 4:
            raise InterruptedError
        return real(*args, **options)

    monkeypatch.setattr(runs, 'sample_counted', counted)
    with pytest.raises(InterruptedError):
        sample(graph, seeds, run)
    assert_same_batches(SampledParquetLoader(run), local(data, 0))
    loader = SampledParquetLoader(run, num_workers=1)
    loader.set_epoch(1)
    with pytest.raises(
        FileNotFoundError, match=r'epoch-1.*is not a complete folder'
    ):
        list(loader)
    (run / 'epoch-1' / 'batches-00000002-0.parquet').touch()  # half a job
    sample(graph, seeds, run)
    assert jobs == [
        *((0, range(0, 2)), (0, range(2, 4)), (1, range(0, 2))),
        *((1, range(2, 4)), (1, range(2, 4))),
    ]
    loader.set_epoch(1)
    assert_same_batches(loader, local(data, 1))
    names = {path.name.partition('-')[0] for path in run.glob('*/*')}
    assert names == {'batches', 'index.json'}
    assert len([*(run / 'epoch-1').iterdir()]) <= 1 + 4
    sample(graph, seeds, run)  # nothing is left to do
    assert len(jobs) == 5


def test_seeds_are_counted_once_in_an_epoch(spark, graph, tmp_path):
    seeds, stages = seed_frame(spark, SEEDS), []
    for at_once in (4, 1):
        run = tmp_path / f'{at_once}'
        with on_spark.watch(spark, 'a run') as report:
            sample(graph, seeds, run, 1, batches_per_job=at_once)
        stages.append(len(report.stages))
    # A job to sample a range shuffles seeds, then writes batches.
    assert stages[1] - stages[0] == 3 * 2


def test_a_run_of_other_arguments_is_refused(spark, graph, tmp_path):
    run, seeds = tmp_path / 'run', seed_frame(spark, SEEDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs._Epoch, 'finish', lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            sample(graph, seeds, run, epochs=1, batches_per_job=9)
    for options, words in (
        ({'seed': 3}, "'seed' must be 12 .got 3."),
        ({'batch_size': 3}, "'batch_size' must be 2 .got 3."),
        ({'replace': True}, "'replace' must be False .got True."),
        (
            {'seeds': seed_frame(spark, [1])},
            "'seeds' must not change during epoch",
        ),
        ({'epochs': 0}, "'epochs' must be at least 1"),
        ({'path': 'memory://run'}, 'file system with locks'),
    ):
        options = {'seeds': seeds, 'path': run, **options}
        with pytest.raises(ValueError, match=words):
            sample(graph, **options)
    for options, words in (
        ({'seed': None}, "'seed' must be an integer"),
        ({'speed': 3}, "unknown option 'speed'"),
        ({'graph': 3}, "'graph' must be a ChunkedGraph"),
    ):
        options = {'graph': graph, 'seeds': seeds, 'path': run, **options}
        with pytest.raises(TypeError, match=words):
            sample(**options)
    file = run / 'epoch-0' / 'done-00000000.json'
    file.write_text(file.read_text().replace('"stop": 4', '"stop": 3'))
    with pytest.raises(ValueError, match='its checksum is wrong'):
        sample(graph, seeds, run)


def test_a_complete_run_of_other_seeds_is_refused(spark, graph, tmp_path):
    run = tmp_path / 'run'
    sample(graph, seed_frame(spark, SEEDS), run, 1)
    (run / 'epoch-0' / 'done-00000000.json').touch()  # killed while it removed
    index = run / 'epoch-0' / 'index.json'
    with pytest.raises(ValueError, match='checksum is wrong'):
        sample(graph, seed_frame(spark, SEEDS), run, 1)
    record = {'seeds': json.loads(index.read_text())['seeds']}
    run_folder.write_record(run / 'epoch-0' / 'done-00000000.json', record)
    sample(graph, seed_frame(spark, SEEDS), run, 1)
    assert [*run.glob('epoch-0/done-*')] == []
    with pytest.raises(ValueError, match=r"'seeds' must not change.*epoch 0"):
        sample(graph, seed_frame(spark, SEEDS[::-1]), run, 1)
    sample(graph, seed_frame(spark, SEEDS), run, 1)


def test_an_epoch_in_the_folder_of_another_is_refused(spark, graph, tmp_path):
    run, seeds = tmp_path / 'run', seed_frame(spark, SEEDS)
    sample(graph, seeds, run)
    exchange(run / 'epoch-0', run / 'epoch-1')
    words = "epoch-0' must have epoch 0 .got"
    with pytest.raises(ValueError, match=f'{words} 1'):
        SampledParquetLoader(run)
    with pytest.raises(ValueError, match=f'{words} .1'):
        sample(graph, seeds, run)


def test_a_run_has_features_of_one_width(spark, graph, tmp_path):
    def features(width):
        rows = [(i, [float(i)] * width) for i in range(40)]
        return spark.createDataFrame(rows, 'id long, x array<float>')

    run, seeds = tmp_path / 'run', seed_frame(spark, SEEDS)
    sample(graph, seeds, run, 1, features=features(3), batch_size=4)
    with pytest.raises(ValueError, match=r"'widths' was .*3.*got .*2"):
        sample(graph, seeds, run, 2, features=features(2), batch_size=4)


def test_a_second_driver_is_refused(graph, spark, tmp_path):
    with open(tmp_path / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RuntimeError, match='another driver writes to'):
            sample(graph, seed_frame(spark, SEEDS), tmp_path)


KILLED = """
import os, signal, sys
from tests.spark.conftest import SETTINGS
from tests.spark.graphs import seed_frame
from torch_gsample.spark import local_session, runs
from torch_gsample.storage import ChunkedGraph
from tests.spark.test_runs import SEEDS, sample

real = runs._Epoch.record
def record(self, batches, *args):
    real(self, batches, *args)
    os.kill(os.getpid(), signal.SIGKILL)
runs._Epoch.record = record
spark = local_session(master='local[1]', **SETTINGS)
sample(ChunkedGraph(sys.argv[1]), seed_frame(spark, SEEDS), sys.argv[2], 1)
"""


@pytest.mark.interop
def test_a_driver_that_was_killed_is_followed_by_another(
    spark, data, graph, tmp_path, monkeypatch
):
    run = tmp_path / 'run'
    root = Path(__file__).parents[2]
    command = [sys.executable, '-c', KILLED, str(graph.path), str(run)]
    ended = subprocess.run(command, cwd=root, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    jobs, real = [], runs.sample_counted

    def counted(*args, **options):
        jobs.append(options['batches'])
        return real(*args, **options)

    monkeypatch.setattr(runs, 'sample_counted', counted)
    sample(graph, seed_frame(spark, SEEDS), run, 1)
    assert jobs == [range(2, 4)]
    assert_same_batches(SampledParquetLoader(run), local(data, 0))


def test_walks_go_on_and_read_stored_edges(spark, data, tmp_path, monkeypatch):
    src, dst = data.edge_index.tolist()
    columns = {'src': src, 'dst': dst, 'id': list(range(300))}
    edges = spark.createDataFrame(pa.table(columns))
    vertices = spark.createDataFrame(pa.table({'id': list(range(41))}))
    out_edges = ChunkedGraph.write(
        tmp_path / 'graph', data.edge_index.flip(0), num_nodes=40
    )
    want = graph_sampling.random_walk(
        Data(edge_index=data.edge_index, num_nodes=41),
        0.9,
        2,
        0.1,
        seed=3,
        edge_id=torch.arange(300),
    )
    monkeypatch.setattr(walks, '_STEPS', 3)
    real, steps = walks._StoredWalkGraph.follow, []

    fails_at = 5

    def follow(self, vertices, ranks):
        steps.append(len(vertices))
        if len(steps) == fails_at:
            raise InterruptedError
        return real(self, vertices, ranks)

    monkeypatch.setattr(walks._StoredWalkGraph, 'follow', follow)

    def walk(seed=3, vertices=vertices):
        return on_spark.random_walk(
            *(vertices, edges, 0.9, 2, 0.1),
            seed=seed,
            out_edges=out_edges,
            checkpoint=tmp_path / 'walk',
        )

    with pytest.raises(InterruptedError):
        walk()
    fails_at = 0
    del steps[:]
    got = walk()
    assert len(steps) > 5
    assert sorted(row.id for row in got.vertices.collect()) == sorted(
        want.n_id.tolist()
    )
    total = len(steps)
    del steps[:]
    walk()  # from the last checkpoint
    assert len(steps) < total
    with pytest.raises(ValueError, match=r"'seed' must be 3 .got 4."):
        walk(seed=4)
    more = vertices.union(spark.range(41, 42))
    with pytest.raises(ValueError, match=r"'vertices' must be \[41, .*42, "):
        walk(vertices=more)
    with pytest.raises(TypeError, match="'out_edges' must be a C"):
        on_spark.random_walk(vertices, edges, 0.5, out_edges=3)
    bare = edges.drop('id')
    with pytest.raises(ValueError, match="needs a column 'id' of 'edges'"):
        on_spark.random_walk(vertices, bare, 0.5, out_edges=out_edges)
    assert os.path.exists(tmp_path / 'walk' / 'walk.json')


def test_defaults_that_are_given_are_no_other_arguments(
    spark, graph, tmp_path
):
    seeds, run = seed_frame(spark, SEEDS), tmp_path / 'run'
    sample(graph, seeds, run, 1)
    before = {path: path.stat().st_mtime_ns for path in run.glob('*/*')}
    sample(graph, seeds, run, 1, replace=False, temporal_strategy='uniform')
    sample(graph, seeds, run, 1, time_window=None, split='nodes')
    after = {path: path.stat().st_mtime_ns for path in run.glob('*/*')}
    assert before == after


def test_a_lost_file_of_a_run_is_found(spark, data, graph, tmp_path):
    seeds, run = in_epoch(spark), tmp_path / 'run'
    sample(graph, seeds, run)
    lost = min((run / 'epoch-0').glob('batches-*'))
    lost.unlink()
    with pytest.raises(ValueError, match=rf'{lost.name}.*no file.*epoch-0'):
        sample(graph, seeds, run)
    shutil.rmtree(run / 'epoch-0')
    sample(graph, seeds, run)
    assert_same_batches(SampledParquetLoader(run), local(data, 0))


def test_a_folder_of_other_files_is_no_run(spark, graph, tmp_path):
    """A loader would read the run, or epochs of unknown arguments."""
    seeds, run = seed_frame(spark, SEEDS), tmp_path / 'run'
    sample(graph, seeds, run, 1)
    (run / 'run.json').unlink()
    words = "must be an empty folder or have 'run.json'.*'epoch-0'"
    with pytest.raises(ValueError, match=words):
        sample(graph, seeds, run, 1)
