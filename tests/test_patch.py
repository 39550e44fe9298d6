"""PyG's scripts on our samplers, unchanged."""

import sys
from pathlib import Path

import pytest
import torch_geometric
from torch_geometric import loader as pyg_loader

import torch_gsample
from torch_gsample import cli, loader, nn, patch_pyg

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


def test_what_pyg_gives_is_ours_until_it_is_undone():
    theirs = pyg_loader.NeighborLoader
    patch = patch_pyg()
    try:
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
        assert torch_geometric.nn.Node2Vec is nn.Node2Vec
        assert torch_geometric.nn.models.Node2Vec is nn.Node2Vec
        assert (
            torch_geometric.data.lightning.datamodule.NeighborSampler
            is torch_gsample.NeighborSampler
        )
        assert 'torch_geometric.loader.HGTLoader' in patch.names
        with patch_pyg() as second:
            assert second.names == []
        assert pyg_loader.NeighborLoader is loader.NeighborLoader
    finally:
        patch.undo()
    assert pyg_loader.NeighborLoader is theirs
    assert torch_geometric.nn.models.Node2Vec is not nn.Node2Vec
    patch.undo()
    assert pyg_loader.NeighborLoader is theirs


def test_an_error_undoes_it():
    theirs = pyg_loader.NeighborLoader
    with pytest.raises(ZeroDivisionError), patch_pyg():
        raise ZeroDivisionError
    assert pyg_loader.NeighborLoader is theirs


def test_versions_of_pyg_are_checked(monkeypatch):
    monkeypatch.setattr(torch_geometric, '__version__', '2.6.1')
    with pytest.raises(ImportError, match=r'2\.7 or later .*found 2\.6\.1'):
        patch_pyg()
    monkeypatch.setattr(torch_geometric, '__version__', '2.9.0')
    with pytest.warns(UserWarning, match=r'torch-geometric 2\.9\.0 was not'):
        patch_pyg().undo()


def test_a_script_of_pyg_runs(script, capsys):
    path, before = script(SCRIPT), (sys.argv, sys.path[:])
    assert cli.main(['run', path, '--epochs', '3']) == 0
    out = capsys.readouterr().out
    assert f"__main__ ['{path}', '--epochs', '3']" in out
    assert (sys.argv, sys.path) == before


def test_a_module_runs_and_finds_its_neighbours(script, monkeypatch, capsys):
    text = 'import helper; print(helper.__name__, __name__)'
    folder = Path(script(text)).parent
    (folder / 'helper.py').touch()
    monkeypatch.chdir(folder)
    assert cli.main(['run', '-m', 'train']) == 0
    assert capsys.readouterr().out == 'helper __main__\n'


def test_errors_of_a_script_are_its_own(script, capsys):
    path = script('def f():\n    raise KeyError("here")\nf()\n')
    theirs = pyg_loader.NeighborLoader
    assert cli.main(['run', path]) == 1
    text = capsys.readouterr().err
    assert text.count('File "') == 2, text
    assert 'line 3, in <module>' in text
    assert text.endswith("KeyError: 'here'\n")
    assert pyg_loader.NeighborLoader is theirs


def test_the_exit_status_is_that_of_the_script(script):
    with pytest.raises(SystemExit) as caught:
        cli.main(['run', script('import sys; sys.exit(7)')])
    assert caught.value.code == 7


def test_a_script_that_is_missing(capsys):
    assert cli.main(['run', 'nowhere.py']) == 2
    assert "there is no script 'nowhere.py'" in capsys.readouterr().err
