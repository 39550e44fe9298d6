"""Tables as other programs leave them: a right sample, or a clear error."""

import numpy as np
import pyarrow as pa
import pytest

from torch_gsample import spark as on_spark
from torch_gsample.spark import neighbor_sample, prepare_adjacency


@pytest.fixture(scope='module')
def frame(spark):
    return lambda **columns: spark.createDataFrame(pa.table(columns))


@pytest.fixture(scope='module')
def edges(frame):
    return frame(src=[0, 1, 2, 0], dst=[1, 2, 3, 3], id=[0, 1, 2, 3])


@pytest.fixture(scope='module')
def seeds(frame):
    return frame(position=[0, 1], id=[3, 2])


def test_a_column_that_spark_finds_twice_is_refused(spark, edges, seeds):
    """Otherwise Spark names neither the function nor the argument."""
    vertices = edges.selectExpr('src as id').distinct()
    twice = spark.createDataFrame([(0, 1, 0, 5)], ['src', 'dst', 'id', 'id'])
    cases = edges.selectExpr('*', 'dst as SRC')
    words = "'edges' must have one column '{}' .it has .'{}', '{}'"
    with pytest.raises(ValueError, match=words.format('id', 'id', 'id')):
        on_spark.random_vertex(vertices, twice, 0.5)
    with pytest.raises(ValueError, match=words.format('src', 'src', 'SRC')):
        neighbor_sample(cases, seeds, [2], batch_size=2)
    with pytest.raises(ValueError, match="'frame' must have one column 'src'"):
        on_spark.assign_ids(vertices).encode(cases, {'src': 'src'})
    spark.conf.set('spark.sql.caseSensitive', 'true')
    try:
        sample = on_spark.random_edge(vertices, cases, 1.0)
        assert sample.edges.count() == 4
    finally:
        spark.conf.unset('spark.sql.caseSensitive')


@pytest.mark.parametrize('split', ['batches', 'nodes'])
def test_edges_of_one_id_are_refused(frame, seeds, split, tmp_path):
    """Their order, and so the sample, would depend on partitions."""
    edges = frame(src=[0, 1, 2], dst=[3, 3, 3], id=[7, 8, 7])
    with pytest.raises(ValueError, match=r"'id' of 'edges'.*got 7 twice"):
        neighbor_sample(edges, seeds, [2], batch_size=2, split=split).write(
            tmp_path / 'out'
        )
    edges = frame(src=[0, 1], dst=[3, 2], id=[7, 7])  # of two nodes
    sample = neighbor_sample(edges, seeds, [2], batch_size=2, split=split)
    assert sample.edges.count() == 2
    sample.close()


def test_ids_that_are_not_dense_are_not_prepared(frame, tmp_path):
    """Offsets of 2^40 nodes ended the JVM; of 2^62 there is no memory."""
    for src, dst in ((1, 2**62), (2**62, 1), (2**63 - 1, 1), (1, 2**40)):
        edges = frame(src=[src], dst=[dst], id=[0])
        words = rf"must be dense.*got the id {max(src, dst)}.*'dense'"
        with pytest.raises(ValueError, match=words):
            prepare_adjacency(edges, tmp_path / 'graph')
    edges = frame(src=[1], dst=[2**20], id=[0])
    assert prepare_adjacency(edges, tmp_path / 'graph').num_edges[None] == 1


def test_features_keep_their_names_or_are_refused(
    frame, edges, seeds, tmp_path
):
    """A batch has its own fields; a feature of that name was lost."""
    sample = neighbor_sample(edges, seeds, [2], batch_size=2, seed=1)

    def table(*names):
        return frame(id=[0, 1, 2, 3], **{n: [9, 8, 7, 6] for n in names})

    for nodes, others, words in (
        (table('n_id'), None, r"'features' must not.*got .'n_id'"),
        (table('x', 'batch'), None, r"got .'batch'"),
        (None, table('edge_index'), r"'edge_features' must.*'edge_index'"),
        (table('x', 'y'), table('y'), r"different columns .got .'y'. in both"),
        (table('x', 'X'), None, "must have one column 'x'"),
    ):
        with pytest.raises(ValueError, match=words):
            sample.write(tmp_path / 'no', nodes, others)
    assert not (tmp_path / 'no').exists()
    sample.write(tmp_path / 'out', table('x.mean', 'a`b', 'kind', 'hop'))
    sample.close()
    (batch,) = on_spark.SampledParquetLoader(tmp_path / 'out')
    for name in ('x.mean', 'a`b', 'kind', 'hop'):
        assert batch[name].tolist() == (9 - batch.n_id).tolist()


