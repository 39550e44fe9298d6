"""Times with a zone and without one in the tables of a database."""

import duckdb
import pytest
import torch

from tests.relational.shops import SECOND
from torch_gsample.relational import (
    append_tables,
    convert_tables,
    from_tables,
)
from torch_gsample.relational.times import NEVER

#: 2020-01-01, and an hour before 2020-01-02, in UTC.
DAY, EVENING = 1_577_836_800 * SECOND, 1_577_919_600 * SECOND


def database(path, *, born='DATE', placed='TIMESTAMPTZ', orders=1):
    """A customer by date, one without, and orders."""
    with duckdb.connect(str(path)) as out:
        out.execute(f'CREATE TABLE customer (id INT PRIMARY KEY, born {born})')
        out.execute(
            'CREATE TABLE "order" (id INT PRIMARY KEY, '
            f'customer INT REFERENCES customer(id), placed {placed})'
        )
        out.execute("INSERT INTO customer VALUES (1, '2020-01-01'), (2, NULL)")
        for i in range(orders):
            row = f"({i}, 1, '2020-01-02 00:00:00+01:00')"
            out.execute(f'INSERT INTO "order" VALUES {row}')
    return path


def manifest(**customer):
    return {
        'tables': {
            'customer': {'time': 'born', **customer},
            'order': {'time': 'placed'},
        }
    }


def test_dates_and_times_with_a_zone_need_a_zone_of_dates(tmp_path):
    path = database(tmp_path / 'shop.duckdb')
    with pytest.raises(
        ValueError, match=r"\['customer'\].*'customer': .*'time_zone': 'UTC'"
    ):
        from_tables(path, manifest())


@pytest.mark.parametrize(
    ('zone', 'hours'),
    [('UTC', 0), ('America/New_York', 5), ('Asia/Tokyo', -9)],
)
@pytest.mark.parametrize('born', ['DATE', 'TIMESTAMP', 'VARCHAR'])
def test_dates_begin_at_midnight_of_their_zone(tmp_path, born, zone, hours):
    path = database(tmp_path / 'shop.duckdb', born=born)
    found = from_tables(path, manifest(time_zone=zone))
    first = DAY + hours * 3600 * SECOND
    assert found.time_kind == 'zoned'
    assert found.data['customer'].time.tolist() == [first, NEVER]
    assert found.data['order'].time.tolist() == [EVENING]


def test_a_folder_knows_the_zone_of_appended_dates(tmp_path):
    path = database(tmp_path / 'shop.duckdb')
    convert_tables(tmp_path / 'graph', path, manifest(time_zone='Asia/Tokyo'))
    with duckdb.connect(str(tmp_path / 'more.duckdb')) as out:
        out.execute('CREATE TABLE customer (id INT PRIMARY KEY, born DATE)')
        out.execute("INSERT INTO customer VALUES (7, '2020-01-01')")
    found = append_tables(tmp_path / 'graph', tmp_path / 'more.duckdb')
    time = found.times['customer']
    assert time[2] == time[0] == DAY - 9 * 3600 * SECOND


@pytest.mark.parametrize(
    ('entry', 'error'),
    [
        ({'time_zone': 'Atlantis'}, "such as 'UTC' .* \\(got 'Atlantis'\\)"),
        ({'time_zone': "x' OR 'x"}, "such as 'UTC'"),
        ({'time_zone': 1}, "'time_zone' of table 'customer' must be a name"),
        ({'time': None, 'time_zone': 'UTC'}, "needs a 'time'"),
        ({'time': 'id', 'time_zone': 'UTC'}, "'id' has integer times"),
    ],
)
def test_zones_that_cannot_be_are_refused(tmp_path, entry, error):
    path = database(tmp_path / 'shop.duckdb')
    with pytest.raises(ValueError, match=error):
        from_tables(path, manifest(**entry))


def test_times_with_a_zone_take_no_other(tmp_path):
    path = database(tmp_path / 'shop.duckdb')
    tables = {'order': {'time': 'placed', 'time_zone': 'UTC', 'key': 'id'}}
    with pytest.raises(ValueError, match=r'without one .*zoned times'):
        from_tables(path, {'tables': tables})


@pytest.mark.parametrize(
    ('born', 'kind'), [('DATE', 'naive'), ('TIMESTAMPTZ', 'zoned')]
)
def test_texts_without_a_value_agree_with_all_times(tmp_path, born, kind):
    path = tmp_path / 'shop.duckdb'
    database(path, born=born, placed='VARCHAR', orders=0)
    assert from_tables(path, manifest()).time_kind == kind


def test_rows_are_appended_to_one_of_two_tables_with_texts(tmp_path):
    path = database(tmp_path / 'shop.duckdb', born='VARCHAR', placed='VARCHAR')
    with duckdb.connect(str(path)) as out:
        out.execute("UPDATE customer SET born = born || 'T00:00Z'")
    convert_tables(tmp_path / 'graph', path, manifest())
    with duckdb.connect(str(tmp_path / 'more.duckdb')) as out:
        out.execute('CREATE TABLE customer (id INT, born VARCHAR)')
        out.execute("INSERT INTO customer VALUES (7, '2020-01-01T00:00Z')")
    found = append_tables(tmp_path / 'graph', tmp_path / 'more.duckdb')
    assert torch.equal(
        found.times['customer'], torch.tensor([DAY, NEVER, DAY])
    )
