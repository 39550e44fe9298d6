"""Messages that compute with comparisons, as masks, counts and numbers."""

import pytest
import torch
from torch_geometric import nn as pyg

from tests.fusion.test_layers import assert_same, fused

W = 6


class Message(pyg.MessagePassing):
    """A function of both ends."""

    def __init__(self, function):
        super().__init__(node_dim=0)
        self.function = function

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.function(x_i, x_j)


MESSAGES = {
    'a mask right': lambda a, b: a * (a > b),
    'a mask left': lambda a, b: (a > b) * b,
    'a sum with a mask': lambda a, b: a * b + (a > b),
    'a quotient': lambda a, b: (a > b) / (b * b + 1) * a,
    'numbers': lambda a, b: ((a > b) * 2 - 1) * a + ((a > b) + 0.5) * b,
    'half of a mask': lambda a, b: (a > b) / 2 * b,
    'several masks': lambda a, b: (
        ((a > b) + (a > 0)) * b + (a > b) * (a < 1) * a
    ),
    'bitwise': lambda a, b: (((a > b) & (a < 1)) | ~(b > 0)) * a,
    'masks of masks': lambda a, b: (
        torch.where(a > b, a > 0, b > 0) * b + ((a > b) == (b > 0)) * a
    ),
    'conversions': lambda a, b: (
        (a > b).to(a.dtype) * b
        + (a > b).long() * a
        + (a > b).long().to(a.dtype) * a
        + (a > b).type_as(b)
    ),
    'counts': lambda a, b: (
        (a > b).sum(-1, keepdim=True) * b
        + (a > 0).to(a.dtype).mean(-1, keepdim=True) * b
    ),
    'branches of numbers': lambda a, b: torch.where(a > b, 1.5, -0.5) * a,
    'branches of tensors': lambda a, b: (
        torch.where(a > b, torch.tensor(1.5), torch.tensor(0.5)) * a
    ),
    'joined masks': lambda a, b: (
        torch.cat([a > b, a > 0], -1) * torch.cat([a * b, b], -1)
    ),
    'a cutoff': lambda a, b: (
        b * ((a - b).norm(dim=-1, keepdim=True) < 3) * (a + b)
    ),
    'a mean of a stack': lambda a, b: (
        torch.stack([a * b, b, a], 1).mean(1)
        + torch.stack([a * b, a], -1).sum(-1)
    ),
}


def inputs():
    torch.manual_seed(0)
    x = torch.randn(20, W, dtype=torch.float64, requires_grad=True)
    edges = torch.randint(18, (2, 60))
    return [x, edges[:, edges[0] != edges[1]]]


@pytest.mark.parametrize('name', MESSAGES)
def test_conditions_are_numbers_as_in_torch(name):
    torch.set_default_dtype(torch.float64)
    try:
        theirs = Message(MESSAGES[name])
        ours, capture, _ = fused(theirs)
        assert_same(ours, theirs, inputs())
    finally:
        torch.set_default_dtype(torch.float32)
    assert capture.is_fused, capture.reason
