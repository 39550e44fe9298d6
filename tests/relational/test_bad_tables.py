"""Errors of tables say where, or are counted."""

import copy
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.relational import shops
from torch_gsample.relational import from_tables
from torch_gsample.relational.times import NEVER


def manifest_with(table, **entry):
    out = copy.deepcopy(shops.MANIFEST)
    out['tables'].setdefault(table, {}).update(entry)
    return out


MANIFESTS = {
    'no column': (
        manifest_with('user', key='nam'),
        "table 'user' has no column 'nam'",
    ),
    'no time column': (
        manifest_with('user', time='born'),
        "table 'user' has no column 'born'",
    ),
    'no table': (
        manifest_with('shelf', key='id'),
        "table 'shelf' of the manifest must exist",
    ),
    'no other table': (
        manifest_with('user', foreign_keys={'colour': 'colours'}),
        "'colour' of table 'user' must refer to an existing table",
    ),
    'too few columns': (
        manifest_with('buy', foreign_keys={'shelf': 'item'}),
        r"must refer to the key \['shelf', 'number'\] of 'item'",
    ),
    'a field that is none': (
        manifest_with('user', primary='name'),
        "table 'user' must have a manifest with",
    ),
    'no name': (manifest_with('user', key=3), "'key' of table 'user' must be"),
    'no tables': ({'table': {}}, "must have an object 'tables'"),
    'keys of a wrong form': (
        manifest_with('buy', foreign_keys=['who']),
        "must have 'columns' and 'table'",
    ),
    'a key twice': (
        manifest_with(
            'buy',
            foreign_keys=[
                {'columns': 'who', 'table': 'user'},
                {'columns': ['who'], 'table': 'user'},
            ],
        ),
        "'buy' must not use the name 'buy.who' again",
    ),
    'repeated key': (
        manifest_with('item', key='shelf'),
        r"the key \['shelf'\] of table 'item' must be unique \(got "
        r"\['x'\] in rows 0 and 1\)",
    ),
    'null key': (
        manifest_with('user', key='colour'),
        'must not be null \\(it is in 1 rows, first in row 1\\)',
    ),
    'SQL in a name': (
        manifest_with('user', key='name"; DROP TABLE "user'),
        'has no column',
    ),
}


@pytest.mark.parametrize('name', MANIFESTS)
def test_a_manifest_that_lies_is_refused(tmp_path, name):
    manifest, match = MANIFESTS[name]
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    if 'item' in str(manifest) and name == 'repeated key':
        manifest['tables']['buy'].pop('foreign_keys')
    if name == 'null key':
        manifest['tables']['buy'].pop('foreign_keys')
    with pytest.raises(ValueError, match=match):
        from_tables(path, manifest)


@pytest.mark.parametrize(
    'text', ['{', '[' * 100_000, '"tables"', '{"tables": [1]}', '\xff']
)
def test_a_malformed_manifest_is_refused(tmp_path, text):
    folder = shops.as_parquet(tmp_path / 'shop', None)
    (folder / 'manifest.json').write_text(text, encoding='latin1')
    with pytest.raises(ValueError, match=r'from_tables: .*manifest.json'):
        from_tables(folder)


def test_a_manifest_names_no_file_outside(tmp_path):
    folder = shops.as_parquet(tmp_path / 'shop')
    for file in ('../other.parquet', str(tmp_path / 'x.parquet')):
        with pytest.raises(ValueError, match="of table 'user' must be in"):
            from_tables(folder, manifest_with('user', file=file))


def with_times(path, kind, *values, other=None):
    """A table of times, and maybe another one."""
    with duckdb.connect(str(path)) as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(f'CREATE TABLE a (t {kind})')
        for value in values:
            database.execute(f'INSERT INTO a VALUES ({value})')
        if other is not None:
            database.execute(f'CREATE TABLE b (t {other})')
    tables = {'a': {'time': 't'}}
    if other is not None:
        tables['b'] = {'time': 't'}
    return from_tables(path, {'tables': tables})


