"""Batches of a graph with an ``adj_t`` have one, and layers can trim it."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import trim_to_layer

from tests.samplers import graphs
from torch_gsample import patch_pyg
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

TO, BY = ('user', 'to', 'item'), ('item', 'by', 'user')


def homogeneous():
    index = graphs.random_edges(30, 30, 200).unique(dim=1)
    weight = torch.arange(1.0, index.size(1) + 1)
    data = Data(x=torch.randn(30, 4), edge_index=index, edge_weight=weight)
    return ToSparseTensor(layout=torch.sparse_csr)(data)


def typed():
    data = HeteroData()
    data['user'].x, data['item'].x = torch.randn(20, 4), torch.randn(35, 4)
    for (src, name, dst), sizes in ((TO, (20, 35)), (BY, (35, 20))):
        index = graphs.random_edges(*sizes, 150).unique(dim=1)
        data[src, name, dst].edge_index = index
        data[src, name, dst].edge_weight = torch.rand(index.size(1))
    return ToSparseTensor(layout=torch.sparse_csr)(data)


def dense(store, src, dst):
    """The matrix of the edges of a batch, one by one."""
    out = torch.zeros(dst, src)
    edges = zip(*store.edge_index.tolist(), store.edge_weight, strict=True)
    for source, target, weight in edges:
        out[target, source] += weight
    return out


@pytest.mark.parametrize(
    'options', [{}, {'replace': True}, {'num_workers': 1}]
)
def test_a_batch_has_its_edges_as_adj_t(options):
    data = homogeneous()
    for batch in NeighborLoader(data, [4, 3], batch_size=9, seed=0, **options):
        num = batch.num_nodes
        assert torch.equal(batch.adj_t.to_dense(), dense(batch, num, num))
        whole = data.adj_t.to_dense()[batch.n_id][:, batch.n_id]
        got = batch.adj_t.to_dense()
        if 'replace' not in options:
            assert torch.equal(got[got > 0], whole[got > 0])
    assert batch.num_edges > 9


@pytest.mark.parametrize('layout', [torch.sparse_csr, torch.sparse_csc])
def test_each_type_has_its_own(layout):
    data = typed()
    for store in data.edge_stores:
        store.adj_t = store.adj_t.to_sparse(layout=layout)
    loader = NeighborLoader(
        data, [3, 3], input_nodes=('item', torch.arange(12)), batch_size=6,
        seed=0, transform=lambda batch: batch.to('cpu'),
    )  # fmt: skip
    for batch in loader:
        for edge_type, adj_t in batch.adj_t_dict.items():
            sizes = (batch[t].num_nodes for t in edge_type[::2])
            want = dense(batch[edge_type], *sizes)
            assert torch.equal(adj_t.to_dense(), want)
        assert set(batch.adj_t_dict) == {TO, BY}


def test_links_have_it_as_well():
    data = homogeneous()
    loader = LinkNeighborLoader(
        data,
        [4],
        edge_label_index=torch.tensor([[1, 2], [3, 4]]),
        seed=0,
        batch_size=2,
    )
    (batch,) = loader
    num = batch.num_nodes
    assert torch.equal(batch.adj_t.to_dense(), dense(batch, num, num))


def test_padded_batches_have_none():
    loader = NeighborLoader(
        homogeneous(), [4], batch_size=9, seed=0, static_shapes=True
    )
    assert all('adj_t' not in batch for batch in loader)


def test_layers_that_trim_it_compute_the_seeds_alike():
    data = homogeneous()
    data.adj_t.values().fill_(1)
    (batch,) = NeighborLoader(
        data, [3, 3, 3], torch.arange(5), batch_size=5, seed=0
    )
    convs = [SAGEConv(4, 4) for _ in range(3)]

    def run(x, edges):
        for i, conv in enumerate(convs):
            x, edges, _ = trim_to_layer(
                i, batch.num_sampled_nodes, batch.num_sampled_edges, x, edges
            )
            sizes.append(tuple(edges.shape))
            x = conv(x, edges).relu()
        return x[:5]

    sizes = []
    with patch_pyg():
        want = run(batch.x, batch.edge_index)
        sizes.clear()
        torch.testing.assert_close(run(batch.x, batch.adj_t), want)
    nodes = batch.num_sampled_nodes
    assert sizes == [(sum(nodes[: 4 - i]),) * 2 for i in range(3)]


def test_trimmed_rows_are_empty_beyond_the_destinations_of_a_layer():
    batch = next(iter(NeighborLoader(
        typed(), [3, 3], input_nodes=('item', torch.arange(5)), batch_size=5,
        seed=0,
    )))  # fmt: skip
    with patch_pyg():
        counts = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
        of_types = batch.x_dict, batch.adj_t_dict
        _, adj_t, _ = trim_to_layer(1, *counts, *of_types)
    for src, name, dst in (TO, BY):
        first = batch[src, name, dst].num_sampled_edges[0]
        edges = batch[src, name, dst]
        edges.edge_index = edges.edge_index[:, :first]
        edges.edge_weight = edges.edge_weight[:first]
        sizes = (sum(counts[0][t][:2]) for t in (src, dst))
        want = dense(edges, *sizes)
        assert torch.equal(adj_t[src, name, dst].to_dense(), want)
