"""Each convolution of PyG on the blocks of a batch."""

import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from tests.fusion.layers import CASES, OWN, TYPED
from tests.fusion.models import METADATA, WIDTH, batches, graph, typed_graph
from tests.fusion.test_exact import assert_same, seeds, typed_seeds

PAGE = Path(__file__).resolve().parents[2] / 'docs/fuse.md'
W = WIDTH
#: Our own layers, and those of types.
MORE = {
    'GCNConv': lambda: pyg.GCNConv(W, W),
    'SAGEConv': lambda: pyg.SAGEConv(W, W),
    'GATConv': lambda: pyg.GATConv(W, W),
    'GATv2Conv': lambda: pyg.GATv2Conv(W, W),
    'GINConv': lambda: pyg.GINConv(nn.Linear(W, W)),
    'APPNP': lambda: pyg.APPNP(2, 0.1),
    'RGCNConv': lambda: pyg.RGCNConv(W, W, 3),
    'HGTConv': lambda: pyg.HGTConv(W, W, METADATA, heads=2),
    'HANConv': lambda: pyg.HANConv(W, W, METADATA, heads=2),
}
OF_TYPES = ('HGTConv', 'HANConv')
#: Edges of a mesh are in fours, which no sample has.
MESHES = {'MeshCNNConv'}
NAMES = [*MORE, *CASES.keys() - MESHES]
#: Why a layer runs on whole batches, by what the report says.
WHOLE = {
    'depends on edges beyond its block': 'it reads all nodes or edges',
    'has no row for each edge': 'its edges are not those of the batch',
    'messages go from': 'its edges are not those of the batch',
    'edges are not those of a batch': 'its edges are not those of the batch',
}


pytestmark = pytest.mark.usefixtures('all_double')


@pytest.fixture(scope='module')
def samples(all_double):
    return {False: batches(graph()), True: batches(typed_graph())}


def given(batch):
    """Returns arguments by name."""
    make = torch.Generator().manual_seed(0)
    nodes, edges = batch.num_nodes, batch.num_edges

    def draw(*shape):
        return torch.randn(shape, generator=make)

    def types(count, size):
        return torch.randint(count, (size,), generator=make)

    return {
        'x': batch.x,
        'x_0': draw(nodes, W),
        'pos': draw(nodes, 3),
        'edge_attr': draw(edges, 4),
        'edge_weight': draw(edges).abs(),
        'edge_index': batch.edge_index,
        'edge_type': types(3, edges),
        'node_type': types(2, nodes),
        'negative': batch.edge_index.flip(1)[:, :90],
        'sequence': draw(nodes, 2, 8),
    }


class Model(nn.Module):
    """A layer on a batch; the first argument has a parameter."""

    def __init__(self, name):
        super().__init__()
        torch.manual_seed(0)
        self.conv = MORE[name]() if name in MORE else CASES[name].make()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, *args):
        if isinstance(x, dict):
            x = {key: value * self.scale for key, value in x.items()}
        else:
            x = x * self.scale
        return self.conv(x, *args)


def on_blocks(name, samples):
    """Returns the description of a layer's blocks, after comparing results."""
    names = 'x edge_index edge_type' if name == 'RGCNConv' else 'x edge_index'
    names = CASES[name].names if name in CASES else names
    is_typed = name in OF_TYPES

    def arguments(batch):
        if is_typed:
            return (batch.x_dict, batch.edge_index_dict), {}
        known = given(batch)
        return [known[n] for n in names.split()], {}

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        fusion = assert_same(
            Model(name),
            arguments,
            typed_seeds if is_typed else seeds,
            samples[is_typed],
        )
    report = fusion.report()
    if 'exact block of' in report:
        return 'the hops that it reads'
    if 'exact block' in report:
        return 'one hop'
    [why] = [why for said, why in WHOLE.items() if said in report]
    return f'none: {why}'


@pytest.fixture(scope='module')
def lines(samples):
    found = {}
    for name in NAMES:
        found.setdefault(on_blocks(name, samples), []).append(name)
    return found


def test_table_of_blocks_is_current(lines, request):
    assert {*NAMES, *MESHES} == {*CASES, *OWN, *TYPED}
    rows = ['| block | layers |', '|---|---|']
    for what in sorted(lines, key=lambda x: (x.startswith('none'), x)):
        names = ', '.join(f'`{name}`' for name in sorted(lines[what]))
        rows.append(f'| {what} | {names} |')
    before, rest = PAGE.read_text().split('| block | layers |\n')
    _, after = rest.split('\n\n', 1)
    text = before + '\n'.join(rows) + '\n\n' + after
    if request.config.getoption('--update-golden'):
        PAGE.write_text(text)
    assert PAGE.read_text() == text
