"""Feature files: rows that are read are rows that were written."""

import math
import multiprocessing
import os
import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.storage.disk import in_a_fork
from torch_gsample import quantize_rows
from torch_gsample.ops import gather_rows
from torch_gsample.storage import FeatureFile
from torch_gsample.storage.crc32c import BLOCK, block_checksums, crc32c

DTYPES = torch.float32, torch.float16, torch.bfloat16, torch.int8
#: Rows of less than a block, that lie across blocks, and of several blocks.
SHAPES = (700, 100), (7, 3), (300, 2, 5), (900,), (3, 5_000), (1, 1)


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def as_stored(x, dtype):
    """The rows read from a file of this dtype: plain loops."""
    if dtype != torch.int8:
        return x.to(dtype)
    values, scale = quantize_rows(x)
    rows = [v.float() * s for v, s in zip(values, scale, strict=True)]
    return torch.stack(rows)


@pytest.mark.parametrize('dtype', DTYPES, ids=str)
@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_rows_come_back_in_the_order_of_the_index(tmp_path, dtype, shape):
    x = random(*shape)
    path = FeatureFile.write(tmp_path / 'x', x, dtype=dtype).path
    index = torch.randint(len(x), (500,), dtype=torch.int64)
    want = as_stored(x, dtype)[index]
    for engine in ('io_uring', 'threads'):
        for direct in (False, True):
            file = FeatureFile(path, engine=engine, direct=direct)
            assert file.shape == x.shape
            for gap in (0, 3):
                out = file.read(index, gap)
                assert out.dtype == want.dtype == file.dtype
                assert torch.equal(out, want)
                assert out.is_contiguous()
    file.verify()


def test_integers_come_back_as_they_are(tmp_path):
    x = torch.randint(-(1 << 63), (1 << 63) - 1, (700, 3))
    file = FeatureFile.write(tmp_path / 'x', x)
    index = torch.tensor([699, 0, 5, 5])
    assert file.dtype == torch.int64
    assert torch.equal(file[index], x[index])
    file.verify()


def test_int8_rows_are_those_of_gather_rows(tmp_path):
    values, scale = quantize_rows(random(50, 24))
    file = FeatureFile.write(tmp_path / 'x', (values, scale))
    index = torch.tensor([3, 3, 49, 0])
    want = gather_rows(values, index, scale, widen=True)
    assert torch.equal(file[index], want)
    assert file.meta.dtype == torch.int8


def test_many_groups_of_blocks_are_read_alike(tmp_path, monkeypatch):
    """Staging memory of two blocks and a row in each half."""
    monkeypatch.setattr('torch_gsample.storage.row_reads.STAGING', 1)
    x = random(3_000, 100)
    file = FeatureFile.write(tmp_path / 'x', x)
    index = torch.randint(3_000, (2_000,))
    assert torch.equal(file[index], x[index])
    assert file._reader().staging.size == 6 * BLOCK
    assert torch.equal(file.read(index, gap=50), x[index])


def test_requests_of_neighbours_are_merged(tmp_path):
    x = random(4_096, 256)  # a row is 1 KiB, a block has four
    file = FeatureFile.write(tmp_path / 'x', x)
    file[torch.tensor([9, 0, 1, 4, 8, 4_000])]
    stats = file.stats()
    assert (stats['rows'], stats['requests']) == (6, 2)
    assert stats['bytes_read'] == 4 * BLOCK
    file.read(torch.tensor([0, 12]), gap=2)
    assert file.stats()['requests'] == 3
    file.read(torch.tensor([0, 12]), gap=1)
    assert file.stats()['requests'] == 5


def test_files_without_rows_and_slices(tmp_path):
    none = FeatureFile.write(tmp_path / 'none', torch.empty(0, 4))
    none.verify()
    assert none[[]].shape == none[:].shape == (0, 4)
    x = random(20, 3)
    file = FeatureFile.write(tmp_path / 'x', x)
    assert torch.equal(file[:], x)
    assert torch.equal(file[3:15:4], x[3:15:4])
    assert torch.equal(file[5], x[5])
    assert torch.equal(file[np.array([5, 1], np.int32)], x[[5, 1]])
    assert len(file) == 20


def sources(folder, x):
    """The same rows in every form that is read."""
    array = x.numpy()
    np.save(folder / 'x.npy', array)
    np.save(folder / 'a.npy', array[:30])
    np.save(folder / 'b.npy', array[30:])
    rows = pa.FixedSizeListArray.from_arrays(array.reshape(-1), x.shape[1])
    lists = pa.table({'x': rows, 'id': range(len(x))})
    wide = pa.table({f'x{i}': array[:, i] for i in range(x.shape[1])})
    pq.write_table(lists, folder / 'lists.parquet', row_group_size=7)
    pq.write_table(wide, folder / 'wide.parquet')
    with (
        pa.OSFile(str(folder / 'x.arrow'), 'wb') as sink,
        pa.ipc.new_file(sink, lists.schema) as writer,
    ):
        writer.write_table(lists, 9)
    ragged = pa.array(array.tolist(), pa.list_(pa.float32()))
    return {
        'tensor': (x, None),
        'array': (array, None),
        'npy': (folder / 'x.npy', None),
        'npy parts': ([folder / 'a.npy', folder / 'b.npy'], None),
        'parquet of lists': (str(folder / 'lists.parquet'), ['x']),
        'parquet of columns': (folder / 'wide.parquet', None),
        'arrow file': (folder / 'x.arrow', ['x']),
        'arrow table': (lists, ['x']),
        'arrow reader': (wide.to_reader(8), None),
        'lists of any length': (pa.table({'x': ragged}), None),
        'tensors': ((part for part in x.split(11)), None),
    }


