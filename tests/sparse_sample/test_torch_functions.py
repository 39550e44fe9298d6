"""``torch.*`` and ``torch.nn.functional.*`` on matrices."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tests.sparse_sample.cases import case, random
from torch_gsample import SparseSample
from torch_gsample.sparse_sample import torch_function

UNARY = [getattr(torch, name) for name in torch_function._UNARY]
UNARY = [f for f in UNARY if f is not torch.clamp]
ACTIVATIONS = [
    getattr(module, name)
    for module in (torch, F)
    for name in torch_function._ACTIVATIONS
    if hasattr(module, name) and name != 'dropout'
]


@pytest.fixture(params=['csc', 'csr', 'coo'])
def c(request):
    return case('random', request.param)


@pytest.mark.parametrize('function', UNARY + ACTIVATIONS)
def test_functions_of_each_edge(c, function):
    c.assert_edges(function(c.matrix), function(c.place))
    shifted = c.place - 1
    out = function(c.matrix - 1)
    torch.testing.assert_close(
        out.values(), function(shifted)[out.coo()], equal_nan=True
    )


def test_functions_take_their_arguments(c):
    A = c.matrix - 1
    dense = c.place - 1
    c.assert_edges(F.leaky_relu(A, 0.3), F.leaky_relu(dense, 0.3))
    c.assert_edges(F.elu(A, alpha=2.0), F.elu(dense, alpha=2.0))
    c.assert_edges(torch.clamp(A, -0.1, 0.1), dense.clamp(-0.1, 0.1))
    c.assert_edges(torch.clamp(A, min=0.2), dense.clamp(min=0.2))


def test_dropout_drops_edges_values(c):
    A = c.matrix
    assert A.num_edges == F.dropout(A, 0.5).num_edges
    torch.manual_seed(5)
    out = F.dropout(A, p=0.5, training=True).value
    torch.manual_seed(5)
    assert torch.equal(out, F.dropout(A.value, 0.5))
    assert torch.equal(F.dropout(A, 0.5, training=False).value, A.value)
    assert torch.equal(torch.dropout(A, 0.5, False).value, A.value)


@pytest.mark.parametrize('name', ['add', 'sub', 'mul', 'div', 'pow'])
def test_binary_functions_on_either_side(c, name):
    function = getattr(torch, name)
    other = random(*c.matrix.shape)
    c.assert_edges(function(c.matrix, other), function(c.place, other))
    c.assert_edges(function(other, c.matrix), function(other, c.place))
    c.assert_edges(function(c.matrix, c.matrix), function(c.place, c.place))
    c.assert_edges(function(c.matrix, 2), function(c.place, 2))
    aliases = {'sub': torch.subtract, 'mul': torch.multiply}
    aliases['div'] = torch.true_divide
    if name in aliases:
        out = aliases[name](c.matrix, other)
        c.assert_edges(out, function(c.place, other))
    if name == 'sub':
        c.assert_edges(torch.rsub(c.matrix, 2), 2 - c.place)


def test_reductions(c):
    dense, count = c.place, c.count
    A = c.matrix
    assert_close(torch.sum(A, 0), dense.sum(0))
    assert_close(torch.sum(A, dim=1), dense.sum(1))
    assert_close(torch.sum(A), dense.sum())
    assert_close(torch.mean(A, axis=0), dense.sum(0) / count.sum(0))
    assert_close(torch.prod(A, 0), A.prod(0))
    assert_close(torch.amax(A, 1), dense.amax(1))
    assert_close(torch.amax(A, dim=0), dense.amax(0))
    assert_close(torch.amin(A, 1), A.min(1))


def test_softmax(c):
    for dim in (0, 1):
        want = c.matrix.softmax(dim).value
        assert torch.equal(F.softmax(c.matrix, dim=dim).value, want)
        assert torch.equal(torch.softmax(c.matrix, dim).value, want)
    out = F.softmax(c.matrix, dim=0, dtype=torch.float32)
    assert out.dtype == torch.float32


def test_stack_joins_values(c):
    A = c.matrix
    (row, col), value = A.coo(), A.values() + 1
    # By row and by column: what the other one is not.
    B = SparseSample.from_coo(col, row, value, A.shape[::-1])
    want = torch.stack([c.place, c.place + 1], -1)
    c.assert_edges(torch.stack([A, B.T], dim=-1), want)
    by_column = SparseSample.from_coo(row, col, value, A.shape)
    c.assert_edges(torch.stack([A, by_column], dim=-1), want)
    c.assert_edges(torch.stack([A, A + 1], 2), want)
    assert torch.stack([A, A + 1]).value.shape == (A.num_edges, 2)
    c.assert_edges(torch.stack([A, A + 1]), want)  # without 'dim'
    pairs = torch.stack([A, A + 1]), torch.stack([A + 2, A + 3])
    twice = torch.stack(pairs, dim=-1).value
    assert twice.shape == (A.num_edges, 2, 2)
    assert torch.equal(twice[..., 0], pairs[0].value)


def test_vectors_of_edges_are_multiplied_by_a_dense_matrix(c):
    stacked = torch.stack([c.matrix, c.matrix - 1])
    w = random(2, 3)
    places = torch.stack([c.place, c.place - 1], -1)
    c.assert_edges(stacked @ w, places @ w)
    c.assert_edges(torch.matmul(stacked, w[:, 0]), places @ w[:, 0])
    c.assert_edges((c.matrix - 1).relu(), (c.place - 1).relu())


@pytest.mark.parametrize('name', 'abs exp log sqrt sigmoid'.split())
def test_methods_are_those_of_a_tensor(c, name):
    matrix, place = c.matrix - 1, c.place - 1
    if name in ('log', 'sqrt'):
        matrix, place = matrix**2 + 1, place**2 + 1
    c.assert_edges(getattr(matrix, name)(), getattr(place, name)())
    c.assert_edges(abs(c.matrix - 1), abs(c.place - 1))
    c.assert_edges(matrix.clamp(max=0.5), place.clamp(max=0.5))
    c.assert_edges(matrix.clamp(0.1), place.clamp(0.1))


def test_matmul_functions(c):
    x = random(c.matrix.num_cols, 2)
    assert_close(torch.mm(c.matrix, x), c.place @ x)
    y = random(2, c.matrix.num_rows)
    assert_close(torch.mm(y, c.matrix), y @ c.place)


def test_numbers_of_numpy(c):
    c.assert_edges(np.float64(2) * c.matrix, 2 * c.place)
    c.assert_edges(c.matrix - np.int64(2), c.place - 2)
    c.assert_edges(np.float64(2) / c.matrix, 2 / c.place)
    with pytest.raises(TypeError):  # no array of matrices
        np.ones(2) * c.matrix


def test_unsupported_functions_raise_type_error(c):
    with pytest.raises(TypeError, match='cumsum'):
        torch.cumsum(c.matrix, 0)
    with pytest.raises(TypeError, match='unsupported operand'):
        c.matrix @ c.matrix.T
