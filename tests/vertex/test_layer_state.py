"""The properties of a layer that its messages may depend on."""

import torch
from torch import nn
from torch_geometric import nn as pyg

from torch_gsample.vertex.capture.state import state_of, tensors_in


def state(layer):
    return state_of(layer.modules())


def test_state_follows_changes_of_a_layer():
    layer = pyg.GINConv(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)))
    layer.sizes = [1, 2]
    known = {state(layer)}

    def changed():
        before = len(known)
        known.add(state(layer))
        return len(known) > before

    assert not changed()
    layer.aggr = 'max'
    assert changed()
    layer.nn[1].p = 0.2
    assert changed()
    layer.sizes.append(3)
    assert changed()
    layer.scale = torch.relu
    assert changed()
    layer.eval()
    assert changed()
    layer.double()
    assert changed()
    layer.nn[0].bias = None
    assert changed()


def test_values_of_parameters_and_hooks_are_no_state():
    layer = pyg.SAGEConv(2, 2)
    before = state(layer)
    layer.lin_l.weight.data.zero_()
    layer.register_forward_hook(print)
    assert state(layer) == before
    hash(before)


def test_tensors_are_found_in_nested_arguments():
    x, y = torch.ones(1), torch.ones(2)
    found = tensors_in([x, (None, y), 3, {'a': [x]}])
    assert [id(z) for z in found] == [id(x), id(y), id(x)]
