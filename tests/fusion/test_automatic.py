"""Models of unchanged scripts are fused."""

import gc
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GroupAddRev, SAGEConv

from tests.fusion.models import Hand, batches, graph
from tests.fusion.test_exact import unmarked
from torch_gsample import cli, patch_pyg, vertex
from torch_gsample.fusion import AutomaticFusion
from torch_gsample.fusion.fused_model import FusedModel
from torch_gsample.fusion.rows import FirstRows
from torch_gsample.loader.batch_edge_index import READERS

SCRIPT = """
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import GraphSAGE

torch.manual_seed(0)
data = Data(torch.randn(6000, 8), torch.randint(6000, (2, 60000)))
data.y = torch.randint(3, (6000,))
model = GraphSAGE(8, 8, num_layers=2, out_channels=3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = NeighborLoader(data, [10, 10], batch_size=128)
for step, batch in zip(range(5), loader):
    optimizer.zero_grad()
    out = model(batch.x, edge_index=batch.edge_index)[:batch.batch_size]
    loss = F.cross_entropy(out, batch.y[:batch.batch_size])
    loss.backward()
    optimizer.step()
print(f'{loss.item():.4f}', list(model.state_dict())[0])
"""


@pytest.fixture
def fusion():
    fusion = AutomaticFusion(min_nodes=0)
    yield fusion
    fusion.undo()


@pytest.fixture(scope='module')
def samples():
    return batches(graph(torch.float32), count=5)


def scores(model, batch):
    return model(batch.x, batch.edge_index)


def test_a_script_learns_the_same(tmp_path, capsys):
    path = tmp_path / 'train.py'
    path.write_text(SCRIPT)
    gc.collect()  # models of other tests
    before = len(READERS)
    assert cli.main(['run', str(path)]) == 0
    want = capsys.readouterr()
    assert cli.main(['run', '--fuse', str(path)]) == 0
    got = capsys.readouterr()
    assert got.out == want.out
    assert 'GraphSAGE: 2 of 2 layers fused, blocks' in got.err
    assert (
        'convs.1  SAGEConv: fused, exact block, computes the seeds' in got.err
    )
    assert 'fuse' not in want.err
    assert 'GSAMPLE_RUN_FUSE' not in os.environ
    gc.collect()
    assert len(READERS) == before


