"""Products of values of edges, which torch takes a tile at a time."""

import copy

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

import torch_gsample as gsample
from tests.fusion.layers import WIDTH, mlp, sample
from tests.fusion.test_layers import assert_close, assert_same, fused
from torch_gsample.vertex import prod, var
from torch_gsample.vertex.kernels import edge_tiles

W = WIDTH


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    """Tiles of at most 16 edges."""
    for name in ('_LEAST', '_MOST'):
        monkeypatch.setattr(edge_tiles, name, 16)


def wide(*widths, **options):
    return pyg.MLP(list(widths), **{'norm': None, **options})


LAYERS = {
    'EdgeConv': (lambda: pyg.EdgeConv(wide(2 * W, 16, 12)), 'x edge_index'),
    'EdgeConv, sum of three products': (
        lambda: pyg.EdgeConv(wide(2 * W, 16, 16, 12), aggr='sum'),
        'x edge_index',
    ),
    'EdgeConv, batch norm': (
        lambda: pyg.EdgeConv(wide(2 * W, 16, 12, norm='batch_norm')).eval(),
        'x edge_index',
    ),
    'PointNetConv': (
        lambda: pyg.PointNetConv(wide(W + 3, 16, 12)),
        'x pos edge_index',
    ),
    'PointTransformerConv': (
        lambda: pyg.PointTransformerConv(W, 12, attn_nn=wide(12, 16, 12)),
        'x pos edge_index',
    ),
    'PointGNNConv': (
        lambda: pyg.PointGNNConv(
            mlp(W, 8, 3), wide(W + 3, 16, 16, W), mlp(W, W)
        ),
        'x pos edge_index',
    ),
}


@pytest.fixture
def tiles(monkeypatch):
    """Counts the functions that run by tiles."""
    calls = []
    run = edge_tiles.over_tiles

    def counted(function, some, *args):
        calls.append(len(some))
        return run(function, some, *args)

    monkeypatch.setattr(edge_tiles, 'over_tiles', counted)
    monkeypatch.setattr(
        'torch_gsample.vertex.kernels.hub_run.over_tiles', counted
    )
    return calls


def called(name, dtype=torch.float64):
    torch.manual_seed(7)
    make, names = LAYERS[name]
    given = sample(dtype)
    for key in ('x', 'edge_attr', 'pos'):
        given[key].requires_grad_()
    return make().to(dtype), [given[n] for n in names.split()]


@pytest.mark.parametrize('name', LAYERS)
def test_layers_with_wide_products_equal_those_of_pyg(name, tiles):
    theirs, args = called(name)
    ours, capture, _ = fused(theirs)
    ours.train(theirs.training)
    assert_same(ours, theirs, args)
    assert capture.is_fused, capture.reason
    # Forward and backward; a softmax of the hub has three stages.
    stages = 3 if name == 'PointTransformerConv' else 1
    assert len(tiles) == 2 * stages
    assert min(tiles) >= 4


def second(layer, x, edge_index):
    """Returns gradients of the squares of gradients."""
    wanted = [x, *layer.parameters()]
    out = layer(x, edge_index).tanh().sum()
    first = torch.autograd.grad(out, wanted, create_graph=True)
    total = sum(grad.square().sum() for grad in first)
    return torch.autograd.grad(total, wanted, allow_unused=True)


def test_gradients_of_gradients(tiles):
    torch.manual_seed(7)
    given = sample()
    x = given['x'].requires_grad_()
    theirs = pyg.EdgeConv(wide(2 * W, 16, 12, act='tanh'), 'sum').double()
    ours, capture, _ = fused(theirs)
    found = second(ours, x, given['edge_index'])
    want = second(theirs, x, given['edge_index'])
    assert_close(
        [y for y in found if y is not None],
        [y for y in want if y is not None],
        1e-9,
    )
    assert capture.is_fused, capture.reason
    assert len(tiles) == 4


def test_graphs_without_edges_and_of_few_edges():
    theirs, (x, edge_index) = called('EdgeConv')
    ours, _, _ = fused(theirs)
    for edges in (0, 1, 17, 200):
        assert_same(ours, theirs, [x, edge_index[:, :edges]])


def test_two_kinds_of_vertices():
    torch.manual_seed(7)
    x = torch.randn(40, W, dtype=torch.float64, requires_grad=True)
    y = torch.randn(17, W, dtype=torch.float64, requires_grad=True)
    edges = torch.stack([torch.randint(40, (200,)), torch.randint(15, (200,))])
    theirs = pyg.EdgeConv(wide(2 * W, 16, 12)).double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, [(x, y), edges])
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16])
def test_other_precisions(dtype):
    exact, (x, edge_index) = called('EdgeConv')
    want = exact(x, edge_index)
    [grad] = torch.autograd.grad(want.sum(), x)
    ours, capture, _ = fused(copy.deepcopy(exact).to(dtype))
    y = x.detach().to(dtype).requires_grad_()
    out = ours(y, edge_index)
    [found] = torch.autograd.grad(out.sum(), y)
    assert out.dtype == found.dtype == dtype
    assert capture.is_fused, capture.reason
    bound = 1e-5 if dtype == torch.float32 else 0.1
    torch.testing.assert_close(out.double(), want, atol=bound, rtol=bound)
    if dtype == torch.float32:
        torch.testing.assert_close(found.double(), grad, atol=1e-4, rtol=1e-4)