TIMES = {
    'text': ('VARCHAR', ["'2024-01-01'", "'soon'"], "'soon' in row 1"),
    'mixed zones': (
        'VARCHAR',
        ["'2024-01-01 00:00:00Z'", "'2024-01-01 00:00:00'"],
        'must have a zone in all rows or in none .* in row 1',
    ),
    'infinite': ('TIMESTAMP', ["'infinity'"], 'must be finite .* in row 0'),
    'infinite text': ('VARCHAR', ["'infinity'"], 'must be a time'),
    'a region': (
        'VARCHAR',
        ["'2024-01-01'", "'2024-01-01 00:00:00 Europe/Berlin'"],
        "in ISO 8601.*Berlin' in row 1",
    ),
    'a word': ('VARCHAR', ["'epoch'"], "in ISO 8601.*'epoch' in row 0"),
    'nanoseconds in a text': (
        'VARCHAR',
        ["'2024-01-01 00:00:00.1234567'"],
        'in whole microseconds .*in row 0',
    ),
    'a far date': (
        'DATE',
        ["'2024-01-01'", "'500000-01-01'"],
        "must be microseconds in int64 .got '500000-01-01' in row 1",
    ),
    'beyond int64': (
        'HUGEINT',
        ['1', '9223372036854775808'],
        "must be in int64 .got '9223372036854775808' in row 1",
    ),
    'nanoseconds': (
        'TIMESTAMP_NS',
        ["'2024-01-01 00:00:00.000000001'"],
        'must be whole microseconds',
    ),
}


@pytest.mark.parametrize('name', TIMES)
def test_bad_times_are_named_with_their_row(tmp_path, name):
    kind, values, match = TIMES[name]
    with pytest.raises(ValueError, match=f"column 't' of table 'a' .*{match}"):
        with_times(tmp_path / 'a.duckdb', kind, *values)


def test_times_that_are_numbers_with_points_are_refused(tmp_path):
    with pytest.raises(
        TypeError, match=r"'t' of table 'a' must hold .*DOUBLE"
    ):
        with_times(tmp_path / 'a.duckdb', 'DOUBLE', '1.5')


@pytest.mark.parametrize('other', ['BIGINT', 'TIMESTAMPTZ'])
def test_times_of_all_tables_are_of_one_kind(tmp_path, other):
    with pytest.raises(
        ValueError, match=r"must be of one kind: .* in \['a'\]"
    ):
        with_times(
            tmp_path / 'a.duckdb', 'TIMESTAMP', "'2024-01-01'", other=other
        )


def test_texts_with_zones_are_instants(tmp_path):
    values = "'2024-01-01T02:00:00+02:00'", "'2024-01-02T00:00:00Z'"
    found = with_times(tmp_path / 'a.duckdb', 'VARCHAR', *values)
    want = [shops.FIRST, shops.FIRST + shops.DAY]
    assert found.data['a'].time.tolist() == want
    assert found.time_kind == 'zoned'


def test_a_row_without_time_is_never_seen_and_counted(tmp_path):
    values = "'2024-01-01'", 'NULL'
    found = with_times(tmp_path / 'a.duckdb', 'DATE', *values)
    assert found.data['a'].time.tolist() == [shops.FIRST, NEVER]
    assert found.report['a']['null_times'] == 1


def test_keys_of_other_types_are_refused(tmp_path):
    path = shops.as_duckdb(tmp_path / 'shop.duckdb')
    manifest = manifest_with('user', key='age')
    manifest['tables']['user'].pop('key')
    manifest = manifest_with('item', key='rank')
    with duckdb.connect(str(path)) as database:
        database.execute('UPDATE item SET rank = 7 WHERE rank IS NULL')
    manifest['tables']['buy']['foreign_keys'] = {'who': 'item'}
    with pytest.raises(TypeError, match="'who' of table 'buy' must have the"):
        from_tables(path, manifest)


def test_files_of_a_table_have_one_type(tmp_path):
    for name, values in (('one', [1, 2]), ('two', ['3'])):
        pq.write_table(pa.table({'k': values}), tmp_path / f'{name}.parquet')
    files = [tmp_path / 'one.parquet', tmp_path / 'two.parquet']
    with pytest.raises(TypeError, match="column 'k' of table 'a' must have"):
        from_tables({'a': files}, {'tables': {'a': {'key': 'k'}}})
    pq.write_table(pa.table({'j': [1]}), files[1])
    with pytest.raises(ValueError, match='must have the same columns'):
        from_tables({'a': files}, {'tables': {'a': {'key': 'k'}}})


