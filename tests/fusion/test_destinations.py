"""Layers that take a graph alone compute the destinations of a block."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric import nn as pyg

from tests.fusion.models import WIDTH, Hand, batches, graph
from tests.fusion.test_exact import unmarked
from torch_gsample import fuse
from torch_gsample.fusion.rows import FirstRows, Origin, first_rows, plain


class Near(pyg.MessagePassing):
    """Multiplies its aggregate; the graph is the only argument."""

    def __init__(self, channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(2 * channels, out_channels)
        self.rows = []

    def forward(self, x, edge_index):
        out = self.aggregated(x, edge_index)
        self.rows.append(len(out))
        return self.lin(torch.cat([x, out], dim=-1))

    def aggregated(self, x, edge_index, **kwargs):
        scale = x.new_full((x.shape[0], 1), 2.0)
        ones = x.new_ones(edge_index.shape[1], 1)
        return self.propagate(
            edge_index, x=x, scale=scale, ones=ones, **kwargs
        )

    def message(self, x_i, x_j, scale_j, ones):
        return (x_i - x_j) * scale_j + ones


class Updating(Near):
    """Reads all rows behind the aggregation: of pairs it knows nothing."""

    def update(self, out, x):
        return out + x


class Sized(Near):
    """Says the number of its vertices."""

    def aggregated(self, x, edge_index):
        return super().aggregated(x, edge_index, size=(len(x), len(x)))


class Halved(Near):
    """Says that messages go to other rows: the last vertex gets none."""

    def aggregated(self, x, edge_index):
        out = super().aggregated(x, edge_index, size=(len(x), len(x) - 1))
        return torch.cat([out, out[:1]])

    def message(self, x_j, scale_j, ones):
        return x_j * scale_j + ones


class Backwards(Near):
    """Sends messages to sources."""

    def __init__(self, *args):
        super().__init__(*args)
        self.flow = 'target_to_source'


class Middle(Near):
    """Has rows in the second dimension."""

    def __init__(self, *args):
        super().__init__(*args)
        self.node_dim = 1

    def forward(self, x, edge_index):
        towers = torch.stack([x, x + 1])
        out = self.propagate(edge_index, x=towers)
        self.rows.append(out.shape[1])
        return self.lin(torch.cat([x, out[0] + out[1]], dim=-1))

    def message(self, x_i, x_j):
        return x_i - 2 * x_j


@pytest.fixture
def batch():
    return batches(graph(), count=1)[0]


def read(model, batch):
    size = batch.batch_size
    out = model(batch.x, batch.edge_index)[:size]
    parameters = list(model.convs.parameters())
    return [out, *torch.autograd.grad(out.square().sum(), parameters)]


def fused_rows(kind, batch):
    """The rows that each layer aggregates, after comparing results."""
    model = Hand('', 3, kind).double()
    want = read(model, unmarked(batch))
    fuse(model, min_nodes=0, verbose=False)
    read(model, batch)
    layers = [m for m in model.modules() if isinstance(m, Near)]
    for layer in layers:
        layer.rows.clear()
    for x, y in zip(read(model, batch), want, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-9)
    return [rows for layer in layers for rows in layer.rows]


def destinations(batch):
    return [block.num_dst for block in batch.blocks]


@pytest.mark.parametrize('kind', [Near, Sized, Middle])
@pytest.mark.filterwarnings('error:fuse')
def test_messages_go_to_destinations_alone(kind, batch):
    assert fused_rows(kind, batch) == destinations(batch)


@pytest.mark.filterwarnings('error:fuse')
def test_messages_that_are_left_to_pyg_do_so_too(batch):
    class Sorting(Near):
        def message(self, x_i, x_j):
            return torch.sort(x_i - x_j, dim=-1)[0]

    assert fused_rows(Sorting, batch) == destinations(batch)


@pytest.mark.parametrize('kind', [Updating, Halved])
@pytest.mark.filterwarnings('error:fuse')
def test_layers_that_read_more_rows_compute_sources(kind, batch):
    rows = [block.num_src for block in batch.blocks]
    assert fused_rows(kind, batch) == rows


@pytest.mark.filterwarnings('ignore:fuse')
def test_layers_beyond_a_block_compute_all_rows(batch):
    assert set(fused_rows(Backwards, batch)) == {batch.num_nodes}


def products_of(model, batch):
    read(model, batch)
    with FlopCounterMode(display=False) as counter:
        read(model, batch)
    return counter.get_total_flops()


def test_products_have_the_rows_of_a_block(batch):
    degrees = torch.bincount(torch.randint(0, 8, (99,)))
    kinds = ['mean', 'std'], ['identity', 'attenuation']

    def make(channels, out_channels):
        return pyg.PNAConv(channels, out_channels, *kinds, degrees)

    model = Hand('', 3, make).double()
    fuse(model, min_nodes=0, verbose=False)
    want = 0
    for i, block in enumerate(batch.blocks):
        layer = model.convs[i]
        behind = layer.post_nns[0][0].weight.numel() + WIDTH * WIDTH
        ends = WIDTH * WIDTH * (block.num_src + block.num_dst)
        # Forward, of matrices, and of rows: features need no gradient.
        want += 2 * (3 * behind * block.num_dst + (3 if i else 2) * ends)
    head = 2 * model.lin.weight.numel() * batch.blocks[-1].num_dst
    # Of the head, the gradient of rows alone was wanted.
    assert products_of(model, batch) == want + 2 * head


def test_one_tower_of_rows_is_a_view():
    """The gradient of a selected column would be copied into zeros."""
    x = torch.randn(4, 1, 3, requires_grad=True)
    rows = first_rows(x * 2, Origin('a layer', 9))
    out = rows[:, 0]
    assert isinstance(out, FirstRows)
    names = {type(node).__name__ for node, _ in out.grad_fn.next_functions}
    assert names == {'SqueezeBackward1'}
    assert torch.equal(rows[:, -1], x[:, 0] * 2)
    two = first_rows(torch.randn(4, 2, 3), Origin('a layer', 9))
    assert torch.equal(two[:, 0], plain(two)[:, 0])
    with pytest.raises(IndexError, match='out of bounds'):
        rows[:, 1]
