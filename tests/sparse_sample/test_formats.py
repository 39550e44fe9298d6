"""Other formats, read and written."""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData

from tests.sparse_sample.cases import GRAPHS, case
from torch_gsample import CSC, SparseSample, ops

LAYOUTS = torch.sparse_coo, torch.sparse_csr, torch.sparse_csc
ROW, COL = torch.tensor([3, 0, 2, 2, 1]), torch.tensor([0, 1, 0, 2, 1])
WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.fixture(params=['csc', 'csr', 'coo'])
def c(request):
    return case('random', request.param)


def dense(m=4, n=4, value=WEIGHT):
    return torch.zeros(m, n).index_put((ROW, COL), value)


@pytest.mark.parametrize('layout', LAYOUTS)
@pytest.mark.filterwarnings('ignore:.*nvariant|.*beta')
def test_torch_sparse_there_and_back(c, layout):
    out = c.matrix.to_torch_sparse(layout)
    assert out.layout == layout
    assert torch.equal(out.to_dense(), c.place)
    assert torch.equal(SparseSample.from_data(out).to_dense(), c.place)
    ones = torch.ones(c.matrix.num_edges)
    back = SparseSample.from_data(out, value=ones)
    assert torch.equal(back.to_dense(), c.count.float())


@pytest.mark.parametrize('kind', ['tocsc', 'tocsr', 'tocoo'])
def test_scipy_there_and_back(c, kind):
    pytest.importorskip('scipy')
    out = c.matrix.to_scipy()
    assert torch.equal(torch.from_numpy(out.toarray()), c.place)
    back = SparseSample.from_data(getattr(out, kind)())
    assert torch.equal(back.to_dense(), c.place)


@pytest.mark.parametrize('graph', GRAPHS)
@pytest.mark.parametrize('layout', ['csc', 'csr'])
def test_compressed_there_and_back(graph, layout):
    c = case(graph, layout)
    m, n = c.matrix.shape
    c.assert_edges(SparseSample.from_csc(*c.matrix.to_csc(), m), c.place)
    c.assert_edges(SparseSample.from_csr(*c.matrix.to_csr(), n), c.place)


def test_data_with_an_edge_index():
    data = Data(edge_index=torch.stack([ROW, COL]), weight=WEIGHT, num_nodes=6)
    A = SparseSample.from_data(data, value='weight')
    assert torch.equal(A.to_dense()[:4, :4], dense())
    assert A.shape == (6, 6)
    assert torch.equal(A.value, WEIGHT[A.edge_id])
    assert SparseSample.from_data(data).value is None
    assert torch.equal(
        SparseSample.from_data(data, value=WEIGHT).value, A.value
    )


@pytest.mark.filterwarnings('ignore:.*nvariant|.*beta')
def test_data_with_a_transposed_adjacency():
    adj_t = dense().t().to_sparse_csr()
    A = SparseSample.from_data(Data(adj_t=adj_t, num_nodes=4))
    assert torch.equal(A.to_dense(), dense())


def test_relations_of_hetero_data():
    data = HeteroData()
    data['a'].num_nodes, data['b'].num_nodes = 5, 3
    data['a', 'to', 'b'].edge_index = torch.stack([ROW, COL])
    data['a', 'to', 'b'].weight = WEIGHT
    A = SparseSample.from_data(data, value='weight')
    assert torch.equal(A.to_dense(), dense(5, 3))
    data['b', 'rev', 'a'].edge_index = torch.stack([COL, ROW])
    A = SparseSample.from_data(data, ('b', 'rev', 'a'))
    assert A.shape == (3, 5)
    assert torch.equal(A.to_dense(), (dense(5, 3) > 0).float().t())
    with pytest.raises(ValueError, match="from_data: 'edge_type' must name"):
        SparseSample.from_data(data)


