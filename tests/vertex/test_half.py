"""Layers in half precision and under autocast, compared with PyG's."""

import copy

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from tests.vertex.half import (
    assert_as_exact_as_pyg,
    converted,
    without_kernels,
)
from tests.vertex.programs import graph
from tests.vertex.test_nn import LAYERS, inputs, layers
from torch_gsample.loader import NeighborLoader
from torch_gsample.vertex import mean, nn, vertex_program

BF16, F16 = torch.bfloat16, torch.float16
HALF = [BF16, F16]
WIDTH = 24  # a whole vector, and a rest


class Called(torch.nn.Module):
    """A layer with named arguments that are given in order."""

    def __init__(self, layer, names=()):
        super().__init__()
        self.layer, self.names = layer, names

    def forward(self, x, edge_index, *given):
        named = zip(self.names, given, strict=True)
        return self.layer(x, edge_index, **dict(named))


@pytest.mark.parametrize('mode', ['model', 'autocast', 'autocast of halves'])
@pytest.mark.parametrize('dtype', HALF)
@pytest.mark.parametrize('name', LAYERS)
def test_a_layer_has_the_dtype_of_pyg_and_is_as_exact(
    name, dtype, mode, monkeypatch
):
    without_kernels(monkeypatch)
    x, given = inputs(name, torch.float32)
    theirs, ours = (
        Called(layer, tuple(given)) for layer in layers(name, torch.float32)
    )
    args = [x.detach(), graph(), *given.values()]
    if mode == 'model':
        theirs, ours = theirs.to(dtype), ours.to(dtype)
        args = converted(args, dtype)
    if mode == 'autocast of halves':  # as of a second layer
        args[0] = args[0].to(dtype)
    autocast = mode != 'model'
    assert_as_exact_as_pyg(ours, theirs, args, dtype, autocast)
    assert_as_exact_as_pyg(ours.eval(), theirs.eval(), args, dtype, autocast)


def edges(*shape):
    return torch.randint(0, shape[0], (2, shape[1]))


def graphs():
    """Square graphs by name: edges, and the number of vertices."""
    hub = torch.stack([torch.arange(3000) % 40, torch.zeros(3000).long()])
    return {
        'empty': (torch.empty(2, 0, dtype=torch.int64), 5),
        'isolated': (edges(10, 30), 40),
        'duplicates': (edges(10, 30).repeat(1, 5), 10),
        'hub': (torch.cat([hub, edges(40, 60)], dim=1), 40),
    }


KINDS = {
    'SAGEConv': {},
    'GATConv': {'heads': 2, 'dropout': 0.0},
    'GCNConv': {},
}


@pytest.mark.parametrize('mode', ['model', 'autocast'])
@pytest.mark.parametrize('name', KINDS)
def test_kernels_on_graphs_of_all_kinds(name, mode):
    theirs = getattr(pyg, name)(WIDTH, WIDTH, **KINDS[name])
    ours = getattr(nn, name)(WIDTH, WIDTH, **KINDS[name])
    ours.load_state_dict(theirs.state_dict())
    for edge_index, count in graphs().values():
        x = torch.randn(count, WIDTH)
        args, autocast = [x, edge_index], mode == 'autocast'
        if mode == 'model':
            theirs, ours = theirs.to(BF16), ours.to(BF16)
            args = converted(args, BF16)
        assert_as_exact_as_pyg(ours, theirs, args, BF16, autocast)
    if name == 'SAGEConv':
        pair = torch.randn(30, WIDTH), torch.randn(9, WIDTH)
        args = [pair, torch.randint(9, (2, 80))]
        if mode == 'model':
            args = converted(args, BF16)
        assert_as_exact_as_pyg(ours, theirs, args, BF16, autocast)


@pytest.mark.parametrize('name', KINDS)
def test_a_block_in_half_precision_is_the_batch(name):
    data = Data(torch.randn(200, WIDTH), edges(200, 1500), num_nodes=200)
    batch = next(iter(NeighborLoader(data, [4, 4], batch_size=16, seed=1)))
    layer = getattr(nn, name)(WIDTH, WIDTH, **KINDS[name]).to(BF16)
    x = batch.x.to(BF16)
    out = layer(x, batch.blocks[0])
    assert len(out) < batch.num_nodes
    want = layer(x, batch.edge_index)[: len(out)]
    assert out.dtype == BF16
    torch.testing.assert_close(out, want, rtol=2e-2, atol=2e-2)


@vertex_program
def total(v):
    return sum(u.x for u in v.innbs)


@vertex_program
def average(v):
    return mean(u.x for u in v.innbs)


