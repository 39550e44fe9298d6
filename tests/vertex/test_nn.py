"""Layers under PyG's names: PyG's outputs, gradients and state."""

import copy

import pytest
import torch
from torch_geometric import nn as pyg

from tests.vertex.programs import graph
from torch_gsample.vertex import nn
from torch_gsample.vertex import program as program_module

N, E, F = 7, 24, 4
#: Layers, and their arguments in addition to features and edges.
LAYERS = {
    'gcn': ('GCNConv', (F, 3), {}, ()),
    'gcn-weights': ('GCNConv', (F, 3), {'improved': True}, ('edge_weight',)),
    'gcn-improved': ('GCNConv', (F, 3), {'improved': True}, ()),
    'gcn-no-loops': ('GCNConv', (F, 3), {'add_self_loops': False}, ()),
    'gcn-plain': ('GCNConv', (F, 3), {'normalize': False}, ()),
    'gcn-plain-weights': (
        *('GCNConv', (F, 3), {'normalize': False}),
        ('edge_weight',),
    ),
    'gat': ('GATConv', (F, 3), {'heads': 2}, ()),
    'gat-edges': (
        *('GATConv', (F, 3), {'heads': 2, 'edge_dim': 2}),
        ('edge_attr',),
    ),
    'gat-mean': (
        *('GATConv', (F, 3), {'concat': False, 'residual': True}),
        (),
    ),
    'gatv2': ('GATv2Conv', (F, 3), {'heads': 2}, ()),
    'gatv2-edges': (
        *('GATv2Conv', (F, 3)),
        {'heads': 2, 'edge_dim': 2, 'fill_value': 0.5, 'share_weights': True},
        ('edge_attr',),
    ),
    'appnp': ('APPNP', (), {'K': 3, 'alpha': 0.2}, ()),
    'appnp-weights': ('APPNP', (), {'K': 2, 'alpha': 0.2}, ('edge_weight',)),
    'rgcn': ('RGCNConv', (F, 3, 4), {}, ('edge_type',)),
    'rgcn-bases': (
        *('RGCNConv', (F, 3, 4), {'num_bases': 2, 'aggr': 'add'}),
        ('edge_type',),
    ),
    'sage': ('SAGEConv', (F, 3), {}, ()),
    'sage-max': (
        *('SAGEConv', (F, 3)),
        {'aggr': 'max', 'normalize': True, 'project': True},
        (),
    ),
    'sage-sum': ('SAGEConv', (F, 3), {'aggr': 'add'}, ()),
    'gin': ('GINConv', (torch.nn.Linear(F, 3),), {'train_eps': True}, ()),
}


def layers(name, dtype):
    """A layer of PyG, and ours with its state."""
    kind, args, kwargs, _ = LAYERS[name]
    theirs = getattr(pyg, kind)(*copy.deepcopy(args), **kwargs)
    ours = getattr(nn, kind)(*copy.deepcopy(args), **kwargs)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_()
    ours.load_state_dict(theirs.state_dict())
    assert repr(ours) == repr(theirs)
    return theirs.to(dtype), ours.to(dtype)


def inputs(name, dtype):
    given = {
        'edge_weight': torch.rand(E, dtype=dtype).requires_grad_(),
        'edge_attr': torch.randn(E, 2, dtype=dtype).requires_grad_(),
        'edge_type': torch.randint(4, (E,)),
    }
    x = torch.randn(N, F, dtype=dtype).requires_grad_()
    return x, {key: given[key] for key in LAYERS[name][3]}


def forbid(monkeypatch, name):
    """Makes PyG's own layer fail, so that ours does the work."""

    def fail(*args, **kwargs):
        raise AssertionError('PyG computed it')

    kind = LAYERS[name][0]
    monkeypatch.setattr(getattr(pyg, kind), 'forward', fail)


def compare(name, dtype, edge_index, rtol, run=None, monkeypatch=None):
    theirs, ours = layers(name, dtype)
    x, given = inputs(name, dtype)
    leaves = [x, *(v for v in given.values() if v.requires_grad)]
    want = theirs(x, edge_index, **given)
    seed = torch.randn_like(want)
    wanted = torch.autograd.grad(
        (want * seed).sum(), [*leaves, *theirs.parameters()]
    )
    if monkeypatch is not None:
        forbid(monkeypatch, name)
    got = (
        (run or ours)(x, edge_index, **given)
        if run is None
        else run(ours)(x, edge_index, **given)
    )
    torch.testing.assert_close(got, want, rtol=rtol, atol=rtol)
    grads = torch.autograd.grad(
        (got * seed).sum(), [*leaves, *ours.parameters()]
    )
    for a, b in zip(grads, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize('name', LAYERS)
def test_a_layer_is_that_of_pyg(name, monkeypatch):
    compare(name, torch.float64, graph(), 1e-9, monkeypatch=monkeypatch)


@pytest.mark.parametrize('name', ['gat', 'gcn', 'rgcn'])
def test_a_layer_is_that_of_pyg_in_float32(name, monkeypatch):
    compare(name, torch.float32, graph(), 1e-4, monkeypatch=monkeypatch)


def message(self, x_j):
    return 2 * x_j


@pytest.mark.parametrize('where', ['class', 'layer'])
@pytest.mark.parametrize('name', ['sage', 'gin'])
def test_layers_call_an_overridden_message(name, where):
    kind, args, kwargs, _ = LAYERS[name]
    outs, x = [], torch.rand(N, F)
    for base in (getattr(pyg, kind), getattr(nn, kind)):
        own = type('Own', (base,), {'message': message})
        torch.manual_seed(0)
        layer = (own if where == 'class' else base)(*args, **kwargs)
        if where == 'layer':
            layer.message = message.__get__(layer)
        outs.append(layer(x, graph()))
    torch.testing.assert_close(*outs)


@pytest.mark.parametrize('name', ['gat', 'gcn', 'appnp-weights', 'rgcn'])
def test_a_compiled_layer_is_one_graph(name):
    for program in program_module._programs.values():
        program.plans.clear()
    torch._dynamo.reset()
    compare(
        name,
        torch.float64,
        graph(),
        1e-9,
        lambda layer: torch.compile(
            layer, fullgraph=True, backend='aot_eager'
        ),
    )


def test_programs_are_made_while_dynamo_traces():
    """No other test has layers with these numbers."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    layers = [
        nn.APPNP(2, 0.123),
        nn.GATConv(F, F, negative_slope=0.123),
        nn.APPNP(2, 0.321),
        nn.GATv2Conv(F, F, negative_slope=0.321),
    ]
    model = pyg.Sequential(
        'x, edge_index',
        [(layer, 'x, edge_index -> x') for layer in layers],
    )
    x = torch.rand(N, F)
    compiled = torch.compile(model, fullgraph=True, backend='aot_eager')
    found = compiled(x, graph())
    torch.testing.assert_close(found, model(x, graph()))
