"""Inference from disk: equal to a forward call in memory, after any kill."""

import errno
import os
import re
import resource
import signal

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import HeteroData

from tests.storage.disk import in_a_fork
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    DiskModel,
    FeatureFile,
    infer,
)
from torch_gsample.storage.inference import budget, packing, tiles
from torch_gsample.vertex import nn as fused

NODES, WIDTH = 300, 16
DISK = DiskModel(1e-5, 1e9)
#: Disks on which few requests count, or few bytes.
GATHERS, PACKS = DiskModel(1.0, 1e12), DiskModel(1e-9, 1e6)


def random(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def edges(num_edges, rows, cols, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.stack(
        [
            torch.randint(n, (num_edges,), generator=generator)
            for n in (rows, cols)
        ]
    )


def make_edges():
    """Some nodes have loops, one several; one has many in-edges."""
    out = edges(3000, NODES, NODES - 20)
    out[1, :30] = out[0, :30]
    out[:, 30:33] = 7
    out[1, 100:400] = 11
    return out


EDGES = make_edges()
X = random(NODES, WIDTH)


@pytest.fixture(scope='module')
def graph(tmp_path_factory):
    """Hubs fill several chunks."""
    path = tmp_path_factory.mktemp('graph') / 'graph'
    return ChunkedGraph.write(
        path, EDGES, num_nodes=NODES, chunk_bytes=400, alignment=512
    )


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Tiles, of which the graph has many."""
    monkeypatch.setattr(tiles, 'TILE', 16)
    monkeypatch.setattr(tiles, 'MESSAGES', 100 * 4 * WIDTH)
    # A budget of few KB has rows read chunk by chunk.
    monkeypatch.setattr(budget, '_RESIDENT', 0.1)
    monkeypatch.setattr(budget, '_COMMIT', 4000)


def histogram():
    return EDGES[1].bincount(minlength=NODES).bincount()


def basic(kind, dtype=torch.float64, seed=0, **options):
    torch.manual_seed(seed)
    model = kind(WIDTH, 8, num_layers=2, out_channels=5, **options)
    for norm in model.norms:
        if isinstance(norm, pyg.BatchNorm) and norm.module.track_running_stats:
            norm.module.running_mean.normal_()
            norm.module.running_var.uniform_(0.5, 2)
    return model.to(dtype).eval()


BASIC = {
    'sage': (pyg.GraphSAGE, {'norm': 'batch_norm', 'dropout': 0.5}),
    'sage, jk': (pyg.GraphSAGE, {'jk': 'cat', 'act_first': True}),
    'sage, lstm': (pyg.GraphSAGE, {'jk': 'lstm'}),
    'gcn': (pyg.GCN, {'act': 'elu'}),
    'gcn, no loops': (pyg.GCN, {'add_self_loops': False, 'improved': True}),
    'gcn, sums': (pyg.GCN, {'normalize': False}),
    'gat': (pyg.GAT, {'heads': 2}),
    'gatv2': (pyg.GAT, {'v2': True, 'jk': 'last'}),
    'gin': (pyg.GIN, {'jk': 'max'}),
    'pna': (
        pyg.PNA,
        {
            'aggregators': ['mean', 'min', 'max', 'std'],
            'scalers': ['identity', 'amplification'],
            'deg': histogram(),
        },
    ),
    'edge': (pyg.EdgeCNN, {}),
}


@pytest.mark.parametrize('name', BASIC)
def test_basic_models_are_those_in_memory(name, graph, tmp_path):
    """In float64: what is rounded to float32 in the end is the same."""
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


def smallest(call):
    """Returns the least memory that a call says it needs."""
    memory = 1
    while True:
        try:
            return memory, call(memory)
        except ValueError as error:
            need = re.search(r'must be at least (\d+) bytes', str(error))
            if need is None or int(need[1]) <= memory:
                raise
            memory = int(need[1])


@pytest.mark.parametrize('name', ['sage, jk', 'gcn', 'gat', 'pna'])
def test_bits_are_those_of_any_memory_and_threads(
    name, graph, tmp_path, monkeypatch
):
    kind, options = BASIC[name]
    model = basic(kind, torch.float32, **options)
    x = FeatureFile.write(tmp_path / 'x', X)
    budgets = []
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

    def call(memory, threads=1, disk=GATHERS):
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
    assert len(set(outs)) == 1
    before = torch.get_num_threads()
    out = call('1GiB', 2)
    assert torch.get_num_threads() == before
    assert torch.allclose(out[:], model(X, EDGES), atol=1e-5)


def test_a_copy_that_does_not_fit_or_is_damaged(graph, tmp_path, monkeypatch):
    model = basic(pyg.GraphSAGE, torch.float32)
    x = FeatureFile.write(tmp_path / 'x', X)
    write, fail = packing._write, errno.ENOSPC

    def failing(fd, data, offset):
        if data.dtype == np.uint8:
            if fail:
                raise OSError(fail, 'full')
            data = data ^ 1
        write(fd, data, offset)

    def call(memory):
        return infer(
            model, graph, x, out=tmp_path / 'out', memory=memory, disk=PACKS
        )

    monkeypatch.setattr(packing, '_write', failing)
    monkeypatch.setattr(packing.Packing, 'pays', lambda *_: True)
    monkeypatch.setattr(budget, '_RESIDENT', 0)
    out = call('1MiB')
    assert torch.allclose(out[:], model(X, EDGES), atol=1e-5)
    os.remove(tmp_path / 'out')
    fail = 0
    with pytest.raises(ValueError, match='checksum of copied rows is wrong'):
        call('1MiB')
    assert os.listdir(tmp_path) == ['x']


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


# Kills and other ends ########################################################


class Counted(nn.Module):
    """A model that counts the destinations of each layer."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convs = nn.ModuleList(
            [pyg.SAGEConv(WIDTH, 8), pyg.SAGEConv(8, 5)]
        )
        self.counts = [0, 0]
        self.eval()

    def layers(self):
        def layer(i):
            def call(x, edge_index):
                self.counts[i] += len(x[1])
                return self.convs[i](x, edge_index)

            return call

        return [layer(0), layer(1)]


def run(folder, graph, **options):
    model = Counted()
    infer(
        *(model, graph, X),
        out=folder / 'out',
        layers=model.layers(),
        memory='1MiB',
        num_threads=1,
        **options,
    )
    return [min(count, NODES + 16) for count in model.counts]


def test_a_killed_call_goes_on_after_the_last_chunk(graph, tmp_path):
    """The process is killed at one step after the other."""
    steps = 'fdatasync', 'fsync', 'rename', 'link', 'unlink', 'rmdir', 'pwrite'
    (tmp_path / 'whole').mkdir()
    run(tmp_path / 'whole', graph)
    want = (tmp_path / 'whole/out').read_bytes()
    rows = slice(4096, 4096 + NODES * 20)

    def run_until(folder, left):
        def watch(function):
            def call(*args, **kwargs):
                nonlocal left
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **kwargs)

            return call

        for name in steps:
            setattr(os, name, watch(getattr(os, name)))
        run(folder, graph)

    killed, counts, step = 0, [], 1
    while True:
        folder = tmp_path / f'{step}'
        folder.mkdir()
        status = in_a_fork(lambda: run_until(folder, step))  # noqa: B023
        if status == 0:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        killed += 1
        if (folder / 'out').exists() and len(os.listdir(folder)) == 1:
            counts.append([0, 0])  # killed when all was done
        else:
            counts.append(run(folder, graph))
        assert (folder / 'out').read_bytes()[rows] == want[rows]
        FeatureFile(folder / 'out').verify()
        assert os.listdir(folder) == ['out']
        step += max(step // 4, 1)
    assert killed > 12
    # Of each layer: at most what it had on disk, and the probe of 16 rows.
    totals = [sum(c) for c in counts]
    assert totals == sorted(totals, reverse=True)
    assert len({*totals}) > 6
    assert totals[0] >= 2 * NODES
    assert totals[-1] == 0


def test_other_arguments_are_refused(graph, tmp_path):
    out = tmp_path / 'out'

    def stop(*_):
        raise KeyboardInterrupt

    def call(model=None, data=graph, x=X, **options):
        model = basic(pyg.GraphSAGE, torch.float32) if model is None else model
        return infer(model, data, x, out=out, **options)

    half = basic(pyg.GraphSAGE, torch.float32)
    half.convs[1].register_forward_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        call(half)
    assert sorted(os.listdir(tmp_path)) == ['.out.infer']
    changed = basic(pyg.GraphSAGE, torch.float32)
    changed.convs[0].lin_l.weight.data[0, 0] += 1
    other = basic(pyg.GraphSAGE, torch.float32)
    other.convs[1].normalize = True
    flipped = X.clone()
    flipped[7, 3] += 1
    for options, name in (
        ({'model': changed}, 'model'),
        ({'model': other}, 'model'),
        ({'data': EDGES.flip(0)}, 'graph'),
        ({'x': flipped}, 'features'),
        ({'dtype': torch.float16}, 'dtype'),
    ):
        message = rf'other arguments \(not equal: {name}\).*restart=True'
        with pytest.raises(ValueError, match=message):
            call(**options)
    want = changed(X, EDGES)
    assert torch.allclose(call(changed, restart=True)[:], want, atol=1e-6)
    assert os.listdir(tmp_path) == ['out']
    with pytest.raises(FileExistsError, match="'out' must not exist yet"):
        call()


def test_two_calls_do_not_share_a_folder(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    found = []

    def again(*_):
        if not found:
            found.append(None)
            with pytest.raises(ValueError, match='another process') as caught:
                infer(model, graph, X, out=tmp_path / 'out')
            found.append(caught)

    model.convs[0].register_forward_pre_hook(again)
    infer(model, graph, X, out=tmp_path / 'out')
    assert len(found) == 2
    assert os.listdir(tmp_path) == ['out']


def test_a_full_disk_is_named_and_can_be_mended(graph, tmp_path):
    """A limit of the size of files stands for the disk."""

    def write():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))
        with pytest.raises(OSError, match=r'\.out\.infer/layer-0') as caught:
            run(tmp_path, graph)
        raise caught.value

    assert os.waitstatus_to_exitcode(in_a_fork(write)) == errno.EFBIG
    assert os.listdir(tmp_path) == ['.out.infer']
    first, second = run(tmp_path, graph)
    assert first < NODES <= second
    assert os.listdir(tmp_path) == ['out']


