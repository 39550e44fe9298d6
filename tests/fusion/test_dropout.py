"""Layers of PyG with dropout in training, against the same draws in loops."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import nn as pyg

from tests.fusion.layers import METADATA, WIDTH, sample, typed_sample
from tests.fusion.test_layers import assert_same, fused
from tests.vertex.dropout import factors, key_of

W = WIDTH
EDGES = 'x edge_index edge_attr'
TYPES = 'x edge_index edge_type edge_attr'
LAYERS = {
    'GAT': (
        lambda: pyg.GATConv(W, 4, heads=2, edge_dim=4, dropout=0.3),
        EDGES,
    ),
    'GATv2': (
        lambda: pyg.GATv2Conv(W, 4, heads=2, edge_dim=4, dropout=0.3),
        EDGES,
    ),
    'Transformer': (
        lambda: pyg.TransformerConv(W, 4, heads=2, edge_dim=4, dropout=0.3),
        EDGES,
    ),
    'RGAT': (
        lambda: pyg.RGATConv(W, 4, 3, heads=2, edge_dim=4, dropout=0.3),
        TYPES,
    ),
    'SuperGAT': (
        lambda: pyg.SuperGATConv(W, 4, heads=2, dropout=0.3),
        'x edge_index',
    ),
    'FA': (lambda: pyg.FAConv(W, dropout=0.3), 'x x_0 edge_index'),
    'HEAT': (
        lambda: pyg.HEATConv(W, 4, 2, 3, 5, 4, 5, heads=2, dropout=0.3),
        'x edge_index node_type edge_type edge_attr',
    ),
}


class Own(pyg.MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


class Sources(Own):
    """Each edge draws for itself, whatever it drops."""

    def message(self, x_j):
        return F.dropout(x_j, 0.4, self.training)


class Ends(Own):
    def __init__(self):
        super().__init__('max')
        self.drop = nn.Dropout(0.4)

    def message(self, x_i, x_j):
        return self.drop(x_i) + 2 * self.drop(x_j)


class Behind(Own):
    """What torch drops behind the kernel is not drawn in it."""

    def message(self, x_j):
        return x_j.exp()

    def update(self, out):
        return F.dropout(out, 0.4, self.training)


class In(Own):
    def message(self, x_j):
        return F.dropout(x_j * 2, 0.4, self.training, inplace=True)


OWN = {'sources': Sources, 'ends': Ends, 'in place': In}


def arguments(name):
    given = sample()
    # Loops have rows of their own in our layers of attention.
    row, col = given['edge_index']
    for key in ('x', 'edge_attr', 'x_0'):
        given[key].requires_grad_()
    if name in ('GAT', 'GATv2', 'SuperGAT', 'FA'):
        given['edge_index'] = torch.stack([row, (col + (row == col)) % 40])
    return given


@pytest.fixture
def same_draws(monkeypatch):
    """Layers of PyG draw what kernels do."""

    def reset(seed):
        key, calls = key_of(seed), []

        def dropout(x, p=0.5, training=True, inplace=False):
            if not training or p == 0:
                return x
            calls.append(1)
            return x * factors(key, len(calls) - 1, x.shape, p, x.dtype)

        monkeypatch.setattr(F, 'dropout', dropout)

    yield reset
    monkeypatch.undo()


def values(layer, args, seed=0):
    torch.manual_seed(seed)
    out = layer(*args)
    torch.manual_seed(1)
    weight = torch.randn(out.shape, dtype=out.dtype)
    given = [x for x in args if x.requires_grad]
    wanted = [*given, *(p for p in layer.parameters() if p.requires_grad)]
    loss = (out * weight).sum()
    return [out, *torch.autograd.grad(loss, wanted, allow_unused=True)]


@pytest.mark.parametrize('name', [*LAYERS, *OWN])
def test_layers_in_training(name, same_draws):
    torch.manual_seed(7)
    make, names = LAYERS.get(name, (OWN.get(name), 'x edge_index'))
    theirs, given = make().double(), arguments(name)
    args = [given[n] for n in names.split()]
    ours, capture, fusion = fused(theirs)
    found = values(ours, args)
    same_draws(0)
    want = values(theirs, args)
    for x, y in zip(found, want, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-9)
    assert not torch.equal(found[0], ours.eval()(*args))
    assert_same(ours, theirs.eval(), args)
    assert capture.is_fused or name in ('GAT', 'GATv2'), capture.reason
    assert '1 of 1 layers fused' in fusion.report()


def test_dropout_behind_the_kernel_is_that_of_torch():
    theirs, given = Behind(), arguments('')
    args = given['x'], given['edge_index']
    ours, capture, _ = fused(theirs)
    for x, y in zip(values(ours, args), values(theirs, args), strict=True):
        torch.testing.assert_close(x, y)
    assert capture.is_fused, capture.reason


def test_layers_of_types_in_training():
    layer = pyg.HANConv(W, 8, METADATA, heads=2, dropout=0.3).double()
    x, edges = typed_sample()
    ours, capture, _ = fused(layer)
    torch.manual_seed(0)
    first, second, third = (
        ours(x, edges)['a']
        for seed in (0, 0, 1)
        if torch.manual_seed(seed) is not None
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, third)
    assert capture.is_fused, capture.reason


def test_alpha_dropout_is_drawn_in_the_kernel():
    class Alpha(Own):
        def message(self, x_j):
            return F.alpha_dropout(x_j, 0.4, self.training)

    ours, capture, _ = fused(Alpha())
    x = torch.randn(4000, 1)
    own = torch.arange(4000).expand(2, -1)
    torch.manual_seed(0)
    out = ours(x, own)
    kept = out.sub(out.mode(0)[0]).abs() > 1e-6
    assert abs(kept.double().mean() - 0.6) < 0.03
    assert capture.is_fused, capture.reason


def test_other_random_numbers_are_those_of_pyg():
    class Noise(Own):
        def message(self, x_j):
            return x_j + torch.rand_like(x_j)

    theirs, given = Noise(), arguments('')
    args = given['x'], given['edge_index']
    ours, capture, _ = fused(theirs)
    torch.manual_seed(0)
    out = ours(*args)
    torch.manual_seed(0)
    assert torch.equal(out, theirs(*args))
    assert 'torch.rand_like is random' in capture.reason


class Native(Own):
    """The functions that a GPU calls."""

    def message(self, x_j):
        kept, _ = torch.native_dropout(x_j, 0.4, self.training)
        return kept.exp()

    def update(self, out):
        return torch.native_dropout(out, 1.0, self.training)[0] + out


def test_the_dropout_of_a_gpu_is_captured():
    theirs, given = Native(), arguments('')
    args = given['x'], given['edge_index']
    ours, capture, _ = fused(theirs)
    out = values(ours, args)[0]
    row, col = given['edge_index']
    keep = factors(key_of(0), 0, (row.numel(), W), 0.4)
    want = torch.zeros_like(out).index_add(
        0, col, (given['x'][row] * keep).exp()
    )
    torch.testing.assert_close(out, want)
    assert capture.is_fused, capture.reason
    assert_same(ours.eval(), theirs.eval(), args)


def test_random_numbers_of_a_changed_tensor_are_not_captured():
    class Fills(Own):
        def message(self, x_j):
            return (x_j * 1.0).bernoulli_(0.5)

    ours, capture, _ = fused(Fills())
    given = sample()
    ours(given['x'], given['edge_index'])
    assert 'torch.bernoulli_ is random' in capture.reason
