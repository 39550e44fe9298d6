"""Inference that is killed, or meets full disks, damage or bad arguments."""

import errno
import os
import resource
import signal

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg

from tests.storage.disk import in_a_fork
from tests.storage.inference.models import EDGES, NODES, PACKS, WIDTH, X, basic
from torch_gsample.storage import FeatureFile, infer
from torch_gsample.storage.inference import budget, packing
from torch_gsample.storage.inference.journal import Journal


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
    # Of each layer: at most its rows on disk, and the probe of 16 rows.
    totals = [sum(c) for c in counts]
    assert totals == sorted(totals, reverse=True)
    assert len({*totals}) > 6
    assert totals[0] >= 2 * NODES
    assert totals[-1] < NODES


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
        message = rf'other arguments \(different: {name}\).*restart=True'
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
        named = r"\(writing offset \d{4}\): '.*\.out\.infer/layer-0"
        with pytest.raises(OSError, match=named) as caught:
            run(tmp_path, graph)
        raise caught.value

    assert os.waitstatus_to_exitcode(in_a_fork(write)) == errno.EFBIG
    assert os.listdir(tmp_path) == ['.out.infer']
    first, second = run(tmp_path, graph)
    assert first < NODES <= second
    assert os.listdir(tmp_path) == ['out']


def test_a_line_that_a_full_disk_cuts_is_an_error(tmp_path):
    path = tmp_path / 'journal'

    def write():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal = Journal(path)
        journal.add('layer', rows=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))
        named = rf"\(writing offset 60\): '{path}'"
        with pytest.raises(OSError, match=named) as caught:
            journal.add('layer', rows=2)
        assert journal.facts == {'layer': {'rows': 1}}
        raise caught.value

    assert os.waitstatus_to_exitcode(in_a_fork(write)) == errno.EFBIG
    assert path.stat().st_size == 60  # a part of the second line
    assert Journal(path).facts == {'layer': {'rows': 1}}


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


def test_files_of_a_killed_run_are_checked(graph, tmp_path):
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
    model = basic(pyg.GAT, torch.float32)
    degree = int((EDGES[1] == 11).sum())
    message = (
        rf"'memory' must be at least \d+ bytes \(got 20480\): layer convs.0 "
        rf'GATConv computes node 11 with {degree} in-edges'
    )
    with pytest.raises(ValueError, match=message):
        infer(model, graph, X, out=tmp_path / 'out', memory='20KiB')
    assert os.listdir(tmp_path) == []


def test_a_copy_that_does_not_fit_or_is_damaged(graph, tmp_path, monkeypatch):
    model = basic(pyg.GraphSAGE, torch.float32)
    x = FeatureFile.write(tmp_path / 'x', X)
    pack, fail = packing.PackedRows.pack, errno.ENOSPC

    def failing(self, *args):
        if fail:
            raise OSError(fail, 'full')
        pack(self, *args)
        first = os.pread(self._file.fd, 4096, 0)
        self._file.write(0, bytes(byte ^ 1 for byte in first))

    def call(memory):
        return infer(
            model, graph, x, out=tmp_path / 'out', memory=memory, disk=PACKS
        )

    monkeypatch.setattr(packing.PackedRows, 'pack', failing)
    monkeypatch.setattr(packing.Packing, 'pays', lambda *_: True)
    monkeypatch.setattr(budget, '_RESIDENT', 0)
    out = call('1MiB')
    assert torch.allclose(out[:], model(X, EDGES), atol=1e-5)
    os.remove(tmp_path / 'out')
    fail = 0
    with pytest.raises(ValueError, match='checksum of rows in a scratch file'):
        call('1MiB')
    assert os.listdir(tmp_path) == ['x']


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
        r"'layers' is required for a model .*\(got Linear\)": (linear, {}),
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


def test_a_bar_counts_rows(graph, tmp_path, capsys):
    model = basic(pyg.GraphSAGE, torch.float32)
    infer(model, graph, X, out=tmp_path / 'out', progress=True)
    assert f'{2 * NODES}/{2 * NODES}' in capsys.readouterr().err