def test_processes_of_a_script_fuse_too(tmp_path):
    path = tmp_path / 'train.py'
    path.write_text(SCRIPT)
    environment = {'GSAMPLE_RUN_SCRIPT': str(path), 'GSAMPLE_RUN_FUSE': '1'}
    done = subprocess.run(
        [sys.executable, '-m', 'torch_gsample.run_script'],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert '2 of 2 layers fused, blocks' in done.stderr


def test_the_flag_is_one():
    with pytest.raises(TypeError, match=r"patch_pyg: 'layers'.*'yes'"):
        patch_pyg(layers='yes')


def test_models_are_fused_until_the_end(samples, capsys):
    model = Hand()
    want = [scores(model, unmarked(b))[: b.batch_size] for b in samples]
    fusion = AutomaticFusion(min_nodes=0)
    out = [scores(model, b) for b in samples]
    assert [isinstance(x, FirstRows) for x in out] == [False] * 2 + [True] * 3
    for x, y, batch in zip(out, want, samples, strict=True):
        assert torch.allclose(x[: batch.batch_size], y, atol=1e-6)
    fusion.undo()
    assert type(model) is Hand
    assert type(model.convs[0]) is SAGEConv
    assert not model._forward_pre_hooks
    assert capsys.readouterr().err.count('fuse: Hand') == 1


def test_models_with_all_rows_read_run_on_whole_batches(
    fusion, samples, capsys
):
    model = Hand()
    for batch in samples:
        F.cross_entropy(scores(model, batch), batch.y).backward()
    assert isinstance(model.convs[0], vertex.nn.SAGEConv)
    text = capsys.readouterr().err
    assert 'whole batches in training: cross_entropy may read any' in text


def test_layers_in_a_loop_of_the_script(fusion, samples):
    """Each is a model, and all but the last one are read beyond the seeds."""
    convs = SAGEConv(8, 8), SAGEConv(8, 3)
    for batch in samples:
        x, seeds = batch.x, batch.batch_size
        edge_index = batch.edge_index.plain
        want = convs[1](convs[0](x, edge_index), edge_index)[:seeds]
        for conv in convs:
            x = conv(x, batch.edge_index)
        assert torch.allclose(x[:seeds], want, atol=1e-6)
    assert isinstance(x, FirstRows)


class Named(nn.Module):
    """A model that is called by names, within another one."""

    def __init__(self):
        super().__init__()
        self.model = Hand()

    def forward(self, batch, scale=1):
        return scale * self.model(edge_index=batch.edge_index, x=batch.x)


@pytest.mark.parametrize('by_name', [False, True])
def test_the_outermost_module_is_the_model(by_name, fusion, samples):
    model = Named()
    for batch in samples:
        args, kwargs = ((), {'batch': batch}) if by_name else ((batch,), {})
        out = model(*args, **kwargs)[: batch.batch_size]
        want = model.model(batch.x, batch.edge_index.plain)
        assert torch.allclose(out, want[: batch.batch_size], atol=1e-6)
    assert isinstance(model, FusedModel)
    assert not isinstance(model.model, FusedModel)


@pytest.mark.parametrize('first', ['whole', 'part'])
def test_a_part_of_a_model_may_be_a_model_too(first, fusion, samples):
    whole, part = Named(), Hand()
    whole.model = part

    def train():
        return [whole(batch) for batch in samples]

    def encode():
        return [scores(part, batch) for batch in samples]

    calls = [train, encode] if first == 'whole' else [encode, train]
    for call in calls:
        for out, batch in zip(call(), samples, strict=True):
            out[: batch.batch_size].sum()
    for call in (train, encode):  # each has its own plan
        for out, batch in zip(call(), samples, strict=True):
            assert isinstance(out, FirstRows)
            want = part(batch.x, batch.edge_index.plain)[: batch.batch_size]
            assert torch.allclose(out[: batch.batch_size], want, atol=1e-6)


@pytest.mark.parametrize('by_name', [False, True])
def test_all_rows_of_a_model_with_a_fused_part_can_be_read(
    by_name, fusion, samples
):
    whole = Named()
    for batch in samples:
        scores(whole.model, batch)[: batch.batch_size].sum()
    for batch in samples:
        out = whole(batch=batch) if by_name else whole(batch)
        want = whole.model(batch.x, batch.edge_index.plain)
        assert torch.allclose(out.sum(), want.sum(), rtol=1e-4)


class Reversible(nn.Module):
    """Layers that backward computes again, of rows that are all read."""

    def __init__(self):
        super().__init__()
        self.model = GroupAddRev(SAGEConv(4, 4), num_groups=2)

    def forward(self, x, edge_index):
        return self.model(x * 1, edge_index)


@pytest.mark.filterwarnings('ignore:fuse')
def test_parts_that_backward_computes_again_are_no_models(fusion, samples):
    model = Reversible()

    def gradients(batch):
        model.zero_grad()
        out = scores(model, batch)[: batch.batch_size]
        out.square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    found = [gradients(batch) for batch in samples]
    assert [m for m in model.modules() if isinstance(m, FusedModel)] == [model]
    fusion.undo()
    want = [gradients(batch) for batch in samples]
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_wrapped_models_are_fused_inside(fusion, samples):
    inner = Hand()
    model = nn.DataParallel(inner)
    for batch in samples:
        out = scores(model, batch)
    assert isinstance(out, FirstRows)
    assert isinstance(inner, FusedModel)
    assert type(model) is nn.DataParallel


def test_models_can_be_copied_meanwhile(fusion, samples):
    model = Named()
    for batch in samples[:3]:
        model(batch=batch)
        again = pickle.loads(pickle.dumps(model))
    assert isinstance(model(batch=batch), FirstRows)
    assert isinstance(again, Named)


def test_threads_have_calls_of_their_own(fusion, samples):
    models = [Hand() for _ in range(3)]

    def train(model):
        for batch in samples:
            scores(model, batch)[: batch.batch_size].sum().backward()

    threads = [threading.Thread(target=train, args=[m]) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(isinstance(model, FusedModel) for model in models)


@pytest.mark.filterwarnings('ignore:Using .torch.compile')
def test_compiled_models_are_left_alone(fusion, samples, capsys):
    model = torch.compile(Hand(), backend='eager')
    for batch in samples[:3]:
        out = scores(model, batch)
    assert len(out) == batch.num_nodes
    assert 'OptimizedModule is left as it is' in capsys.readouterr().err
