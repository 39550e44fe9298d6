"""Copies the tables of an SQLite database to DuckDB.

Python's own SQLite module reads them, as DuckDB would download an extension.
"""

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_gsample.relational.iso_times import (
    is_text_of_time,
    is_text_with_zone,
)
from torch_gsample.relational.schema import (
    ForeignKey,
    TableSchema,
    same_case,
)

_ROWS = 1 << 16
_HIDDEN = 1  # column of a virtual table
#: Errors of Arrow; those of its own are `ValueError` and `TypeError`.
_WRONG = TypeError, ValueError, OverflowError


def copy_sqlite(
    database: Any, path: Path, known: Mapping[str, TableSchema] | None = None
) -> tuple[dict[str, str], dict[str, TableSchema]]:
    """Copies tables in one consistent snapshot.

    SQLite has no type for times. Columns that are declared as dates or times
    and are no keys become such in DuckDB if all their texts are.

    Args:
        database (duckdb.DuckDBPyConnection): The target.
        path (Path): The SQLite database.
        known (Dict[str, TableSchema], optional): The tables to copy, with
            keys that are not declared; default: all.

    Returns:
        Tuple[Dict[str, str], Dict[str, TableSchema]]: SQL source of each
        copied table, and the declared keys of all.

    Raises:
        OSError: If it is locked, or not a database.
        TypeError: If a value does not have the type of its column, which
            SQLite does not check.
    """
    import pyarrow as pa

    try:
        source = sqlite3.connect(
            f'{path.resolve().as_uri()}?mode=ro', uri=True, timeout=1
        )
        try:
            source.execute('BEGIN')  # one snapshot of all tables
            names = [
                name
                for (name,) in source.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table' AND "
                    "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
                )
            ]
            types = {name: _types(source, name) for name in names}
            schema = {name: _declared(source, name) for name in names}
            schema = same_case(schema, types)
            wanted = [n for n in names if known is None or n in known]
            times = {
                n: _times(source, n, _keys(schema[n], (known or schema)[n]))
                for n in wanted
            }
            source.text_factory = bytes  # Arrow checks that it is UTF-8
            sql = {}
            for i, name in enumerate(wanted):
                sql[name] = f'sqlite_{i}'
                for column in times[name]:
                    types[name][column] = _stored(source, name, column)
                _copy(source, database, name, types[name], sql[name])
                for column, declared in times[name].items():
                    if types[name][column] == pa.string():
                        _read_times(database, sql[name], column, declared)
            return sql, schema
        finally:
            source.close()
    except sqlite3.Error as error:
        raise OSError(f'from_tables: {path}: {error}') from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _declared(source: sqlite3.Connection, table: str) -> TableSchema:
    info = source.execute(f'PRAGMA table_info({_quoted(table)})').fetchall()
    key = sorted((row[5], row[1]) for row in info if row[5])
    foreign: dict[int, list[Any]] = {}
    query = f'PRAGMA foreign_key_list({_quoted(table)})'
    for number, _, other, *ends in sorted(source.execute(query)):
        foreign.setdefault(number, [other]).append(ends[:2])
    keys = [
        ForeignKey(
            tuple(column for column, _ in ends),
            other,
            tuple(to for _, to in ends if to is not None),
        )
        for other, *ends in foreign.values()
    ]
    return TableSchema(tuple(c for _, c in key), foreign_keys=tuple(keys))


def _types(source: sqlite3.Connection, table: str) -> dict[str, Any]:
    """Returns the type of each column, including generated ones."""
    info = source.execute(f'PRAGMA table_xinfo({_quoted(table)})')
    return {row[1]: _type(row[2]) for row in info if row[6] != _HIDDEN}


def _keys(*schemas: TableSchema) -> set[str]:
    """Returns the columns of all keys of a table."""
    out: set[str] = set()
    for schema in schemas:
        out.update(schema.key, *(key.columns for key in schema.foreign_keys))
    return out


