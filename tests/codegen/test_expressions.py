"""Generated kernels compute what PyTorch computes, and its gradients."""

import math

import numpy as np
import pytest
import torch

from tests import reference
from tests.codegen.edges import (
    ROWS,
    SHAPES,
    column,
    edges,
    only_kernel,
)
from torch_gsample.codegen import unit
from torch_gsample.codegen.build import build
from torch_gsample.codegen.cpp import cpp_source
from torch_gsample.codegen.edge_map import body_of, edge_map, run_with_torch
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import layout_of
from torch_gsample.codegen.operations import is_exact
from torch_gsample.codegen.unit import Leaf
from torch_gsample.ops.kernels import load_kernel, run_kernel

NUMBERS = torch.float32, torch.float64


def sum_rows(value, row):
    return value.new_zeros(ROWS).index_add(0, row, value)


def sum_cols(value, p, n):
    zeros = value.new_full((n,), 0.0)
    return zeros.index_add(0, column(p, n), value)


MAPS = {
    'arithmetic': lambda p, n, i, x, y, *_: (x + y) * x / (y - 3) - 2,
    'number': lambda p, n, i, x, *_: (x * 3 + 1) / 7,
    'row': lambda p, n, i, x, y, r, *_: x / r.index_select(0, i),
    'row-index': lambda p, n, i, x, y, r, *_: x * r[i] - y,
    'column': lambda p, n, i, x, y, r, c, *_: (
        x * c.index_select(0, column(p, n))
    ),
    'scalar': lambda p, n, i, x, y, r, c, s, *_: (x / s) * s,
    'power': lambda p, n, i, x, y, *_: x**2 + x**3 + x**-1 + x**-2,
    'signs': lambda p, n, i, x, y, *_: (-x).abs() - y.reciprocal(),
    'root': lambda p, n, i, x, y, *_: x.sqrt() * 1.5 + x**0.5,
    'bounds': lambda p, n, i, x, y, *_: x.clamp(0.3, 0.8) + y.clamp(max=0.5),
    'lower': lambda p, n, i, x, y, *_: x.clamp(min=0.5) + torch.relu(y - 0.6),
    'extremes': lambda p, n, i, x, y, *_: (
        torch.maximum(x, y) - torch.minimum(x, y * 2)
    ),
    'where': lambda p, n, i, x, y, *_: torch.where(
        (x > y) & (y >= 0.4) | ~(x != 1), x * 2, y
    ),
    'exp': lambda p, n, i, x, y, *_: torch.exp(x - y) / torch.log(x + 2),
    'sigmoid': lambda p, n, i, x, y, *_: torch.sigmoid(x) * torch.tanh(y),
    'powers': lambda p, n, i, x, y, *_: x**2.5 + x**1.7,
    'detach': lambda p, n, i, x, y, *_: torch.exp(x - x.detach()) * y,
    'features': lambda p, n, i, x, y, r, c, s, xf, rf, cf: (
        xf * rf.index_select(0, i) - cf.index_select(0, column(p, n)) / s
    ),
    'scalar-of-features': lambda p, n, i, x, y, r, c, s, xf, *_: (
        (xf + s).sum(-1) * x
    ),
    'sddmm': lambda p, n, i, x, y, r, c, s, xf, rf, cf: (
        (rf.index_select(0, i) * cf.index_select(0, column(p, n))).sum(-1) * x
    ),
}
REDUCTIONS = {
    'rows': lambda p, n, i, x, y, r, *_: sum_rows(x**2, i),
    'rows-of-columns': lambda p, n, i, x, y, r, c, *_: sum_rows(
        x / c.index_select(0, column(p, n)), i
    ),
    'columns': lambda p, n, i, x, y, r, *_: sum_cols(
        x * r.index_select(0, i), p, n
    ),
    'columns-stored': lambda p, n, i, x, *_: sum_cols(x, p, n),
    'maximum': lambda p, n, i, x, y, *_: x.new_full((n,), 0.0)
    .scatter_reduce(0, column(p, n), x - y, 'amax', include_self=False),
    'minimum': lambda p, n, i, x, y, *_: x.new_full((n,), 0.0)
    .scatter_reduce(0, column(p, n), x - y, 'amin', include_self=False),
    'product': lambda p, n, i, x, y, *_: x.new_full((n,), 1.0)
    .scatter_reduce(0, column(p, n), x * y, 'prod', include_self=False),
    'columns-of-features': lambda p, n, i, x, y, r, c, s, xf, *_: (
        xf.new_full((n, 3), 0.0).index_add(0, column(p, n), xf * 2)
    ),
    'rows-of-features': lambda p, n, i, x, y, r, c, s, xf, *_: (
        xf.new_full((ROWS, 3), 0.0).index_add(0, i, xf * xf)
    ),
}  # fmt: skip
ALL = {**MAPS, **REDUCTIONS}
#: Without a gradient of its reduction.
NO_GRADIENT = {'maximum', 'minimum', 'product'}


