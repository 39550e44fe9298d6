"""Batches with features on disk are those with features in memory."""

import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.data import HeteroData

from tests.loader.batches import end_workers, run, values
from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    FeatureFile,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.feature_store import EDGES

ITEM = 'item'


def with_features(data):
    """Wide features of nodes and edges of every type, and labels."""
    hetero = isinstance(data, HeteroData)
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(shape, generator=generator)

    nodes = [data[t] for t in data.node_types] if hetero else [data]
    for i, store in enumerate(nodes):
        store.x = random(store.num_nodes, 90 + i)
        store.y = torch.arange(store.num_nodes)
    for _, store in data.edge_items() if hetero else [(None, data)]:
        store.edge_attr = random(store.edge_index.shape[1], 40)
    return data


def features_of(data, folder, **options):
    """The store of a graph's features: files, and labels in memory."""
    features, hetero = {}, isinstance(data, HeteroData)
    nodes = [(t, data[t]) for t in data.node_types] if hetero else [(0, data)]
    for i, (group, store) in enumerate(nodes):
        path = folder / f'x{i}'
        group = group if hetero else None
        features[group, 'x'] = FeatureFile.write(path, store.x)
        features[group, 'y'] = store.y
    edges = data.edge_items() if hetero else [(EDGES, data)]
    for i, (group, store) in enumerate(edges):
        path = folder / f'e{i}'
        features[group, 'edge_attr'] = FeatureFile.write(path, store.edge_attr)
    return DiskFeatureStore(features, **options)


def make(name, folder, **options):
    data = with_features(getattr(graphs, name)())
    hetero = name == 'heterogeneous'
    fanouts = graphs.each(data, [4, 3]) if hetero else [4, 3]
    graph = ChunkedGraph.write(folder / 'g', data, chunk_bytes=400)
    store = features_of(data, folder, **options)
    return data, (store, graph), fanouts


def joined(batches):
    """Batches as plain values, without what only one of them has."""
    keys = {'x', 'y', 'n_id', 'e_id', 'edge_attr', 'edge_index', 'batch_size'}
    out = []
    for batch in batches:
        stores = batch.node_stores + batch.edge_stores
        if not isinstance(batch, HeteroData):
            stores = [batch]
        found = [
            values({k: s[k] for k in sorted(keys) if k in s}) for s in stores
        ]
        # A store has no types without features or edges.
        out.append([f for f in found if f.get('n_id') or f.get('e_id')])
    assert out
    assert all('x' in f or 'edge_attr' in f for b in out for f in b)
    return out


def seeds_of(name):
    seeds = torch.arange(15)
    return (ITEM, seeds) if name == 'heterogeneous' else seeds


NAMES = 'homogeneous', 'heterogeneous'


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('kind', [RandomReadSampler, StreamingSampler])
@pytest.mark.parametrize('name', NAMES)
def test_batches_are_those_of_features_in_memory(
    tmp_path, name, kind, num_workers
):
    data, stores, fanouts = make(name, tmp_path)
    options = {'batch_size': 4, 'shuffle': True, 'input_nodes': seeds_of(name)}
    scope = 'epoch' if kind is StreamingSampler else 'batch'
    known = NeighborSampler(data, fanouts, seed=1, rng_scope=scope)
    sampler = kind(stores[1], fanouts, seed=1, rng_scope=scope)
    want = NeighborLoader(data, sampler=known, **options)
    out = NeighborLoader(
        stores, sampler=sampler, num_workers=num_workers, **options
    )
    for _ in range(2):
        assert joined(out) == joined(want)


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize('name', NAMES)
def test_loaders_of_pyg_take_a_store(tmp_path, name, num_workers):
    data, (store, graph), fanouts = make(name, tmp_path)
    out = pyg.NodeLoader(
        (store, graph),
        RandomReadSampler(graph, fanouts, seed=1, rng_scope='epoch'),
        transform=store.add_edge_features,
        num_workers=num_workers,
        batch_size=4,
        input_nodes=seeds_of(name),
    )
    count = 0
    for batch in out:
        hetero = isinstance(batch, HeteroData)
        nodes = batch.node_types if hetero else [None]
        edges = batch.edge_types if hetero else [None]
        for group in nodes:
            got, want = (
                b if group is None else b[group] for b in (batch, data)
            )
            assert torch.equal(got.x, want.x[got.n_id])
            assert torch.equal(got.y, got.n_id)
        for group in edges:
            got, want = (
                b if group is None else b[group] for b in (batch, data)
            )
            assert torch.equal(got.edge_attr, want.edge_attr[got.e_id])
            count += len(got.e_id)
    assert count > 50
    end_workers()


def test_features_of_edges_are_not_looked_up_by_nodes(tmp_path):
    _, (store, graph), _ = make('homogeneous', tmp_path)
    sampler = RandomReadSampler(graph, [2], seed=1, rng_scope='epoch')
    seeds = torch.arange(3)
    loader = pyg.NodeLoader((store, graph), sampler, input_nodes=seeds)
    assert 'edge_attr' not in next(iter(loader))
    with pytest.raises(KeyError, match='must be an attribute'):
        store['paper', 'x', None]


