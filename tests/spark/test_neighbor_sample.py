"""Batches from Spark are those of the local loader, field by field."""

import tempfile
from pathlib import Path

import pytest
import torch
from pyspark.sql import functions as F
from torch_geometric.data import Data

from tests.spark.graphs import (
    CITES,
    WRITES,
    assert_same_batches,
    edge_frame,
    failing,
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
    'disjoint, all, then none': (
        [-1, 0],
        {'disjoint': True},
        {},
        {'epoch': 3},
    ),
    'weighted, replace': (
        [4, 2],
        {'replace': True},
        {'weight_attr': 'weight'},
        {'weighted': True},
    ),
    'timed': ([3, 2], {}, {'time_attr': 'time'}, {'timed': True}),
    'hub': ([3], {}, {}, {'largest_column': 20}),
    'hub in time': (
        [3],
        {'temporal_strategy': 'last', 'time_window': 9},
        {'time_attr': 'time'},
        {'timed': True, 'largest_column': 20},
    ),
    'hub with weights': (
        [3],
        {},
        {'weight_attr': 'weight'},
        {'weighted': True, 'largest_column': 20},
    ),
    'hub with weights, in time': (
        [3],
        {'time_window': 9},
        {'weight_attr': 'weight', 'time_attr': 'time'},
        {'weighted': True, 'timed': True, 'largest_column': 20},
    ),
}


@pytest.mark.parametrize(
    ('case', 'split'),
    [(case, 'nodes') for case in CASES]
    + [(case, 'batches') for case in CASES if 'hub' not in case],
)
def test_batches_are_those_of_the_local_loader(
    spark, data, edges, tmp_path, case, split
):
    """Edges are joined, or prepared in a temporary folder."""
    fanouts, both, local, own = CASES[case]
    timed = own.get('timed', False)
    seeds = seed_frame(spark, SEEDS, TIMES if timed else None)
    sample = neighbor_sample(
        edges,
        seeds,
        fanouts,
        batch_size=4,
        seed=12,
        split=split,
        **both,
        **own,
    )
    assert (sample.sampling is None) == (split == 'nodes')
    # Attributes of nodes in one case, of edges in some: each takes a join.
    bare = Data(edge_index=data.edge_index, num_nodes=40)
    features = None
    if case == 'uniform':
        bare = Data(edge_index=data.edge_index, x=data.x, y=data.y)
        features = feature_frame(spark, data, 'x', 'y')
    names = ['weight'] * ('weighted' in own) + ['time'] * timed
    for name in names:
        bare[name] = data[name]
    edge_features = edges.select('id', *names) if names else None
    loader = written(
        sample,
        tmp_path / 'out',
        features=features,
        edge_features=edge_features,
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


@pytest.mark.parametrize('split', ['batches', 'nodes'])
def test_batches_of_a_heterogeneous_graph_are_the_same(spark, tmp_path, split):
    data = heterogeneous()
    sample = neighbor_sample(
        {t: edge_frame(spark, data[t]) for t in (WRITES, CITES)},
        ('papers', seed_frame(spark, SEEDS[:5])),
        {WRITES: [2, 1], CITES: [3, 2]},
        batch_size=4,
        seed=12,
        disjoint=True,
        split=split,
    )
    loader = written(
        sample,
        tmp_path / 'out',
        features={
            'papers': feature_frame(spark, data['papers'], 'x'),
            'authors': feature_frame(spark, data['authors'], 'x', 'y'),
        },
        edge_features={CITES: feature_frame(spark, data[CITES], 'edge_attr')},
    )
    expected = local_loader(
        data,
        {WRITES: [2, 1], CITES: [3, 2]},
        input_nodes=('papers', torch.tensor(SEEDS[:5])),
        disjoint=True,
    )
    assert_same_batches(loader, expected)


def rows(sample):
    return sorted(sample.edges.drop('tree').collect())


@pytest.mark.parametrize('split', ['batches', 'nodes'])
def test_neither_partitions_nor_failures_change_a_sample(
    spark, edges, tmp_path, split
):
    seeds = seed_frame(spark, SEEDS)

    def sampled(frame):
        sample = neighbor_sample(
            frame,
            seeds,
            [3],
            batch_size=4,
            seed=12,
            largest_column=20,
            split=split,
        )
        out = rows(sample)
        sample.close()
        return out

    expected = sampled(edges.repartition(1))
    assert sampled(edges.repartition(4)) == expected
    assert sampled(edges.repartition(16)) == expected
    died = tmp_path / 'died'
    assert sampled(failing(edges, 'src', died)) == expected
    assert [*died.iterdir()]


def test_write_rejects_nodes_without_features(spark, data, edges, tmp_path):
    sample = neighbor_sample(
        edges, seed_frame(spark, SEEDS), [3], batch_size=4, seed=12
    )
    few = feature_frame(spark, data, 'x').where('id < 3')
    with pytest.raises(ValueError, match='must have a row of features'):
        sample.write(str(tmp_path / 'out'), features=few)
    with pytest.raises(ValueError, match="'mode' must be"):
        sample.write(str(tmp_path / 'out'), mode='append')
    with pytest.raises(ValueError, match=r'of the types .None. .got .a.'):
        sample.write(str(tmp_path / 'out'), features={'a': few})
    words = few.withColumn('x', few.id.cast('string'))
    with pytest.raises(TypeError, match=r"must hold numbers.*string in 'x'"):
        sample.write(str(tmp_path / 'out'), features=words)
    sample.close()


def scratch_folders():
    return set(Path(tempfile.gettempdir()).glob('gsample-*.tmp'))


def test_a_graph_of_one_sample_is_removed(spark, edges, tmp_path, monkeypatch):
    # Another test may have such a folder in the common one at this time.
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    before = scratch_folders()
    assert not before
    seeds = seed_frame(spark, SEEDS)
    sample = neighbor_sample(edges, seeds, [3], batch_size=4, seed=12)
    (folder,) = scratch_folders() - before
    assert (folder / 'graph').is_dir()
    sample.close()
    assert scratch_folders() == before
    bad = edges.withColumn('weight', F.lit(-1.0))
    with pytest.raises(ValueError, match=r"neighbor_sample: .*'weight'"):
        neighbor_sample(bad, seeds, [3], batch_size=4, weighted=True)
    assert scratch_folders() == before


def test_seeds_without_edges_are_above_all_ids(spark, edges):
    seeds = seed_frame(spark, [7, 70])
    sample = neighbor_sample(edges, seeds, [3], batch_size=4, seed=12)
    joined = neighbor_sample(
        edges, seeds, [3], batch_size=4, seed=12, split='nodes'
    )
    assert rows(sample) == rows(joined) != []
    nodes = [sorted(s.nodes[0].collect()) for s in (sample, joined)]
    assert nodes[0] == nodes[1]
    sample.close(), joined.close()


def test_ids_that_are_not_dense_are_joined(spark, edges):
    far = edges.withColumn('dst', F.shiftleft('dst', 40))
    seeds = seed_frame(spark, [1 << 40])
    sample = neighbor_sample(far, seeds, [3], batch_size=4, seed=12)
    assert sample.sampling is None
    assert len(rows(sample)) == 3
    sample.close()
