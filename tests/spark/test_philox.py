"""Draws in the JVM are those of tensors."""

import pyarrow as pa
import pytest
import torch
from pyspark.sql import functions as F

from torch_gsample.graph_sampling import draws
from torch_gsample.spark.philox import with_draws

IDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1, 5, 17]


@pytest.mark.parametrize(
    ('seed', 'call_id'), [(0, draws.KEEP), (2**62 + 12345, draws.JUMP_ORDER)]
)
def test_draws_are_those_of_tensors(spark, seed, call_id):
    other = IDS[::-1]
    frame = spark.createDataFrame(pa.table({'a.b': IDS, 'x': IDS, 'y': other}))
    drawn = with_draws(frame, {'u': 'x', 'v': 'y'}, seed, call_id)
    assert drawn.columns == ['a.b', 'x', 'y', 'u', 'v']
    found = drawn.toArrow()
    for name, ids in (('u', IDS), ('v', other)):
        want = draws.uniform(torch.tensor(ids), seed, call_id)
        assert found[name].to_pylist() == want.tolist()


def test_a_filter_does_not_copy_the_rounds(spark):
    """Spark would put them into it: terms of terms, ten rounds deep."""
    frame = spark.range(5).withColumnRenamed('id', 'x')
    kept = with_draws(frame, {'u': 'x'}, 1, draws.KEEP).where('u < 0.5')
    plan = kept._jdf.queryExecution().optimizedPlan().toString()
    assert len(plan) < 10_000
    assert 'Python' not in plan
    want = draws.uniform(torch.arange(5), 1, draws.KEEP) < 0.5
    ids = [row.x for row in kept.orderBy(F.col('x')).collect()]
    assert ids == want.nonzero().flatten().tolist()
