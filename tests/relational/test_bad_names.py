"""Names and types that tables may have, or that are refused."""

import json
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from torch_gsample.relational import convert_tables, from_tables

BOTH = {
    'tables': {'a': {'key': 'k'}, 'b': {'foreign_keys': {'a': 'a'}}},
}


def database(path, *queries):
    """A DuckDB database made by some queries."""
    with duckdb.connect(str(path)) as connection:
        for query in queries:
            connection.execute(query)
    return path


def sqlite(path, script):
    """An SQLite database made by a script."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def refused(tmp_path, tables, manifest, error, match):
    """Checks that both ways to read tables raise an error."""
    with pytest.raises(error, match=match):
        from_tables(tables, manifest)
    with pytest.raises(error, match=match):
        convert_tables(tmp_path / 'g', tables, manifest)
    assert not (tmp_path / 'g').exists()


TYPES = {
    'a number and a date': ('1', "DATE '2024-01-01'", r'INTEGER \(got DATE'),
    'a number and bytes': ('1', "'x'::BLOB", r'INTEGER \(got BLOB'),
    'a number and a list': ('1', '[1]', r'INTEGER \(got INTEGER\['),
    'a fraction and a float': ('0.1', '0.1::DOUBLE', r'DECIMAL.* \(got DOUB'),
    'a time of day and a date': (
        "TIME '10:00'", "DATE '2024-01-01'", r'TIME \(got DATE'
    ),
    'numbers of other precision': (
        '1::DECIMAL(38, 20)', '9223372036854775807', r'20\) \(got BIGINT'
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', TYPES)
def test_keys_that_cannot_be_compared_are_refused(tmp_path, name):
    key, other, match = TYPES[name]
    path = database(
        tmp_path / 'a.duckdb',
        f'CREATE TABLE a AS SELECT {key} AS k',
        f'CREATE TABLE b AS SELECT {other} AS a',
    )
    match = f"column 'a' of table 'b' must have the type .*{match}"
    refused(tmp_path, path, BOTH, TypeError, match)


@pytest.mark.parametrize(
    ('first', 'kind'), [(1 << 53, 'DOUBLE'), (1 << 24, 'FLOAT')]
)
def test_a_float_that_equals_two_keys_is_refused(tmp_path, first, kind):
    path = database(
        tmp_path / 'a.duckdb',
        f'CREATE TABLE a AS SELECT {first} + i AS k FROM range(2) r(i)',
        f'CREATE TABLE b AS SELECT unnest([0, {first}])::{kind} AS a',
    )
    match = f"'a' of table 'b' must be between -{first} .* in row 1"
    refused(tmp_path, path, BOTH, ValueError, match)


def test_floats_below_are_keys_and_fractions_and_nan_dangle(tmp_path):
    path = database(
        tmp_path / 'a.duckdb',
        'CREATE TABLE a AS SELECT i AS k FROM range(3) r(i)',
        "CREATE TABLE b AS SELECT unnest(['2', '1.5', NULL, 'nan'])::DOUBLE "
        'AS a',
    )
    found = from_tables(path, BOTH)
    assert found.data['b', 'a', 'a'].edge_index.tolist() == [[0], [2]]
    assert found.report['b.a']['null'] == 1
    assert found.report['b.a']['dangling'] == 2
    assert found.report['b.a']['example'] == {'row': 1, 'value': [1.5]}


def test_a_text_equals_one_key_whatever_its_collation(tmp_path):
    path = database(
        tmp_path / 'a.duckdb',
        "CREATE TABLE a AS SELECT unnest(['x', 'X']) AS k",
        'CREATE TABLE b (a VARCHAR COLLATE NOCASE)',
        "INSERT INTO b VALUES ('X')",
    )
    found = from_tables(path, BOTH)
    assert found.data['b', 'a', 'a'].edge_index.tolist() == [[0], [1]]


TWICE = {
    'a reverse relation': (
        ['CREATE TABLE a AS SELECT 1 AS k, 1 AS x, 1 AS rev_x'],
        {'a': {'key': 'k', 'foreign_keys': {'x': 'a', 'rev_x': 'a'}}},
        r"'a' must not use the name \('a', 'rev_x', 'a'\) again",
    ),
    'two keys of a column': (
        ['CREATE TABLE a (k INT PRIMARY KEY)',
         'CREATE TABLE b (k INT PRIMARY KEY)',
         'CREATE TABLE c (x INT REFERENCES a, FOREIGN KEY (x) REFERENCES b)'],
        None,
        "'c' must not use the name 'c.x' again",
    ),
    'a table and a key in the report': (
        ['CREATE TABLE a AS SELECT 1 AS k, 1 AS x',
         'CREATE TABLE "a.x" AS SELECT 1 AS k'],
        {'a': {'key': 'k', 'foreign_keys': {'x': 'a'}}, 'a.x': {}},
        "'a' must not use the name 'a.x' again",
    ),
    'a column in a key': (
        ['CREATE TABLE a AS SELECT 1 AS k'],
        {'a': {'key': ['k', 'k']}},
        "'key' of table 'a' must be different names",
    ),
    'no table at all': (['CREATE TABLE a (k INT)'], {}, 'must be a table'),
}  # fmt: skip


@pytest.mark.parametrize('name', TWICE)
def test_names_for_two_things_are_refused(tmp_path, name):
    queries, tables, match = TWICE[name]
    path = database(tmp_path / 'a.duckdb', *queries)
    manifest = None if tables is None else {'tables': tables}
    refused(tmp_path, path, manifest, ValueError, match)


def test_a_folder_without_parquet_files_is_refused(tmp_path):
    folder = tmp_path / 'tables'
    folder.mkdir()
    (folder / 'a.csv').write_text('k\n1\n')
    match = r"must have \*.parquet files \(it has \['a.csv'\]\).* COPY"
    for manifest in (None, {'tables': {'a': {}}}):
        refused(tmp_path, folder, manifest, ValueError, match)
    refused(tmp_path, {'a': []}, None, ValueError, "'a' must have a file")


def test_a_manifest_with_a_table_twice_is_refused(tmp_path):
    pq.write_table(pa.table({'k': [1]}), tmp_path / 'a.parquet')
    entry = json.dumps({'key': 'k'})
    text = f'{{"tables": {{"a": {entry}, "a": {{}}}}}}'
    (tmp_path / 'manifest.json').write_text(text)
    with pytest.raises(ValueError, match=r"manifest.json .*'a' occurs twice"):
        from_tables(tmp_path)
    with pytest.raises(TypeError, match="'manifest' must be a dict"):
        from_tables(tmp_path, 3)


def test_names_of_files_are_no_patterns(tmp_path):
    folder = tmp_path / 'all[1]*'
    folder.mkdir()
    for name, keys in (('a[b]', [7]), ('ab', [1, 2]), ('a*', [5]), ('A*', [])):
        table = pa.table({'k': pa.array(keys, pa.int64())})
        pq.write_table(table, folder / f'{name}.parquet')
    names = 'A*', 'a*', 'a[b]', 'ab'
    manifest = {'tables': {name: {'key': 'k'} for name in names}}
    found = from_tables(folder, manifest)
    disk = convert_tables(folder / 'graph', folder, manifest)
    for name, keys in zip(names, ([], [5], [7], [1, 2]), strict=True):
        rows = torch.arange(len(keys))
        assert found.keys_of(name, rows) == keys
        assert disk.keys_of(name, rows) == keys


def test_columns_may_have_any_name_and_lists_are_skipped(tmp_path):
    path = database(
        tmp_path / 'a.duckdb',
        'CREATE TABLE a AS SELECT unnest([NULL, 3]) AS value, '
        "unnest(['p', 'q']) AS colour, unnest([TIMESTAMP '2024-01-01', NULL]) "
        "AS id, ['x'] AS wrong, [DATE '2024-01-01'] AS days",
    )
    found = from_tables(path, {'tables': {'a': {'time': 'id'}}})
    assert found.values['a'].categories == {'colour': ['p', 'q']}
    assert found.data['a'].cat.tolist() == [[0], [1]]
    assert found.report['a']['null_times'] == 1
    assert found.report['a']['skipped'] == {
        'wrong': 'the type VARCHAR[]',
        'days': 'the type DATE[]',
    }


def test_a_stamp_beyond_int64_is_named_and_an_infinite_one_is_null(tmp_path):
    path = database(
        tmp_path / 'a.duckdb',
        "CREATE TABLE a AS SELECT unnest(['infinity', '500000-01-01'])::DATE "
        'AS day',
    )
    match = "'day' of table 'a' must be microseconds .*'500000-01-01' in row 1"
    refused(tmp_path, path, None, ValueError, match)
    database(path, "DELETE FROM a WHERE day <> 'infinity'")
    assert from_tables(path).data['a'].stamp.tolist() == [[-(1 << 63)]]


def test_a_time_that_a_file_cannot_give_is_named(tmp_path):
    far = pa.array([(1 << 53) - 1], pa.timestamp('s'))
    pq.write_table(pa.table({'t': far}), tmp_path / 'a.parquet')
    match = "column 't' of table 'a' must be .*Could not convert"
    refused(tmp_path, tmp_path, None, ValueError, match)
    manifest = {'tables': {'a': {'time': 't'}}}
    refused(tmp_path, tmp_path, manifest, ValueError, match)


def test_a_damaged_parquet_file_is_named(tmp_path):
    folder = tmp_path / 'tables'
    folder.mkdir()
    file = folder / 'a.parquet'
    pq.write_table(pa.table({'k': list(range(10_000))}), file)
    data = bytearray(file.read_bytes())
    data[100:3000] = bytes(2900)
    file.write_bytes(data)
    refused(tmp_path, folder, None, ValueError, r'from_tables: .*a\.parquet')


DECLARED = """
    CREATE TABLE Person (Id INTEGER, Nr INTEGER, PRIMARY KEY (ID, nr));
    CREATE TABLE buy (who INTEGER, Nr INTEGER,
        FOREIGN KEY (WHO, nR) REFERENCES person (id, NR));
    INSERT INTO Person VALUES (3, 4);
    INSERT INTO buy VALUES (3, 4);
