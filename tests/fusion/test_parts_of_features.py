"""Messages that divide, join and gate features, or create constants."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric import nn as pyg
from torch_geometric.utils import softmax

from tests.fusion.test_layers import assert_same, fused

W = 6


class Message(pyg.MessagePassing):
    """A function of both ends and of edges."""

    def __init__(self, function):
        super().__init__(node_dim=0)
        self.function = function
        self.att = nn.Parameter(torch.randn(1, 2, W))
        self.wide = nn.Parameter(torch.randn(2 * W))
        self.heads = nn.Parameter(torch.randn(2, W // 2, 5))
        self.pair = nn.Bilinear(W, 4, W)
        self.lin, self.norm = nn.Linear(2 * W, 10), nn.LayerNorm(2 * W)

    def forward(self, x, edge_index, e):
        return self.propagate(edge_index, x=x, e=e)

    def message(self, x_i, x_j, e, index, ptr, size_i):
        given = index, ptr, size_i
        return self.function(self, x_i, x_j, e, given)


def attention(self, x_i, x_j, e, given):
    x_i, x_j = x_i.view(-1, 2, W // 2), x_j.view(-1, 2, W // 2)
    score = (torch.cat([x_i, x_j], dim=-1) * self.att).sum(dim=-1)
    score = softmax(F.leaky_relu(score, 0.2), *given)
    return (x_j * score.unsqueeze(-1)).flatten(1)


def rotation(self, x_i, x_j, e, given):
    (a, b), (c, d) = x_i.chunk(2, -1), torch.tensor_split(x_j, 2, -1)
    return torch.cat([a * c - b * d, a * d + b * c], dim=-1)


def in_no_graph(self, x_i, x_j, e, given):
    scale = (x_i - x_j).square().sum(-1, keepdim=True)
    with torch.no_grad():  # values are bounded, gradients are not
        scale.clamp_(max=1.5)
    return x_j * scale


MESSAGES = {
    'attention': attention,
    'attention after a function': lambda self, x_i, x_j, e, given: (
        (F.elu(torch.cat([x_i, x_j], -1)) * self.wide).sum(-1, keepdim=True)
        * x_j
    ),
    'a function of parts and a whole': lambda self, x_i, x_j, e, given: (
        torch.cat([x_i * x_j, x_j - x_i], -1)
        * torch.cat([x_i, x_j], -1).sigmoid()
        + torch.cat([x_j, e, x_i + x_j], -1)[:, : 2 * W]
    ),
    'a mean of parts': lambda self, x_i, x_j, e, given: (
        torch.cat([x_i, x_j, e], -1).mean(-1, keepdim=True) * x_j
    ),
    'a mean over parts and heads': lambda self, x_i, x_j, e, given: torch.cat(
        [x_i.view(-1, 2, 3), x_j.view(-1, 2, 3)], -1
    ).mean((1, 2)),
    'a norm of parts': lambda self, x_i, x_j, e, given: self.lin(
        self.norm(torch.cat([x_i, x_j], -1))
    ),
    'rotation': rotation,
    'halves of a product': lambda self, x_i, x_j, e, given: F.glu(
        self.lin(torch.cat([x_i, x_j], -1)), dim=-1
    ),
    'a part of a concatenation': lambda self, x_i, x_j, e, given: torch.cat(
        [x_i, x_j * x_i, e], -1
    )[:, 3 : 2 * W + 2],
    'a part of heads': lambda self, x_i, x_j, e, given: (
        x_i.view(-1, 2, 3) * x_j.view(-1, 2, 3)
    ).tanh()[:, 1, 1:],
    'columns': lambda self, x_i, x_j, e, given: torch.stack(
        (x_i * x_j).unbind(-1)[::-1], dim=-1
    ),
    'a matrix for each head': lambda self, x_i, x_j, e, given: (
        torch.einsum('ehc,hcd->ehd', x_j.view(-1, 2, 3), self.heads)
        * x_i.view(-1, 2, 3).sum(-1, keepdim=True)
    ),
    'radial functions': lambda self, x_i, x_j, e, given: (
        -((x_i - x_j).norm(dim=-1, keepdim=True) - torch.linspace(0, 5, 4))
    ).exp(),
    'constants': lambda self, x_i, x_j, e, given: (
        x_i * torch.arange(W) + x_j * torch.tensor([0.5, 2.0]).repeat(3)
    ),
    'classes': lambda self, x_i, x_j, e, given: (
        F.one_hot((e[:, 0] > 0).long(), W) * x_j.relu() * x_i
    ),
    'cosine': lambda self, x_i, x_j, e, given: (
        F.cosine_similarity(x_i, x_j, dim=-1).unsqueeze(-1) * x_j
    ),
    'distance': lambda self, x_i, x_j, e, given: (
        F.pairwise_distance(x_i, x_j, keepdim=True).neg().exp() * x_j
    ),
    'changed without autograd': in_no_graph,
    'largest and least': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).max(dim=-1, keepdim=True)[0] * x_j
        + (x_i + x_j).min(-1).values.unsqueeze(-1)
    ),
    'the largest of parts': lambda self, x_i, x_j, e, given: (
        torch.cat([x_i * x_j, x_j, e], -1).max(-1, keepdim=True)[0] * x_i
        + torch.stack([x_i * x_j, x_j], 1).amin(1)
    ),
    'softmax of parts': lambda self, x_i, x_j, e, given: (
        torch.cat([x_i * x_j, e], -1).softmax(-1)[:, 2 : W + 2] * x_j
    ),
    'log softmax of a stack': lambda self, x_i, x_j, e, given: (
        torch.stack([x_i * x_j, x_j], 1).log_softmax(1).sum(1)
    ),
    'normalized parts': lambda self, x_i, x_j, e, given: F.normalize(
        torch.cat([x_i * x_j, e], -1), dim=-1
    ),
    'deviations': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).std(-1, keepdim=True) * x_j
        + (x_i * x_j).var(-1, keepdim=True, unbiased=False)
        + torch.cat([x_i * x_j, e], -1).var(-1, keepdim=True)
    ),
    'deviations of one end': lambda self, x_i, x_j, e, given: (
        x_j.std(-1, keepdim=True) * x_i
        + x_j.view(-1, 2, 3).var(-1).sum(1)[:, None]
    ),
    'rolled': lambda self, x_i, x_j, e, given: (
        torch.roll(x_i * x_j, 2, -1) * torch.roll(x_j, -1, 1)
    ),
    'rolled heads': lambda self, x_i, x_j, e, given: torch.roll(
        (x_i * x_j).view(-1, 2, 3), 1, 2
    ).flatten(1),
    'a cross product': lambda self, x_i, x_j, e, given: (
        torch.cross(x_i[:, :3], x_j[:, 3:], dim=-1) * e[:, :1]
        + torch.linalg.cross(x_i[:, :3] - x_j[:, :3], e[:, :3])
    ),
    'angles': lambda self, x_i, x_j, e, given: (
        torch.atan2(x_i, x_j) * torch.atan(x_i * x_j)
        + torch.asin((x_i * x_j).tanh()) * torch.acos((x_i - x_j).tanh())
    ),
    'padded': lambda self, x_i, x_j, e, given: (
        F.pad(x_i * x_j, (2, 0), value=0.5) * F.pad(x_j, (-1, 3))
    ),
    'padded heads': lambda self, x_i, x_j, e, given: F.pad(
        (x_i * x_j).view(-1, 2, 3), (0, 1, 1, -1)
    ).flatten(1),
    'cumulated': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).cumsum(-1) * x_j.cumsum(-1)
    ),
    'cumulated heads': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).view(-1, 2, 3).cumsum(1).flatten(1)
    ),
    'flipped': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).flip(-1) * x_j.flip(-1)
    ),
    'flipped heads': lambda self, x_i, x_j, e, given: (
        (x_i * x_j).view(-1, 2, 3).flip(1, 2).flatten(1)
    ),
    'multiplied': lambda self, x_i, x_j, e, given: (
        (x_i * x_j)[:, :3].prod(-1, keepdim=True) * x_j.prod(-1, keepdim=True)
        + (x_i * x_j).view(-1, 2, 3).prod(1).sum(-1, keepdim=True)
    ),
    'logarithms of sums of parts': lambda self, x_i, x_j, e, given: (
        torch.cat([x_i * x_j, e], -1).logsumexp(-1, keepdim=True) * x_j
        + torch.stack([x_i * x_j, x_j], 1).logsumexp(1)
    ),
    'bilinear of an edge': lambda self, x_i, x_j, e, given: self.pair(
        x_i * x_j, e
    ),
    'bilinear': lambda self, x_i, x_j, e, given: self.pair(x_j, e) * x_i,
}


def inputs():
    torch.manual_seed(0)
    x = torch.randn(20, W, requires_grad=True)
    edges = torch.randint(18, (2, 60))
    edges = edges[:, edges[0] != edges[1]]
    return [x, edges, torch.randn(edges.shape[1], 4, requires_grad=True)]


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize('name', MESSAGES)
def test_messages_are_those_of_pyg(name):
    torch.manual_seed(0)
    theirs = Message(MESSAGES[name])
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, inputs())
    assert capture.is_fused, capture.reason


SECOND = (
    *('largest and least', 'softmax of parts', 'deviations', 'bilinear'),
    *('angles', 'padded', 'cumulated', 'flipped', 'multiplied'),
    'logarithms of sums of parts',
)


@pytest.mark.parametrize('name', SECOND)
def test_derivatives_of_messages_are_exact(name):
    torch.manual_seed(0)
    ours, capture, _ = fused(Message(MESSAGES[name]))
    x, edges, e = inputs()
    edges = edges[:, :12]
    e = e[:12].detach().requires_grad_()

    def call(x, e):
        return ours(x, edges, e)

    x = x.detach().requires_grad_()
    assert gradcheck(call, (x, e), check_forward_ad=True)
    assert gradgradcheck(call, (x, e))
    assert capture.is_fused, capture.reason


def noise(self, x_i, x_j, e, given):
    return x_j * torch.rand(W) * x_i


def noise_in_place(self, x_i, x_j, e, given):
    return x_j * torch.zeros(W).normal_() * x_i


def by_edge(self, x_i, x_j, e, given):
    return x_j * torch.arange(len(x_j)).view(-1, 1) * x_i


def by_size(self, x_i, x_j, e, given):
    return x_j * torch.full((W,), float(len(x_j))) * x_i


def half_of_a_draw(self, x_i, x_j, e, given):
    return F.dropout(x_i * x_j, 0.5)[:, :3] * 1.0


def changed_part(self, x_i, x_j, e, given):
    x = x_i * x_j
    x[:, :3].mul_(2.0)
    return x


def positions(self, x_i, x_j, e, given):
    value, at = (x_i * x_j).max(-1, keepdim=True)
    return torch.where(at == 1, value, x_j)


def bilinear_of_both(self, x_i, x_j, e, given):
    return self.pair(x_i * x_j, e * x_i[:, :4])


LEFT = {
    positions: 'torch.max (its indices) is not supported at edges',
    bilinear_of_both: 'one operand must be of one end, or of edges',
    noise: 'neither an argument nor a parameter',
    noise_in_place: 'neither an argument nor a parameter',
    by_edge: 'neither an argument nor a parameter',
    by_size: 'depends on the number of vertices',
    half_of_a_draw: 'torch.slice is not supported at edges',
    changed_part: 'torch.mul_ changes a shared tensor',
}


@pytest.mark.parametrize('message', LEFT)
def test_random_and_shared_values_are_left_to_pyg(message):
    layer = Message(message)
    ours, capture, _ = fused(layer)
    ours(*inputs())
    assert not capture.is_fused
    assert LEFT[message] in capture.reason