def assert_same(kernel, got, want):
    if is_exact(body_of(kernel.unit)):
        assert torch.equal(got.nan_to_num(3e7), want.nan_to_num(3e7))
        assert got.dtype == want.dtype
    else:
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize('name', ALL)
@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('dtype', NUMBERS)
def test_values_are_those_of_eager_code(name, shape, dtype):
    index = torch.int32 if shape == 'isolated' else torch.int64
    e = edges(shape, dtype, index)
    kernel, module = only_kernel(ALL[name], e)
    assert_same(kernel, module(*e.inputs), ALL[name](*e.inputs))


def operands_of(module, inputs):
    """The arguments of a graph's kernel."""
    [node] = [n for n in module.graph.nodes if n.op == 'call_function']
    given = dict(
        zip(
            [n for n in module.graph.nodes if n.op == 'placeholder'],
            inputs,
            strict=False,  # the last one takes the rest
        )
    )
    size = node.kwargs.get('num_rows', 0)
    return [given[arg] for arg in node.args], size


@pytest.mark.parametrize('name', ALL)
def test_values_are_those_of_the_reference(name):
    e = edges()
    kernel, module = only_kernel(ALL[name], e)
    operands, size = operands_of(module, e.inputs)
    want = reference.edge_map(
        kernel.unit, [x.tolist() for x in operands], size
    )
    got = kernel(*operands, num_rows=size)
    torch.testing.assert_close(got, torch.tensor(want, dtype=got.dtype))
    fallback = run_with_torch(kernel.unit, operands, size)
    torch.testing.assert_close(got, fallback)


SPECIAL = torch.tensor(
    [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 5.0]
)


@pytest.mark.parametrize('name', sorted(set(ALL) - {'powers'}))
@pytest.mark.parametrize('dtype', NUMBERS)
def test_special_numbers_are_those_of_eager_code(name, dtype):
    e = edges('isolated', dtype)
    e.x, e.y = SPECIAL.to(dtype), SPECIAL.to(dtype).flip(0)
    e.xf = torch.stack([e.x, e.y, e.x], 1)
    kernel, module = only_kernel(ALL[name], e)
    assert_same(kernel, module(*e.inputs), ALL[name](*e.inputs))


def differentiable(e):
    floats = [x for x in e.inputs[3:] if x.is_floating_point()]
    return [x.requires_grad_() for x in floats]