def test_a_graph_in_memory_takes_features_on_disk(tmp_path):
    data = with_features(graphs.homogeneous())
    _, graph = graphs.as_stores(data)
    store = features_of(data, tmp_path)
    options = {'batch_size': 4, 'seed': 1, 'shuffle': True}
    options['input_nodes'] = torch.arange(30)
    want = NeighborLoader(data, [4, 3], **options)
    assert joined(NeighborLoader((store, graph), [4, 3], **options)) == (
        joined(want)
    )


def test_links_have_features_on_disk(tmp_path):
    data, stores, fanouts = make('heterogeneous', tmp_path)
    edges = data[graphs.RATES].edge_index[:, :40]
    options = {
        'edge_label_index': (graphs.RATES, edges),
        'neg_sampling': 'binary',
        'batch_size': 8,
    }
    known = NeighborSampler(data, fanouts, seed=1)
    sampler = RandomReadSampler(stores[1], fanouts, seed=1)
    want = LinkNeighborLoader(data, sampler=known, **options)
    out = LinkNeighborLoader(stores, sampler=sampler, **options)
    assert joined(out) == joined(want)


def test_ranks_and_resumed_epochs_give_the_same_batches(tmp_path):
    data, stores, fanouts = make('homogeneous', tmp_path)

    def loader(**options):
        sampler = RandomReadSampler(stores[1], fanouts, seed=1)
        options = options | {'batch_size': 4, 'shuffle': True}
        return NeighborLoader(
            stores, input_nodes=torch.arange(30), sampler=sampler, **options
        )

    known = NeighborSampler(data, fanouts, seed=1)
    want = joined(
        NeighborLoader(data, sampler=known, batch_size=4, shuffle=True)
    )
    ranks = [joined(loader(rank=r, world_size=2)) for r in range(2)]
    assert [ranks[i % 2][i // 2] for i in range(len(want))] == want
    first = loader(num_workers=1)
    batches = iter(first)
    done = joined([next(batches) for _ in range(3)])
    state = first.state_dict()
    del batches
    again = loader()
    again.load_state_dict(state)
    assert done + joined(again) == want


def test_spawned_workers_open_the_files_again(tmp_path):
    data, stores, fanouts = make('homogeneous', tmp_path)
    sampler = RandomReadSampler(stores[1], fanouts, seed=1)
    out = NeighborLoader(
        stores,
        input_nodes=torch.arange(30),
        sampler=sampler,
        batch_size=16,
        num_workers=1,
        multiprocessing_context='spawn',
    )
    known = NeighborSampler(data, fanouts, seed=1)
    want = NeighborLoader(data, sampler=known, batch_size=16)
    assert joined(out) == joined(want)


def test_a_store_is_one_of_pyg(tmp_path):
    x = torch.rand(6, 5)
    store = DiskFeatureStore()
    path = FeatureFile.write(tmp_path / 'x', x).path
    store['paper', 'x', None] = path
    store['paper', 'y', None] = torch.arange(6).numpy()
    index = torch.tensor([4, 0])
    assert torch.equal(store['paper', 'x', None], x)
    assert torch.equal(store['paper', 'x', index], x[index])
    assert torch.equal(store['paper', 'x', slice(1, 3)], x[1:3])
    assert torch.equal(store['paper', 'x', 2], x[2])
    assert torch.equal(store['paper', 'y', index], index)
    assert store.get_tensor_size('paper', 'x') == (6, 5)
    assert len(store.get_all_tensor_attrs()) == 2
    assert store.files[('paper', 'x')].path == path
    assert store.remove_tensor('paper', 'x', None)
    assert not store.remove_tensor('paper', 'x', None)
    assert len(store.get_all_tensor_attrs()) == 1


def test_wrong_features_are_named(tmp_path):
    store = DiskFeatureStore({'x': torch.rand(3, 2)})
    with pytest.raises(TypeError, match="'z' must be a FeatureFile"):
        store[None, 'z', None] = 5
    with pytest.raises(TypeError, match="'group_name' must be a type"):
        store[5, 'z', None] = torch.rand(3)
    with pytest.raises(TypeError, match="'attr_name' must be a string"):
        store['a', 5, None] = torch.rand(3)
    with pytest.raises(NotImplementedError, match='cannot be replaced'):
        store[None, 'x', torch.tensor([1])] = torch.rand(1, 2)
    with pytest.raises(KeyError, match='there must be an attribute'):
        store['paper', 'x', None]
    store[EDGES, 'edge_attr', None] = torch.rand(3, 2)
    with pytest.raises(ValueError, match="need 'e_id' in the batch"):
        store.add_edge_features(graphs.homogeneous())


def test_damage_in_a_worker_names_the_file(tmp_path):
    _, stores, fanouts = make('homogeneous', tmp_path)
    sampler = RandomReadSampler(stores[1], fanouts, seed=1)
    with open(tmp_path / 'x0', 'r+b') as file:
        file.seek(5_000)
        file.write(b'!!!')
    for num_workers in (0, 1):
        loader = NeighborLoader(
            stores,
            input_nodes=torch.arange(30),
            sampler=sampler,
            num_workers=num_workers,
        )
        with pytest.raises(ValueError, match='x0, offset 4096: the checksum'):
            run(loader)
