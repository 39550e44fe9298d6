"""On Spark, samples are those of tensors, for any number of partitions."""

import pyarrow as pa
import pytest
import torch

from tests.graph_sampling.test_operators import small_graph
from torch_gsample import graph_sampling, spark as on_spark

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
    ('random_vertex', (0.6,)),
    ('random_edge', (0.2,)),
    ('random_vertex_neighborhood', (0.2, 'in')),
    ('random_vertex_neighborhood', (0.2, 'both')),
    ('random_walk', (0.6, 6, 0.2)),
]


@pytest.mark.parametrize('partitions', [1, 4, 16])
@pytest.mark.parametrize(('name', 'args'), CASES)
def test_samples_are_those_of_tensors(frames, data, name, args, partitions):
    vertices, edges = (f.repartition(partitions) for f in frames)
    sample = getattr(on_spark, name)(vertices, edges, *args, seed=12)
    local = getattr(graph_sampling, name)(data, *args, seed=12)
    assert 0 < local.num_edges < data.num_edges
    assert found(sample) == expected(local)