def test_all_sources_give_one_file(tmp_path):
    x = random(64, 6)
    for i, (name, (data, columns)) in enumerate(sources(tmp_path, x).items()):
        file = FeatureFile.write(tmp_path / f'{i}', data, columns=columns)
        assert torch.equal(file[:], x), name
        file.verify()


def test_pieces_are_quantized_as_the_whole(tmp_path):
    x = random(3_000, 100)
    np.save(tmp_path / 'x.npy', x.double().numpy())
    out = [
        FeatureFile.write(
            tmp_path / f'{i}', data, dtype=torch.int8, memory_limit=1 << 20
        )[:]
        for i, data in enumerate((x, tmp_path / 'x.npy', [*x.split(7)]))
    ]
    assert all(torch.equal(o, as_stored(x, torch.int8)) for o in out)


def test_memory_of_a_writer_is_bounded(tmp_path):
    """64 MiB are written in about 8 MiB."""
    np.save(tmp_path / 'x.npy', np.zeros((1 << 18, 64), np.float32))

    def peak():
        text = Path('/proc/self/status').read_text()
        return int(re.search(r'VmHWM:\s+(\d+)', text)[1]) << 10

    def write():
        Path('/proc/self/clear_refs').write_text('5')
        before = peak()
        path = tmp_path / 'x'
        FeatureFile.write(path, tmp_path / 'x.npy', memory_limit=8 << 20)
        assert peak() - before < 24 << 20

    assert in_a_fork(write) == 0


def test_checksums_are_crc32c():
    assert crc32c(b'123456789') == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    data = np.random.default_rng(0).integers(0, 256, 10_001, np.uint8)
    for size in (0, 1, 7, 8, 9, 10_001):
        want = crc32c(data[:size], tables=True)
        assert crc32c(data[:size]) == want
        half = size // 2
        assert crc32c(data[half:size], crc32c(data[:half])) == want


def test_checksums_tell_blocks_and_files_apart():
    data = np.zeros(2 * BLOCK, np.uint8)
    first, second = block_checksums(data, 0, 5)
    assert first != second
    assert block_checksums(data, 1, 5)[0] == second
    assert block_checksums(data, 0, 6)[0] != first


