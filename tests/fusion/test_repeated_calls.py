"""Checkpoints of models and of their parts that run on whole batches."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import SAGEConv

from tests.fusion.models import WIDTH, batches, graph
from torch_gsample import fuse
from torch_gsample.fusion import AutomaticFusion
from torch_gsample.fusion.fused_model import FusedModel


class Encoder(nn.Module):
    """A part that is a model, too."""

    def __init__(self):
        super().__init__()
        self.a, self.b = SAGEConv(WIDTH, WIDTH), SAGEConv(WIDTH, WIDTH)

    def forward(self, x, edge_index):
        return self.b(self.a(x, edge_index).relu(), edge_index)


class Model(nn.Module):
    """A model whose norm reads all rows in training."""

    def __init__(self, norm, inside=False, more=False):
        super().__init__()
        self.first, self.encoder, self.norm = (
            nn.Linear(WIDTH, WIDTH),
            Encoder(),
            norm,
        )
        self.inside = inside
        self.last = SAGEConv(WIDTH, WIDTH) if more else None

    def forward(self, x, edge_index):
        x = self.first(x)
        if self.inside:
            x = checkpoint(self.encoder, x, edge_index, use_reentrant=False)
        else:
            x = self.encoder(x, edge_index)
        x = self.norm(x)
        return x if self.last is None else self.last(x, edge_index)


def assert_same(ours, theirs, samples):
    found, want = gradients(ours, samples), gradients(theirs, samples)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)


KINDS = {
    'a whole model': lambda: Model(nn.BatchNorm1d(WIDTH)),
    'a part of a whole model': lambda: Model(
        nn.BatchNorm1d(WIDTH), inside=True
    ),
    'a part of a model on blocks': lambda: Model(nn.ReLU(), inside=True),
    'a part before a layer': lambda: Model(nn.ReLU(), True, True),
}


@pytest.fixture(scope='module')
def samples():
    return batches(graph(torch.float32), count=3)


def gradients(model, samples):
    """The gradients of checkpointed steps."""
    found = []
    for batch in samples:
        x = batch.x
        if model.inside:
            out = model(x, batch.edge_index)
        else:
            out = checkpoint(model, x, batch.edge_index, use_reentrant=False)
        out = out[: batch.batch_size]
        model.zero_grad()
        out.square().sum().backward()
        found += [p.grad.clone() for p in model.parameters()]
    return found


@pytest.mark.parametrize('name', KINDS)
@pytest.mark.filterwarnings('ignore:fuse')
def test_checkpoints_repeat_calls_as_they_were(name, samples):
    torch.manual_seed(0)
    theirs = KINDS[name]()
    ours = copy.deepcopy(theirs)
    fuse(ours, min_nodes=0, verbose=False)
    assert_same(ours, theirs, samples)


def called_in(*checkpointed):
    """Returns a loss of a part alone, and then in its model."""

    def call(module, name, x, edge_index):
        if name not in checkpointed:
            return module(x, edge_index)
        return checkpoint(module, x, edge_index, use_reentrant=False)

    def loss(model, batch):
        args = batch.x, batch.edge_index
        alone = call(model.encoder, 'part', *args)[: batch.batch_size]
        out = call(model, 'model', *args)[: batch.batch_size]
        return alone.square().sum() + out.square().sum()

    return loss


@pytest.mark.parametrize('inside', [False, True])
@pytest.mark.parametrize('names', [('part',), ('part', 'model'), ('model',)])
@pytest.mark.filterwarnings('ignore:fuse')
def test_a_part_alone_and_in_its_model(names, inside, samples):
    torch.manual_seed(0)
    theirs = Model(nn.ReLU(), inside, more=True)
    ours = copy.deepcopy(theirs)
    fuse(ours, min_nodes=0, verbose=False)
    loss = called_in(*names)
    for batch in samples:
        found, want = (
            torch.autograd.grad(loss(m, batch), list(m.parameters()))
            for m in (ours, theirs)
        )
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('name', KINDS)
@pytest.mark.filterwarnings('ignore:fuse')
def test_checkpoints_of_a_model_with_a_part_that_is_a_model(name, samples):
    torch.manual_seed(0)
    theirs = KINDS[name]()
    ours = copy.deepcopy(theirs)
    fusion = AutomaticFusion(min_nodes=0)
    try:
        for batch in samples:
            out = ours.encoder(batch.x, batch.edge_index)
            out[: batch.batch_size].sum()
        for _ in range(2):
            gradients(ours, samples)
        assert isinstance(ours.encoder, FusedModel)
        assert isinstance(ours, FusedModel)
        found = gradients(ours, samples)
    finally:
        fusion.undo()
    torch.testing.assert_close(
        found, gradients(theirs, samples), rtol=1e-4, atol=1e-4
    )
