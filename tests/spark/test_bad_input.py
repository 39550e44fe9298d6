"""Errors are raised before a job starts, or by the job in plain words."""

import builtins
import functools

import pyarrow as pa
import pytest
import torch
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException, SparkRuntimeException

from torch_gsample import spark as on_spark
from torch_gsample.spark import session, walk
from torch_gsample.storage import ChunkedGraph


@pytest.fixture(scope='module')
def frame(spark):
    """Makes a DataFrame of columns."""
    return lambda **columns: spark.createDataFrame(pa.table(columns))


@pytest.fixture(scope='module')
def vertices(frame):
    return frame(id=[0, 1, 2])


@pytest.fixture(scope='module')
def edges(frame):
    return frame(src=[0, 1], dst=[1, 2])


OPERATORS = (
    on_spark.random_vertex,
    on_spark.random_edge,
    on_spark.random_vertex_neighborhood,
    on_spark.random_walk,
)


MEASURES = on_spark.graph_properties, on_spark.check_graph
DEFAULTS = {on_spark.read_snb: {'edge_types': [('a', 'to', 'a')]}}


@pytest.mark.parametrize('operator', OPERATORS)
def test_operators_check_before_a_job(frame, vertices, edges, operator):
    name = operator.__name__
    with pytest.raises(ValueError, match=f"{name}: 'fraction'.*1.5"):
        operator(vertices, edges, 1.5)
    with pytest.raises(ValueError, match=f"{name}: 'edges'.*'dst'.*src"):
        operator(vertices, frame(src=[0], to=[1]), 0.5)
    with pytest.raises(TypeError, match=f"{name}: column 'id'.*string"):
        operator(frame(id=['a']), edges, 0.5)
    with pytest.raises(TypeError, match=f"{name}: 'vertices'.*list"):
        operator([0, 1], edges, 0.5)


def test_their_other_arguments_are_checked(vertices, edges):
    with pytest.raises(ValueError, match=r"'direction'.*up"):
        on_spark.random_vertex_neighborhood(vertices, edges, 0.5, 'up')
    with pytest.raises(ValueError, match=r"'keep_edges'.*all"):
        on_spark.random_vertex_neighborhood(
            vertices, edges, 0.5, keep_edges='all'
        )
    with pytest.raises(ValueError, match="'walkers' must be at least 1"):
        on_spark.random_walk(vertices, edges, 0.5, walkers=0)
    with pytest.raises(ValueError, match="'jump_probability'"):
        on_spark.random_walk(vertices, edges, 0.5, jump_probability=-1)


def jobs_so_far(spark):
    return spark.sparkContext._jsc.sc().dagScheduler().nextJobId()


