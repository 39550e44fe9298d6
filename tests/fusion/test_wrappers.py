"""Fused models in checkpoints, data-parallel ones, and their state."""

import copy
import importlib
import pickle
import sys
import warnings

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import (
    GAE,
    GCNConv,
    GraphSAGE,
    SAGEConv,
    Sequential,
)

from tests.fresh import FORKS
from tests.fusion.models import BASIC, Hand, Shared, batches, graph
from tests.fusion.test_exact import unmarked
from torch_gsample import fuse, unfuse
from torch_gsample.fusion.classes import known_of
from torch_gsample.fusion.modules import FusedLayer, _restore


class Checkpoints(Hand):
    """Each layer in a checkpoint of its own."""

    reentrant = False

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = checkpoint(
                conv, x, edge_index, use_reentrant=self.reentrant
            ).relu()
        return self.lin(x)


class Reentrant(Checkpoints):
    reentrant = True


class OneLayer(Shared):
    """One layer three times, each in a checkpoint."""

    def forward(self, x, edge_index):
        for _ in range(3):
            x = checkpoint(self.conv, x, edge_index, use_reentrant=False)
        return x


class Whole(Hand):
    """The model in a checkpoint."""

    reentrant = False


class WholeReentrant(Whole):
    reentrant = True


@pytest.fixture(scope='module')
def samples():
    return batches(graph(torch.float32), count=4)


