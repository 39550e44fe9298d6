"""Opens databases and folders of tables, and reads their declared keys.

All become tables of a DuckDB connection with bounded memory.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch_gsample.path_argument import path_argument
from torch_gsample.relational.schema import (
    ForeignKey,
    TableSchema,
    read_manifest,
    same_case,
    with_declared_keys,
)
from torch_gsample.relational.sqlite_tables import copy_sqlite
from torch_gsample.storage.duckdb_errors import duckdb_errors

MANIFEST = 'manifest.json'
_SMALL = 32 << 20  # bytes of data below which one thread is faster


class Source:
    """Tables in SQL, and their declared schemas.

    Args:
        database (duckdb.DuckDBPyConnection): The connection for queries.
        sql (Dict[str, str]): SQL source of each table.
        schema (Dict[str, TableSchema]): Declared schema of each table.
        files (List[Path], optional): Files that must not change meanwhile.
    """

    def __init__(
        self,
        database: Any,
        sql: dict[str, str],
        schema: dict[str, TableSchema],
        files: list[Path] | None = None,
    ):
        self.database, self.sql, self.schema = database, sql, schema
        self._files = {path: _stamp(path) for path in files or []}

    @property
    def num_bytes(self) -> int:
        """The size of all files."""
        return sum(size for size, _ in self._files.values())

    def columns(self, table: str) -> dict[str, str]:
        """Returns the type of each column of a table, in their order."""
        query = f'DESCRIBE SELECT * FROM {self.sql[table]}'
        rows = self.database.execute(query).fetchall()
        return {name: kind for name, kind, *_ in rows}

    def num_rows(self, table: str) -> int:
        """Returns the number of rows of a table."""
        query = f'SELECT count(*) FROM {self.sql[table]}'
        return self.database.execute(query).fetchall()[0][0]

    def refuse(self, table: str, column: str, wrong: str, rule: str) -> None:
        """Raises an error if a condition is true in a row of a table.

        Args:
            table (str): The table.
            column (str): The column that the condition is about.
            wrong (str): The condition in SQL.
            rule (str): What the column must satisfy, for the error.

        Raises:
            ValueError: If a row satisfies the condition, or a value cannot be
                read.
        """
        what = f'from_tables: column {column!r} of table {table!r} {rule}'
        query = (
            'SELECT id, value FROM (SELECT row_number() OVER () - 1 AS id, '
            f'{quoted(column)}::VARCHAR AS value, {wrong} AS wrong FROM '
            f'{self.sql[table]}) WHERE wrong ORDER BY id LIMIT 1'
        )
        try:
            found = self.database.execute(query).fetchall()
        except import_duckdb().ConversionException as error:
            raise ValueError(f'{what}: {error}') from error
        if found:
            row, value = found[0]
            raise ValueError(f'{what} (got {value!r} in row {row})')

    def check_unchanged(self) -> None:
        """Raises an error if a file has changed since it was opened.

        Raises:
            RuntimeError: If one has changed.
        """
        for path, stamp in self._files.items():
            if _stamp(path) != stamp:
                raise RuntimeError(
                    f'from_tables: {path} was changed while it was read'
                )


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def quoted(name: str) -> str:
    """Returns a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def parquet(paths: list[Path]) -> str:
    """Returns an SQL source of the rows of some files."""
    # DuckDB reads a name as a pattern; a set of one character is itself.
    plain = (re.sub(r'([*?\[])', r'[\1]', str(path)) for path in paths)
    names = ', '.join(map(literal, plain))
    return f'read_parquet([{names}], hive_partitioning=false)'


@contextmanager
def open_source(
    tables: Any, manifest: Any, memory_limit: int, folder: str
) -> Iterator[Source]:
    """Opens tables for a context.

    Args:
        tables (Path or Dict[str, Path]): See :func:`from_tables`.
        manifest (Dict or Path, optional): Replaces the declared schemas.
        memory_limit (int): Memory limit of DuckDB in bytes.
        folder (str): Folder to which DuckDB spills.

    Raises:
        ImportError: If DuckDB or PyArrow is missing.
        MemoryError: If DuckDB needs more than ``memory_limit``.
        OSError: If a file cannot be read, or is locked.
        TypeError: If ``tables`` has another type.
        ValueError: If a manifest is invalid, or files of a table differ.
    """
    known = None if manifest is None else read_manifest(manifest)
    with connect('from_tables', memory_limit, folder) as database:
        source = _open(database, tables, known)
        if not source.schema:
            raise ValueError(
                'from_tables: there must be a table (got none in the '
                f'manifest, or in {tables}: a folder has *.parquet files)'
            )
        if source.num_bytes > _SMALL:
            database.execute('RESET threads')
        yield source


