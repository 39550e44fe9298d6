"""Each convolution of PyG, with its messages fused."""

import copy
import math
import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn.conv import __all__ as NAMES

from tests.fusion.layers import (
    CASES,
    OTHERS,
    OWN,
    TYPED,
    TYPED_NOTES,
    histogram,
    sample,
    typed_layer,
    typed_sample,
)
from torch_gsample import fuse
from torch_gsample.vertex.capture.propagate import capture_of

PAGE = Path(__file__).resolve().parents[2] / 'docs/fused_layers.md'
#: Not fused, with the reasons in the report.
LEFT = {
    'FastRGCNConv': 'torch.scatter is not supported',
    'DNAConv': 'torch.view is not supported: it mixes rows and features',
    'MeshCNNConv': 'torch.slice is not supported: it runs along rows',
}


class Model(nn.Module):
    """A model of one layer."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, *args):
        return self.conv(*args)


def fused(layer):
    """Returns a fused copy, and the report on its messages."""
    model = Model(copy.deepcopy(layer))
    fusion = fuse(model, min_nodes=0, verbose=False)
    return model, capture_of(model.conv), fusion


def total(out, weights):
    """Returns a number that depends on all results."""
    if isinstance(out, dict):
        out = torch.cat([out[key].flatten() for key in sorted(out)])
    if isinstance(out, tuple):
        out = torch.cat([x.flatten() for x in out])
    weight = weights.setdefault(
        'weight', torch.randn(out.numel(), dtype=out.dtype)
    )
    return (out.flatten() * weight).sum(), out


def gradients(layer, args, weights):
    """Returns results and all gradients of a call."""
    given = [
        y
        for x in args
        for y in (x if isinstance(x, tuple) else [x])
        if isinstance(y, torch.Tensor) and y.requires_grad
    ]
    if isinstance(args[0], dict):
        given = list(args[0].values())
    value, out = total(layer(*args), weights)
    wanted = [*given, *(p for p in layer.parameters() if p.requires_grad)]
    found = torch.autograd.grad(value, wanted, allow_unused=True)
    return out.detach(), found


def assert_same(ours, theirs, args, tolerance=1e-9):
    weights = {}
    out, found = gradients(ours, args, weights)
    want, wanted = gradients(theirs, args, weights)
    assert_close([out, *found], [want, *wanted], tolerance)


def assert_close(found, wanted, tolerance):
    for x, y in zip(found, wanted, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            bound = tolerance * (1 + y.abs().max().item() if y.numel() else 1)
            torch.testing.assert_close(x, y, atol=bound, rtol=0)


def called(name, dtype=torch.float64):
    """Returns a layer, and the arguments of its call."""
    torch.manual_seed(7)
    case, given = CASES[name], sample(dtype)
    for key in ('x', 'edge_attr', 'edge_weight', 'pos'):
        given[key].requires_grad_()
    return case.make().to(dtype), [given[n] for n in case.names.split()]


FUSED = [name for name in CASES if name not in LEFT]


@pytest.mark.parametrize('name', FUSED)
def test_layers_equal_those_of_pyg(name):
    theirs, args = called(name)
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, args)
    assert capture.is_fused, capture.reason
    with torch.no_grad():
        _, out = total(ours.eval()(*args), {})
        _, want = total(theirs.eval()(*args), {})
    assert_close([out], [want], 1e-9)


FLOATS = ('GraphConv', 'TransformerConv', 'PNAConv', 'GENConv', 'FeaStConv')


@pytest.mark.parametrize('name', FLOATS)
def test_layers_in_single_precision(name):
    theirs, args = called(name, torch.float32)
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, args, 1e-5)
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('name', TYPED)
def test_layers_of_types_equal_those_of_pyg(name):
    torch.manual_seed(7)
    theirs = typed_layer(name).double()
    x, edges = typed_sample()
    for value in x.values():
        value.requires_grad_()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, [x, edges])
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('name', LEFT)
def test_layers_that_are_left_name_operation_and_line(name):
    theirs, args = called(name)
    args = [x.detach() if isinstance(x, torch.Tensor) else x for x in args]
    ours, capture, fusion = fused(theirs)
    try:
        want = theirs(*args)
    except Exception as error:
        with pytest.raises(type(error)):
            ours(*args)
    else:
        assert torch.equal(ours(*args), want)
    assert not capture.is_fused
    assert LEFT[name] in capture.reason
    assert ': line ' in capture.reason
    assert capture.reason in fusion.report()


#: What layers do in some of their forms.
PARTS = {
    'EdgeConv, LayerNorm': lambda: pyg.EdgeConv(
        nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8), nn.Linear(8, 8))
    ),
    'GENConv, powers': lambda: pyg.GENConv(
        8, 8, aggr='powermean', learn_p=True
    ),
    'PNAConv, towers': lambda: pyg.PNAConv(
        *(8, 8, ['mean', 'std'], ['identity'], histogram()),
        towers=2,
        pre_layers=2,
    ),
}


@pytest.mark.parametrize('name', PARTS)
def test_parts_of_layers(name):
    torch.manual_seed(7)
    theirs, given = PARTS[name]().double(), sample()
    args = [given['x'].requires_grad_(), given['edge_index']]
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, args)
    assert capture.is_fused, capture.reason


@pytest.mark.parametrize('aggr', ['sum', 'mean', 'max'])
def test_matrices_of_edges_are_multiplied_behind_sums(aggr):
    torch.manual_seed(7)
    given = sample()
    inner = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 40))
    theirs = pyg.NNConv(8, 5, inner, aggr=aggr).double()
    args = [
        *(given['x'].requires_grad_(), given['edge_index']),
        given['edge_attr'].requires_grad_(),
    ]
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, args)
    [made] = capture._known.values()
    widths = {math.prod(n.features) for n, _ in made.program.leaves}
    assert (40 in widths) == (aggr == 'max')  # a sum stores no matrix


@pytest.mark.parametrize(
    'aggr', ['std', ['mean', 'max'], 'powermean', 'mul', 'var']
)
def test_aggregations_of_sage(aggr):
    theirs, given = pyg.SAGEConv(8, 8, aggr=aggr).double(), sample()
    args = [given['x'].requires_grad_(), given['edge_index']]
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, args)
    assert capture.is_fused, capture.reason


def pair():
    """Returns features of two kinds of vertices, and their edges."""
    x = torch.randn(40, 8, dtype=torch.float64, requires_grad=True)
    y = torch.randn(17, 8, dtype=torch.float64, requires_grad=True)
    row, col = torch.randint(40, (200,)), torch.randint(15, (200,))
    return (x, y), torch.stack([row, col])


BIPARTITE = {
    'GraphConv': lambda: pyg.GraphConv((8, 8), 8),
    'TransformerConv': lambda: pyg.TransformerConv((8, 8), 4, heads=2),
    'LEConv': lambda: pyg.LEConv((8, 8), 8),
    'EdgeConv': lambda: pyg.EdgeConv(nn.Linear(16, 8)),
    'GENConv': lambda: pyg.GENConv((8, 8), 8),
}


@pytest.mark.parametrize('name', BIPARTITE)
def test_two_kinds_of_vertices(name):
    theirs = BIPARTITE[name]().double()
    ours, capture, _ = fused(theirs)
    assert_same(ours, theirs, pair())
    assert capture.is_fused, capture.reason


def test_one_program_serves_graphs_of_all_sizes():
    theirs, (x, edge_index, weight) = called('GraphConv')
    ours, capture, _ = fused(theirs)
    for nodes, edges in ((40, 200), (36, 30), (36, 1), (200, 36), (36, 0)):
        x = torch.randn(nodes, 8, dtype=torch.float64, requires_grad=True)
        place = torch.arange(edges) % edge_index.shape[1]
        args = [x, edge_index[:, place], weight[place]]
        assert_same(ours, theirs, args)
    assert len(capture._known) == 1


# The table ###################################################################


def row(name):
    """Returns the line of a layer."""
    if name in OTHERS:
        return f'| `{name}` | no | {OTHERS[name]} |'
    if name in OWN:
        return f'| `{name}` | yes | the whole layer |'
    if name in TYPED:
        layer, args = typed_layer(name).double(), typed_sample()
        note = TYPED_NOTES[name]
    else:
        (layer, args), note = called(name), CASES[name].note
    ours, capture, _ = fused(layer)
    try:
        ours(*args)
    except RuntimeError:
        assert name in LEFT  # PyG's, too
    if capture.is_fused:
        state = 'in part' if note else 'yes'
        return f'| `{name}` | {state} | {note or "all messages"} |'
    [reason] = re.findall(r'torch\..*', capture.reason)
    return f'| `{name}` | no | {reason} |'


def test_table_of_layers_is_current(request):
    names = [name for name in NAMES if name != 'MessagePassing']
    assert set(names) == {*CASES, *OWN, *TYPED, *OTHERS}
    rows = [row(name) for name in names]
    assert sum('| no |' not in line for line in rows) >= 45
    before, _ = PAGE.read_text().split('| layer |')
    text = before + '\n'.join(
        ['| layer | fused | what, or why not |', '|---|---|---|', *rows, '']
    )
    if request.config.getoption('--update-golden'):
        PAGE.write_text(text)
    assert PAGE.read_text() == text
