"""On Spark, samples are those of tensors, for any number of partitions."""

import pyarrow as pa
import pytest
import torch

from tests.graph_sampling.test_operators import small_graph
from tests.spark.graphs import failing
from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark

SIZE = 30


@pytest.fixture(scope='module')
def data():
    return small_graph()


@pytest.fixture(scope='module')
def frames(spark, data):
    """A graph with columns of its own; vertices are in no order."""
    ids = torch.randperm(SIZE).tolist()
    src, dst = data.edge_index.tolist()
    return (
        spark.createDataFrame(
            pa.table({'id': ids, 'name': [f'v{i}' for i in ids]})
        ),
        spark.createDataFrame(
            pa.table({'src': src, 'dst': dst, 'e': list(range(len(src)))})
        ),
    )


def found(sample):
    """The kept vertices and edges, by name; all columns are there."""
    vertices, edges = sample.vertices.toArrow(), sample.edges.toArrow()
    assert vertices.column_names == ['id', 'name']
    assert edges.column_names[:3] == ['src', 'dst', 'e']
    ids = vertices['id'].to_pylist()
    assert vertices['name'].to_pylist() == [f'v{i}' for i in ids]
    return sorted(ids), sorted(edges['e'].to_pylist())


def expected(data):
    return data.n_id.tolist(), data.e_id.tolist()


CASES = [
    ('random_vertex', (0.6,), [1, 4, 16]),
    ('random_edge', (0.2,), [1, 4, 16]),
    ('random_vertex_neighborhood', (0.2, 'in'), [4]),
    ('random_vertex_neighborhood', (0.2, 'out'), [4]),
    ('random_vertex_neighborhood', (0.2, 'both'), [1, 16]),
    ('random_walk', (0.6, 6, 0.2), [1, 4, 16]),
]


@pytest.mark.parametrize(('name', 'args', 'partitions'), CASES)
def test_samples_are_those_of_tensors(frames, data, name, args, partitions):
    local = getattr(graph_sampling, name)(data, *args, seed=12)
    assert 0 < local.num_edges < data.num_edges
    for number in partitions:
        vertices, edges = (f.repartition(number) for f in frames)
        sample = getattr(on_spark, name)(vertices, edges, *args, seed=12)
        assert found(sample) == expected(local)


@pytest.mark.parametrize(
    ('direction', 'keep_edges', 'keep_isolated'),
    [
        ('in', 'induced', False),
        ('both', 'induced', True),
        ('out', 'incident', True),
    ],
)
def test_neighborhoods_have_the_edges_of_tensors(
    frames, data, direction, keep_edges, keep_isolated
):
    options = dict(seed=5, keep_edges=keep_edges, keep_isolated=keep_isolated)
    name = 'random_vertex_neighborhood'
    local = getattr(graph_sampling, name)(data, 0.2, direction, **options)
    sample = getattr(on_spark, name)(*frames, 0.2, direction, **options)
    assert 0 < local.num_edges < data.num_edges
    assert found(sample) == expected(local)


def test_edges_that_touch_a_drawn_vertex_are_not_joined(frames):
    """Their two ends say it: nothing is shuffled."""
    sample = on_spark.random_vertex_neighborhood(*frames, 0.2, seed=12)
    plan = sample.edges._jdf.queryExecution().toString()
    assert 'Join' not in plan
    assert 'Exchange' not in plan


def test_draws_of_edges_belong_to_their_ids(frames, data):
    vertices, edges = frames
    edges = edges.withColumn('id', edges.e * 3)
    sample = on_spark.random_edge(vertices, edges, 0.3, seed=12)
    ids = torch.arange(data.num_edges) * 3
    local = graph_sampling.random_edge(data, 0.3, seed=12, edge_id=ids)
    assert found(sample) == expected(local)


def test_isolated_vertices_stay_on_request(frames, data):
    sample = on_spark.random_vertex(*frames, 0.3, seed=12, keep_isolated=True)
    local = graph_sampling.random_vertex(
        data, 0.3, seed=12, keep_isolated=True
    )
    assert local.num_nodes > local.edge_index.unique().numel()
    assert found(sample) == expected(local)


def test_tasks_that_die_change_no_sample(frames, data, tmp_path):
    vertices, edges = frames
    edges = edges.coalesce(1)  # one death each
    for name, args in (
        ('random_vertex', (0.5,)),
        ('random_edge', (0.5,)),
        ('random_vertex_neighborhood', (0.2, 'out')),
        ('random_walk', (0.6, 6, 0.2)),
    ):
        dying = failing(edges, 'src', tmp_path / name)
        sample = getattr(on_spark, name)(vertices, dying, *args, seed=12)
        local = getattr(graph_sampling, name)(data, *args, seed=12)
        assert found(sample) == expected(local)
        assert [*(tmp_path / name).iterdir()]


def test_hubs_are_ranked_in_two_phases(spark, monkeypatch, data, frames):
    """Vertex 1 has a quarter of the edges."""
    monkeypatch.setattr('torch_gsample.spark.walk._LARGEST', 5)
    sample = on_spark.random_walk(*frames, 0.6, 6, 0.2, seed=12)
    local = graph_sampling.random_walk(data, 0.6, 6, 0.2, seed=12)
    assert found(sample) == expected(local)
