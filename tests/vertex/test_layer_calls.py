"""Every call that PyG's layers take, to PyG's layers and to ours."""

import copy

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg

from torch_gsample import SparseSample
from torch_gsample.vertex import nn

S, D, E = 7, 5, 24
generator = torch.Generator().manual_seed(11)


def normal(*shape):
    return torch.randn(shape, generator=generator)


def edges(sources, destinations):
    """Edges by destination, none of them twice."""
    row = torch.randint(sources, (2 * E,), generator=generator)
    col = torch.randint(destinations, (2 * E,), generator=generator)
    code = (col * sources + row).unique()
    code = code[torch.randperm(len(code), generator=generator)[:E].sort()[0]]
    return torch.stack([code % sources, code // sources])


def adjacency(edge_index, shape, layout):
    """The transposed adjacency, as PyG has it."""
    size = tuple(reversed(shape))
    ones = torch.ones(edge_index.shape[1])
    matrix = torch.sparse_coo_tensor(edge_index.flip(0), ones, size)
    return matrix.coalesce().to_sparse(layout=layout)


def kinds(edge_index, shape):
    """A graph in all that a layer takes for one."""
    return {
        'edge_index': edge_index,
        'int32': edge_index.int(),
        'strided': edge_index.t().contiguous().t(),
        'EdgeIndex': EdgeIndex(edge_index, sparse_size=shape),
        'EdgeIndex without size': EdgeIndex(edge_index),
        'sorted EdgeIndex': EdgeIndex(
            edge_index, sparse_size=shape, sort_order='col'
        ),
        'coo': adjacency(edge_index, shape, torch.sparse_coo),
        'csr': adjacency(edge_index, shape, torch.sparse_csr),
        'csc': adjacency(edge_index, shape, torch.sparse_csc),
        'no edges': edge_index[:, :0],
        'float': edge_index.float(),
        'vector': edge_index[0],
        'out of range': edge_index + 5,
    }


SQUARE, RECTANGLE = edges(S - 1, S - 1), edges(S, D)
SQUARES, RECTANGLES = kinds(SQUARE, (S, S)), kinds(RECTANGLE, (S, D))
X, Y = normal(S, 4), normal(D, 4)
TYPES = torch.randint(4, (E,), generator=generator)
FEATURES = {
    'x': X,
    'batch of graphs': normal(2, S, 4),
    'vector': X[:, 0],
    'double': X.double(),
    'ids': torch.arange(S),
    'none': None,
}
PAIRS = {
    'pair': (X, Y),
    'list': [X, Y],
    'no destinations': (X, None),
    'no sources': (None, Y),
}
SIZES = [(S, D), [S, D], (None, D), (S, None), (S, S), (S, D + 1), (S, D - 1)]
OF_EDGES = {
    'vector': torch.rand(E, generator=generator),
    'column': torch.rand(E, 1, generator=generator),
    'features': normal(E, 2),
    'double': torch.rand(E, generator=generator).double(),
    'integers': torch.randint(3, (E,), generator=generator),
    'too few': torch.ones(5),
}

#: Layers: the class, and its arguments.
LAYERS = {
    'gcn': ('GCNConv', (4, 3), {}),
    'gcn plain': ('GCNConv', (4, 3), {'normalize': False}),
    'gcn reverse': ('GCNConv', (4, 3), {'flow': 'target_to_source'}),
    'gat': ('GATConv', (4, 3), {'heads': 2}),
    'gat without loops': ('GATConv', (4, 3), {'add_self_loops': False}),
    'gat edges': ('GATConv', (4, 3), {'edge_dim': 2, 'residual': True}),
    'gat bipartite': (
        *('GATConv', ((4, 4), 3)),
        {'add_self_loops': False, 'residual': True},
    ),
    'gatv2': ('GATv2Conv', (4, 3), {}),
    'gatv2 edges': ('GATv2Conv', (4, 3), {'edge_dim': 2}),
    'gatv2 bipartite': (
        *('GATv2Conv', ((4, 4), 3)),
        {'add_self_loops': False, 'share_weights': True},
    ),
    'appnp': ('APPNP', (2, 0.1), {}),
    'rgcn': ('RGCNConv', (4, 3, 4), {}),
    'rgcn without root': ('RGCNConv', (4, 3, 4), {'root_weight': False}),
    'rgcn blocks': ('RGCNConv', (4, 4, 4), {'num_blocks': 2}),
    'sage': ('SAGEConv', (4, 3), {}),
    'sage max': ('SAGEConv', (4, 3), {'aggr': 'max', 'project': True}),
    'sage without root': ('SAGEConv', ((4, 4), 3), {'root_weight': False}),
    'sage std': ('SAGEConv', (4, 3), {'aggr': 'std'}),
    'gin': ('GINConv', (torch.nn.Linear(4, 3),), {}),
}
#: Arguments of a layer after the graph, by position.
LAST = {
    'GCNConv': ['edge_weight'],
    'GATConv': ['edge_attr', 'size', 'return_attention_weights'],
    'GATv2Conv': ['edge_attr', 'return_attention_weights'],
    'APPNP': ['edge_weight'],
    'RGCNConv': ['edge_type'],
    'SAGEConv': ['size'],
    'GINConv': ['size'],
}
#: Calls that only PyG refuses, and its message.
OTHERWISE = {
    ('gat', 'edge_attr too few'): 'shape of the mask',  # it is not read
    ('gat', 'edge_attr=too few'): 'shape of the mask',
    **{
        (name, 'pair, EdgeIndex without size'): 'size of tensor a'
        for name in ('rgcn', 'rgcn without root')
    },
}


def calls(kind):
    """Arguments of a layer, by what they show."""
    typed = kind == 'RGCNConv'

    def types(graph):
        count = E if graph.dim() < 2 else graph.shape[1]
        return (TYPES[: count if graph.layout == torch.strided else E],)

    for name, graph in SQUARES.items():
        yield f'x, {name}', (X, graph, *(types(graph) if typed else ())), {}
    for name, x in FEATURES.items():
        yield f'{name}, graph', (x, SQUARE, *((TYPES,) * typed)), {}
    for name, pair in PAIRS.items():
        for key, graph in RECTANGLES.items():
            rest = types(graph) if typed else ()
            yield f'{name}, {key}', (pair, graph, *rest), {}
    named = {'x': X, 'edge_index': SQUARE}
    yield 'names', (), {**named, **({'edge_type': TYPES} if typed else {})}
    for i, name in enumerate(LAST[kind]):
        before = (None,) * i
        if name == 'size':
            values = {str(size): size for size in SIZES}
        elif name == 'return_attention_weights':
            values = {'yes': True, 'no': False}
        else:
            values = OF_EDGES
        for key, value in values.items():
            first = ((X, Y), RECTANGLE) if name == 'size' else (X, SQUARE)
            yield f'{name} {key}', (*first, *before, value), {}
            yield f'{name}={key}', first, {name: value}
            if name == 'size':
                last = (X, None), RECTANGLE
                yield f'no destinations, {name}={key}', last, {name: value}
            elif name != 'edge_type':
                csr = X, SQUARES['csr']
                yield f'csr, {name}={key}', csr, {name: value}


def called(layer, args, kwargs):
    """The result of a layer, or its error."""
    torch.manual_seed(1)
    try:
        return layer(*args, **kwargs)
    except Exception as error:
        return error


def both(name):
    """A layer of PyG, and ours with its state."""
    kind, args, kwargs = LAYERS[name]
    torch.manual_seed(0)
    theirs = getattr(pyg, kind)(*copy.deepcopy(args), **kwargs)
    ours = getattr(nn, kind)(*copy.deepcopy(args), **kwargs)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


#: Layers that take dicts of types have tests of their own.
DICTS = {'HGTConv'}


def test_every_layer_is_called():
    names = set(nn.__all__) - DICTS
    assert {kind for kind, _, _ in LAYERS.values()} == names
    assert set(LAST) == names


@pytest.mark.parametrize('name', LAYERS)
def test_a_layer_takes_the_calls_of_pyg(name):
    theirs, ours = both(name)
    wrong, taken = [], 0
    for call, args, kwargs in calls(LAYERS[name][0]):
        want, got = (called(layer, args, kwargs) for layer in (theirs, ours))
        errors = [x for x in (want, got) if isinstance(x, Exception)]
        expected = OTHERWISE.get((name, call))
        if expected:
            assert expected in str(want)
            assert isinstance(got, torch.Tensor)
            continue
        if len(errors) == 1:
            wrong.append((call, want, got))
        elif not errors:
            taken += 1
            try:
                torch.testing.assert_close(
                    got, want, rtol=1e-4, atol=1e-5, equal_nan=True
                )
            except AssertionError as error:
                wrong.append((call, str(error)))
    assert not wrong
    assert taken >= 12


@pytest.mark.parametrize(
    'name', ['gat without loops', 'gatv2', 'rgcn', 'sage', 'sage max', 'gin']
)
def test_a_pair_has_the_gradients_of_pyg(name):
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    rest = (TYPES,) if name == 'rgcn' else ()
    grads = []
    for layer in both(name):
        out = layer((x, y), RECTANGLE, *rest)
        leaves = [x, y, *layer.parameters()]
        grads.append(torch.autograd.grad(out.square().sum(), leaves))
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-5)


def hooked(layer):
    """A layer that is left to PyG."""
    layer.register_propagate_forward_hook(lambda *args: None)
    return layer


#: Calls left to PyG: its layers know no SparseSample.
LEFT = {
    'gcn reverse': lambda layer: layer,
    'gcn': hooked,
    'gat': hooked,
    'gatv2': hooked,
    'appnp': hooked,
    'rgcn blocks': lambda layer: layer,
    'sage std': lambda layer: layer,
    'gin': hooked,
}


def test_every_layer_is_left_to_pyg_with_a_sample():
    names = {LAYERS[name][0] for name in LEFT}
    assert names == set(nn.__all__) - DICTS


@pytest.mark.parametrize('name', LEFT)
def test_layers_that_run_in_pyg_accept_a_sample(name):
    theirs, ours = map(LEFT[name], both(name))
    x, sample = X, SparseSample.from_edge_index(SQUARE, num_nodes=S)
    rest = (TYPES,) if name == 'rgcn blocks' else ()
    torch.testing.assert_close(
        ours(x, sample, *rest), theirs(x, SQUARE, *rest)
    )
    if name in ('sage std', 'gin'):
        sample = SparseSample.from_edge_index(RECTANGLE, num_nodes=(S, D))
        out = ours((x, None), sample)
        torch.testing.assert_close(
            out, theirs((x, None), RECTANGLE, size=(S, D))
        )
        assert out.shape[0] == D


def test_a_size_that_differs_from_that_of_the_graph_is_refused():
    _, ours = both('sage')
    sample = SparseSample.from_edge_index(RECTANGLE, num_nodes=(S, D))
    with pytest.raises(ValueError, match="SAGEConv: 'size' must have 5 rows"):
        ours((X, None), sample, (S, S))