@gsample.vertex_program
def deep(v, first, second):
    hidden = [torch.relu(e.src.x + e.w * v.x) for e in v.inedges]
    scores = [torch.tanh(h @ first) @ second for h in hidden]
    return sum(torch.exp(s) for s in scores) + max(scores)


@gsample.vertex_program
def aggregated(v, first, second):
    h = [torch.relu(e.src.x + e.w * v.x) @ first for e in v.inedges]
    top = max(h)
    total = sum(torch.exp(x - top) for x in h)
    factor = prod(1 + x / 50 for x in h)
    weights = [(torch.exp(x - top) / total) @ second for x in h]
    low = min(e.src.x * 2.0 - v.x for e in v.inedges)
    return top + total + var(h) * factor + low @ first, weights


def test_hubs_in_parts_have_all_aggregates(monkeypatch, tiles):
    edge_index, x, w, parts = random_graph()
    edge_index[1, 90:140] = 7  # and equal extremes in several parts:
    x = x.detach().double().round().requires_grad_()
    w = w.detach().double().round().requires_grad_()
    parts = [y.detach().double().requires_grad_() for y in parts]
    found = []
    for size in (16, 1000):
        for name in ('_LEAST', '_MOST'):
            monkeypatch.setattr(edge_tiles, name, size)
        tiles.clear()
        out = aggregated(edge_index, x=x, w=w, first=parts[0], second=parts[1])
        loss = sum(y.tanh().sum() for y in out)
        found.append([*out, *torch.autograd.grad(loss, [x, w, *parts])])
        assert len(tiles) == (8 if size == 16 else 0)
    assert_close(*found, 1e-8)


def random_graph():
    torch.manual_seed(3)
    edge_index = torch.randint(60, (2, 400))
    edge_index[1, :90] = 2
    x = torch.randn(64, 16, requires_grad=True)
    w = torch.rand(400, requires_grad=True)
    parts = [(torch.randn(16, 16) / 4).requires_grad_() for _ in range(2)]
    return edge_index, x, w, parts


def test_bits_do_not_depend_on_the_number_of_threads():
    edge_index, x, w, (first, second) = random_graph()
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            out = deep(edge_index, x=x, w=w, first=first, second=second)
            leaves = x, w, first, second
            found.append([out, *torch.autograd.grad(out.sum(), leaves)])
        finally:
            torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


def test_tiles_that_inference_made_serve_training():
    theirs, (x, edge_index) = called('EdgeConv')
    ours, _, _ = fused(theirs)
    with torch.inference_mode():
        ours(x, edge_index)
    assert_same(ours, theirs, [x, edge_index])


def test_gradients_of_gradients_in_half_precision():
    edge_index, x, _, (weight, _) = random_graph()

    @gsample.vertex_program
    def hidden(v, weight):
        return sum(torch.tanh(u.x + v.x) @ weight for u in v.innbs)

    def squares(x, weight):
        out = hidden(edge_index, x=x, weight=weight).tanh().float().sum()
        [grad] = torch.autograd.grad(out, x, create_graph=True)
        return torch.autograd.grad(grad.float().square().sum(), (x, weight))

    half = [y.detach().bfloat16().requires_grad_() for y in (x, weight)]
    for found, want in zip(squares(*half), squares(x, weight), strict=True):
        assert found.dtype == torch.bfloat16
        error = (found.float() - want).norm() / want.norm()
        assert error < 0.1


@gsample.vertex_program
def noisy(v, weight):
    hidden = [torch.relu(u.x + v.x) for u in v.innbs]
    kept = [nn.functional.dropout(h, 0.5) for h in hidden]
    return sum(h @ weight for h in kept)


def test_dropout_of_tiles_differs_and_is_repeated_by_the_gradient(tiles):
    ones = torch.ones(64, 1)
    ring = torch.arange(64)
    edge_index = torch.stack([ring, (ring + 1) % 64])
    weight = torch.ones(1, 16, requires_grad=True)
    torch.manual_seed(0)
    out = noisy(edge_index, x=ones, weight=weight)
    kept = out[:, 0] > 0
    assert 16 < kept.sum() < 48
    parts = kept.view(-1, 16)
    assert not all(torch.equal(part, parts[0]) for part in parts)
    [grad] = torch.autograd.grad(out.sum(), weight)
    assert (grad == 4 * kept.sum()).all()
    assert len(tiles) == 2


@gsample.vertex_program
def dropped(v, weight):
    kept = nn.functional.dropout(v.x, 0.5)
    return sum(torch.relu(u.x + kept) @ weight for u in v.innbs)


def test_dropout_of_a_hub_is_the_same_for_all_its_edges():
    edge_index = torch.stack([torch.arange(50), torch.zeros(50).long()])
    x = torch.zeros(50, 32)
    x[0] = 1
    out = dropped(edge_index, x=(torch.zeros(50, 32), x), weight=torch.eye(32))
    assert out[0].unique().tolist() == [0, 100]


def test_no_value_of_all_edges_is_stored(monkeypatch):
    shapes = set()

    class Seen(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.dim() > 1:
                shapes.add(tuple(out.shape))
            return out

    edge_index, x, w, (first, second) = random_graph()
    deep(edge_index, x=x, w=w, first=first, second=second)
    with Seen():
        out = deep(edge_index, x=x, w=w, first=first, second=second)
        torch.autograd.grad(out.sum(), x)
    assert not any(rows >= 400 for rows, *_ in shapes)
    # Neither of those of the hub: sources and destinations have most rows.
    assert max(rows for rows, *_ in shapes) == 64
