"""How many tensors of features a layer holds at once."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.vertex.programs import PROGRAMS, features
from torch_gsample.codegen.unit import DESTINATION
from torch_gsample.vertex import nn
from torch_gsample.vertex.kernels import operator

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
