"""Errors are raised before a job starts, or by the job in plain words."""

import builtins
import functools

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException, SparkRuntimeException

from torch_gsample import spark as on_spark
from torch_gsample.spark import session, walk


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


def test_ids_that_are_none_fail_the_job_in_words(frame, vertices, edges):
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
        match = f"'{name}' of 'edges' must not be null"
        with pytest.raises(SparkRuntimeException, match=match):
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
