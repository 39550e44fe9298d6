"""Blocks of layers that normalise by degrees, and that read several hops."""

import gc

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from tests.fusion.models import (
    WIDTH,
    Hand,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_exact import (
    assert_same,
    homogeneous,
    seeds,
)
from torch_gsample import fuse
from torch_gsample.fusion import hops, record
from torch_gsample.fusion.hops import Hops
from torch_gsample.vertex.kernels import layouts

W = WIDTH


pytestmark = pytest.mark.usefixtures('double')


def looped(**kwargs):
    """Batches with self-loops, of which some nodes have two."""
    data = graph()
    own = torch.arange(0, 300, 2).repeat(2)
    data.edge_index[:, : own.numel()] = own
    return batches(data, **kwargs)


class Stack(nn.Module):
    """Two layers that take more than features and edges."""

    def __init__(self, make, call):
        super().__init__()
        self.first, self.last = nn.Linear(W, W), nn.Linear(W, W)
        self.convs = nn.ModuleList(make() for _ in range(2))
        self.call = call

    def forward(self, x, edge_index):
        make = torch.Generator().manual_seed(5)
        edges = torch.rand(edge_index.shape[1], 4, generator=make)
        x = x_0 = self.first(x)
        for conv in self.convs:
            x = self.call(conv, x, x_0, edge_index, edges).tanh()
        return self.last(x)


def alone(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index)


def weighted(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index, edges[:, 0] + 0.1)


def resting(conv, x, x_0, edge_index, edges):
    return conv(x, x_0, edge_index)


def featured(conv, x, x_0, edge_index, edges):
    return conv(x, edge_index, edges)


class Own(pyg.MessagePassing):
    """A layer of a user that normalises, and reads the weights twice."""

    def __init__(self):
        super().__init__('sum')
        self.lin = nn.Linear(W, W)

    def forward(self, x, edge_index):
        edge_index, weight = norm(edge_index, num_nodes=len(x), improved=True)
        out = self.propagate(edge_index, x=(x, x), weight=weight.square())
        return self.lin(out + x[: len(out)])

    def message(self, x_i, x_j, weight):
        return (x_i - x_j) * weight.view(-1, 1)


norm = gcn_norm  # by another name
NORMALISING = {
    'LGConv': (pyg.LGConv, alone),
    'LGConv weighted': (pyg.LGConv, weighted),
    'GCN2Conv': (lambda: pyg.GCN2Conv(W, 0.1), resting),
    'GCN2Conv, two matrices': (
        lambda: pyg.GCN2Conv(W, 0.1, 0.5, 2, shared_weights=False),
        resting,
    ),
    'FAConv': (lambda: pyg.FAConv(W), resting),
    'PDNConv': (lambda: pyg.PDNConv(W, W, 4, 8), featured),
    'EGConv': (
        lambda: pyg.EGConv(W, W, ['sum', 'symnorm', 'max'], 4, 2),
        alone,
    ),
    'EGConv of one': (lambda: pyg.EGConv(W, W, ['symnorm'], 4, 2), alone),
    'ARMAConv of one': (lambda: pyg.ARMAConv(W, W, 3, 1), alone),
    'of a user': (Own, alone),
}
SEVERAL = {
    'ChebConv': (lambda: pyg.ChebConv(W, W, 3), alone),
    'SGConv': (lambda: pyg.SGConv(W, W, 2), alone),
    'SGConv weighted': (lambda: pyg.SGConv(W, W, 2), weighted),
    'SSGConv': (lambda: pyg.SSGConv(W, W, 0.1, 2), alone),
    'TAGConv': (lambda: pyg.TAGConv(W, W, 2), alone),
    'TAGConv without a norm': (
        lambda: pyg.TAGConv(W, W, 2, normalize=False),
        weighted,
    ),
    'APPNP': (lambda: pyg.APPNP(2, 0.1), alone),
    'APPNP weighted': (lambda: pyg.APPNP(2, 0.1), weighted),
    'APPNP with dropout': (lambda: pyg.APPNP(2, 0.1, dropout=0.5), alone),
    'MixHopConv': (lambda: pyg.MixHopConv(W, W // 2, [0, 2]), alone),
    'ARMAConv': (lambda: pyg.ARMAConv(W, W, 3, 2), alone),
    'GatedGraphConv': (lambda: pyg.GatedGraphConv(W, 2), alone),
}


@pytest.mark.parametrize('case', NORMALISING)
@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_degrees_of_a_block_are_those_of_the_batch(case, make):
    report = assert_same(
        Stack(*NORMALISING[case]), homogeneous, seeds, make()
    ).report()
    assert report.count('exact block, computes') == 2
    assert 'the seeds' in report
    assert 'the nodes of 1 hop' in report


@pytest.mark.parametrize('case', SEVERAL)
@pytest.mark.parametrize('make', [lambda: batches(graph()), looped])
@pytest.mark.filterwarnings('error:fuse')
def test_layers_of_two_hops_compute_blocks(case, make):
    report = assert_same(
        Stack(*SEVERAL[case]), homogeneous, seeds, make()
    ).report()
    assert report.count('exact block of 2 hops, computes') == 2
    assert 'the seeds' in report
    assert 'the nodes of 2 hops' in report


@pytest.mark.filterwarnings('error:fuse')
def test_each_propagation_has_the_rows_that_the_next_one_reads(monkeypatch):
    seen, own = [], Hops.destinations

    def recorded(self, layer, edge_index, values):
        edge_index, values = own(self, layer, edge_index, values)
        rows = [len(x) for x in values['x']]
        seen.append((rows, edge_index.shape[1], len(values['edge_weight'])))
        return edge_index, values

    batch = looped()[0]
    model = Hand('', 2, lambda *_: pyg.SGConv(W, W, 2))
    model.convs[1].K = 1
    fusion = fuse(model, min_nodes=0, verbose=False)
    model(batch.x, batch.edge_index)
    assert 'block of 2 hops, computes the nodes of 1 hop' in fusion.report()
    monkeypatch.setattr(Hops, 'destinations', recorded)
    model(batch.x, batch.edge_index)
    row, col = batch.edge_index.plain
    for (rows, edges, weights), block in zip(seen, batch.blocks, strict=True):
        assert rows == [block.num_src, block.num_dst]
        kept = (row != col) & (col < block.num_dst)
        assert edges == weights == int(kept.sum()) + block.num_dst


@pytest.mark.filterwarnings('error:fuse')
def test_typed_and_padded_batches_have_degrees_of_the_batch():
    def of_a(batch):
        return (batch.x_dict['a'], batch['a', 'cites', 'a'].edge_index), {}

    samples = batches(typed_graph())
    for batch in samples:
        batch.batch_size = batch['a'].batch_size
    make = lambda *_: pyg.SGConv(W, W, 2)  # noqa: E731
    report = assert_same(Hand('', 2, make), of_a, seeds, samples).report()
    assert report.count('exact block of 2 hops') == 2
    padded = batches(graph(), static_shapes=True)
    model = Hand('', 2, make)
    report = assert_same(model, homogeneous, seeds, padded).report()
    assert report.count('exact block of 2 hops') == 2


@pytest.mark.filterwarnings('error:fuse')
def test_a_batch_of_one_hop_shows_no_second_one():
    """By one hop alone, a layer would seem to read no further."""
    data = graph()
    model = Hand('', 1, lambda *_: pyg.TAGConv(W, W, 2, normalize=False))
    fusion = fuse(model, min_nodes=0, verbose=False)
    batch = batches(data, [3])[0]
    model(batch.x, batch.edge_index)
    assert 'exact block of 2 hops' in fusion.report()


@pytest.mark.filterwarnings('error:fuse')
def test_degrees_of_a_part_are_refused_whatever_they_are(monkeypatch):
    """A batch could have the same ones by chance."""
    forms = ['pair', 'rows', 'square']
    monkeypatch.setattr(record, 'forms_for', lambda *_: forms)
    report = assert_same(
        Stack(pyg.LGConv, alone), homogeneous, seeds, batches(graph())
    ).report()
    assert report.count('it needs the in-degrees of its sources') == 2


@pytest.mark.filterwarnings('error:fuse')
def test_dropout_of_edges_runs_on_blocks_in_training():
    batch = batches(graph())[0]
    model = Stack(lambda: pyg.APPNP(2, 0.1, dropout=1e-13), alone)
    count = batch.batch_size
    want = model(batch.x, batch.edge_index.plain)[:count]
    fuse(model, min_nodes=0, verbose=False)
    out = model(batch.x, batch.edge_index)
    assert len(out) == count
    torch.testing.assert_close(out[:count], want, rtol=1e-9, atol=1e-9)


class Repeated(nn.Module):
    """One layer of two hops twice, whose activations are not kept."""

    def __init__(self):
        super().__init__()
        self.first, self.conv = nn.Linear(W, W), pyg.TAGConv(W, W, 2)

    def forward(self, x, edge_index):
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self.conv, x, edge_index, use_reentrant=False)
        return x


@pytest.mark.filterwarnings('error:fuse')
def test_a_checkpoint_of_several_hops_recomputes_its_own_blocks():
    data = graph(num_nodes=900)
    samples = batches(data, (2, 2, 2, 2))
    report = assert_same(Repeated(), homogeneous, seeds, samples).report()
    assert report.count('exact block of 2 hops') == 2


class Copied(pyg.LGConv):
    """Copies the normalised edges before it propagates."""

    def forward(self, x, edge_index):
        edge_index, weight = gcn_norm(edge_index, None, len(x))
        return self.propagate(edge_index.clone(), x=x, edge_weight=weight * 2)


@pytest.mark.filterwarnings('error:fuse')
def test_copies_of_normalised_edges_have_blocks():
    report = assert_same(
        Stack(Copied, alone), homogeneous, seeds, batches(graph())
    ).report()
    assert report.count('exact block, computes') == 2


class Again(pyg.LGConv):
    """Normalises edges that it has changed."""

    def forward(self, x, edge_index):
        edge_index, weight = gcn_norm(edge_index.flip(0), None, len(x))
        return self.propagate(edge_index, x=x, edge_weight=weight)


@pytest.mark.filterwarnings('ignore:fuse')
def test_changed_edges_are_not_normalised_as_those_of_the_batch():
    report = assert_same(
        Stack(Again, alone), homogeneous, seeds, batches(graph())
    ).report()
    assert 'edges of its own' in report


@pytest.mark.filterwarnings('error:fuse')
@pytest.mark.parametrize('mode', [torch.no_grad, torch.inference_mode])
def test_normalised_edges_are_made_once_a_batch(monkeypatch, mode):
    calls, own = [], hops._normed

    def counted(*args, **kwargs):
        calls.append(args[0])
        return own(*args, **kwargs)

    model = Stack(lambda: pyg.GCN2Conv(W, 0.1), resting)
    fuse(model, min_nodes=0, verbose=False)
    first, second = batches(graph())
    model(first.x, first.edge_index)
    monkeypatch.setattr(hops, '_normed', counted)
    for batch in (first, second):
        with mode():
            model(batch.x, batch.edge_index)
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        out.square().sum().backward()
    assert len(calls) == 1
    assert all(p.grad is not None for p in model.convs.parameters())
    alive = len(hops._normalized)
    del first, second, batch, out, calls[:]
    gc.collect()
    assert len(hops._normalized) == alive - 2


def test_other_calls_of_a_layer_normalise_their_own_edges():
    """The layer of a fused model is that of other models, too."""
    model = Stack(pyg.LGConv, alone)
    forward = pyg.LGConv.forward
    fuse(model, min_nodes=0, verbose=False)
    batch = batches(graph())[0]
    model(batch.x, batch.edge_index)
    assert pyg.LGConv.forward is forward
    assert forward.__globals__['gcn_norm'] is gcn_norm
    edge_index = batch.edge_index.plain
    torch.testing.assert_close(
        model.convs[0](batch.x, edge_index),
        pyg.LGConv()(batch.x, edge_index),
    )


SERVED = {
    'PDNConv': NORMALISING['PDNConv'],
    'SGConv': SEVERAL['SGConv'],
    'APPNP weighted': SEVERAL['APPNP weighted'],
    'SAGEConv': (lambda: pyg.SAGEConv(W, W), alone),
    'GCNConv': (lambda: pyg.GCNConv(W, W), alone),
    'GATConv': (lambda: pyg.GATConv(W, W), alone),
}


@pytest.mark.parametrize('case', SERVED)
@pytest.mark.filterwarnings('error:fuse')
def test_batches_of_inference_serve_training(case):
    model = Stack(*SERVED[case])
    fuse(model, min_nodes=0, verbose=False)
    first, second = batches(graph())
    model(first.x, first.edge_index)  # the plan
    with torch.inference_mode():
        model(second.x, second.edge_index)
    out = model(second.x, second.edge_index)[: second.batch_size]
    out.square().sum().backward()


@pytest.mark.parametrize('case', ['SGConv', 'LGConv', 'TransformerConv'])
@pytest.mark.filterwarnings('error:fuse')
def test_edges_of_blocks_are_not_sorted_again(monkeypatch, case):
    known = SEVERAL | NORMALISING
    make = lambda: pyg.TransformerConv(W, W)  # noqa: E731
    model = Stack(*known.get(case, (make, alone)))
    fuse(model, min_nodes=0, verbose=False)
    first, second = batches(graph())
    model(first.x, first.edge_index)
    monkeypatch.setattr(layouts, '_make', None)  # which sorts
    out = model(second.x, second.edge_index)[: second.batch_size]
    out.square().sum().backward()
