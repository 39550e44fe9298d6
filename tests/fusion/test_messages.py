"""The user's own messages: fused ones, and those left to PyG."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import OptPairTensor
from torch_geometric.utils import scatter, softmax

from tests.fusion.models import Hand, batches, graph
from tests.fusion.test_exact import unmarked
from tests.fusion.test_layers import assert_same, fused
from torch_gsample import fuse
from torch_gsample.fusion.rows import FirstRows
from torch_gsample.vertex.capture.propagate import capture_of

WIDTH = 6


class Own(MessagePassing):
    """A layer with messages that tests write."""

    propagate_type = {'x': OptPairTensor}

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = nn.Parameter(torch.randn(WIDTH, dtype=torch.float64))

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


def given(nodes=30, edges=120):
    x = torch.randn(nodes, WIDTH, dtype=torch.float64, requires_grad=True)
    return x, torch.randint(nodes - 4, (2, edges))


class Attention(Own):
    def message(self, x_i, x_j, index, ptr, size_i):
        score = (x_i * x_j).sum(-1, keepdim=True) * self.weight[:1]
        return softmax(score, index, ptr, size_i) * x_j


class Aggregated(Own):
    def message(self, x_j):
        return x_j * self.weight

    def aggregate(self, inputs, index, dim_size=None):
        return scatter(inputs, index, 0, dim_size, 'mean')

    def update(self, inputs, x):
        end = int(self.flow == 'source_to_target')
        return inputs.relu() + (x[end] if isinstance(x, tuple) else x)


class Product(Own):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = pyg.MLP([2 * WIDTH, WIDTH], plain_last=False).double()
        self.norm.eval()

    def message(self, x_i, x_j):
        return self.norm(torch.cat([x_i, x_j - x_i], -1))

    def train(self, mode=True):
        return self


class Branch(Own):
    def message(self, x_i, x_j):
        with torch.no_grad():
            far = (x_j - x_i).abs()
        return torch.where(x_j > x_i, x_j * far, 0.0)


class Normed(Own):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = nn.LayerNorm(WIDTH, dtype=torch.float64)

    def message(self, x_i, x_j):
        return F.elu(self.norm(x_j) + x_i) * torch.exp(-F.softplus(x_i))


KINDS = (Attention, Aggregated, Product, Branch, Normed)


@pytest.mark.parametrize('kind', KINDS)
def test_messages_of_the_user_are_fused(kind):
    theirs = kind()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, given())
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('kind', [Attention, Aggregated])
@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
def test_directions_and_two_kinds_of_vertices(kind, flow):
    theirs = kind(flow=flow)
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, given())
    x, y, edges = given(30)[0], given(17)[0], torch.randint(17, (2, 90))
    assert_same(ours, theirs, [(x, y), edges])
    assert capture.is_fused, capture.reason
    assert len(capture._known) == 2


@pytest.mark.parametrize('kind', [pyg.GraphConv, pyg.WLConvContinuous])
def test_pairs_of_the_same_vertices_against_the_edges(kind):
    width = (WIDTH, WIDTH) if kind is pyg.GraphConv else ()
    theirs = kind(*width, flow='target_to_source').double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, given())  # the layer makes (x, x) of x
    assert capture.is_fused, capture.reason


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Size(Own):
    def message(self, x_j):
        return x_j / x_j.size(0)


class Reads(Own):
    def message(self, x_i, x_j):
        return x_j if bool((x_i > 0).all()) else -x_j


class Draws(Own):
    def message(self, x_j):
        return F.dropout(x_j, 0.5, self.training)


class Sorts(Own):
    def message(self, x_j):
        return torch.sort(x_j, -1)[0]


class Straight(Own):
    def message(self, x_i, x_j):
        return Sign.apply(x_j - x_i)


class Keeps(Own):
    def message(self, x_j):
        self.seen = x_j
        return x_j


class Outer(Own):
    def message(self, x_i, x_j):
        z = x_i + x_j
        return (z.unsqueeze(1) * z.unsqueeze(2)).sum(-1)


class Surroundings(Own):
    scale = torch.ones(WIDTH, dtype=torch.float64)

    def message(self, x_j):
        return x_j * self.scale


class Shared(Own):
    def message(self, x_i, x_j):
        z = x_j - x_i
        z[:, :3].mul_(2.0)
        return z


class Centred(Own):
    def message(self, x_j):
        return x_j - x_j.mean(0)


class Behind(Own):
    def message(self, x_j, edge_index_j, size_j):
        return softmax(x_j, edge_index_j, None, size_j)


class Broken(Own):
    def message(self, x_j):
        return x_j.no_such_function()


NOT_FUSED = {
    Size: 'depends on the number of vertices',
    Reads: 'torch.all is not supported',
    Sorts: 'torch.sort is not supported',
    Straight: 'torch.autograd.Function',
    Keeps: "sets the attribute 'seen'",
    Outer: 'is combined with itself',
    Surroundings: 'neither an argument nor a parameter',
    Shared: 'torch.mul_ changes a shared tensor',
    Centred: 'it runs along rows',
    Behind: 'it aggregates over out-edges',
}
NAMELESS = Size, Keeps, Outer


@pytest.mark.parametrize('kind', NOT_FUSED)
def test_unfusable_layers_run_as_in_pyg(kind):
    theirs = kind()
    ours, capture, fusion = fused(theirs)
    x, edges = given()
    torch.manual_seed(1)
    want = theirs(x, edges)
    torch.manual_seed(1)
    assert torch.equal(ours(x, edges), want)
    assert not capture.is_fused
    assert NOT_FUSED[kind] in capture.reason
    assert capture.reason in fusion.report()
    if kind not in NAMELESS:
        assert 'line ' in capture.reason


def test_errors_of_messages_are_those_of_pyg():
    ours, capture, _ = fused(Broken())
    with pytest.raises(AttributeError, match=r"'Tensor' object.*no_such"):
        ours(*given())
    assert 'no_such_function' in capture.reason


def test_dropout_is_fused_in_evaluation():
    theirs = Draws().eval()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, given())
    assert capture.is_fused, capture.reason
    args = given()
    ours.train()
    assert not torch.equal(ours(*args), theirs(*args))


def test_changes_of_a_layer_are_seen():
    layer = pyg.SuperGATConv(WIDTH, 4).double()
    ours, capture, _ = fused(layer)
    x, edges = given()
    assert_same(ours, layer, [x, edges])
    for made in (layer, ours.conv):
        made.negative_slope = 0.9
        made.att_l = nn.Parameter(made.att_l.detach() * 2)
    assert_same(ours, layer, [x, edges])
    assert capture.is_fused, capture.reason
    for made in (layer, ours.conv):
        made.message = lambda x_j, **_: x_j * 0.5
    assert_same(ours, layer, [x, edges])


@pytest.mark.parametrize(
    'hook',
    [
        'register_message_forward_hook',
        'register_aggregate_forward_pre_hook',
        'register_propagate_forward_hook',
    ],
)
def test_layers_with_hooks_are_left_to_pyg(hook):
    ours, capture, _ = fused(Attention())
    args = given()
    ours(*args)
    seen = []
    handle = getattr(ours.conv, hook)(lambda *args: seen.append(1))
    ours(*args)
    assert seen
    assert 'hooks' in capture.reason
    handle.remove()
    ours(*args)
    assert len(seen) == 1


def test_other_graphs_are_those_of_pyg():
    theirs = pyg.GraphConv(WIDTH, 4).double()
    ours, capture, _ = fused(theirs)
    x, edges = given()
    size = (x.shape[0], x.shape[0])
    sparse = torch.sparse_coo_tensor(
        edges.flip(0), torch.ones(120, dtype=torch.float64), size
    )
    assert_same(ours, theirs, [x, sparse.to_sparse_csr()])
    assert not capture.is_fused
    known = EdgeIndex(edges, sparse_size=size).sort_by('col').values
    layer = copy.deepcopy(theirs).float()
    x_32 = x.detach().float().requires_grad_()
    assert_same(fused(layer)[0], layer, [x_32, known], 1e-5)
    loose = EdgeIndex(edges, sparse_size=size)
    assert_same(ours, theirs, [x, loose])
    assert capture.is_fused, capture.reason
    wrong = torch.tensor([[99], [0]])
    with pytest.raises(IndexError, match='larger than 29'):
        ours(x, wrong)


def test_gradients_after_a_call_without_them():
    theirs = Attention()
    ours, _, _ = fused(theirs)
    args = given()
    with torch.no_grad():
        ours(*args)
    assert_same(ours, theirs, args)


def test_copies_capture_by_themselves():
    theirs = pyg.TransformerConv(WIDTH, 4).double()
    ours, _, _ = fused(theirs)
    args = given()
    ours(*args)
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert_same(again, ours, args)
        assert capture_of(again.conv).is_fused


def test_small_graphs_are_left_to_pyg():
    ours, capture, _ = fused(Attention())
    fuse(ours).undo()
    report = fuse(ours, min_nodes=31, verbose=False)
    ours(*given(30))
    assert not capture.is_fused
    assert 'no messages were captured' in report.report()
    ours(*given(31))
    assert capture.is_fused
    assert 'messages fused' in report.report()


def test_messages_are_fused_on_blocks():
    [batch] = batches(graph(), count=1)
    model = Hand('', 3, lambda a, b: pyg.GraphConv(a, b)).double()
    size = batch.batch_size
    plain = unmarked(batch)
    want = model(plain.x, plain.edge_index)[:size]
    fusion = fuse(model, min_nodes=0, verbose=False)
    out = model(batch.x, batch.edge_index)
    assert isinstance(out, FirstRows)
    torch.testing.assert_close(out[:size], want)
    assert fusion.report().count('messages fused, exact block') == 3


def test_inference_mode():
    theirs = pyg.TransformerConv(WIDTH, 4, flow='target_to_source').double()
    ours, capture, _ = fused(theirs)
    with torch.inference_mode():
        x, edges = given()
        torch.testing.assert_close(ours(x, edges), theirs(x, edges))
    assert capture.is_fused, capture.reason
    assert_same(ours, theirs, given())


@pytest.mark.parametrize('rows', [29, 30])
def test_messages_of_few_vertices_are_not_captured(monkeypatch, rows):
    calls = []
    monkeypatch.setattr(
        type(capture_of(nn.Identity())),
        'run',
        lambda *args: calls.append(args[1]) or args[3](args[5], **args[6]),
    )
    x, edge_index = given(rows)
    edge_index = edge_index % rows
    layers = pyg.APPNP(3, 0.1), pyg.SSGConv(WIDTH, WIDTH, 0.1, K=3).double()
    model = copy.deepcopy(nn.ModuleList(layers))
    fuse(model, min_nodes=30, verbose=False)
    for ours, theirs in zip(model, layers, strict=True):
        torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
    # Of as many, the first one is a kernel, the messages of the other are.
    assert len(calls) == (0 if rows < 30 else 3)
