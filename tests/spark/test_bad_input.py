"""What is wrong is said before a job starts, or by the job in plain words."""

import ast
import builtins
import functools
import inspect
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException, SparkRuntimeException

from torch_gsample import spark as on_spark
from torch_gsample.spark import (
    SampledParquetLoader,
    parquet_loader,
    session,
    walk,
)


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
        sample(bad, seeds, [2]).edges.collect()


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


def write_batch(folder, number, num_seeds=2, **changes):
    facts = {
        'nodes': [None],
        'edges': [None],
        'ends': [[0, 0]],
        'hops': 1,
        'disjoint': False,
        'timed': False,
        'input_type': 0,
        'num_seeds': num_seeds,
        'batch_size': 1,
        'widths': {},
    }
    columns = {
        'facts': [json.dumps(facts)],
        'node_0': [[0, 1]],
        'num_nodes_0': [[1, 1]],
        'row_0': [[1]],
        'col_0': [[0]],
        'edge_0': [[7]],
        'num_edges_0': [[1]],
        'input_id': [[number]],
        **changes,
    }
    folder = folder / f'batch={number}'
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / 'part.parquet')
    return folder / 'part.parquet'


def test_folders_that_hold_no_sample_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        SampledParquetLoader(str(tmp_path / 'none'))
    with pytest.raises(ValueError, match="'path' must be a folder"):
        SampledParquetLoader(str(tmp_path))
    write_batch(tmp_path, 0)
    with pytest.raises(ValueError, match=r'must hold 2 batches .got 1.'):
        SampledParquetLoader(str(tmp_path))
    write_batch(tmp_path, 1)
    assert len(list(SampledParquetLoader(str(tmp_path)))) == 2


@pytest.mark.parametrize(
    'changes',
    [
        {'node_0': [[0, None]]},
        {'num_nodes_0': [[1, 2]]},
        {'num_edges_0': [[2]]},
        {'input_id': [[1, 1]]},
        {'row_0': [[2]]},
        {'col_0': [[-1]]},
        {'row_0': [[0, 1]]},
        {'edge_0': [[]]},
        {'num_nodes_0': [[1]]},
        {'facts': ['{}']},
    ],
)
def test_damaged_batches_are_refused(tmp_path, changes):
    write_batch(tmp_path, 0)
    write_batch(tmp_path, 1, **changes)
    with pytest.raises(ValueError, match=r'batch=1.*is damaged'):
        list(SampledParquetLoader(str(tmp_path)))


@pytest.mark.parametrize(
    'facts', ['{', '{}', '{"num_seeds": 1, "batch_size": 0}', '[]']
)
def test_a_damaged_first_batch_is_refused(tmp_path, facts):
    write_batch(tmp_path, 0, facts=[facts])
    with pytest.raises(ValueError, match=r'batch=0.*is damaged'):
        SampledParquetLoader(str(tmp_path))


def test_a_number_of_batches_is_not_believed(tmp_path):
    facts = json.dumps({'num_seeds': 2**60, 'batch_size': 1})
    write_batch(tmp_path, 0, facts=[facts])
    with pytest.raises(ValueError, match=rf'{2**60} batches .got 1.'):
        SampledParquetLoader(str(tmp_path))


def test_a_cut_file_is_refused(tmp_path):
    write_batch(tmp_path, 0)
    path = write_batch(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r'batch=1.*is damaged'):
        list(SampledParquetLoader(str(tmp_path)))


def test_files_go_on_after_the_last_batch(tmp_path):
    for number in range(7):
        write_batch(tmp_path, number, 7)

    def make(**options):
        options = {'shuffle': True, 'seed': 4} | options
        return SampledParquetLoader(str(tmp_path), **options)

    def ids(batches):
        return [int(batch.input_id) for batch in batches]

    loader = make()
    want = ids(loader), ids(loader)
    assert sorted(want[0]) == list(range(7))
    assert want[0] != want[1]
    loader = make(num_workers=2)
    list(loader)
    iterator = iter(loader)
    _ = [next(iterator) for _ in range(3)]
    state = loader.state_dict()
    del iterator
    for options in ({}, {'num_workers': 2}):
        again = make(**options)
        again.load_state_dict(state)
        assert ids(again) == want[1][3:]
        assert ids([again[0, 5]]) == want[0][5:6]
    shares = [make(rank=rank, world_size=2) for rank in range(2)]
    for rank, share in enumerate(shares):
        assert ids(share) == want[0][rank::2]
        share.load_state_dict(state)
        assert ids(share) == want[1][3 + rank :: 2]
    with pytest.raises(ValueError, match=r'same seed, here 5 .got 4'):
        make(seed=5).load_state_dict(state)


def test_batches_are_shared_out_over_ranks(tmp_path):
    for number in range(2):
        write_batch(tmp_path, number)

    def ids(**kwargs):
        loader = SampledParquetLoader(str(tmp_path), **kwargs)
        return [int(batch.input_id) for batch in loader]

    assert ids() == ids(num_workers=2) == [0, 1]
    assert ids(rank=0, world_size=2) == [0]
    assert ids(rank=1, world_size=2) == [1]
    assert ids(rank=2, world_size=3) == []
    assert ids(rank=0, world_size=3, drop_last=True) == []
    with pytest.raises(ValueError, match=r"'rank' must be in .0, 2. .got 2."):
        ids(rank=2, world_size=2)


def test_batches_are_read_without_spark():
    names = set()
    for node in ast.walk(ast.parse(inspect.getsource(parquet_loader))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    own = 'loader.base', 'loader.blocks', 'ops._check', 'options'
    assert not {
        n for n in names if n.startswith(('pyspark', 'torch_gsample.'))
    } - {f'torch_gsample.{name}' for name in own}