"""


@pytest.mark.parametrize('make', [database, sqlite])
def test_case_in_declared_keys_does_not_matter(tmp_path, make):
    found = from_tables(make(tmp_path / 'a.db', DECLARED))
    assert found.schema['Person'].key == ('Id', 'Nr')
    edges = found.data['buy', 'who_Nr', 'Person'].edge_index
    assert edges.tolist() == [[0], [0]]


SQLITE = {
    'a fraction': ("(1), (2.5)", r'int64 \(got 2.5 in row 1'),
    'a text': ("(1), ('two')", r"int64 \(got 'two' in row 1"),
    'no UTF-8': (
        "('a'), (CAST(X'ff' AS TEXT))", r"string \(got '\\\\xff' in row 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', SQLITE)
def test_a_value_of_sqlite_that_is_not_its_type_is_named(tmp_path, name):
    values, match = SQLITE[name]
    kind = 'TEXT' if name == 'no UTF-8' else 'INTEGER'
    script = f'CREATE TABLE a (x {kind}); INSERT INTO a VALUES {values};'
    path = sqlite(tmp_path / 'a.db', script)
    match = f"column 'x' of table 'a' must hold {match}"
    refused(tmp_path, path, None, TypeError, match)


def test_generated_columns_and_other_tables_of_sqlite(tmp_path):
    path = sqlite(
        tmp_path / 'a.db',
        """
        CREATE TABLE a (k INTEGER PRIMARY KEY, y INT AS (k + 1),
            z INT AS (k + 2) STORED);
        CREATE TABLE b (x INTEGER);
        INSERT INTO a VALUES (1);
        INSERT INTO b VALUES ('no number');
        """,
    )
    found = from_tables(path, {'tables': {'a': {'key': 'k'}}})
    assert found.values['a'].num_names == ['y', 'z']
    assert found.data['a'].num.tolist() == [[2, 3]]
