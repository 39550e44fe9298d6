"""Layers whose parts are replaced, or watched, after they are fused."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch_geometric import nn as pyg

from tests.fusion.layers import WIDTH, sample
from tests.fusion.test_layers import assert_same, fused
from torch_gsample import unfuse

LAYERS = {
    'SAGEConv': lambda: pyg.SAGEConv(WIDTH, WIDTH),
    'GINConv': lambda: pyg.GINConv(nn.Linear(WIDTH, WIDTH)),
    'GCNConv': lambda: pyg.GCNConv(WIDTH, WIDTH),
    'GATConv': lambda: pyg.GATConv(WIDTH, WIDTH),
    'GraphConv': lambda: pyg.GraphConv(WIDTH, WIDTH),
}


def arguments():
    given = sample()
    return [given['x'].requires_grad_(), given['edge_index']]


@pytest.fixture(params=LAYERS)
def pair(request):
    torch.manual_seed(7)
    theirs = LAYERS[request.param]().double()
    return fused(theirs)[0], theirs


@pytest.mark.parametrize('is_called', [False, True])
def test_other_aggregations(pair, is_called):
    ours, theirs = pair
    if is_called:
        assert_same(ours, theirs, arguments())
    for layer in (ours.conv, theirs):
        layer.aggr_module = pyg.MaxAggregation()
    assert_same(ours, theirs, arguments())


def test_names_of_aggregations_are_not_read(pair):
    ours, theirs = pair
    for layer in (ours.conv, theirs):
        layer.aggr = 'max'
    assert_same(ours, theirs, arguments())


def test_hooks_of_aggregations(pair):
    ours, theirs = pair
    for layer in (ours.conv, theirs):
        layer.aggr_module.register_forward_hook(lambda _, x, out: 2 * out)
    assert_same(ours, theirs, arguments())


@pytest.mark.parametrize('part', ['propagate', 'edge_update', 'aggregate'])
def test_hooks_before_the_parts_of_a_layer_are_called(part):
    ours = fused(pyg.GATConv(WIDTH, WIDTH).double())[0]
    seen = []
    register = getattr(ours.conv, f'register_{part}_forward_pre_hook')
    register(lambda *_: seen.append(part))
    ours(*arguments())
    assert seen == [part]


def test_modules_of_messages():
    torch.manual_seed(7)
    theirs = pyg.EdgeConv(nn.Sequential(nn.Linear(16, WIDTH), nn.Tanh()))
    theirs = theirs.double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, arguments())
    for layer in (ours.conv, theirs):
        layer.nn[1] = nn.Sigmoid()
    assert_same(ours, theirs, arguments())
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('is_before', [False, True])
def test_parametrized_layers_are_copied_and_restored(is_before):
    torch.manual_seed(7)
    theirs = pyg.GATConv(WIDTH, WIDTH).double()
    if is_before:
        parametrize.register_parametrization(theirs, 'att_src', nn.Tanh())
    ours, _, _ = fused(theirs)
    if not is_before:
        for layer in (ours.conv, theirs):
            parametrize.register_parametrization(layer, 'att_src', nn.Tanh())
    copied = copy.deepcopy(ours)
    for model in (ours, copied):
        assert_same(model, theirs, arguments())
        unfuse(model)
        assert parametrize.is_parametrized(model.conv)
        assert_same(model, theirs, arguments())
