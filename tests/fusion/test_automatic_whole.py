"""Models of unchanged scripts that are called with whole graphs."""

import copy
import warnings

import pytest
import torch
from torch import nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCN, GATConv, HeteroConv, SAGEConv

from tests.fusion.models import (
    EDGE_TYPES,
    WIDTH,
    Hand,
    batches,
    graph,
    typed_graph,
)
from tests.fusion.test_wrappers import Checkpoints, Encoder, Reentrant
from torch_gsample import cli, fuse
from torch_gsample.fusion import AutomaticFusion
from torch_gsample.fusion.fused_model import FusedModel
from torch_gsample.fusion.modules import FusedLayer
from torch_gsample.fusion.rows import FirstRows

SCRIPT = """
import torch
import torch.nn.functional as F
from torch_geometric.nn import GCN

torch.manual_seed(0)
x, edge_index = torch.randn(6000, 8), torch.randint(6000, (2, 20000))
y = torch.randint(3, (6000,))
model = GCN(8, 8, num_layers=2, out_channels=3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edge_index), y)
    loss.backward()
    optimizer.step()
print(f'{loss.item():.4f}')
"""


@pytest.fixture
def fusion():
    fusion = AutomaticFusion(min_nodes=250)
    yield fusion
    fusion.undo()


def layers_of(model):
    return [m for m in model.modules() if isinstance(m, FusedLayer)]


def test_a_script_learns_the_same(tmp_path, capsys):
    path = tmp_path / 'train.py'
    path.write_text(SCRIPT)
    assert cli.main(['run', str(path)]) == 0
    want = capsys.readouterr()
    assert cli.main(['run', '--fuse', str(path)]) == 0
    got = capsys.readouterr()
    assert got.out == want.out
    assert got.err == (
        'fuse: GCN: 2 of 2 layers fused\n'
        '  convs.0  GCNConv: fused\n'
        '  convs.1  GCNConv: fused\n'
    )


class OfData(nn.Module):
    """A model that finds its edges itself."""

    def __init__(self):
        super().__init__()
        self.inner = Hand()

    def forward(self, data):
        return self.inner(x=data.x, edge_index=data.edge_index)


