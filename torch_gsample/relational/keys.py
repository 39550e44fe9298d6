"""Maps keys of rows to integers, and foreign keys to edges."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.relational.schema import TableSchema
from torch_gsample.relational.sources import Source, literal, quoted
from torch_gsample.relational.times import (
    INTEGERS,
    NAIVE,
    NEVER,
    ZONED,
    TimeColumn,
)

_ROWS = 1 << 18  # of a batch from DuckDB
#: The first integer after which a floating-point number skips some.
_EXACT = {'FLOAT': 1 << 24, 'DOUBLE': 1 << 53}


def _staged(what: str, table: str) -> str:
    """Returns the name of a temporary table.

    Names of tables may differ only in case, which DuckDB ignores.
    """
    return quoted(f'{what} of {table.encode().hex()}')


def _group(kind: str) -> str:
    """Returns the types that values of a type can be compared with."""
    if kind == 'VARCHAR' or re.fullmatch(r'ENUM\(.*\)', kind, re.DOTALL):
        return 'text'
    if (kind in NAIVE and kind != 'TIMESTAMP_NS') or kind == ZONED:
        return 'time'
    if kind in _EXACT:
        return 'float'
    whole = re.fullmatch(r'DECIMAL\([0-9]+,0\)|BOOLEAN', kind)
    return 'integer' if whole or kind in INTEGERS else kind


class KeyTable:
    """The keys and times of a table, staged in the order of its rows.

    Args:
        source (Source): The tables.
        table (str): The table.
        schema (TableSchema): Its keys.
        columns (Dict[str, str]): The type of each of its columns.
        time (TimeColumn, optional): Its times.
        first (int, optional): Id of its first row.
        known (str, optional): SQL source of the keys of earlier rows, with the
            columns of :attr:`key_names`.

    Attributes:
        first (int): Id of its first row.
        columns (Dict[str, str]): The type of each of its columns.
        num_rows (int): Number of its rows.
        null_times (int): Number of its rows without a time.

    Raises:
        ValueError: If a key is null, or occurs in two rows.
    """

    def __init__(
        self,
        source: Source,
        table: str,
        schema: TableSchema,
        columns: dict[str, str],
        time: TimeColumn | None,
        first: int = 0,
        known: str | None = None,
    ):
        self.table, self.schema = table, schema
        self.timed = time is not None
        self.columns, self.first = columns, first
        self._database, self._known = source.database, known
        self.sql = _staged('keys', table)
        parts = [f'{self._exact(c)} AS {k}' for k, c in self._named('k')]
        for i, foreign in enumerate(schema.foreign_keys):
            named = enumerate(foreign.columns)
            parts += [f'{self._exact(c)} AS f{i}_{j}' for j, c in named]
        if time is not None:
            parts.append(f'{time.sql} AS time')
        self._execute(
            f'CREATE TEMP TABLE {self.sql} AS SELECT row_number() OVER () - 1 '
            f'+ {first} AS id{"".join(f", {p}" for p in parts)} '
            f'FROM {source.sql[table]}'
        )
        null = ' OR '.join(f'{k} IS NULL' for k, _ in self._named('k'))
        null = null or 'false'
        timed = 'count(time)' if self.timed else 'count(*)'
        found = self._one(
            f'SELECT count(*), {timed}, count(*) FILTER ({null}), '
            f'min(id) FILTER ({null}) FROM {self.sql}'
        )
        self.num_rows: int = found[0]
        self.null_times = found[0] - found[1]
        if schema.key:
            self._check_keys(*found[2:])

    def _exact(self, column: str) -> str:
        # A collation, as NOCASE, could make a value equal to two keys.
        text = ' COLLATE C' * (self.columns[column] == 'VARCHAR')
        return f'{quoted(column)}{text}'

    def _named(self, prefix: str) -> list[tuple[str, str]]:
        return [(f'{prefix}{i}', c) for i, c in enumerate(self.schema.key)]

    def _execute(self, query: str) -> Any:
        return self._database.execute(query)

    def _one(self, query: str) -> Any:
        # Fetch all rows: DuckDB runs one query at a time.
        rows = self._execute(query).fetchall()
        return rows[0] if rows else None

    @property
    def key_names(self) -> list[str]:
        """The staged columns that identify a row: its id, key and time."""
        keys = [name for name, _ in self._named('k')]
        return ['id', *keys, *(['time'] if self.timed else [])]

    @property
    def all_keys(self) -> str:
        """SQL source of the keys of all rows, including earlier ones."""
        if self._known is None:
            return self.sql
        names = ', '.join(self.key_names)
        return (
            f'(SELECT {names} FROM {self._known} UNION ALL '
            f'SELECT {names} FROM {self.sql})'
        )

    def _check_keys(self, nulls: int, row: int | None) -> None:
        what = f'the key {list(self.schema.key)} of table {self.table!r}'
        if nulls:
            raise ValueError(
                f'from_tables: {what} must not be null (it is in {nulls} '
                f'rows, first in row {row})'
            )
        names = [name for name, _ in self._named('k')]
        by = ', '.join(names)
        found = self._one(
            f'SELECT min(id), max(id), {by} FROM {self.sql} GROUP BY {by} '
            'HAVING count(*) > 1 ORDER BY 1 LIMIT 1'
        )
        if found is None and self._known is not None:
            on = ' AND '.join(f'o.{k} = n.{k}' for k in names)
            found = self._one(
                f'SELECT o.id, n.id, {", ".join(f"n.{k}" for k in names)} '
                f'FROM {self._known} AS o JOIN {self.sql} AS n ON {on} '
                'ORDER BY 2 LIMIT 1'
            )
        if found is not None:
            raise ValueError(
                f'from_tables: {what} must be unique (got '
                f'{list(found[2:])} in rows {found[0]} and {found[1]})'
            )

    def take_times(self, number: int, parent: 'KeyTable') -> None:
        """Gives each row the time of its row in another table.

        Args:
            number (int): Index of the foreign key in the schema.
            parent (KeyTable): The referenced table, with times.
        """
        self.check_types(number, parent)
        name = _staged('times', self.table)
        self._execute(
            f'CREATE TEMP TABLE {name} AS SELECT c.*, p.time FROM {self.sql} '
            f'AS c LEFT JOIN {parent.all_keys} AS p ON {self._on(number)} '
            'ORDER BY c.id'
        )
        self._execute(f'DROP TABLE {self.sql}')
        self._execute(f'ALTER TABLE {name} RENAME TO {self.sql}')
        self.timed = True
        query = f'SELECT count(*) - count(time) FROM {self.sql}'
        self.null_times = self._one(query)[0]

    def times(self) -> Tensor | None:
        """Returns the time of each row."""
        if not self.timed:
            return None
        out = np.empty(self.num_rows, np.int64)
        first = 0
        for piece in self.time_pieces():
            out[first : first + len(piece)] = piece
            first += len(piece)
        return torch.from_numpy(out)

    def time_pieces(self) -> Iterator[np.ndarray]:
        """Yields the times of rows as int64, in pieces."""
        query = f'SELECT coalesce(time, {NEVER}) FROM {self.sql} ORDER BY id'
        for batch in self.batches(query):
            yield batch.column(0).to_numpy()

    def edges(
        self, number: int, parent: 'KeyTable'
    ) -> tuple[Tensor, dict[str, Any]]:
        """Returns the edges of a foreign key: its rows and their parents.

        Args:
            number (int): Index of the foreign key in the schema.
            parent (KeyTable): The referenced table.

        Returns:
            Tuple[torch.Tensor, Dict[str, Any]]: int64 ``[2, num_edges]``, in
            the order of rows; and the numbers of null and dangling values.

        Raises:
            TypeError: If the types of both keys cannot be compared.
        """
        self.check_types(number, parent)
        # At most one edge per row; unwritten pages take no memory.
        out = np.empty((2, self.num_rows), dtype=np.int64)
        count = known = 0
        query = (
            f'SELECT c.id, p.id FROM {self.sql} AS c LEFT JOIN '
            f'{parent.all_keys} AS p ON {self._on(number)} WHERE '
            f'{self.whole(number)} ORDER BY c.id'
        )
        for batch in self.batches(query):
            known += batch.num_rows
            batch = batch.filter(batch.column(1).is_valid())
            last = count + batch.num_rows
            for i in range(2):
                out[i, count:last] = batch.column(i).to_numpy()
            count = last
        report = self.report(number, parent, known, count)
        if count < self.num_rows:
            out = out[:, :count].copy()
        return torch.from_numpy(out), report

    def stage_edges(
        self, number: int, parent: 'KeyTable', old: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Creates a table of the edges of a foreign key.

        Args:
            number (int): Index of the foreign key in the schema.
            parent (KeyTable): The referenced table.
            old (str, optional): SQL source of earlier rows with a dangling
                foreign key, in the form of staged ones.

        Returns:
            Tuple[str, Dict[str, Any]]: The table, with ``child``, ``parent``
            and, if tables have times, ``time`` and ``since``, the times from
            which the child and both rows exist; its ``rowid`` ascends by row.
            And the numbers of null and dangling values, as in :meth:`edges`,
            and of earlier ones that are ``resolved``.

        Raises:
            TypeError: If the types of both keys cannot be compared.
        """
        self.check_types(number, parent)
        name = _staged(f'edges {number}', self.table)
        own, other = (f'coalesce({of}.time, {NEVER})' for of in 'cp')
        times = [own] * self.timed, [own] * self.timed + [other] * parent.timed
        columns = ['c.id AS child', 'p.id AS parent']
        columns += [
            f'greatest({", ".join(of)}) AS {name}'
            for name, of in zip(('time', 'since'), times, strict=True)
            if of
        ]
        select = f'SELECT {", ".join(columns)} FROM'
        on = self._on(number)
        query = f'{select} {self.sql} AS c JOIN {parent.all_keys} AS p ON {on}'
        if old is not None:
            query += f' UNION ALL {select} {old} AS c JOIN {parent.sql} AS p '
            query += f'ON {on}'
        self._execute(f'CREATE TEMP TABLE {name} AS {query} ORDER BY child')
        known = self._one(
            f'SELECT count(*) FROM {self.sql} AS c WHERE {self.whole(number)}'
        )[0]
        found = self._one(
            f'SELECT count(*) FILTER (child >= {self.first}), count(*) FROM '
            f'{name}'
        )
        report = self.report(number, parent, known, found[0])
        report['resolved'] = found[1] - found[0]
        return name, report

    def _on(self, number: int) -> str:
        count = len(self.schema.foreign_keys[number].columns)
        return ' AND '.join(f'c.f{number}_{j} = p.k{j}' for j in range(count))

    def whole(self, number: int) -> str:
        """Returns the condition that no column of a foreign key is null."""
        count = len(self.schema.foreign_keys[number].columns)
        names = [f'c.f{number}_{j}' for j in range(count)]
        return ' AND '.join(f'{name} IS NOT NULL' for name in names)

    def dangling(self, number: int, parent: 'KeyTable') -> str:
        """Returns a query for staged rows with a dangling foreign key."""
        count = len(self.schema.foreign_keys[number].columns)
        values = [f'c.f{number}_{j}' for j in range(count)]
        values += ['c.time'] if self.timed else []
        return (
            f'SELECT c.id, {", ".join(values)} FROM {self.sql} AS c ANTI JOIN '
            f'{parent.all_keys} AS p ON {self._on(number)} WHERE '
            f'{self.whole(number)}'
        )

    def report(
        self, number: int, parent: 'KeyTable', known: int, found: int
    ) -> dict[str, Any]:
        """Returns the numbers of null and dangling values."""
        out: dict[str, Any] = {
            'edges': found,
            'null': self.num_rows - known,
            'dangling': known - found,
        }
        if out['dangling']:
            row, *value = self._one(
                f'{self.dangling(number, parent)} ORDER BY c.id LIMIT 1'
            )
            width = len(self.schema.foreign_keys[number].columns)
            out['example'] = {'row': row, 'value': value[:width]}
        return out

    def check_types(self, number: int, parent: 'KeyTable') -> None:
        """Checks that a foreign key and a key can be compared.

        Raises:
            TypeError: If their types cannot be compared exactly.
            ValueError: If a value is too large to compare an integer with a
                floating-point number.
        """
        columns = self.schema.foreign_keys[number].columns
        for j, column in enumerate(columns):
            kinds = self.columns[column], parent.columns[parent.schema.key[j]]
            groups = {_group(kind) for kind in kinds} - {'"NULL"'}
            if groups == {'integer', 'float'}:
                self._check_exact(column, f'f{number}_{j}', kinds)
            elif len(groups) > 1:
                raise TypeError(
                    f'from_tables: column {column!r} of table {self.table!r} '
                    f'must have the type of the key of {parent.table!r}, '
                    f'{kinds[1]} (got {kinds[0]})'
                )

    def _check_exact(
        self, column: str, name: str, kinds: tuple[str, str]
    ) -> None:
        """Checks that values are equal to one integer each."""
        most = min(_EXACT.get(kind, 1 << 53) for kind in kinds)
        found = self._one(
            f'SELECT id, {name} FROM {self.sql} WHERE isfinite({name}::DOUBLE)'
            f' AND abs({name}::DOUBLE) >= {most} ORDER BY id LIMIT 1'
        )
        if found is not None:
            raise ValueError(
                f'from_tables: column {column!r} of table {self.table!r} must '
                f'be between -{most} and {most}, to compare {kinds[0]} with '
                f'{kinds[1]} exactly (got {found[1]} in row {found[0]})'
            )

    def key_rows(self) -> Any:
        """Returns the key of each row as an Arrow table; None without key."""
        if not self.schema.key:
            return None
        columns = ', '.join(f'{k} AS {quoted(c)}' for k, c in self._named('k'))
        query = f'SELECT {columns} FROM {self.sql} ORDER BY id'
        return self._database.sql(query).to_arrow_table()

    def batches(self, query: str) -> Iterator[Any]:
        """Yields the rows of a query as Arrow batches."""
        yield from self._database.sql(query).to_arrow_reader(_ROWS)

    @contextmanager
    def stored(self, query: str) -> Iterator[str]:
        """Creates a table with the rows of a query, in their order."""
        name = _staged('rows', self.table)
        self._execute(f'CREATE TEMP TABLE {name} AS {query}')
        try:
            yield name
        finally:
            self._execute(f'DROP TABLE {name}')

    def copy_to(self, query: str, path: Path) -> None:
        """Writes the rows of a query to a Parquet file."""
        to = literal(str(path))
        self._execute(f'COPY ({query}) TO {to} (FORMAT parquet)')
