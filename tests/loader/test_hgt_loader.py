"""PyG's contract of HGTLoader: the contents of a mini-batch."""

import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.data import HeteroData

from tests.loader.batches import run
from tests.samplers import graphs
from torch_gsample import HGTSampler
from torch_gsample.loader import HGTLoader, LinkNeighborLoader


def loader_of(data=None, num_samples=(3, 2), input_nodes='item', **options):
    """A loader that is reproducible, unless the options say otherwise."""
    data = graphs.heterogeneous() if data is None else data
    options = {'batch_size': 4, 'seed': 0} | options
    return HGTLoader(data, list(num_samples), input_nodes, **options)


def wide():
    """A graph of features that are joined in reused memory."""
    data = graphs.heterogeneous()
    for store in data.node_stores:
        store.x = store.x.float() + torch.arange(32) / 64
    return data


def test_it_is_pygs_loader():
    loader = loader_of()
    assert isinstance(loader, pyg.HGTLoader)
    assert isinstance(loader.node_sampler, HGTSampler)
    assert str(loader) == 'HGTLoader()'
    assert len(loader) == 4


@pytest.mark.parametrize('prefetch', [0, 2])
@pytest.mark.parametrize('make', [graphs.heterogeneous, wide])
def test_a_batch_is_a_part_of_the_graph(make, prefetch):
    data, seen = make(), []
    for batch in loader_of(data, prefetch=prefetch):
        assert isinstance(batch, HeteroData)
        assert batch.node_types == data.node_types
        assert batch.edge_types == data.edge_types
        size = batch['item'].batch_size
        seeds = batch['item'].n_id[:size]
        assert torch.equal(seeds, batch['item'].input_id)
        seen += seeds.tolist()
        for t in data.node_types:
            n_id = batch[t].n_id
            assert torch.equal(batch[t].x, data[t].x[n_id])
            assert sum(batch[t].num_sampled_nodes) == n_id.numel()
            assert n_id.numel() <= 5 + size * (t == 'item')
            assert n_id.unique().numel() == n_id.numel()
        for t in data.edge_types:
            src, dst = batch[t[0]].n_id, batch[t[2]].n_id
            row, col = batch[t].edge_index
            e_id = batch[t].e_id
            ends = torch.stack([src[row], dst[col]])
            assert torch.equal(ends, data[t].edge_index[:, e_id])
            assert torch.equal(batch[t].edge_attr, data[t].edge_attr[e_id])
            u, v = data[t].edge_index
            induced = torch.isin(u, src) & torch.isin(v, dst)
            assert e_id.numel() == int(induced.sum())
    assert seen == list(range(15))
    assert size == 15 % 4


def test_a_batch_has_pygs_fields_and_counts_of_nodes():
    batch = next(iter(loader_of()))
    node = {'x', 'num_nodes', 'n_id', 'num_sampled_nodes'}
    assert set(batch['user'].keys()) - {'num_nodes'} == node - {'num_nodes'}
    seeds = {'input_id', 'batch_size'}
    assert set(batch['item'].keys()) | {'num_nodes'} == node | seeds
    for t in batch.edge_types:
        fields = {'edge_index', 'edge_attr', 'e_id'}
        assert set(batch[t].keys()) == fields


def test_the_graph_is_in_shared_memory_if_there_are_workers():
    for num_workers in (0, 2):
        sampler = loader_of(num_workers=num_workers).node_sampler
        for csc in sampler.graph.columns:
            assert csc.indices.is_shared() == (num_workers > 0)


def test_seed_and_epoch_decide():
    loader = loader_of()
    first = run(loader)
    assert run(loader) != first
    loader.set_epoch(0)
    assert run(loader) == first
    assert run(loader_of(seed=1)) != first


def test_batches_of_one_seed_are_alike_within_an_epoch():
    options = dict(input_nodes=('item', [2] * 3), batch_size=1)
    first, *others = run(loader_of(rng_scope='epoch', **options))
    for other in others:
        assert other['item'].pop('input_id') != first['item']['input_id']
    del first['item']['input_id']
    assert others == [first] * 2
    first, *others = run(loader_of(**options))
    assert others[0]['user'] != first['user'] != others[1]['user']


