"""Behind Spark Connect, samples are the same; `watch` is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys

import pyarrow as pa
import torch
from pyspark.sql import SparkSession
from torch_geometric.data import Data

from tests.spark.graphs import *
from tests.spark.test_quality import WEDGES, compare
from torch_gsample import graph_sampling
from torch_gsample import spark as on_spark
from torch_gsample.loader import NeighborLoader

folder = sys.argv[1]
spark = SparkSession.builder.remote('local[1]').getOrCreate()
spark.conf.set('spark.sql.shuffle.partitions', '2')
data, seeds = homogeneous(), [5, 1, 9, 20, 33]
bare = Data(edge_index=data.edge_index, num_nodes=40)
src, dst = data.edge_index.tolist()
vertices = spark.createDataFrame(pa.table({'id': [*range(40)]}))
edges = edge_frame(spark, data)
kept = on_spark.random_vertex(vertices, edges, 0.6, seed=3)
want = graph_sampling.random_vertex(bare, 0.6, seed=3)
assert sorted(r.id for r in kept.edges.collect()) == want.e_id.tolist()
whole = vertices, edges
found = on_spark.sample_quality(whole, kept, wedges=WEDGES, seed=3)
in_memory = graph_sampling.sample_quality(bare, want)
compare(found.original, in_memory.original)
compare(found.sampled, in_memory.sampled)
ids = on_spark.assign_ids(vertices)
ids.write(f'{folder}/ids')
assert on_spark.read_ids(spark, f'{folder}/ids').frame.count() == 40

graph = on_spark.prepare_adjacency(edges, f'{folder}/graph')
graph.verify()
assert on_spark.stored_edges(spark, graph).count() == 300
options = {'batch_size': 2, 'seed': 12}
loader = NeighborLoader(
    bare,
    [3, 2],
    input_nodes=torch.tensor(seeds),
    rng_scope='epoch',
    **options,
)
expected = [*loader]
frame = seed_frame(spark, seeds)
on_spark.sample_epochs(graph, frame, [3, 2], f'{folder}/run', **options)
found = on_spark.SampledParquetLoader(f'{folder}/run')
assert_same_batches(found, expected)
sample = on_spark.neighbor_sample(edges, frame, [3, 2], **options)
assert_same_batches(written(sample, f'{folder}/joined'), expected)
try:
    on_spark.watch(spark, 'a block').__enter__()
except ValueError as error:
    print(error)
"""


@pytest.mark.interop
def test_samples_behind_spark_connect_are_the_same(tmp_path):
    place = {'PYSPARK_PYTHON': sys.executable, 'SPARK_LOCAL_IP': '127.0.0.1'}
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **place},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "watch: 'session' must run in this process" in done.stdout
