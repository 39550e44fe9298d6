"""Arithmetic, reductions and products against dense PyTorch."""

import operator

import pytest
import torch
from torch.testing import assert_close

from tests.sparse_sample.cases import GRAPHS, case, random, with_cases
from torch_gsample import SparseSample

ARITHMETIC = {
    'add': operator.add,
    'sub': operator.sub,
    'mul': operator.mul,
    'div': operator.truediv,
    'pow': operator.pow,
}


@with_cases
def test_edges_are_where_dense_has_them(c):
    A = c.matrix
    c.assert_edges(A, c.place)
    assert_close(A.to_dense(), c.place * c.count)
    assert_close(A.T.to_dense(), (c.place * c.count).t())
    assert A.dtype == c.place.dtype
    assert A.num_edges == int(c.count.sum())
    for dim in (0, 1):
        assert torch.equal(A.degree(dim), c.count.sum(dim))


@with_cases
@pytest.mark.parametrize('name', ARITHMETIC)
def test_arithmetic_broadcasts_as_dense(c, name):
    A, function = c.matrix, ARITHMETIC[name]
    m, n = A.shape
    shapes = (m, 1), (1, n), (n,), (m, n), (1, 1)
    for other in (3, 2.5, torch.tensor(1.5), *(random(*s) for s in shapes)):
        if torch.is_tensor(other) and other.dim() > 0:
            other = other.to(c.place.dtype)
        outs = [function(A, other)]
        if name != 'pow':  # it has the operator alone
            outs.append(getattr(A, name)(other))
        for out in outs:
            c.assert_edges(out, function(c.place, other).expand(m, n))
        c.assert_edges(
            function(other, A), function(other, c.place).expand(m, n)
        )


@with_cases
@pytest.mark.parametrize('name', ARITHMETIC)
def test_arithmetic_with_matrices_of_the_same_edges(c, name):
    A, function = c.matrix, ARITHMETIC[name]
    row, col = A.coo()
    places = random(*A.shape, dtype=c.place.dtype)
    want = function(c.place, places)
    # Stored by column, by row, and in two orders.
    for B in (
        A.with_value(places[row, col]),
        SparseSample.from_coo(row, col, places[row, col], A.shape),
        SparseSample.from_coo(col, row, places[row, col], A.shape[::-1]).T,
        SparseSample.from_coo(
            row.flip(0), col.flip(0), places[row, col].flip(0), A.shape
        ),
    ):
        c.assert_edges(function(A, B), want)
        c.assert_edges(function(B, A), function(places, c.place))


@with_cases
def test_the_operand_may_lack_the_reduced_dimension(c):
    A = c.matrix
    for dim, shape in ((0, (1, -1)), (1, (-1, 1))):
        other = random(A.shape[1 - dim], dtype=c.place.dtype)
        for name in ('add', 'sub', 'mul', 'div'):
            want = ARITHMETIC[name](c.place, other.view(shape))
            method = getattr(A, name)
            c.assert_edges(method(other, dim), want)
            c.assert_edges(method(other, axis=dim - 2), want)


def dense_reductions(c, dim):
    value, count = c.place, c.count
    held = count > 0
    total = (value * count).sum(dim)
    number = count.sum(dim)
    big = torch.where(held, value, -torch.inf)
    small = torch.where(held, value, torch.inf)
    some = number > 0
    if c.place.shape[dim] == 0:
        top = low = total
    else:
        top, low = big.amax(dim), small.amin(dim)
    return {
        'sum': total,
        'mean': total / number.clamp(min=1),
        'max': torch.where(some, top, 0),
        'min': torch.where(some, low, 0),
        'prod': torch.where(held, value**count, 1).prod(dim),
        'norm': (value.abs() ** 2 * count).sum(dim) ** 0.5,
    }


@with_cases
def test_reductions_equal_dense(c):
    for dim in (0, 1):
        for name, want in dense_reductions(c, dim).items():
            method = getattr(c.matrix, name)
            assert_close(method(dim=dim), want)
            assert_close(method(axis=dim), want)
            assert_close(method(dim=dim - 2), want)


@with_cases
def test_norms_equal_dense(c):
    for p in (1, 3.0):
        want = (c.place.abs() ** p * c.count).sum(0) ** (1 / p)
        assert_close((-c.matrix).norm(p, 0), want)
    want = dense_reductions(c, 1)['max']
    assert_close((-c.matrix).norm(float('inf'), 1), want)
    total = (c.place**2 * c.count).sum() ** 0.5
    assert_close(c.matrix.norm(), total)


