"""Layers whose ``update`` returns several results, of vertices and edges."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter

from tests.fusion.layers import EDGES, NODES, WIDTH, sample
from tests.fusion.models import batches, graph
from tests.fusion.test_exact import assert_same as same_on_blocks
from tests.fusion.test_exact import homogeneous, seeds
from tests.fusion.test_layers import assert_close, fused

W = WIDTH


class Equivariant(MessagePassing):
    """Features and positions from one message, as in EGNN."""

    def __init__(self, kind=tuple):
        super().__init__(aggr='mean')
        self.edge = nn.Sequential(nn.Linear(2 * W + 1, W), nn.SiLU())
        self.move, self.kind = nn.Linear(W, 1), kind

    def forward(self, x, pos, edge_index):
        out, shift = self.propagate(edge_index, x=x, pos=pos)
        return x + out, pos + shift

    def message(self, x_i, x_j, pos_i, pos_j):
        shift = pos_i - pos_j
        far = shift.square().sum(-1, keepdim=True)
        out = self.edge(torch.cat([x_i, x_j, far], -1))
        return torch.cat([out, shift * self.move(out)], -1)

    def update(self, out):
        return self.kind([out[:, :W], out[:, W:]])


class Gated(MessagePassing):
    """GatedGCN as in GraphGPS: features of edges are a result, too."""

    def __init__(self):
        super().__init__(aggr='sum')
        self.lins = nn.ModuleList(nn.Linear(W, W) for _ in range(4))
        self.lin_edge = nn.Linear(4, W)

    def forward(self, x, edge_attr, edge_index):
        a, b, c, d = (lin(x) for lin in self.lins)
        e = self.lin_edge(edge_attr)
        return self.propagate(edge_index, Bx=b, Cx=c, Dx=d, e=e, Ax=a)

    def message(self, Cx_i, Dx_j, e):
        self.e = Cx_i + Dx_j + e
        return torch.sigmoid(self.e)

    def aggregate(self, inputs, index, Bx_j, Bx):
        num_nodes = Bx.shape[0]
        total = scatter(inputs * Bx_j, index, 0, num_nodes, reduce='sum')
        weight = scatter(inputs, index, 0, num_nodes, reduce='sum')
        return total / (weight + 1e-6)

    def update(self, inputs, Ax):
        e = self.e
        del self.e
        return Ax + inputs, e


class Stack(nn.Module):
    """Two layers, of which the second returns one of its results."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Gated(), Gated()
        self.lin = nn.Linear(W, 4)

    def forward(self, x, edge_index):
        e = x.new_ones(edge_index.shape[1], 4)
        x, e = self.first(x, e, edge_index)
        return self.second(x.relu(), self.lin(e), edge_index)[0]


LAYERS = {'Equivariant': (Equivariant, 'pos'), 'Gated': (Gated, 'edge_attr')}


def compared(name, nodes=NODES, edges=EDGES):
    """Compares a call, and gradients of each result; returns the capture."""
    torch.manual_seed(7)
    make, other = LAYERS[name]
    theirs, given = make().double(), sample()
    x = torch.randn(nodes, W, dtype=torch.float64, requires_grad=True)
    given = {'pos': given['pos'][:nodes], 'edge_attr': given['edge_attr']}
    second = given[other][: edges if other == 'edge_attr' else nodes]
    second = second.clone().requires_grad_()
    edge_index = torch.randint(nodes, (2, edges))
    ours, capture, _ = fused(theirs)
    found, wanted = (f(x, second, edge_index) for f in (ours.conv, theirs))
    assert_close(found, wanted, 1e-10)
    for place, want in enumerate(wanted):
        weight = torch.randn_like(want)
        grads = [
            torch.autograd.grad(
                (out[place] * weight).sum(),
                [x, second, *layer.parameters()],
                retain_graph=True,
                materialize_grads=True,
                allow_unused=True,
            )
            for out, layer in ((found, ours), (wanted, theirs))
        ]
        assert_close(*grads, 1e-9)
    return capture


@pytest.mark.parametrize('name', LAYERS)
def test_all_results_and_their_gradients_are_fused(name):
    capture = compared(name)
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize(('nodes', 'edges'), [(12, 12), (W, 30), (4, 30)])
@pytest.mark.parametrize('name', LAYERS)
def test_as_many_vertices_as_edges_or_features(name, nodes, edges):
    compared(name, nodes, edges)


def test_the_kind_of_the_results_is_kept():
    theirs, given = Equivariant(list).double(), sample()
    ours, capture, _ = fused(theirs)
    found = ours.conv.propagate(
        given['edge_index'], x=given['x'], pos=given['pos']
    )
    assert capture.is_fused, capture.reason
    assert type(found) is list


@pytest.mark.usefixtures('double')
@pytest.mark.filterwarnings('error:fuse')
def test_they_run_on_whole_batches():
    fusion = same_on_blocks(Stack(), homogeneous, seeds, batches(graph()))
    report = fusion.report()
    assert report.count('messages fused, whole batch') == 2, report
