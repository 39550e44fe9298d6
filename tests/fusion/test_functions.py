"""Functions in messages, computed in kernels as torch does."""

import pytest
import torch
from torch_geometric import nn as pyg

from tests.fusion.test_layers import assert_same, fused
from tests.vertex.test_functions import COARSE, FUNCTIONS, POSITIVE


def _same(x):
    return x


#: Numbers that a function takes.
DOMAINS = {
    **dict.fromkeys(POSITIVE, lambda x: x * x + 0.3),
    **dict.fromkeys(('acos', 'asin'), lambda x: x / (x.abs() + 1)),
}


class Message(pyg.MessagePassing):
    """A function of both ends."""

    def __init__(self, function, domain):
        super().__init__(node_dim=0)
        self.function, self.domain = function, domain

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        x = x_i - x_j
        return self.function(self.domain(x))


@pytest.mark.parametrize('name', FUNCTIONS)
def test_messages_of_functions_equal_those_of_pyg(name):
    theirs = Message(FUNCTIONS[name], DOMAINS.get(name, _same)).double()
    torch.manual_seed(0)
    x = torch.randn(20, 3, 5, dtype=torch.float64, requires_grad=True)
    edges = torch.randint(18, (2, 60))
    edges = edges[:, edges[0] != edges[1]]
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, [x, edges], COARSE.get(name, 1e-9))
    assert capture.is_fused, capture.reason


def test_a_softmax_of_many_heads():
    torch.manual_seed(0)
    theirs = pyg.FeaStConv(8, 8, heads=40).double()
    x = torch.randn(20, 8, dtype=torch.float64, requires_grad=True)
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, [x, torch.randint(18, (2, 60))])
    assert capture.is_fused, capture.reason
