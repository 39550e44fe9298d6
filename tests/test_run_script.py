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
    assert cli.main(['run', '-m', 'nowhere']) == 1
    assert "there is no module 'nowhere'" in capsys.readouterr().err


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
    print(*queue.get(timeout=120))
    process.join()
"""


def test_processes_that_a_script_starts_have_our_samplers(script, capsys):
    assert cli.main(['run', script(SPAWNS)]) == 0
    ours = 'torch_gsample.loader.neighbor_loader'
    assert capsys.readouterr().out == f'__mp_main__ {ours}\n'


def test_the_module_of_such_processes_needs_a_script(monkeypatch):
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
    assert cli.main(['run', script('print(1)')]) == 1
    out, error = capsys.readouterr()
    assert out == ''
    assert error.startswith('gsample: patch_pyg: torch-geometric 2.7 or')


def test_the_exit_status_is_that_of_the_script(script):
    with pytest.raises(SystemExit) as caught:
        cli.main(['run', script('import sys; sys.exit(7)')])
    assert caught.value.code == 7


def test_a_script_that_is_missing(capsys):
    assert cli.main(['run', 'nowhere.py']) == 1
    assert "there is no script 'nowhere.py'" in capsys.readouterr().err
