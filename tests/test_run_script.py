"""PyG's scripts on our samplers, unchanged."""

import os
import runpy
import sys
from pathlib import Path

import pytest
import torch_geometric
from torch_geometric import loader as pyg_loader

from torch_gsample import cli

# What PyG's examples do, on a ring: without pyg-lib and torch-sparse.
SCRIPT = """
import sys
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import (
    GraphSAINTEdgeSampler, GraphSAINTNodeSampler, GraphSAINTRandomWalkSampler,
    HGTLoader, LinkNeighborLoader, NeighborLoader, ShaDowKHopSampler)
from torch_geometric.nn import GraphSAGE, Node2Vec

ring = torch.arange(20)
edge_index = torch.stack([ring, (ring + 1) % 20])
data = Data(torch.randn(20, 4), edge_index, y=ring % 2)
hetero = HeteroData({'v': {'x': data.x}})
hetero['v', 'to', 'v'].edge_index = edge_index

for batch in NeighborLoader(data, [2, 2], batch_size=5):
    GraphSAGE(4, 8, 2)(batch.x, batch.edge_index)
next(iter(LinkNeighborLoader(data, [2], edge_label_index=edge_index)))
next(iter(HGTLoader(hetero, [4], 'v', batch_size=4)))
next(iter(ShaDowKHopSampler(data, 2, 3, batch_size=4)))
for kind in GraphSAINTNodeSampler, GraphSAINTEdgeSampler:
    next(iter(kind(data, batch_size=4, num_steps=2)))
next(iter(GraphSAINTRandomWalkSampler(data, batch_size=4, walk_length=2)))
model = Node2Vec(edge_index, 8, walk_length=4, context_size=2)
model.loss(*next(iter(model.loader(batch_size=4))))
print(__name__, sys.argv, len(batch))
"""


GRAPH = """
import copy
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
from torch_geometric.nn import GraphSAGE, SAGEConv

edge_index = torch.randint(40, (2, 300))
data = Data(torch.rand(40, 6), edge_index, y=torch.arange(40) % 3)
"""
#: What PyG's examples do beyond a loop over batches.
SHAPES = {
    # Layer by layer over all nodes, without their features (reddit.py).
    'inference': """
loader = NeighborLoader(copy.copy(data), input_nodes=None, num_neighbors=[-1],
                        shuffle=False, batch_size=16, num_workers=1,
                        persistent_workers=True)
del loader.data.x, loader.data.y
loader.data.num_nodes = data.num_nodes
loader.data.n_id = torch.arange(data.num_nodes)
x = data.x
convs = SAGEConv(6, 5), SAGEConv(5, 3)
with torch.no_grad():
    for conv in convs:
        x = torch.cat([conv(x[batch.n_id], batch.edge_index)[:batch.batch_size]
                       for batch in loader])
    want = convs[1](convs[0](data.x, edge_index), edge_index)
assert torch.allclose(x, want, atol=1e-5)
assert len(loader.dataset) == 40
""",
    # Each layer on its needed rows (hierarchical_sampling.py).
    'trimming': """
model = GraphSAGE(6, 4, num_layers=2)
for batch in NeighborLoader(data, [3, 2], batch_size=10, shuffle=True):
    size = batch.batch_size
    all = model(batch.x, batch.edge_index)[:size]
    trimmed = model(batch.x, batch.edge_index,
                    num_sampled_nodes_per_hop=batch.num_sampled_nodes,
                    num_sampled_edges_per_hop=batch.num_sampled_edges)
    assert torch.allclose(all, trimmed[:size], atol=1e-5)
""",
    # Seeds with times, of nodes and of links (recommender_system.py).
    'recommender': """
data = HeteroData()
data['user'].x, data['movie'].x = torch.rand(40, 3), torch.rand(40, 4)
data['user', 'rates', 'movie'].edge_index = edge_index
data['movie', 'rated_by', 'user'].edge_index = edge_index.flip(0)
time = torch.arange(300)
for store in data.edge_stores:
    store.time = time
kwargs = dict(data=data, num_neighbors=[5, 5], batch_size=32,
              time_attr='time', temporal_strategy='last')
links = LinkNeighborLoader(
    edge_label_index=(('user', 'movie'), edge_index[:, :200]),
    edge_label_time=time[:200] - 1,
    neg_sampling=dict(mode='binary', amount=2), shuffle=True, **kwargs)
batch = next(iter(links))
assert batch['user', 'movie'].edge_label.tolist() == [1] * 32 + [0] * 64
nodes = NeighborLoader(input_nodes='user', input_time=torch.full((40,), 99),
                       **kwargs)
for batch in nodes:
    assert (batch['user', 'movie'].time <= 99).all()
""",
}


@pytest.mark.parametrize('shape', SHAPES)
def test_code_of_pyg_scripts_runs(shape, script, capsys):
    path = script(GRAPH + SHAPES[shape])
    assert cli.main(['run', path]) == 0, capsys.readouterr().err


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / 'train.py'
        path.write_text(text)
        return str(path)

    return write


def test_a_script_of_pyg_runs(script, capsys):
    path, before = script(SCRIPT), (sys.argv, sys.path[:])
    assert cli.main(['run', path, '--epochs', '3']) == 0
    out = capsys.readouterr().out
    assert f"__main__ ['{path}', '--epochs', '3']" in out
    assert (sys.argv, sys.path) == before
    assert sys.modules['__main__'].__name__ == '__main__'
    assert not any(key.startswith('GSAMPLE_RUN') for key in os.environ)


