"""Inference from disk is equal to a forward call in memory."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import HeteroData

from tests.storage.inference.models import (
    BASIC,
    DISK,
    EDGES,
    GATHERS,
    NODES,
    PACKS,
    WIDTH,
    X,
    basic,
    edges,
    random,
    smallest,
)
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    FeatureFile,
    infer,
)
from torch_gsample.storage.inference import budget, packing
from torch_gsample.vertex import nn as fused


@pytest.mark.parametrize('name', BASIC)
def test_basic_models_are_those_in_memory(name, graph, tmp_path):
    """In float64: the results rounded to float32 are the same."""
    kind, options = BASIC[name]
    model = basic(kind, **options)
    x = X.double()
    want = model(x, EDGES).float()
    for i, (data, rows) in enumerate([(graph, X), (EDGES, x)]):
        out = infer(model, data, rows, out=tmp_path / str(i), disk=DISK)
        assert out.dtype == torch.float32
        assert torch.equal(out[:], want)
    assert sorted(os.listdir(tmp_path)) == ['0', '1']


@pytest.mark.parametrize('kind', ['SAGEConv', 'GCNConv', 'GATConv', 'GINConv'])
def test_fused_layers_take_blocks(kind, graph, tmp_path):
    torch.manual_seed(0)
    if kind == 'GINConv':
        convs = [m.GINConv(nn.Linear(WIDTH, 5)) for m in (pyg, fused)]
    else:
        convs = [getattr(m, kind)(WIDTH, 5) for m in (pyg, fused)]
    convs = [conv.double().eval() for conv in convs]
    convs[1].load_state_dict(convs[0].state_dict())
    seen = []
    convs[1].register_forward_pre_hook(lambda _, args: seen.append(args[1]))
    layers = [(convs[1], F.elu)]
    out = infer(convs[1], graph, X, out=tmp_path / 'out', layers=layers)
    want = F.elu(convs[0](X.double(), EDGES))
    assert torch.allclose(out[:], want.float(), rtol=2e-7, atol=2e-7)
    assert type(seen[0]).__name__ == '_TileBlock'


def threads_of_torch():
    """Returns what this thread has, and what another one gets."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(torch.get_num_threads).result()
    return torch.get_num_threads(), other


@pytest.mark.parametrize('name', ['sage, jk', 'gcn', 'gat', 'pna'])
def test_bits_are_those_of_any_memory_and_threads(
    name, graph, tmp_path, monkeypatch
):
    kind, options = BASIC[name]
    model = basic(kind, torch.float32, **options)
    x = FeatureFile.write(tmp_path / 'x', X)
    before, budgets = threads_of_torch(), []
    made = budget.Budget.__post_init__

    def note(self):
        made(self)
        budgets.append(self)

    monkeypatch.setattr(budget.Budget, '__post_init__', note)
    outs, calls = [], iter(range(100))

    packed = []
    pack = packing.Packing.pack

    def note_pack(self, *args):
        packed.append(self)
        pack(self, *args)

    monkeypatch.setattr(packing.Packing, 'pack', note_pack)

    def call(memory, threads=1, disk=GATHERS, graph=graph):
        path = tmp_path / f'out-{next(calls)}'
        out = infer(
            *(model, graph, x),
            out=path,
            memory=memory,
            num_threads=threads,
            disk=disk,
        )
        outs.append(path.read_bytes()[4096 : 4096 + NODES * 20])
        return out

    least, _ = smallest(call)
    assert not all(b.resident for b in budgets)
    for memory, threads in (
        (least, 3),
        (2 * least, 2),
        ('1GiB', 1),
        ('1G', 4),
    ):
        call(memory, threads)
    assert budgets[-1].resident
    assert budgets[-1].threads == 4
    call('1GiB', 2, graph=EDGES)
    out = call('1GiB', 2)
    assert threads_of_torch() == before
    assert len(set(outs)) == 1
    assert torch.allclose(out[:], model(X, EDGES), atol=1e-5)


@pytest.mark.parametrize('dtype', [np.float32, np.float64, np.int8])
def test_a_mapped_array_is_packed(graph, tmp_path, monkeypatch, dtype):
    model = basic(pyg.GraphSAGE, torch.float32)
    x = (X * 10).numpy().astype(dtype)
    np.save(tmp_path / 'x.npy', x)
    monkeypatch.setattr(packing.Packing, 'pays', lambda *_: True)
    monkeypatch.setattr(budget, '_RESIDENT', 0)
    mapped = np.load(tmp_path / 'x.npy', mmap_mode='r')
    options = {'out': tmp_path / 'out', 'memory': '1MiB', 'disk': PACKS}
    out = infer(model, graph, mapped, **options)
    want = model(torch.from_numpy(x).float(), EDGES)
    assert torch.allclose(out[:], want, atol=1e-4)