@with_cases
def test_reductions_of_everything(c):
    A, values = c.matrix, c.matrix.values()
    assert_close(A.sum(), (c.place * c.count).sum())
    assert_close(
        A.prod(), torch.where(c.count > 0, c.place**c.count, 1).prod()
    )
    if A.num_edges:
        assert_close(A.max(), c.place.max())
        assert_close(A.min(), values.min())
        assert_close(A.mean(), values.mean())


@with_cases
def test_softmax_equals_dense(c):
    for dim in (0, 1):
        power = c.place.exp()
        want = power / (power * c.count).sum(dim, keepdim=True)
        c.assert_edges(c.matrix.softmax(dim), want)
        c.assert_edges(c.matrix.softmax(axis=dim), want)
        # Large values do not overflow.
        c.assert_edges((c.matrix + 1000).softmax(dim), want)
    c.assert_edges(
        c.matrix.softmax(),
        c.matrix.softmax(0).to_dense() / (c.count.clamp(min=1)),
    )


@with_cases
def test_products_equal_dense(c):
    A, dense = c.matrix, c.place * c.count
    m, n = A.shape
    dtype = c.place.dtype
    for shape in ((n,), (n, 3)):
        x = random(*shape, dtype=dtype)
        assert_close(A @ x, dense @ x)
        assert_close(torch.matmul(A, x), dense @ x)
    for shape in ((m,), (2, m)):
        x = random(*shape, dtype=dtype)
        assert_close(x @ A, x @ dense)
        assert_close(torch.matmul(x, A), x @ dense)
    x, y = random(m, 4, dtype=dtype), random(n, 4, dtype=dtype)
    c.assert_edges(A.sddmm(x, y), x @ y.t())
    c.assert_edges(A * (x @ y.t()), c.place * (x @ y.t()))


@pytest.mark.parametrize('graph', GRAPHS)
@pytest.mark.parametrize('layout', ['csc', 'csr'])
def test_values_may_be_vectors(graph, layout):
    c = case(graph, layout)
    m, n = c.matrix.shape
    places = random(m, n, 3)
    A = c.matrix.with_value(places[c.matrix.coo()])
    c.assert_edges(A, places)
    assert_close(A.to_dense(), places * c.count[..., None])
    assert_close(A.T.sum(0), (places * c.count[..., None]).sum(1))
    features = random(m, n, 3)
    for other in (features, features[:, :1], features[:1], features[:1, :1]):
        if 0 not in other.shape:
            c.assert_edges(A * other, places * other)
            # One value an edge meets vectors, and the other way round.
            c.assert_edges(c.matrix * other, c.place[..., None] * other)
    places_only = random(m, n)
    c.assert_edges(A + places_only, places + places_only[..., None])
    c.assert_edges(A * c.matrix, places * c.place[..., None])
    c.assert_edges(A.div(random(n) * 0 + 2, 0), places / 2)
    c.assert_edges(
        A.mul(features[0] if m else random(n, 3), 0),
        (places * features[:1] if m else places),
    )
    power = places.exp()
    want = power / (power * c.count[..., None]).sum(0, keepdim=True)
    c.assert_edges(A.softmax(0), want)
    held = (c.count > 0)[..., None]
    if m:
        top = torch.where(held, places, -torch.inf).amax(0)
        assert_close(A.max(0), top.masked_fill(top == -torch.inf, 0))


@with_cases
def test_values_are_ones_where_none_are_given(c):
    A = c.matrix.with_value(None)
    assert A.value is None
    assert A.dtype == torch.get_default_dtype()
    assert_close(A.to_dense(), c.count.float())
    assert_close(A.sum(0), c.count.sum(0).float())
    x = random(A.shape[1])
    assert_close(A @ x, c.count.double() @ x)


@with_cases
def test_new_values_keep_the_edges(c):
    A = c.matrix
    c.assert_edges(A.with_value(A.values() * 2), c.place * 2)
    c.assert_edges(-A, -c.place)
    assert torch.equal(A.with_value(A.values().sqrt()).edge_id, A.edge_id)
    assert torch.equal((A + A).edge_id, A.edge_id)
