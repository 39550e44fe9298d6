"""Rows with the time of the row that they refer to: lines of an order."""

import copy
import re
import sqlite3
import warnings

import duckdb
import pytest
import torch

from torch_gsample.relational import (
    EntityTask,
    RelationalLoader,
    append_tables,
    convert_tables,
    from_tables,
)
from torch_gsample.relational.times import NEVER

TABLES = """
CREATE TABLE product (sku VARCHAR PRIMARY KEY);
CREATE TABLE orders (id INTEGER PRIMARY KEY, placed INTEGER);
CREATE TABLE line (
    order_id INTEGER REFERENCES orders(id), line INTEGER,
    sku VARCHAR REFERENCES product(sku), PRIMARY KEY (order_id, line)
);
CREATE TABLE refund (
    order_id INTEGER, line INTEGER, amount DOUBLE,
    FOREIGN KEY (order_id, line) REFERENCES line(order_id, line)
);
INSERT INTO product VALUES ('a'), ('b');
INSERT INTO orders VALUES (1, 10), (2, 20), (3, NULL);
INSERT INTO line VALUES (2, 1, 'a'), (1, 1, 'a'), (1, 2, 'b'), (3, 1, 'a');
INSERT INTO refund VALUES (1, 2, 5.0), (NULL, NULL, 6.0), (2, 1, 7.0);
"""
MANIFEST = {
    'tables': {
        'product': {},
        'refund': {'time_from': ['order_id', 'line']},
        'line': {'time_from': 'order_id'},
        'orders': {'time': 'placed'},
    }
}


@pytest.fixture(params=['duckdb', 'sqlite'])
def path(tmp_path, request):
    path = tmp_path / f'shop.{request.param}'
    if request.param == 'duckdb':
        with duckdb.connect(str(path)) as database:
            database.execute(TABLES)
    else:
        database = sqlite3.connect(path)
        database.executescript(TABLES)
        database.close()
    return path


def read(tmp_path, path, manifest, on_disk):
    """The tables in memory, or converted to a folder."""
    if on_disk:
        return convert_tables(tmp_path / 'graph', path, manifest)
    return from_tables(path, manifest)


def changed(table, **entry):
    out = copy.deepcopy(MANIFEST)
    out['tables'][table] = entry
    return out


def test_rows_have_the_time_of_the_row_that_they_refer_to(path):
    found = from_tables(path, MANIFEST)
    assert found.data['line'].time.tolist() == [20, 10, 10, NEVER]
    assert found.data['refund'].time.tolist() == [10, NEVER, 20]
    assert found.report['line']['null_times'] == 1
    assert found.report['refund']['null_times'] == 1
    edges = found.data['product', 'rev_sku', 'line']
    assert edges.time.tolist() == [20, 10, 10, NEVER]


@pytest.mark.parametrize('on_disk', [False, True])
def test_later_lines_are_not_sampled(tmp_path, path, on_disk):
    tables = from_tables(path, MANIFEST)
    if on_disk:
        tables = convert_tables(tmp_path / 'graph', path, MANIFEST)
    row = tables.rows_of('product', ['a', 'a'])
    task = EntityTask('product', row, torch.tensor([15, 25]))
    loader = RelationalLoader(
        tables, task, [-1, -1, -1], batch_size=1, check_times=True
    )
    lines = [batch['line'].n_id.tolist() for batch in loader]
    assert [sorted(of) for of in lines] == [[1, 2], [0, 1, 2]]


def test_appended_lines_take_times_of_earlier_and_appended_orders(
    tmp_path, path
):
    convert_tables(tmp_path / 'graph', path, MANIFEST)
    with duckdb.connect(str(tmp_path / 'more.duckdb')) as database:
        database.execute(
            'CREATE TABLE orders (id INTEGER, placed INTEGER);'
            'CREATE TABLE line (order_id INTEGER, line INTEGER, sku VARCHAR);'
            "INSERT INTO line VALUES (2, 2, 'b'), (4, 1, 'b');"
            'INSERT INTO orders VALUES (4, 40);'
        )
        if path.suffix == '.sqlite':  # whose integers are of 64 bits
            for table, columns in {
                'orders': ['id', 'placed'], 'line': ['order_id', 'line']
            }.items():  # fmt: skip
                for column in columns:
                    database.execute(
                        f'ALTER TABLE {table} ALTER {column} TYPE BIGINT'
                    )
    found = append_tables(tmp_path / 'graph', tmp_path / 'more.duckdb')
    assert found.times['line'].tolist() == [20, 10, 10, NEVER, 20, 40]


@pytest.mark.parametrize(
    ('entry', 'error'),
    [
        ({'time_from': 'line'}, r"columns of a foreign key.*\('line',\)"),
        ({'time_from': 'sku'}, r"'time_from' of table 'line'.*got 'product'"),
        ({'time_from': 'order_id', 'time': 'line'}, 'got both'),
        ({'time_from': 3}, "'time_from' of table 'line' must be a name"),
    ],
)
def test_keys_that_give_no_time_are_refused(path, entry, error):
    with pytest.raises(ValueError, match=error):
        from_tables(path, changed('line', **entry))