def losses(model, samples):
    """The losses of a few steps, and the rows of the outputs."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    out, rows = [], []
    for batch in samples:
        x = batch.x.clone().requires_grad_()  # for a reentrant checkpoint
        if isinstance(model, Whole):
            scores = checkpoint(
                *(model, x, batch.edge_index), use_reentrant=model.reentrant
            )
        else:
            scores = model(x, batch.edge_index)
        rows.append(len(scores))
        size = batch.batch_size
        loss = F.cross_entropy(scores[:size], batch.y[:size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out, rows


@pytest.mark.parametrize(
    'kind', [Checkpoints, OneLayer, Whole, WholeReentrant]
)
@pytest.mark.filterwarnings('error:fuse')
def test_checkpoints_compute_the_same_blocks_again(kind, samples):
    model = kind()
    same = copy.deepcopy(model)
    expected, _ = losses(same, samples)
    fuse(model, min_nodes=0, verbose=False)
    found, rows = losses(model, samples)
    assert found == pytest.approx(expected, rel=1e-5)
    assert rows == [batch.batch_size for batch in samples]


def test_reentrant_checkpoints_of_layers_get_whole_batches(samples):
    model = Reentrant()
    same = copy.deepcopy(model)
    expected, rows = losses(same, samples)
    fuse(model, min_nodes=0, verbose=False)
    with pytest.warns(UserWarning, match='all rows are read'):
        found = losses(model, samples)
    assert found == (pytest.approx(expected, rel=1e-5), rows)


def train(rank, file):
    torch.set_num_threads(1)
    dist.init_process_group(
        'gloo', init_method=f'file://{file}', rank=rank, world_size=2
    )
    samples = batches(graph(torch.float32), count=6)[rank::2]
    found = []
    for fused in (False, True):
        torch.manual_seed(0)
        model = GraphSAGE(**BASIC)
        if fused:
            fuse(model, min_nodes=0, verbose=False)
        found.append(losses(DistributedDataParallel(model), samples))
    dist.destroy_process_group()
    return found


def test_fused_models_train_data_parallel(tmp_path):
    with FORKS.Pool(2) as pool:
        args = [(rank, str(tmp_path / 'store')) for rank in range(2)]
        found = pool.starmap(train, args, chunksize=1)
    for (expected, _), (fused, rows) in found:
        assert fused == pytest.approx(expected, rel=1e-5)
        assert rows == [12] * 3
    assert found[0][0][0] != found[1][0][0]


@pytest.mark.filterwarnings('error:fuse')
def test_state_is_saved_and_loaded_before_and_after(samples, tmp_path):
    model = GraphSAGE(**BASIC)
    expected = losses(copy.deepcopy(model), samples)[0]
    before = copy.deepcopy(model.state_dict())
    fuse(model, min_nodes=0, verbose=False)
    assert list(model.state_dict()) == list(before)
    trained, _ = losses(model, samples)
    torch.save(model.state_dict(), tmp_path / 'state.pt')
    other = GraphSAGE(**BASIC)
    other.load_state_dict(torch.load(tmp_path / 'state.pt'))
    model.load_state_dict(copy.deepcopy(before), assign=True)
    again, _ = losses(model, samples)
    unfuse(model)
    model.load_state_dict(before)
    assert trained == again == pytest.approx(expected, rel=1e-5)
    assert losses(model, samples)[0] == pytest.approx(expected, rel=1e-5)
    for value in other.state_dict().values():
        assert value.isfinite().all()
    fuse(other, min_nodes=0, verbose=False)
    assert losses(other, samples)[0][0] < expected[0]


def fused(model, min_nodes=0):
    fuse(model, min_nodes=min_nodes, verbose=False)
    return model


def test_layers_called_without_their_model_warn_once(samples):
    batch = samples[0]
    model = fused(GAE(Hand()))
    with pytest.warns(UserWarning, match="outside of GAE's forward") as seen:
        model.encoder(batch.x, batch.edge_index)
    assert len(seen) == 1
    small = fused(GAE(Hand()), min_nodes=batch.num_nodes + 1)
    encoder = GAE(fused(Hand()))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        model.encoder(batch.x, batch.edge_index)
        small.encoder(batch.x, batch.edge_index)
        encoder.encode(batch.x, batch.edge_index)
        encoder.encoder.convs[0](batch.x, batch.edge_index)


class Links(nn.Module):
    """A model of links, whose methods a script calls."""

    def __init__(self):
        super().__init__()
        self.hand, self._run = Hand(), 'its own'

    def encode(self, x, edge_index):
        return self.hand(x, edge_index)

    def decode(self, z, links):
        return (z[links[0]] * z[links[1]]).sum(-1)

    def forward(self, x, edge_index, links):
        return self.decode(self.encode(x, edge_index), links)


def link_losses(model, samples):
    """Returns losses and gradients of the links between some seeds."""
    out = []
    for batch in samples:
        links = torch.arange(batch.batch_size).view(2, -1)
        z = model.encode(batch.x, batch.edge_index)
        loss = model.decode(z, links).square().mean()
        model.zero_grad()
        loss.backward()
        found = (p.grad for p in model.parameters() if p.grad is not None)
        out += [loss.detach(), *map(torch.clone, found)]
    return out


@pytest.mark.parametrize('make', [Links, lambda: GAE(Hand())])
@pytest.mark.filterwarnings('error:fuse')
def test_encode_computes_blocks(samples, make):
    torch.manual_seed(0)
    model = make()
    expected = link_losses(model, [unmarked(batch) for batch in samples])
    fusion = fuse(model, min_nodes=0, verbose=False)
    assert 'computes the seeds' not in fusion.report()
    torch.testing.assert_close(
        link_losses(model, samples), expected, rtol=1e-4, atol=1e-6
    )
    assert 'computes the seeds' in fusion.report()
    z = model.encode(samples[0].x, samples[0].edge_index)
    assert len(z) == samples[0].batch_size
    again = copy.deepcopy(model)
    torch.testing.assert_close(
        link_losses(again, samples), expected, rtol=1e-4, atol=1e-6
    )
    fusion.undo()
    assert len(model.encode(samples[0].x, samples[0].edge_index)) > len(z)


def test_a_forward_that_encodes_is_one_call(samples):
    batch = samples[0]
    model = fused(Links())
    links = torch.arange(batch.batch_size).view(2, -1)
    want = model(batch.x, batch.edge_index, links)
    assert model._run == 'its own'
    unfuse(model)
    torch.testing.assert_close(
        want + 0, model(batch.x, batch.edge_index.plain, links)
    )


@pytest.mark.parametrize('first', ['forward', 'encode'])
@pytest.mark.filterwarnings('error:fuse')
def test_each_method_has_a_plan(first, samples):
    """As a script that trains by one, and evaluates by the other."""
    model, batch = Links(), samples[0]
    links = torch.arange(batch.batch_size).view(2, -1)
    args, size = (batch.x, batch.edge_index), batch.batch_size
    want = model.encode(batch.x, batch.edge_index.plain)[:size]
    fusion = fuse(model, min_nodes=0, verbose=False)
    calls = [lambda m: m(*args, links), lambda m: m.encode(*args)]
    for call in calls if first == 'forward' else calls[::-1]:
        call(model)
    for each in (model, copy.deepcopy(model)):
        assert torch.allclose(calls[0](each), each.decode(want, links))
        z = calls[1](each)
        assert len(z) == size
        assert torch.allclose(z[:size], want, atol=1e-6)
    assert fusion.report().count('computes the seeds') == 2
    other = 'encode' if first == 'forward' else 'forward'
    assert f'Links.{other}: 3 of 3 layers fused, blocks' in fusion.report()


def test_pickles_of_layers_of_one_model_are_read():
    """As those of release 0.2.0."""
    layer = fused(Hand()).convs[0]
    models = known_of(layer)
    args = 'layer', type(layer).original, models[0], SAGEConv, (8, 8)
    assert known_of(_restore(*args)) == models


class Encoder(nn.Module):
    """Two layers that TorchScript can compile."""

    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(8, 8), GCNConv(8, 3)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Scaled(nn.Module):
    """An encoder, and a function of its results."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor):
        return 2 * self.encoder(x, edge_index)


