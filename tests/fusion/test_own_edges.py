"""Layers that make edges themselves, or read degrees, on blocks."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, degree, remove_self_loops

from tests.fusion.models import WIDTH, batches, graph
from tests.fusion.test_exact import assert_same, homogeneous, seeds
from tests.fusion.test_hops import Stack, alone, looped
from torch_gsample import fuse
from torch_gsample.fusion.rows import UnseenRowsError
from torch_gsample.fusion.sized_rows import sized_rows

W = WIDTH

pytestmark = pytest.mark.usefixtures('double')


class Layer(pyg.MessagePassing):
    def __init__(self):
        super().__init__('add')
        self.lin, self.gate = nn.Linear(W, W), nn.Linear(W, 1)

    def message(self, x_j, weight):
        return weight.view(-1, 1) * x_j


class Tutorial(Layer):
    """The layer of PyG's tutorial on message passing."""

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        x = self.lin(x)
        row, col = edge_index
        deg_inv_sqrt = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float('inf')] = 0
        weight = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        return self.propagate(edge_index, x=x, weight=weight)


class Degrees(Layer):
    """Reads the degrees of all nodes, but makes no edges."""

    def forward(self, x, edge_index):
        deg = degree(edge_index[1], x.size(0), dtype=x.dtype).clamp(min=1)
        weight = (deg[edge_index[0]] * deg[edge_index[1]]).rsqrt()
        out = self.propagate(edge_index, x=(x, x), weight=weight)
        return self.lin(out) + x[: x.size(0)] * deg.view(-1, 1)


class Scatters(Layer):
    """Computes degrees without PyG; its edges have another name."""

    def forward(self, x, adj):
        count, loops = len(x), torch.arange(x.shape[0])
        adj = torch.cat([adj, torch.stack([loops, loops])], dim=1)
        weight = torch.ones(adj.size(1), dtype=x.dtype) * self.gate.bias.exp()
        deg = torch.zeros(count, dtype=x.dtype)
        deg = deg.scatter_add(0, adj[1], weight)
        weight = weight / deg[adj[0]] / deg[adj[1]]
        out = self.propagate(
            adj, x=self.lin(x), weight=weight, size=(count, count)
        )
        out = out.view(count, 2, -1).transpose(1, 2)
        out = out.reshape(x.size(0), -1)
        return F.normalize(out, dim=-1)


class Updates(Layer):
    """Computes a feature of the edges that it makes."""

    def forward(self, x, edge_index):
        edge_index, _ = remove_self_loops(edge_index)
        deg = degree(edge_index[0], x.size(0), dtype=x.dtype)
        log = deg[edge_index[1]].log1p()
        weight = self.edge_updater(edge_index, end=x, log=log)
        return self.propagate(edge_index, x=self.lin(x), weight=weight)

    def edge_update(self, end_i, end_j, log):
        return torch.sigmoid(self.gate(end_i - end_j)).view(-1) * log


class Twice(Tutorial):
    """Propagates twice over its edges."""

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        deg = degree(edge_index[1], x.size(0), dtype=x.dtype)
        weight = deg[edge_index[0]].reciprocal()
        for _ in range(2):
            x = x + self.propagate(edge_index, x=self.lin(x), weight=weight)
        return x


ONE_HOP = [Tutorial, Degrees, Scatters, Updates]


@pytest.mark.parametrize('layer', ONE_HOP)
@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_layers_with_edges_of_their_own_compute_blocks(layer, make):
    report = assert_same(
        Stack(layer, alone), homogeneous, seeds, make()
    ).report()
    assert report.count('exact block, computes') == 2
    assert 'the seeds' in report


@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_they_may_read_several_hops(make):
    samples = make()
    report = assert_same(
        Stack(Twice, alone), homogeneous, seeds, samples
    ).report()
    assert report.count('exact block of 2 hops, computes') == 2


@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_they_infer_on_blocks(mode):
    batch = batches(graph())[0]
    torch.manual_seed(0)
    model = Stack(Tutorial, alone)
    want = model(batch.x, batch.edge_index.plain)[: batch.batch_size]
    fuse(model, min_nodes=0, verbose=False)
    model(batch.x, batch.edge_index)
    with mode():
        out = model(batch.x, batch.edge_index)
        assert len(out) == batch.batch_size
        assert torch.allclose(out[: batch.batch_size], want, rtol=1e-9)


class Biased(Tutorial):
    """Adds float32 to what autocast rounds."""

    def forward(self, x, edge_index):
        return super().forward(x, edge_index) + self.gate.bias


@pytest.mark.filterwarnings('error:fuse')
def test_rounded_values_are_compared_as_such():
    batch = batches(graph(torch.float32))[0]
    model = Stack(Biased, alone).float()
    fusion = fuse(model, min_nodes=0, verbose=False)
    with torch.autocast('cpu', torch.bfloat16):
        model(batch.x, batch.edge_index)
    assert fusion.report().count('exact block, computes') == 2


class Reversed(Layer):
    """Also reads the out-edges of each node."""

    def forward(self, x, edge_index):
        weight = x.new_ones(edge_index.size(1))
        out = self.propagate(edge_index, x=x, weight=weight)
        return out + self.propagate(edge_index.flip(0), x=x, weight=weight)


class Ends(Layer):
    """Reads features of both ends of all edges before its messages."""

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        deg = degree(edge_index[1], x.size(0), dtype=x.dtype)
        weight = (x[edge_index[0]] * x[edge_index[1]]).sum(-1)
        weight = weight / deg[edge_index[0]]
        return self.propagate(edge_index, x=x, weight=weight)


WHOLE = {
    Reversed: 'its own edges come from beyond its block',
    Ends: 'the index Tensor may read any',
}


