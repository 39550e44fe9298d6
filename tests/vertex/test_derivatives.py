"""Gradients of gradients, tangents and transforms, of programs and layers."""

import pytest
import torch
from torch import func
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from tests.vertex.derivatives import (
    EMPTY,
    GRAPH,
    OWN,
    TYPES,
    E,
    N,
    normal,
    program_of,
)
from tests.vertex.programs import PROGRAMS, features
from tests.vertex.test_nn import LAYERS, layers
from torch_gsample import SparseSample
from torch_gsample.batch_edges import BatchEdges
from torch_gsample.block import Block
from torch_gsample.vertex import vertex_program
from torch_gsample.vertex.kernels.fused_unit import Fused, fused_units

check = pytest.mark.usefixtures('uncompiled')


def all_checks(function, inputs):
    """Derivatives of both orders and modes, by differences."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    fast = {'fast_mode': True}  # one direction, drawn at random
    torch.manual_seed(1)
    assert gradcheck(function, inputs, check_forward_ad=True, **fast)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True, **fast)


@check
@pytest.mark.parametrize('name', [*OWN, *PROGRAMS, 'dropped', 'squashed'])
def test_derivatives_of_a_program(name):
    program, given = program_of(name)
    keys = [key for key, x in given.items() if x.is_floating_point()]

    def run(*values):
        torch.manual_seed(0)  # of dropout
        return program(GRAPH, **given | dict(zip(keys, values, strict=True)))

    all_checks(run, [given[key] for key in keys])


def layer_inputs(name):
    """A layer of PyG and ours, features and parameters, and the rest."""
    theirs, ours = layers(name, torch.float64)
    known = {
        'edge_weight': torch.rand(E, dtype=torch.float64) + 0.5,
        'edge_attr': normal(E, 2),
        'edge_type': TYPES,
    }
    rest = {key: known[key] for key in LAYERS[name][3]}
    state = {key: x.detach() for key, x in ours.named_parameters()}
    return theirs, ours, state, rest


@check
@pytest.mark.parametrize('name', LAYERS)
def test_derivatives_of_a_layer(name):
    """Of features, features of edges and parameters."""
    _, ours, state, rest = layer_inputs(name)
    edges = [key for key, x in rest.items() if x.is_floating_point()]
    names = [*state]

    def run(x, *values):
        of_edges = dict(zip(edges, values[len(names) :], strict=True))
        parameters = dict(zip(names, values[: len(names)], strict=True))
        return func.functional_call(
            ours, parameters, (x, GRAPH), rest | of_edges
        )

    all_checks(run, [normal(N, 4), *state.values(), *map(rest.get, edges)])


#: Graphs, and how many vertices they have at both ends.
GRAPHS = {
    'hub': (GRAPH, N, N),
    'empty': (EMPTY, N, N),
    'bipartite': (torch.tensor([[0, 3, 3, 4], [1, 1, 1, 0]]), N, 3),
}


#: Layers that take one set of vertices, and those that take two.
ONE_SET = 'gcn', 'appnp', 'gatv2', 'rgcn'
TWO_SETS = 'gat', 'sage-max', 'gin'


def hessian(layer, x, *args, **kwargs):
    def total(y):
        first = (y, y[: kwargs['size'][1]]) if 'size' in kwargs else y
        return layer(first, *args, **kwargs).sin().sum()

    return func.hessian(total)(x)


@check
@pytest.mark.parametrize(
    ('name', 'which'),
    [
        *((name, 'hub') for name in ONE_SET + TWO_SETS),
        *((name, 'empty') for name in ONE_SET + TWO_SETS),
        *((name, 'bipartite') for name in TWO_SETS),
    ],
)
def test_hessians_of_a_layer_are_those_of_pyg(name, which):
    theirs, ours, _, rest = layer_inputs(name)
    graph, sources, destinations = GRAPHS[which]
    if rest:
        rest = {'edge_type': TYPES[: graph.shape[1]]}
    if sources != destinations:
        if name == 'gat':
            theirs.add_self_loops = ours.add_self_loops = False
        rest = {'size': (sources, destinations)}
    x = normal(sources, 4)
    want = hessian(theirs, x, graph, **rest)
    torch.testing.assert_close(hessian(ours, x, graph, **rest), want)
    assert want.norm() > 0.1 or which == 'empty'


@check
@pytest.mark.parametrize('name', ['gcn', 'gat', 'sage', 'gin'])
def test_hessians_on_a_block_are_those_on_its_edges(name):
    theirs, ours, _, _ = layer_inputs(name)
    edges = torch.tensor([[0, 1, 2, 4, 3], [0, 0, 0, 1, 1]])
    block = Block(BatchEdges(edges, [2, N - 2], [2, N - 2], [5]), 0)
    x = normal(N, 4)
    for layer in (theirs, ours):
        if name == 'gat':
            layer.add_self_loops = False
    if name == 'gcn':  # which has all edges of the batch
        theirs.normalize = ours.normalize = False

    def on_edges(y, _):
        return theirs((y, y[:2]) if name != 'gcn' else y, edges)[:2]

    want = hessian(on_edges, x, None)
    torch.testing.assert_close(hessian(ours, x, block), want)
    assert want.norm() > 0.1
    [twice] = torch.autograd.functional.hvp(
        lambda y: ours(y, block).sin().sum(), x, torch.ones_like(x)
    )[1:]
    torch.testing.assert_close(
        twice.flatten(), want.view(x.numel(), -1).sum(1)
    )


@check
def test_derivatives_of_weights_on_a_block():
    """Degrees are those of the whole batch."""
    theirs, ours, _, _ = layer_inputs('gcn-weights')
    edges = torch.tensor([[0, 1, 2, 4, 3, 0], [0, 0, 0, 1, 1, 1]])
    block = Block(BatchEdges(edges, [2, N - 2], [2, N - 2], [6]), 0)
    x, weight = normal(N, 4), torch.rand(6, dtype=torch.float64) + 0.5
    found = []
    for total in (
        lambda w: theirs(x, edges, w)[:2].sin().sum(),
        lambda w: ours(x, block, w).sin().sum(),
    ):
        found.append(
            (
                func.hessian(total)(weight),
                torch.autograd.functional.hessian(total, weight),
                func.vmap(total)(torch.stack([weight, 2 * weight])),
            )
        )
    torch.testing.assert_close(found[1], found[0])


@check
def test_an_outer_transform_may_require_other_gradients_than_an_inner_one():
    h, w = normal(N, 2), normal(E)
    weighted = PROGRAMS['weighted']

    def inner(y, v):
        return weighted(GRAPH, h=y, w=2 * v).sin().sum()

    def outer(v):
        return func.grad(lambda y: inner(y, v))(h).square().sum()

    y, v = h.clone().requires_grad_(), w.clone().requires_grad_()
    [first] = torch.autograd.grad(inner(y, v), y, create_graph=True)
    [want] = torch.autograd.grad(first.square().sum(), v)
    assert want.norm() > 0.1
    torch.testing.assert_close(func.grad(outer)(w), want)


@check
@pytest.mark.parametrize('name', ['gat-mean', 'rgcn'])
def test_transforms_of_parameters_are_those_of_pyg(name):
    theirs, ours, state, rest = layer_inputs(name)
    x = normal(N, 4)
    many = {key: torch.stack([p, 2 * p]) for key, p in state.items()}

    def total(layer):
        return lambda p, graph: (
            func.functional_call(layer, p, (x, graph), rest).sin().sum()
        )

    found = [
        (
            func.hessian(total(layer))(state, GRAPH),
            func.vmap(func.grad(total(layer)), in_dims=(0, None))(many, GRAPH),
            func.grad(total(layer))(state, GRAPH),
        )
        for layer in (theirs, ours)
    ]
    torch.testing.assert_close(found[1], found[0])


@check
@pytest.mark.parametrize('name', ['gat', 'rgcn'])
def test_three_derivatives_are_those_of_pyg(name):
    theirs, ours, _, rest = layer_inputs(name)
    x, ones = normal(N, 4), torch.ones(N, 4, dtype=torch.float64)
    found = []
    for layer in (theirs, ours):

        def total(y, layer=layer):
            return layer(y, GRAPH, **rest).sin().sum()

        def second(y, total=total):
            return func.jvp(func.grad(total), (y,), (ones,))[1]

        found.append(
            (
                func.jvp(second, (x,), (ones,))[1],
                func.jacfwd(func.jacfwd(total))(x),  # forward mode alone
            )
        )
    torch.testing.assert_close(*found)
    assert min(x.norm() for x in found[0]) > 0.1


def test_kernels_compute_derivatives_as_torch_does(monkeypatch):
    program, given = program_of('mixed')
    values = tuple(given.values())
    ones = tuple(torch.ones_like(x) for x in values)

    def total(*inputs):
        out = program(GRAPH, **dict(zip(given, inputs, strict=True)))
        return sum(x.sin().sum() for x in out)

    def gradient(*inputs):
        return func.grad(total, tuple(range(len(inputs))))(*inputs)

    def run():
        inputs = [x.detach().requires_grad_() for x in values]
        first = torch.autograd.grad(total(*inputs), inputs, create_graph=True)
        twice = sum((g * g).sum() for g in first)
        return [
            torch.autograd.grad(twice, inputs),
            func.jvp(total, values, ones),
            func.jvp(gradient, values, ones),
        ]

    with monkeypatch.context() as patch:
        patch.setattr(Fused, '_loaded', lambda *_: None)
        want = run()
    torch.testing.assert_close(run(), want)
    # Gradients over sources are differentiated, too: theirs are of edges.
    assert any(
        unit.unit.center == 'S' and output.kind == 'E'
        for unit in fused_units.values()
        for output in unit.unit.outputs
    )


def test_first_derivatives_make_no_other_units(monkeypatch):
    """Kernels of second order are made at their first use."""

    def refuse(*args, **kwargs):
        raise AssertionError('a unit of second order')

    for name in ('gradients_again', 'tangents_of'):
        monkeypatch.setattr(
            f'torch_gsample.vertex.kernels.autograd.{name}', refuse
        )
    program, given = program_of('gat')
    out = program(GRAPH, **given)
    torch.autograd.grad(out.sum(), [*given.values()])
    with pytest.raises(AssertionError, match='second order'):
        torch.autograd.grad(
            program(GRAPH, **given).sum(), given['h'], create_graph=True
        )


@check
def test_a_graph_may_be_an_argument_and_a_sample():
    h = normal(N, 2)
    sample = SparseSample.from_edge_index(GRAPH, num_nodes=N)
    gcn = PROGRAMS['gcn']

    def total(y, graph):
        return gcn(graph, h=y, norm=y[:, 0]).sin().sum()

    want = func.grad(total)(h, GRAPH)
    torch.testing.assert_close(func.grad(total)(h, sample), want)
    with forward_ad.dual_level():
        out = total(forward_ad.make_dual(h, torch.ones_like(h)), GRAPH)
        tangent = forward_ad.unpack_dual(out).tangent
    torch.testing.assert_close(tangent, want.sum())


@check
def test_vmap_over_graphs_raises():
    h, w = normal(N, 2), normal(E)
    weighted, graphs = PROGRAMS['weighted'], torch.stack([GRAPH, GRAPH])
    with pytest.raises(NotImplementedError, match=r'weighted: .*over graphs'):
        func.vmap(lambda graph: weighted(graph, h=h, w=w))(graphs)
    types = torch.stack([TYPES, TYPES])
    given = features('rgcn', n=N, e=E, h=1, c=2)
    with pytest.raises(NotImplementedError, match=r'rgcn: .*over graphs'):
        func.vmap(lambda t: PROGRAMS['rgcn'](GRAPH, **given | {'type': t}))(
            types
        )
    h.requires_grad_()
    out = weighted(GRAPH, h=h, w=w)
    with pytest.raises(NotImplementedError, match=r'weighted: .is_grads_ba'):
        torch.autograd.grad(
            out, h, torch.ones(2, *out.shape), is_grads_batched=True
        )
    with pytest.raises(ValueError, match=r'weighted: torch.vmap over nothing'):
        func.vmap(lambda y: weighted(GRAPH, h=y, w=w))(normal(0, N, 2))


@check
def test_derivatives_are_zero_without_edges_or_a_path():
    """Zero where no edge is, and without a path."""
    h = normal(N, 2)

    def detached(v):
        return sum(u.h.detach() for u in v.innbs) + v.y

    program = vertex_program(detached)
    for graph in (EMPTY, GRAPH):
        _, tangent = func.jvp(
            lambda y, g=graph: program(g, h=y, y=h), (h,), (h,)
        )
        assert torch.equal(tangent, torch.zeros(N, 2, dtype=torch.float64))
    _, tangent = func.jvp(lambda y: program(EMPTY, h=h, y=y), (h,), (h,))
    assert torch.equal(tangent, h)


@check
@pytest.mark.parametrize('kind', ['edges', 'sample', 'block'])
@pytest.mark.parametrize('name', ['gcn', 'gat', 'sage', 'gin'])
def test_caches_of_a_graph_survive_transforms(name, kind):
    """A graph is first seen in a transform, then without one."""
    _, ours, _, _ = layer_inputs(name)
    graph = GRAPH.clone()
    if kind == 'sample':
        graph = SparseSample.from_edge_index(graph, num_nodes=N)
    if kind == 'block':
        order = graph[1].argsort(stable=True)
        edges = BatchEdges(graph[:, order], [3, 2], [3, 2], [E])
        graph = Block(edges, 0)
    if name == 'gat':
        ours.add_self_loops = False
    x = normal(N, 4)

    def total(y):
        return ours(y, graph).sin().sum()

    found = func.grad(total)(x)
    y = x.clone().requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(total(y), y)[0], found)