def test_sqlite_values_of_another_type_are_named_with_their_row(tmp_path):
    path = shops.as_sqlite(tmp_path / 'shop.sqlite')
    database = sqlite3.connect(path)
    database.execute("UPDATE user SET age = 'old' WHERE name = 'cat'")
    database.commit()
    database.close()
    with pytest.raises(
        TypeError,
        match=r"'age' of table 'user' must hold int64 .*'old' in row 2",
    ):
        from_tables(path)


def test_a_database_that_is_written_is_an_error(tmp_path):
    path = shops.as_sqlite(tmp_path / 'shop.sqlite')
    writer = sqlite3.connect(path)
    writer.execute('BEGIN EXCLUSIVE')
    with pytest.raises(OSError, match=r'shop.sqlite: .*locked'):
        from_tables(path)
    writer.close()


def test_a_file_that_changes_meanwhile_is_an_error(tmp_path, monkeypatch):
    folder = shops.as_parquet(tmp_path / 'shop')
    from torch_gsample.relational import tables

    read = tables._read

    def then_changed(source, most):
        out = read(source, most)
        with (folder / 'user.parquet').open('ab') as file:
            file.write(b'x')
        return out

    monkeypatch.setattr(tables, '_read', then_changed)
    with pytest.raises(RuntimeError, match='was changed while it was read'):
        from_tables(folder)


@pytest.mark.parametrize(
    ('name', 'text'),
    [('a.txt', b'no database at all'), ('a.duckdb', b'xxxxxxxxDUCKxxxx' * 9)],
)
def test_rejects_files_that_are_not_databases(tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    with pytest.raises((ValueError, OSError), match='from_tables'):
        from_tables(tmp_path / name)


def test_a_malformed_parquet_file_is_an_error(tmp_path):
    (tmp_path / 'a.parquet').write_bytes(b'PAR1 and no more')
    with pytest.raises((ValueError, OSError), match=r'from_tables.*a.parquet'):
        from_tables(tmp_path)


def test_tables_without_rows_times_or_keys(tmp_path):
    with duckdb.connect(str(tmp_path / 'a.duckdb')) as database:
        database.execute('CREATE TABLE a (k BIGINT, t DATE, x DOUBLE)')
        database.execute('CREATE TABLE b (a BIGINT)')
    tables = {
        'a': {'key': 'k', 'time': 't'},
        'b': {'foreign_keys': {'a': 'a'}},
    }
    found = from_tables(tmp_path / 'a.duckdb', {'tables': tables})
    assert found.data['b', 'a', 'a'].edge_index.shape == (2, 0)
    assert found.data['a'].num.shape == (0, 1)
    with pytest.raises(ValueError, match="table 'b' must have a key"):
        found.keys_of('b', torch.tensor([]).long())


def test_many_tables_of_one_row(tmp_path):
    with duckdb.connect(str(tmp_path / 'a.duckdb')) as database:
        for i in range(50):
            database.execute(
                f'CREATE TABLE t{i} AS SELECT {i} AS k, {(i + 1) % 50} AS n'
            )
    tables = {
        f't{i}': {'key': 'k', 'foreign_keys': {'n': f't{(i + 1) % 50}'}}
        for i in range(50)
    }
    found = from_tables(tmp_path / 'a.duckdb', {'tables': tables})
    assert len(found.data.edge_types) == 100
    assert found.data.num_edges == 100


@pytest.mark.parametrize(
    ('arguments', 'error', 'match'),
    [
        ({'tables': 3}, TypeError, "'tables' must be a path"),
        ({'dangling': 'drop'}, ValueError, "'dangling' must be 'report'"),
        ({'memory_limit': 'much'}, ValueError, "'memory_limit' must be a num"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, error, match):
    arguments = {'tables': tmp_path, **arguments}
    with pytest.raises(error, match=match):
        from_tables(**arguments)
