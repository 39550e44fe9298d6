"""How many tensors of features a layer holds at once."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.vertex.programs import PROGRAMS, features
from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Block
from torch_gsample.codegen.unit import DESTINATION
from torch_gsample.vertex import nn
from torch_gsample.vertex.kernels import operator
from torch_gsample.vertex.nn import fusible

N, C, HEADS, RELATIONS = 300, 64, 8, 4


class Live(TorchDispatchMode):
    """Counts the bytes of storages that operators have made."""

    def __init__(self):
        super().__init__()
        self.known, self.now, self.top = set(), 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {
            id(x.untyped_storage())
            for x in tree_leaves((args, kwargs))
            if isinstance(x, torch.Tensor)
        }
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor):
                storage = x.untyped_storage()
                key = storage._cdata
                if id(storage) not in given and key not in self.known:
                    self.known.add(key)
                    self.now += storage.nbytes()
                    self.top = max(self.top, self.now)
                    size = storage.nbytes()
                    weakref.finalize(storage, self.free, key, size)
        return out

    def free(self, key, size):
        self.known.discard(key)
        self.now -= size


def peak(layer, edges, *more):
    """The most at once, in tensors of features."""
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(N, (2, edges), generator=generator)
    given = edge_index, *(part(edges) for part in more)
    x = torch.randn(N, C, requires_grad=True)

    def call():
        out = layer(x, *given)
        leaves = [x, *layer.parameters()]
        torch.autograd.grad(out, leaves, torch.ones_like(out))

    call()  # layouts are made once
    with Live() as live:
        call()
    return live.top / (4 * N * C)


def relations(edges):
    return torch.arange(edges) % RELATIONS


# What has to be there in the end: results, their gradient, that of features
# after the product and that of features. Autograd adds to gradients in place
# only where no mode looks on: here, there is one more for attention.
LAYERS = {
    'gcn': (lambda: nn.GCNConv(C, C), (), 4.3),
    'gat': (lambda: nn.GATConv(C, C // HEADS, heads=HEADS), (), 5.6),
}


@pytest.mark.parametrize('name', LAYERS)
def test_a_layer_holds_few_tensors_and_none_of_edges(name):
    make, more, most = LAYERS[name]
    layer = make()
    few, many = (peak(layer, edges, *more) for edges in (1_000, 50_000))
    assert few == many < most


def test_no_value_of_a_vertex_and_a_relation_is_held():
    """Few edges have few pairs of these, many have all."""
    layer = nn.RGCNConv(C, C, RELATIONS)
    few, many = (peak(layer, edges, relations) for edges in (100, 50_000))
    assert few == many < 6.3


def test_sources_read_no_copy_of_the_gradient():
    """Only what has a number for each head is prepared for them."""
    f = features('gat')
    plan = PROGRAMS['gat'].plan(**f)
    [(unit, _)] = plan.units.values()
    fused = operator.training(unit, range(len(unit.leaves)))
    first, _ = fused.backward.parts[0]
    widths = [
        first.unit.width(output.axes)
        for output in first.unit.outputs
        if output.kind == DESTINATION
    ]
    assert widths
    assert max(widths) == f['eu'].shape[1]


def test_a_gradient_comes_again_while_the_graph_is_kept():
    f = features('gat')
    out = PROGRAMS['gat'](torch.randint(7, (2, 24)), **f)
    loss = out.sin().sum()
    found = [
        torch.autograd.grad(loss, f['h'], retain_graph=True)[0]
        for _ in range(2)
    ]
    assert torch.equal(*found)


def block(edges=4_000, destinations=N - 10):
    """A block that computes all but a few of its sources."""
    generator = torch.Generator().manual_seed(2)
    row = torch.randint(N, (edges,), generator=generator)
    col = torch.randint(destinations, (edges,), generator=generator).sort()[0]
    counts = destinations, N - destinations
    edges = BatchEdges(torch.stack([row, col]), counts, counts, [edges])
    return Block(edges, 0)


ON_BLOCKS = {
    'sage': lambda: nn.SAGEConv(C, C),
    'sage max, projected': lambda: nn.SAGEConv(C, C, 'max', project=True),
    'sage without root': lambda: nn.SAGEConv(C, C, root_weight=False),
    'rgcn': lambda: nn.RGCNConv(C, C, RELATIONS),
    'gat': lambda: nn.GATConv(C, 4, 2),
    'gat of two matrices': lambda: nn.GATConv((C, C), 4, 2),
    'gatv2': lambda: nn.GATv2Conv(C, 4, 2),
    'gatv2 residual': lambda: nn.GATv2Conv(C, 4, 2, residual=True),
    'gatv2 shared': lambda: nn.GATv2Conv(C, 4, 2, share_weights=True),
}


@pytest.mark.parametrize('name', ON_BLOCKS)
def test_gradients_of_both_ends_are_added_in_place(name, monkeypatch):
    layer, graph = ON_BLOCKS[name](), block()
    more = [relations(graph.num_edges)] if name == 'rgcn' else []
    # The features are read by others, too, after the layer and before.
    x = torch.randn(N, C)
    found = []
    for least in (0, 1 << 30):
        monkeypatch.setattr(fusible, '_SHARED', least)
        leaf = x.clone().requires_grad_()
        given = leaf.tanh()
        early = given.sin().sum()
        out = layer(given, graph, *more)
        loss = early + out.cos().sum() + (given[:5] ** 2).sum()
        inputs = [leaf, *layer.parameters()]
        first = torch.autograd.grad(loss, inputs, retain_graph=True)
        again = torch.autograd.grad(loss, inputs)
        assert all(map(torch.equal, first, again))
        found.append(first)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize('name', ['sage', 'gatv2', 'gatv2 residual'])
def test_ends_of_large_features_are_shared(name, monkeypatch):
    monkeypatch.setattr(fusible, '_SHARED', 0)
    x = torch.randn(N, C, requires_grad=True)
    stack, seen = [ON_BLOCKS[name]()(x, block()).grad_fn], set()
    while stack:
        node = stack.pop()
        seen.add(type(node).__name__)
        stack += [y for y, _ in node.next_functions if y is not None]
    assert '_SharedRowsBackward' in seen


def test_a_gradient_of_destinations_fills_no_other_rows():
    """A slice's gradient would be zeros for all sources first."""
    graph = block()
    assert N * C < fusible._SHARED <= 4 * N * 4 * C
    x = torch.randn(4 * N, 4 * C, requires_grad=True)
    out = fusible.share_rows((x[:N], x[: graph.num_dst]), x, graph)
    nodes = {type(node).__name__ for node in (y.grad_fn for y in out)}
    assert nodes == {'_SharedRowsBackward'}
    assert 'Slice' in type(graph.pair(x)[1].grad_fn).__name__
    small = torch.randn(N, C, requires_grad=True)
    pair = fusible.share_rows(graph.pair(small), small, graph)
    assert 'Slice' in type(pair[1].grad_fn).__name__