@pytest.mark.parametrize('layer', WHOLE)
@pytest.mark.filterwarnings('error:fuse')
def test_layers_that_read_other_rows_run_on_whole_batches(layer):
    report = assert_same(
        Stack(layer, alone), homogeneous, seeds, batches(graph())
    ).report()
    assert WHOLE[layer] in report


class Made(nn.Module):
    """A model that makes the edges of its layers."""

    def __init__(self, make, keeps=True):
        super().__init__()
        self.make, self.keeps = make, keeps
        self.first, self.last = nn.Linear(W, W), nn.Linear(W, W)
        self.convs = nn.ModuleList(
            [pyg.SAGEConv(W, W), pyg.GraphConv(W, W), pyg.GATConv(W, W, 2)]
        )
        self.lin = nn.Linear(2 * W, W)

    def forward(self, x, edge_index):
        x, (edges, weight) = self.first(x), self.make(edge_index, x.size(0))
        x = self.call(self.convs[0], x, edges).relu()
        x = self.call(self.convs[1], x, edges, weight).relu()
        return self.last(self.lin(self.call(self.convs[2], x, edges)))

    def call(self, conv, *args):
        if self.keeps:
            return conv(*args)
        return checkpoint(conv, *args, use_reentrant=False)


def with_loops(edge_index, num_nodes):
    weight = torch.linspace(0, 1, edge_index.size(1))
    return add_self_loops(edge_index, weight, 2.0, num_nodes)


def shuffled(edge_index, num_nodes):
    make = torch.Generator().manual_seed(0)
    order = torch.randperm(edge_index.size(1), generator=make)
    return edge_index[:, order], order / len(order)


def changed(edge_index, num_nodes):
    edges, weight = with_loops(edge_index, num_nodes)
    edges[0, -1] = edges[1, 0]  # a source that is near
    return edges, weight


MADE = {
    'loops': with_loops,
    'normalised': lambda edges, count: gcn_norm(edges, None, count),
    'shuffled': shuffled,
    'twice': lambda edges, count: (
        torch.cat([edges, edges], 1),
        torch.ones(2 * edges.size(1)),
    ),
    'changed': changed,
}


@pytest.mark.parametrize('name', MADE)
@pytest.mark.parametrize('keeps', [True, False])
@pytest.mark.filterwarnings('error:fuse')
def test_edges_that_a_model_makes_have_blocks(name, keeps):
    report = assert_same(
        Made(MADE[name], keeps), homogeneous, seeds, batches(graph())
    ).report()
    assert report.count('exact block, computes') == 3
    assert 'the seeds' in report


def test_edges_from_further_nodes_have_no_blocks():
    def reverse(edge_index, num_nodes):
        return edge_index.flip(0), torch.ones(edge_index.size(1))

    with pytest.warns(UserWarning, match='not those of a batch'):
        assert_same(Made(reverse), homogeneous, seeds, batches(graph()))


class Ring(nn.Module):
    """A model with edges of its own between the first nodes of any batch."""

    def __init__(self):
        super().__init__()
        self.first, self.conv = nn.Linear(W, W), pyg.SAGEConv(W, W)
        ring = torch.arange(8)
        self.register_buffer('ring', torch.stack([ring, ring.roll(1)]))

    def forward(self, x, edge_index):
        x = self.conv(self.first(x), edge_index).relu()
        x = self.conv(x, self.ring)
        return self.conv(x, edge_index)


@pytest.mark.filterwarnings('error:fuse')
def test_edges_of_a_model_are_those_of_each_batch():
    data = graph()
    samples = batches(data) + batches(data, size=9)
    assert_same(Ring(), homogeneous, seeds, samples)


class Between(Made):
    """Changes its edges in place between layers."""

    def call(self, conv, x, edges, *weight):
        out = conv(x, edges, *weight)
        edges[0] = edges[1]
        return out


@pytest.mark.filterwarnings('error:fuse')
def test_edges_that_are_changed_in_place_are_read_again():
    batch = batches(graph())[0]
    model = Between(with_loops)
    with torch.no_grad():
        want = model(batch.x, batch.edge_index.plain)[: batch.batch_size]
        fusion = fuse(model, min_nodes=0, verbose=False)
        out = model(batch.x, batch.edge_index)
        assert torch.allclose(out[: batch.batch_size], want, rtol=1e-9)
    assert fusion.report().count('exact block, computes') == 3


def test_sizes_are_those_of_all_rows():
    x = sized_rows(torch.randn(3, 4), 9)
    assert x.shape == x.size() == (9, 4)
    assert (x.size(0), x.size(-2), x.size(dim=1)) == (9, 9, 4)
    assert (len(x), x.numel(), x.nelement()) == (9, 36, 36)
    for y in (
        *(x.view(9, 2, 2), x.view((9, -1, 2)), x.reshape(-1, 2, 2)),
        *(x.unsqueeze(1).expand(9, 2, 4), x[:9], x[0:9, :2], x.relu() + 1),
        x * torch.ones(9, 1),
    ):
        assert y.size(0) == len(y) == 9
        assert len(y.as_subclass(torch.Tensor)) == 3
    assert x.new_zeros(len(x)).shape == (9,)


@pytest.mark.parametrize(
    'read',
    [
        lambda x: x[:4],
        lambda x: x[torch.tensor([0, 8])],
        lambda x: x.index_select(0, torch.tensor([3])),
        lambda x: x.sum(0),
        lambda x: x.view(3, -1),
        lambda x: torch.scatter(x, 0, torch.tensor([[8]]), 1.0),
    ],
)
def test_rows_that_were_not_computed_are_not_read(read):
    with pytest.raises(UnseenRowsError, match='of which the first 3'):
        read(sized_rows(torch.randn(3, 4), 9))
