"""Edges that are stored once give the samples of all other ways."""

import pyarrow as pa
import pytest
import torch
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
from torch_gsample.spark import (
    neighbor_sample,
    prepare,
    prepare_adjacency,
    stored_edges,
)
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.random_reads import RandomReads

SEEDS = [5, 1, 9, 1, 20, 33, 2]
TIMES = [3, 19, 10, 7, 0, 12, 15]


@pytest.fixture(scope='module')
def data():
    return homogeneous()


@pytest.fixture(scope='module')
def edges(spark, data):
    return edge_frame(spark, data, 'weight', 'time').persist()


@pytest.fixture
def in_parts(monkeypatch):
    """Lets several tasks write small graphs."""
    monkeypatch.setattr(prepare, 'LEAST_EDGES', 20)


@pytest.fixture(scope='module')
def graph(edges, tmp_path_factory):
    path = tmp_path_factory.mktemp('prepared') / 'graph'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare, 'LEAST_EDGES', 20)
        # The hub, node 1, takes many chunks of several tasks.
        return prepare_adjacency(
            edges.repartition(3), path, weighted=True, chunk_bytes=512
        )


def local(data, fanouts, **options):
    return NeighborLoader(
        data, fanouts, batch_size=4, seed=12, rng_scope='epoch', **options
    )


def test_prepared_adjacency_is_a_graph_on_disk(spark, data, graph):
    graph.verify()
    assert {*graph.path.iterdir()} == {
        graph.path / name
        for name in ('meta.json', 'edges-0.bin', 'edges-0.crc')
    }
    want = zip(*data.edge_index.tolist(), range(300), strict=False)
    want = sorted(
        (*e, w) for e, w in zip(want, data.weight.tolist(), strict=True)
    )
    assert sorted(map(tuple, stored_edges(spark, graph).collect())) == want
    whole = ChunkedGraph.write(
        graph.path.parent / 'local',
        data,
        weight_attr='weight',
        chunk_bytes=512,
    )
    position = torch.arange(300)
    columns = [RandomReads(g, 1 << 20).readers()[0] for g in (graph, whole)]
    for name in ('neighbor', 'edge_id', 'weight'):
        a, b = (reader.items(name, position) for reader in columns)
        assert a.tolist() == pytest.approx(b.tolist(), abs=1e-6)


@pytest.mark.parametrize('split', ['batches', 'nodes'])
@pytest.mark.parametrize('weighted', [False, True])
def test_its_batches_are_those_of_the_local_loader(
    spark, data, graph, tmp_path, weighted, split
):
    sample = neighbor_sample(
        graph,
        seed_frame(spark, SEEDS),
        [3, 2],
        batch_size=4,
        seed=12,
        weighted=weighted,
        split=split,
    )
    bare = Data(edge_index=data.edge_index, num_nodes=40)
    options = {}
    if weighted:
        bare.weight, options = data.weight, {'weight_attr': 'weight'}
    expected = local(bare, [3, 2], input_nodes=torch.tensor(SEEDS), **options)
    expected = [*expected]
    for batch in expected:
        batch.pop('weight', None)
    assert_same_batches(written(sample, tmp_path / 'out'), expected)


def test_its_batches_in_time_are_those_of_the_local_loader(
    spark, data, edges, tmp_path, in_parts
):
    died = failing(edges, 'src', tmp_path / 'died')
    graph = prepare_adjacency(died, tmp_path / 'graph', timed=True)
    graph.verify()
    options = {'time_window': 9}

    def sampled(split):
        return neighbor_sample(
            graph,
            seed_frame(spark, SEEDS, TIMES),
            [3, -1],
            batch_size=4,
            seed=12,
            timed=True,
            split=split,
            **options,
        )

    assert edges_and_nodes(sampled('batches')) == edges_and_nodes(
        sampled('nodes')
    )
    bare = Data(edge_index=data.edge_index, num_nodes=40, time=data.time)
    expected = [
        *local(
            bare,
            [3, -1],
            input_nodes=torch.tensor(SEEDS),
            input_time=torch.tensor(TIMES),
            time_attr='time',
            **options,
        )
    ]
    for batch in expected:
        batch.pop('time')
    for split in ('batches', 'nodes'):
        found = written(sampled(split), tmp_path / split)
        assert_same_batches(found, expected)


def test_its_batches_of_a_heterogeneous_graph_are_the_same(
    spark, tmp_path, in_parts
):
    data = heterogeneous()
    graph = prepare_adjacency(
        {t: edge_frame(spark, data[t]) for t in (WRITES, CITES)},
        tmp_path / 'graph',
        num_nodes={'authors': 20, 'papers': 30},
    )
    graph.verify()
    fanouts = {WRITES: [2, 1], CITES: [3, 2]}

    def sampled(split):
        return neighbor_sample(
            graph,
            ('papers', seed_frame(spark, SEEDS[:5])),
            fanouts,
            batch_size=4,
            seed=12,
            disjoint=True,
            split=split,
        )

    features = {
        'papers': feature_frame(spark, data['papers'], 'x'),
        'authors': feature_frame(spark, data['authors'], 'x', 'y'),
    }
    of_edges = {CITES: feature_frame(spark, data[CITES], 'edge_attr')}
    expected = [
        *local(
            data,
            fanouts,
            input_nodes=('papers', torch.tensor(SEEDS[:5])),
            disjoint=True,
        )
    ]
    for split in ('batches', 'nodes'):
        sample = sampled(split)
        found = written(
            sample,
            tmp_path / split,
            features=features,
            edge_features=of_edges,
        )
        assert_same_batches(found, expected)


