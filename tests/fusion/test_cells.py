"""Recurrent cells of fused layers, a tile of vertices at a time."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from tests.fusion.test_layers import Model, assert_same, fused
from torch_gsample import fuse
from torch_gsample.fusion import cells
from torch_gsample.vertex.kernels import gru

NODES, WIDTH = 23, 6


@pytest.fixture(autouse=True)
def tiles(monkeypatch):
    """Cells of any size run by tiles of 7 rows; lists the calls."""
    calls, own = [], gru.gru_cell

    def listed(x, *args):
        calls.append(len(x))
        return own(x, *args)

    monkeypatch.setattr(gru, '_TILE', 7)
    monkeypatch.setattr(cells, '_LEAST', 7)
    monkeypatch.setattr(cells, 'gru_cell', listed)
    return calls


def given(rows=NODES):
    torch.manual_seed(5)
    x = torch.randn(rows, WIDTH, dtype=torch.float64, requires_grad=True)
    return x, torch.randint(rows, (2, 4 * rows))


def layer():
    return pyg.GatedGraphConv(WIDTH, 2).double()


def test_gated_graph_convolutions_equal_those_of_pyg(tiles):
    theirs = layer()
    ours, _, _ = fused(theirs)
    assert_same(ours, theirs, given())
    assert tiles == [NODES, NODES]
    with torch.no_grad():
        assert torch.allclose(ours(*given()), theirs(*given()))


def test_few_rows_hooks_and_other_dtypes_are_those_of_torch(tiles):
    theirs = layer()
    ours, _, _ = fused(theirs)
    assert_same(ours, theirs, given(6))
    half = copy.deepcopy(ours).to(torch.bfloat16)
    half(given()[0].to(torch.bfloat16), given()[1])
    ours.conv.rnn.register_forward_hook(lambda *_: None)
    ours(*given())
    assert tiles == []


@pytest.mark.parametrize('frozen', [0, 1, 2, 3, 4, 5])
def test_gradients_of_each_operand_that_wants_one(frozen):
    cell = nn.GRUCell(WIDTH, 4).double()
    x = torch.randn(NODES, WIDTH, dtype=torch.float64)
    h = torch.randn(NODES, 4, dtype=torch.float64)
    operands = [x, h, *cell.parameters()]
    for i, operand in enumerate(operands):
        operand.requires_grad_(i != frozen)
    wanted = [o for o in operands if o.requires_grad]
    weights, biases = operands[2:4], operands[4:]
    found = gru.gru_cell(x, h, tuple(weights), tuple(biases))
    want = torch.gru_cell(*operands)
    torch.testing.assert_close(found, want)
    grad = torch.randn_like(found)
    torch.testing.assert_close(
        torch.autograd.grad(found, wanted, grad),
        torch.autograd.grad(want, wanted, grad),
    )


def test_second_order_gradients():
    cell = nn.GRUCell(3, 2).double()
    x = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    h = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    w_x, w_h, b_x, b_h = (
        p.detach().requires_grad_() for p in cell.parameters()
    )

    def call(x, h, w_x, w_h, b_x, b_h):
        return gru.gru_cell(x, h, (w_x, w_h), (b_x, b_h))

    operands = x, h, w_x, w_h, b_x, b_h
    assert torch.autograd.gradcheck(call, operands)
    assert torch.autograd.gradgradcheck(call, operands)


def test_copies_pickles_and_undoing():
    theirs = layer()
    model = Model(copy.deepcopy(theirs))
    fusion = fuse(model, min_nodes=0, verbose=False)
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert isinstance(made.conv.rnn, cells.TiledCell)
        assert_same(made, theirs, given())
    assert list(model.conv.state_dict()) == list(theirs.state_dict())
    fusion.undo()
    assert type(model.conv.rnn) is nn.GRUCell
