"""Scripts under a limit of memory."""

import resource

import numpy as np
import pytest
import torch

from torch_gsample import cli
from torch_gsample.cli import run
from torch_gsample.storage import DiskFeatureStore, FeatureFile

SCRIPT = """
import resource
import torch
from torch_geometric.loader import NeighborLoader
from torch_geometric.testing import MyGraphStore
from torch_gsample.storage import DiskFeatureStore

ring = torch.arange(2_000)
edges = torch.stack([ring, (ring + 1) % 2_000])
graph = MyGraphStore()
graph.put_edge_index(edges, edge_type=None, layout='coo', size=(2_000, 2_000))
store = DiskFeatureStore({{'x': {path!r}}})
print(resource.getrlimit(resource.RLIMIT_DATA)[0])
for batch in NeighborLoader((store, graph), [2, 2], batch_size=100,
                            input_nodes=ring, num_workers={workers}):
    assert torch.equal(batch.x[:, 0], batch.n_id.float())
print(store.explain())
if {more}:
    torch.ones(1 << 30, dtype=torch.uint8)
"""


def run_script(folder, memory, more=False, kind='npy', workers=0):
    x = torch.arange(2_000.0).repeat(8, 1).T.contiguous()
    path = folder / f'x.{kind}'
    if not path.exists():
        if kind == 'npy':
            np.save(path, x.numpy())
        else:
            FeatureFile.write(path, x)
    script = folder / 'train.py'
    script.write_text(
        SCRIPT.format(path=str(path), more=more, workers=workers)
    )
    return cli.main(['run', '--memory', str(memory), str(script)])


@pytest.fixture
def room():
    """A limit that leaves this process 400 MB."""
    return run._used() + 400_000_000


@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('kind', ['npy', 'gsf'])
def test_reads_are_planned_within_the_limit(
    tmp_path, capsys, room, kind, workers
):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert run_script(tmp_path, room, kind=kind, workers=workers) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{room}\n')
    assert 'memory: limit ' in out
    assert 'chosen' in out
    share = float(out.split('memory: limit ')[1].split()[0])
    assert 60 < share <= 100  # a quarter of 400 MB, less what was used since
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    x = np.zeros((3, 2), np.float32)
    np.save(tmp_path / 'y.npy', x)
    store = DiskFeatureStore({'x': tmp_path / 'y.npy'})
    assert not store.plans_reads  # the limit is gone


def test_a_script_that_takes_more_is_refused(tmp_path, capsys, room):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert run_script(tmp_path, room, more=True) == 1
    error = capsys.readouterr().err
    assert 'torch.ones(1 << 30' in error
    assert 'memory' in error
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    torch.ones(1 << 30, dtype=torch.uint8)


def test_memory_below_python_minimum_is_an_error(tmp_path, capsys):
    assert run_script(tmp_path, '100MiB') == 2
    assert "run: '--memory' must be at least" in capsys.readouterr().err
