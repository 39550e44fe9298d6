"""Batches from Spark are those of the local loader, field by field."""

import pytest
import torch
from torch_geometric.data import Data

from tests.spark.graphs import (
    CITES,
    WRITES,
    assert_same_batches,
    edge_frame,
    feature_frame,
    heterogeneous,
    homogeneous,
    seed_frame,
    written,
)
from torch_gsample.loader import NeighborLoader
from torch_gsample.spark import neighbor_sample

SEEDS = [5, 1, 9, 1, 20, 33, 2]
TIMES = [3, 19, 10, 7, 0, 12, 15]


def local_loader(data, fanouts, epoch=0, **kwargs):
    loader = NeighborLoader(
        data, fanouts, batch_size=4, seed=12, rng_scope='epoch', **kwargs
    )
    loader.set_epoch(epoch)
    return loader


@pytest.fixture(scope='module')
def data():
    return homogeneous()


@pytest.fixture(scope='module')
def edges(spark, data):
    return edge_frame(spark, data, 'weight', 'time').persist()


# (fan-outs, what both take, what names the attributes locally, on Spark)
CASES = {
    'uniform': ([3, 2], {}, {}, {}),
    'all, then none': ([-1, 0], {}, {}, {'epoch': 3}),
    'replace': ([4, 2], {'replace': True}, {}, {}),
    'disjoint': ([3, 2], {'disjoint': True}, {}, {}),
    'weighted': ([3, 2], {}, {'weight_attr': 'weight'}, {'weighted': True}),
    'timed': (
        [3, 2],
        {},
        {'time_attr': 'time'},
        {'timed': True},
    ),
    'hub': ([3, 2], {}, {}, {'largest_column': 20}),
    'hub in time': (
        [3, 2],
        {'temporal_strategy': 'last', 'time_window': 9},
        {'time_attr': 'time'},
        {'timed': True, 'largest_column': 20},
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_batches_are_those_of_the_local_loader(
    spark, data, edges, tmp_path, case
):
    fanouts, both, local, own = CASES[case]
    timed = own.get('timed', False)
    seeds = seed_frame(spark, SEEDS, TIMES if timed else None)
    sample = neighbor_sample(
        edges, seeds, fanouts, batch_size=4, seed=12, **both, **own
    )
    bare = Data(edge_index=data.edge_index, x=data.x, y=data.y)
    names = [*(['weight'] if 'weighted' in own else []), *['time'] * timed]
    for name in names:
        bare[name] = data[name]
    loader = written(
        sample,
        tmp_path / 'out',
        features=feature_frame(spark, data, 'x', 'y'),
        edge_features=edges.select('id', *names) if names else None,
    )
    expected = local_loader(
        bare,
        fanouts,
        own.get('epoch', 0),
        input_nodes=torch.tensor(SEEDS),
        input_time=torch.tensor(TIMES) if timed else None,
        **both,
        **local,
    )
    assert_same_batches(loader, expected)
