"""Work of Python's workers in addition to their tasks."""

import gc
import subprocess
import sys

import pyarrow as pa
import torch
from pyspark.sql import functions as F

from torch_gsample.storage import ChunkedGraph

#: The parts of tasks, without Spark: a worker draws a batch, and imports the
#: modules to which the functions of other tasks belong.
_TASKS = """
import sys

import torch
from torch_gsample.spark import worker_daemon
from torch_gsample.spark import jvm_draws, prepared_parts, weighted_hubs
from torch_gsample.spark.batch_types import BatchTypes
from torch_gsample.spark.stored_batches import StoredSampling

path, generation = sys.argv[1], int(sys.argv[2])
key = 1, 0, 0
sampling = StoredSampling(
    path, generation, key, [[2, 2]], False, True, None, 'uniform'
)
seeds = {'dst': torch.tensor([0]), 'src': torch.tensor([0])}
lists = sampling.sample(seeds, BatchTypes.of(None).facts({}))
assert lists['num_edges_0'].tolist()[0] == 2, lists
print(*sorted({'torch_geometric', 'torch._dynamo', 'sympy'} & {*sys.modules}))
"""


def test_imported_objects_are_frozen_for_garbage_collection(spark):
    """A worker collects garbage then: 85 ms with all objects of torch."""

    @F.arrow_udf('bigint')
    def frozen(values: pa.Array) -> pa.Array:
        return pa.array([gc.get_freeze_count()] * len(values))

    [row] = spark.range(1).select(frozen('id')).collect()
    assert row[0] > 100_000


def test_workers_import_what_tasks_need(spark):
    """Each module costs all executors time, once."""

    def imported(_):
        import sys

        yield [name for name in sys.modules if name.startswith('torch_gs')]

    names = spark.sparkContext.parallelize([0], 1).mapPartitions(imported)
    (found,) = names.collect()
    assert 'torch_gsample.spark.stored_batches' in found
    assert not {'torch_gsample.storage.inference', 'torch_gsample.vertex'} & {
        *found
    }


def test_tasks_import_neither_pyg_nor_dynamo(tmp_path):
    """They take a worker longer to import than torch does."""
    edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
    graph = ChunkedGraph.write(tmp_path / 'graph', edge_index)
    generation = str(graph.meta.generation)
    command = [sys.executable, '-c', _TASKS, str(graph.path), generation]
    assert subprocess.check_output(command, text=True).split() == []
