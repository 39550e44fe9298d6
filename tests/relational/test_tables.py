"""Tables in every form become one graph, and rows get their keys back."""

import copy
import json
import sqlite3

import duckdb
import pyarrow.parquet as pq
import pytest
import torch

from tests.relational import shops
from torch_gsample.relational import from_tables


def in_form(form, folder):
    if form == 'duckdb':
        path = shops.as_duckdb(folder / 'shop.duckdb')
        return from_tables(path, shops.MANIFEST)
    if form == 'sqlite':
        path = shops.as_sqlite(folder / 'shop.sqlite')
        return from_tables(path, shops.MANIFEST)
    if form == 'folder':
        return from_tables(shops.as_parquet(folder / 'shop'))
    shops.as_parquet(folder / 'shop', None)
    tables = {
        t: folder / f'shop/{t}.parquet' for t in shops.MANIFEST['tables']
    }
    return from_tables(tables, shops.MANIFEST)


@pytest.mark.parametrize('form', ['duckdb', 'sqlite', 'folder', 'files'])
def test_rows_are_nodes_and_keys_are_edges_of_both_directions(tmp_path, form):
    shop = in_form(form, tmp_path)
    edges, time = shops.expected()
    data = shop.data
    assert data['buy'].time.tolist() == time
    assert 'time' not in data['user']
    for name, other in (('who', 'user'), ('shelf_number', 'item')):
        forward = data['buy', name, other]
        backward = data[other, f'rev_{name}', 'buy']
        assert forward.edge_index.T.tolist() == list(map(list, edges[name]))
        assert torch.equal(backward.edge_index, forward.edge_index.flip(0))
        assert forward.time.tolist() == [time[i] for i, _ in edges[name]]
        assert torch.equal(backward.time, forward.time)
    assert shop.time_kind == 'naive'


@pytest.mark.parametrize('form', ['duckdb', 'sqlite', 'folder'])
def test_columns_are_numbers_categories_and_times(tmp_path, form):
    shop = in_form(form, tmp_path)
    user, item = shop.values['user'], shop.values['item']
    assert user.categories == {'colour': ['blue', 'red']}
    assert user.cat.tolist() == [[1], [-1], [0]]
    assert user.num[:, 0].nan_to_num(-1).tolist() == [30, -1, 41]
    assert item.num_names == ['price', 'rank']
    assert item.num[:, 0].tolist() == [2.5, 1.0, 7.0, 0.5]
    assert torch.equal(shop.data['item'].num[1:], item.num[1:])


def test_rows_without_edges_are_counted_with_an_example(tmp_path):
    report = in_form('duckdb', tmp_path).report
    assert report['buy.who'] == {
        'edges': 9, 'null': 1, 'dangling': 2,
        'example': {'row': 4, 'value': ['dan']},
    }  # fmt: skip
    assert report['buy.shelf_number'] == {
        'edges': 10, 'null': 1, 'dangling': 1,
        'example': {'row': 6, 'value': ['x', 3]},
    }  # fmt: skip
    assert report['buy']['rows'] == 12
    with pytest.raises(ValueError, match=r"buy.who must .*\['dan'\] in row 4"):
        from_tables(tmp_path / 'shop.duckdb', shops.MANIFEST, dangling='error')


def test_keys_are_mapped_back(tmp_path):
    shop = in_form('duckdb', tmp_path)
    rows = torch.tensor([2, 0])
    assert shop.keys_of('user', rows) == ['cat', 'ann']
    assert shop.keys_of('item', rows) == [('y', 1), ('x', 1)]
    assert shop.rows_of('item', [('y', 1), ('q', 1)]).tolist() == [2, -1]
    assert shop.rows_of('user', ['cat', 'zoe']).tolist() == [2, -1]
    with pytest.raises(IndexError, match=r"'rows' .* 3\) \(got 3 to 3\)"):
        shop.keys_of('user', torch.tensor([3]))


def test_keys_that_a_database_declares_are_found(tmp_path):
    found = from_tables(shops.as_sqlite(tmp_path / 'shop.sqlite'))
    edges, _ = shops.expected()
    assert found.schema['item'].key == ('shelf', 'number')
    for name, other in (('who', 'user'), ('shelf_number', 'item')):
        index = found.data['buy', name, other].edge_index
        assert index.T.tolist() == list(map(list, edges[name]))
    with duckdb.connect(str(tmp_path / 'own.duckdb')) as database:
        database.execute(
            'CREATE TABLE a (k INTEGER PRIMARY KEY, up INTEGER REFERENCES a);'
            'INSERT INTO a VALUES (5, NULL); INSERT INTO a VALUES (7, 5);'
            'CREATE TABLE b (a INTEGER REFERENCES a(k));'
            'INSERT INTO b VALUES (7);'
        )
    found = from_tables(tmp_path / 'own.duckdb')
    # A key to the own table is a relation as any other.
    assert found.data['a', 'up', 'a'].edge_index.tolist() == [[1], [0]]
    assert found.data['b', 'a', 'a'].edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize('form', ['sqlite', 'duckdb'])