def test_features_in_any_form_give_one_result(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    np.save(tmp_path / 'x.npy', X.numpy())
    file = FeatureFile.write(tmp_path / 'x', X)
    forms = [
        *(X, X.numpy(), np.load(tmp_path / 'x.npy', mmap_mode='r'), file),
        *(DiskFeatureStore({'x': file}), DiskFeatureStore({'x': X})),
        {None: file},
    ]
    outs = [
        infer(model, graph, x, out=tmp_path / f'{i}', direct=i % 2 > 0)[:]
        for i, x in enumerate(forms)
    ]
    assert all(torch.equal(out, outs[0]) for out in outs)
    short = FeatureFile.write(tmp_path / 'half', X, dtype=torch.int8)
    out = infer(model, graph, short, out=tmp_path / 'y', dtype=torch.float16)
    want = model(short[:], EDGES)
    assert out.dtype == torch.float16
    assert torch.allclose(out[:].float(), want, atol=2e-3)


def test_graphs_without_nodes_or_edges(tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    for i, count in enumerate((0, 5)):
        graph = ChunkedGraph.write(
            tmp_path / f'g{i}', torch.empty(2, 0).long(), num_nodes=count
        )
        out = infer(model, graph, X[:count], out=tmp_path / f'{i}')
        want = model(X[:count], torch.empty(2, 0).long())
        assert torch.allclose(out[:], want)


# Graphs with types ###########################################################

COUNTS = {'a': 90, 'b': 70}
TYPES = ('a', 'to', 'b'), ('b', 'to', 'a'), ('a', 'in', 'a')


@pytest.fixture(scope='module')
def hetero():
    data = HeteroData()
    for i, (kind, count) in enumerate(COUNTS.items()):
        data[kind].x = random(count, WIDTH, seed=i, dtype=torch.float64)
    for i, key in enumerate(TYPES):
        ends = COUNTS[key[0]], COUNTS[key[2]]
        data[key].edge_index = edges(500, *ends, seed=i)
    return data


def make_hetero(width, seed=0):
    torch.manual_seed(seed)
    convs = {
        TYPES[0]: pyg.SAGEConv((width, width), 8),
        TYPES[1]: pyg.GATConv((width, width), 8, add_self_loops=False),
        TYPES[2]: pyg.GCNConv(width, 8),
    }
    return pyg.HeteroConv(convs, aggr='mean').double().eval()


@pytest.mark.parametrize('on_disk', [False, True])
def test_heterogeneous_models_are_those_in_memory(hetero, tmp_path, on_disk):
    model = nn.ModuleList([make_hetero(WIDTH), make_hetero(8, 1)]).eval()
    graph = hetero
    if on_disk:
        graph = ChunkedGraph.write(tmp_path / 'g', hetero, chunk_bytes=400)
    layers = [(model[0], F.relu), model[1]]
    h = model[0](hetero.x_dict, hetero.edge_index_dict)
    h = {kind: x.relu() for kind, x in h.items()}
    want = model[1](h, hetero.edge_index_dict)

    def call(memory):
        return infer(
            *(model, graph, hetero.x_dict),
            out=tmp_path / 'out',
            layers=layers,
            memory=memory,
            disk=DISK,
        )

    _, out = smallest(call)
    assert out.keys() == want.keys()
    for kind in want:
        assert torch.equal(out[kind][:], want[kind].float())
    assert sorted(os.listdir(tmp_path / 'out')) == ['a.gsf', 'b.gsf']
    assert len(os.listdir(tmp_path)) == 1 + on_disk


def test_functions_take_dictionaries_by_edge_type(hetero, tmp_path):
    model = nn.ModuleList(
        [
            *(
                pyg.SAGEConv((WIDTH, WIDTH), 8),
                pyg.SAGEConv((WIDTH, WIDTH), 8),
            ),
            pyg.SAGEConv((8, 8), 3),
        ]
    )
    model = model.double().eval()

    def first(x, edge_index):
        out = {}
        for conv, key in zip(model, TYPES[:2], strict=False):
            if key in x:
                out[key[2]] = conv(x[key], edge_index[key])
        return out

    def last(x, edge_index):
        key = TYPES[0]
        return {'b': model[2](x[key], edge_index[key])} if key in x else {}

    out = infer(
        *(model, hetero, hetero.x_dict),
        out=tmp_path / 'out',
        layers=[first, last],
    )
    a, b = (hetero[kind].x for kind in 'ab')
    to_b, to_a = (hetero[key].edge_index for key in TYPES[:2])
    h = model[1]((b, a), to_a), model[0]((a, b), to_b)
    assert out.keys() == {'b'}
    assert torch.equal(out['b'][:], model[2](h, to_b).float())

    def only_b(x, edge_index):
        return last(x, edge_index) if TYPES[0] in x else {}

    model[2] = pyg.SAGEConv((WIDTH, WIDTH), WIDTH).double().eval()
    with pytest.raises(ValueError, match=r"reads \('a', 'to', 'b'\).*'a'"):
        infer(
            *(model, hetero, hetero.x_dict),
            out=tmp_path / 'other',
            layers=[only_b, only_b],
        )
