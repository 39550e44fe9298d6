"""Draws in the JVM are those of tensors."""

import pyarrow as pa
import pytest
import torch

from torch_gsample.graph_sampling import draws
from torch_gsample.spark import jvm_draws

IDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1, 5, 17]


@pytest.fixture(params=['in the JVM', 'in Python workers'])
def where(request, monkeypatch):
    """Where numbers are drawn; Spark Connect has no JVM."""
    if request.param == 'in Python workers':
        monkeypatch.setattr(jvm_draws, 'context_of', lambda session: None)
    return request.param


@pytest.mark.parametrize(
    ('seed', 'call_id'),
    [
        (0, draws.KEEP),
        (2**62 + 12345, draws.JUMP_ORDER),
        (-(2**63), draws.EDGE_ORDER),
    ],
)
def test_draws_are_those_of_tensors(spark, where, seed, call_id):
    other = IDS[::-1]
    table = pa.table({'id': IDS, 'src': IDS, 'dst': other})
    frame = spark.createDataFrame(table).repartition(2)
    ends = frame.drop('id')
    drawn = frame.select(
        'id',
        jvm_draws.draw(frame, 'dst', seed, call_id).alias('dst'),
        jvm_draws.draw_edges(frame, seed, call_id).alias('edge'),
        jvm_draws.draw_edges(ends, seed, call_id).alias('ends'),
    )
    plan = drawn._jdf.queryExecution().optimizedPlan().toString()
    assert ('Python' in plan) == (where == 'in Python workers')
    rows = {row.id: row for row in drawn.collect()}
    ids = torch.tensor(IDS)
    for name, values in (
        ('dst', ids.flip(0)),
        ('edge', ids),
        ('ends', draws.edge_ids(ids, ids.flip(0))),
    ):
        want = draws.uniform(values, seed, call_id).tolist()
        assert [rows[id][name] for id in IDS] == want


def test_a_session_that_takes_no_class_draws_in_workers(spark, monkeypatch):
    """As where Janino is not there, or JARs cannot be added."""
    monkeypatch.setattr(jvm_draws, '_compiled', {})
    monkeypatch.setattr(jvm_draws, '_SOURCE', 'no Java')
    frame = spark.createDataFrame(pa.table({'id': IDS}))
    with pytest.warns(UserWarning, match='Python workers draw the numbers'):
        column = jvm_draws.draw(frame, 'id', 3, draws.KEEP)
    rows = frame.select('id', column.alias('drawn')).collect()
    want = draws.uniform(torch.tensor([row.id for row in rows]), 3, draws.KEEP)
    assert [row.drawn for row in rows] == want.tolist()
