"""Columns are copied whole, of any length and dtype, also the last ones."""

import numpy as np
import pytest
import torch

from torch_gsample.storage.look_up import copy_columns
from torch_gsample.storage.spill import Folder
from torch_gsample.storage.spill_array import SpillArray


@pytest.mark.parametrize('limit', [0, 1 << 30], ids=['disk', 'memory'])
@pytest.mark.parametrize('row_type', [torch.int32, torch.int64])
@pytest.mark.parametrize('edge_type', [torch.int32, torch.int64])
def test_columns_are_copied(tmp_path, monkeypatch, limit, row_type, edge_type):
    monkeypatch.setattr('torch_gsample.storage.look_up._COLUMNS', 7)
    lengths = [0, 3, 8, 9, 0, 17, 40, 1, 5, 2]
    parts = np.split(np.arange(100, 185), np.cumsum(lengths)[:-1])
    folder = Folder(tmp_path, limit)
    indptr = torch.tensor([0, *np.cumsum(lengths)])
    folder.write('indptr', [indptr])
    folder.write('row', [torch.arange(100, 185).to(row_type)])
    folder.write('edge', [-torch.arange(100, 185).to(edge_type)])
    arrays = [SpillArray(folder.arrays[n]) for n in ('indptr', 'row', 'edge')]
    place = np.random.default_rng(0).integers(0, 10, 50)
    offset, row, edge = copy_columns(*arrays, place)
    want = np.concatenate([parts[i] for i in place])
    assert offset.diff().tolist() == [lengths[i] for i in place]
    assert (row.tolist(), edge.tolist()) == (want.tolist(), (-want).tolist())
    folder.remove()


def test_malformed_columns_are_not_copied(tmp_path):
    folder = Folder(tmp_path, 1 << 20)
    for name, values in (
        ('indptr', [0, 2, 1, 9]),
        ('row', [0, 0, 0]),
        ('edge', [0, 0, 0]),
    ):
        folder.write(name, [torch.tensor(values)])
    arrays = [SpillArray(folder.arrays[n]) for n in ('indptr', 'row', 'edge')]
    copy_columns(*arrays, np.array([0]))
    for column in (1, 2):
        with pytest.raises(AssertionError, match='malformed'):
            copy_columns(*arrays, np.array([0, column]))
    folder.remove()
