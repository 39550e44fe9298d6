"""Keys of any kind become int64 ids and come back."""

import datetime
import uuid
from types import SimpleNamespace

import pyarrow as pa
import pytest
import torch
from pyspark.errors import SparkRuntimeException
from torch_geometric.data import Data

from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.spark import assign_ids, encode_graph, keys, read_ids

#: By xxHash64 in Python: of UTF-8 with seed 42, then of 8 bytes with that.
HASHES = 2194355550601064247, 1488192004360657775
NAMES = [str(uuid.UUID(int=i * 7919 + 3)) for i in range(40)]
PAIRS = [(NAMES[i], NAMES[(i * 3 + 1) % 40]) for i in range(40)]


@pytest.fixture(scope='module')
def frame(spark):
    return lambda **columns: spark.createDataFrame(pa.table(columns))


def numbers(ids):
    return {tuple(row[:-1]): row.id for row in ids.frame.collect()}


@pytest.mark.parametrize('kind', ['dense', 'hashed'])
def test_ids_depend_on_keys_alone(frame, kind):
    here = numbers(assign_ids(frame(name=NAMES), 'name', kind))
    there = frame(x=NAMES[::-1]).repartition(5).withColumnRenamed('x', 'name')
    assert numbers(assign_ids(there, 'name', kind)) == here
    ids = sorted(here.values())
    if kind == 'dense':
        assert ids == list(range(40))
    else:
        assert len({*ids}) == 40
        assert 0 <= ids[0] < 2**62 < ids[-1] < 2**63  # all 63 bits
        some = numbers(assign_ids(frame(name=NAMES[:7]), 'name', kind))
        assert some.items() < here.items()


def test_ids_are_those_of_other_runs(frame):
    """Stored maps and samples of them are used for years."""
    mixed = frame(a=['x', 'y'], b=pa.array([1, -2], pa.int16()))
    got = numbers(assign_ids(mixed, ['a', 'b'], 'hashed'))
    assert got == {
        ('x', 1): HASHES[0],
        ('y', -2): HASHES[1],
    }
    wide = mixed.selectExpr('a', 'cast(b as bigint) as b')
    assert numbers(assign_ids(wide, ['a', 'b'], 'hashed')) == got


@pytest.mark.parametrize('kind', ['dense', 'hashed'])
def test_edges_are_encoded_and_decoded(frame, kind):
    src, dst = map(list, zip(*PAIRS, strict=True))
    edges = frame(src=src, to=dst, w=list(range(40)))
    ids = assign_ids(frame(id=NAMES), 'id', kind)
    known = {key[0]: id for key, id in numbers(ids).items()}
    ends = {'src': 'src', 'dst': 'to'}
    for check in (True, False):
        coded = ids.encode(edges, ends, check=check)
        assert coded.dtypes[0] == ('src', 'bigint')
        rows = {row.w: (row.src, row.dst) for row in coded.collect()}
        want = {w: (known[a], known[b]) for w, (a, b) in enumerate(PAIRS)}
        assert rows == want
    back = ids.decode(coded, ends)
    assert {r.w: (r.src, r.to) for r in back.collect()} == {
        **dict(enumerate(PAIRS))
    }


def test_columns_of_composite_keys_may_be_shared(frame):
    day = datetime.date(2026, 1, 2)
    homes = frame(land=['a', 'a', 'b'], no=[1, 2, 1], day=[day] * 3)
    ids = assign_ids(homes, ['land', 'no', 'day'])
    moves = frame(land=['a', 'b'], old=[1, 1], new=[2, 1], day=[day] * 2)
    ends = {'src': ['land', 'old', 'day'], 'dst': ['land', 'new', 'day']}
    coded = ids.encode(moves, ends)
    assert coded.columns == ['src', 'dst']
    want = numbers(ids)
    assert {tuple(row) for row in coded.collect()} == {
        (want['a', 1, day], want['a', 2, day]),
        (want['b', 1, day], want['b', 1, day]),
    }


def test_maps_are_stored(spark, frame, tmp_path):
    ids = assign_ids(frame(name=NAMES), 'name', 'hashed')
    ids.write(str(tmp_path / 'ids'))
    again = read_ids(spark, str(tmp_path / 'ids'))
    assert (again.kind, again.keys) == ('hashed', ['name'])
    assert numbers(again) == numbers(ids)
    frame(name=['a'], id=[1]).write.parquet(str(tmp_path / 'other'))
    with pytest.raises(ValueError, match="'path' must have been written by"):
        read_ids(spark, str(tmp_path / 'other'))
    with pytest.raises(FileNotFoundError, match='nowhere'):
        read_ids(spark, str(tmp_path / 'nowhere'))


