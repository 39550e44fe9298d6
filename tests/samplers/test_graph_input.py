"""The formats a graph can come in: all of them sample the same."""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler.base import DataType

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from tests.samplers.oracle import assert_consistent, edge_lists, fields_of
from torch_gsample import NeighborSampler


def sorted_by(data, dim):
    """Edges sorted along a dimension, stably."""
    order = data.edge_index[dim].argsort(stable=True)
    return Data(edge_index=data.edge_index[:, order], num_nodes=data.num_nodes)


def sparse(data, layout, transposed):
    """The graph as a tensor with the ids of its edges, from 1, as values."""
    size = (data.num_nodes, data.num_nodes)
    edge_index = data.edge_index
    index = edge_index.flip(0) if transposed else edge_index
    value = torch.arange(1.0, edge_index.size(1) + 1)
    adj = torch.sparse_coo_tensor(index, value, size).coalesce()
    return adj.to_sparse(layout=layout)


def simple_graph():
    """No parallel edges, and every column in ascending order."""
    data = graphs.homogeneous(num_edges=200)
    index = data.edge_index.flip(0).unique(dim=1).flip(0)
    return Data(edge_index=index, num_nodes=data.num_nodes)


def ends(sampler, seeds=(3, 5, 7, 1)):
    out = sampler.sample_from_nodes(graphs.nodes(seeds))
    return out.node.tolist(), out.row.tolist(), out.col.tolist()


SAMPLERS = {'sparse_csr': torch.sparse_csr, 'sparse_csc': torch.sparse_csc}


