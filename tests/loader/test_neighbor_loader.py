"""PyG's contract of NeighborLoader: the contents of a mini-batch."""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric import loader as pyg
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv, to_hetero

from tests.loader.batches import graph, loader_of, run, values
from tests.samplers import graphs
from tests.samplers.graphs import MARKS, RATES
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader


def assert_batch_of(batch, data):
    """Asserts that features and edges are those of the original graph."""
    assert torch.equal(batch.x, data.x[batch.n_id])
    assert torch.equal(batch.edge_attr, data.edge_attr[batch.e_id])
    ends = data.edge_index[:, batch.e_id]
    assert torch.equal(batch.n_id[batch.edge_index], ends)


def test_it_is_a_pyg_loader():
    loader = loader_of()
    assert isinstance(loader, pyg.NeighborLoader)
    assert isinstance(loader.node_sampler, NeighborSampler)
    assert str(loader) == 'NeighborLoader()'
    assert len(loader) == 4


@pytest.mark.parametrize('prefetch', [0, 2])
@pytest.mark.parametrize('subgraph_type', ['directional', 'induced'])
def test_a_batch_is_a_part_of_the_graph(subgraph_type, prefetch):
    data = graph()
    loader = loader_of(data, subgraph_type=subgraph_type, prefetch=prefetch)
    seen = []
    for batch in loader:
        assert isinstance(batch, Data)
        assert_batch_of(batch, data)
        assert batch.batch_size == batch.input_id.numel()
        assert batch.num_nodes == batch.n_id.numel()
        assert torch.equal(batch.n_id[: batch.batch_size], batch.input_id)
        seen += batch.input_id.tolist()
        if subgraph_type == 'directional':
            assert sum(batch.num_sampled_nodes) == batch.num_nodes
            assert sum(batch.num_sampled_edges) == batch.num_edges
    assert seen == list(range(60))
    assert batch.batch_size == 60 % 16


def test_a_typed_batch_is_a_part_of_the_graph():
    data = graphs.heterogeneous()
    loader = NeighborLoader(data, [3, 2], input_nodes='item', batch_size=4)
    for batch in loader:
        assert isinstance(batch, HeteroData)
        assert batch.node_types == data.node_types
        assert batch.edge_types == data.edge_types
        size = batch['item'].batch_size
        assert size == batch['item'].input_id.numel()
        seeds = batch['item'].n_id[:size]
        assert torch.equal(seeds, batch['item'].input_id)
        for t in data.node_types:
            assert torch.equal(batch[t].x, data[t].x[batch[t].n_id])
        for t in data.edge_types:
            src, dst = batch[t[0]].n_id, batch[t[2]].n_id
            row, col = batch[t].edge_index
            ends = torch.stack([src[row], dst[col]])
            e_id = batch[t].e_id
            assert torch.equal(ends, data[t].edge_index[:, e_id])
            assert torch.equal(batch[t].edge_attr, data[t].edge_attr[e_id])
        assert not batch.has_isolated_nodes() or size


def test_a_bidirectional_batch_has_both_directions():
    for batch in loader_of(subgraph_type='bidirectional'):
        ends = set(map(tuple, batch.edge_index.t().tolist()))
        assert ends == {(v, u) for u, v in ends}


@pytest.mark.parametrize('kind', ['mask', 'ids', 'list', 'typed'])
def test_seeds_come_in_all_of_pygs_forms(kind):
    mask = torch.zeros(60, dtype=torch.bool)
    mask[[3, 30, 7]] = True
    given = {
        'mask': mask,
        'ids': torch.tensor([3, 7, 30]),
        'list': [3, 7, 30],
        'typed': ('item', torch.tensor([3, 7, 10])),
    }[kind]
    data = graphs.heterogeneous() if kind == 'typed' else graph()
    (batch,) = loader_of(data, input_nodes=given)
    store = batch['item'] if kind == 'typed' else batch
    expected = [3, 7, 10] if kind == 'typed' else [3, 7, 30]
    assert store.n_id[:3].tolist() == expected
    # Of a mask PyG knows the nodes, of a list the places in it.
    ids = [3, 7, 30] if kind == 'mask' else [0, 1, 2]
    assert store.input_id.tolist() == ids


def test_input_ids_can_be_given():
    ids = torch.tensor([10, 11, 12])
    (batch,) = loader_of(input_nodes=torch.tensor([5, 6, 7]), input_id=ids)
    assert torch.equal(batch.input_id, ids)


def test_seed_times_override_those_of_nodes():
    data = graph()
    data.time = torch.arange(60)
    options = dict(time_attr='time', input_nodes=torch.arange(30, 60))
    for batch in loader_of(data, **options):
        tree_time = batch.n_id[: batch.batch_size][batch.batch]
        assert bool((batch.time <= tree_time).all())
    loader = loader_of(data, input_time=torch.full((30,), 9), **options)
    for batch in loader:
        assert batch.seed_time.tolist() == [9] * batch.batch_size
        assert bool((batch.time[batch.batch_size :] <= 9).all())


