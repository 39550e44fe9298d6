"""Features of edges reach the layers that take them."""

import numpy as np
import pytest
import torch
from torch_geometric import nn as pyg
from torch_geometric.data import HeteroData

from tests.storage.inference.models import (
    DISK,
    EDGES,
    NODES,
    WIDTH,
    X,
    basic,
    random,
    smallest,
)
from torch_gsample.storage import FeatureFile, infer

WEIGHT = random(EDGES.shape[1], seed=1).abs()
ATTR = random(EDGES.shape[1], 3, seed=2)


class TwoLayers(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = first(WIDTH, 8), second(8, 5)
        self.eval()

    def forward(self, x, edge_index, value):
        return self.second(self.first(x, edge_index, value), edge_index, value)


def transformer(rows, cols):
    return pyg.TransformerConv(rows, cols, edge_dim=3)


def gine(rows, cols):
    return pyg.GINEConv(torch.nn.Linear(rows, cols), edge_dim=3)


def gat(rows, cols):
    return pyg.GATConv(rows, cols, edge_dim=3)


def summed(rows, cols):
    return pyg.GCNConv(rows, cols, normalize=False)


MODELS = {
    'graph_conv': (pyg.GraphConv, WEIGHT),
    'gcn, sums': (summed, WEIGHT),
    'transformer': (transformer, ATTR),
    'gine': (gine, ATTR),
    'gat': (gat, ATTR),
}


@pytest.mark.parametrize('name', MODELS)
def test_outputs_are_those_in_memory(graph, tmp_path, name):
    kind, value = MODELS[name]
    model = TwoLayers(kind, kind)
    want, outs = model(X, EDGES, value), []
    np.save(tmp_path / 'e.npy', value.numpy())
    file = value if value.dim() > 1 else value[:, None]
    file = FeatureFile.write(tmp_path / 'e', file)
    forms = [value, np.load(tmp_path / 'e.npy', 'r')]
    forms += [file] if value.dim() > 1 else []
    for i, form in enumerate(forms):
        for j, where in enumerate((graph, EDGES)):

            def call(memory, form=form, where=where, name=f'{i}{j}'):
                return infer(
                    model,
                    where,
                    X,
                    layers=[model.first, model.second],
                    edge_features=form,
                    out=tmp_path / f'out{name}',
                    memory=memory,
                    disk=DISK,
                )

            _, out = smallest(call)
            assert torch.allclose(out[:], want, atol=1e-4)
            outs.append(out[:])
    assert all(torch.equal(out, outs[0]) for out in outs)


def test_functions_take_one_more_argument(graph, tmp_path):
    def layer(pair, edge_index, value):
        assert value.shape == (edge_index.shape[1], 3)
        out = torch.zeros(len(pair[1]), 3)
        return out.index_add_(0, edge_index[1], value)

    class Empty(torch.nn.Module):
        pass

    out = infer(
        Empty().eval(),
        graph,
        X,
        layers=[layer],
        edge_features=ATTR,
        out=tmp_path / 'out',
    )
    want = torch.zeros(NODES, 3).index_add_(0, EDGES[1], ATTR)
    assert torch.allclose(out[:], want, atol=1e-5)


REFUSED = {
    r'a row for each of 3000 edges \(got 3\)': (pyg.GraphConv, ATTR[:3]),
    r'layer 0 SAGEConv: SAGEConv has no argument': (pyg.SAGEConv, WEIGHT),
    r'GCNConv needs them for the whole graph': (pyg.GCNConv, WEIGHT),
    r"of the edge types \[None\] \(got 'a'\)": (pyg.GraphConv, {'a': ATTR}),
}


@pytest.mark.parametrize('message', REFUSED)
def test_arguments_are_checked(graph, tmp_path, message):
    kind, value = REFUSED[message]
    model = TwoLayers(kind, kind)
    layers = [model.first, model.second]
    with pytest.raises(ValueError, match=message):
        infer(
            model,
            graph,
            X,
            layers=layers,
            edge_features=value,
            out=tmp_path / 'out',
        )


def test_other_features_are_another_call(graph, tmp_path):
    model = TwoLayers(pyg.GraphConv, pyg.GraphConv)
    options = {'layers': [model.first, model.second], 'out': tmp_path / 'out'}

    def broken(pair, edge_index, value):
        raise RuntimeError('no more')

    with pytest.raises(RuntimeError, match='no more'):
        infer(
            model,
            graph,
            X,
            **options | {'layers': [model.first, broken]},
            edge_features=WEIGHT,
        )
    with pytest.raises(ValueError, match='restart'):
        infer(
            model,
            graph,
            X,
            **options | {'layers': [model.first, broken]},
            edge_features=WEIGHT + 1,
        )


def test_edges_of_types_have_their_own(tmp_path):
    torch.manual_seed(0)
    data = HeteroData()
    data['a'].x, data['b'].x = random(40, 4), random(50, 4, seed=1)
    ab, ba = ('a', 'to', 'b'), ('b', 'to', 'a')
    data[ab].edge_index = torch.stack(
        [torch.randint(40, (300,)), torch.randint(50, (300,))]
    )
    data[ba].edge_index = data[ab].edge_index.flip(0)
    bb = 'b', 'to', 'b'
    data[bb].edge_index = torch.randint(50, (2, 300))
    weight = {relation: torch.rand(300) for relation in (ab, ba, bb)}
    conv = pyg.HeteroConv(
        {
            ab: pyg.GraphConv(4, 5),
            ba: pyg.GraphConv(4, 5),
            bb: pyg.GraphConv(4, 5),
        }
    ).eval()
    want = conv(data.x_dict, data.edge_index_dict, edge_weight_dict=weight)
    out = infer(
        conv,
        data,
        data.x_dict,
        layers=[conv],
        edge_features=weight,
        out=tmp_path / 'out',
    )
    for kind in ('a', 'b'):
        assert torch.allclose(out[kind][:], want[kind], atol=1e-5)


def test_models_without_them_stay_as_they_are(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    with pytest.raises(ValueError, match='SAGEConv has no argument'):
        infer(model, graph, X, out=tmp_path / 'out', edge_features=WEIGHT)
