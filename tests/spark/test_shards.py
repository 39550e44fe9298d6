"""Packed batches are read as they were written, or refused."""

import ast
import inspect
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

from torch_gsample.spark import (
    SampledParquetLoader,
    parquet_loader,
    shard_files,
)
from torch_gsample.spark.shard_files import (
    PackedBatches,
    Shard,
    file_system,
    write_index,
)
from torch_gsample.storage.format import seal

FACTS = {
    'nodes': [None],
    'edges': [None],
    'ends': [[0, 0]],
    'hops': 1,
    'disjoint': False,
    'timed': False,
    'input_type': 0,
    'num_seeds': 7,
    'batch_size': 1,
    'widths': {},
}


def row(number, **changes):
    columns = {
        'node_0': [[0, 1]],
        'num_nodes_0': [[1, 1]],
        'row_0': [[1]],
        'col_0': [[0]],
        'edge_0': [[7]],
        'num_edges_0': [[1]],
        'input_id': [[number]],
        **changes,
    }
    return pa.table(
        {k: pa.array(v, pa.list_(pa.int64())) for k, v in columns.items()}
    )


def write(path, sizes=(2, 3, 2), changes=None, **facts):
    """Writes shards of some batches each; one batch has changes."""
    system, root = file_system(path)
    system.makedirs(root, exist_ok=True)
    shards, number = [], 0
    for size in sizes:
        shard = Shard(number)
        for _ in range(size):
            own = changes if changes and number == sum(sizes) - 1 else {}
            shard.add(row(number, **own))
            number += 1
        shards.append(shard.write(system, root))
    write_index(system, root, {**FACTS, 'num_seeds': number, **facts}, shards)
    return str(path)


def ids(batches):
    return [int(batch.input_id) for batch in batches]


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / 'sample')


@pytest.mark.parametrize('where', ['memory://shards/a', 'file://'])
def test_other_file_systems_are_read(tmp_path, where):
    where = where + str(tmp_path / 'a') if where == 'file://' else where
    write(where)
    assert ids(SampledParquetLoader(where)) == [*range(7)]
    assert ids(SampledParquetLoader(where, rank=1, world_size=2)) == [1, 3, 5]


def test_folders_that_are_not_complete_are_refused(tmp_path, path):
    with pytest.raises(FileNotFoundError, match=r"has no 'index\.json'"):
        SampledParquetLoader(str(tmp_path / 'none'))
    (tmp_path / 'sample' / 'index.json').unlink()
    with pytest.raises(FileNotFoundError, match='is not a complete folder'):
        SampledParquetLoader(path)


def test_a_loader_waits_for_an_epoch_that_is_sampled(tmp_path, monkeypatch):
    """The clock goes by the seconds that the loader sleeps."""
    now, events = [100.0], {3: lambda: write(tmp_path / 'epoch-1', [4])}

    def sleep(seconds):
        now[0] += seconds
        events.pop(int(now[0]) - 100, int)()

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(parquet_loader, 'time', clock)
    (tmp_path / 'run.json').touch()
    events[2] = lambda: write(tmp_path / 'epoch-0', [4])
    loader = SampledParquetLoader(str(tmp_path), wait=9)
    assert now == [102]
    assert ids(loader) == [*range(4)]
    loader.set_epoch(1)
    assert ids(loader) == [*range(4)]
    assert now == [103]
    loader.set_epoch(2)
    with pytest.raises(FileNotFoundError, match=r'epoch-2.*not a complete'):
        ids(loader)
    assert now == [112]


@pytest.mark.parametrize(
    'changes',
    [
        {'node_0': [[0, None]]},
        {'num_nodes_0': [[1, 2]]},
        {'num_edges_0': [[2]]},
        {'input_id': [[1, 1]]},
        {'row_0': [[2]]},
        {'col_0': [[-1]]},
        {'row_0': [[0, 1]]},
        {'edge_0': [[]]},
        {'num_nodes_0': [[1]]},
    ],
)
def test_damaged_batches_are_refused(tmp_path, changes):
    path = write(tmp_path, changes=changes)
    with pytest.raises(ValueError, match=r'batch 6 in .* is damaged'):
        list(SampledParquetLoader(path))


def test_each_damaged_byte_is_found(tmp_path, path):
    """Of a row group when it is read, of a footer by all its batches."""
    file = min((tmp_path / 'sample').glob('*.parquet'))
    data = file.read_bytes()
    first, second, footer = PackedBatches(path).shards[0]['bounds'][:3]
    for at, bad in ((first, {0}), (second + 9, {1}), (footer + 5, {0, 1})):
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        loader = SampledParquetLoader(path)
        for batch in range(3):
            if batch in bad:
                with pytest.raises(ValueError, match=r'checksum.*is damaged'):
                    loader[0, batch]
            else:
                assert ids([loader[0, batch]]) == [batch]
    file.write_bytes(data[: footer - 1])
    with pytest.raises(ValueError, match=r'damaged|cannot be read'):
        SampledParquetLoader(path)[0, 1]
    file.unlink()
    with pytest.raises(ValueError, match='cannot be read'):
        SampledParquetLoader(path)[0, 1]


