"""Derivatives of all kinds: right numbers, or errors that name the layer."""

import importlib
import re
from pathlib import Path

import pytest
import torch
from torch import func
from torch._library.custom_ops import OPDEFS
from torch.autograd import forward_ad

import torch_gsample as gsample
from tests.vertex.programs import (
    PROGRAMS,
    E,
    N,
    features,
    graph,
    highest,
    in_tiles,
)
from tests.vertex.test_nn import LAYERS, layers
from torch_gsample import SparseSample, ops
from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Block
from torch_gsample.codegen import unit
from torch_gsample.codegen.edge_map import edge_map
from torch_gsample.codegen.expression import apply, operand
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import Leaf
from torch_gsample.ops._gradient import formulas
from torch_gsample.vertex import Loops, nn
from torch_gsample.vertex.kernels.bilinear import call
from torch_gsample.vertex.kernels.gru import gru_cell
from torch_gsample.vertex.kernels.operator import _variant, run_unit
from torch_gsample.vertex.kernels.relations import Level
from torch_gsample.vertex.nn import fusible

pytestmark = pytest.mark.usefixtures('uncompiled')
GRAPH = graph()
TYPES = torch.arange(E) % 3
SORTED = torch.tensor([0, 0, 1, 2, 2, 2, 2])
generator = torch.Generator().manual_seed(7)


