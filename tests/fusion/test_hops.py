"""Blocks of layers that normalise by degrees, and that read several hops."""

import copy
import threading

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from tests.fusion.models import WIDTH, Hand, batches, graph, typed_graph
from tests.fusion.test_exact import (
    assert_same,
    homogeneous,
    seeds,
    unmarked,
)
from torch_gsample import fuse
from torch_gsample.fusion.hops import Hops
from torch_gsample.fusion.rows import plain

W = WIDTH


@pytest.fixture(autouse=True)
def _double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    yield
    torch.set_default_dtype(before)


def looped(**kwargs):
    """Batches with self-loops, of which some nodes have two."""
    data = graph()
    own = torch.arange(0, 300, 2).repeat(2)
    data.edge_index[:, : own.numel()] = own
    return batches(data, **kwargs)


class Stack(nn.Module):
    """Two layers that take more than features and edges."""

    def __init__(self, make, call):
        super().__init__()
        self.first, self.last = nn.Linear(W, W), nn.Linear(W, W)
        self.convs = nn.ModuleList(make() for _ in range(2))
        self.call = call

    def forward(self, x, edge_index):
        make = torch.Generator().manual_seed(5)
        edges = torch.rand(edge_index.shape[1], 4, generator=make)
        x = x_0 = self.first(x)
        for conv in self.convs:
            x = self.call(conv, x, x_0, edge_index, edges).tanh()
        return self.last(x)


def alone(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index)


def weighted(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index, edges[:, 0] + 0.1)


def resting(conv, x, x_0, edge_index, edges):
    return conv(x, x_0, edge_index)


def featured(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index, edges)


class Own(pyg.MessagePassing):
    """A layer of a user that normalises, and reads the weights twice."""

    def __init__(self):
        super().__init__('sum')
        self.lin = nn.Linear(W, W)

    def forward(self, x, edge_index):
        edge_index, weight = norm(edge_index, num_nodes=len(x), improved=True)
        out = self.propagate(edge_index, x=(x, x), weight=weight.square())
        return self.lin(out + x[: len(out)])

    def message(self, x_i, x_j, weight):
        return (x_i - x_j) * weight.view(-1, 1)


norm = gcn_norm  # by another name
NORMALISING = {
    'LGConv': (pyg.LGConv, alone),
    'LGConv weighted': (pyg.LGConv, weighted),
    'GCN2Conv': (lambda: pyg.GCN2Conv(W, 0.1), resting),
    'GCN2Conv, two matrices': (
        lambda: pyg.GCN2Conv(W, 0.1, 0.5, 2, shared_weights=False),
        resting,
    ),
    'FAConv': (lambda: pyg.FAConv(W), resting),
    'PDNConv': (lambda: pyg.PDNConv(W, W, 4, 8), featured),
    'EGConv': (
        lambda: pyg.EGConv(W, W, ['sum', 'symnorm', 'max'], 4, 2),
        alone,
    ),
    'EGConv of one': (lambda: pyg.EGConv(W, W, ['symnorm'], 4, 2), alone),
    'ARMAConv of one': (lambda: pyg.ARMAConv(W, W, 3, 1), alone),
    'of a user': (Own, alone),
}
SEVERAL = {
    'SGConv': (lambda: pyg.SGConv(W, W, 2), alone),
    'SGConv weighted': (lambda: pyg.SGConv(W, W, 2), weighted),
    'SSGConv': (lambda: pyg.SSGConv(W, W, 0.1, 2), alone),
    'TAGConv': (lambda: pyg.TAGConv(W, W, 2), alone),
    'TAGConv without a norm': (
        lambda: pyg.TAGConv(W, W, 2, normalize=False),
        weighted,
    ),
    'APPNP': (lambda: pyg.APPNP(2, 0.1), alone),
    'APPNP weighted': (lambda: pyg.APPNP(2, 0.1), weighted),
    'APPNP with dropout': (lambda: pyg.APPNP(2, 0.1, dropout=0.5), alone),
    'MixHopConv': (lambda: pyg.MixHopConv(W, W // 2, [0, 2]), alone),
    'ARMAConv': (lambda: pyg.ARMAConv(W, W, 3, 2), alone),
    'GatedGraphConv': (lambda: pyg.GatedGraphConv(W, 2), alone),
}


@pytest.mark.parametrize('case', NORMALISING)
@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_degrees_of_a_block_are_those_of_the_batch(case, make):
    report = assert_same(
        Stack(*NORMALISING[case]), homogeneous, seeds, make()
    ).report()
    assert report.count('exact block, computes') == 2
    assert 'the seeds' in report
    assert 'the nodes of 1 hop' in report


@pytest.mark.parametrize('case', SEVERAL)
@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_layers_of_two_hops_compute_blocks(case, make):
    report = assert_same(
        Stack(*SEVERAL[case]), homogeneous, seeds, make()
    ).report()
    assert report.count('exact block of 2 hops, computes') == 2
    assert 'the seeds' in report
    assert 'the nodes of 2 hops' in report