def test_rows_that_refer_to_each_other_for_a_time_are_refused(tmp_path):
    path = tmp_path / 'circle.duckdb'
    with duckdb.connect(str(path)) as database:
        database.execute(
            'CREATE TABLE a (id INT PRIMARY KEY, up INT REFERENCES a(id), '
            'time INT)'
        )
    keys = {'key': 'id', 'foreign_keys': {'up': 'a'}}
    with pytest.raises(ValueError, match='and not in a circle'):
        from_tables(path, {'tables': {'a': {**keys, 'time_from': 'up'}}})


@pytest.mark.parametrize('on_disk', [False, True])
def test_lines_without_a_time_are_named_in_a_warning(tmp_path, path, on_disk):
    tables = {'product': {}, 'line': {}, 'orders': {'time': 'placed'}}
    match = "'line' has no time.*'time_from'"
    with pytest.warns(UserWarning, match=match) as found:
        read(tmp_path, path, {'tables': tables}, on_disk)
    assert found[0].filename == __file__  # not a line of ours
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        from_tables(path, MANIFEST)
        from_tables(path)  # without any times


def without_keys(path):
    """The database without its constraints, so that keys may dangle."""
    script = re.sub(
        r' REFERENCES \w+\(\w+\)|,\s+FOREIGN KEY[^)]*\).*?\)', '', TABLES
    )
    script += "INSERT INTO line VALUES (9, 1, 'a'), (8, 1, 'b');"
    made = path.with_name(f'free{path.suffix}')
    if path.suffix == '.duckdb':
        with duckdb.connect(str(made)) as database:
            database.execute(script)
    else:
        database = sqlite3.connect(made)
        database.executescript(script)
        database.close()
    return made


@pytest.mark.parametrize('on_disk', [False, True])
def test_lines_of_unknown_orders_are_counted_and_never_visible(
    tmp_path, path, on_disk
):
    manifest = changed(
        'line', key=['order_id', 'line'], time_from='order_id',
        foreign_keys={'order_id': 'orders', 'sku': 'product'},
    )  # fmt: skip
    del manifest['tables']['refund']
    match = r"'line'.*2 of its 6 rows.*'order_id'.*first \[9\] in row 4"
    with pytest.warns(UserWarning, match=match) as found:
        tables = read(tmp_path, without_keys(path), manifest, on_disk)
    assert found[0].filename == __file__
    times = tables.times if on_disk else tables.data.time_dict
    assert times['line'].tolist() == [20, 10, 10, NEVER, NEVER, NEVER]
    assert tables.report['line']['null_times'] == 3
    assert tables.report['line.order_id']['dangling'] == 2
    row = tables.rows_of('product', ['a'])
    task = EntityTask('product', row, torch.tensor([NEVER - 1]))
    batch = next(iter(RelationalLoader(tables, task, [-1], batch_size=1)))
    assert batch['line'].n_id.tolist() == [1, 0]


def append(folder, name, script):
    """Appends the tables of a new database."""
    with duckdb.connect(str(folder / name)) as database:
        database.execute(script)
    return append_tables(folder / 'graph', folder / name)


def test_appended_lines_of_unknown_orders_stay_invisible(tmp_path):
    path = tmp_path / 'shop.duckdb'
    with duckdb.connect(str(path)) as database:
        database.execute(TABLES)
    manifest = changed(
        'line', key=['order_id', 'line'], time_from='order_id',
        foreign_keys={'order_id': 'orders', 'sku': 'product'},
    )  # fmt: skip
    del manifest['tables']['refund']
    with pytest.warns(UserWarning, match='2 of its 6 rows'):
        convert_tables(tmp_path / 'graph', without_keys(path), manifest)
    lines = (
        'CREATE TABLE line (order_id INTEGER, line INTEGER, sku VARCHAR);'
        "INSERT INTO line VALUES (7, 1, 'a'), (1, 3, 'a');"
    )
    match = r"append_tables: .*1 of its 2 rows.*order_id'.*first .7. in row 6"
    with pytest.warns(UserWarning, match=match):
        found = append(tmp_path, 'lines.duckdb', lines)
    assert found.times['line'].tolist() == [20, 10, 10, *[NEVER] * 4, 10]
    assert found.report['line']['null_times'] == 4
    assert found.report['line.order_id']['dangling'] == 3
    orders = (
        'CREATE TABLE orders (id INTEGER, placed INTEGER);'
        'INSERT INTO orders VALUES (7, 5), (9, 6);'
    )
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # no new line dangles
        found = append(tmp_path, 'orders.duckdb', orders)
    assert found.times['line'].tolist() == [20, 10, 10, *[NEVER] * 4, 10]
    assert found.report['line']['null_times'] == 4
    assert found.report['line.order_id']['dangling'] == 1
    for table, key in ('product', 'a'), ('orders', 7):
        row = found.rows_of(table, [key])
        task = EntityTask(table, row, torch.tensor([NEVER - 1]))
        loader = RelationalLoader(found, task, [-1], batch_size=1)
        batch = next(iter(loader))
        assert sorted(batch['line'].n_id.tolist()) == (
            [0, 1, 7] if table == 'product' else []
        )
