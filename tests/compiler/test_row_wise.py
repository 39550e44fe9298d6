"""Rows of a result are computed from these rows of the operands it names."""

import contextlib

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.fx.node import map_arg

from tests.compiler.golden import aten, program
from torch_gsample.compiler.ir import example
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.row_wise import is_exact, is_view, row_operands

ROWS = torch.tensor([3, 0, 3])
INPUTS = {
    'x': torch.linspace(0.1, 2, 25).sin().abs().view(5, 5),
    'y': torch.linspace(0.5, 1, 5).view(5, 1),
    'v': torch.linspace(1, 2, 5),
    'one': torch.linspace(1, 3, 5).view(1, 5),
    's': torch.tensor(0.3),
    'i': torch.tensor([4, 1, 1, 0, 2]),
    'w': torch.linspace(-1, 1, 15).view(5, 3),
    'm': torch.linspace(0, 1, 50).view(5, 5, 2),
}


def last(function):
    """The last operation of a function of the inputs."""
    names = function.__code__.co_varnames
    module = program(function, *(INPUTS[name] for name in names))
    canonicalize(module.graph)
    output = next(n for n in module.graph.nodes if n.op == 'output')
    node = output.args[0]
    for input in node.all_input_nodes:
        input.meta.setdefault('example_value', INPUTS.get(input.name))
    return node


def assert_by_row(node):
    operands = row_operands(node)

    def chosen(n):
        return example(n)[ROWS] if n in operands else example(n)

    args, kwargs = map_arg((node.args, node.kwargs), chosen)
    torch.testing.assert_close(
        node.target(*args, **kwargs), example(node)[ROWS], equal_nan=True
    )


BY_ROW = {
    'x': [
        lambda x: x.exp(),
        lambda x: x.sigmoid(),
        lambda x: x[:, 1:3],
        lambda x, s: x * s,
        lambda x, v: x * v,  # as many features as rows
        lambda x, one: x - one,
        lambda x: x.clamp(0.1, 0.5),
        lambda x: x.to(torch.float64),
        lambda x: x.softmax(-1),
        lambda x: x.log_softmax(1),
        lambda x: x.sum(-1),
        lambda x: x.sum([1], True),
        lambda x: x.mean(1),
        lambda x: x.amax(1),
        lambda x: x.cumsum(1),
        lambda x: x.flip(1),
        lambda x: x.select(1, 2),
        lambda x: x.unsqueeze(-1),
        lambda x: x.unsqueeze(1),
        lambda x: x.view(-1, 5, 1),
        lambda x, v: x @ v,
        lambda x, w: x @ w,
    ],
    'x y': [
        lambda x, y: x / y,
        lambda x, y: torch.maximum(x, y),
        lambda x, y: torch.cat([x, y], 1),
        lambda x, y: y.expand_as(x),
    ],
    'm': [
        lambda m: m.sum((1, 2)),
        lambda m: m.view(-1, 10),
        lambda m: m.squeeze(2),
    ],
    'i': [lambda x, i: x[i], lambda v, i: v.index_select(0, i)],
}
OTHERS = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum((0, 1)),
    lambda x: x.softmax(0),
    lambda x: x.cumsum(0),
    lambda x: x.flip(-2),
    lambda x: x.t(),
    lambda x: x.unsqueeze(0),
    lambda x: x.unsqueeze(-3),
    lambda x: x.select(0, 1),
    lambda x: x.view(5, 5),
    lambda x: x.view(-1),
    lambda x: x.view(-1, 1),
    lambda x, y: torch.cat([x, x], 0),
    lambda x: torch.stack([x, x], 0),
    lambda v, x: v @ x,
    lambda x, m: x @ m,
    lambda x: x @ x,
    lambda v, w: v @ w,
    lambda i: i[i],
    lambda v: v[1:],
    lambda v, s: torch.dropout(v, 0.5, True),
]


@pytest.mark.parametrize(
    ('names', 'function'),
    [(names, f) for names, functions in BY_ROW.items() for f in functions],
)
def test_rows_come_from_the_same_rows(names, function):
    node = last(function)
    assert ' '.join(sorted(n.name for n in row_operands(node))) == names
    assert_by_row(node)


@pytest.mark.parametrize('function', OTHERS)
def test_non_row_wise_operators_have_no_operands(function):
    assert row_operands(last(function)) == []


def test_a_row_for_all_is_one_of_none():
    node = last(lambda one, v: one * v)
    assert [n.name for n in row_operands(node)] == ['one']  # its own row
    node = last(lambda x, one: x + one)
    assert [n.name for n in row_operands(node)] == ['x']


def test_unbacked_sizes_are_not_known_to_be_equal():
    shapes = ShapeEnv()
    first, second = (shapes.create_unbacked_symint() for _ in range(2))
    node = last(lambda x, y: x * y)
    with FakeTensorMode(shape_env=shapes):
        for input, size in zip(node.args, (first, second), strict=True):
            input.meta['example_value'] = torch.empty(size, 5)
        node.meta['example_value'] = torch.empty(first, 5)
    assert row_operands(node) == []
    node.args[1].meta['example_value'] = example(node)
    assert row_operands(node) == list(node.args)


def unary():
    """The element-wise operators of torch that take one tensor."""
    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in getattr(packet, 'overloads', list)():
            operator = getattr(packet, overload)
            schema = operator._schema
            needed = [a for a in schema.arguments if not a.has_default_value()]
            if (
                torch.Tag.pointwise in operator.tags
                and torch.Tag.nondeterministic_seeded not in operator.tags
                and not schema.is_mutable
                and len(needed) == 1
                and [str(r.type) for r in schema.returns] == ['Tensor']
            ):
                with contextlib.suppress(RuntimeError):  # integers, bounds
                    operator(INPUTS['x'])
                    yield operator


def called(operator):
    return lambda x: operator(x)


def test_all_that_torch_tags_as_element_wise_is_by_row():
    found = list(unary())
    assert len(found) > 80
    for operator in found:
        node = last(called(operator))
        assert [n.name for n in row_operands(node)] == ['x'], operator
        assert_by_row(node)


def test_exact_operators_and_possible_views():
    assert is_exact(last(lambda x, y: x / y))
    assert is_exact(last(lambda x, s: x > s))
    assert is_exact(last(lambda x: x**2))
    assert is_exact(last(lambda x, i: x[i]))
    assert is_exact(last(lambda i: i.sum(-1)))
    for function in (
        lambda x: x.exp(),
        lambda x: x**2.5,
        lambda x: x.sum(1),
        lambda x, y: torch.add(x, y, alpha=0.1),
        lambda x, w: x @ w,
    ):
        assert not is_exact(last(function))
    assert is_view(last(lambda x: x.unsqueeze(1)))
    assert not is_view(last(lambda x: x.to(torch.float64)))
