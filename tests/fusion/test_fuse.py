"""What fusing does to a model, and what stays."""

import copy
import gc
import inspect
import io
import pickle
import threading
import time

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn import GCNConv, SAGEConv, TAGConv
from torch_geometric.utils import trim_to_layer

from tests.fusion.models import (
    METADATA,
    Hand,
    Homogeneous,
    Trimming,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_exact import unmarked
from tests.vertex.test_memory import Live
from torch_gsample import fuse, unfuse, vertex
from torch_gsample.fusion import fused_model, record
from torch_gsample.fusion.rows import FirstRows
from torch_gsample.loader import NeighborLoader
from torch_gsample.loader.batch_edge_index import READERS, BatchEdgeIndex


@pytest.fixture(scope='module')
def batch():
    return batches(graph(torch.float32), count=1)[0]


def fused(model, **kwargs):
    fuse(model, **{'min_nodes': 0, 'verbose': False, **kwargs})
    return model


def call(model, batch):
    return model(batch.x, batch.edge_index)


def test_layers_keep_parameters_names_and_classes():
    model = Hand()
    keys, weight = list(model.state_dict()), model.convs[0].lin_l.weight
    text = repr(model)
    fused(model)
    assert list(model.state_dict()) == keys
    assert model.convs[0].lin_l.weight is weight
    assert isinstance(model, Hand)
    assert isinstance(model.convs[0], vertex.nn.SAGEConv)
    assert repr(model) == text
    assert list(inspect.signature(model.forward).parameters) == [
        'x',
        'edge_index',
    ]


def test_undo_restores_classes(batch):
    model = Hand()
    fusion = fuse(model, min_nodes=0, verbose=False)
    call(model, batch)
    fusion.undo()
    assert type(model) is Hand
    assert {type(c) for c in model.convs} == {SAGEConv}
    assert type(call(model, batch)) is torch.Tensor
    assert not [k for k in vars(model) if 'gsample' in k]
    unfuse(model)  # does nothing
    assert type(model) is Hand


def copy_by_pickle(model):
    return pickle.loads(pickle.dumps(model))


def copy_by_torch(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize(
    'make_copy', [copy.deepcopy, copy_by_pickle, copy_by_torch]
)
@pytest.mark.parametrize('is_planned', [False, True])
def test_copies_are_fused(make_copy, is_planned, batch):
    model = fused(Hand())
    if is_planned:
        call(model, batch)
    again = make_copy(model)
    out, want = call(again, batch), call(model, batch)
    assert isinstance(out, FirstRows)
    assert torch.equal(out[: batch.batch_size], want[: batch.batch_size])
    unfuse(model)
    assert isinstance(call(again, batch), FirstRows)
    unfuse(again)
    assert type(again) is Hand
    assert type(again.convs[0]) is SAGEConv


def test_copies_of_graph_modules_are_fused():
    sample = batches(typed_graph(torch.float32), count=1)[0]
    model = fused(pyg.to_hetero(Homogeneous(), METADATA))
    args = sample.x_dict, sample.edge_index_dict
    want = model(*args)['a']
    for again in (copy.deepcopy(model), copy_by_pickle(model)):
        out = again(*args)['a']
        assert isinstance(out, FirstRows)
        assert torch.equal(out[:5], want[:5])


def test_fusing_again_changes_nothing(batch):
    model = fused(Hand())
    call(model, batch)
    kind = type(model)
    report = fuse(model).report()
    assert type(model) is kind
    assert 'exact block' in report


def test_a_fused_part_becomes_part_of_the_whole(batch):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.last = fused(Hand()), SAGEConv(5, 3)

        def forward(self, x, edge_index):
            return self.last(self.encoder(x, edge_index), edge_index)

    model = Outer()
    fusion = fuse(model, min_nodes=0, verbose=False)
    assert isinstance(call(model, batch), FirstRows)
    assert 'encoder.convs.0' in fusion.report()


def test_report_lists_fused_layers_and_reasons(batch, capsys):
    model = pyg.Sequential(
        'x, edge_index',
        [
            (SAGEConv(8, 8), 'x, edge_index -> x'),
            (TAGConv(8, 8), 'x, edge_index -> x'),
            (SAGEConv(8, 3), 'x, edge_index -> x'),
        ],
    )
    fusion = fuse(model, min_nodes=0)
    assert 'blocks from the first batch' in fusion.report()
    call(model, batch)
    call(model, batch)
    assert capsys.readouterr().err == f'fuse: {fusion.report()}\n'
    assert fusion.report().splitlines() == [
        'Sequential: 3 of 3 layers fused, blocks',
        '  module_0  SAGEConv: fused, exact block, computes the nodes of 4 '
        'hops',
        '  module_1  TAGConv: messages fused, exact block of 3 hops, computes '
        'the nodes of 1 hop',
        '  module_2  SAGEConv: fused, exact block, computes the seeds',
    ]


def test_small_batches_are_left_alone(batch):
    model = fused(Hand(), min_nodes=batch.num_nodes + 1)
    assert type(call(model, batch)) is torch.Tensor
    model = fused(Hand(), min_nodes=batch.num_nodes)
    assert isinstance(call(model, batch), FirstRows)


def test_plain_edges_run_as_they_are(batch):
    model = fused(Hand())
    out = model(batch.x, batch.edge_index.plain)
    assert type(out) is torch.Tensor
    assert len(out) == batch.num_nodes


def test_other_batches_stay_plain():
    data = graph(torch.float32)
    gc.collect()
    assert not READERS
    loader = NeighborLoader(data, [2, 2], batch_size=50)
    assert type(next(iter(loader)).edge_index) is torch.Tensor
    model = fused(Hand())
    assert type(next(iter(loader)).edge_index) is BatchEdgeIndex
    unfuse(model)
    assert type(next(iter(loader)).edge_index) is torch.Tensor


def test_batches_of_workers_know_their_blocks():
    data, model = graph(torch.float32), fused(Hand())
    loader = NeighborLoader(data, [2, 2], batch_size=150, num_workers=2)
    for sample in loader:
        assert isinstance(call(model, sample), FirstRows)


@pytest.mark.parametrize('hops', [(2,), (2, 2), (2, 2, 2, 2)])
def test_one_plan_serves_other_numbers_of_hops(hops, batch):
    data, model = graph(torch.float32), Hand('residual')
    sample = batches(data, hops, count=1)[0]
    size = sample.batch_size
    want = call(model, unmarked(sample))[:size]
    fused(model)
    call(model, batch)
    out = call(model, sample)
    assert torch.allclose(out[:size], want, atol=1e-6)


def test_models_in_inference_mode(batch):
    model = fused(Hand())
    with torch.inference_mode():
        assert type(call(model, batch)) is torch.Tensor
    call(model, batch)
    with torch.inference_mode():
        assert len(call(model, batch)) == batch.batch_size


def test_frozen_layers_and_detached_rows(batch):
    class Frozen(Hand):
        def forward(self, x, edge_index):
            with torch.no_grad():
                x = self.convs[0](x, edge_index)
            x = self.convs[1](x, edge_index).detach()
            return self.convs[2](x, edge_index)

    model = Frozen()
    for parameter in model.convs[0].parameters():
        parameter.requires_grad_(False)
    size = batch.batch_size
    want = call(model, unmarked(batch))[:size]
    report = fuse(model, min_nodes=0, verbose=False)
    assert torch.allclose(call(model, batch)[:size], want, atol=1e-6)
    assert 'computes the seeds' in report.report()


def test_trimming_is_left_to_blocks_in_fused_calls_alone(batch):
    """PyG's own is not exact for GCN: its sources lose edges."""
    model = Trimming('', 2, GCNConv)
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    size = batch.batch_size
    want = Hand.forward(model, batch.x, batch.edge_index.plain)[:size]
    trimmed = trim_to_layer(1, *counts, batch.x, batch.edge_index)
    fused(model)
    seen = []

    def trim_meanwhile(module, args):
        def trim():
            seen.append(trim_to_layer(1, *counts, batch.x, batch.edge_index))

        thread = threading.Thread(target=trim)
        thread.start()
        thread.join()

    model.convs[1].register_forward_pre_hook(trim_meanwhile)
    out = model(batch.x, batch.edge_index, *counts)
    assert torch.allclose(out[:size], want, atol=1e-6)
    assert {len(x) for x, _, _ in seen} == {len(trimmed[0])}
    assert len(trimmed[0]) < batch.num_nodes


def in_threads(model, batch, count=4):
    """What threads get of a model's first calls."""
    out, errors = [], []

    def run():
        try:
            out.append(call(model, batch)[: batch.batch_size])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return out


def test_several_threads_call_a_model(batch):
    model = fused(Hand())
    out = in_threads(model, batch)
    assert all(torch.equal(x, out[0]) for x in out)


def test_threads_wait_while_one_tries_its_plan(batch, monkeypatch):
    """While one tries its plan, others wait for it."""
    trial, tried = threading.Event(), record._compare

    def compare(*args):
        trial.set()
        time.sleep(0.2)  # the others come, to run or to wait
        tried(*args)

    monkeypatch.setattr(record, '_compare', compare)
    model = fused(Hand())
    want = call(unfused(model), batch)[: batch.batch_size]
    for x in in_threads(model, batch):
        assert torch.allclose(torch.as_tensor(x), want, atol=1e-5)
    assert trial.is_set()


@pytest.mark.filterwarnings('ignore:fuse. Hand runs on whole batches')
def test_threads_plan_a_refused_batch_once(batch, monkeypatch):
    calls, make_plan = [], fused_model.make_plan

    def plan(*args):
        calls.append(args)
        make_plan(*args)

    monkeypatch.setattr(fused_model, 'make_plan', plan)
    model = fused(Hand('mean'))
    want = call(unfused(model), batch)[: batch.batch_size]
    for x in in_threads(model, batch):
        assert torch.allclose(x, want, atol=1e-5)
    assert len(calls) == 1


def unfused(model):
    """A copy of a model that is not fused."""
    out = copy.deepcopy(model)
    unfuse(out)
    return out


def test_parameters_are_as_they_were(batch):
    model = Hand('bn')
    before = copy.deepcopy(model.state_dict())
    versions = [p._version for p in model.parameters()]
    call(fused(model.eval()), batch)
    assert [p._version for p in model.parameters()] == versions
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
    assert not any(p.grad is not None for p in model.parameters())


def test_hooks_of_rows_see_their_gradients(batch):
    class Hooked(Hand):
        def forward(self, x, edge_index):
            x = self.convs[0](x, edge_index)
            x.register_hook(lambda grad: seen.append(grad))
            x.retain_grad()
            self.hidden = x
            return self.convs[1](x, edge_index)

    seen, model = [], Hooked()
    size = batch.batch_size
    call(model, unmarked(batch))[:size].sum().backward()
    want = seen.pop()
    fused(model)
    call(model, batch)[:size].sum().backward()
    rows = len(seen[-1])
    assert size < rows < batch.num_nodes
    assert torch.allclose(seen[-1], want[:rows], atol=1e-6)
    assert torch.equal(seen[-1], model.hidden.grad)


def test_layers_of_a_fused_model_take_blocks_by_hand(batch):
    model = fused(Hand('', 3), min_nodes=10**6)
    want = call(model, unmarked(batch))[: batch.batch_size]
    x = batch.x
    for conv, block in zip(model.convs, batch.blocks, strict=True):
        x = conv(x, block).relu()
    assert torch.allclose(model.lin(x), want, atol=1e-6)


def test_a_deep_model_is_planned_in_the_memory_of_a_shallow_one():
    """Neither what gradients read nor layers' inputs are kept."""
    data = graph(torch.float32, num_nodes=2000)
    data.x = torch.randn(2000, 32)
    [batch] = batches(data, (4, 4), count=1, size=100)
    tops = []
    for layers in (2, 8):
        model = fused(pyg.GraphSAGE(32, 32, layers, 32))
        with Live() as live, torch.no_grad():
            call(model, batch)
        tops.append(live.top)
    assert tops[1] < 1.7 * tops[0]


@pytest.mark.parametrize('min_nodes', [0, 10**6])
@pytest.mark.parametrize('kind', [pyg.GCNConv, pyg.GATConv, pyg.GraphConv])
def test_a_layer_that_is_the_whole_model(kind, min_nodes):
    layer, x = kind(4, 4), torch.randn(9, 4)
    edge_index = torch.randint(9, (2, 20))
    expected = layer(x, edge_index)
    fuse(layer, min_nodes=min_nodes, verbose=False)
    torch.testing.assert_close(layer(x, edge_index), expected)
    loaded = copy.deepcopy(layer)
    torch.testing.assert_close(loaded(x, edge_index), expected)
    torch.testing.assert_close(layer(x, edge_index=edge_index), expected)
