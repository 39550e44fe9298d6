"""Graphs as PyG has them and as DataFrames, and how batches are compared."""

import os

import pyarrow as pa
import torch
from pyspark import TaskContext
from pyspark.sql import functions as F
from torch_geometric.data import Data, HeteroData

from torch_gsample.spark import SampledParquetLoader

WRITES = ('authors', 'writes', 'papers')
CITES = ('papers', 'cites', 'papers')


def random_edges(num_src, num_dst, num_edges, seed):
    """Half of the edges lead to node 1: a hub."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_src, (num_edges,), generator=generator)
    dst = torch.randint(num_dst, (num_edges,), generator=generator)
    dst[::2] = 1
    return torch.stack([src, dst])


def homogeneous():
    """With features, labels, weights (some of them 0) and times."""
    edge_index = random_edges(40, 40, 300, seed=3)
    generator = torch.Generator().manual_seed(4)
    weight = torch.rand(300, generator=generator)
    weight[::7] = 0
    return Data(
        edge_index=edge_index,
        x=torch.arange(120.0).view(40, 3),
        y=torch.arange(40),
        weight=weight,
        time=torch.randint(20, (300,), generator=generator),
    )


def heterogeneous():
    data = HeteroData()
    data['papers'].x = torch.arange(60.0).view(30, 2)
    data['authors'].x = torch.arange(20.0).view(20, 1) * -1
    data['authors'].y = torch.arange(20)
    data[WRITES].edge_index = random_edges(20, 30, 150, seed=5)
    data[CITES].edge_index = random_edges(30, 30, 150, seed=6)
    data[CITES].edge_attr = torch.arange(300.0).view(150, 2)
    return data


def edge_frame(spark, store, *names):
    src, dst = store.edge_index.tolist()
    columns = {'src': src, 'dst': dst, 'id': list(range(len(src)))}
    columns |= {name: store[name].tolist() for name in names}
    return spark.createDataFrame(pa.table(columns))


def feature_frame(spark, store, *names):
    columns = {'id': list(range(len(store[names[0]])))}
    for name in names:
        columns[name] = pa.array(
            store[name].tolist(),
            pa.list_(pa.float32()) if store[name].dim() == 2 else None,
        )
    return spark.createDataFrame(pa.table(columns))


def seed_frame(spark, ids, time=None):
    """Seeds with the last one first: only positions say their order."""
    columns = {'position': list(range(len(ids))), 'id': ids}
    if time is not None:
        columns['time'] = time
    rows = {name: values[::-1] for name, values in columns.items()}
    return spark.createDataFrame(pa.table(rows))


def failing(frame, column, folder):
    """The frame again, but the first worker that reads a partition dies."""
    folder.mkdir()

    @F.arrow_udf('boolean')
    def die_once(values: pa.Array) -> pa.Array:
        died = folder / str(TaskContext.get().partitionId())
        if not died.exists():
            died.touch()
            os._exit(1)
        return pa.array([True] * len(values))

    return frame.where(die_once(column))


def fields(batch):
    """All of a batch that is set, as plain values."""
    out = {}
    for store in batch.stores:
        key = getattr(store, '_key', None)
        for name, value in store.items():
            if value is not None:
                tensor = isinstance(value, torch.Tensor)
                out[key, name] = value.tolist() if tensor else value
    return out


def assert_same_batches(got, expected):
    got, expected = list(got), list(expected)
    assert len(got) == len(expected)
    for ours, local in zip(got, expected, strict=True):
        a, b = fields(ours), fields(local)
        assert a.keys() == b.keys()
        for key in a:
            assert a[key] == b[key], key


def written(sample, path, **features):
    sample.write(str(path), **features)
    sample.close()
    return SampledParquetLoader(str(path))