def test_jobs_name_the_offending_key(frame, monkeypatch):
    ids = assign_ids(frame(a=['x', 'y'], b=[1, 2]), ['a', 'b'])
    hashed = assign_ids(frame(a=['x', 'y'], b=[1, 2]), ['a', 'b'], 'hashed')
    lost = frame(p=['x', 'x'], q=[1, 2])
    ends = {'src': ['p', 'q']}
    monkeypatch.setattr(keys, 'hashed', lambda _: keys.F.lit(5))
    nulls = frame(a=['x', 'z'], b=[1, None])
    for job, words in (
        (ids.encode(lost, ends), r"encode: .*'src' must be.*got x, 2\)"),
        (hashed.encode(lost, ends), r"encode: .*'src' must be.*got x, 2\)"),
        (
            hashed.encode(nulls, {'src': ['a', 'b']}, check=False),
            r"'b' of 'frame' must not be null \(got z, null\)",
        ),
        (ids.decode(frame(v=[0, 7]), {'v': ['a', 'b']}), r"'v'.*got 7\)"),
        (assign_ids(frame(a=['x', 'x']), 'a').frame, r'unique \(got x\)'),
        (
            assign_ids(frame(a=['x', None]), 'a').frame,
            r"'a' of 'vertices' must not be null \(got null\)",
        ),
        (
            assign_ids(frame(a=['x', 'y']), 'a', 'hashed').frame,
            r"kind='dense'\) \(got x, y\)",
        ),
    ):
        with pytest.raises(SparkRuntimeException, match=words):
            job.collect()


def test_wrong_arguments_are_refused(spark, frame):
    names = frame(name=NAMES)
    ids = assign_ids(names, 'name')
    for call, error, words in (
        (lambda: assign_ids([1], 'name'), TypeError, "'vertices'.*list"),
        (lambda: assign_ids(names, 'key'), ValueError, "a column 'key'"),
        (lambda: assign_ids(names, []), TypeError, 'must be a column name'),
        (lambda: assign_ids(names, ['name'] * 2), ValueError, 'must differ'),
        (lambda: assign_ids(names, 'name', 'md5'), ValueError, "'kind'"),
        (
            lambda: assign_ids(frame(x=[0.5]), 'x'),
            TypeError,
            "'x' of 'vertices' must hold strings.*got double",
        ),
        (lambda: ids.encode(names, ['name']), TypeError, 'a dictionary'),
        (lambda: ids.encode(names, {'id': 3}), TypeError, 'got 3'),
        (
            lambda: ids.encode(names, {'id': ['name'] * 2}),
            ValueError,
            'must have 1 columns',
        ),
        (
            lambda: ids.encode(frame(x=[1]), {'id': 'x'}),
            TypeError,
            "'x' of 'frame' must be string.*got bigint",
        ),
        (
            lambda: ids.encode(names, {'id': 'name'}, check=1),
            TypeError,
            "'check' must be a bool",
        ),
        (
            lambda: ids.decode(names, {'name': 'x'}),
            TypeError,
            "'name' of 'frame' must hold integers",
        ),
        (
            lambda: ids.decode(frame(v=[1], x=[1]), {'v': 'x'}),
            ValueError,
            r"already \(got \['x'\]\)",
        ),
        (lambda: ids.write(3), TypeError, "'path' must be a string"),
        (lambda: ids.write('x', 'append'), ValueError, "'mode'"),
        (lambda: read_ids(None, 'x'), TypeError, "'session'"),
        (lambda: encode_graph(3), TypeError, "'graph' must have"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_a_graphframe_is_sampled_and_goes_back(frame):
    """Samples are those of the dense ids, in memory and here."""
    src, dst = map(list, zip(*PAIRS, strict=True))
    graph = SimpleNamespace(  # what `GraphFrame` has
        vertices=frame(id=NAMES, age=list(range(40))),
        edges=frame(src=src, dst=dst, relation=['likes'] * 40),
    )
    coded = encode_graph(graph)
    sample = on_spark.random_vertex(coded.vertices, coded.edges, 0.7, seed=1)
    known = {key[0]: id for key, id in numbers(coded.ids).items()}
    ends = torch.tensor([[known[a], known[b]] for a, b in PAIRS]).T
    local = graph_sampling.random_vertex(
        Data(edge_index=ends, num_nodes=40), 0.7, seed=1
    )
    vertices = coded.ids.decode(sample.vertices, {'id': 'id'}).collect()
    kept = {name for name, id in known.items() if id in local.n_id.tolist()}
    assert {row.id for row in vertices} == kept
    assert all(NAMES[row.age] == row.id for row in vertices)
    edges = coded.ids.decode(sample.edges, {'src': 'src', 'dst': 'dst'})
    got = {(row.src, row.dst) for row in edges.collect()}
    assert got == {PAIRS[e] for e in local.e_id.tolist()}