def test_edge_indices():
    index = torch.stack([ROW, COL])
    for size, shape in (((5, 3), (5, 3)), ((None, 3), (4, 4))):
        A = SparseSample.from_data(EdgeIndex(index, sparse_size=size))
        assert A.shape == shape
        assert torch.equal(A.edge_id.sort().values, torch.arange(5))
    A = SparseSample.from_data(index, value=WEIGHT)
    assert torch.equal(A.to_dense(), dense())
    A = SparseSample.from_edge_index(index, WEIGHT, (5, 3))
    assert torch.equal(A.to_dense(), dense(5, 3))
    assert SparseSample.from_edge_index(index, num_nodes=7).shape == (7, 7)


def test_csc_keeps_the_edges_of_its_permutation():
    indptr, indices, perm = ops.coo_to_csc(ROW, COL, 4, 4)
    graph = CSC(indptr, indices, 4, perm)
    A = SparseSample.from_data(graph)
    ends = torch.stack([ROW, COL])[:, A.edge_id]
    assert torch.equal(torch.stack(A.edges()), ends)


def test_a_matrix_is_itself(c):
    assert SparseSample.from_data(c.matrix) is c.matrix
    out = SparseSample.from_data(c.matrix, value=c.matrix.values() * 2)
    c.assert_edges(out, 2 * c.place)


def test_sampler_outputs_are_by_column_and_by_first_occurrence():
    """Of layers stored by row, with some empty columns."""
    row, col = torch.tensor([4, 1, 4, 0, 2]), torch.tensor([2, 2, 1, 1, 4])
    A = SparseSample.from_coo(col, row, shape=(5, 5)).T  # by row
    cols = torch.tensor([3, 2, 1])
    first = A.T[cols, :].T
    second = A[:, [4, 0]].T.T
    third = A[:, [2]]
    out = SparseSample.to_sampler_output([first, second, third])
    assert out.node.tolist() == [3, 2, 1, 4, 0]
    assert out.num_sampled_nodes == [3, 2, 0, 0]
    assert out.num_sampled_edges == [4, 1, 2]
    ends = out.node[torch.stack([out.row, out.col])]
    assert torch.equal(ends, torch.stack([row, col])[:, out.edge])
    for local in out.col.split(out.num_sampled_edges):
        assert torch.equal(local, local.sort().values)
    assert out.col[:4].tolist() == [1, 1, 2, 2]


def test_a_matrix_without_ids_has_all_columns_for_seeds():
    A = SparseSample.from_coo(ROW, COL, shape=(4, 6))
    out = SparseSample.to_sampler_output([A])
    assert out.node.tolist() == [0, 1, 2, 3, 4, 5]
    assert out.num_sampled_nodes == [6, 0]


def test_sampler_outputs_count_nodes_and_edges():
    A = SparseSample.from_coo(ROW, COL, WEIGHT)
    first = A[:, [0]]
    second = A[:, first.row()]
    out = SparseSample.to_sampler_output([first, second])
    assert out.node.tolist() == [0, 3, 2]
    assert out.num_sampled_nodes == [1, 2, 0]
    assert out.num_sampled_edges == [2, 1]
    assert torch.equal(out.node[out.row], ROW[out.edge])
    assert torch.equal(out.node[out.col], COL[out.edge])
    by_rows = SparseSample.to_sampler_output([first.T.T, second])
    assert torch.equal(by_rows.edge, out.edge)
    alone = SparseSample.to_sampler_output([], torch.tensor([4, 2]))
    assert alone.node.tolist() == [4, 2]
    assert alone.num_sampled_nodes == [2]
    assert alone.edge.numel() == 0


