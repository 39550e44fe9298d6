"""Fused models compute what the same models compute on whole batches."""

from functools import partial

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from tests.fusion.models import (
    BASIC,
    METADATA,
    WIDTH,
    Branches,
    Gated,
    Hand,
    Homogeneous,
    Shared,
    Trimming,
    Typed,
    batches,
    graph,
    two_layers,
    typed_graph,
)
from torch_gsample.fusion import fuse

DEGREES = torch.bincount(torch.randint(0, 8, (99,)))
PNA = {
    'aggregators': ['mean', 'max', 'std'],
    'scalers': ['identity', 'amplification'],
    'deg': DEGREES,
}
KINDS = {
    'sage': (pyg.GraphSAGE, {}),
    'gat': (pyg.GAT, {'heads': 4, 'hidden_channels': 8}),
    'gatv2': (pyg.GAT, {'heads': 4, 'v2': True}),
    'gcn': (pyg.GCN, {}),
    'gin': (pyg.GIN, {}),
    'pna': (pyg.PNA, PNA),
    'edge_cnn': (pyg.EdgeCNN, {}),
}


def basic(kind, **kwargs):
    model, own = KINDS[kind]
    return lambda: model(**{**BASIC, **own, **kwargs})


def homogeneous(batch):
    return (batch.x, batch.edge_index), {}


def with_counts(batch):
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    return (batch.x, batch.edge_index, *counts), {}


def typed(batch):
    return (batch.x_dict, batch.edge_index_dict), {}


def whole(batch):
    return (batch,), {}


def weighted(batch):
    return (batch.x, batch.edge_index), {'edge_weight': batch.edge_w}


def with_features(batch):
    return (batch.x, batch.edge_index), {'edge_attr': batch.edge_a}


def seeds(out, batch):
    return out[: batch.batch_size]


def typed_seeds(out, batch):
    return out['a'][: batch['a'].batch_size]


def links(out, batch):
    make = torch.Generator().manual_seed(0)
    ends = torch.randint(batch.batch_size, (2, 40), generator=make)
    return (out[ends[0]] * out[ends[1]]).sum(-1)


def masked(out, batch):
    mask = batch.train_mask.clone()
    mask[batch.batch_size :] = False
    return out[mask]


class OfBatch(Hand):
    """A model that takes a batch."""

    def forward(self, batch):
        return super().forward(batch.x, batch.edge_index)


#: Model, arguments, the outputs that are read.
EXACT = {
    **{kind: (basic(kind), homogeneous, seeds) for kind in KINDS},
    **{
        f'{kind} norm elu': (
            basic(kind, norm='batch_norm', act='elu'),
            homogeneous,
            seeds,
        )
        for kind in KINDS
    },
    **{
        f'{kind} jk {jk}': (
            basic(
                kind,
                jk=jk,
                norm='layer_norm',
                norm_kwargs={'mode': 'node'},
                act_first=True,
            ),
            homogeneous,
            seeds,
        )
        for kind in ('sage', 'gcn')
        for jk in ('last', 'cat', 'max', 'lstm')
    },
    **{
        f'hand {kind}': (partial(Hand, kind), homogeneous, seeds)
        for kind in ('', 'bn', 'ln', 'residual', 'skip')
    },
    'two layers': (lambda: Hand('residual', 2), homogeneous, seeds),
    'five layers': (lambda: Hand('skip', 5), homogeneous, seeds),
    'five gcn': (lambda: Hand('', 5, pyg.GCNConv), homogeneous, seeds),
    'sequential': (lambda: two_layers(pyg.GATConv), homogeneous, seeds),
    'weighted gcn': (basic('gcn'), weighted, seeds),
    'gat edge features': (basic('gat', edge_dim=4), with_features, seeds),
    'trims': (partial(Trimming, ''), with_counts, seeds),
    'transformer': (
        lambda: Hand('', 3, pyg.TransformerConv),
        homogeneous,
        seeds,
    ),
    'leconv': (lambda: Hand('', 3, pyg.LEConv), homogeneous, seeds),
    'cluster gcn': (
        lambda: Hand('', 3, pyg.ClusterGCNConv),
        homogeneous,
        seeds,
    ),
    'links': (partial(Hand, 'bn'), homogeneous, links),
    'branches': (Branches, homogeneous, seeds),
    'one layer, often': (Shared, homogeneous, seeds),
    'one layer': (lambda: pyg.SAGEConv(WIDTH, 3), homogeneous, seeds),
    'a mask of seeds': (partial(Hand, ''), homogeneous, masked),
    'takes a batch': (partial(OfBatch, ''), whole, seeds),
    **{
        f'HeteroConv {aggr}': (partial(Typed, aggr), typed, typed_seeds)
        for aggr in ('sum', 'mean', 'max')
    },
    'to_hetero sage': (
        lambda: pyg.to_hetero(Homogeneous(), METADATA),
        typed,
        typed_seeds,
    ),
    'to_hetero gat': (
        lambda: pyg.to_hetero(
            Homogeneous(pyg.GATConv, add_self_loops=False), METADATA
        ),
        typed,
        typed_seeds,
    ),
    'to_hetero basic': (
        lambda: pyg.to_hetero(
            pyg.GraphSAGE(
                (WIDTH, WIDTH), WIDTH, 3, 5, jk='cat', norm='batch_norm'
            ),
            METADATA,
            aggr='mean',
        ),
        typed,
        typed_seeds,
    ),
}
#: As above, and some layers run on the whole batch.
#: Models with rows that depend on all others, and their warnings.
REFUSED = {
    'layer norm of graphs': (
        basic('sage', norm='layer_norm'),
        'mean over all dimensions',
    ),
    'graph norm': (partial(Hand, 'gn'), 'may read any of the'),
    'mean': (partial(Hand, 'mean'), 'mean over dimension 0'),
    'length': (partial(Hand, 'length'), 'differ'),
    'a gate of zero': (Gated, 'differ'),
}


