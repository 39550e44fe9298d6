"""Layers that take sparse matrices, as ``ToSparseTensor`` makes them."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from torch_geometric.transforms import ToSparseTensor

from torch_gsample import forget, fuse
from torch_gsample.vertex.kernels.matrices import edges_of_matrix

pytestmark = [
    pytest.mark.filterwarnings('ignore:Converting sparse tensor'),
    pytest.mark.filterwarnings('ignore:Sparse invariant checks'),
]
WIDTH = 8
LAYOUTS = {
    'csr': torch.sparse_csr,
    'coo': torch.sparse_coo,
    'torch-sparse': None,
}
_INTEROP = pytest.param('torch-sparse', marks=pytest.mark.interop)


class Weighted(MessagePassing):
    """A layer with weights, which are the values of a matrix."""

    def forward(self, x, edge_index, edge_weight=None):
        return self.propagate(edge_index, x=x, edge_weight=edge_weight)

    def message(self, x_i, x_j, edge_weight):
        out = (x_j - x_i).tanh()
        return out if edge_weight is None else out * edge_weight.view(-1, 1)


class Attributed(Weighted):
    """A layer with features of edges, which weights are not."""

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x, edge_attr=None)

    def message(self, x_i, x_j, edge_attr):
        assert edge_attr is None
        return (x_j - x_i).tanh()


#: Layers that compute at edges, and those that PyG multiplies.
LAYERS = {
    'GCN': lambda: pyg.GCNConv(WIDTH, 4),
    'GCN without loops': lambda: pyg.GCNConv(WIDTH, 4, add_self_loops=False),
    'improved GCN': lambda: pyg.GCNConv(WIDTH, 4, improved=True),
    'GCN without norms': lambda: pyg.GCNConv(WIDTH, 4, normalize=False),
    'cached GCN': lambda: pyg.GCNConv(WIDTH, 4, cached=True),
    'APPNP': lambda: pyg.APPNP(2, 0.1),
    'GAT': lambda: pyg.GATConv(WIDTH, 4, heads=2),
    'GAT with edges': lambda: pyg.GATConv(
        WIDTH, 4, edge_dim=1, add_self_loops=False
    ),
    'GATv2': lambda: pyg.GATv2Conv(WIDTH, 4, heads=2),
    'Transformer': lambda: pyg.TransformerConv(WIDTH, 4, heads=2),
    'SAGE': lambda: pyg.SAGEConv(WIDTH, 4),
    'GIN': lambda: pyg.GINConv(nn.Linear(WIDTH, 4)),
    'GraphConv': lambda: pyg.GraphConv(WIDTH, 4),
    'ResGated': lambda: pyg.ResGatedGraphConv(WIDTH, 4),
    'Edge': lambda: pyg.EdgeConv(nn.Linear(2 * WIDTH, 4)),
    'SuperGAT': lambda: pyg.SuperGATConv(WIDTH, 4),
    'FeaSt': lambda: pyg.FeaStConv(WIDTH, 4, 2),
    'weighted': Weighted,
    'attributed': Attributed,
}
MULTIPLIED = 'cached GCN', 'SAGE', 'GIN', 'GraphConv'


def matrix(layout, attr, loops, num_nodes=40):
    make = torch.Generator().manual_seed(1)
    edges = torch.randint(num_nodes, (2, 200), generator=make)
    edges = torch.unique(edges, dim=1)
    if not loops:
        edges = edges[:, edges[0] != edges[1]]
    data = Data(torch.randn(num_nodes, WIDTH, generator=make), edges)
    data.edge_weight = torch.rand(edges.shape[1], generator=make)
    transform = ToSparseTensor(
        attr='edge_weight' if attr else None, layout=LAYOUTS[layout]
    )
    return data.x, transform(data).adj_t


def results(layer, x, adj_t):
    x = x.clone().requires_grad_()
    layer.zero_grad()
    out = layer(x, adj_t)
    out.square().sum().backward()
    return [out, x.grad, *(p.grad for p in layer.parameters())]


def forbid_pyg(monkeypatch):
    """Makes messages of PyG fail, and its products of matrices."""

    def fail(*_, **__):
        raise AssertionError('PyG computes')

    monkeypatch.setattr(MessagePassing, '_index_select', fail)
    for part in (pyg.conv.gcn_conv, pyg.conv.appnp):
        monkeypatch.setattr(part, 'spmm', fail)


@pytest.mark.parametrize('loops', [False, True])
@pytest.mark.parametrize('attr', [False, True])
@pytest.mark.parametrize('layout', ['csr', 'coo', _INTEROP])
@pytest.mark.parametrize('name', LAYERS)
def test_results_are_those_of_pyg(name, layout, attr, loops, monkeypatch):
    torch.manual_seed(0)
    layer = LAYERS[name]().eval()
    x, adj_t = matrix(layout, attr, loops)
    want = results(copy.deepcopy(layer), x, adj_t)
    fusion = fuse(layer, min_nodes=0, verbose=False)
    for _ in range(2):
        for got, wanted in zip(results(layer, x, adj_t), want, strict=True):
            if wanted is None:
                assert got is None
            else:
                assert torch.allclose(got, wanted, atol=1e-5)
        if name not in MULTIPLIED:
            forbid_pyg(monkeypatch)
    if name == 'GraphConv':
        assert 'PyG multiplies its sparse matrix' in fusion.report()


@pytest.mark.interop
@pytest.mark.parametrize('conv', [pyg.GATConv, pyg.GATv2Conv])
def test_pyg_refuses_loops_with_features_of_edges(conv):
    layer = conv(WIDTH, 4, edge_dim=1)
    x, adj_t = matrix('torch-sparse', True, False)
    fuse(layer, min_nodes=0, verbose=False)
    with pytest.raises(NotImplementedError, match='not yet supported'):
        layer(x, adj_t)


def test_a_bipartite_matrix(monkeypatch):
    layer = pyg.GATConv((WIDTH, WIDTH), 4, add_self_loops=False)
    x, adj_t = matrix('csr', False, True)
    adj_t = adj_t.to_dense()[:25].to_sparse_csr()
    want = layer((x, x[:25]), adj_t)
    fuse(layer, min_nodes=0, verbose=False)
    forbid_pyg(monkeypatch)
    assert torch.allclose(layer((x, x[:25]), adj_t), want, atol=1e-6)


@pytest.mark.parametrize(
    ('layout', 'name'),
    [
        ('coo', 'weighted'),  # PyG's norms have no gradients there
        ('csr', 'weighted'),
        ('csr', 'GCN'),
        ('csr', 'APPNP'),
    ],
)
def test_gradients_of_values(layout, name):
    layer = LAYERS[name]()
    x, adj_t = matrix(layout, True, False)
    grads = []
    for _ in range(2):
        values = adj_t.values().clone().requires_grad_()
        if layout == 'coo':
            given = torch.sparse_coo_tensor(
                adj_t.indices(), values, adj_t.shape, is_coalesced=True
            )
        else:
            given = torch.sparse_csr_tensor(
                adj_t.crow_indices(), adj_t.col_indices(), values, adj_t.shape
            )
        layer(x, given).square().sum().backward()
        grads.append(values.grad)
        fuse(layer, min_nodes=0, verbose=False)
    assert torch.allclose(*grads, atol=1e-5)


def test_edges_are_kept_until_the_matrix_changes():
    _, adj_t = matrix('csr', True, True)
    edges, values = edges_of_matrix(adj_t)
    row, col = adj_t.to_dense().nonzero().t()
    assert edges.tolist() == [col.tolist(), row.tolist()]
    assert torch.equal(values, adj_t.values())
    assert edges_of_matrix(adj_t)[0] is edges
    adj_t.col_indices()[0] ^= 1
    changed, _ = edges_of_matrix(adj_t)
    assert changed is not edges
    assert changed[0, 0] == edges[0, 0] ^ 1
    forget()
    again, _ = edges_of_matrix(adj_t)
    assert again is not changed
    assert torch.equal(again, changed)


def test_other_matrices_are_left_to_pyg():
    x, adj_t = matrix('coo', True, True)
    assert edges_of_matrix(x) is None
    assert edges_of_matrix(adj_t.to_sparse_csc()) is None
    twice = torch.sparse_coo_tensor(
        adj_t.indices(), adj_t.values(), adj_t.shape
    )
    assert edges_of_matrix(twice) is None  # it may repeat an element


def test_inference_tensors_are_not_cached():
    x, _ = matrix('csr', True, True)
    layer = Weighted()
    with torch.inference_mode():
        _, adj_t = matrix('csr', True, True)
        want = layer(x, adj_t)
        fuse(layer, min_nodes=0, verbose=False)
        assert torch.allclose(layer(x, adj_t), want, atol=1e-6)
        assert edges_of_matrix(adj_t)[0] is not edges_of_matrix(adj_t)[0]