def test_wrong_arguments_start_no_job(spark, frame, tmp_path):
    """Each error names the function, the argument and the value."""
    vertices = frame(id=[0, 1, 2])
    edges = frame(src=[0, 1], dst=[1, 2], id=[0, 1])
    seeds = frame(position=[0, 1], id=[0, 1])
    words = frame(id=['a'], x=['b'])
    graph = ChunkedGraph.write(tmp_path / 'graph', torch.tensor([[1], [0]]))
    both = {'vertices': vertices, 'edges': edges}
    share = {**both, 'fraction': 0.5}
    pair = vertices, edges
    sample = {'edges': edges, 'seeds': seeds, 'fanouts': [2], 'batch_size': 1}
    stored = {**sample, 'edges': graph}
    new = {'edges': edges, 'path': tmp_path / 'new'}
    run = {'path': tmp_path / 'run', 'graph': graph, 'seed': 0, **sample}
    del run['edges']
    written = on_spark.neighbor_sample(**stored)
    ids = on_spark.assign_ids(words)
    before = jobs_so_far(spark)
    for function, arguments, name, value, got in (
        *((f, both, 'edges', None, 'NoneType') for f in MEASURES),
        *((f, share, 'edges', [1], 'list') for f in OPERATORS),
        *((f, share, 'seed', 2**70, f'{2**70}') for f in OPERATORS),
        *((f, share, 'seed', '3', "'3'") for f in OPERATORS),
        (on_spark.random_walk, share, 'checkpoint', 3, '3'),
        (on_spark.random_walk, share, 'checkpoint', 's3://a/b', 's3://a/b'),
        (on_spark.random_walk, share, 'out_edges', edges, 'DataFrame'),
        (
            on_spark.sample_quality,
            {'original': pair, 'sampled': pair},
            'sampled[1]',
            (vertices, vertices),
            "'id'",
        ),
        (on_spark.neighbor_sample, sample, 'epoch', -1, '-1'),
        (on_spark.neighbor_sample, sample, 'batches', [0], 'list'),
        (on_spark.neighbor_sample, sample, 'batches', range(-1, 1), '-1'),
        (on_spark.neighbor_sample, sample, 'edges', {'to': edges}, "'to'"),
        (on_spark.neighbor_sample, stored, 'seeds', (1, 2, 3), '3 items'),
        (on_spark.prepare_adjacency, new, 'path', None, 'NoneType'),
        (on_spark.prepare_adjacency, new, 'path', 's3://a/b', 's3://a/b'),
        (on_spark.prepare_adjacency, new, 'path', __file__, 'file'),
        (on_spark.prepare_adjacency, new, 'num_nodes', '3', "'3'"),
        (on_spark.prepare_adjacency, new, 'weighted', 1, '1'),
        (on_spark.prepare_adjacency, new, 'edges', {('a', 'b'): edges}, 'a'),
        (on_spark.sample_epochs, run, 'graph', edges, 'DataFrame'),
        (on_spark.sample_epochs, run, 'seeds', vertices, 'id'),
        (on_spark.sample_epochs, run, 'seeds', 3, '3'),
        (on_spark.sample_epochs, run, 'path', None, 'NoneType'),
        (on_spark.sample_epochs, run, 'fanouts', ['2'], "'2'"),
        (on_spark.sample_epochs, run, 'batch_size', 0, '0'),
        (on_spark.sample_epochs, run, 'shard_bytes', -1, '-1'),
        (on_spark.sample_epochs, run, 'features', words, 'string'),
        (on_spark.sample_epochs, run, 'edge_features', [1], 'list'),
        (on_spark.sample_epochs, run, 'split', 'x', "'x'"),
        (on_spark.sample_epochs, run, 'replace', None, 'None'),
        (on_spark.sample_epochs, run, 'timed', True, 'True'),
        (written.write, {'path': 'x'}, 'edge_features', words, 'string'),
        (on_spark.stored_edges, {'spark': spark}, 'graph', 'g', "'g'"),
        (on_spark.stored_edges, {'graph': graph}, 'spark', None, 'NoneType'),
        (on_spark.encode_graph, {'graph': pair}, 'kind', 'x', "'x'"),
        (on_spark.read_snb, {'session': spark}, 'folder', 3, '3'),
        (ids.encode, {'frame': words}, 'columns', {3: 'id'}, '3'),
        (ids.decode, {'frame': vertices}, 'columns', {'id': 3}, '3'),
    ):
        arguments = {**DEFAULTS.get(function, {}), **arguments}
        with pytest.raises((TypeError, ValueError)) as caught:
            function(**{**arguments, name.partition('[')[0]: value})
        text = str(caught.value)
        assert text.startswith(f'{function.__name__}: '), text
        assert f"'{name}'" in text, text
        assert got in text, text
    assert jobs_so_far(spark) == before
    assert [path.name for path in tmp_path.iterdir()] == ['graph']


def test_walks_that_would_not_end_are_refused(frame, edges):
    graph = walk._SparkWalkGraph(frame(id=[0, 1, 1]), edges, seed=0)
    with pytest.raises(ValueError, match=r'unique .got 1 twice'):
        graph.jump_targets(0, 3)
    graph.close()
    graph = walk._SparkWalkGraph(frame(id=[0, 1]), edges, seed=0)
    graph.num_vertices = 3
    with pytest.raises(ValueError, match='got 3 rows, then 2'):
        graph.jump_targets(0, 3)
    graph.close()


@pytest.mark.parametrize('operator', OPERATORS)
def test_samples_of_empty_frames_are_empty(frame, operator):
    none = pa.array([], pa.int64())
    sample = operator(frame(id=none), frame(src=none, dst=none), 0.5, seed=0)
    assert sample.vertices.collect() == sample.edges.collect() == []


def test_invalid_ids_fail_the_job_with_a_message(frame, vertices, edges):
    sample = on_spark.random_vertex_neighborhood
    for ids, words in (([0, None], 'null'), ([0, -4], '-4')):
        match = f'must not be null or negative .got {words}.'
        kept = sample(frame(id=ids), edges, 0.5, 'out')
        with pytest.raises(SparkRuntimeException, match="'id'.*" + match):
            kept.vertices.collect()
        # No draw needs this end: a join alone would drop it.
        kept = sample(vertices, frame(src=[0, 1], dst=ids), 1.0, 'out')
        with pytest.raises(SparkRuntimeException, match="'dst'.*" + match):
            kept.edges.collect()


def test_nulls_fail_the_job_of_neighbor_sample(frame):
    columns = {'src': [0, 1], 'dst': [1, 2], 'id': [0, 1], 'time': [0, 0]}
    seeds = frame(position=[0], id=[1], time=[3])
    for name in columns:
        edges = frame(**{**columns, name: [0, None]})
        match = (
            f"^neighbor_sample: column '{name}' of 'edges' must not be null"
        )
        with pytest.raises(ValueError, match=match):
            on_spark.neighbor_sample(
                edges, seeds, [2], batch_size=1, timed=True
            ).edges.collect()


