"""The one form of operations, and what stays as it is written."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    SEEDS,
    VALUE,
    after,
    gsample,
    program,
    text,
)
from tests.compiler.programs import A, X, compiled, seeds
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import canonicalize


def test_operations_get_one_form():
    def function(x, i):
        y = x * 2
        z = 2 * x
        return y, z, x[i], x.index_select(0, i), torch.pow(x, exponent=2)

    out = after(canonicalize, function, VALUE, SEEDS)
    assert out == text("""
        %2 = aten.mul.Tensor(x, 2): float32[9]
        %3 = aten.mul.Tensor(x, 2): float32[9]
        %4 = aten.index.Tensor(x, [i]): float32[2]
        %5 = aten.index_select(x, 0, i): float32[2]
        %6 = aten.pow.Tensor_Scalar(x, 2): float32[9]
        return (%2, %3, %4, %5, %6)
    """)


def test_operators_that_return_their_argument_are_removed():
    def function(x, i):
        y = x.contiguous().to(torch.float32).detach()
        return y + x.to(torch.float64), i.to(torch.int64)

    out = after(canonicalize, function, VALUE, SEEDS)
    assert out == text("""
        %2 = aten.to.dtype(x, torch.float64): float64[9]
        %3 = aten.add.Tensor(x, %2): float64[9]
        return (%3, i)
    """)


def test_views_of_another_shape_stay():
    def function(x, y):
        return x.view(-1).view_as(y)

    out = after(canonicalize, function, VALUE, VALUE.view(3, 3))
    assert out == text("""
        %2 = aten.view(x, (-1)): float32[9]
        %3 = aten.view_as(%2, y): float32[3, 3]
        return %3
    """)


def test_arguments_are_positional_and_defaults_go():
    def function(indptr, indices, seeds):
        return gsample.slice_cols(indptr, indices, cols=seeds, num_threads=0)

    out = after(canonicalize, function, INDPTR, INDICES, SEEDS)
    assert out == text("""
        %3 = gsample.slice_cols(indptr, indices, seeds): 3 parts
        return %3
    """)


def test_a_change_of_a_new_tensor_is_a_new_value():
    def function(x, i):
        total = x.new_zeros(4)
        total.index_add_(0, i, x[:2] * 1)
        return (total * 2,)

    out = after(canonicalize, function, VALUE, SEEDS)
    assert 'aten.index_add(%2, 0, i, ' in out
    assert out.splitlines()[-2].startswith('%6 = aten.mul.Tensor(%5, 2)')


def test_a_change_that_others_see_stays():
    def function(x):
        y = x.view(3, 3)
        y.add_(1)
        return (x * 1,)

    module = program(function, VALUE.clone())
    canonicalize(module.graph)
    assert '!aten.add_.Tensor(%1, 1)' in ir_text(module.graph)


def test_sizes_one_by_one_are_a_list():
    out = after(canonicalize, lambda x: (x.view(3, 3), x.repeat(2)), VALUE)
    assert out == text("""
        %1 = aten.view(x, (3, 3)): float32[3, 3]
        %2 = aten.repeat(x, (2)): float32[18]
        return (%1, %2)
    """)


def test_a_size_is_passed_as_its_numbers():
    module = program(lambda x: x.new_zeros([x.size(0), 2]) + 1, VALUE)
    [node] = module.graph.find_nodes(op='call_method', target='new_zeros')
    with module.graph.inserting_before(node):
        size = module.graph.call_function(torch.Size, node.args[1:])
    size.meta['example_value'] = torch.Size([9, 2])
    node.args = node.args[0], size
    canonicalize(module.graph)
    assert ir_text(module.graph).endswith(
        text("""
        %1 = aten.size.int(x, 0): size
        %2 = aten.new_zeros(x, [%1, 2]): float32[9, 2]
        %3 = aten.add.Tensor(%2, 1): float32[9, 2]
        return %3
        """)
    )


@pytest.mark.parametrize(
    'program',
    [
        lambda A, s: (s // 2).unique_consecutive(),
        lambda A, s: torch.unique_consecutive(s // 2, return_counts=True),
        lambda A, s: torch.nn.functional.elu(X[s] - 0.5, 1.0, False),
        lambda A, s: torch.nn.ELU()(X[s] - 0.5),
        lambda A, s: torch.nn.functional.embedding(s, X),
        lambda A, s: torch.nn.functional.softmax(X[s], 1),
    ],
    ids=['unique', 'counts', 'elu', 'ELU', 'embedding', 'softmax'],
)
def test_a_function_unlike_the_operator_of_its_name_runs_as_written(program):
    ids = torch.arange(9)
    expected = program(A, ids)
    torch.testing.assert_close(compiled(program)(A, ids), expected)


def test_contiguous_of_unknown_sizes_stays():
    def function(A, s):
        return s.view(-1, 1).expand(-1, 2).contiguous()

    assert torch.equal(compiled(function)(A, seeds(4)), function(A, seeds(4)))
