"""Spark's samples have the golden hashes of those in memory."""

import pyarrow as pa
import pytest
import torch

from tests.golden import disk_cases, loader_cases
from tests.golden.cases import expected
from tests.golden.digest import digest
from tests.golden.graphs import data
from tests.spark.graphs import edge_frame, seed_frame, written
from torch_gsample import spark as on_spark


@pytest.fixture(scope='module')
def edges(spark):
    return edge_frame(spark, data('small'), 'weight').persist()


@pytest.mark.parametrize('split', ['batches', 'nodes'])
@pytest.mark.parametrize('option', disk_cases.ON_SPARK)
def test_batches_have_the_golden_hash(spark, edges, tmp_path, option, split):
    seeds = loader_cases.seeds('small', 20).tolist()
    sample = on_spark.neighbor_sample(
        edges,
        seed_frame(spark, seeds),
        [4, 3],
        batch_size=8,
        seed=1,
        weighted=option == 'weighted',
        largest_column=9,
        split=split,
    )
    loader = written(sample, tmp_path / 'out')
    assert digest(list(loader))[:20] == expected()[f'disk/spark/{option}']


@pytest.mark.parametrize('operator', disk_cases.REDUCED)
def test_reduced_graphs_have_the_golden_hash(spark, edges, operator):
    vertices = spark.createDataFrame(pa.table({'id': list(range(50))}))
    sample = getattr(on_spark, operator)(
        vertices, edges, *disk_cases.REDUCED[operator], seed=1
    )
    found = {
        'node': sorted(sample.vertices.toArrow()['id'].to_pylist()),
        'edge': sorted(sample.edges.toArrow()['id'].to_pylist()),
    }
    found = {name: torch.tensor(ids) for name, ids in found.items()}
    name = f'disk/{operator}/small'
    assert digest(found)[:20] == expected()[name]


def test_prepared_edges_have_the_golden_hashes(spark, edges, tmp_path):
    graph = on_spark.prepare_adjacency(
        edges, tmp_path / 'graph', weighted=True, chunk_bytes=512
    )
    seeds = seed_frame(spark, loader_cases.seeds('small', 20).tolist())
    for option in disk_cases.ON_SPARK:
        path = tmp_path / option
        on_spark.sample_epochs(
            graph,
            seeds,
            [4, 3],
            path,
            batch_size=8,
            seed=1,
            weighted=option == 'weighted',
        )
        batches = list(on_spark.SampledParquetLoader(path))
        assert digest(batches)[:20] == expected()[f'disk/spark/{option}']
    stored = on_spark.stored_edges(spark, graph)
    vertices = spark.createDataFrame(pa.table({'id': list(range(50))}))
    sample = on_spark.random_edge(vertices, stored, 0.25, seed=1)
    found = {
        'node': torch.tensor(sorted(r.id for r in sample.vertices.collect())),
        'edge': torch.tensor(sorted(r.id for r in sample.edges.collect())),
    }
    assert digest(found)[:20] == expected()['disk/random_edge/small']
