"""Heterogeneous graph transformer: PyG's outputs, gradients and state."""

import copy

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch_geometric import nn as pyg

from tests.fusion.models import EDGE_TYPES, METADATA, WIDTH, batches
from tests.fusion.models import typed_graph as typed
from torch_gsample.vertex.kernels import merged
from torch_gsample.vertex.nn import HGTConv, hgt_conv

SIZES = {'a': 7, 'b': 5, 'c': 40}
OUT = {'same width': WIDTH, 'other width': 12}


def given(dtype=torch.float64, sizes=SIZES, edges=9):
    """Features, and edges that leave most of `c` without any."""
    make = torch.Generator().manual_seed(0)
    x = {
        key: torch.randn(n, WIDTH, generator=make, dtype=dtype)
        for key, n in sizes.items()
    }
    for value in x.values():
        value.requires_grad_()
    graph = {
        key: torch.stack(
            [
                torch.randint(sizes[end], (edges,), generator=make)
                for end in key[::2]
            ]
        )
        for key in EDGE_TYPES
    }
    return x, graph


def pair(width=WIDTH, metadata=METADATA, dtype=torch.float64):
    """A layer of PyG with random scales, and ours with its state."""
    torch.manual_seed(3)
    sizes = {key: WIDTH for key in metadata[0]}
    theirs = pyg.HGTConv(sizes, width, metadata, heads=2).to(dtype)
    for value in [*theirs.p_rel.values(), *theirs.skip.values()]:
        torch.nn.init.normal_(value)
    for lin in theirs.kqv_lin.lins.values():
        torch.nn.init.normal_(lin.bias)
    ours = HGTConv(sizes, width, metadata, heads=2).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.fixture
def runs(monkeypatch):
    """The calls of the fused program."""
    calls, own = [], hgt_conv.hgt_attention

    def listed(graph, **kwargs):
        calls.append(kwargs['size'])
        return own(graph, **kwargs)

    monkeypatch.setattr(hgt_conv, 'hgt_attention', listed)
    return calls


