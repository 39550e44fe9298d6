"""A hub's edges are dealt over tiles, so that any limit of memory holds."""

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import HeteroData

from tests.storage.inference.models import (
    GATHERS,
    NODES,
    PACKS,
    WIDTH,
    X,
    edges,
    random,
    smallest,
)
from torch_gsample.storage import ChunkedGraph, FeatureFile, infer
from torch_gsample.storage.inference import hubs, tiles

HUB, DEGREE = 11, 6_000


def make_edges():
    """Most edges go into one node, which has loops, too; 500 into another."""
    out = edges(DEGREE + 1_500, NODES, NODES - 20)
    out[1, 1_000 : 1_000 + DEGREE] = HUB
    out[1, :500] = HUB + 7
    return out


EDGES = make_edges()
ATTR = random(EDGES.shape[1], WIDTH, seed=3)


def layer(name):
    torch.manual_seed(0)
    two = nn.Linear(2 * WIDTH, 6)
    return {
        'mean': lambda: pyg.SAGEConv(WIDTH, 6),
        'max': lambda: pyg.SAGEConv(WIDTH, 6, aggr='max', project=True),
        'min': lambda: pyg.GraphConv(WIDTH, 6, aggr='min'),
        'sum': lambda: pyg.GraphConv(WIDTH, 6),
        'gcn': lambda: pyg.GCNConv(WIDTH, 6),
        'gcn, mean': lambda: pyg.GCNConv(WIDTH, 6, aggr='mean'),
        'gin': lambda: pyg.GINConv(nn.Linear(WIDTH, 6), eps=0.5),
        'gine': lambda: pyg.GINEConv(nn.Linear(WIDTH, 6)),
        'edge': lambda: pyg.EdgeConv(two),
        'gated': lambda: pyg.ResGatedGraphConv(WIDTH, 6),
        'nn': lambda: pyg.NNConv(
            WIDTH, 6, nn.Linear(WIDTH, WIDTH * 6), aggr='mean'
        ),
    }[name]().eval()


LAYERS = 'mean max min sum gcn edge gated gin gine nn'.split() + ['gcn, mean']


@pytest.fixture(scope='module')
def star(tmp_path_factory):
    path = tmp_path_factory.mktemp('star') / 'graph'
    return ChunkedGraph.write(path, EDGES, num_nodes=NODES, chunk_bytes=4000)


@pytest.fixture
def taken(monkeypatch):
    """How many parts of hubs were aggregated."""
    take, out = hubs.take, []

    def note(*args):
        found = take(*args)
        out.append(found)
        return found

    monkeypatch.setattr(hubs, 'take', note)
    return out


@pytest.mark.parametrize('name', LAYERS)
def test_bits_are_those_of_any_memory(name, star, tmp_path, taken):
    conv, outs = layer(name), []
    with_attr = name in ('gine', 'nn')
    attr = (ATTR,) if with_attr else ()
    x = FeatureFile.write(tmp_path / 'x', X)

    def call(memory, threads=1, disk=GATHERS, graph=star):
        out = infer(
            *(conv, graph, x),
            out=tmp_path / f'out-{len(outs)}',
            layers=[conv],
            edge_features=ATTR if with_attr else None,
            memory=memory,
            num_threads=threads,
            disk=disk,
        )
        outs.append(out[:])
        return out

    least, _ = smallest(call)
    # The rows of a hub's edges alone would take more.
    assert least < DEGREE * 4 * WIDTH * (2 if with_attr else 1)
    assert len(taken) >= DEGREE // 100
    call(least, 3, PACKS)
    call(2 * least, 2)
    call('1GiB', 4)
    call('1GiB', 1, graph=EDGES)
    assert all(torch.equal(out, outs[0]) for out in outs)
    want = conv(X, EDGES, *attr)
    assert torch.allclose(outs[0], want, rtol=1e-4, atol=1e-3)
    assert not conv._aggregate_forward_hooks


@pytest.mark.parametrize('kind', [pyg.GraphSAGE, pyg.GCN, pyg.GIN])
def test_basic_models_split_each_layer(kind, star, tmp_path, taken):
    torch.manual_seed(0)
    model = kind(WIDTH, 8, 2, 5, jk='cat').double().eval()

    def call(memory):
        return infer(
            *(model, star, X), out=tmp_path / 'out', memory=memory, disk=PACKS
        )

    _, out = smallest(call)
    assert len(taken) >= 2 * DEGREE // 200
    want = model(X.double(), EDGES).float()
    assert torch.allclose(out[:], want, rtol=1e-5, atol=1e-5)


