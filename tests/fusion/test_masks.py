"""Edges that a mask keeps have blocks, as of `dropout_edge`."""

import pickle

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.utils import dropout_edge, dropout_node

from tests.fusion.models import (
    EDGE_TYPES,
    WIDTH,
    Typed,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_exact import assert_same, seeds, typed_seeds
from tests.fusion.test_exact import typed as of_types
from torch_gsample.loader.batch_edge_index import BatchEdgeIndex


@pytest.fixture(scope='module')
def sample():
    return batches(graph(), count=1)[0]


def mask_of(edge_index):
    make = torch.Generator().manual_seed(2)
    return torch.rand(edge_index.shape[1], generator=make) < 0.6


@pytest.mark.parametrize('every', [slice(None), ...])
@pytest.mark.parametrize('is_padded', [False, True])
def test_each_block_has_the_edges_that_are_kept(every, is_padded):
    options = {'static_shapes': True} if is_padded else {}
    edge_index = batches(graph(), count=1, **options)[0].edge_index
    mask = mask_of(edge_index)
    out = pickle.loads(pickle.dumps(edge_index[every, mask]))
    assert torch.equal(out, edge_index.plain[:, mask])
    for level in range(4):
        whole, block = edge_index.block(level), out.block(level)
        kept = mask[: whole.num_edges]
        want = whole.edge_index[:, kept]
        assert block.size == whole.size
        assert torch.equal(block.edge_index, want)
        degree = want[1].bincount(minlength=block.num_dst)
        assert torch.equal(block.csc.degree(), degree.int())
    again = out[:, mask_of(out)]
    assert again.block(0).num_edges == int(
        mask_of(out)[: out.block(0).num_edges].sum()
    )


INDICES = {
    'positions': lambda x, mask: x[:, mask.nonzero().view(-1)],
    'a list': lambda x, mask: x[:, mask.tolist()],
    'every position': lambda x, mask: x[:, torch.arange(len(mask)).flip(0)],
    'all': lambda x, mask: x[mask.expand(2, -1)],
    'some ends': lambda x, mask: x[:1, mask],
    'changed': lambda x, mask: x.index_fill_(1, mask.nonzero()[0], 0)[:, mask],
}


@pytest.mark.parametrize('kind', INDICES)
def test_other_indices_are_plain(kind, sample):
    edge_index = sample.edge_index.clone()
    mask = mask_of(edge_index)
    out = INDICES[kind](edge_index, mask)
    assert type(out) is Tensor
    assert torch.equal(
        out, INDICES[kind](sample.edge_index.plain.clone(), mask)
    )


def test_a_mask_of_other_length_is_an_error_of_torch(sample):
    with pytest.raises(IndexError, match='The shape of the mask'):
        sample.edge_index[:, torch.ones(3, dtype=torch.bool)]


class Dropped(nn.Module):
    """Other edges in each layer, or the same in all of them."""

    def __init__(self, conv, drop=dropout_edge, is_one=False, **kwargs):
        super().__init__()
        self.convs = nn.ModuleList(conv(WIDTH, WIDTH, **kwargs) for _ in '123')
        self.drop, self.is_one = drop, is_one

    def dropped(self, edge_index, edge_attr):
        torch.manual_seed(4)
        edges, mask, *_ = self.drop(edge_index, p=0.4, training=True)
        if self.drop is dropout_edge:
            return edges, edge_attr[mask]
        return edges, None

    def forward(self, x, edge_index, edge_attr):
        edges, attr = self.dropped(edge_index, edge_attr)
        for conv in self.convs:
            kwargs = {}
            if getattr(conv, 'edge_dim', None):
                kwargs['edge_attr'] = attr
            x = conv(x, edges, **kwargs).relu()
            if not self.is_one:
                edges, attr = self.dropped(edge_index, edge_attr)
        return x


def with_attributes(batch):
    return (batch.x, batch.edge_index, batch.edge_a), {}


@pytest.mark.usefixtures('double')
@pytest.mark.filterwarnings('error:fuse')
@pytest.mark.parametrize(
    ('conv', 'options'),
    [
        (pyg.SAGEConv, {}),
        (pyg.SAGEConv, {'is_one': True}),
        (pyg.GCNConv, {}),
        (pyg.ARMAConv, {}),
        (pyg.TAGConv, {'K': 1}),
        (pyg.GATv2Conv, {'edge_dim': 4}),
        (pyg.TransformerConv, {'edge_dim': 4, 'is_one': True}),
        (pyg.PNAConv, {'aggregators': ['max'], 'scalers': ['identity']}),
    ],
)
def test_models_that_drop_edges_compute_blocks(conv, options):
    if conv is pyg.PNAConv:
        options = options | {'deg': torch.tensor([1, 2, 3])}
    model = Dropped(conv, **options)
    report = assert_same(model, with_attributes, seeds, batches(graph()))
    assert report.report().count('exact block') == 3
    assert 'computes the seeds' in report.report()


class TypedDropped(Typed):
    """A stack of HeteroConv with a mask for each relation."""

    def forward(self, x, edge_index):
        torch.manual_seed(4)
        edges = {
            key: dropout_edge(value, p=0.4)[0]
            for key, value in edge_index.items()
        }
        return super().forward(x, edges)


@pytest.mark.usefixtures('double')
@pytest.mark.filterwarnings('error:fuse')
def test_typed_models_that_drop_edges_compute_blocks():
    model, samples = TypedDropped(), batches(typed_graph())
    report = assert_same(model, of_types, typed_seeds, samples).report()
    assert report.count('exact block') == 3 * len(EDGE_TYPES)


@pytest.mark.usefixtures('double')
@pytest.mark.filterwarnings('error:fuse')
def test_models_that_drop_nodes_compute_blocks():
    model = Dropped(pyg.SAGEConv, dropout_node)
    report = assert_same(model, with_attributes, seeds, batches(graph()))
    assert report.report().count('exact block') == 3


def test_kept_edges_are_edges_of_a_batch(sample):
    out = sample.edge_index[:, mask_of(sample.edge_index)]
    assert type(out) is BatchEdgeIndex
    assert out.is_known
    out[0, 0] += 1
    assert not out.is_known