def results(layer, x, graph):
    out = layer(x, graph)
    loss = sum(
        (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum()
        for y in out.values()
    )
    read = [v for v in x.values() if v.requires_grad]
    parameters = dict(layer.named_parameters())
    found = torch.autograd.grad(
        loss, [*read, *parameters.values()], allow_unused=True
    )
    return out, found


def assert_same(theirs, ours, x, graph, atol=1e-12):
    (want, grads), (got, mine) = (
        results(layer, x, graph) for layer in (theirs, ours)
    )
    assert list(got) == list(want)
    for key in want:
        torch.testing.assert_close(got[key], want[key], rtol=0, atol=atol)
    for a, b in zip(mine, grads, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=10 * atol)


@pytest.mark.parametrize('width', OUT)
def test_results_and_gradients_equal_those_of_pyg(width, runs):
    theirs, ours = pair(OUT[width])
    assert_same(theirs, ours, *given())
    sources = sum(min(9, SIZES[key[0]]) for key in EDGE_TYPES)
    assert runs[0][0] <= sources  # not the 40 of `c`
    assert runs[0][1] == sum(SIZES.values())


def test_single_precision(runs):
    theirs, ours = pair(dtype=torch.float32)
    assert_same(theirs, ours, *given(torch.float32), atol=1e-5)
    assert runs


def test_relations_without_edges(runs):
    x, graph = given()
    for key in EDGE_TYPES[1:3]:
        graph[key] = graph[key][:, :0]
    theirs, ours = pair()
    assert_same(theirs, ours, x, graph)
    assert len(runs) == 1
    for key in graph:
        graph[key] = graph[key][:, :0]
    assert_same(theirs, ours, x, graph)
    assert len(runs) == 1  # without any edge, PyG's code


def test_duplicate_edges_and_a_hub():
    x, graph = given()
    graph['a', 'cites', 'a'] = torch.tensor([[2, 2, 2, 3], [1, 1, 1, 1]])
    graph['c', 'in', 'b'] = torch.stack(
        [torch.arange(40), torch.zeros(40, dtype=torch.long)]
    )
    assert_same(*pair(), x, graph)


def test_few_relations_and_types():
    x, graph = given()
    few = {key: graph[key] for key in EDGE_TYPES[1:4]}
    assert_same(*pair(), x, few)
    metadata = ['a', 'b'], [('a', 'to', 'b')]  # no destinations of type a
    x.pop('c')
    assert_same(
        *pair(metadata=metadata), x, {('a', 'to', 'b'): graph['a', 'to', 'b']}
    )


def test_derivatives_are_those_of_numerical_differences():
    x, graph = given(sizes={'a': 3, 'b': 2, 'c': 2}, edges=3)
    _, ours = pair(WIDTH)
    keys = list(x)
    p_rel = ours.p_rel['a__to__b']  # changed in place by the checks

    def run(_, *features):
        out = ours(dict(zip(keys, features, strict=True)), graph)
        return torch.cat([y.flatten()[::5] for y in out.values()])

    assert gradcheck(run, (p_rel, *x.values()))
    assert gradgradcheck(run, (p_rel, *x.values()))


TRANSFORMS = {
    'grad': lambda f, x: torch.func.grad(lambda y: f(y).square().sum())(x),
    'jvp': lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
    'vjp': lambda f, x: torch.func.vjp(f, x)[1](torch.ones_like(f(x)))[0],
    'vmap': lambda f, x: torch.func.vmap(f)(torch.stack([x, 2 * x])),
}


@pytest.mark.parametrize('name', TRANSFORMS)
def test_transforms_equal_those_of_pyg(name):
    x, graph = given()
    x = {key: value.detach() for key, value in x.items()}
    results = []
    for layer in pair():

        def run(a, layer=layer):
            return layer({**x, 'a': a}, graph)['b']

        try:
            results.append(TRANSFORMS[name](run, x['a']))
        except Exception as error:  # PyG's, too
            results.append(str(error).splitlines()[0])
    want, got = results
    if isinstance(want, str):
        assert got == want
    else:
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize('level', range(3))
def test_blocks_give_the_destinations(level, runs):
    batch = batches(typed())[0]
    block = batch.blocks.level(level)
    theirs, ours = pair()
    want = theirs(batch.x_dict, batch.edge_index_dict)
    got = ours(batch.x_dict, block)
    assert runs
    for key, count in block.num_dst.items():
        torch.testing.assert_close(got[key], want[key][:count])
    with torch.autocast('cpu', torch.bfloat16):
        got = ours(batch.x_dict, block)  # PyG's code
    assert len(runs) == 1
    for key, count in block.num_dst.items():
        assert got[key].shape == want[key][:count].shape


LEFT = {
    'half': lambda layer, x: (
        layer.bfloat16(),
        {k: v.bfloat16() for k, v in x.items()},
    ),
    'a hook': lambda layer, x: (_with_hook(layer), x),
    'another product': lambda layer, x: (_with_product(layer), x),
}


def _with_hook(layer):
    layer.k_rel.register_forward_hook(lambda *_: None)
    return layer


def _with_product(layer):
    torch.nn.utils.parametrizations.weight_norm(layer.kqv_lin.lins['a'])
    return layer


@pytest.mark.parametrize('kind', LEFT)
def test_other_calls_are_those_of_pyg(kind, runs):
    x, graph = given()
    theirs, ours = pair()
    results = [
        layer(features, graph)
        for layer, features in (
            LEFT[kind](layer, x) for layer in (theirs, ours)
        )
    ]
    assert not runs
    for key in x:
        assert torch.equal(results[0][key], results[1][key])


def test_graphs_are_merged_once_and_again_after_a_change(monkeypatch):
    made, own = [], merged._merged
    monkeypatch.setattr(
        merged, '_merged', lambda *args: made.append(1) or own(*args)
    )
    theirs, ours = pair()
    x, graph = given()
    assert_same(theirs, ours, x, graph)
    assert_same(theirs, ours, x, graph)
    assert len(made) == 1
    graph['a', 'to', 'b'][1, 0] = (graph['a', 'to', 'b'][1, 0] + 1) % 5
    assert_same(theirs, ours, x, graph)
    assert len(made) == 2


def test_one_tensor_may_be_the_edges_of_several_relations():
    x, graph = given(sizes=dict.fromkeys(SIZES, 7))
    edges = graph['a', 'to', 'b']
    for keys in (EDGE_TYPES[:1], EDGE_TYPES[3:4], EDGE_TYPES[:2]):
        assert_same(*pair(), x, dict.fromkeys(keys, edges))


@pytest.mark.parametrize(
    ('end', 'value', 'text'),
    [
        (0, 7, r'sources in \[0, 7\).*got 7'),
        (1, 5, r'destinations in \[0, 5\).*got 5'),
        (1, -1, r'destinations in \[0, 5\).*got -1'),
    ],
)
def test_ids_out_of_range(end, value, text):
    x, graph = given()
    graph['a', 'to', 'b'][end, 3] = value
    with pytest.raises(
        IndexError, match="HGTConv: 'edge_index_dict'.*" + text
    ):
        pair()[1](x, graph)


def test_copies_keep_the_layer():
    _, ours = pair()
    other = copy.deepcopy(ours)
    for a, b in zip(
        ours(*given()).values(), other(*given()).values(), strict=True
    ):
        assert torch.equal(a, b)