def test_hubs_of_several_relations(tmp_path, taken):
    torch.manual_seed(0)
    data = HeteroData()
    data['a'].x, data['b'].x = random(90, WIDTH), random(70, WIDTH, seed=1)
    into = [('a', 'to', 'b'), ('a', 'by', 'b'), ('b', 'in', 'b')]
    for i, key in enumerate(into):
        ends = edges(1_050, len(data[key[0]].x), 70, seed=i)
        ends[1, :950] = 5  # 5 has no more edges of the third relation
        ends[1, 950:] += (ends[1, 950:] == 5).long()
        data[key].edge_index = ends
    data[into[2]].edge_index = data[into[2]].edge_index[:, 950:]
    conv = pyg.HeteroConv(
        {
            into[0]: pyg.SAGEConv((WIDTH, WIDTH), 6),
            into[1]: pyg.GraphConv((WIDTH, WIDTH), 6, aggr='max'),
            into[2]: pyg.GCNConv(WIDTH, 6),
        },
        aggr='sum',
    ).eval()
    graph = ChunkedGraph.write(tmp_path / 'g', data, chunk_bytes=400)
    outs = []

    def call(memory, graph=graph):
        out = infer(
            *(conv, graph, data.x_dict),
            out=tmp_path / f'out-{len(outs)}',
            layers=[conv],
            memory=memory,
            disk=GATHERS,
        )
        outs.append(out['b'][:])

    smallest(call)
    assert len(taken) == 1_900 // 100
    assert {*taken[0]} == {into[0]}
    assert {*taken[-1]} == {into[1], into[2]}  # the loop of GCN
    call('1GiB', data)
    assert torch.equal(*outs)
    want = conv(data.x_dict, data.edge_index_dict)['b']
    assert torch.allclose(outs[0], want, rtol=1e-4, atol=1e-4)


def test_a_call_that_ended_within_a_hub_goes_on(star, tmp_path, taken):
    conv, counts = layer('mean'), []

    def fail(*_):
        counts.append(0)
        if len(counts) == 40:
            raise KeyboardInterrupt

    def call(memory, name='out'):
        return infer(
            *(conv, star, X),
            out=tmp_path / name,
            layers=[conv],
            memory=memory,
            num_threads=1,
        )

    least, want = smallest(lambda memory: call(memory, 'whole'))
    handle = conv.register_message_forward_hook(fail)
    with pytest.raises(KeyboardInterrupt):
        call(least)
    handle.remove()
    assert torch.equal(call(2 * least)[:], want[:])


def test_other_layers_see_all_edges_of_a_node(star, tmp_path):
    def function(pair, edge_index):
        out = torch.zeros(len(pair[1]), WIDTH)
        return out.index_add_(0, edge_index[1], pair[0][edge_index[0]])

    torch.manual_seed(0)
    two = nn.ModuleDict({'conv': layer('mean')})
    shared = pyg.HeteroConv(
        dict.fromkeys([('a', 'to', 'a'), ('a', 'in', 'a')], two['conv'])
    )
    several = pyg.SAGEConv(WIDTH, 6, aggr=['mean', 'max'])
    assert not hubs.splits(tiled(shared, True))
    for other in (
        pyg.GATConv(WIDTH, 6),
        pyg.TransformerConv(WIDTH, 6),
        several,
        function,
    ):
        assert not hubs.splits(tiled(other, False))
        message = rf'node {HUB} with \d{{4}} in-edges at once'
        with pytest.raises(ValueError, match=message):
            infer(
                *(two.eval(), star, X),
                out=tmp_path / 'out',
                layers=[other.eval() if other is not function else other],
                memory='100KiB',
            )


def tiled(item, hetero):
    from torch_gsample.storage.inference import layers

    return layers.layers_of(nn.ModuleList().eval(), [item], hetero)[0]


def test_tiles_of_a_hub_have_all_of_its_edges():
    from torch_gsample import CSC
    from torch_gsample.storage.inference.columns import MemoryColumns

    def column(*degrees):
        indptr = torch.tensor([0, *degrees]).cumsum(0)
        count = int(indptr[-1])
        return MemoryColumns(CSC(indptr, torch.arange(count) % 4, 4))

    relations = [
        ('r', 'x', column(1, 6, 0, 1)),
        ('s', 'x', column(0, 5, 0, 0)),
    ]
    found = tiles.Tiles(relations, 'x', 4, 10**9, {}, split=True)
    found.max_edges = 4
    got = [
        (
            *(tile.begin, tile.end, tile.hub, tile.last),
            [part.offset.tolist() for part in tile.parts],
            [part.neighbor.tolist() for part in tile.parts],
        )
        for tile in found.read()
    ]
    assert got == [
        (0, 1, False, True, [[0, 1], [0, 0]], [[0], []]),
        (1, 2, True, False, [[0, 4], [0, 0]], [[1, 2, 3, 0], []]),
        (1, 2, True, False, [[0, 2], [0, 2]], [[1, 2], [0, 1]]),
        (1, 2, True, True, [[0, 0], [0, 3]], [[], [2, 3, 0]]),
        (2, 4, False, True, [[0, 0, 1], [0, 0, 0]], [[3], []]),
    ]
    assert found.largest() == (4, 1, 2)