def normal(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


WEIGHT, OTHER, FACTOR = normal(3, 3, 2), normal(N, 2), normal(E)
GATES = normal(9, 3)


FLOAT = torch.float64
#: x[e] * y[e]
PRODUCT = EdgeKernel(
    edge_map(
        apply('mul', operand(0, FLOAT), operand(1, FLOAT)),
        (Leaf('', unit.EDGE, FLOAT), Leaf('', unit.EDGE, FLOAT)),
    )
)


def unit(x):
    """A kernel with a gradient that depends on its operands."""
    number, given = PROGRAMS['pna'].plan(h=x).operators[0]
    return run_unit(
        *(number, [GRAPH], None, (N, N, E, 0), Loops.KEEP, Level.EDGES),
        [x for _ in given],
    )[0]


def unit_as_operator(x):
    """Is what Dynamo captures of it."""
    number, given = PROGRAMS['pna'].plan(h=x).operators[0]
    number = _variant(number, tuple(range(len(given))))
    return torch.ops.gsample.vertex_unit(
        *(number, [GRAPH], None, [N, N, E, 0], 0, 0, [x for _ in given])
    )[0]


def project(x):
    edges = [GRAPH], TYPES, [N, N], 0, True
    return torch.ops.gsample.project_edges(*edges, False, x, WEIGHT)


def outer(x):
    edges = [GRAPH], TYPES, [N, N], 0, True
    return torch.ops.gsample.sum_outer_edges(*edges, x, OTHER, 3)


LAYER = nn.SAGEConv(3, 2).double()
ATTENTION = nn.GATConv(3, 2, heads=2).double()
TO_TWO = torch.stack([GRAPH[0], torch.arange(E) * 2 // E])
BLOCK = Block(BatchEdges(TO_TWO, [2, N - 2], [2, N - 2], [E]), 0)


def on_block(x):
    """A layer with its first sources as destinations."""
    return LAYER(x, BLOCK)


#: Of each formula, a function of a matrix ``[N, 3]``.
FORMULAS = {
    'gather_rows': lambda x: ops.gather_rows(x, GRAPH[0]),
    'sum_columns': lambda x: ops.sum_columns(torch.tensor([0, 4, 7]), x),
    'vertex_unit': unit_as_operator,
    'product_by_type': lambda x: torch.ops.gsample.product_by_type(
        x, WEIGHT, SORTED
    ),
    'sum_outer_by_type': lambda x: torch.ops.gsample.sum_outer_by_type(
        x, OTHER, SORTED, 3
    ),
    'project_edges': project,
    'sum_outer_edges': outer,
    '_Unit': unit,
    '_TransformedUnit': unit,
    '_Bilinear': lambda x: call(
        *('project_edges', [GRAPH], TYPES, [N, N], 0, True, False, x, WEIGHT)
    ),
    '_SharedRows': on_block,
    '_SharedProduct': lambda x: ATTENTION(x, GRAPH),
    '_OverTiles': lambda x: in_tiles(GRAPH, x=x, weight=WEIGHT[0]),
    'Placed': lambda x: in_tiles(GRAPH, x=x, weight=WEIGHT[0]),
    '_Extreme': lambda x: in_tiles(GRAPH, highest, x=x, weight=WEIGHT[0]),
    '_Cell': lambda x: gru_cell(x, x, (GATES, -GATES), (GATES[:, 0],) * 2),
    '_EdgeFunction': lambda x: PRODUCT(x[:, 0], x[:, 1]),
}


def imported():
    """Imports all that registers a formula; returns the files that do."""
    folder = Path(gsample.__file__).parent
    found = []
    for path in folder.rglob('*.py'):
        text, name = path.read_text(), path.relative_to(folder.parent)
        if 'register_gradient(' in text or 'autograd.Function' in text:
            importlib.import_module('.'.join(name.with_suffix('').parts))
        if 'register_autograd(' in text:
            found.append(path.name)
    return found


def test_every_formula_of_the_package_is_in_the_table():
    assert imported() == ['_gradient.py']
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    names = {s.name for s in torch._C._jit_get_all_schemas()}
    own = {name for name in names if name.startswith('gsample::')}
    # Those of custom_op have a kernel for autograd that refuses gradients.
    refused = {name for name, of in OPDEFS.items() if of._backward_fn is None}
    registered = {
        name.split('::')[1]
        for name in own - refused
        if has_kernel(name, 'Autograd')
    }
    assert registered == formulas
    functions = {
        kind.__name__
        for kind in torch.autograd.Function.__subclasses__()
        if kind.__module__.startswith('torch_gsample.')
        and not kind.__module__.startswith('torch_gsample.loader.')
    }
    assert set(FORMULAS) == formulas | functions


def derivative(function, x):
    """The Jacobian by differences, ``[outputs, inputs]``."""
    out = []
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = 1e-5
        step = step.view_as(x)
        with torch.no_grad():
            high, low = function(x + step), function(x - step)
        out.append((high - low).flatten() / 2e-5)
    return torch.stack(out, 1)


def gradient(function, x):
    """The gradient of a scalar in reverse mode."""
    x = x.clone().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(function(x), x)[0]


def twice(function, x):
    x = x.clone().requires_grad_()
    [first] = torch.autograd.grad(function(x), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0].flatten()


def dual(function, x):
    with forward_ad.dual_level():
        out = function(forward_ad.make_dual(x, torch.ones_like(x)))
        return forward_ad.unpack_dual(out).tangent.flatten()


def jacobian(transform, function, x):
    return transform(function)(x).view(-1, x.numel())


def scalar(function):
    return lambda x: function(x).sin().sum()


def hessian(function, x):
    return derivative(lambda y: gradient(scalar(function), y), x)


#: Transforms: the value by them, and by differences in reverse mode.
MODES = {
    'reverse': (
        lambda f, x: gradient(scalar(f), x).flatten(),
        lambda f, x: derivative(scalar(f), x)[0],
    ),
    'jvp': (
        lambda f, x: func.jvp(f, (x,), (torch.ones_like(x),))[1].flatten(),
        lambda f, x: derivative(f, x).sum(1),
    ),
    'dual numbers': (dual, lambda f, x: derivative(f, x).sum(1)),
    'dual numbers that require gradients': (
        lambda f, x: dual(f, x.clone().requires_grad_()),
        lambda f, x: derivative(f, x).sum(1),
    ),
    'vjp': (
        lambda f, x: func.vjp(f, x)[1](torch.ones_like(f(x)))[0].flatten(),
        lambda f, x: derivative(f, x).sum(0),
    ),
    'jacrev': (lambda f, x: jacobian(func.jacrev, f, x), derivative),
    'jacfwd': (lambda f, x: jacobian(func.jacfwd, f, x), derivative),
    'vmap': (
        lambda f, x: func.vmap(f)(torch.stack([x, 2 * x])),
        lambda f, x: torch.stack([f(x), f(2 * x)]),
    ),
    'gradient of vmap': (
        lambda f, x: func.grad(
            lambda y: func.vmap(f)(torch.stack([y, 2 * y])).sin().sum()
        )(x).flatten(),
        lambda f, x: derivative(
            lambda y: torch.stack([f(y), f(2 * y)]).sin().sum(), x
        )[0],
    ),
    'hessian': (
        lambda f, x: jacobian(func.hessian, scalar(f), x).view(x.numel(), -1),
        hessian,
    ),
    'gradient of a gradient': (
        lambda f, x: twice(scalar(f), x),
        lambda f, x: hessian(f, x).sum(0),
    ),
}


def check(name, mode, function, x):
    """Whether there is a derivative: then it is right, or its lack is said."""
    run, expected = MODES[mode]
    refused = ''
    try:
        found = run(function, x)
    except RuntimeError as error:  # NotImplementedError among them
        refused = str(error)
    if refused:
        assert re.search(name, refused), refused
        assert 'not supported' in refused or 'not impl' in refused
        return False
    want = expected(function, x)
    torch.testing.assert_close(found.detach(), want, rtol=1e-5, atol=1e-5)
    return True


#: How errors of a formula name it.
CALLED = {
    '_EdgeFunction': 'edge_map',
    '_SharedRows': 'SAGEConv',
    '_SharedProduct': 'GATConv',
    '_Unit': 'vertex_unit|pna',
    '_TransformedUnit': 'vertex_unit|pna',
    'vertex_unit': 'vertex_unit|pna',
}


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('name', FORMULAS)
def test_a_derivative_of_an_operator_is_right_or_refused(
    name, mode, monkeypatch
):
    monkeypatch.setattr(fusible, '_SHARED', 0)
    called = CALLED.get(name, name)
    known = check(called, mode, FORMULAS[name], normal(N, 3))
    assert known or (mode != 'reverse' and name not in OF_TRANSFORMS)


#: What transforms call, and layers that they reach.
OF_TRANSFORMS = (
    *('_Unit', '_TransformedUnit', '_Bilinear', '_SharedRows'),
    '_SharedProduct',
)


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('name', ['gin', 'gat', 'rgcn'])
def test_a_derivative_of_a_program_is_right(name, mode):
    f = {
        key: x.detach() if key != 'type' else x
        for key, x in features(name).items()
    }
    x = f.pop('h')

    def function(h):
        return PROGRAMS[name](GRAPH, h=h, **f)

    assert check(name, mode, function, x)


#: One layer of each kind.
KINDS = {LAYERS[name][0]: name for name in reversed(LAYERS)}


def test_every_layer_is_tried():
    # HGTConv takes dicts: tests/vertex/test_hgt_conv.py.
    assert {*KINDS, 'HGTConv'} == set(nn.__all__)


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('kind', KINDS)
def test_a_derivative_of_a_layer_is_that_of_pyg(kind, mode):
    name = KINDS[kind]
    theirs, ours = layers(name, torch.float64)
    given = {'edge_type': TYPES} if 'edge_type' in LAYERS[name][3] else {}
    x = normal(N, 4)
    run, _ = MODES[mode]
    want = run(lambda y: theirs(y, GRAPH, **given), x)
    for of in (GRAPH, SparseSample.from_edge_index(GRAPH, num_nodes=N)):
        sample = of is not GRAPH and given
        order = GRAPH[1].argsort(stable=True)
        typed = {'edge_type': TYPES[order]} if sample else given
        got = run(lambda y, of=of, t=typed: ours(y, of, **t), x)
        torch.testing.assert_close(got, want)


def test_a_layer_has_forward_gradients_of_its_parameters():
    theirs, ours = layers('gcn', torch.float64)
    x = normal(N, 4)
    found = []
    for layer in (theirs, ours):
        state = dict(layer.named_parameters())
        ones = {key: torch.ones_like(p) for key, p in state.items()}
        found.append(
            func.jvp(
                lambda p, layer=layer: func.functional_call(
                    layer, p, (x, GRAPH)
                ),
                (state,),
                (ones,),
            )[1]
        )
    assert found[0].norm() > 1
    torch.testing.assert_close(*found)


def test_tensors_that_no_transform_reaches_are_computed():
    """A program may not depend on the differentiated argument."""
    h, w = normal(N, 3), FACTOR
    constant = PROGRAMS['weighted'](GRAPH, h=h, w=w)
    x = normal(N, 3)

    def function(y):
        return (y * PROGRAMS['weighted'](GRAPH, h=h, w=w)).sum()

    assert torch.equal(func.grad(function)(x), constant)
    with forward_ad.dual_level():
        out = function(forward_ad.make_dual(x, torch.ones_like(x)))
        assert forward_ad.unpack_dual(out).tangent == constant.sum()


def test_a_compiled_layer_has_forward_gradients():
    theirs, ours = layers('gcn', torch.float64)
    x, ones = normal(N, 4), torch.ones(N, 4, dtype=torch.float64)
    compiled = torch.compile(ours, backend='aot_eager')
    for run in (
        lambda y: func.jvp(lambda z: compiled(z, GRAPH), (y,), (ones,))[1],
        torch.compile(
            lambda y: func.jvp(lambda z: ours(z, GRAPH), (y,), (ones,))[1],
            backend='aot_eager',
        ),
    ):
        want = func.jvp(lambda z: theirs(z, GRAPH), (x,), (ones,))[1]
        torch.testing.assert_close(run(x), want)