def test_graphs_are_looked_through(frame, vertices, edges):
    def numbered(ids):
        return frame(src=[0, 1], dst=[1, 2], id=ids)

    on_spark.check_graph(vertices, numbered([1, 0]))
    ints = pa.array([], pa.int64())
    for bad_vertices, bad_edges, words in (
        (frame(id=ints), edges, "'vertices' must not be empty"),
        (vertices, frame(src=ints, dst=ints), "'edges' must not be empty"),
        (frame(id=[0, None]), edges, "'id' of 'vertices' must not hold nulls"),
        (vertices, frame(src=[-1], dst=[0]), "'src' of 'edges'"),
        (frame(id=[0, 1, 1]), edges, "'vertices' must be.*got 1 2 times"),
        (vertices, numbered([3, 3]), "'edges' must be unique .got 3 2 times"),
        (vertices, numbered([3, None]), "'id' of 'edges' must not hold nulls"),
        (frame(id=[0, 1]), edges, "ends of 'edges'.*got 2"),
    ):
        with pytest.raises(ValueError, match=words):
            on_spark.check_graph(bad_vertices, bad_edges)


def test_neighbor_sample_checks_before_a_job(frame, edges):
    numbered = frame(src=[0, 1], dst=[1, 2], id=[0, 1])
    seeds = frame(position=[0, 1], id=[0, 1])
    bad = [
        ((edges, seeds, [2]), {}, "'edges' must have a column 'id'"),
        ((numbered, edges, [2]), {}, "'seeds' must have a column 'position'"),
        ((numbered, seeds, [-2]), {}, "'fanouts' must be -1"),
        ((numbered, seeds, {}), {}, "'fanouts' must be a list"),
        (({}, seeds, [2]), {}, "'edges' must have an edge type"),
        ((numbered, ('a', seeds), [2]), {}, "the node type of 'seeds'"),
        ((numbered, seeds, [2]), {'timed': True}, "a column 'time'"),
        ((numbered, seeds, [2]), {'weighted': True}, "a column 'weight'"),
        ((numbered, seeds, [2]), {'batch_size': 0}, "'batch_size'"),
        ((numbered, seeds, [2]), {'time_window': 3}, "needs 'timed'"),
        ((numbered, seeds, [2]), {'epoch': -1}, "'epoch'"),
        ((numbered, seeds.where('id > 5'), [2]), {}, 'must not be empty'),
        (
            (numbered, seeds.where('id > 0'), [2]),
            {},
            'from 0 to 0, each once .got 1 of them, from 1 to 1',
        ),
        (
            ({('a', 'to', 'b'): numbered}, ('a', seeds), {}),
            {},
            "'fanouts' must have the edge types",
        ),
        (
            (
                {('a', 'to', 'b'): numbered, ('b', 'to', 'a'): numbered},
                ('a', seeds),
                {('a', 'to', 'b'): [1], ('b', 'to', 'a'): [1, 2]},
            ),
            {},
            'same number of hops',
        ),
    ]
    for args, options, words in bad:
        options = {'batch_size': 2, **options}
        with pytest.raises(ValueError, match=words):
            on_spark.neighbor_sample(*args, **options)


def test_weights_are_numbers(frame):
    seeds = frame(position=[0], id=[1])
    edges = frame(src=[0], dst=[1], id=[0], weight=['1'])
    sample = functools.partial(
        on_spark.neighbor_sample, batch_size=1, weighted=True
    )
    with pytest.raises(TypeError, match=r"'weight'.*hold numbers .got string"):
        sample(edges, seeds, [2])
    weights = pa.array([None], pa.float64())
    bad = frame(src=[0], dst=[1], id=[0], weight=weights)
    with pytest.raises(
        (PythonException, Py4JJavaError), match='must not hold nulls'
    ):
        sample(bad, seeds, [2], split='nodes').edges.collect()


def test_an_old_pyspark_is_named(monkeypatch):
    monkeypatch.setattr('pyspark.__version__', '4.0.1')
    with pytest.raises(ImportError, match=r'4\.1 or later.*got 4\.0\.1'):
        session.require_pyspark()


def test_a_missing_package_is_named(monkeypatch):
    real = builtins.__import__

    def without_spark(name, *args, **kwargs):
        if name == 'pyspark':
            raise ImportError(name, name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, '__import__', without_spark)
    with pytest.raises(ImportError, match=r'pyspark.*torch_gsample\[spark\]'):
        session.require_pyspark()


def test_a_missing_java_is_named(monkeypatch):
    monkeypatch.setenv('JAVA_HOME', '/nowhere')
    monkeypatch.setenv('PATH', '')
    with pytest.raises(ImportError, match=r'Java is needed.*openjdk-17'):
        session.require_java()
