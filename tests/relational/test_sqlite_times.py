"""Columns that SQLite declares as dates and times are times, as elsewhere."""

import sqlite3

import duckdb
import pytest
import torch

from torch_gsample.relational import append_tables, convert_tables, from_tables
from torch_gsample.relational.values import NULLS

DAY = 86_400_000_000  # microseconds
TABLES = """
CREATE TABLE person (id INTEGER PRIMARY KEY, born DATE);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, who INTEGER REFERENCES person(id),
    seen TIMESTAMP, planned DATETIME
);
INSERT INTO person VALUES (1, '1970-01-02'), (2, NULL), (3, '1969-12-31');
INSERT INTO visit VALUES
    (1, 1, '1970-01-01 00:00:01', '1970-01-03'),
    (2, 3, '1970-01-01 00:00:02.5', NULL);
"""


def sqlite(path, script=TABLES):
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()
    return path


def of_column(tmp_path, kind, values):
    """The table of one column."""
    script = f'CREATE TABLE a (x {kind}); INSERT INTO a VALUES {values};'
    return from_tables(sqlite(tmp_path / 'a.db', script)).values['a']


def test_dates_and_times_are_as_in_duckdb(tmp_path):
    with duckdb.connect(str(tmp_path / 'a.duckdb')) as database:
        database.execute(TABLES)
    want = from_tables(tmp_path / 'a.duckdb')
    got = from_tables(sqlite(tmp_path / 'a.db'))
    none = NULLS['stamp']
    assert got.values['person'].stamp.tolist() == [[DAY], [none], [-DAY]]
    for table in 'person', 'visit':
        one, other = got.values[table], want.values[table]
        assert one.stamp_names == other.stamp_names
        assert torch.equal(one.stamp, other.stamp)
        assert not one.cat_names


def test_times_of_a_task_may_be_declared(tmp_path):
    manifest = {'tables': {'person': {}, 'visit': {'time': 'seen'}}}
    found = from_tables(sqlite(tmp_path / 'a.db'), manifest)
    assert found.data['visit'].time.tolist() == [1_000_000, 2_500_000]
    assert found.time_kind == 'naive'


@pytest.mark.parametrize(
    ('kind', 'values', 'want'),
    [
        ('datetime', "('1970-01-01T02:00+01:00'), (NULL)", [DAY // 24]),
        ('DATE', "('1970-01-01 01:00'), ('1970-01-01')", [DAY // 24, 0]),
        ('timestamp(6)', "('1970-01-02')", [DAY]),
    ],
)
def test_forms_of_times(tmp_path, kind, values, want):
    found = of_column(tmp_path, kind, values)
    assert found.stamp_names == ['x']
    assert found.stamp.flatten().tolist()[: len(want)] == want


@pytest.mark.parametrize(
    'values',
    [
        "('1970-01-02'), ('soon')",
        "('1970-02-30')",
        "('1970-01-01 00:00Z'), ('1970-01-01 00:00')",
        "('1970-01')",
        "('')",
    ],
)
def test_other_texts_stay_categories(tmp_path, values):
    found = of_column(tmp_path, 'DATE', values)
    assert found.cat_names == ['x']
    assert not found.stamp_names


@pytest.mark.parametrize(
    ('values', 'want'),
    [('(5), (NULL), (7)', [5, 7]), ('(2.5), (1)', [2.5, 1])],
)
def test_numbers_in_columns_of_times_stay_numbers(tmp_path, values, want):
    found = of_column(tmp_path, 'DATETIME', values)
    assert found.num_names == ['x']
    assert found.num[~found.num.isnan()].tolist() == want


def test_a_number_among_texts_is_named(tmp_path):
    match = "column 'x' of table 'a' must hold string .*got 5 in row 1"
    with pytest.raises(TypeError, match=match):
        of_column(tmp_path, 'DATE', "('1970-01-02'), (5)")


def test_keys_stay_texts(tmp_path):
    script = """
    CREATE TABLE day (day DATE PRIMARY KEY);
    CREATE TABLE sale (day TEXT REFERENCES day, until DATE);
    INSERT INTO day VALUES ('1970-01-02');
    INSERT INTO sale VALUES ('1970-01-02', '1970-01-02');
    """
    found = from_tables(sqlite(tmp_path / 'a.db', script))
    assert found.keys_of('day', torch.tensor([0])) == ['1970-01-02']
    assert found.report['sale.day']['edges'] == 1
    manifest = {
        'tables': {
            'day': {'key': 'day'},
            'sale': {'foreign_keys': {'day': 'day', 'until': 'day'}},
        }
    }
    found = from_tables(tmp_path / 'a.db', manifest)
    assert found.report['sale.until']['edges'] == 1


def test_appended_times_have_the_type_of_the_folder(tmp_path):
    convert_tables(tmp_path / 'graph', sqlite(tmp_path / 'a.db'))
    more = """
    CREATE TABLE person (id INTEGER PRIMARY KEY, born DATE);
    INSERT INTO person VALUES (4, {});
    """
    wrong = sqlite(tmp_path / 'b.db', more.format("'unknown'"))
    with pytest.raises(TypeError, match=r"'born'.* type DATE .*got VARCHAR"):
        append_tables(tmp_path / 'graph', wrong)
    right = sqlite(tmp_path / 'c.db', more.format("'1970-01-03'"))
    found = append_tables(tmp_path / 'graph', right)
    assert found.values['person'].stamp[torch.tensor([3])].item() == 2 * DAY
