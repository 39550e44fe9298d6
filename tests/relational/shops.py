"""A small shop in every form of tables: 3 users, 4 items, 12 buys."""

import json
import sqlite3

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

USERS = [('ann', 'red', 30), ('bob', None, None), ('cat', 'blue', 41)]
ITEMS = [
    ('x', 1, 2.5, None),
    ('x', 2, 1.0, 0),
    ('y', 1, 7.0, 1),
    ('z', 9, 0.5, 2),
]
#: Who bought what, and when: two of nobody known, one of nobody.
BUYS = [
    (f'b{i}', user, shelf, number, f'2024-01-{day:02} 00:00:00')
    for i, (user, shelf, number, day) in enumerate(
        [
            ('ann', 'x', 1, 3), ('bob', 'x', 2, 1), ('cat', 'y', 1, 9),
            ('ann', 'z', 9, 2), ('dan', 'x', 1, 4), (None, 'x', 1, 5),
            ('bob', 'x', 3, 6), ('cat', 'x', 1, 7), ('ann', 'y', 1, 8),
            ('eve', 'y', None, 10), ('bob', 'z', 9, 11), ('cat', 'x', 2, 12),
        ]
    )
]  # fmt: skip
MANIFEST = {
    'tables': {
        'user': {'key': 'name'},
        'item': {
            'key': ['shelf', 'number'],
            'foreign_keys': {},
        },
        'buy': {
            'key': 'id',
            'time': 'day',
            'foreign_keys': [
                {'columns': ['who'], 'table': 'user'},
                {'columns': ['shelf', 'number'], 'table': 'item'},
            ],
        },
    }
}
_COLUMNS = {
    'user': ('name', 'colour', 'age'),
    'item': ('shelf', 'number', 'price', 'rank'),
    'buy': ('id', 'who', 'shelf', 'number', 'day'),
}
_ROWS = {'user': USERS, 'item': ITEMS, 'buy': BUYS}
_TYPES = {
    'name': 'VARCHAR', 'colour': 'VARCHAR', 'age': 'BIGINT',
    'shelf': 'VARCHAR', 'number': 'BIGINT', 'price': 'DOUBLE',
    'rank': 'BIGINT', 'id': 'VARCHAR', 'who': 'VARCHAR', 'day': 'TIMESTAMP',
}  # fmt: skip
SECOND = 1_000_000
FIRST = 1_704_067_200 * SECOND  # 2024-01-01
DAY = 86_400 * SECOND


def as_duckdb(path, **types):
    """As a DuckDB database, optionally with other types."""
    kinds = _TYPES | types
    with duckdb.connect(str(path)) as database:
        for table, columns in _COLUMNS.items():
            parts = ', '.join(f'"{c}" {kinds[c]}' for c in columns)
            database.execute(f'CREATE TABLE "{table}" ({parts})')
            marks = ', '.join('?' for _ in columns)
            database.executemany(
                f'INSERT INTO "{table}" VALUES ({marks})',
                [list(row) for row in _ROWS[table]],
            )
    return path


def as_parquet(folder, manifest=MANIFEST):
    """As a folder of Parquet files."""
    folder.mkdir(exist_ok=True)
    with duckdb.connect() as database:
        for table, columns in _COLUMNS.items():
            values = zip(*_ROWS[table], strict=True)
            rows = pa.table(dict(zip(columns, map(list, values), strict=True)))
            database.register('rows', rows)
            parts = ', '.join(f'"{c}"::{_TYPES[c]} AS "{c}"' for c in columns)
            made = database.sql(f'SELECT {parts} FROM rows').to_arrow_table()
            pq.write_table(made, folder / f'{table}.parquet')
    if manifest is not None:
        (folder / 'manifest.json').write_text(json.dumps(manifest))
    return folder


def as_sqlite(path):
    """As an SQLite database that declares its keys."""
    database = sqlite3.connect(path)
    database.executescript(
        """
        CREATE TABLE user (name TEXT PRIMARY KEY, colour TEXT, age INTEGER);
        CREATE TABLE item (
            shelf TEXT, number INTEGER, price REAL, rank INTEGER,
            PRIMARY KEY (shelf, number));
        CREATE TABLE buy (
            id TEXT PRIMARY KEY, who TEXT REFERENCES user, shelf TEXT,
            number INTEGER, day TEXT,
            FOREIGN KEY (number, shelf) REFERENCES item (number, shelf));
        """
    )
    for table, rows in _ROWS.items():
        marks = ', '.join('?' * len(rows[0]))
        database.executemany(f'INSERT INTO {table} VALUES ({marks})', rows)
    database.commit()
    database.close()
    return path


def expected():
    """The graph, in plain loops."""
    user = {row[0]: i for i, row in enumerate(USERS)}
    item = {row[:2]: i for i, row in enumerate(ITEMS)}
    of = {'who': [], 'shelf_number': []}
    for i, (_, who, shelf, number, _) in enumerate(BUYS):
        if who in user:
            of['who'].append((i, user[who]))
        if (shelf, number) in item:
            of['shelf_number'].append((i, item[shelf, number]))
    time = [FIRST + (int(row[4][8:10]) - 1) * DAY for row in BUYS]
    return of, time
