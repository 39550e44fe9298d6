"""What PyG's own tests of layers (``pyg_suite.py``) asked of fused ones."""

import copy
import warnings

import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.nn import SimpleConv

from tests.fusion import pyg_suite
from tests.fusion.test_layers import assert_same
from torch_gsample import fuse
from torch_gsample.fusion.modules import FusedLayer
from torch_gsample.vertex.capture.propagate import capture_of

WIDTH = 6


def given(nodes=30, edges=120):
    x = torch.randn(nodes, WIDTH, dtype=torch.float64, requires_grad=True)
    return x, torch.randint(nodes - 4, (2, edges))


def fused(layer, min_nodes=0):
    """A copy that is fused, as a model of its own."""
    out = copy.deepcopy(layer)
    fuse(out, min_nodes=min_nodes, verbose=False)
    return out


def test_the_plugin_fuses_the_layers_of_models():
    model = pyg.GCN(WIDTH, 4, 2)
    pyg_suite._fuse(model)
    assert all(isinstance(conv, FusedLayer) for conv in model.convs)


@pytest.mark.parametrize(
    'theirs',
    [pyg.TransformerConv(WIDTH, 4), pyg.ChebConv(WIDTH, 4, 2)],
    ids=str,
)
def test_a_layer_may_be_the_model(theirs):
    """The first one sets an attribute, its attention, in its messages."""
    theirs = theirs.double()
    ours = fused(theirs)
    assert_same(ours, theirs, given())
    assert capture_of(ours).is_fused, capture_of(ours).reason


def test_features_of_many_graphs_that_are_alike():
    """With ``node_dim = 1``; the result is contiguous, as PyG's is."""
    theirs = SimpleConv()
    theirs.node_dim = 1
    ours = fused(theirs)
    x, edges = given()
    x = torch.stack([x, -x])
    out = ours(x, edges).view(-1, WIDTH)
    torch.testing.assert_close(out, theirs(x, edges).view(-1, WIDTH))
    assert capture_of(ours).is_fused


def test_traces_are_of_pygs_code():
    theirs = SimpleConv()
    ours = fused(theirs, min_nodes=40)
    with warnings.catch_warnings():
        warnings.simplefilter('error', torch.jit.TracerWarning)
        traced = torch.jit.trace(ours, given(), check_trace=False)
    others = given(50, 200)
    torch.testing.assert_close(traced(*others), theirs(*others))
    assert not capture_of(ours).is_fused