@contextmanager
def connect(name: str, memory_limit: int, folder: str) -> Iterator[Any]:
    """Opens an in-memory database that spills to a folder.

    Raises:
        ImportError: If DuckDB or PyArrow is missing.
        MemoryError: If DuckDB needs more than ``memory_limit``.
        OSError: If a file cannot be read or written.
        ValueError: If a file is damaged.
    """
    duckdb = import_duckdb()
    config = {
        'threads': 1,
        'memory_limit': f'{max(memory_limit // 1024, 1024)}KiB',
        'temp_directory': folder,
        'preserve_insertion_order': True,
        'autoinstall_known_extensions': False,
        'autoload_known_extensions': False,
    }
    with (
        duckdb_errors(name, memory_limit),
        duckdb.connect(config=config) as database,
    ):
        database.execute("SET TimeZone = 'UTC'")
        yield database


def import_duckdb() -> Any:
    """Returns DuckDB.

    Raises:
        ImportError: If it or PyArrow is missing.
    """
    try:
        import duckdb
        import pyarrow  # noqa: F401  (for query results)
    except ImportError as error:
        raise ImportError(
            'from_tables: DuckDB and PyArrow are needed: '
            "`pip install 'torch_gsample[relational]'`"
        ) from error
    return duckdb


def _open(
    database: Any, tables: Any, known: dict[str, TableSchema] | None
) -> Source:
    if isinstance(tables, Mapping):
        files = {
            str(name): [
                path_argument('from_tables', 'tables', p)
                for p in (
                    paths if isinstance(paths, list | tuple) else [paths]
                )
            ]
            for name, paths in tables.items()
        }
        return _open_parquet(database, files, known)
    if not isinstance(tables, str | os.PathLike):
        raise TypeError(
            "from_tables: 'tables' must be a path, or paths by table (got "
            f'{type(tables).__name__})'
        )
    path = Path(tables)
    if path.is_dir():
        return _open_folder(database, path, known)
    with path.open('rb') as file:
        head = file.read(16)
    if head.startswith(b'SQLite format 3\0'):
        sql, schema = copy_sqlite(database, path, known)
        return Source(database, sql, _replaced(schema, known), [path])
    if head[8:12] == b'DUCK':
        return _open_duckdb(database, path, known)
    raise ValueError(
        f'from_tables: {path} must be a folder of Parquet files, a '
        'DuckDB or an SQLite database (it is none of them)'
    )


def _replaced(
    declared: dict[str, TableSchema], known: dict[str, TableSchema] | None
) -> dict[str, TableSchema]:
    """Returns the manifest's schemas if there is one, else declared ones."""
    for name in known or ():
        if name not in declared:
            raise ValueError(
                f'from_tables: table {name!r} of the manifest must exist '
                f'(there are {sorted(declared)[:20]})'
            )
    return declared if known is None else with_declared_keys(known, declared)


