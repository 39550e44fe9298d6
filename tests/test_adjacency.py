"""Edges in the formats of other libraries are read in one place."""

from types import SimpleNamespace

import pytest
import scipy.sparse
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData

from torch_gsample import CSC, Graph, SparseSample, as_graph
from torch_gsample.adjacency import read_adjacency

EDGES = torch.tensor([[3, 1, 2, 0, 3], [0, 0, 1, 3, 3]])
SHAPE = 4, 5
DENSE = torch.zeros(SHAPE)
DENSE[EDGES[0], EDGES[1]] = torch.arange(1.0, 6)


def sparse_tensor():
    """What torch-sparse has of a matrix."""
    csr = DENSE.to_sparse_csr()
    parts = csr.crow_indices(), csr.col_indices(), csr.values()
    return SimpleNamespace(csr=lambda: parts, sparse_sizes=lambda: SHAPE)


MATRICES = {
    'coo': DENSE.to_sparse(),
    'csr': DENSE.to_sparse_csr(),
    'csc': DENSE.to_sparse_csc(),
    'scipy csr': scipy.sparse.csr_matrix(DENSE.numpy()),
    'scipy coo': scipy.sparse.coo_matrix(DENSE.numpy()),
    'SparseTensor': sparse_tensor(),
}


@pytest.mark.parametrize('transposed', [False, True])
@pytest.mark.parametrize('source', MATRICES.values(), ids=MATRICES)
def test_each_matrix_has_its_edges_values_and_columns(source, transposed):
    dense = DENSE.t() if transposed else DENSE
    edges = read_adjacency('f', 'x', source, transposed=transposed)
    assert edges.shape == tuple(dense.shape)
    row, col = edges.edge_index()
    assert torch.equal(dense[row, col], edges.value)
    assert len(row) == 5
    csc = edges.cpu().csc(*dense.shape, index_dtype=torch.int32)
    assert csc.indices.dtype == csc.indptr.dtype == torch.int32
    assert torch.equal(
        dense[csc.indices, csc.col()], csc.in_columns(edges.value)
    )
    assert csc.checked


def test_a_sparse_tensor_is_transposed_if_nothing_else_is_said():
    assert read_adjacency('f', 'x', sparse_tensor()).shape == (5, 4)
    assert read_adjacency('f', 'x', MATRICES['csr']).shape == SHAPE


def test_edge_lists_keep_their_order():
    edges = read_adjacency('f', 'x', EDGES)
    assert (edges.layout, edges.shape) == ('coo', None)
    assert torch.equal(edges.edge_index(), EDGES)
    index = EdgeIndex(EDGES, sparse_size=SHAPE, sort_order='col')
    edges = read_adjacency('f', 'x', index)
    assert edges.shape == SHAPE
    assert type(edges.row) is torch.Tensor
    assert edges.csc(*SHAPE).edge_id is None
    assert not edges.transpose().is_sorted
    columns = CSC.from_coo(*EDGES, *SHAPE)
    assert read_adjacency('f', 'x', columns).csc(*SHAPE).edge_id is not None


SQUARE = torch.zeros(5, 5)
SQUARE[:4] = DENSE
HETERO = HeteroData()
HETERO['a'].num_nodes = 5
HETERO['a', 'to', 'a'].edge_index = EDGES
GRAPHS = {
    'edge_index': EDGES,
    'EdgeIndex': EdgeIndex(EDGES, sparse_size=(5, 5)),
    'matrix': SQUARE.to_sparse_csr(),
    'scipy': scipy.sparse.csc_matrix(SQUARE.numpy()),
    'CSC': CSC.from_coo(*EDGES, 5, 5),
    'SparseSample': SparseSample.from_coo(*EDGES, shape=(5, 5)).T.T,
    'by row': SparseSample.from_coo(*EDGES.flip(0), shape=(5, 5)).T,
    'Graph': Graph.from_edge_index(EDGES),
    'Data': Data(edge_index=EDGES, num_nodes=5),
    'adj_t': Data(adj_t=SQUARE.t().to_sparse_csr()),
    'HeteroData': HETERO,
}


@pytest.mark.parametrize('source', GRAPHS.values(), ids=GRAPHS)
def test_a_graph_is_made_of_each_format(source):
    graph = as_graph(source)
    (csc,) = graph.columns
    assert graph.num_nodes == (len(csc.indptr) - 1,)
    order = EDGES[:, EDGES[1].argsort(stable=True)]
    found = torch.stack([csc.indices.long(), csc.col().long()])
    assert torch.equal(found.unique(dim=1), order.unique(dim=1))
    assert graph.is_hetero == isinstance(source, HeteroData)
    if csc.edge_id is not None and isinstance(source, SparseSample):
        row, col = csc.indices.long(), csc.col().long()
        ends = torch.stack([row, col])
        assert torch.equal(EDGES[:, csc.edge_id], ends)


def test_a_graph_is_its_own_and_of_another_dtype():
    graph = as_graph(EDGES, index_dtype=torch.int64)
    assert graph[None].indices.dtype == torch.int64
    by_column = EDGES[:, EDGES[1].argsort(stable=True)]
    assert as_graph(by_column, is_sorted=True)[None].edge_id is None


@pytest.mark.parametrize(
    ('source', 'error', 'text'),
    [
        (
            3,
            TypeError,
            r"f: 'x' must be an edge_index, .* SparseSample \(got int\)",
        ),
        (EDGES[0], ValueError, r"f: 'x' must have shape \[2, num_edges\]"),
        (EDGES[:, 0], ValueError, r"f: 'x' must have shape \[2, num_edges\]"),
        (EDGES.float(), TypeError, "f: 'x' must be int32 or int64"),
        (
            DENSE[:, :4].to_sparse_bsr((2, 2)),
            TypeError,
            r'f: a torch.sparse tensor must be COO, CSR or CSC \(got torch',
        ),
    ],
)
def test_rejects_objects_that_are_not_graphs(source, error, text):
    with pytest.raises(error, match=text):
        read_adjacency('f', 'x', source)
