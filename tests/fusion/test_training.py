"""Fused models learn as the same models do, step by step."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn import SAGEConv

from tests.fusion.models import (
    BASIC,
    METADATA,
    Hand,
    Homogeneous,
    Typed,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_exact import unmarked
from torch_gsample.fusion import fuse
from torch_gsample.loader import LinkNeighborLoader
from torch_gsample.loader.batch_edge_index import reading_marks

MODELS = {
    'sage': lambda: pyg.GraphSAGE(**BASIC),
    'gcn': lambda: pyg.GCN(**BASIC),
    'gat': lambda: pyg.GAT(**BASIC, heads=4),
    'gin': lambda: pyg.GIN(**BASIC),
    'hand-written': lambda: Hand('residual'),
    'relations': lambda: Relations(),
    'to_hetero': lambda: pyg.to_hetero(Homogeneous(), METADATA),
    'HeteroConv': Typed,
}


class Relations(Hand):
    """R-GCN on typed edges."""

    def __init__(self):
        super().__init__('', 2, lambda i, o: pyg.RGCNConv(i, o, 3))

    def forward(self, x, edge_index, edge_type):
        for conv in self.convs:
            x = conv(x, edge_index, edge_type).relu()
        return self.lin(x)


@pytest.fixture(scope='module')
def samples():
    data = graph(torch.float32)
    data.kind = torch.arange(data.num_edges) % 3
    many = typed_graph(torch.float32)
    return {False: batches(data, count=6), True: batches(many, count=6)}


def losses(model, samples):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    out = []
    for batch in samples:
        if isinstance(model, Relations):
            scores = model(batch.x, batch.edge_index, batch.kind)
        elif hasattr(batch, 'x_dict'):
            scores = model(batch.x_dict, batch.edge_index_dict)['a']
            batch = batch['a']
        else:
            scores = model(batch.x, batch.edge_index)
        size = batch.batch_size
        loss = F.cross_entropy(scores[:size], batch.y[:size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


@pytest.mark.parametrize('kind', MODELS)
@pytest.mark.filterwarnings('error:fuse')
def test_losses_are_those_of_pyg(kind, samples):
    model = MODELS[kind]()
    found = samples[kind in ('to_hetero', 'HeteroConv')]
    again = copy.deepcopy(model)
    want = losses(again, [unmarked(batch) for batch in found])
    fusion = fuse(model, min_nodes=0, verbose=False)
    got = losses(model, found)
    assert 'blocks' in fusion.report().splitlines()[0]
    assert want[0] != pytest.approx(want[-1], abs=1e-3)
    assert got == pytest.approx(want, abs=1e-5)


def normalizing(width, out):
    return pyg.GINConv(
        nn.Sequential(nn.Linear(width, out), nn.BatchNorm1d(out))
    )


@pytest.mark.parametrize(
    ('make', 'why'),
    [
        (lambda: Hand('bn'), 'batch_norm'),
        (lambda: Hand('', 3, normalizing), 'a batch norm in training'),
    ],
    ids=['of the model', 'of a layer'],
)
def test_batch_norms_in_training_take_whole_batches(make, why, samples):
    model = make()
    again = copy.deepcopy(model)
    want = losses(again, [unmarked(batch) for batch in samples[False]])
    fuse(model, min_nodes=0, verbose=False)
    with pytest.warns(UserWarning, match=f'in training.*{why}') as seen:
        got = losses(model, samples[False])
    assert len([w for w in seen if 'fuse:' in str(w.message)]) == 1
    assert got == pytest.approx(want, abs=1e-5)
    model.eval()  # where they have statistics of their own
    batch = samples[False][0]
    assert len(model(batch.x, batch.edge_index)) == batch.batch_size


@pytest.mark.parametrize(
    'make',
    [
        lambda: Hand('bn'),
        lambda: pyg.GraphSAGE(**BASIC, norm='layer_norm'),
        lambda: pyg.GIN(**BASIC, norm='batch_norm'),
    ],
    ids=['BatchNorm', 'LayerNorm', 'in a layer'],
)
@pytest.mark.filterwarnings('error:fuse')
def test_norms_over_computed_rows_by_choice(make, samples):
    model = make()
    fuse(model, min_nodes=0, statistics='computed', verbose=False)
    batch = samples[False][0]
    out = model(batch.x, batch.edge_index)
    assert len(out) == batch.batch_size
    losses(model, samples[False])


def test_dropout_draws_once_a_step(samples):
    """The plan leaves the caller's generator alone."""
    model = Hand('')
    batch = samples[False][0]
    fuse(model, min_nodes=0, verbose=False)
    state = torch.get_rng_state()
    model(batch.x, batch.edge_index)
    assert torch.equal(torch.get_rng_state(), state)


def test_links_of_unchanged_models():
    data = graph(torch.float32)
    with reading_marks():
        loader = LinkNeighborLoader(
            data, [3, 2], batch_size=10, neg_sampling='binary', seed=0
        )
        batch = next(iter(loader))
    model = pyg.Sequential(
        'x, edge_index',
        [
            (SAGEConv(8, 8), 'x, edge_index -> x'),
            (SAGEConv(8, 8), 'x, edge_index -> x'),
        ],
    )

    def score(batch):
        out = model(batch.x, batch.edge_index)
        ends = batch.edge_label_index
        return (out[ends[0]] * out[ends[1]]).sum(-1)

    want = score(unmarked(batch))
    fuse(model, min_nodes=0, verbose=False)
    assert torch.allclose(score(batch), want, atol=1e-6)