def _times(
    source: sqlite3.Connection, table: str, keys: set[str]
) -> dict[str, str]:
    """Returns the columns that are declared as times, and the declarations."""
    info = source.execute(f'PRAGMA table_xinfo({_quoted(table)})')
    return {
        row[1]: row[2].upper()
        for row in info
        if row[6] != _HIDDEN
        and row[1] not in keys
        and row[2].upper().startswith(('DATE', 'TIMESTAMP'))
    }


def _stored(source: sqlite3.Connection, table: str, column: str) -> Any:
    """Returns the type of the values of a column of times."""
    import pyarrow as pa

    name = _quoted(column)
    rows = source.execute(
        f'SELECT DISTINCT typeof({name}) FROM {_quoted(table)}'
    )
    kinds = {kind.decode() for (kind,) in rows} - {'null'}
    if kinds and kinds <= {'integer', 'real'}:  # since 1970, Julian days
        return pa.float64() if 'real' in kinds else pa.int64()
    return pa.string()


def _read_times(database: Any, table: str, column: str, declared: str) -> None:
    """Converts a column of texts to times, if all are, with a zone or not."""
    name = _quoted(column)
    valid = (
        f'{is_text_of_time(name)} AND try_cast({name} AS TIMESTAMPTZ) NOTNULL'
    )
    conditions = valid, is_text_with_zone(name), f'length({name}) > 10'
    counts = ', '.join(f'count(*) FILTER ({of})' for of in conditions)
    query = f'SELECT count({name}), {counts} FROM {table}'
    known, times, zoned, hours = database.execute(query).fetchall()[0]
    if times < known or 0 < zoned < known:
        return
    kind = 'TIMESTAMPTZ' if zoned else 'TIMESTAMP'
    if declared == 'DATE' and not hours:
        kind = 'DATE'
    database.execute(f'ALTER TABLE {table} ALTER {name} TYPE {kind}')


def _copy(
    source: sqlite3.Connection,
    database: Any,
    table: str,
    types: dict[str, Any],
    to: str,
) -> None:
    import pyarrow as pa

    schema = pa.schema(list(types.items()))
    columns = ', '.join(map(_quoted, types))
    cursor = source.execute(f'SELECT {columns} FROM {_quoted(table)}')

    database.register('sqlite_rows', schema.empty_table())
    database.execute(f'CREATE TEMP TABLE {to} AS SELECT * FROM sqlite_rows')
    first = 0
    while rows := cursor.fetchmany(_ROWS):
        arrays = [
            _array(table, field, values, first)
            for field, values in zip(
                schema, zip(*rows, strict=True), strict=True
            )
        ]
        first += len(rows)
        database.register('sqlite_rows', pa.table(arrays, schema=schema))
        database.execute(f'INSERT INTO {to} SELECT * FROM sqlite_rows')
    database.unregister('sqlite_rows')


def _type(declared: str) -> Any:
    """Returns the type of a column by SQLite's rules of affinity."""
    import pyarrow as pa

    name = declared.upper()
    if 'INT' in name or 'BOOL' in name:
        return pa.int64()
    if any(part in name for part in ('REAL', 'FLOA', 'DOUB', 'DEC', 'NUM')):
        return pa.float64()
    return pa.binary() if 'BLOB' in name else pa.string()


def _array(table: str, field: Any, values: Any, first: int) -> Any:
    """Returns values of a column as an Arrow array of its type.

    Raises:
        TypeError: If one has another type.
    """
    import pyarrow as pa

    def made(values: Any) -> Any:
        # Arrow would cut the fraction of a float.
        if field.type == pa.int64() and float in set(map(type, values)):
            raise TypeError
        return pa.array(values, field.type)

    try:
        return made(values)
    except _WRONG:
        for i, value in enumerate(values):
            try:
                made([value])
            except _WRONG:
                if isinstance(value, bytes):
                    value = value.decode('utf-8', 'backslashreplace')
                raise TypeError(
                    f'from_tables: column {field.name!r} of table {table!r} '
                    f'must hold {field.type} (got {value!r} in row '
                    f'{first + i})'
                ) from None
        raise