def test_threads_forks_and_spawned_processes_read_one_file(tmp_path):
    x = random(2_000, 60)
    file = FeatureFile.write(tmp_path / 'x', x)

    def check(seed=0):
        index = torch.randint(2_000, (800,))
        assert torch.equal(file[index], x[index])

    check()
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(check()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert in_a_fork(check) == 0
    for thread in threads:
        thread.join()
    assert len(results) == 4
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        assert torch.equal(pool.apply(file.read, (torch.tensor([7]),)), x[7:8])


def test_a_pickled_file_that_was_replaced_is_refused(tmp_path):
    file = FeatureFile.write(tmp_path / 'x', random(5, 5))
    text = pickle.dumps(file)
    pickle.loads(text)
    os.remove(file.path)
    FeatureFile.write(tmp_path / 'x', random(5, 5))
    with pytest.raises(ValueError, match='x, offset 0: it is another file'):
        pickle.loads(text)


INDEX_ERRORS = {
    "'index' must be in [0, 10), the rows of": (IndexError, [3, 10]),
    'x (got -1)': (IndexError, [-1, 4]),
    "'index' must hold integers (got float32)": (TypeError, [0.5]),
    "'index' must hold integers (got bool)": (TypeError, [True]),
    "'index' must have one dimension (got shape [1, 1])": (ValueError, [[1]]),
}


@pytest.mark.parametrize('message', INDEX_ERRORS)
def test_wrong_rows_are_named(tmp_path, message):
    file = FeatureFile.write(tmp_path / 'x', random(10, 2))
    kind, index = INDEX_ERRORS[message]
    with pytest.raises(kind, match=re.escape(message)):
        file[torch.tensor(index)]


X = torch.ones(4, 2)
NULLS = pa.table({'a': pa.array([1.0, None])})
WRITE_ERRORS = {
    "'dtype' must be one of": {'dtype': torch.int32},
    "'memory_limit' must be at least 1048576 (got 5)": {'memory_limit': 5},
    "'columns' is for Parquet and Arrow (got Tensor)": {'columns': ['x']},
    "'data' must be a tensor, (int8 values, scales)": {'data': 5},
    "'dtype' must be given for rows of torch.int32": {'data': X.int()},
    "'dtype' must be torch.int64 only for rows of torch.int64": {
        'data': X,
        'dtype': torch.int64,
    },
    "'dtype' must be given for rows of torch.float64": {'data': X.double()},
    "'data' must have at least one dimension": {'data': X[0, 0]},
    "'data' must have at least one piece (got none)": {'data': iter([])},
    'a row must have at least one element and at most 8': {'data': X[:, :0]},
    'at most 8 dimensions (got [1, 1': {'data': X.view(8, *[1] * 9)},
    "a tuple of 'data' must be int8 values and float32": {'data': (X, X)},
    "scales of 'data' must be float32 [4] (got": {
        'data': (X.char(), torch.ones(3))
    },
    "'dtype' must be torch.int8 for values": {
        'data': (X.char(), torch.ones(4)),
        'dtype': torch.float16,
    },
    'rows must have the shape [2] of the first one (got [1])': {
        'data': [X, X[:, :1]]
    },
    "'data' must have tensors or arrays of numbers": {'data': [{'x'}]},
    "'input' must be finite in float32": {
        'data': X / 0,
        'dtype': torch.int8,
    },
    'files must be of one kind of': {'data': __file__},
    "No such file or directory: 'no.npy'": {'data': 'no.npy'},
    "column 'a' of data must have no empty fields (it has 1)": {'data': NULLS},
    "data must have the columns ['b'] (it has ['a'])": {
        'data': NULLS,
        'columns': ['b'],
    },
    "column 's' of data must hold numbers (got string)": {
        'data': pa.table({'s': ['x']})
    },
    "lists of column 'l' of data must have one length": {
        'data': pa.table({'l': [[1.0], [1.0, 2.0, 3.0]]})
    },
    'data must have one column of lists, or columns of': {
        'data': pa.table({'l': [[1.0, 2.0]], 'm': [1.0]})
    },
}


@pytest.mark.parametrize('message', WRITE_ERRORS)
def test_arguments_of_write_are_checked(tmp_path, message):
    options = {'data': X, **WRITE_ERRORS[message]}
    kinds = ValueError, TypeError, FileNotFoundError
    with pytest.raises(kinds, match=re.escape(message)):
        FeatureFile.write(tmp_path / 'x', **options)
    assert os.listdir(tmp_path) == []


ARRAYS = {
    'Array can': np.array([print, 1], object),
    'must hold rows in C order': np.asfortranarray(np.ones((4, 3))),
    'must hold numbers in native order (got >f4)': np.ones((2, 2), '>f4'),
}


@pytest.mark.parametrize('message', ARRAYS)
def test_arrays_that_cannot_be_read_are_named(tmp_path, message):
    np.save(tmp_path / 'a.npy', ARRAYS[message])
    with pytest.raises(
        (ValueError, TypeError), match=r'a\.npy.*' + re.escape(message)
    ):
        FeatureFile.write(tmp_path / 'x', tmp_path / 'a.npy')
    assert os.listdir(tmp_path) == ['a.npy']


@pytest.mark.parametrize('name', ['verify', 'engine'])
def test_options_of_a_file_are_checked(tmp_path, name):
    path = FeatureFile.write(tmp_path / 'x', X).path
    with pytest.raises(ValueError, match=f"FeatureFile: '{name}' must be one"):
        FeatureFile(path, **{name: 'maybe'})


@pytest.mark.parametrize('count', [0, 1, 2])
def test_few_rows_of_int8_are_decoded(tmp_path, count):
    """Their bytes, 25, are not a multiple of those of a scale."""
    x = torch.arange(210.0).view(10, 21)
    file = FeatureFile.write(tmp_path / 'x', x, dtype=torch.int8)
    rows = file[torch.arange(count)]
    assert torch.equal(rows, file[torch.arange(10)][:count])


@pytest.mark.parametrize('step', [-1, -3, 2])
def test_slices_may_have_any_step(tmp_path, step):
    rows = torch.arange(40.0).view(10, 4)
    file = FeatureFile.write(tmp_path / 'x', rows)
    assert torch.equal(file[::step], rows[torch.arange(10).tolist()[::step]])
    assert torch.equal(file[8:1:step], rows[list(range(10))[8:1:step]])


def test_a_value_that_a_narrow_dtype_makes_infinite_is_named(tmp_path):
    rows = torch.zeros(9, 2)
    rows[7, 1] = 1e6
    with pytest.raises(
        ValueError, match=r'finite in torch.float16 .got 1000000.0 in row 7'
    ):
        FeatureFile.write(
            tmp_path / 'x', iter(rows.split(4)), dtype=torch.float16
        )
    assert not [*tmp_path.iterdir()]
    rows[7, 1] = math.inf  # as it was
    file = FeatureFile.write(tmp_path / 'y', rows, dtype=torch.float16)
    assert torch.equal(file[:].float(), rows)
