"""Work of Python's workers in addition to their tasks."""

import gc

import pyarrow as pa
from pyspark.sql import functions as F


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
