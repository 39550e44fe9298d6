"""Gradients of maxima and minima that several messages attain."""

import pytest
import torch
from torch_geometric import nn as pyg

from tests.fusion.test_layers import fused


def shares(layer, value, edge_index=None):
    """The gradients of three sources with the same value."""
    if edge_index is None:
        edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
    x = torch.full((4, 1), value, dtype=torch.float64, requires_grad=True)
    [found] = torch.autograd.grad(layer(x, edge_index)[3].sum(), x)
    return found[:3].flatten().tolist()


@pytest.mark.parametrize('aggr', ['max', 'min'])
@pytest.mark.parametrize('value', [0.0, 0.5, -2.0])
def test_ties_share_a_gradient(aggr, value):
    layer, capture, _ = fused(pyg.SimpleConv(aggr))
    assert shares(layer, value) == pytest.approx([1 / 3] * 3)
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('aggr', ['max', 'min'])
def test_pyg_loses_a_share_at_zero(aggr):
    """See docs/fused_layers.md: torch counts the initial zero, too."""
    layer = pyg.SimpleConv(aggr)
    assert shares(layer, 0.5) == pytest.approx([1 / 3] * 3)
    assert shares(layer, 0.0) == pytest.approx([1 / 4] * 3)


def test_gradients_with_edges_of_32_bits():
    layer, _, _ = fused(pyg.SimpleConv('sum'))
    edge_index = torch.tensor([[0, 1, 1], [3, 3, 3]], dtype=torch.int32)
    assert shares(layer, 1.0, edge_index) == [1, 2, 0]
