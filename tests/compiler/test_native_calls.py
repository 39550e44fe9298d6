"""Operators are called by the functions of torch that call them."""

import operator

import pytest
import torch

from torch_gsample.compiler.ir import aten
from torch_gsample.compiler.native_calls import call_natively

X, IDS, N = torch.rand(6) + 0.5, torch.tensor([3, 0, 5, 1]), torch.arange(6)
M = X > 0.9
CPU = {'device': torch.device('cpu')}
#: Overloads that programs have, and arguments in their canonical form.
CALLS = [
    (aten.add.Tensor, (X, X), {}),
    (aten.add.Tensor, (X, 2), {'alpha': 3}),
    (aten.sub.Tensor, (N, 1), {}),
    (aten.mul.Tensor, (N, 0.5), {}),
    (aten.div.Tensor, (N, 2), {}),
    (aten.div.Tensor_mode, (N, 4), {'rounding_mode': 'floor'}),
    (aten.pow.Tensor_Scalar, (X, 2), {}),
    (aten.pow.Scalar, (2, X), {}),
    (aten.rsub.Scalar, (X, 1), {}),
    (aten.remainder.Scalar, (N, 4), {}),
    (aten.floor_divide.default, (N, torch.tensor(4)), {}),
    (aten.lt.Scalar, (X, 1), {}),
    (aten.ge.Tensor, (X, X.flip(0)), {}),
    (aten.where.self, (M, X, torch.zeros(())), {}),
    (aten.clamp.default, (N, 2), {}),
    (aten.clamp.Tensor, (X, torch.tensor(0.7)), {}),
    (aten.sum.default, (X,), {}),
    (aten.sum.dim_IntList, (X.view(2, 3), [0], True), {}),
    (aten.cumsum.default, (M, 0), {}),
    (aten.any.default, (M,), {}),
    (aten.cat.default, ([N, IDS],), {}),
    (aten.stack.default, ([X, X], 1), {}),
    (aten.index_select.default, (X, 0, IDS), {}),
    (aten.index_add.default, (X, 0, IDS, X[:4]), {}),
    (aten.index_put.default, (X, [IDS], X[:4]), {}),
    (aten.index.Tensor, (X, [M]), {}),
    (aten.index.Tensor, (X.view(2, 3), [torch.tensor([True, False])]), {}),
    (aten.scatter_reduce.two, (X, 0, IDS, X[:4], 'amax'), {}),
    (aten.searchsorted.Tensor, (N, IDS), {'right': True}),
    (aten.argsort.stable, (X,), {'stable': True, 'descending': True}),
    (aten.repeat_interleave.self_Tensor, (IDS, IDS), {'output_size': 9}),
    (aten.diff.default, (IDS,), {}),
    (aten.bincount.default, (IDS,), {}),
    (aten.arange.default, (5,), CPU),
    (aten.arange.start, (2, 5), CPU),
    (aten.zeros.default, ([2],), {'dtype': torch.int64, **CPU}),
    (aten.full.default, ([2], 1.5), CPU),
    (aten.to.dtype, (X, torch.int64), {}),
    (aten.view.default, (X, (2, -1)), {}),
    (aten.new_full.default, (X, (3,), 0.0), {}),
    (aten.repeat.default, (IDS, [2]), {}),
    (aten.unsqueeze.default, (X, 1), {}),
    (aten.matmul.default, (X.view(2, 3), X.view(3, 2)), {}),
    (aten.isin.Tensor_Tensor, (N, IDS), {}),
    (aten.sym_size.int, (X, 0), {}),
]


@pytest.mark.parametrize(
    ('target', 'args', 'kwargs'),
    CALLS,
    ids=lambda c: str(c) if callable(c) else '',
)
def test_the_function_of_torch_does_the_same(target, args, kwargs):
    graph, inputs = torch.fx.Graph(), []

    def read(value):
        node = graph.placeholder(f'x{len(inputs)}')
        node.meta['example_value'] = value
        inputs.append(value)
        return node

    args = torch.utils._pytree.tree_map_only(torch.Tensor, read, args)
    node = graph.call_function(target, args, kwargs)
    graph.output(node)
    expected = torch.fx.Interpreter(_module(graph)).run(*inputs)
    call_natively(graph)
    assert node.op == 'call_method' or node.target is not target
    out = _module(graph).forward(*inputs)
    if isinstance(out, torch.Tensor):
        assert out.dtype == expected.dtype
        assert torch.equal(out, expected)
    else:
        assert out == expected


def _module(graph):
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def test_indices_that_are_no_mask_keep_their_operator():
    graph = torch.fx.Graph()
    x, i = graph.placeholder('x'), graph.placeholder('i')
    i.meta['example_value'] = IDS
    nodes = [
        graph.call_function(aten.index.Tensor, (x, index))
        for index in ([i], [None, i], [i, i])
    ]
    graph.output(nodes)
    call_natively(graph)
    assert all(node.target is not operator.getitem for node in nodes)