@pytest.mark.parametrize('dtype', HALF)
def test_sums_are_in_float32_and_rounded_once(dtype):
    count = 100_000
    ones = torch.full((count, WIDTH), 0.5, dtype=dtype, requires_grad=True)
    hub = torch.stack([torch.arange(count), torch.zeros(count).long()])
    out = total(hub, x=(ones, None), size=(count, 1))
    assert (out == torch.tensor(50_000.0).to(dtype)).all()
    assert (average(hub, x=(ones, None), size=(count, 1)) == 0.5).all()
    # PyG counts in half precision, too: its mean of float16 is 0.
    theirs = pyg.MeanAggregation()(ones.detach(), hub[1], dim_size=1)
    assert (theirs == 0.5).all() == (dtype == BF16)
    # The gradient of one source of all edges adds up as many.
    one = torch.ones(1, WIDTH, dtype=dtype, requires_grad=True)
    out = total(hub.flip(0), x=(one, None), size=(1, count))
    grad = torch.full_like(out, 0.5)
    [found] = torch.autograd.grad(out, one, grad)
    assert (found == torch.tensor(50_000.0).to(dtype)).all()


@pytest.mark.parametrize('dtype', HALF)
def test_gradients_of_a_maximum_find_the_edge(dtype):
    """Values are not in memory: the maximum is compared as it was computed."""

    @vertex_program
    def highest(v):
        return max(e.src.x * e.w for e in v.inedges)

    x = torch.randn(30, WIDTH, dtype=dtype, requires_grad=True)
    w = torch.rand(400, dtype=dtype) + 0.5
    edge_index = torch.randint(30, (2, 400))
    out = highest(edge_index, x=(x, None), w=w, size=(30, 30))
    [grad] = torch.autograd.grad(out.sum(), x)
    double = x.detach().double().requires_grad_()
    want = highest(edge_index, x=(double, None), w=w.double(), size=(30, 30))
    [wanted] = torch.autograd.grad(want.sum(), double)
    assert grad.dtype == dtype
    torch.testing.assert_close(grad.double(), wanted, rtol=2e-2, atol=2e-2)


def test_a_parameter_has_a_gradient_that_is_rounded_once():
    @vertex_program
    def scaled(v, scale):
        return sum(u.x for u in v.innbs) * scale

    # Rows of the gradient are 1 + 1/256, which bfloat16 rounds to 1.
    count = 6144
    x = torch.tensor([1, 1 / 256], dtype=BF16)[:, None].expand(2, WIDTH)
    scale = torch.ones(WIDTH, dtype=BF16, requires_grad=True)
    col = torch.arange(count).repeat_interleave(2)
    edge_index = torch.stack([torch.arange(2).repeat(count), col])
    out = scaled(edge_index, x=(x, None), scale=scale, size=(2, count))
    [grad] = torch.autograd.grad(out, scale, torch.ones_like(out))
    assert grad.dtype == BF16
    assert (grad == count + 32).all()  # of count + 24


def test_rows_of_half_precision_are_read_as_they_are():
    text = average.explain(x=(torch.ones(3, WIDTH, dtype=BF16), None))
    assert 'const bf16_t* const p0' in text
    assert 'narrow<bf16_t>' in text


def test_float64_and_half_precision_are_refused_by_name():
    @vertex_program
    def both(v):
        return sum(u.x * u.y for u in v.innbs)

    x = torch.ones(3, 4, dtype=torch.float64)
    with pytest.raises(ValueError, match=r'torch.float64.*half precision'):
        both(graph()[:, :0], x=x, y=x.to(BF16))


def test_autocast_of_a_layer_of_half_precision_is_that_of_pyg():
    theirs = pyg.SAGEConv(4, 4).to(BF16)
    ours = nn.SAGEConv(4, 4).to(BF16)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(7, 4, dtype=BF16)
    with torch.autocast('cpu', BF16):
        out, want = ours(x, graph()), copy.deepcopy(theirs)(x, graph())
    assert torch.equal(out, want)


def derivatives(layer, x, edge_index):
    """A second gradient and a tangent, in float64."""
    x = x.detach().requires_grad_()
    total = layer(x, edge_index).double().square().sum()
    [grad] = torch.autograd.grad(total, x, create_graph=True)
    second = torch.autograd.grad(grad.double().square().sum(), x)
    x = x.detach()
    tangent = torch.func.jvp(
        lambda x: layer(x, edge_index), (x,), (torch.ones_like(x),)
    )[1]
    return [out.double() for out in (*second, tangent)]


@pytest.mark.parametrize('kind', [pyg.SAGEConv, pyg.GATConv])
def test_other_derivatives_are_as_exact_as_those_of_pyg(kind):
    """What only they read is in the precision of kernels, and compiled."""
    theirs, ours = kind(WIDTH, 4), getattr(nn, kind.__name__)(WIDTH, 4)
    ours.load_state_dict(theirs.to(BF16).state_dict())
    args = torch.randn(30, WIDTH).to(BF16), edges(30, 150)
    found = derivatives(ours.to(BF16), *args)
    others = derivatives(theirs, *args)
    wanted = derivatives(theirs.double(), args[0].double(), args[1])
    for out, other, want in zip(found, others, wanted, strict=True):
        error, of_pyg = (out - want).abs().max(), (other - want).abs().max()
        assert error < 2 * of_pyg + 0.02 * want.abs().max()
