"""Errors of a source leave no folder; odd schemas have batches."""

import json
import os
import shutil
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.relational import shops
from torch_gsample.loader import NeighborLoader
from torch_gsample.memory import resident_memory
from torch_gsample.relational import (
    EntityTask,
    RelationalLoader,
    append_tables,
    convert_tables,
    from_tables,
)
from torch_gsample.relational.convert import memory_of
from torch_gsample.storage import RandomReadSampler

#: Opens a DuckDB database to write it, and waits.
WRITER = """
import duckdb, sys
database = duckdb.connect(sys.argv[1])
print('open', flush=True)
sys.stdin.read()
"""


def database(path, *queries):
    """A DuckDB database made by some queries."""
    with duckdb.connect(str(path)) as connection:
        for query in queries:
            connection.execute(query)
    return path


def tables(**entries):
    return {'tables': entries}


WRONG = {
    'a null key': (
        ['CREATE TABLE a AS SELECT NULL::BIGINT AS k, 1 AS t'],
        tables(a={'key': 'k'}),
        ValueError, r"key \['k'\] of table 'a' must not be null .* in row 0",
    ),
    'a repeated key of two columns': (
        ['CREATE TABLE a AS SELECT 3 AS k, i % 2 AS j FROM range(3) r(i)'],
        tables(a={'key': ['k', 'j']}),
        ValueError, r'must be unique \(got \[3, 0\] in rows 0 and 2\)',
    ),
    'a key of another type': (
        ['CREATE TABLE a AS SELECT 3 AS k',
         "CREATE TABLE b AS SELECT '3' AS a"],
        tables(a={'key': 'k'}, b={'foreign_keys': {'a': 'a'}}),
        TypeError, "column 'a' of table 'b' must have the type of the key",
    ),
    'times of mixed zones': (
        ["CREATE TABLE a AS SELECT unnest(['2024-01-01 00:00:00', "
         "'2024-01-01 00:00:00+02']) AS t"],
        tables(a={'time': 't'}),
        ValueError, "'t' of table 'a' must have a zone in all .* in row 0",
    ),
    'a text that is no time': (
        ["CREATE TABLE a AS SELECT 'next week' AS t"],
        tables(a={'time': 't'}),
        ValueError, "'t' of table 'a' must be a time .*'next week' in row 0",
    ),
    'a time beyond int64': (
        ['CREATE TABLE a AS SELECT 9223372036854775808::HUGEINT AS t'],
        tables(a={'time': 't'}),
        ValueError, "'t' of table 'a' must be in int64 .* in row 0",
    ),
    'keys that dangle': (
        ['CREATE TABLE a AS SELECT 3 AS k', 'CREATE TABLE b AS SELECT 4 AS a'],
        tables(a={'key': 'k'}, b={'foreign_keys': {'a': 'a'}}),
        ValueError, r'b.a must refer to rows \(1 values do not, first \[4\]',
    ),
    'a manifest that lies': (
        ['CREATE TABLE a AS SELECT 3 AS k'],
        tables(a={'key': 'k', 'time': 'born'}),
        ValueError, "table 'a' has no column 'born'",
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', WRONG)
def test_bad_sources_are_named_and_leave_no_folder(tmp_path, name):
    queries, manifest, error, match = WRONG[name]
    path = database(tmp_path / 'a.duckdb', *queries)
    with pytest.raises(error, match=match):
        convert_tables(tmp_path / 'g', path, manifest, dangling='error')
    assert os.listdir(tmp_path) == ['a.duckdb']


def test_a_database_that_another_process_writes_is_locked(tmp_path):
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    command = [sys.executable, '-c', WRITER, str(path)]
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as writer:
        assert writer.stdout.readline() == b'open\n'
        with pytest.raises(OSError, match=r'shop.duckdb.*lock'):
            from_tables(path, shops.MANIFEST)
        with pytest.raises(OSError, match=r'shop.duckdb.*lock'):
            convert_tables(tmp_path / 'g', path, shops.MANIFEST)
        writer.communicate()
    assert os.listdir(tmp_path) == ['shop.duckdb']
    assert from_tables(path, shops.MANIFEST).data['user'].num_nodes == 3


def test_a_database_that_this_process_has_open_is_an_error(tmp_path):
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    with duckdb.connect(str(path)) as connection:
        connection.execute('SELECT 1')
        with pytest.raises(OSError, match=r'shop.duckdb'):
            from_tables(path, shops.MANIFEST)


@pytest.mark.parametrize('appends', [False, True])
def test_a_source_that_changes_meanwhile_changes_nothing(
    tmp_path, monkeypatch, appends
):
    from torch_gsample.relational import append, convert

    manifest = tables(a={'key': 'k', 'time': 't'})
    query = 'CREATE TABLE a AS SELECT {} AS k, 5 AS t, 1.5 AS x'
    path = database(tmp_path / 'a.duckdb', query.format(1))
    folder = tmp_path / 'g'
    if appends:
        convert_tables(folder, path, manifest)
        path = database(tmp_path / 'b.duckdb', query.format(2))
    module = append if appends else convert
    write = module.write_keys

    def then_changed(*args):
        write(*args)
        with path.open('ab') as file:
            file.write(b'x')

    monkeypatch.setattr(module, 'write_keys', then_changed)
    files = sorted(os.listdir(tmp_path))
    call, rest = (
        (append_tables, []) if appends else (convert_tables, [manifest])
    )
    with pytest.raises(RuntimeError, match='was changed while it was read'):
        call(folder, path, *rest)
    assert sorted(os.listdir(tmp_path)) == files
    assert not (folder / 'segment-1').exists()


def test_metadata_of_a_parquet_file_that_lies_is_refused(tmp_path):
    rows = pa.table({'k': [1, 2]})
    for metadata, match in (
        ({'pkey_col': '"id"'}, "table 'a' has no column 'id'"),
        ({'pkey_col': '{'}, "'a' must have JSON in its metadata 'pkey_col'"),
        ({'time_col': '3'}, "'time' of table 'a' must be a name"),
        (
            {'fkey_col_to_pkey_table': '{"k": "b"}'},
            r"'k' of table 'a' must refer to an existing table \(got 'b'\)",
        ),
    ):
        pq.write_table(
            rows.replace_schema_metadata(metadata), tmp_path / 'a.parquet'
        )
        with pytest.raises(ValueError, match=match):
            from_tables(tmp_path)
    # A file that the manifest has and the folder has not.
    (tmp_path / 'manifest.json').write_text(
        json.dumps(tables(a={'file': 'b.parquet'}))
    )
    with pytest.raises(FileNotFoundError, match=r'b\.parquet'):
        from_tables(tmp_path)


@pytest.fixture
def both(tmp_path):
    """Makes tables in memory, and on disk with the last rows appended."""

    def make(manifest, first, *later):
        whole = database(tmp_path / 'w.duckdb', *first, *later)
        memory = from_tables(whole, manifest)
        path = database(tmp_path / '0.duckdb', *first)
        disk = convert_tables(tmp_path / 'g', path, manifest)
        for i, query in enumerate(later, 1):
            new = shutil.copy(path, tmp_path / f'{i}.duckdb')
            with duckdb.connect(str(new)) as connection:
                for table in manifest['tables']:
                    connection.execute(f'DELETE FROM {table}')
                connection.execute(query)
            disk = append_tables(tmp_path / 'g', new)
        return memory, disk

    return make


def rows_of_batches(tables, task, **options):
    """The rows and the edges of each batch of a loader."""
    loader = RelationalLoader(
        tables, task, [-1, -1, -1], batch_size=2, seed=0, check_times=True,
        **options,
    )  # fmt: skip
    return [
        (
            {t: batch[t].n_id.tolist() for t in batch.node_types},
            {t: batch[t].edge_index.tolist() for t in batch.edge_types},
        )
        for batch in loader
    ]


def test_rows_may_refer_to_themselves_and_in_circles(both):
    """0 to itself; 1 and 2 to each other, in their table and by another."""
    manifest = tables(
        a={'key': 'k', 'time': 't', 'foreign_keys': {'up': 'a', 'b': 'b'}},
        b={'key': 'k', 'foreign_keys': {'a': 'a'}},
    )
    memory, disk = both(
        manifest,
        [
            'CREATE TABLE a AS SELECT * FROM (VALUES (0, 1, 0, 7), '
            '(1, 1, 2, 8), (2, 3, 1, NULL)) AS v(k, t, up, b)',
            'CREATE TABLE b AS SELECT * FROM (VALUES (7, 1), (8, 2)) v(k, a)',
        ],
        'INSERT INTO a VALUES (3, 2, 3, 8)',
    )
    up = memory.data['a', 'up', 'a'].edge_index
    assert up.tolist() == [[0, 1, 2, 3], [0, 2, 1, 3]]
    row = torch.arange(4)
    task = EntityTask('a', row, torch.tensor([1, 2, 9, 9]))
    want = rows_of_batches(memory, task)
    assert rows_of_batches(disk, task) == want
    # At 2, row 1 sees neither row 2 nor, by b, what is later.
    assert set(want[0][0]['a']) == {0, 1, 3}
    assert set(want[1][0]['a']) == {0, 1, 2, 3}


def test_rows_of_tables_without_times_are_always_visible(both):
    manifest = tables(
        a={'key': 'k', 'time': 't'},
        b={'key': 'k', 'foreign_keys': {'a': 'a'}},
    )
    memory, disk = both(
        manifest,
        [
            'CREATE TABLE a AS SELECT i AS k, i AS t FROM range(4) r(i)',
            'CREATE TABLE b AS SELECT i AS k, i % 4 AS a FROM range(8) r(i)',
        ],
    )
    row = torch.arange(4)
    for time in (row, torch.full((4,), 100)):
        task = EntityTask('a', row, time)
        want = rows_of_batches(memory, task)
        assert rows_of_batches(disk, task) == want
        for i, (rows, _) in enumerate(want):
            seeds = {2 * i, 2 * i + 1}
            assert {b % 4 for b in rows['b']} == seeds
            assert len(rows['b']) == 4


def test_many_tables_of_one_row_on_disk(tmp_path):
    """A circle of tables: each hop reaches the next one."""
    count = 12
    queries = [
        f'CREATE TABLE t{i} AS SELECT {i} AS k, {(i + 1) % count} AS n'
        for i in range(count)
    ]
    manifest = tables(
        **{
            f't{i}': {'key': 'k', 'foreign_keys': {'n': f't{(i + 1) % count}'}}
            for i in range(count)
        }
    )
    path = database(tmp_path / 'a.duckdb', *queries)
    folder = convert_tables(tmp_path / 'g', path, manifest)
    assert len(folder.graph.num_edges) == 2 * count
    assert set(folder.graph.num_edges.values()) == {1}
    one = torch.zeros(1, dtype=torch.int64)
    task = EntityTask('t3', one, one)
    for of in (folder, from_tables(path, manifest)):
        with pytest.raises(ValueError, match='a table must have times'):
            RelationalLoader(of, task, [1, 1])
    loader = NeighborLoader(
        folder.data,
        input_nodes=('t3', one),
        sampler=RandomReadSampler(folder.graph, [1, 1]),
        batch_size=1,
    )
    batch = next(iter(loader))
    found = {t for t in batch.node_types if batch[t].num_nodes}
    assert found == {'t1', 't2', 't3', 't4', 't5'}


def test_too_little_memory_for_duckdb_is_named(tmp_path):
    path = database(
        tmp_path / 'a.duckdb',
        'CREATE TABLE a AS SELECT i AS k, md5(i::VARCHAR) AS x '
        'FROM range(100000) r(i)',
    )
    with pytest.raises(MemoryError, match="'memory_limit' must suffice for"):
        from_tables(path, tables(a={'key': 'k'}), memory_limit=1 << 20)


def test_process_limit_includes_resident_memory(tmp_path):
    """Buffers get the rest, which must suffice for chunks and DuckDB.

    DuckDB takes up to 1.3 times its limit.
    """
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    options = {'whole_process': True, 'chunk_bytes': 1 << 20}
    has = resident_memory()
    total, duckdb_gets = memory_of('x', has + (1 << 30), 1 << 20, True)
    assert total == duckdb_gets + (6 << 20)
    assert (900 << 20) < 13 * duckdb_gets // 10 + (70 << 20) <= 1 << 30
    assert memory_of('x', 1 << 30, 1 << 20) == (1 << 30, (1 << 30) - (6 << 20))
    with pytest.raises(ValueError, match=r'DuckDB, and \d+ that the process'):
        convert_tables(
            tmp_path / 'g', path, shops.MANIFEST, memory_limit=has, **options
        )
    made = convert_tables(
        tmp_path / 'g', path, shops.MANIFEST, memory_limit=2 * has + (1 << 29),
        **options,
    )  # fmt: skip
    assert made.num_rows('user') == 3
