"""While a model is planned, nothing of it changes."""

import functools
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from tests.fusion.models import WIDTH, Hand, batches, graph
from torch_gsample import fuse
from torch_gsample.fusion import record
from torch_gsample.fusion.twin import twin_of


class Holding(Hand):
    """Holds modules in everything that may hold one."""

    def __init__(self):
        super().__init__()
        self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(WIDTH)
        norm = self.norm
        self.enclosed = lambda x, *, scale=0.1: norm(self.drop(x)) * scale
        self.parts = {'drops': [(self.drop,)]}
        self.partial = functools.partial(self.dropped, self.drop)
        self.method = self.normed

    @staticmethod
    def dropped(drop, x, *, times):
        for _ in range(times):
            x = drop(x)
        return x

    def normed(self, x):
        return self.norm(x)

    def forward(self, x, edge_index):
        x = self.partial(self.convs[0](x, edge_index), times=2)
        x = self.parts['drops'][0][0](self.method(x)).relu()
        x = self.convs[1](x, edge_index)
        return self.convs[2](x + self.enclosed(x), edge_index)


def few_rows():
    torch.manual_seed(1)
    return torch.randn(9, WIDTH), torch.randint(9, (2, 20))


@pytest.mark.parametrize('make', [Hand, Holding])
def test_other_threads_may_use_a_model_that_is_planned(make, monkeypatch):
    """They run what has no blocks, save it, or look at its modes."""
    torch.manual_seed(0)
    model, few, seen = make(), few_rows(), []
    batch = batches(graph(torch.float32), count=1)[0]

    def look():
        with torch.no_grad():
            layers = [conv(*few) for conv in model.convs]
        state = {k: v.clone() for k, v in model.state_dict().items()}
        return layers, [m.training for m in model.modules()], state

    def compare(*args):
        with ThreadPoolExecutor(1) as thread:
            seen.append(thread.submit(look).result())
        tried(*args)

    tried = record._compare
    monkeypatch.setattr(record, '_compare', compare)
    fusion = fuse(model, min_nodes=0, statistics='computed', verbose=False)
    before = look()
    model(batch.x, batch.edge_index)
    ((layers, modes, state),) = seen
    assert 'whole' not in fusion.report()
    assert modes == before[1]
    for x, y in zip(layers, before[0], strict=True):
        assert torch.equal(x, y)
    for name, x in state.items():
        assert torch.equal(x, before[2][name]), name


def test_a_twin_computes_with_other_parameters():
    model, few = Holding(), few_rows()
    others = {p: torch.zeros_like(p) for p in model.parameters()}
    assert not twin_of(model, others)(*few).any()
    twin = twin_of(model, {})
    assert torch.equal(twin(*few), twin(*few))  # nothing is dropped
    twin.eval(), model.eval()
    assert torch.equal(twin(*few), model(*few))
    assert twin.enclosed(few[0]).equal(model.enclosed(few[0]))


def test_shared_parameters_stay_shared():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    other = nn.Parameter(torch.ones(3, 3))
    twin = twin_of(model, {model[0].weight: other})
    assert twin[0].weight is twin[1].weight is other
    assert twin[0].bias is model[0].bias
    assert model[0].weight is not other


def test_state_of_a_call_is_forgotten():
    model = nn.Linear(2, 2)
    model.register_forward_hook(lambda m, args, out: setattr(m, 'last', out))
    twin_of(model, {})(torch.ones(1, 2))
    assert not hasattr(model, 'last')
