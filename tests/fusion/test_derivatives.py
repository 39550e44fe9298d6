"""Gradients of gradients, tangents and transforms of captured layers."""

import pytest
import torch
from torch import func

from tests.fusion.layers import CASES, sample
from tests.fusion.test_layers import fused
from tests.vertex.conftest import uncompiled  # noqa: F401  (a fixture)
from torch_gsample.vertex.capture.propagate import capture_of

pytestmark = pytest.mark.usefixtures('uncompiled')
#: One of each kind of message: weights, gates, attention, maxima, sets of
#: aggregations, parameters at edges, products.
NAMES = (
    *('GraphConv', 'ResGatedGraphConv', 'TransformerConv', 'GINEConv'),
    *('CGConv', 'PNAConv', 'GENConv', 'FeaStConv', 'EdgeConv', 'GMMConv'),
    *('NNConv', 'TAGConv', 'FiLMConv', 'SuperGATConv', 'PointNetConv'),
    *('HEATConv', 'FAConv', 'LEConv', 'AGNNConv', 'RGATConv'),
)


def of(name):
    """A layer, its fused copy, features, and the other arguments."""
    torch.manual_seed(0)
    layer = CASES[name].make().double().eval()
    first, *rest = (sample()[key] for key in CASES[name].names.split())
    model, capture, _ = fused(layer)
    return layer, model, capture, first, rest


def second_by(x, direction):
    """Second derivatives: forward over reverse, and reverse over reverse."""

    def run(total):
        y = x.clone().requires_grad_()
        [first] = torch.autograd.grad(total(y), y, create_graph=True)
        twice = torch.zeros_like(x)
        if first.requires_grad:
            [twice] = torch.autograd.grad((first * direction).sum(), y)
        return twice, func.jvp(func.grad(total), (x,), (direction,))[1]

    return run


@pytest.mark.parametrize('name', NAMES)
def test_derivatives_of_a_captured_layer_are_those_of_pyg(name):
    layer, ours, capture, x, rest = of(name)
    direction = torch.randn_like(x)
    found = []
    for run in (layer, ours):

        def total(y, run=run):
            return run(y, *rest).sin().sum()

        # The first call is captured inside of transforms.
        mapped = func.vmap(func.grad(total))(torch.stack([x, 1.1 * x]))
        found.append(
            (
                *second_by(x, direction)(total),
                func.jvp(lambda y, r=run: r(y, *rest), (x,), (direction,)),
                func.grad(lambda y, *z, r=run: r(y, *z).sin().sum())(x, *rest),
                mapped,
            )
        )
    assert capture.is_fused, capture.reason
    torch.testing.assert_close(found[1], found[0], rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(found[1][0], found[1][1])


@pytest.mark.parametrize('name', ['GINEConv', 'TransformerConv'])
def test_derivatives_of_parameters_are_those_of_pyg(name):
    layer, ours, capture, x, rest = of(name)
    conv = ours.conv
    assert capture is capture_of(conv)
    state = {key: p.detach() for key, p in layer.named_parameters()}
    many = {key: torch.stack([p, 2 * p]) for key, p in state.items()}
    found = []
    for run in (layer, conv):

        def total(p, run=run):
            return func.functional_call(run, p, (x, *rest)).sin().sum()

        found.append(
            (
                func.vmap(func.grad(total))(many),
                func.jvp(func.grad(total), (state,), (state,))[1],
            )
        )
    assert capture.is_fused, capture.reason
    torch.testing.assert_close(found[1], found[0], rtol=1e-7, atol=1e-7)


def test_a_graph_that_is_mapped_is_left_to_pyg():
    layer, ours, capture, x, rest = of('GraphConv')
    graphs = torch.stack([rest[0], rest[0].flip(1)])
    found = [
        func.vmap(lambda graph, r=run: r(x, graph, *rest[1:]))(graphs)
        for run in (layer, ours)
    ]
    torch.testing.assert_close(*found)
    assert capture.reason == 'torch.vmap maps its graph'
    assert ours(x, *rest).shape == found[0][0].shape
    assert capture.is_fused