@pytest.mark.parametrize('name', sorted(set(ALL) - NO_GRADIENT))
@pytest.mark.parametrize('shape', ['isolated', 'empty'])
def test_gradients_are_those_of_eager_code(name, shape):
    e = edges(shape)
    inputs = differentiable(e)
    _, module = only_kernel(ALL[name], e)
    outs = module(*e.inputs), ALL[name](*e.inputs)
    given = torch.rand_like(outs[0])
    got, want = (
        torch.autograd.grad(out, inputs, given, allow_unused=True)
        for out in outs
    )
    for a, b in zip(got, want, strict=True):
        if a is None or b is None:
            assert a is b
        else:
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    'name', ['arithmetic', 'rows-of-columns', 'columns', 'sddmm', 'scalar']
)
def test_gradients_are_right_and_have_gradients(name):
    e = edges()
    inputs = differentiable(e)
    _, module = only_kernel(ALL[name], e)

    def function(*floats):
        return module(e.indptr, e.num_cols, e.row, *floats)

    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize(
    ('reduce', 'function'),
    [
        ('sum', np.add),
        ('prod', np.multiply),
        ('amax', np.maximum),
        ('amin', np.minimum),
    ],
)
@pytest.mark.parametrize('dtype', NUMBERS)
@pytest.mark.parametrize(
    ('index', 'flags'),
    [
        (torch.int32, ()),
        (torch.int64, ()),
        (torch.int32, ('-U__AVX2__',)),  # as on other processors
    ],
    ids=['int32', 'int64', 'plain'],
)
def test_each_column_is_reduced_in_order(
    reduce, function, dtype, index, flags
):
    generator = torch.Generator().manual_seed(4)
    degree = torch.randint(40, (18000,), generator=generator)
    degree[[7, 31, 90, 95]] = torch.tensor([1024, 1025, 1400, 1400])
    degree[91:95], degree[96] = 3, 30  # few in a block, many in the next
    degree[1500:-20] = 0  # more than a block has room for
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    x = torch.rand(int(indptr[-1]), generator=generator, dtype=dtype) + 0.4
    x[5::97], x[50::970] = torch.inf, torch.nan
    want = torch.full((18000,), -3, dtype=dtype)  # of columns without edges
    for col, values in enumerate(np.split((x * x).numpy(), indptr[1:-1])):
        for total in function.accumulate(values)[-1:]:
            want[col] = total.item()
    program = edge_map(
        apply('mul', operand(0, dtype), operand(0, dtype)),
        (Leaf('', unit.EDGE, dtype), Leaf('', unit.POINTERS, index)),
        reduce,
        fill=-3,
    )
    with build(cpp_source(program), flags) as file:
        kernel = load_kernel(file.fileno(), layout_of(program))
    for end in (18000, 1401, 401, 129, 16, 9, 1):
        given = [x[: indptr[end]], indptr[: end + 1].to(index)]
        [got] = run_kernel(kernel, given)
        assert torch.equal(got.nan_to_num(7), want[:end].nan_to_num(7))


@pytest.mark.parametrize(
    'name', ['rows', 'rows-of-columns', 'columns', 'row', 'column']
)
def test_threads_do_not_matter(name):
    kernel, module = only_kernel(ALL[name], edges(dtype=torch.float32))
    count, e = 100_000, edges()
    generator = torch.Generator().manual_seed(0)
    cut = torch.randint(count, (99,), generator=generator).sort()[0]
    e.indptr = torch.cat([torch.tensor([0]), cut, torch.tensor([count])])
    e.num_cols = 100
    e.row = torch.randint(ROWS, (count,), generator=generator)
    e.x, e.y = torch.rand(2, count, generator=generator)
    e.r, e.c = torch.rand(ROWS), torch.rand(100)
    operands, size = operands_of(module, e.inputs)
    want = run_with_torch(kernel.unit, operands, size)
    for threads in (1, 2, 3, 7):
        [got] = run_kernel(
            kernel.loaded.number,
            operands,
            num_rows=size,
            num_threads=threads,
        )
        assert torch.equal(got, want)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_negative_rows_count_from_the_end(dtype):
    e = edges(index=dtype)
    e.row -= 5
    _, module = only_kernel(MAPS['row-index'], e)
    assert torch.equal(module(*e.inputs), MAPS['row-index'](*e.inputs))


def test_operands_need_not_be_contiguous():
    e = edges()
    e.x = torch.rand(9, 2, dtype=torch.float64)[:, 1]
    _, module = only_kernel(MAPS['arithmetic'], e)
    assert torch.equal(module(*e.inputs), MAPS['arithmetic'](*e.inputs))
