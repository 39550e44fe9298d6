"""Jobs are named, watched and measured; arguments are checked before them."""

import json
import logging
import time

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from torch_gsample import spark as on_spark
from torch_gsample.spark import jobs, local_session, watch
from torch_gsample.spark.jobs import described, log


@pytest.fixture(scope='module')
def graph(spark):
    def frame(**columns):
        return spark.createDataFrame(pa.table(columns)).repartition(2)

    ids = list(range(30))
    return frame(id=ids), frame(src=ids, dst=[(i * 7 + 1) % 30 for i in ids])


@pytest.fixture
def lines():
    """The logged messages."""
    out = []
    handler = logging.Handler()
    handler.emit = lambda record: out.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield out
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


def test_stages_and_draws_are_counted(spark, graph, lines, tmp_path):
    path = tmp_path / 'metrics.json'
    with watch(spark, 'a sample', metrics=str(path)) as report:
        sample = on_spark.random_edge(*graph, 0.5, seed=1)
        assert 0 < len(sample.edges.collect()) < 30
        count = report.accumulators['ids drawn'].value
        assert count() == 30
        kept = on_spark.random_vertex(*graph, 0.5, seed=1, keep_isolated=True)
        assert 0 < len(kept.vertices.collect()) < 30
        assert count() == 60
        on_spark.random_walk(*graph, 0.5, walkers=3, seed=1)
    assert report.error is None
    jobs = {stage.job for stage in report.stages}
    assert {'a sample', 'a sample: random_walk: step 1'} <= jobs
    found = json.loads(path.read_text())
    drawn = report.counters['ids drawn']
    assert found['counters'] == {'ids drawn': drawn}
    assert drawn >= 120  # a walk draws for all vertices and edges
    first = found['stages'][0]
    assert first['tasks'] == first['tasks_done'] > 0
    assert report.total('shuffle_rows_written') >= 60
    assert report.total('shuffle_bytes_written') > 0
    assert report.total('task_seconds') > 0
    stages = [stage.stage for stage in report.stages]
    assert stages == sorted({*stages})
    assert any('random_walk: step 1, ' in line for line in lines)
    assert f'{drawn} ids drawn' in lines[-1]
    assert 'skew' in lines[-1]
    # What comes later is not counted.
    assert on_spark.random_edge(*graph, 0.5).edges.count() >= 0
    assert count() == drawn


def test_running_stages_are_logged(spark, lines):
    @F.arrow_udf('bigint')
    def slowly(values: pa.Array) -> pa.Array:
        if values[0].as_py() == 0:
            time.sleep(1)
        return values

    with watch(spark, 'wait', interval=0.05) as report:
        slow = spark.range(0, 40, 1, 2).select(slowly('id'))
        with described(spark, 'for it'):
            slow.collect()
    (stage,) = report.stages
    assert (stage.tasks, stage.rows_read) == (2, 40)
    assert stage.longest_task_seconds >= 1
    assert stage.skew >= 1
    assert any('(wait: for it), 0 of 2 tasks' in line for line in lines)
    assert any('(wait: for it), 2 of 2 tasks' in line for line in lines)


def test_errors_end_a_report(spark, lines, tmp_path):
    path = tmp_path / 'metrics.json'
    with pytest.raises(KeyError), watch(spark, 'x', metrics=str(path)):
        raise KeyError('lost')
    assert json.loads(path.read_text())['error'] == "KeyError: 'lost'"
    assert lines[-1].startswith("x: KeyError: 'lost' after")
    assert spark.sparkContext.getLocalProperty(jobs._DESCRIPTION) is None
    assert not spark.sparkContext.getJobTags()


def test_a_full_disk_of_shuffled_rows_is_named(graph, tmp_path):
    edges = graph[1].withColumn('id', F.col('src'))
    error = F.raise_error(F.lit(jobs._FULL)).cast('bigint')
    full = edges.withColumn(
        'src', F.when(F.col('dst') == 1, error).otherwise(F.col('src'))
    )
    with pytest.raises(OSError, match=r"prepare_adj.* of 'spark.local.dir'"):
        on_spark.prepare_adjacency(full, tmp_path / 'graph')
    assert list(tmp_path.iterdir()) == []


def test_types_are_checked_before_a_job(spark, graph, tmp_path):
    vertices, edges = graph
    numbered = edges.withColumn('id', F.col('src'))
    seeds = vertices.withColumn('position', F.col('id'))
    sample = on_spark.neighbor_sample(numbered, seeds, [2], batch_size=9)
    calls = {
        on_spark.random_vertex: ((vertices, edges, 0.5), 'keep_isolated'),
        on_spark.random_edge: ((vertices, edges, 0.5), 'seed'),
        on_spark.random_vertex_neighborhood: (
            (vertices, edges, 0.5),
            'direction seed keep_edges keep_isolated',
        ),
        on_spark.random_walk: (
            (vertices, edges, 0.5),
            'walkers jump_probability seed keep_isolated',
        ),
        on_spark.neighbor_sample: (
            (numbered, seeds, [2]),
            'batch_size seed epoch weighted timed time_window '
            'temporal_strategy replace disjoint largest_column',
        ),
        sample.write: ((str(tmp_path / 'x'),), 'mode features edge_features'),
        on_spark.watch: ((spark, 'x'), 'interval metrics'),
    }
    tracker = spark.sparkContext.statusTracker()
    before = tracker.getJobIdsForGroup(None)
    for call, (args, names) in calls.items():
        for name in names.split():
            options = {'batch_size': 2} if 'batch_size' in names else {}
            options[name] = [object()]
            with pytest.raises(TypeError, match='must'):
                with_context(call(*args, **options))
        with pytest.raises(TypeError, match='must'):
            with_context(call(object(), *args[1:], **options))
    assert tracker.getJobIdsForGroup(None) == before
    for bad in ('2', [2.5], object()):
        with pytest.raises(TypeError, match="'fanouts'"):
            on_spark.neighbor_sample(numbered, seeds, bad, batch_size=2)
    with pytest.raises(TypeError, match="'spark_ui_enabled' must be a str"):
        local_session(spark_ui_enabled=True)
    with pytest.raises(FileNotFoundError, match='no folder for'):
        with_context(watch(spark, 'x', metrics=str(tmp_path / 'no/m.json')))
    with pytest.raises(ValueError, match="'interval' must be positive"):
        with_context(watch(spark, 'x', interval=0))
    sample.close()


def with_context(value):
    """Begins a block, where a function returns one."""
    with value:
        pass