@pytest.mark.parametrize('key', ['adj', 'adj_t'])
@pytest.mark.parametrize('layout', SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_sparse_tensors_sample_as_edge_lists(key, layout, direction):
    data = simple_graph()
    if direction == 'backward':  # the same order of the edges of a row
        data = sorted_by(sorted_by(data, 1), 0)
    options = dict(seed=0, sample_direction=direction)
    expected = ends(NeighborSampler(data, [3, 2], **options))
    adj = sparse(data, layout, transposed=key == 'adj_t')
    sampler = NeighborSampler(Data(**{key: adj}), [3, 2], **options)
    assert ends(sampler) == expected


@pytest.mark.parametrize('key', ['adj', 'adj_t'])
@pytest.mark.parametrize('layout', SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_edges_of_sparse_tensors_are_positions_in_them(key, layout, direction):
    data = simple_graph()
    adj = sparse(data, layout, transposed=key == 'adj_t')
    sampler = NeighborSampler(
        Data(**{key: adj}), [3, 2], sample_direction=direction
    )
    out = sampler.sample_from_nodes(graphs.nodes([3, 5, 7]))
    assert sampler.edge_permutation is None
    number = adj.values()[out.edge].long() - 1
    ends = torch.stack([out.node[out.row], out.node[out.col]])
    assert torch.equal(data.edge_index[:, number], ends)


def test_a_sorted_edge_index_needs_no_permutation():
    data = sorted_by(graphs.homogeneous(), 1)
    sampler = NeighborSampler(data, [3, 2], is_sorted=True, seed=0)
    assert sampler.edge_permutation is None
    out = sampler.sample_from_nodes(graphs.nodes([3, 5]))
    assert_consistent(sampler, out, edge_lists(data))
    plain = NeighborSampler(data, [3, 2], seed=0)
    assert plain.edge_permutation is None  # the order was found to be right
    again = plain.sample_from_nodes(graphs.nodes([3, 5]))
    assert fields_of(out) == fields_of(again)


@pytest.mark.parametrize('order', [None, 'row', 'col'])
def test_an_edge_index_of_any_order_is_taken(order):
    data = graphs.homogeneous()
    if order is not None:
        data = sorted_by(data, 0 if order == 'row' else 1)
    plain = NeighborSampler(data, [3, 2], seed=0)
    expected = plain.sample_from_nodes(graphs.nodes([3, 5]))
    index = EdgeIndex(data.edge_index, sparse_size=(30, 30), sort_order=order)
    sampler = NeighborSampler(
        Data(edge_index=index, num_nodes=30), [3, 2], seed=0
    )
    assert (sampler.edge_permutation is None) == (order == 'col')
    out = sampler.sample_from_nodes(graphs.nodes([3, 5]))
    assert type(out.row) is torch.Tensor
    assert fields_of(out) == fields_of(expected)


def test_non_contiguous_and_narrow_edge_indices_are_taken():
    data = graphs.homogeneous()
    expected = NeighborSampler(data, [3, 2], seed=0)
    for index in (
        data.edge_index.t().contiguous().t(),
        data.edge_index.int(),
    ):
        other = Data(edge_index=index, num_nodes=30)
        assert ends(NeighborSampler(other, [3, 2], seed=0)) == ends(expected)


@pytest.mark.parametrize('dtype', [None, torch.int32, torch.int64])
@pytest.mark.parametrize('kind', ['edge_index', 'adj_t', 'stores'])
def test_index_dtype_does_not_change_samples(dtype, kind):
    data = simple_graph()
    source = {
        'edge_index': data,
        'adj_t': Data(adj_t=sparse(data, torch.sparse_csr, True)),
        'stores': (data, data),
    }[kind]
    sampler = NeighborSampler(source, [3, 2], index_dtype=dtype, seed=0)
    expected = torch.int64 if kind == 'adj_t' else torch.int32
    assert sampler.graph[None].indices.dtype == (dtype or expected)
    assert sampler.graph[None].indptr.dtype == (dtype or expected)
    assert ends(sampler) == ends(NeighborSampler(data, [3, 2], seed=0))


def test_compressed_graphs_are_shared_not_copied():
    adj_t = sparse(simple_graph(), torch.sparse_csr, True)
    csc = NeighborSampler(Data(adj_t=adj_t), [1]).graph[None]
    assert csc.indptr.data_ptr() == adj_t.crow_indices().data_ptr()
    assert csc.indices.data_ptr() == adj_t.col_indices().data_ptr()


def test_edge_types_may_come_in_different_formats():
    data = graphs.heterogeneous()
    unique = data[FOLLOWS].edge_index.flip(0).unique(dim=1).flip(0)
    data[FOLLOWS].edge_index = unique
    del data[FOLLOWS].edge_attr
    inputs = graphs.nodes([1, 2, 3], 'user')
    sampler = NeighborSampler(data, [2, 2], seed=0)
    expected = sampler.sample_from_nodes(inputs)
    mixed = data.clone()
    del mixed[FOLLOWS].edge_index
    mixed[FOLLOWS].adj_t = torch.sparse_coo_tensor(
        unique.flip(0), torch.ones(unique.size(1)), (12, 12)
    ).to_sparse_csr()
    sampler = NeighborSampler(mixed, [2, 2], seed=0)
    out = sampler.sample_from_nodes(inputs)
    assert sampler.edge_permutation[FOLLOWS] is None
    assert sampler.edge_permutation[RATES] is not None
    assert fields_of(out) == fields_of(expected)


@pytest.mark.parametrize('layout', ['coo', 'csc', 'csr'])
@pytest.mark.parametrize('size', [True, False])
def test_stores_sample_as_data(layout, size):
    data = graphs.homogeneous()
    stores = graphs.as_stores(data, layout, size)
    sampler = NeighborSampler(stores, [3, 2], seed=0)
    assert sampler.data_type == DataType.remote
    assert sampler.num_nodes == 30
    out = sampler.sample_from_nodes(graphs.nodes([3, 5]))
    if layout == 'coo':
        assert_consistent(sampler, out, edge_lists(data))
    expected = NeighborSampler(
        data if layout != 'csr' else sorted_by(data, 0), [3, 2], seed=0
    ).sample_from_nodes(graphs.nodes([3, 5]))
    assert out.node.tolist() == expected.node.tolist()
    assert out.row.tolist() == expected.row.tolist()


@pytest.mark.parametrize('layout', ['coo', 'csc'])
def test_typed_stores_sample_as_data(layout):
    data = graphs.heterogeneous()
    del data['lone']
    sampler = NeighborSampler(graphs.as_stores(data, layout), [3, 2], seed=0)
    assert sampler.is_hetero
    assert sampler.node_types == data.node_types
    assert sampler.edge_types == data.edge_types
    inputs = graphs.nodes([3, 5], 'item')
    out = sampler.sample_from_nodes(inputs)
    expected = NeighborSampler(data, [3, 2], seed=0).sample_from_nodes(inputs)
    for t in data.edge_types:
        assert torch.equal(out.row[t], expected.row[t])
        assert torch.equal(out.col[t], expected.col[t])
    if layout == 'coo':
        assert_consistent(sampler, out, edge_lists(data))


def test_data_can_serve_as_stores():
    data = graphs.homogeneous()
    out = NeighborSampler((data, data), [3], seed=0).sample_from_nodes(
        graphs.nodes([3, 5])
    )
    expected = NeighborSampler(data, [3], seed=0).sample_from_nodes(
        graphs.nodes([3, 5])
    )
    assert torch.equal(out.node, expected.node)
    data = graphs.heterogeneous()
    inputs = graphs.nodes([3, 5], 'item')
    out = NeighborSampler((data, data), [3], seed=0).sample_from_nodes(inputs)
    expected = NeighborSampler(data, [3], seed=0).sample_from_nodes(inputs)
    assert torch.equal(out.node['user'], expected.node['user'])


@pytest.mark.parametrize('as_stores', [False, True])
@pytest.mark.parametrize('level', ['time', 'edge_time'])
def test_stores_give_times_and_weights(as_stores, level):
    """In PyG's stores a homogeneous graph's group may have any name."""
    data = graphs.homogeneous(
        time=torch.arange(30), edge_time=torch.arange(150) % 30
    )
    data.weight = torch.arange(150.0)
    stores = (data, data)
    if as_stores:
        stores = graphs.as_stores(data)
        for name in ('time', 'edge_time', 'weight'):
            stores[0].put_tensor(
                data[name], group_name='any', attr_name=name, index=None
            )
    inputs = graphs.nodes([25, 28], time=[15, 20])
    options = dict(time_attr=level, weight_attr='weight', seed=0)
    out = NeighborSampler(stores, [3], **options).sample_from_nodes(inputs)
    expected = NeighborSampler(data, [3], **options).sample_from_nodes(inputs)
    assert out.node.tolist() == expected.node.tolist()
    assert out.row.numel() > 0


def test_typed_stores_give_times_and_weights():
    data = graphs.heterogeneous()
    del data['lone']
    data['item'].time = torch.arange(15)
    data[RATES].weight = torch.arange(60) % 3
    stores = graphs.as_stores(data)
    for group, name in (('item', 'time'), (RATES, 'weight')):
        stores[0].put_tensor(
            data[group][name], group_name=group, attr_name=name, index=None
        )
    inputs = graphs.nodes([9, 14, 12], 'item')
    options = dict(time_attr='time', weight_attr='weight', seed=0)
    out = NeighborSampler(stores, [3, 2], **options).sample_from_nodes(inputs)
    expected = NeighborSampler(data, [3, 2], **options)
    expected = expected.sample_from_nodes(inputs)
    assert fields_of(out) == fields_of(expected)
    assert out.row[RATES].numel() > 0


def test_stores_know_the_number_of_nodes_or_say_so():
    features, graph = graphs.as_stores(graphs.homogeneous(), size=False)
    assert NeighborSampler((features, graph), [1]).num_nodes == 30
    features.store.clear()
    with pytest.raises(ValueError, match='number of nodes is unknown'):
        NeighborSampler((features, graph), [1])


def test_node_types_without_features_are_found_by_their_edges():
    data = graphs.heterogeneous()
    del data['lone']
    features, graph = graphs.as_stores(data)
    del features.store['tag', 'x']
    sampler = NeighborSampler((features, graph), [2])
    assert sampler.num_nodes['tag'] == 4


def test_isolated_nodes_at_the_end_are_nodes():
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=9)
    out = NeighborSampler(data, [1]).sample_from_nodes(graphs.nodes([8, 1]))
    assert out.node.tolist() == [8, 1, 0]
    hetero = HeteroData()
    hetero['a'].num_nodes = 3
    hetero['b'].num_nodes = 5
    hetero['a', 'to', 'b'].edge_index = torch.tensor([[2], [0]])
    out = NeighborSampler(hetero, [1]).sample_from_nodes(
        graphs.nodes([4, 0], 'b')
    )
    assert out.node['a'].tolist() == [2]
