"""Explanations of fused layers and models are PyG's."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.explain import Explainer, GNNExplainer

from tests.fusion.models import Hand, batches, graph
from tests.fusion.test_layers import fused
from tests.fusion.test_messages import Attention, given
from torch_gsample import fuse
from torch_gsample.fusion.modules import FusedLayer


def test_explained_and_decomposed_layers_are_left_to_pyg():
    x, edges = given()
    theirs = Attention()
    ours, _, _ = fused(theirs)
    ours(x, edges)
    mask = torch.rand(edges.shape[1], dtype=torch.float64)
    for layer in (theirs, ours.conv):
        layer.explain = True
        layer._edge_mask = nn.Parameter(mask)
        layer._apply_sigmoid = False
    assert torch.equal(ours(x, edges), theirs(x, edges))
    ours.conv.explain = None
    assert ours.conv.propagate.__func__ is FusedLayer.propagate
    decomposed = pyg.LGConv(decomposed_layers=2)
    ours, capture, _ = fused(decomposed)
    assert torch.equal(ours(x, edges), decomposed(x, edges))
    assert not capture.is_fused


@pytest.mark.parametrize('name', ['GATConv', 'GCNConv', 'SAGEConv'])
@pytest.mark.parametrize('is_batch', [False, True])
@pytest.mark.filterwarnings('error:fuse')
def test_models_are_explained_after_training(name, is_batch):
    """Copies of a layer have another template of ``propagate``."""
    theirs = Hand(conv=getattr(pyg, name))
    data = graph(torch.float32)
    batch = batches(data)[0] if is_batch else data
    ours = copy.deepcopy(theirs)
    fuse(ours, min_nodes=0, verbose=False)
    ours(batch.x, batch.edge_index)
    copy.deepcopy(ours)
    found = []
    for model in (theirs, ours):
        torch.manual_seed(0)
        explainer = Explainer(
            model.eval(),
            GNNExplainer(epochs=3),
            explanation_type='model',
            node_mask_type='attributes',
            edge_mask_type='object',
            model_config={
                'mode': 'multiclass_classification',
                'task_level': 'node',
                'return_type': 'raw',
            },
        )
        found.append(explainer(batch.x, batch.edge_index, index=2))
    assert torch.allclose(found[0].edge_mask, found[1].edge_mask, atol=1e-5)
    assert torch.allclose(found[0].node_mask, found[1].node_mask, atol=1e-5)
