"""Plans hold for batches that show no more than their trial did."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.utils import degree

from tests.fusion.models import WIDTH, Hand, batches, graph, typed_graph
from torch_gsample import fuse, unfuse
from torch_gsample.fusion import fused_model, levels
from torch_gsample.fusion.calls import Step
from torch_gsample.fusion.forms import Beyond, beyond

W = WIDTH


class Degrees(pyg.MessagePassing):
    """A layer that counts the edges of nodes by itself."""

    def __init__(self, end):
        super().__init__('sum')
        self.lin, self.end = nn.Linear(W, W), end

    def forward(self, x, edge_index):
        count = degree(edge_index[self.end], len(x), x.dtype) + 1
        out = self.propagate(edge_index, x=x / count.view(-1, 1))
        return self.lin(out) * count.view(-1, 1)


class Length(Hand):
    """Scales the rows of the first layer by their number."""

    def forward(self, x, edge_index):
        x = self.convs[0](x, edge_index)
        return self.convs[1](x / len(x), edge_index)


def degrees(end):
    return lambda: Hand('', 1, lambda *_: Degrees(end)).double()


MODELS = {
    'in-degrees': degrees(1),
    'out-degrees': degrees(0),
    'largest in-degree': lambda: Hand(
        '', 1, lambda *w: pyg.SAGEConv(*w, aggr='lstm')
    ).double(),
    'number of rows': lambda: Length('', 2).double(),
}
FIRST = {
    'one hop': ([3], {}),
    'all nodes': ([-1] * 6, {'size': 300}),
    'trees': ([3, 2], {'disjoint': True}),
}


@pytest.mark.parametrize('first', FIRST)
@pytest.mark.parametrize('case', MODELS)
@pytest.mark.filterwarnings('ignore:fuse')
def test_uninformative_first_batches_give_right_results(case, first):
    fanouts, options = FIRST[first]
    data = graph()
    torch.manual_seed(1)
    model = MODELS[case]()
    want = copy.deepcopy(model)
    fuse(model, min_nodes=0, verbose=False)
    hiding = batches(data, fanouts, 1, **options)
    for batch in [*hiding, *batches(data, [3, 2]), *batches(data, [3, 5])]:
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        expected = want(batch.x, batch.edge_index.plain)[: batch.batch_size]
        torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings('error:fuse')
def test_a_batch_that_shows_more_gets_a_plan_of_its_own():
    data = graph()
    model = Hand('', 1, lambda *_: pyg.SGConv(W, W, 2)).double()
    want = copy.deepcopy(model)
    fuse(model, min_nodes=0, verbose=False)
    for fanouts in ([3, 2], [3], [2, 2, 2], [3, 2]):
        batch = batches(data, fanouts)[0]
        out = model(batch.x, batch.edge_index)
        assert len(out) == batch.batch_size
        expected = want(batch.x, batch.edge_index.plain)[: batch.batch_size]
        torch.testing.assert_close(out[: len(out)], expected)


@pytest.mark.filterwarnings('error:fuse')
def test_seeds_without_out_edges_need_one_plan():
    """A layer's trial at a further hop shows its out-edges."""
    data = graph()
    data.edge_index = data.edge_index[:, data.edge_index[0] >= 24]
    model = Hand('', 2, pyg.LEConv).double()
    fusion = fuse(model, min_nodes=0, verbose=False)
    for batch in batches(data):
        model(batch.x, batch.edge_index)
    assert 'computes the seeds' in fusion.report()
    assert model._gsample_model.num_plans == 1


def with_network(width, out):
    return pyg.GINConv(nn.Sequential(nn.Linear(width, out), nn.ReLU()))


def turned(model):
    for conv in model.convs:
        conv.flow = 'target_to_source'


def normed(norm):
    def change(model):
        for conv in model.convs:
            conv.nn[1] = norm(W).double()

    return change


CHANGES = {
    'flow of GCNConv': (pyg.GCNConv, turned),
    'flow of SGConv': (lambda *w: pyg.SGConv(*w, K=2), turned),
    'batch norm': (with_network, normed(nn.BatchNorm1d)),
    'graph norm': (with_network, normed(pyg.GraphNorm)),
}


@pytest.mark.parametrize('case', CHANGES)
@pytest.mark.filterwarnings('ignore:fuse')
def test_layers_that_change_after_their_plan(case):
    conv, change = CHANGES[case]
    model = Hand('', 2, conv).double()
    fuse(model, min_nodes=0, verbose=False)
    first, second = batches(graph())
    model(first.x, first.edge_index)
    change(model)
    want = copy.deepcopy(model)
    out = model(second.x, second.edge_index)[:12]
    unfuse(want)
    expected = want(second.x, second.edge_index.plain)[:12]
    torch.testing.assert_close(out, expected)


def test_tests_of_equal_plans_add_up():
    step = Step('conv', 1, 'pair', '', 1, Beyond(True, False, True))
    earlier = step._replace(tested=Beyond(False, True, True))
    [both] = levels.tested_by_both([step], [earlier])
    assert both == step._replace(tested=Beyond())
    other = earlier._replace(level=2)
    assert levels.tested_by_both([step], [other]) == [step]


def test_sources_of_another_type_are_not_those_that_a_layer_computes():
    edges = batches(typed_graph())[0].edge_index_dict
    assert beyond(edges['a', 'cites', 'a'], 0, 1) == Beyond()
    assert beyond(edges['b', 'of', 'a'], 0, 1) == Beyond(out_edges=False)


def test_plans_are_few(monkeypatch):
    monkeypatch.setattr(fused_model, '_MOST_PLANS', 1)
    data = graph()
    model = Hand('', 1, lambda *_: pyg.SGConv(W, W, 2)).double()
    fuse(model, min_nodes=0, verbose=False)
    first, second = batches(data, [3, 2])[0], batches(data, [2, 2, 2])[0]
    model(first.x, first.edge_index)
    with pytest.warns(UserWarning, match='tested on other kinds of batches'):
        out = model(second.x, second.edge_index)
    assert len(out) == second.num_nodes


@pytest.mark.filterwarnings('ignore:fuse')
def test_a_call_that_is_repeated_updates_statistics_once():
    """With more layers than hops, the first norm has all rows."""
    batch = batches(graph(), [3, 2])[0]
    model = Hand('bn', 3).double()
    want = copy.deepcopy(model)
    fuse(model, min_nodes=0, verbose=False)
    for each, edges in (
        (model, batch.edge_index),
        (want, batch.edge_index.plain),
    ):
        each(batch.x, edges)
    for name, value in want.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)