@pytest.mark.filterwarnings('ignore:.*torch.jit.*:DeprecationWarning')
@pytest.mark.parametrize('part', [False, True])
def test_scripts_of_fused_models_are_of_their_own_classes(part):
    """As in a script that is fused, trains and then exports its model."""
    model, data = Scaled(), graph(torch.float32)
    parts = [type(m) for m in model.modules()]
    want = model(data.x, data.edge_index)
    fused = model.encoder if part else model
    fusion = fuse(fused, min_nodes=0, verbose=False)
    model(data.x, data.edge_index)
    script = torch.jit.script(model)
    assert torch.allclose(script(data.x, data.edge_index), want, atol=1e-6)
    assert next(script.parameters()) is next(model.parameters())
    if not part:  # else torch replaces the encoder of the model itself
        assert isinstance(model.encoder.first, FusedLayer)
        fusion.undo()
    assert [type(m) for m in model.modules()] == parts


SCRIPT = """
from torch import nn
from torch_geometric.nn import GraphConv, SAGEConv, Sequential

def make(kind):
    return Sequential('x, edge_index', [
        (kind(8, 8), 'x, edge_index -> x'),
        nn.ReLU(inplace=True),
        (kind(8, 5), 'x, edge_index -> x'),
    ])
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A module that PyG can import: for it, PyG changes its own class."""
    (tmp_path / 'sequential_models.py').write_text(SCRIPT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(Sequential, 'forward', Sequential.forward)
    yield importlib.import_module('sequential_models')
    del sys.modules['sequential_models']


@pytest.mark.filterwarnings('error:fuse')
@pytest.mark.parametrize('again', ['as made', 'copied', 'pickled'])
def test_a_sequential_has_a_forward_of_its_own(again, samples, script):
    model = script.make(script.SAGEConv)
    assert 'forward' in vars(model)  # PyG found the script
    expected, _ = losses(copy.deepcopy(model), samples)
    fuse(model, min_nodes=0, verbose=False)
    script.make(script.GraphConv)  # whose forward becomes the class's
    if again == 'copied':
        model = copy.deepcopy(model)
    elif again == 'pickled':
        model = pickle.loads(pickle.dumps(model))
    found, rows = losses(model, samples)
    assert found == pytest.approx(expected, rel=1e-5)
    assert rows == [batch.batch_size for batch in samples]