pytestmark = pytest.mark.usefixtures('all_double')


@pytest.fixture(scope='module')
def samples(all_double):
    data, many = graph(), typed_graph()
    return {False: batches(data), True: batches(many)}


def results(model, arguments, pick, samples):
    """The outputs that are read, and the gradients of all parameters."""
    out = []
    for batch in samples:
        args, kwargs = arguments(batch)
        model.zero_grad()
        read = pick(model(*args, **kwargs), batch)
        read.pow(2).mean().backward()
        out.append(read.detach())
        for parameter in model.parameters():
            grad = parameter.grad
            out.append(torch.zeros(()) if grad is None else grad.clone())
    return out


def unmarked(batch):
    batch = batch.clone()
    for store in batch.edge_stores:
        store.edge_index = store.edge_index.plain
    return batch


def assert_same(model, arguments, pick, samples):
    plain = [unmarked(batch) for batch in samples]
    if any(nn.parameter.is_lazy(p) for p in model.parameters()):
        args, kwargs = arguments(plain[0])
        model(*args, **kwargs)
    model.eval()
    want = results(model, arguments, pick, plain)
    fusion = fuse(model, min_nodes=0, verbose=False)
    got = results(model, arguments, pick, samples)
    largest = max(float(x.abs().max()) for x in want if x.numel())
    for x, y in zip(got, want, strict=True):
        assert x.shape == y.shape
        assert x.numel() == 0 or float((x - y).abs().max()) < 1e-9 * largest
    return fusion


@pytest.mark.parametrize('kind', EXACT)
@pytest.mark.filterwarnings('error:fuse')
def test_results_and_gradients_are_the_same(kind, samples):
    make, arguments, pick = EXACT[kind]
    torch.manual_seed(1)
    batch = samples[arguments is typed]
    report = assert_same(make(), arguments, pick, batch).report()
    assert 'the seeds' in report
    assert 'whole batch' not in report


@pytest.mark.parametrize('kind', REFUSED)
def test_models_that_mix_rows_run_on_whole_batches(kind, samples):
    make, why = REFUSED[kind]
    torch.manual_seed(1)
    with pytest.warns(
        UserWarning, match='runs on whole batches.*' + why
    ) as seen:
        fusion = assert_same(make(), homogeneous, seeds, samples[False])
    assert len([w for w in seen if 'fuse:' in str(w.message)]) == 1
    assert 'whole batches' in fusion.report()