@pytest.mark.parametrize('transposed', [False, True])
def test_data_of_a_sample(transposed):
    A = SparseSample.from_coo(ROW, COL, WEIGHT)
    if transposed:
        A = SparseSample.from_coo(COL, ROW, WEIGHT).T
    by_edge = A.values()[A.edge_id.argsort()]
    for B, nodes in ((A[:, [2, 0]], [2, 0, 3]), (A, [0, 1, 2, 3])):
        out = B.to_data()
        assert out.n_id.tolist() == nodes
        assert out.num_nodes == len(nodes)
        row, col = out.n_id[out.edge_index]
        assert torch.equal(row, ROW[out.e_id])
        assert torch.equal(col, COL[out.e_id])
        assert torch.equal(out.edge_weight, by_edge[out.e_id])
        assert torch.equal(out.edge_weight, WEIGHT[out.e_id])
    assert 'edge_weight' not in A.with_value(None).to_data()


@pytest.mark.interop
def test_sparse_tensors_there_and_back(c):
    pytest.importorskip('torch_sparse')
    out = c.matrix.to_sparse_tensor()
    assert torch.equal(out.to_dense(), c.place.t())
    c.assert_edges(SparseSample.from_data(out), c.place)
    data = Data(adj_t=out, num_nodes=6)
    c.assert_edges(SparseSample.from_data(data), c.place)


@pytest.mark.parametrize('by_row', [False, True])
def test_blocks_have_columns_first_and_edges_with_their_values(
    fake_dgl, by_row
):
    A = SparseSample.from_coo(ROW, COL, WEIGHT)
    cols = torch.tensor([2, 3, 0])  # node 3 is a row, too
    by_source = SparseSample.from_coo(COL, ROW, WEIGHT)
    part = by_source[cols, :].T if by_row else A[:, cols]
    block = part.to_dgl(block=True)
    assert block.sizes == (3, 3)
    assert block.srcdata['nid'].tolist() == [2, 3, 0]
    assert block.dstdata['nid'].tolist() == [2, 3, 0]
    ends = torch.stack(
        [
            n[e]
            for n, e in zip(
                (block.srcdata['nid'], block.dstdata['nid']),
                block.edges,
                strict=True,
            )
        ]
    )
    edge = block.edata['eid']
    assert sorted(edge.tolist()) == [0, 2, 3]
    assert torch.equal(ends, torch.stack([ROW, COL])[:, edge])
    assert torch.equal(block.edata['w'], WEIGHT[edge])
    block = A[:, [0]].with_value(None).to_dgl(block=True)
    assert block.sizes == (3, 1)
    assert block.srcdata['nid'].tolist() == [0, 3, 2]
    assert block.dstdata['nid'].tolist() == [0]
    assert 'w' not in block.edata
    with pytest.raises(ValueError, match="to_dgl: 'seeds' must be distinct"):
        A[:, [0, 0]].to_dgl(block=True)


def test_graphs_of_dgl_are_square_and_keep_ids(fake_dgl):
    for A in (
        SparseSample.from_coo(ROW, COL, WEIGHT),
        SparseSample.from_coo(COL, ROW, WEIGHT).T,
    ):
        graph = A.to_dgl()
        edge = graph.edata['eid']
        assert graph.sizes[0] == 4
        assert torch.equal(
            torch.stack(graph.edges), torch.stack([ROW, COL])[:, edge]
        )
        assert torch.equal(graph.edata['w'], WEIGHT[edge])
    with pytest.raises(ValueError, match="to_dgl: without 'block', the matr"):
        A[:, [0]].to_dgl()


def test_dgl_graphs_and_blocks():
    dgl = pytest.importorskip('dgl')
    A = SparseSample.from_coo(ROW, COL, WEIGHT)
    graph = A.to_dgl()
    assert torch.equal(graph.edata['w'], WEIGHT[graph.edata[dgl.EID]])
    block = A[:, [2, 0]].to_dgl(block=True)
    assert block.num_dst_nodes() == 2
    edge = block.edata[dgl.EID]
    u, v = block.edges()
    assert torch.equal(block.srcdata[dgl.NID][u], ROW[edge])
    assert torch.equal(block.dstdata[dgl.NID][v], COL[edge])
