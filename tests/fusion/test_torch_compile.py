"""Fused models and layers in functions that torch compiles or traces."""

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from tests.fusion.models import Hand, batches, graph
from torch_gsample import fuse


def changed(edges):
    edges[0, :1] += 0  # so its blocks are unknown
    return edges


CALLS = {
    'model': lambda model: model,
    'named': lambda model: lambda x, edges: model(x, edge_index=edges),
    'step': lambda model: lambda x, edges: model(x, edges)[:8] + 1,
    'layer': lambda model: model.convs[0],
}


@pytest.fixture(autouse=True)
def _forget_compiled():
    torch.compiler.reset()


@pytest.fixture(scope='module')
def batch():
    return batches(graph(torch.float32), count=1)[0]


@pytest.mark.parametrize('change', [lambda edges: edges, changed])
@pytest.mark.parametrize('name', CALLS)
def test_edges_of_a_batch_are_compiled_as_plain_ones(batch, name, change):
    model = Hand(conv=GATConv)
    want = CALLS[name](model)(batch.x, batch.edge_index.plain)
    fuse(model, min_nodes=0, verbose=False)
    compiled = torch.compile(CALLS[name](model), backend='aot_eager')
    edges = change(batch.edge_index.clone())
    with pytest.warns(UserWarning, match='not on blocks: it is compiled'):
        out = compiled(batch.x, edges)
    assert type(out) is torch.Tensor
    assert torch.allclose(out, want, atol=1e-6)
    again = CALLS[name](model)(batch.x, edges)  # uncompiled
    assert torch.allclose(again[:8], want[:8], atol=1e-6)


def test_whole_graphs_are_compiled_without_breaks(batch):
    model = Hand(conv=GATConv)
    edges = batch.edge_index.plain
    want = model(batch.x, edges)
    fuse(model, min_nodes=0, verbose=False)
    compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
    assert torch.allclose(compiled(batch.x, edges), want, atol=1e-6)


@pytest.mark.filterwarnings('ignore:.torch.jit', 'ignore:Converting a tensor')
@pytest.mark.parametrize('conv', [GATConv, GCNConv, SAGEConv])
def test_traced_models_are_those_of_pyg(batch, conv):
    model = Hand(conv=conv)
    x, edges = batch.x, batch.edge_index.plain
    want = model(x, edges)
    fuse(model, min_nodes=0, verbose=False)
    traced = torch.jit.trace(model, (x[:40], edges[:, :9] % 40))
    assert torch.allclose(traced(x, edges), want, atol=1e-6)