def test_damaged_files_are_named(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    path = tmp_path / 'x'
    x = FeatureFile.write(path, X)
    with open(path, 'r+b') as file:
        file.seek(4096 * 3 + 10)
        file.write(b'!!')
    with pytest.raises(ValueError, match=rf'{path}, offset 12288: .*checksum'):
        infer(model, graph, x, out=tmp_path / 'out')
    assert os.listdir(tmp_path) == ['x']


def test_what_a_kill_left_is_checked(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)

    def stop():
        count = 0

        def hook(*_):
            nonlocal count
            count += 1
            if count == 30:
                os._exit(3)

        model.convs[0].register_forward_hook(hook)
        infer(model, graph, X, out=tmp_path / 'out', num_threads=1)

    assert os.waitstatus_to_exitcode(in_a_fork(stop)) == 3
    path = tmp_path / '.out.infer/layer-0-0.gsf'
    with open(path, 'r+b') as file:
        file.seek(4096 + 5)
        file.write(b'!')
    with pytest.raises(ValueError, match=rf'{path}, offset 4096: .*restart'):
        infer(model, graph, X, out=tmp_path / 'out')
    out = infer(model, graph, X, out=tmp_path / 'out', restart=True)
    assert torch.allclose(out[:], model(X, EDGES), atol=1e-6)


def test_a_node_that_does_not_fit_is_named(graph, tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    degree = int((EDGES[1] == 11).sum())
    message = (
        rf"'memory' must be at least \d+ bytes \(got 20480\): layer convs.0 "
        rf'SAGEConv computes node 11 with {degree} in-edges'
    )
    with pytest.raises(ValueError, match=message):
        infer(model, graph, X, out=tmp_path / 'out', memory='20KiB')
    assert os.listdir(tmp_path) == []


def bad_layers():
    sage = basic(pyg.GraphSAGE, torch.float32)
    lazy = pyg.GraphSAGE(-1, 8, 2).eval()
    graph_norm = basic(pyg.GraphSAGE, torch.float32, norm='graph_norm')
    batch = basic(
        pyg.GraphSAGE,
        torch.float32,
        norm='batch_norm',
        norm_kwargs={'track_running_stats': False},
    )
    tag, linear = pyg.TAGConv(WIDTH, 8).eval(), nn.Linear(2, 2).eval()
    return {
        r"'model' must be a torch.nn.Module": (print, {}),
        r'must be in evaluation mode': (
            basic(pyg.GraphSAGE, torch.float32).train(),
            {},
        ),
        r'has no values yet': (lazy, {}),
        r"GraphNorm 'norms.0' of the model must compute each": (
            graph_norm,
            {},
        ),
        r"BatchNorm1d 'norms.0.module' of the model must": (batch, {}),
        r"'layers' must be given for a model .*\(got Linear\)": (linear, {}),
        r"'layers' must have at least one": (sage, {'layers': []}),
        r"'layers' must hold callables.*\(got int in layer": (
            sage,
            {'layers': [3]},
        ),
        r'TAGConv must take a pair': (tag, {'layers': [tag]}),
        r"flow 'source_to_target' \(got 'target_to_source'\)": (
            sage,
            {'layers': [pyg.SAGEConv(4, 4, flow='target_to_source')]},
        ),
        r'must return a tensor with a row for each of \d+ dest': (
            sage,
            {'layers': [lambda x, e: x[0][:3]]},
        ),
        r'rows of at least one element': (
            sage,
            {'layers': [lambda x, e: x[1][:, :0]]},
        ),
        r"'dtype' must be one of": (sage, {'dtype': torch.float64}),
        r"'memory' must be a number of bytes": (sage, {'memory': 'much'}),
        r"'memory' must be positive": (sage, {'memory': 0}),
        r"'num_threads' must be positive": (sage, {'num_threads': -1}),
        r'a row for each of 300 nodes \(got 3\)': (sage, {'features': X[:3]}),
        r"must be of the node types \[None\] \(got 'a'\)": (
            sage,
            {'features': {'a': X}},
        ),
        r"'features' must have rows of each": (sage, {'features': {}}),
        r'must be a FeatureFile, a tensor': (sage, {'features': 'x'}),
    }


@pytest.mark.parametrize('message', bad_layers())
def test_arguments_are_checked(message, graph, tmp_path):
    model, options = bad_layers()[message]
    options = {'features': X, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        infer(model, graph, out=tmp_path / 'out', **options)
    assert os.listdir(tmp_path) == []


def test_graphs_without_nodes_or_edges(tmp_path):
    model = basic(pyg.GraphSAGE, torch.float32)
    for i, count in enumerate((0, 5)):
        graph = ChunkedGraph.write(
            tmp_path / f'g{i}', torch.empty(2, 0).long(), num_nodes=count
        )
        out = infer(model, graph, X[:count], out=tmp_path / f'{i}')
        want = model(X[:count], torch.empty(2, 0).long())
        assert torch.allclose(out[:], want)


def test_a_bar_counts_rows(graph, tmp_path, capsys):
    model = basic(pyg.GraphSAGE, torch.float32)
    infer(model, graph, X, out=tmp_path / 'out', progress=True)
    assert f'{2 * NODES}/{2 * NODES}' in capsys.readouterr().err