def test_a_module_runs_and_finds_its_neighbours(script, monkeypatch, capsys):
    text = 'import helper; print(helper.__name__, __name__)'
    folder = Path(script(text)).parent
    (folder / 'helper.py').touch()
    monkeypatch.chdir(folder)
    assert cli.main(['run', '-m', 'train']) == 0
    assert capsys.readouterr().out == 'helper __main__\n'


def test_packages_and_folders_run_their_main(tmp_path, monkeypatch, capsys):
    folder = tmp_path / 'package'
    folder.mkdir()
    (folder / '__init__.py').touch()
    (folder / '__main__.py').write_text(
        'import sys; print(__name__, __package__, sys.argv)'
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert cli.main(['run', '-m', 'package', '-x']) == 0
    main = f'{folder}/__main__.py'
    out = capsys.readouterr().out
    assert out == f"__main__ package ['{main}', '-x']\n"
    assert cli.main(['run', str(folder), '-x']) == 0
    out = capsys.readouterr().out
    assert out == f"__main__ None ['{folder}', '-x']\n"


def test_a_module_that_is_missing(capsys):
    assert cli.main(['run', '-m', 'nowhere']) == 2
    assert "no such module 'nowhere'" in capsys.readouterr().err


def test_only_the_script_is_told_that_torch_sparse_is_there(script, capsys):
    from torch_geometric import typing

    text = 'from torch_geometric.typing import WITH_TORCH_SPARSE as W, Tensor'
    path = script(f'{text}\nprint(W, Tensor.__name__)')
    before = typing.WITH_TORCH_SPARSE
    assert cli.main(['run', path]) == 0
    assert capsys.readouterr().out == 'True Tensor\n'
    assert typing.WITH_TORCH_SPARSE is before


SPAWNS = """
import multiprocessing
from torch_geometric.loader import NeighborLoader

def work(queue):
    queue.put((__name__, NeighborLoader.__module__))

if __name__ == '__main__':
    context = multiprocessing.get_context('spawn')
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(*queue.get(timeout=300))
    process.join()
"""


def test_processes_that_a_script_starts_have_our_samplers(script, capsys):
    assert cli.main(['run', script(SPAWNS)]) == 0
    ours = 'torch_gsample.loader.neighbor_loader'
    assert capsys.readouterr().out == f'__mp_main__ {ours}\n'


@pytest.mark.filterwarnings('ignore:.*found in sys.modules:RuntimeWarning')
def test_the_module_run_script_needs_a_script(monkeypatch):
    monkeypatch.delenv('GSAMPLE_RUN_SCRIPT', raising=False)
    with pytest.raises(RuntimeError, match='GSAMPLE_RUN_SCRIPT or GSAMPLE_'):
        runpy.run_module('torch_gsample.run_script', run_name='__main__')


def test_errors_of_a_script_are_its_own(script, capsys):
    path = script('def f():\n    raise KeyError("here")\nf()\n')
    theirs = pyg_loader.NeighborLoader
    assert cli.main(['run', path]) == 1
    text = capsys.readouterr().err
    assert text.count('File "') == 2, text
    assert 'line 3, in <module>' in text
    assert text.endswith("KeyError: 'here'\n")
    assert pyg_loader.NeighborLoader is theirs


def test_errors_behind_an_error_have_their_own_frames(script, capsys):
    path = script(
        'try:\n'
        '    from torch_geometric.nowhere import X\n'
        'except ImportError as error:\n'
        '    raise ValueError("here") from error\n'
    )
    assert cli.main(['run', path]) == 1
    text = capsys.readouterr().err
    assert text.count('File "') == text.count(f'File "{path}"') == 2, text
    assert 'direct cause' in text


def test_a_script_that_is_no_python(script, capsys):
    path = script('x = 1\nfor\n')
    assert cli.main(['run', path]) == 1
    text = capsys.readouterr().err
    assert text.count('File "') == 1, text
    assert f'File "{path}", line 2' in text
    assert 'SyntaxError' in text


def test_a_script_may_report_errors_in_its_own_way(script, capsys):
    text = 'import sys\nsys.excepthook = lambda *e: print("own", e[1])\n1/0'
    before = sys.excepthook
    try:
        assert cli.main(['run', script(text)]) == 1
    finally:
        sys.excepthook = before
    assert capsys.readouterr().out == 'own division by zero\n'


def test_a_version_of_pyg_that_is_too_old(script, monkeypatch, capsys):
    monkeypatch.setattr(torch_geometric, '__version__', '2.6.1')
    assert cli.main(['run', script('print(1)')]) == 2
    out, error = capsys.readouterr()
    assert out == ''
    assert error.startswith('gsample: patch_pyg: torch-geometric 2.7 or')


def test_the_exit_status_is_that_of_the_script(script):
    with pytest.raises(SystemExit) as caught:
        cli.main(['run', script('import sys; sys.exit(7)')])
    assert caught.value.code == 7


def test_a_script_that_is_missing(capsys):
    assert cli.main(['run', 'nowhere.py']) == 2
    assert "no such script 'nowhere.py'" in capsys.readouterr().err