def test_disjoint_batches_name_the_trees():
    for batch in loader_of(disjoint=True):
        row, col = batch.edge_index
        assert torch.equal(batch.batch[row], batch.batch[col])
        first = batch.batch[: batch.batch_size]
        assert torch.equal(first, torch.arange(batch.batch_size))


@pytest.mark.parametrize('call', [[0], torch.tensor([5, 3])])
def test_a_loader_can_be_called_with_indices(call):
    loader = loader_of()
    batch = loader(call)
    seeds = torch.as_tensor(call)
    assert torch.equal(batch.n_id[: len(call)], seeds)
    assert values(loader(call)) == values(batch)


@pytest.mark.parametrize('filter_per_worker', [None, False, True])
@pytest.mark.parametrize('prefetch', [0, 2])
def test_transforms_see_every_batch(filter_per_worker, prefetch):
    def cut(out):
        out.edge = None
        return out

    def mark(batch):
        batch.marked = True
        return batch

    loader = loader_of(
        transform=mark,
        transform_sampler_output=cut,
        filter_per_worker=filter_per_worker,
        prefetch=prefetch,
    )
    for batch in [*loader, loader([1])]:
        assert batch.marked
        assert 'e_id' not in batch


def test_stores_give_pygs_batches():
    data = graphs.homogeneous()
    stores = graphs.as_stores(data)
    loader = loader_of(stores, input_nodes=torch.arange(30))
    for own, other in zip(loader, loader_of(data), strict=True):
        assert torch.equal(own.n_id, other.n_id)
        assert torch.equal(own.x, other.x)
        assert torch.equal(own.edge_index, other.edge_index)
    data = graphs.heterogeneous()
    del data['lone']
    loader = loader_of(graphs.as_stores(data), input_nodes='item')
    other = loader_of(data, input_nodes='item')
    for own, expected in zip(loader, other, strict=True):
        for t in data.node_types:
            assert torch.equal(own[t].x, expected[t].x)
        for t in data.edge_types:
            assert torch.equal(own[t].edge_index, expected[t].edge_index)


@pytest.mark.parametrize('key', ['adj', 'adj_t'])
@pytest.mark.parametrize('layout', [torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize('typed', [False, True])
def test_sparse_tensors_become_edge_indices(typed, layout, key):
    """PyG's own loader filters nothing but ``SparseTensor``."""
    index = graphs.random_edges(12, 12, 60).unique(dim=1)
    value = torch.arange(1.0, index.size(1) + 1)
    adj = torch.sparse_coo_tensor(
        index.flip(0) if key == 'adj_t' else index, value, (12, 12)
    ).to_sparse(layout=layout)
    attr = adj.values() * 10
    if typed:
        data = HeteroData(user={'x': torch.arange(12)})
        data['user', 'to', 'user'][key] = adj
        data['user', 'to', 'user'].edge_attr = attr
    else:
        data = Data(x=torch.arange(12), edge_attr=attr, **{key: adj})
    loader = loader_of(data, input_nodes='user' if typed else None)
    (batch,) = loader
    edges = batch['user', 'to', 'user'] if typed else batch
    n_id = batch['user'].n_id if typed else batch.n_id
    assert ('adj_t' in edges) == (key == 'adj_t')
    assert 'adj' not in edges
    number = edges.edge_weight.long() - 1
    assert torch.equal(n_id[edges.edge_index], index[:, number])
    assert torch.equal(edges.edge_attr, edges.edge_weight * 10)
    assert key in (data['user', 'to', 'user'] if typed else data)


def test_an_edge_index_of_pyg_is_filtered():
    data = graph()
    index = EdgeIndex(data.edge_index, sparse_size=(60, 60))
    own = data.clone()
    own.edge_index = index
    assert run(loader_of(own)) == run(loader_of(data))


def test_graphs_without_edges_give_their_seeds():
    none = torch.empty(2, 0, dtype=torch.long)
    for data, hops in (
        (Data(num_nodes=5), []),
        (Data(edge_index=none, num_nodes=5), [2]),
    ):
        loader = NeighborLoader(data, hops, batch_size=2)
        assert [b.n_id.tolist() for b in loader] == [[0, 1], [2, 3], [4]]


def test_full_neighbourhoods_give_the_output_of_the_whole_graph():
    data = graph()
    data.x = torch.randn(60, 8)
    model = torch.nn.ModuleList([SAGEConv(8, 8), SAGEConv(8, 4)])

    def forward(x, edge_index):
        return model[1](model[0](x, edge_index).relu(), edge_index)

    expected = forward(data.x, data.edge_index)
    for batch in loader_of(data, [-1, -1]):
        out = forward(batch.x, batch.edge_index)[: batch.batch_size]
        assert torch.allclose(out, expected[batch.input_id], atol=1e-5)


def test_a_typed_model_runs_on_batches():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = SAGEConv((-1, -1), 4)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    data = graphs.heterogeneous()
    for t in data.node_types:
        data[t].x = data[t].x.float()
    del data['lone'], data['tag'], data[MARKS]
    model = to_hetero(Model(), data.metadata())
    for batch in loader_of(data, input_nodes='item'):
        out = model(batch.x_dict, batch.edge_index_dict)
        assert out['item'].size(0) == batch['item'].num_nodes
    assert RATES in batch.edge_types