@pytest.mark.parametrize('filter_per_worker', [None, False, True])
@pytest.mark.parametrize('prefetch', [0, 2])
def test_transforms_see_every_batch(filter_per_worker, prefetch):
    def cut(out):
        out.edge = dict.fromkeys(out.edge)
        return out

    def mark(batch):
        batch.marked = True
        return batch

    data = graphs.heterogeneous()
    loader = HGTLoader(
        data,
        [2],
        'item',
        False,
        mark,
        cut,
        filter_per_worker,
        prefetch=prefetch,
        batch_size=4,
    )
    for batch in [*loader, loader([1])]:
        assert batch.marked
        assert 'e_id' not in batch['user', 'rates', 'item']
    assert loader.filter_per_worker == (filter_per_worker is not False)


def test_stores_give_the_batches_of_their_graph():
    data = graphs.heterogeneous()
    del data['lone']
    loader = loader_of(graphs.as_stores(data))
    for own, expected in zip(loader, loader_of(data), strict=True):
        for t in data.node_types:
            assert torch.equal(own[t].x, expected[t].x)
        for t in data.edge_types:
            assert torch.equal(own[t].edge_index, expected[t].edge_index)


def test_a_sparse_tensor_becomes_an_edge_index():
    index = graphs.random_edges(12, 12, 60).unique(dim=1)
    value = torch.arange(1.0, index.size(1) + 1)
    adj_t = torch.sparse_coo_tensor(index.flip(0), value, (12, 12))
    data = HeteroData(user={'x': torch.arange(12)})
    data['user', 'to', 'user'].adj_t = adj_t.to_sparse_csr()
    for batch in loader_of(data, input_nodes='user'):
        edges = batch['user', 'to', 'user']
        ends = batch['user'].n_id[edges.edge_index]
        assert torch.equal(ends, index[:, edges.edge_weight.long() - 1])


def test_seeds_without_edges_are_batches():
    loader = loader_of(input_nodes='lone', batch_size=2)
    assert [b['lone'].n_id.tolist() for b in loader] == [[0, 1], [2]]


def test_a_link_loader_takes_the_sampler():
    data = graphs.heterogeneous()
    loader = LinkNeighborLoader(
        data,
        sampler=HGTSampler(data, [3, 2], seed=0),
        edge_label_index=graphs.RATES,
        neg_sampling='binary',
        batch_size=7,
    )
    for batch in loader:
        store = batch[graphs.RATES]
        size = store.input_id.numel()
        rows, cols = store.edge_label_index[:, :size]
        ends = [batch['user'].n_id[rows], batch['item'].n_id[cols]]
        expected = data[graphs.RATES].edge_index[:, store.input_id]
        assert torch.equal(torch.stack(ends), expected)
        assert store.num_edges >= size  # its own links, at least
        assert batch['tag'].num_nodes > 0


def test_bad_input():
    with pytest.raises(
        ValueError, match=r"^HGTSampler: 'data' must be heterog"
    ):
        loader_of(graphs.homogeneous())
    with pytest.raises(TypeError, match=r"^HGTSampler: 'num_samples' must be"):
        HGTLoader(graphs.heterogeneous(), 5, 'item')
    with pytest.raises(ValueError, match=r"^HGTLoader: 'prefetch' must not"):
        loader_of(prefetch=-1)
    with pytest.raises(ValueError, match=r"^HGTLoader: 'batch_size' must be"):
        loader_of(batch_size=None)
    with pytest.raises(TypeError, match='num_neighbors'):
        loader_of(num_neighbors=[2])
    with pytest.raises(
        ValueError, match=r"^HGTSampler: 'data' must have edge"
    ):
        loader_of(HeteroData(only={'x': torch.arange(3)}), input_nodes='only')