def hostile(fields, *keys, value):
    for key in keys[:-1]:
        fields = fields[key]
    fields[keys[-1]] = value


@pytest.mark.parametrize(
    ('keys', 'value', 'words'),
    [
        (('format',), 'other', "'format' and 'version' must be"),
        (('version',), 2, "'format' and 'version' must be"),
        (('facts', 'num_seeds'), 2**60, f'{2**60} batches .got 7'),
        (('facts', 'batch_size'), 0, 'ZeroDivisionError'),
        (('facts',), {}, "KeyError.*'num_seeds'"),
        (('facts',), 3, 'a field is missing'),
        (('shards',), [], '7 batches .got 0'),
        (('shards', 1, 'first'), 3, 'batch 2 must be the next one'),
        (('shards', 0, 'file'), '../x', 'not a file name'),
        (('shards', 0, 'bounds', 0), -4, 'must be numbers'),
        (('shards', 0, 'bounds', 0), 1 << 40, "'bounds' must ascend"),
        (('shards', 0, 'checksums'), [1], "'bounds' must ascend"),
    ],
)
def test_an_index_is_not_believed(tmp_path, path, keys, value, words):
    file = tmp_path / 'sample' / 'index.json'
    fields = json.loads(file.read_text())
    del fields['checksum']
    hostile(fields, *keys, value=value)
    file.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match='its checksum is wrong'):
        SampledParquetLoader(path)
    file.write_text(seal(fields))
    with pytest.raises(ValueError, match=words):
        SampledParquetLoader(path)


def test_a_loader_goes_on_after_the_last_batch(path):
    def make(**options):
        options = {'shuffle': True, 'seed': 4} | options
        return SampledParquetLoader(path, **options)

    loader = make()
    want = ids(loader), ids(loader)
    assert sorted(want[0]) == [*range(7)]
    assert want[0] != want[1]
    loader = make(num_workers=2)
    list(loader)
    iterator = iter(loader)
    _ = [next(iterator) for _ in range(3)]
    state = loader.state_dict()
    del iterator
    for options in ({}, {'num_workers': 2}):
        again = make(**options)
        again.load_state_dict(state)
        assert ids(again) == want[1][3:]
        assert ids([again[0, 5]]) == want[0][5:6]
    for rank in range(2):
        share = make(rank=rank, world_size=2)
        assert ids(share) == want[0][rank::2]
        share.load_state_dict(state)
        assert ids(share) == want[1][3 + rank :: 2]
    with pytest.raises(ValueError, match=r'same seed, here 5 .got 4'):
        make(seed=5).load_state_dict(state)
    with pytest.raises(ValueError, match=r'arguments.window, here 1 .got 4'):
        make(window=1).load_state_dict(state)


def test_files_are_shuffled_and_batches_in_a_window(tmp_path):
    path = write(tmp_path, sizes=[4] * 6)
    packed = PackedBatches(path)
    orders = [packed.order(seed, 0, 2) for seed in range(600)]
    firsts, pairs = [0] * 24, 0
    for order in orders:
        assert sorted(order) == [*range(24)]
        for at in range(0, 24, 8):  # a window has two files
            assert len({int(b) // 4 for b in order[at : at + 8]}) == 2
        firsts[order[0]] += 1
        pairs += order[1] // 4 == order[0] // 4
    # Chi-square of 23 degrees of freedom, at p = 0.001.
    assert sum((n - 25) ** 2 / 25 for n in firsts) < 49.7
    assert 200 < pairs < 320  # 3 of 7 in the same file: 257
    assert [*packed.order(1, 0, 2)] != [*packed.order(1, 1, 2)]


def test_batches_are_shared_out_over_ranks(path):
    def of(**options):
        return ids(SampledParquetLoader(path, **options))

    assert of() == of(num_workers=2) == [*range(7)]
    assert of(rank=8, world_size=9) == []
    assert of(rank=2, world_size=3, drop_last=True) == [2, 5]
    with pytest.raises(ValueError, match=r"'rank' must be in .0, 2. .got 2."):
        of(rank=2, world_size=2)
    with pytest.raises(ValueError, match="'window' must be at least 1"):
        of(window=0)
    with pytest.raises(ValueError, match="'wait' must not be negative"):
        of(wait=-1)
    for name, value in (
        ('path', None),
        ('transform', 3),
        ('drop_last', 1),
        ('seed', '3'),
        ('wait', '3'),
    ):
        options = {'path': path, name: value}
        with pytest.raises(TypeError, match=f"Loader: '{name}' must be"):
            SampledParquetLoader(**options)
    for batch in (-1, 7):
        with pytest.raises(
            IndexError, match=r"'sampler' .*\[0, 7\).*" f'{batch}'
        ):
            of(sampler=[0, batch])


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    system, root = file_system(tmp_path / 'a')
    monkeypatch.setattr(type(system), 'mv', lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shard_files.put(system, root, b'data')
    assert [*tmp_path.iterdir()] == []


def test_batches_are_read_without_spark():
    names = set()
    for module in (parquet_loader, shard_files):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                names.add(node.module)
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    own = {n for n in names if n.startswith(('pyspark', 'torch_gsample.'))}
    assert {n for n in own if 'spark' in n} == {
        'torch_gsample.spark.shard_files'
    }