def test_keys_of_names_with_dots_are_refused(frame):
    keys = frame(**{'a.b': ['x']})
    with pytest.raises(ValueError, match=r"without dots.*got 'a\.b'"):
        on_spark.assign_ids(keys, 'a.b')


def test_ids_are_not_written_over_others(frame, tmp_path):
    ids = on_spark.assign_ids(frame(id=['a', 'b']))
    ids.write(str(tmp_path / 'ids'))
    with pytest.raises(FileExistsError, match=r"'path' must not exist.*ids"):
        ids.write(str(tmp_path / 'ids'))
    with pytest.raises(ValueError, match=r'^assign_ids: keys.*got a.$'):
        on_spark.assign_ids(frame(id=['a', 'a'])).write(f'{tmp_path}/more')


def test_a_walk_needs_edges_by_source(frame, edges, tmp_path):
    vertices = frame(id=[0, 1, 2, 3])
    graph = prepare_adjacency(edges, tmp_path / 'graph')
    with pytest.raises(ValueError, match=r"'out_edges'.*'dst' exchanged"):
        on_spark.random_walk(vertices, edges, 0.5, out_edges=graph)


def test_errors_of_tasks_are_those_of_the_package(frame, seeds):
    """Without the tracebacks of a worker and of the JVM."""
    weights = [1.0, float('nan')]
    edges = frame(src=[0, 1], dst=[3, 3], id=[0, 1], weight=weights)
    with pytest.raises(ValueError, match='weight') as caught:
        neighbor_sample(edges, seeds, [2], batch_size=2, weighted=True)
    assert str(caught.value) == (
        "neighbor_sample: column 'weight' of 'edges' must be finite and not "
        'negative (got nan at the edge 1)'
    )
    assert 'Traceback' in str(caught.value.__cause__)


@pytest.mark.parametrize('split', ['batches', 'nodes'])
def test_positions_of_the_right_sum_that_occur_twice_are_refused(
    frame, edges, tmp_path, split
):
    seeds = frame(position=[0, 0, 3, 3], id=[3, 2, 1, 0])
    sample = neighbor_sample(edges, seeds, [2], batch_size=4, split=split)
    words = r"^neighbor_sample: .*'position' of 'seeds'.*got 0 twice"
    with pytest.raises(ValueError, match=words):
        sample.write(tmp_path / 'out')
    sample.close()
    for positions in ([0, 1, 1, 3], [2**62] * 4, [-1, 0, 3, 4]):
        seeds = frame(position=positions, id=[3, 2, 1, 0])
        with pytest.raises(ValueError, match='position'):
            neighbor_sample(edges, seeds, [2], batch_size=4, split=split)


def test_errors_of_types_name_a_conversion(frame, edges, seeds):
    words = frame(src=['a'], dst=['b'], id=[0])
    match = r"'src' of 'edges' must hold integers .got string.; assign_ids"
    with pytest.raises(TypeError, match=match):
        neighbor_sample(words, seeds, [2], batch_size=2)
    times = edges.selectExpr('*', 'timestamp_seconds(id) as time')
    with pytest.raises(TypeError, match=r'.got timestamp.; unix_seconds'):
        neighbor_sample(times, seeds, [2], batch_size=2, timed=True)


def test_numbers_of_numpy_are_numbers(spark, frame, edges, seeds, tmp_path):
    """They come from shapes and counts, and PyG takes them."""
    integer, half = np.int64, np.float32(0.5)
    vertices, graph = edges.selectExpr('src as id').distinct(), tmp_path / 'g'
    sample = on_spark.random_walk(vertices, edges, half, integer(2), seed=3)
    assert sample.vertices.count() == 2
    sizes = {'num_nodes': integer(5), 'chunk_bytes': integer(1 << 20)}
    prepared = prepare_adjacency(edges, graph, **sizes)
    assert prepared.num_nodes == {None: 5}
    found = []
    for kind in (int, integer):
        on_spark.sample_epochs(
            *(prepared, seeds, np.array([kind(2)]), tmp_path / 'run'),
            batch_size=kind(1),
            seed=kind(3),
            epochs=kind(len(found) + 1),
            batches_per_job=kind(1),
            time_window=None,
        )
        loader = on_spark.SampledParquetLoader(
            *(tmp_path / 'run',), rank=kind(1), world_size=kind(2)
        )
        found.append([batch.n_id.tolist() for batch in loader])
    assert found == [[[2, 1]], [[2, 1]]]
    for wrong in (2.0, np.float64(2), np.bool_(True)):
        with pytest.raises(TypeError, match="'batch_size' must be an integer"):
            neighbor_sample(edges, seeds, [2], batch_size=wrong)
