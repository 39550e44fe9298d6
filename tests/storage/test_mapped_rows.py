"""Rows of arrays in files are those of the arrays."""

import os
import pickle

import numpy as np
import pytest
import torch

from tests.storage.test_feature_store import joined, make
from tests.storage.test_read_packed import loader_of
from torch_gsample.storage import DiskFeatureStore
from torch_gsample.storage.mapped_rows import MappedRows

DTYPES = np.float32, np.float64, np.int16, np.uint8, np.bool_


def mapped(folder, array, mode='r'):
    np.save(folder / 'x.npy', array)
    return np.load(folder / 'x.npy', mode)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(), (1,), (7,), (3, 5)])
def test_rows_are_those_of_the_array(tmp_path, dtype, shape):
    array = np.random.default_rng(0).integers(0, 99, (500, *shape))
    array = array.astype(dtype)
    whole = mapped(tmp_path, array)
    for part in (slice(None), slice(3, 400), slice(499, None)):
        rows = MappedRows(whole[part])
        want, size = torch.from_numpy(array[part]), len(array[part])
        for count in (0, 1, 300):
            index = torch.randint(0, size, (count,))
            assert torch.equal(rows[index], want[index])
        assert torch.equal(rows[:], want)
        assert torch.equal(pickle.loads(pickle.dumps(rows))[:], want)
        scanned = [part.copy() for _, part in rows.scan(1_000)]
        found = rows.decode(torch.from_numpy(np.concatenate(scanned)))
        assert torch.equal(found, want)


def test_arrays_that_are_no_files_are_tensors(tmp_path):
    whole = mapped(tmp_path, np.ones((5, 4)), 'c')
    for array in (np.ones((5, 4)), whole, whole.T):
        store = DiskFeatureStore({'x': array})
        assert store.files == {}
        assert torch.equal(
            store[None, 'x', None], torch.ones(array.shape).double()
        )


def test_wrong_rows_and_files_are_named(tmp_path):
    rows = MappedRows(mapped(tmp_path, np.ones((5, 4))))
    for wrong in (-1, 5):
        with pytest.raises(
            IndexError, match=rf'\[0, 5\).*x.npy \(got {wrong}'
        ):
            rows[[0, wrong]]
    os.truncate(tmp_path / 'x.npy', 200)
    with pytest.raises(OSError, match=r'file ends too early.*offset 256') as e:
        rows[[4]]
    assert e.value.filename == str(tmp_path / 'x.npy')
    assert not MappedRows.takes(np.memmap(tmp_path / 'x.npy', 'u1', 'r')[::2])


@pytest.mark.parametrize('kind', ['single', 'window', 'packed'])
def test_batches_are_those_of_features_in_memory(tmp_path, kind):
    data, (store, graph), _ = make('homogeneous', tmp_path)
    want = joined(loader_of((store, graph)))
    np.save(tmp_path / 'x.npy', data.x.numpy())
    store[None, 'x', None] = tmp_path / 'x.npy'
    assert isinstance(store.files[None, 'x'], MappedRows)
    store.plan_reads(4 << 20, plan=kind, scratch=tmp_path, max_batches=4)
    assert joined(loader_of((store, graph))) == want
