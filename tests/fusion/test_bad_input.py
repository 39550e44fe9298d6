"""What cannot be fused says so; rows that were not computed are not read."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GraphSAGE, SAGEConv

from tests.fusion.models import BASIC, Hand, batches, graph
from tests.fusion.test_exact import unmarked
from torch_gsample import fuse, unfuse
from torch_gsample.fusion.rows import FirstRows


@pytest.fixture(scope='module')
def sample():
    return batches(graph(torch.float32), count=2)


@pytest.fixture(scope='module')
def batch(sample):
    return sample[0]


@pytest.fixture
def out(batch):
    model = Hand()
    fuse(model, min_nodes=0, verbose=False)
    return model(batch.x, batch.edge_index)


def quantized():
    model = Hand()
    model.lin = torch.ao.nn.quantized.Linear(8, 5)
    return model


def wrapped(kind):
    def make():
        model = Hand()
        model.__class__ = type(kind, (Hand,), {})
        return model

    return make


@pytest.mark.parametrize(
    ('make', 'kwargs', 'error', 'message'),
    [
        (lambda: None, {}, TypeError, 'must be a module'),
        (lambda: Hand, {}, TypeError, 'must be a module'),
        (lambda: fuse(Hand()), {}, TypeError, 'module .got Fusion'),
        (lambda: nn.Linear(2, 2), {}, ValueError, 'MessagePassing'),
        (
            lambda: torch.compile(Hand(), backend='eager'),
            {},
            ValueError,
            'compiled',
        ),
        (
            lambda: torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)),
            {},
            ValueError,
            'scripted',
        ),
        (quantized, {}, ValueError, "quantized.*'lin' of Hand"),
        (lambda: nn.DataParallel(Hand()), {}, ValueError, 'data-parallel'),
        (
            wrapped('DistributedDataParallel'),
            {},
            ValueError,
            'data-parallel: fuse it before',
        ),
        (Hand, {'min_nodes': -1}, ValueError, 'min_nodes.*-1'),
        (Hand, {'min_nodes': 2.5}, ValueError, 'min_nodes.*2.5'),
        (Hand, {'statistics': 'some'}, ValueError, "statistics.*'some'"),
    ],
)
@pytest.mark.filterwarnings('ignore::DeprecationWarning')
def test_fuse_rejects_bad_input(make, kwargs, error, message):
    with pytest.raises(error, match=f'fuse: .*{message}'):
        fuse(make(), **kwargs)


def test_parts_of_a_fused_model_are_not_fused():
    model = nn.Sequential(Hand())
    fuse(model, verbose=False)
    with pytest.raises(ValueError, match='part of a fused model'):
        fuse(model[0])


#: Reads of rows that were not computed, and how the error names them.
READS = {
    'mean over all dimensions': lambda out, batch: out.mean(),
    'mean over dimension 0': lambda out, batch: out.mean(0),
    'cross_entropy': lambda out, batch: F.cross_entropy(out, batch.y),
    'sum over all dimensions': lambda out, batch: out.sum(),
    'argmax over all dimensions': lambda out, batch: out.argmax(),
    'softmax over dimension 0': lambda out, batch: out.softmax(0),
    'matmul over the rows': lambda out, batch: torch.ones(3, 12) @ out,
    'matmul in batches': lambda out, batch: out @ torch.ones(3, 5, 2),
    'matmul with a tensor of 7 rows': lambda out, batch: (
        out[:, None] @ torch.ones(7, 5, 2)
    ),
    'matmul over the rows of many': lambda out, batch: (
        torch.ones(1, 3, 12) @ out.unsqueeze(0)
    ),
    'addmm over the rows of another': lambda out, batch: torch.addmm(
        torch.ones(12, 2), out, torch.ones(5, 2)
    ),
    'addmm over the rows': lambda out, batch: torch.addmm(
        out, torch.ones(12, 5), torch.ones(5, 5)
    ),
    '.T': lambda out, batch: out.T,
    '.data': lambda out, batch: out.data,
    't': lambda out, batch: out.t(),
    'flip': lambda out, batch: out.flip(0),
    'view to another number of rows': lambda out, batch: out.view(-1),
    'reshape to another': lambda out, batch: out.reshape(1, -1),
    'sum over dimension 1': lambda out, batch: out.unsqueeze(0).sum(1),
    'the index -1': lambda out, batch: out[-1],
    'the index [-5:]': lambda out, batch: out[-5:],
    'the index [0:150]': lambda out, batch: out[0:150],
    'the index [5:]': lambda out, batch: out[5:],
    'the index Tensor': lambda out, batch: out[torch.tensor([0, -1])],
    'the index [0, 100]': lambda out, batch: out[[0, 100]],
    'an index by a mask': lambda out, batch: out[batch.train_mask],
    'the index None': lambda out, batch: out[None],
    'index_select': lambda out, batch: out.index_select(
        0, torch.tensor([100])
    ),
    'an index by them': lambda out, batch: batch.x[out.argmax(-1)],
    'add with a tensor of 7 rows': lambda out, batch: out + torch.ones(7, 5),
    '__array__': lambda out, batch: np.asarray(out.detach()),
    'numpy': lambda out, batch: out.detach().numpy(),
    'tolist': lambda out, batch: out.tolist(),
    'item': lambda out, batch: out.item(),
    '__reduce_ex__': lambda out, batch: pickle.dumps(out),
    '__deepcopy__': lambda out, batch: copy.deepcopy(out),
    'where without': lambda out, batch: torch.where(out),
    'unbind': lambda out, batch: list(out),
    'layer_norm over the rows': lambda out, batch: F.layer_norm(
        out, out.shape
    ),
    'batch_norm in training': lambda out, batch: F.batch_norm(
        out, None, None, training=True
    ),
    'linear over the rows': lambda out, batch: F.linear(out[:, 0], out[:, 0]),
    "layer 'model' (SAGEConv), outside": lambda out, batch: outside(
        out, batch
    ),
}


def outside(out, batch):
    model = SAGEConv(5, 2)
    fuse(model, min_nodes=10**6, verbose=False)
    # As a part of a model that runs without blocks.
    return model(out, batch.edge_index)


@pytest.mark.parametrize('what', READS)
def test_rows_that_were_not_computed_are_not_read(what, out, batch):
    with pytest.raises(IndexError, match='fuse: ') as error:
        READS[what](out, batch)
    text = str(error.value)
    assert re.split(' without| of many| of another', what)[0] in text
    assert f'of the {batch.num_nodes} rows of the output of layer' in text
    assert f'the first {batch.batch_size} were computed' in text
    assert "'convs.2' (SAGEConv)" in text


#: Reads of computed rows, and the results of a plain tensor.
KEPT = {
    'seeds': lambda out, n: out[:n],
    'a part of them': lambda out, n: out[2:5, 1:],
    'a row': lambda out, n: out[3],
    'some rows': lambda out, n: out[torch.tensor([3, 0, 3])],
    'a list': lambda out, n: out[[0, 2]],
    'selected': lambda out, n: out.index_select(0, torch.tensor([1])),
    'softmax': lambda out, n: out.softmax(-1)[:n],
    'argmax': lambda out, n: out.argmax(dim=-1)[:n],
    'max': lambda out, n: out.max(dim=1).values[:n],
    'chunks': lambda out, n: out.chunk(2, dim=-1)[1][:n],
    'heads': lambda out, n: out.view(-1, 1, 5).sum(1)[:n],
    'where': lambda out, n: torch.where(out > 0, out, -out)[:n],
    'arithmetic': lambda out, n: (1 - 2 * out / 3)[:n],
    'a column': lambda out, n: out[:, 1][:n],
    'an einsum of two': lambda out, n: (out * out).sum(-1)[:n],
    'stacked': lambda out, n: torch.stack([out, out])[1][:n],
    'in place': lambda out, n: out.clone().mul_(2).add_(out)[:n],
    'normalized': lambda out, n: F.normalize(out, dim=-1)[:n],
    'permuted': lambda out, n: out.view(-1, 5, 1).permute(0, 2, 1)[:n],
    'projected': lambda out, n: (out @ torch.ones(5, 2))[:n],
    'projected with others': lambda out, n: torch.addmm(
        out, out, torch.ones(5, 5), beta=0.5
    )[:n],
    'projected with a bias': lambda out, n: torch.addmm(
        torch.ones(2), out, torch.ones(5, 2)
    )[:n],
    'projected stacks': lambda out, n: (
        torch.stack([out, out]) @ torch.arange(50.0).view(2, 5, 5)
    )[1][:n],
    'a matrix of each row': lambda out, n: (
        out.view(-1, 1, 5) @ torch.arange(10.0).view(1, 5, 2)
    )[:n],
    'matrices of rows': lambda out, n: (
        out.view(-1, 5, 1) @ out.view(-1, 1, 5)
    )[:n],
}


@pytest.mark.parametrize('what', KEPT)
def test_rows_that_were_computed_are_read(what, batch):
    model = Hand()
    size = batch.batch_size
    whole = model(batch.x, batch.edge_index.plain)
    fuse(model, min_nodes=0, verbose=False)
    out = model(batch.x, batch.edge_index)
    got, want = KEPT[what](out, size), KEPT[what](whole, size)
    assert type(got) is torch.Tensor
    assert torch.allclose(got, want, atol=1e-6)


def test_shapes_are_those_of_computed_rows(out, batch):
    assert out.shape == (batch.batch_size, 5)
    assert len(out) == out.size(0) == batch.batch_size
    assert isinstance(out, FirstRows)
    assert 'FirstRows' in repr(out)


class Changing(Hand):
    """A model that does not always do the same."""

    how = ''

    def forward(self, x, edge_index):
        convs = list(self.convs)
        if self.how == 'order':
            convs.reverse()
        if self.how == 'often':
            convs *= 2
        if self.how == 'edges':
            edge_index = edge_index.flip(0)
        for conv in convs:
            x = conv(x, edge_index).relu()
        if self.how == 'mean':
            x = x - x.mean(0)
        return x


@pytest.mark.parametrize(
    ('how', 'why'),
    [
        ('order', 'ran where'),
        ('often', 'ran more often'),
        ('edges', 'are not those of a batch'),
        ('mean', 'mean over dimension 0'),
    ],
)
def test_models_that_change_run_on_whole_batches(how, why, batch):
    model = Changing()
    fuse(model, min_nodes=0, verbose=False)
    model(batch.x, batch.edge_index)
    model.how = how
    want = model(batch.x, unmarked(batch).edge_index)
    with pytest.warns(UserWarning, match=f'whole batches.*{why}'):
        out = model(batch.x, batch.edge_index)
    assert torch.allclose(out, want, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        again = model(batch.x, batch.edge_index)
    assert torch.allclose(again, want, atol=1e-6)


def test_errors_of_a_model_are_its_own(batch):
    class Failing(Hand):
        def forward(self, x, edge_index):
            raise KeyError('mine')

    model = Failing()
    fuse(model, min_nodes=0, verbose=False)
    with pytest.raises(KeyError, match='mine') as error:
        model(batch.x, batch.edge_index)
    assert error.value.__context__ is None


def test_edges_of_one_batch_with_features_of_another(sample):
    model = GraphSAGE(**BASIC)
    fuse(model, min_nodes=0, verbose=False)
    first, second = sample
    model(first.x, first.edge_index)
    with pytest.raises(IndexError, match='must be in'):
        model(second.x[:5], first.edge_index)


def test_edges_that_were_changed_in_place_know_no_blocks(batch):
    model = Hand()
    fuse(model, min_nodes=0, verbose=False)
    changed = batch.clone()
    model(changed.x, changed.edge_index)
    changed.edge_index[0] = 0
    want = model(changed.x, changed.edge_index.plain)
    out = model(changed.x, changed.edge_index)
    assert type(out) is torch.Tensor
    assert torch.equal(out, want)


def test_the_result_is_not_taken_for_the_model():
    result, text = fuse(Hand()), "'model' is changed in place: use it"
    with pytest.raises(TypeError, match=text):
        result(torch.ones(4, 8), None)
    with pytest.raises(AttributeError, match=text):
        result.parameters()
    assert not hasattr(result, 'other')
    with pytest.raises(TypeError, match="unfuse: 'model' must be a module"):
        unfuse(result)
