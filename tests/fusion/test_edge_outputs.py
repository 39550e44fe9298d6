"""Values of edges that layers compute: attention weights, edge_updater."""

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import softmax

from tests.fusion.layers import EDGES, NODES, WIDTH, sample
from tests.fusion.models import batches, graph
from tests.fusion.test_exact import assert_same as same_on_blocks
from tests.fusion.test_exact import homogeneous, seeds
from tests.fusion.test_layers import assert_close, fused

#: Layers that return attention weights, and their arguments.
ATTENTION = {
    'GATConv': (
        lambda: pyg.GATConv(WIDTH, 4, 2, edge_dim=4),
        'x edge_index edge_attr',
    ),
    'GATv2Conv': (lambda: pyg.GATv2Conv(WIDTH, 4, 2), 'x edge_index'),
    'TransformerConv': (
        lambda: pyg.TransformerConv(WIDTH, 4, 2, edge_dim=4),
        'x edge_index edge_attr',
    ),
    'RGATConv': (
        lambda: pyg.RGATConv(WIDTH, 4, 3, heads=2),
        'x edge_index edge_type',
    ),
    'FAConv': (lambda: pyg.FAConv(WIDTH), 'x x_0 edge_index'),
}


class Updated(MessagePassing):
    """Attention by ``edge_updater``, with arguments of inconvenient names."""

    def __init__(self, **kwargs):
        super().__init__(aggr='sum', **kwargs)
        self.lin, self.att = nn.Linear(WIDTH, 2), nn.Linear(WIDTH, 2)

    def forward(self, x, edge_index, size=None):
        layer = self.edge_updater(edge_index, x=x, size=size)
        return self.propagate(edge_index, x=x, layer=layer, size=size), layer

    def edge_update(self, x_i, x_j, index, ptr, size_i):
        score = self.att(torch.tanh(x_i + x_j)) + self.lin(x_j)
        return softmax(score, index, ptr, size_i)

    def message(self, x_j, layer):
        return (x_j.unsqueeze(1) * layer.unsqueeze(-1)).flatten(1)


class Scored(Updated):
    """A layer with messages of edge features alone."""

    def message(self, layer):
        return layer


class Alone(Updated):
    def edge_update(self, x_j):
        return self.lin(x_j)


def made(name):
    """Returns a layer, its arguments and its leaves."""
    torch.manual_seed(7)
    make, names = ATTENTION[name]
    given = sample()
    leaves = [given['x'].requires_grad_(), given['edge_attr']]
    leaves[1].requires_grad_()
    return make().double(), [given[n] for n in names.split()], leaves


def floats(out):
    """Returns all features of a result, however deep."""
    if isinstance(out, torch.Tensor):
        return [out] if out.is_floating_point() else []
    return [x for part in out for x in floats(part)]


def assert_same(ours, theirs, call, leaves):
    """Compares results and gradients, of each result alone, too."""
    found, want = floats(call(ours)), floats(call(theirs))
    assert_close(found, want, 1e-10)
    weights = [torch.randn_like(x) for x in want]
    for chosen in ([1.0, 1.0], [0.0, 1.0]):
        grads = []
        for layer, results in ((ours, found), (theirs, want)):
            total = sum(
                (x * w * c).sum()
                for x, w, c in zip(results, weights, chosen, strict=True)
            )
            of = [*leaves, *layer.parameters()]
            grads.append(
                torch.autograd.grad(
                    total, of, retain_graph=True, allow_unused=True
                )
            )
        for x, y in zip(*grads, strict=True):
            x = torch.zeros_like(y) if x is None and y is not None else x
            y = torch.zeros_like(x) if y is None and x is not None else y
            assert_close([x], [y], 1e-9)


def methods(capture):
    """Returns what was fused."""
    return {key[0] for key, known in capture._known.items() if known}


@pytest.mark.parametrize('name', ATTENTION)
def test_attention_weights_come_from_the_kernel(name):
    theirs, args, leaves = made(name)
    ours, capture, _ = fused(theirs)
    assert_close([ours(*args)], [theirs(*args)], 1e-10)
    assert_same(
        ours.conv,
        theirs,
        lambda layer: layer(*args, return_attention_weights=True),
        leaves,
    )
    assert 'propagate' in methods(capture), capture.reason
    if 'GAT' in name and name != 'RGATConv':
        assert 'edge_updater' in methods(capture), capture.reason
    assert_close([ours(*args)], [theirs(*args)], 1e-10)
    assert getattr(ours.conv, '_alpha', None) is None


@pytest.mark.parametrize('kind', [Updated, Scored])
@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
def test_edge_updater_is_fused(flow, kind):
    torch.manual_seed(7)
    theirs, given = kind(flow=flow).double(), sample()
    ours, capture, _ = fused(theirs)
    x = given['x'].requires_grad_()
    edges = given['edge_index']
    size = NODES, NODES
    assert_same(ours.conv, theirs, lambda layer: layer(x, edges, size), [x])
    assert methods(capture) == {'edge_updater', 'propagate'}, capture.reason


def test_edge_updater_of_two_kinds_of_vertices():
    torch.manual_seed(7)
    theirs = Updated().double()
    ours, capture, _ = fused(theirs)
    x = torch.randn(NODES, WIDTH, dtype=torch.float64, requires_grad=True)
    y = torch.randn(11, WIDTH, dtype=torch.float64, requires_grad=True)
    edges = torch.stack(
        [torch.randint(NODES, (EDGES,)), torch.randint(9, (EDGES,))]
    )
    assert_same(
        ours.conv,
        theirs,
        lambda layer: layer((x, y), edges, size=(NODES, 11)),
        [x, y],
    )
    assert 'edge_updater' in methods(capture), capture.reason


@pytest.mark.parametrize('change', ['ends', 'hook'])
def test_edge_updater_that_is_left_to_pyg(change):
    torch.manual_seed(7)
    theirs, given = (Updated if change == 'hook' else Alone)().double(), None
    ours, capture, _ = fused(theirs)
    given = sample()
    if change == 'hook':
        for layer in (ours.conv, theirs):
            layer.register_edge_update_forward_hook(lambda *args: args[2] * 2)
    x, edges = given['x'], given['edge_index']
    found, want = ours(x, edges), theirs(x, edges)
    assert_close(found, want, 1e-10)
    assert torch.equal(found[1], want[1])
    assert 'edge_updater' not in methods(capture)
    assert 'propagate' in methods(capture), capture.reason


class Weighing(nn.Module):
    """The attention of the first layer scales the model's output."""

    def __init__(self):
        super().__init__()
        self.first = pyg.GATConv(WIDTH, 4, 2)
        self.second = pyg.GATConv(WIDTH, WIDTH)
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, edge_index):
        x, (_, weights) = self.first(
            self.lin(x), edge_index, return_attention_weights=True
        )
        return self.second(x, edge_index) * weights.square().sum()


@pytest.mark.usefixtures('double')
@pytest.mark.filterwarnings('error:fuse')
def test_layers_behind_attention_weights_run_on_blocks():
    torch.manual_seed(1)
    fusion = same_on_blocks(Weighing(), homogeneous, seeds, batches(graph()))
    report = fusion.report()
    assert 'first   GATConv: fused, whole batch' in report
    assert 'second  GATConv: fused, exact block, computes the seeds' in report
