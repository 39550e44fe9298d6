"""Products with the matrix of an edge's type, and the layout of matrices."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

from tests.fusion.test_layers import assert_same, fused
from torch_gsample.vertex.capture import run
from torch_gsample.vertex.kernels import products
from torch_gsample.vertex.kernels.graph_cache import bounds_of

NODES, SOURCES, EDGES, TYPES, IN, OUT = 12, 17, 60, 3, 5, 4


class Typed(MessagePassing):
    """Both ends, multiplied by the matrix of the edge's type."""

    def __init__(self, choose='index_select', **kwargs):
        super().__init__(**kwargs)
        weight = torch.randn(TYPES, IN, OUT, dtype=torch.float64)
        self.weight, self.choose = nn.Parameter(weight), choose

    def forward(self, x, edge_index, edge_type):
        return self.propagate(edge_index, x=x, edge_type=edge_type)

    def message(self, x_i, x_j, edge_type):
        if self.choose == 'index_select':
            w = self.weight.index_select(0, edge_type)
        else:
            w = self.weight[edge_type]
        out_i = torch.bmm(x_i.unsqueeze(1), w).squeeze(1)
        out_j = torch.bmm(x_j.unsqueeze(1), w).squeeze(1)
        return out_i.tanh() * out_j


@pytest.fixture(params=['all vertices', 'sorted edges'])
def calls(request, monkeypatch):
    """Lists the rows of products, computed in one of two ways."""
    found = []
    run_ends, many = run.product_of_ends, 100 * (request.param[0] == 'a')
    monkeypatch.setattr(products, '_MOST_UNREAD', many)

    def listed(x, weight, type, index):
        found.append(x.shape[0])
        return run_ends(x, weight, type, index)

    monkeypatch.setattr(run, 'product_of_ends', listed)
    return found


def given():
    torch.manual_seed(3)
    x = torch.randn(NODES, IN, dtype=torch.float64, requires_grad=True)
    edges = torch.randint(NODES - 2, (2, EDGES))
    return x, edges, torch.randint(TYPES, (EDGES,))


@pytest.mark.parametrize('choose', ['index_select', 'index'])
@pytest.mark.parametrize('flow', ['source_to_target', 'target_to_source'])
def test_ends_are_multiplied_by_the_matrix_of_a_type(calls, choose, flow):
    x, edges, types = given()
    theirs = Typed(choose, flow=flow)
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, (x, edges, types))
    assert capture.is_fused, capture.reason
    assert calls == [NODES, NODES]


def test_each_end_of_two_kinds_of_vertices_has_rows_of_its_own(calls):
    x, edges, types = given()
    far = torch.randn(SOURCES, IN, dtype=torch.float64, requires_grad=True)
    edges[0] = torch.randint(SOURCES, (EDGES,))
    theirs = Typed()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, ((far, x), edges, types))
    assert capture.is_fused, capture.reason
    assert sorted(calls) == [NODES, SOURCES]


@pytest.mark.parametrize('options', [{}, {'num_bases': 2}])
def test_rgat_has_no_matrix_of_an_edge(calls, options):
    x, edges, types = given()
    theirs = pyg.RGATConv(IN, OUT, TYPES, heads=2, **options).double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, (x, edges, types))
    assert capture.is_fused, capture.reason
    assert len(calls) == 2


@pytest.mark.parametrize('wrong', [-1, TYPES])
def test_wrong_types_are_errors(calls, wrong):
    x, edges, types = given()
    ours, _, _ = fused(Typed())
    ours(x, edges, types)
    types[7] = wrong
    index = edges[0]
    with pytest.raises(IndexError, match=rf"'type'.*got {wrong}\)"):
        products.product_of_ends(x, ours.conv.weight, types, index)
    if wrong > 0:
        with pytest.raises(IndexError, match='out of range'):
            ours(x, edges, types)


@pytest.mark.parametrize(
    ('shape', 'strides'),
    [((8, 64), (64, 1)), ((64, 8), (1, 64)), ((20, 30), (1, 20))],
)
def test_small_matrices_have_the_layout_of_fast_gradients(shape, strides):
    weight = torch.randn(shape[::-1]).t()
    found = run.with_fast_gradient(weight)
    assert found.stride() == strides
    assert torch.equal(found, weight)


def test_gradients_of_products_at_edges_are_in_the_fast_layout(monkeypatch):
    x, edges, _ = given()
    attr = torch.randn(EDGES, 3, dtype=torch.float64, requires_grad=True)
    found, own = [], run.with_fast_gradient

    def seen(weight):
        found.append(own(weight).stride())
        return own(weight)

    monkeypatch.setattr(run, 'with_fast_gradient', seen)
    theirs = pyg.GINEConv(nn.Linear(IN, OUT), edge_dim=3).double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, (x, edges, attr))
    assert capture.is_fused, capture.reason
    assert found == [(IN, 1)]


def test_bounds_of_types_are_read_once():
    class Counted(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += func is torch.ops.aten.aminmax.default
            return func(*args, **(kwargs or {}))

    types = torch.tensor([3, 1, 2])
    with Counted() as counted:
        assert bounds_of(types) == bounds_of(types) == (1, 3)
        assert counted.calls == 1
        types[0] = 0
        assert bounds_of(types) == (0, 2)
        assert counted.calls == 2