def test_a_manifest_of_times_leaves_tables_their_declared_keys(tmp_path, form):
    path = tmp_path / 'forum'
    query = (
        'CREATE TABLE a (k INTEGER PRIMARY KEY, up INTEGER REFERENCES a);'
        'CREATE TABLE b (a INTEGER REFERENCES a(k), t INTEGER);'
        'INSERT INTO a VALUES (5, NULL); INSERT INTO b VALUES (5, 9);'
    )
    module = sqlite3 if form == 'sqlite' else duckdb
    with module.connect(str(path)) as database:
        run = database.executescript if form == 'sqlite' else database.execute
        run(query)
    database.close()
    key, other = ('b', 'a', 'a'), ('a', 'up', 'a')
    for entries, want in (
        ({'a': {}, 'b': {'time': 't'}}, {key, other}),
        ({'a': {'key': 'k'}, 'b': {'time': 't'}}, {key}),
        ({'a': {}, 'b': {'time': 't', 'foreign_keys': {}}}, {other}),
        ({'b': {'time': 't'}}, set()),  # without the other table
    ):
        found = from_tables(path, {'tables': entries})
        assert {*found.data.edge_types[::2]} == want
        assert found.data['b'].time.tolist() == [9]
    assert repr(found) == 'RelationalData(b=1, foreign_keys=0)'


def test_relbench_declares_keys_in_its_files(tmp_path):
    folder = shops.as_parquet(tmp_path / 'shop', None)
    declared = {
        'user': {'pkey_col': 'name'},
        'buy': {
            'pkey_col': 'id',
            'time_col': 'day',
            'fkey_col_to_pkey_table': {'who': 'user'},
        },
    }
    for table, entry in declared.items():
        rows = pq.read_table(folder / f'{table}.parquet')
        entry = {k: json.dumps(v) for k, v in entry.items()}
        rows = rows.replace_schema_metadata(entry)
        pq.write_table(rows, folder / f'{table}.parquet')
    shop = from_tables(folder)
    edges, time = shops.expected()
    index = shop.data['buy', 'who', 'user'].edge_index
    assert index.T.tolist() == list(map(list, edges['who']))
    assert shop.data['buy'].time.tolist() == time
    assert ('buy', 'shelf_number', 'item') not in shop.data.edge_types


def test_several_files_of_a_table_are_read_in_their_order(tmp_path):
    folder = shops.as_parquet(tmp_path / 'shop', None)
    rows = pq.read_table(folder / 'buy.parquet')
    pq.write_table(rows.slice(0, 5), folder / 'one.parquet')
    pq.write_table(rows.slice(5), folder / 'two.parquet')
    manifest = copy.deepcopy(shops.MANIFEST)
    manifest['tables']['buy']['file'] = ['one.parquet', 'two.parquet']
    shop = from_tables(folder, manifest)
    assert shop.data['buy'].time.tolist() == shops.expected()[1]


def test_memory_is_bounded_and_nothing_is_left(tmp_path, monkeypatch):
    """Rows by text keys, in 64 MiB, which the join spills."""
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path / 'spill'))
    (tmp_path / 'spill').mkdir()
    with duckdb.connect(str(tmp_path / 'big.duckdb')) as database:
        database.execute(
            "CREATE TABLE a AS SELECT 'key-' || (i * 7919 % 100000) AS k, i "
            'FROM range(100000) t(i);'
            "CREATE TABLE b AS SELECT 'key-' || (i % 100003) AS a "
            'FROM range(400000) t(i);'
        )
    manifest = {
        'tables': {'a': {'key': 'k'}, 'b': {'foreign_keys': {'a': 'a'}}}
    }
    big = from_tables(tmp_path / 'big.duckdb', manifest, memory_limit='64MiB')
    child, parent = big.data['b', 'a', 'a'].edge_index
    assert big.report['b.a']['dangling'] == 9
    assert torch.equal(parent * 7919 % 100000, child % 100003)
    assert not list((tmp_path / 'spill').iterdir())