def edges_and_nodes(sample):
    out = [
        sorted(tuple(sorted(row.asDict().items())) for row in frame.collect())
        for frame in (sample.edges, *sample.nodes)
    ]
    sample.close()
    return out


def test_its_edges_and_nodes_do_not_depend_on_the_split(spark, graph):
    """Node 1 is twice a seed of the first batch."""
    found = [
        edges_and_nodes(
            neighbor_sample(
                graph,
                seed_frame(spark, SEEDS),
                [3, 2],
                batch_size=4,
                seed=12,
                split=split,
            )
        )
        for split in ('batches', 'nodes')
    ]
    assert found[0] == found[1]
    assert len(found[0][0]) > 20


def test_a_graph_has_no_file_of_a_failed_task(edges, tmp_path, monkeypatch):
    """Whatever an attempt of a task left when it was killed."""
    real = prepare._write_parts

    def write_parts(op, folder, *args):
        found = real(op, folder, *args)
        (folder / 'part-0-1-0123').write_bytes(b'half')
        return found

    monkeypatch.setattr(prepare, '_write_parts', write_parts)
    graph = prepare_adjacency(edges, tmp_path / 'graph')
    graph.verify()
    names = {path.name for path in graph.path.iterdir()}
    assert names == {'meta.json', 'edges-0.bin', 'edges-0.crc'}


def test_nodes_without_edges_have_chunks(spark, tmp_path):
    columns = {'src': [2, 2], 'dst': [3, 40], 'id': [0, 1]}
    frame = spark.createDataFrame(pa.table(columns))
    graph = prepare_adjacency(
        frame, tmp_path / 'graph', num_nodes=200, chunk_bytes=300
    )
    graph.verify()
    assert graph.num_nodes == {None: 200}
    assert len(stored_edges(spark, graph).collect()) == 2
    none = prepare_adjacency(frame.where('id > 5'), tmp_path / 'none')
    none.verify()
    assert none.num_nodes == {None: 0}


def test_bad_input_of_a_stored_graph_is_named(spark, edges, graph, tmp_path):
    seeds = seed_frame(spark, SEEDS)
    with pytest.raises(FileExistsError, match='must not exist yet'):
        prepare_adjacency(edges, graph.path)
    path = tmp_path / 'graph'
    for frame, options, words in (
        (edges, {'num_nodes': 5}, "'num_nodes' must be above all ids.*39"),
        (edges, {'num_nodes': {'a': 9}}, "'num_nodes' must be for the node"),
        (edges, {'chunk_bytes': 8}, "'chunk_bytes' must be at least 256"),
        ({}, {}, 'must have an edge type'),
        (edges.drop('id'), {}, "must have a column 'id'"),
        (edges.drop('time'), {'timed': True}, "must have a column 'time'"),
    ):
        with pytest.raises(ValueError, match=words):
            prepare_adjacency(frame, path, **options)
    bad = edges.selectExpr('src', 'dst', 'id', '-1 - weight as weight')
    with pytest.raises(ValueError, match=r'finite and not negative .got'):
        prepare_adjacency(bad, path, weighted=True)
    assert [*tmp_path.iterdir()] == []
    for options, words in (
        ({'timed': True}, "'timed' must be False.*as it was prepared"),
        ({'split': 'hops'}, "'split' must be 'batches' or 'nodes' .got 'hops"),
        ({'fanouts': {}}, "'fanouts' must be a list"),
        ({'seeds': seed_frame(spark, [40])}, 'below 40 .got 40'),
    ):
        options = {'seeds': seeds, 'fanouts': [2], **options}
        with pytest.raises(ValueError, match=words):
            neighbor_sample(graph, batch_size=4, **options)
    with pytest.raises(ValueError, match="'edge_type' must be one of"):
        stored_edges(spark, graph, ('a', 'to', 'b'))
    bare = ChunkedGraph.write(path, torch.tensor([[1], [0]]))
    with pytest.raises(ValueError, match="'weighted' needs weights"):
        neighbor_sample(bare, seeds, [2], batch_size=4, weighted=True)


def test_a_damaged_or_other_graph_fails_the_job(spark, edges, tmp_path):
    def sampled(graph):
        seeds = seed_frame(spark, SEEDS)
        sample = neighbor_sample(graph, seeds, [3], batch_size=4, seed=12)
        sample.write(str(tmp_path / 'out'), mode='overwrite')

    path = tmp_path / 'graph'
    graph = prepare_adjacency(edges, path)
    file = path / 'edges-0.bin'
    data = bytearray(file.read_bytes())
    data[1000] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r'checksum of a block.*wrong'):
        sampled(graph)
    path.rename(tmp_path / 'old')
    ChunkedGraph.write(path, torch.tensor([[1], [0]]), num_nodes=40)
    with pytest.raises(ValueError, match='was replaced by another one'):
        sampled(graph)
