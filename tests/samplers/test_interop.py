"""PyG's ``SparseTensor``; run by ``make test-interop``."""

import pytest
import torch
from torch_geometric import sampler as pyg
from torch_geometric.data import Data

from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader

pytestmark = pytest.mark.interop
torch_sparse = pytest.importorskip('torch_sparse')


def simple_graph():
    """No parallel edges; columns in ascending order."""
    index = graphs.homogeneous().edge_index.flip(0).unique(dim=1).flip(0)
    return Data(edge_index=index, num_nodes=30, x=torch.arange(30))


def adjacency(data, transposed):
    row, col = data.edge_index.flip(0) if transposed else data.edge_index
    return torch_sparse.SparseTensor(
        row=row,
        col=col,
        value=torch.arange(row.numel()),
        sparse_sizes=(30, 30),
    )


@pytest.mark.parametrize('key', ['adj', 'adj_t'])
@pytest.mark.parametrize('direction', ['forward', 'backward'])
def test_a_sparse_tensor_samples_as_an_edge_list(key, direction):
    data = simple_graph()
    if direction == 'backward':
        data.edge_index = data.edge_index.unique(dim=1)
    options = dict(seed=0, sample_direction=direction)
    expected = NeighborSampler(data, [3, 2], **options).sample_from_nodes(
        graphs.nodes([3, 5])
    )
    adj = adjacency(data, key == 'adj_t')
    sampler = NeighborSampler(Data(**{key: adj}), [3, 2], **options)
    out = sampler.sample_from_nodes(graphs.nodes([3, 5]))
    assert torch.equal(out.node, expected.node)
    assert torch.equal(out.row, expected.row)
    # Edge ids are positions in the adjacency's own order, that of its rows.
    assert sampler.edge_permutation is None
    ends = torch.stack([out.node[out.row], out.node[out.col]])
    number = adj.storage.value()[out.edge]
    assert torch.equal(data.edge_index[:, number], ends)


def test_a_loader_filters_a_sparse_tensor():
    data = simple_graph()
    adj_t = adjacency(data, transposed=True)
    loader = NeighborLoader(
        Data(adj_t=adj_t, x=data.x), [3, 2], batch_size=5, seed=0
    )
    for batch in loader:
        col, row, value = batch.adj_t.coo()
        ends = torch.stack([batch.n_id[row], batch.n_id[col]])
        assert torch.equal(data.edge_index[:, value], ends)
        assert torch.equal(batch.x, batch.n_id)


def sorted_graph(typed):
    """PyG's sort of edges is not stable: here it has nothing to do."""
    data = graphs.heterogeneous() if typed else graphs.homogeneous()
    for store in data.edge_stores:
        order = store.edge_index[1].argsort(stable=True)
        store.edge_index = store.edge_index[:, order]
    return data


def same_edges(out, expected, sampler, other):
    """The same nodes, ends and original edges, in the same order."""
    for own, theirs in zip(
        tensors(out, sampler), tensors(expected, other), strict=True
    ):
        assert own.keys() == theirs.keys()
        for t in own:
            assert own[t].tolist() == theirs[t].tolist()


def tensors(out, sampler):
    hetero = isinstance(out.node, dict)
    perm = sampler.edge_permutation
    edge = out.edge if hetero else {None: out.edge}
    perm = perm if hetero else {None: perm}
    yield out.node if hetero else {None: out.node}
    yield out.row if hetero else {None: out.row}
    yield out.col if hetero else {None: out.col}
    yield {t: e if perm[t] is None else perm[t][e] for t, e in edge.items()}


@pytest.mark.parametrize(
    ('typed', 'subgraph_type'),
    [(False, 'directional'), (False, 'bidirectional'), (True, 'directional')],
)
def test_whole_neighbourhoods_are_those_of_pyg(typed, subgraph_type):
    """With pyg-lib or torch-sparse, which differ for typed graphs."""
    if typed:
        pytest.importorskip('pyg_lib')
    data = sorted_graph(typed)
    options = dict(is_sorted=True, subgraph_type=subgraph_type)
    sampler = NeighborSampler(data, [-1, -1], **options)
    other = pyg.NeighborSampler(data, [-1, -1], **options)
    inputs = graphs.nodes([3, 5, 7], 'item' if typed else None)
    same_edges(
        sampler.sample_from_nodes(inputs),
        other.sample_from_nodes(inputs),
        sampler,
        other,
    )
    edge_type = graphs.RATES if typed else None
    inputs = graphs.links([(3, 5), (2, 2), (3, 5)], edge_type, label=[1, 2, 3])
    out = sampler.sample_from_edges(inputs)
    expected = other.sample_from_edges(inputs)
    same_edges(out, expected, sampler, other)
    assert torch.equal(out.metadata[1], expected.metadata[1])
    assert torch.equal(out.metadata[2], expected.metadata[2])


@pytest.mark.parametrize('typed', [False, True])
@pytest.mark.parametrize('temporal', [False, True])
def test_disjoint_neighbourhoods_are_those_of_pyg_lib(typed, temporal):
    pytest.importorskip('pyg_lib')
    data = sorted_graph(typed)
    for store in data.node_stores:
        store.time = torch.arange(store.num_nodes)
    options = dict(time_attr='time' if temporal else None, disjoint=True)
    options['is_sorted'] = not temporal
    sampler = NeighborSampler(data, [-1, -1], **options)
    other = pyg.NeighborSampler(data, [-1, -1], **options)
    inputs = graphs.nodes([3, 5, 7], 'item' if typed else None, [7, 7, 9])
    if not temporal:
        inputs.time = None
    out = sampler.sample_from_nodes(inputs)
    expected = other.sample_from_nodes(inputs)
    same_edges(out, expected, sampler, other)
    assert out.num_sampled_nodes == expected.num_sampled_nodes
    assert out.num_sampled_edges == expected.num_sampled_edges
    for own, theirs in ((out.batch, expected.batch),):
        own = own if typed else {None: own}
        theirs = theirs if typed else {None: theirs}
        assert {t: b.tolist() for t, b in own.items()} == {
            t: b.tolist() for t, b in theirs.items()
        }