def gradients(model, *args, **kwargs):
    model.zero_grad()
    model(*args, **kwargs).square().mean().backward()
    return [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize('by_name', [False, True])
def test_gradients_are_the_same(by_name, capsys):
    model, data = OfData(), graph(torch.float32)
    args, kwargs = ((), {'data': data}) if by_name else ((data,), {})
    want = gradients(model, *args, **kwargs)
    fusion = AutomaticFusion(min_nodes=250)
    for _ in range(3):
        found = gradients(model, *args, **kwargs)
        for p, q in zip(found, want, strict=True):
            assert torch.allclose(p, q, atol=1e-6)
    assert len(layers_of(model)) == 3
    assert type(model) is OfData
    assert capsys.readouterr().err.count('fuse: OfData: 3 of 3') == 1
    fusion.undo()
    assert not layers_of(model)
    assert type(model.inner.convs[0]) is SAGEConv


def test_small_graphs_are_left_to_pyg(fusion):
    model, data = Hand(), graph(torch.float32, num_nodes=249)
    for _ in range(3):
        model(data.x, data.edge_index)
    assert not layers_of(model)


def test_batches_of_small_graphs():
    model = GCN(WIDTH, WIDTH, num_layers=2)
    graphs = [graph(torch.float32, num_nodes=30) for _ in range(30)]
    samples = list(DataLoader(graphs, batch_size=10))
    want = [model(b.x, b.edge_index) for b in samples]
    fusion = AutomaticFusion(min_nodes=250)
    for batch, y in zip(samples, want, strict=True):
        out = model(batch.x, batch.edge_index)
        assert torch.allclose(out, y, atol=1e-6)
    assert len(layers_of(model)) == 2
    fusion.undo()


class Typed(nn.Module):
    """Layers of edge types, with attention."""

    def __init__(self):
        super().__init__()
        self.conv = HeteroConv(
            {
                key: GATConv((-1, -1), 5, add_self_loops=False)
                for key in EDGE_TYPES
            }
        )

    def forward(self, x_dict, edge_index_dict):
        return self.conv(x_dict, edge_index_dict)


def test_layers_of_edge_types():
    data, model = typed_graph(torch.float32), Typed()
    want = model(data.x_dict, data.edge_index_dict)
    fusion = AutomaticFusion(min_nodes=100)
    for _ in range(3):
        out = model(data.x_dict, data.edge_index_dict)
        for name, x in want.items():
            assert torch.allclose(out[name], x, atol=1e-6)
    fusion.undo()
    assert type(model.conv) is HeteroConv


def test_batches_after_a_whole_graph(fusion, capsys):
    """As if the graph had not been there: blocks are computed."""
    model, data = Hand(), graph(torch.float32)
    samples = batches(data, (10, 10, 10), count=4)
    want = [model(b.x, b.edge_index.plain)[: b.batch_size] for b in samples]
    for _ in range(3):
        whole = model(data.x, data.edge_index)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        out = [model(b.x, b.edge_index) for b in samples]
    assert [isinstance(x, FirstRows) for x in out] == [False] * 2 + [True] * 2
    for x, y in zip(out, want, strict=True):
        assert torch.allclose(x[: len(y)], y, atol=1e-6)
    assert torch.equal(model(data.x, data.edge_index), whole)
    said = capsys.readouterr().err
    assert said.count('fuse: Hand: 3 of 3 layers fused\n') == 1
    assert said.count('fuse: Hand: 3 of 3 layers fused, blocks\n') == 1


def test_a_layer_in_a_loop_of_the_script(fusion):
    """Each is a model, of graphs and then of batches."""
    conv, data = SAGEConv(WIDTH, 3), graph(torch.float32)
    samples = batches(data, (10, 10, 10), count=4)
    for _ in range(2):
        conv(data.x, data.edge_index)
    assert isinstance(conv, FusedLayer)
    assert not isinstance(conv, FusedModel)
    for b in samples:
        out = conv(b.x, b.edge_index)[: b.batch_size]
        want = conv.layer_class.forward(conv, b.x, b.edge_index.plain)
        assert torch.allclose(out, want[: b.batch_size], atol=1e-6)
    assert isinstance(conv, FusedModel)


def test_models_fused_by_the_script_stay(fusion):
    model, data = OfData(), graph(torch.float32)
    own = fuse(model.inner, min_nodes=0, verbose=False)
    for _ in range(3):
        model(data)
    assert isinstance(model.inner, FusedModel)
    assert own.report().startswith('Hand: 3 of 3 layers fused, blocks from')


@pytest.mark.filterwarnings('ignore:Using .torch.compile')
def test_compiled_models_are_left_alone(fusion, capsys):
    model, data = torch.compile(Hand(), backend='eager'), graph(torch.float32)
    for _ in range(3):
        model(data.x, data.edge_index)
    assert not layers_of(model)


def test_failed_calls_change_nothing(fusion):
    model, data = Hand(), graph(torch.float32)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            model(data.x[:, 1:], data.edge_index)
    assert not layers_of(model)
    other = Hand()  # whose outermost module is not the failed one
    for _ in range(2):
        other(data.x, data.edge_index)
    assert len(layers_of(other)) == 3


def test_copies_and_pickles(fusion):
    model, data = OfData(), graph(torch.float32)
    for _ in range(2):
        want = model(data)
    again = copy.deepcopy(model)
    assert torch.equal(again(data), want)
    assert len(layers_of(again)) == 3


@pytest.mark.filterwarnings('ignore:.*torch.jit.*:DeprecationWarning')
def test_models_can_be_scripted_afterwards(fusion):
    model, data = Encoder(), graph(torch.float32)
    for _ in range(2):
        want = model(data.x, data.edge_index)
    assert len(layers_of(model)) == 2
    script = torch.jit.script(model)
    out = script(data.x, data.edge_index)
    assert torch.allclose(out, want, atol=1e-6)


@pytest.mark.parametrize('kind', [Checkpoints, Reentrant])
def test_calls_that_a_checkpoint_repeats(kind):
    model, data = kind(), graph(torch.float32)
    x = data.x.requires_grad_()
    want = gradients(model, x, data.edge_index)
    fusion = AutomaticFusion(min_nodes=250)
    for _ in range(3):
        found = gradients(model, x, data.edge_index)
        for p, q in zip(found, want, strict=True):
            assert torch.allclose(p, q, atol=1e-6)
    assert len(layers_of(model)) == 3
    fusion.undo()
    assert type(model.convs[0]) is SAGEConv