def test_a_gradient_that_others_have_is_not_changed(monkeypatch):
    """As of layers that add their features to their results."""
    monkeypatch.setattr(fusible, '_SHARED', 0)
    x, other = (torch.randn(N, C, requires_grad=True) for _ in range(2))
    source, target = fusible.both_ends(x, 5)
    assert type(target.grad_fn).__name__ == '_SharedRowsBackward'
    weight = torch.randn(N, C)
    loss = ((source + other) * weight).sum() + target.exp().sum()
    found = torch.autograd.grad(loss, [x, other], retain_graph=True)
    expected = weight.clone()
    expected[:5] += x[:5].exp()
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(found[1], weight)
    [again] = torch.autograd.grad(loss, [x], create_graph=True)
    torch.testing.assert_close(again, expected)
    [second] = torch.autograd.grad(again.sum(), [x])
    torch.testing.assert_close(second[:5], x[:5].exp())
    assert not second[5:].any()


@pytest.mark.parametrize('reads', [(True, False), (False, True)])
def test_one_end_may_have_no_gradient(reads, monkeypatch):
    monkeypatch.setattr(fusible, '_SHARED', 0)
    x = torch.randn(N, C, requires_grad=True)
    ends = fusible.both_ends(x, 5)
    loss = sum(y.sum() for y, read in zip(ends, reads, strict=True) if read)
    [found] = torch.autograd.grad(loss, [x])
    expected = torch.zeros(N, C)
    expected[: N if reads[0] else 5] = 1
    assert torch.equal(found, expected)


def test_features_of_a_block_that_are_all_of_its_rows_are_no_slice():
    graph = block()
    x = torch.randn(graph.num_src, C, requires_grad=True)
    assert graph.pair(x)[0] is x
    assert graph.pair((x, x[: graph.num_dst]))[1].shape[0] == graph.num_dst
    more = torch.cat([x, x])
    assert graph.pair(more)[0].shape == x.shape


def test_products_are_added_in_place():
    layer, graph = nn.SAGEConv(C, C), block()
    out = layer(torch.randn(N, C), graph)
    assert type(out.grad_fn).__name__ == 'AddmmBackward0'


def test_hooks_of_a_linear_layer_see_its_product():
    layer, graph, seen = nn.SAGEConv(C, C), block(), []
    x = torch.randn(N, C)
    expected = layer(x, graph)
    layer.lin_l.register_forward_hook(lambda _, args, out: seen.append(out))
    found = layer(x, graph)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(found, seen[0] + layer.lin_r(x[: len(found)]))


def test_a_product_that_a_gradient_reads_is_left_alone():
    layer, graph = nn.SAGEConv(C, C), block()
    layer.lin_l = torch.nn.Sequential(layer.lin_l, torch.nn.Sigmoid())
    out = layer(torch.randn(N, C), graph)
    out.sum().backward()
    assert layer.lin_l[0].weight.grad.abs().sum() > 0