def _open_duckdb(
    database: Any, path: Path, known: dict[str, TableSchema] | None
) -> Source:
    try:
        database.execute(f'ATTACH {literal(str(path))} AS source (READ_ONLY)')
    except import_duckdb().Error as error:
        raise OSError(f'from_tables: {path}: {error}') from error
    rows = database.execute(
        'SELECT schema_name, table_name FROM duckdb_tables() WHERE '
        "database_name = 'source' ORDER BY table_oid"
    ).fetchall()
    names = [name for _, name in rows]
    if len(set(names)) < len(names):
        raise ValueError(
            f'from_tables: {path} must not have a table name in two schemas'
        )
    sql = {t: f'source.{quoted(s)}.{quoted(t)}' for s, t in rows}
    keys: dict[str, list[str]] = {}
    foreign: dict[str, list[ForeignKey]] = {}
    for table, kind, columns, other, others in database.execute(
        'SELECT table_name, constraint_type, constraint_column_names, '
        'referenced_table, referenced_column_names '
        'FROM duckdb_constraints() WHERE '
        "database_name = 'source' ORDER BY constraint_index"
    ).fetchall():
        if kind == 'PRIMARY KEY':
            keys[table] = columns
        elif kind == 'FOREIGN KEY' and other:
            key = ForeignKey(tuple(columns), other, tuple(others))
            foreign.setdefault(table, []).append(key)
    known_columns: dict[str, list[str]] = {}
    for table, column in database.execute(
        'SELECT table_name, column_name FROM duckdb_columns() WHERE '
        "database_name = 'source'"
    ).fetchall():
        known_columns.setdefault(table, []).append(column)
    schema = {
        name: TableSchema(
            tuple(keys.get(name, ())),
            foreign_keys=tuple(foreign.get(name, ())),
        )
        for name in names
    }
    schema = same_case(schema, known_columns)
    return Source(database, sql, _replaced(schema, known), [path])


def _open_folder(
    database: Any, folder: Path, known: dict[str, TableSchema] | None
) -> Source:
    if known is None and (folder / MANIFEST).exists():
        known = read_manifest(folder / MANIFEST)
    files = {p.stem: [p] for p in sorted(folder.glob('*.parquet'))}
    for name, table in (known or {}).items():
        if table.files:
            files[name] = [_inside(folder, name, file) for file in table.files]
    if not files and (others := sorted(p.name for p in folder.iterdir())):
        raise ValueError(
            f'from_tables: folder {folder} must have *.parquet files (it has '
            f'{others[:20]}); convert CSV by DuckDB: COPY (FROM '
            "'user.csv') TO 'user.parquet'"
        )
    return _open_parquet(database, files, known)


def _inside(folder: Path, table: str, file: str) -> Path:
    path = folder / file
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(
            f'from_tables: the file of table {table!r} must be in {folder} '
            f'(got {file!r})'
        )
    return path


def _open_parquet(
    database: Any,
    files: dict[str, list[Path]],
    known: dict[str, TableSchema] | None,
) -> Source:
    import pyarrow.parquet as pq

    sql, schema = {}, {}
    for name, paths in files.items():
        if known is not None and name not in known:
            continue
        if not paths:
            raise ValueError(f'from_tables: table {name!r} must have a file')
        first: Any = None
        for path in paths:
            try:
                found = pq.read_schema(path)
            except (ValueError, TypeError) as error:
                raise ValueError(
                    f'from_tables: {path} must be a Parquet file: {error}'
                ) from error
            first = first or found
            _check_alike(name, paths[0], first, path, found)
        schema[name] = _declared_by(first.metadata or {}, name)
        sql[name] = parquet(paths)
    every = [path for name in sql for path in files[name]]
    return Source(database, sql, _replaced(schema, known), every)


def _check_alike(
    table: str, first: Path, want: Any, path: Path, got: Any
) -> None:
    """Checks that the files of a table have the same columns."""
    if want.names != got.names:
        raise ValueError(
            f'from_tables: the files of table {table!r} must have the same '
            f'columns ({first} has {want.names}, {path} has {got.names})'
        )
    for field, other in zip(want, got, strict=True):
        if field.type != other.type:
            raise TypeError(
                f'from_tables: column {field.name!r} of table {table!r} must '
                f'have one type ({first} has {field.type}, {path} has '
                f'{other.type})'
            )


def _declared_by(metadata: Mapping[bytes, bytes], table: str) -> TableSchema:
    """Returns the schema that RelBench writes into a Parquet file."""

    def read(name: bytes) -> Any:
        try:
            return json.loads(metadata[name]) if name in metadata else None
        except (ValueError, RecursionError):
            raise ValueError(
                f'from_tables: the Parquet file of table {table!r} must have '
                f'JSON in its metadata {name.decode()!r}'
            ) from None

    entry = {
        'key': read(b'pkey_col'),
        'time': read(b'time_col'),
        'foreign_keys': read(b'fkey_col_to_pkey_table'),
    }
    return read_manifest({'tables': {table: entry}})[table]
