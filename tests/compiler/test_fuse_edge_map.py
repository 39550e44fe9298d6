"""Chains of element-wise work on edges become one kernel."""

import pytest
import torch

from tests.compiler.golden import (
    INDICES,
    INDPTR,
    VALUE,
    after,
    gsample,
    program,
    text,
)
from tests.compiler.programs import compiled, graph, seeds, trace, trace_of
from torch_gsample.compiler.ir_text import ir_text
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.fuse_edge_map import fuse_edge_map
from torch_gsample.compiler.passes.hoist_invariant import hoist_invariant

TOTAL = torch.linspace(1, 2, 4)


def fuse(g):
    canonicalize(g)
    return fuse_edge_map(g)


def test_a_chain_is_one_kernel():
    def function(value, total, indptr, cols):
        columns = torch.arange(cols)
        col = torch.repeat_interleave(columns, indptr.diff())
        return (value / total.index_select(0, col) * 2,)

    out = after(fuse, function, VALUE, TOTAL, INDPTR, 4)
    assert out == text("""
        %4 = edge_map[(x0 / x2[col]) * 2.0](value, indptr, total): float32[9]
        return (%4)
    """)


def test_rows_and_scalars_are_operands():
    def function(value, row, indices, number):
        x = value - row.index_select(0, indices)
        return (x * number.sum(),)

    out = after(fuse, function, VALUE, TOTAL, INDICES, TOTAL)
    assert out == text("""
        %4 = aten.sum(number): float32[]
        %5 = edge_map[(x0 - x2[x1]) * x3](value, indices, row, %4): float32[9]
        return (%5)
    """)


def test_values_used_twice_are_stored_and_gathers_repeated():
    def function(value, row, indices):
        gathered = row.index_select(0, indices)
        shared = value * gathered + 1
        return shared * 2 / gathered, shared - 1 - value

    out = after(fuse, function, VALUE, TOTAL, INDICES)
    assert out == text("""
        %3 = edge_map[(x0 * x2[x1]) + 1.0](value, indices, row): float32[9]
        %4 = edge_map[(x0 * 2.0) / x2[x1]](%3, indices, row): float32[9]
        %5 = edge_map[(x0 - 1.0) - x1](%3, value): float32[9]
        return (%4, %5)
    """)


@pytest.mark.parametrize(
    'function',
    [
        lambda x, i: (x * 2,),  # one operation
        lambda x, i: (torch.add(x, i, alpha=2) * 1,),  # a factor
        lambda x, i: (i * 2 + 1,),  # integers
        lambda x, i: (torch.div(x, 2, rounding_mode='floor') * 1,),
        lambda x, i: (x[:3].view(3, 1) * x.view(1, 9),),  # broadcast
        lambda x, i: (torch.pow(x, x) * 2,),  # no derivative is known
        lambda x, i: ((x > i) * 1.0,),  # of two dtypes
    ],
)
def test_other_work_stays(function):
    assert 'edge_map' not in after(fuse, function, VALUE, INDICES)


def test_values_changed_in_place_are_not_fused():
    def function(x):
        y = x.clone()
        z = y.view(3, 3)
        out = y * 2 + 1
        z.add_(1)
        return (out,)

    assert 'edge_map' not in after(fuse, function, VALUE)


def test_rounded_work_that_a_draw_depends_on_stays():
    def function(x, indptr):
        weight = torch.exp(x * 2 - 1)
        cum = gsample.cumulate_weights.default(indptr, weight)
        return cum, torch.exp(x + 1) * 2

    out = after(fuse, function, VALUE, INDPTR)
    assert 'aten.exp' in out
    assert '= edge_map[(x0 * 2.0) - 1.0]' in out
    assert '= edge_map[exp((x0 + 1.0)) * 2.0]' in out


def test_a_comparison_is_a_decision_too():
    def function(x):
        return ((x.exp() * 2) > 1).nonzero()

    module = program(function, VALUE)
    fuse(module.graph)
    assert 'aten.exp' in ir_text(module.graph)


def test_work_without_gradient_between_work_with_one_stays():
    def function(x):
        with torch.no_grad():
            y = x * 2
        return (y * x + 1,)

    x = VALUE.clone().requires_grad_()
    module = program(function, x)
    node = next(n for n in module.graph.nodes if n.op == 'call_function')
    node.meta['example_value'] = node.meta['example_value'].detach()
    fuse(module.graph)
    assert '(x * 2.0)' not in ir_text(module.graph)


def test_deep_expressions_are_cut():
    def function(x):
        for i in range(100):
            x = x * 2 - i
        return (x,)

    out = after(fuse, function, VALUE)
    assert out.count('aten') == 200  # too long for one kernel


FIRED = {
    'ladies': ['edge_map[x1[x0] / x3[x2]]'],
    'as_gcn': ['edge_map[abs(x0) + 0.001]', 'edge_map[x0 / x2[col]]'],
    'pass': [
        'edge_map[x1[x0] * x3[col]]',
        'edge_map[relu(x0) + 1e-05]',
        'edge_map[exp((log(x1[x0]) - detach(log(x1[x0])))) / 3.0]',
    ],
    'gcn_bs': ['edge_map[x0 - x2[col]]'],
}


@pytest.mark.parametrize('name', FIRED)
def test_kernels_of_an_algorithm(name):
    passes = ['eliminate_common', 'fuse_edge_map']
    out = trace_of(name, passes=passes).text
    for expression in FIRED[name]:
        assert expression in out


def test_invariant_parts_of_an_edge_map_are_hoisted():
    def function(value, weight):
        square = value * 2 + 1
        return (square * weight - 1,)

    weight = torch.ones(9, requires_grad=True)
    module = program(function, VALUE, weight)
    fuse(module.graph)
    hoist_invariant(module.graph)
    out = ir_text(module.graph).splitlines()[2:]
    assert [line.split('](')[0] for line in out[:2]] == [
        '^%2 = edge_map[(x0 * 2.0) + 1.0',
        '%3 = edge_map[(x0 * x1) - 1.0',
    ]


def test_a_kernel_of_a_graph_is_hoisted():
    A = graph()

    def function(A, seeds):
        total = A.sum(dim=0)
        return A.div(total, dim=0)[:, seeds].individual_sample(2)

    out = trace(function, A, seeds(4)).text
    assert '^' in out
    assert [line[0] for line in out.splitlines() if 'edge_map' in line] == [
        '^',
        '^',
    ]
    fast = compiled(function)
    for _ in range(2):
        torch.manual_seed(1)
        got = fast(A, seeds(4))
        torch.manual_seed(1)
        assert torch.equal(got.values(), function(A, seeds(4)).values())
