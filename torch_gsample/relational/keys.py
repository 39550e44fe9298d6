"""Rows of a table as integers, by their keys, and edges between them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.relational.schema import ForeignKey, TableSchema
from torch_gsample.relational.sources import Source, quoted
from torch_gsample.relational.times import NEVER, TimeColumn

_ROWS = 1 << 18  # of a batch that comes back from DuckDB


class KeyTable:
    """The keys and times of a table, staged in the order of its rows.

    Args:
        source (Source): The tables.
        table (str): The table.
        schema (TableSchema): Its keys.
        time (TimeColumn, optional): Its times.

    Attributes:
        num_rows (int): Number of its rows.

    Raises:
        ValueError: If a key is null, or in two rows.
    """

    def __init__(
        self,
        source: Source,
        table: str,
        schema: TableSchema,
        time: TimeColumn | None,
    ):
        self.table, self.schema = table, schema
        self._database = source.database
        self._sql = quoted(f'keys of {table}')
        self._time = time is not None
        parts = [f'{quoted(c)} AS {k}' for k, c in self._named('k')]
        for i, foreign in enumerate(schema.foreign_keys):
            columns = enumerate(foreign.columns)
            parts += [f'{quoted(c)} AS f{i}_{j}' for j, c in columns]
        if time is not None:
            parts.append(f'{time.sql} AS time')
        self._execute(
            f'CREATE TEMP TABLE {self._sql} AS SELECT '
            f'row_number() OVER () - 1 AS id{"".join(f", {p}" for p in parts)}'
            f' FROM {source.sql[table]}'
        )
        self.num_rows: int = self._one(f'SELECT count(*) FROM {self._sql}')[0]
        if schema.key:
            self._check_keys()

    def _named(self, prefix: str) -> list[tuple[str, str]]:
        return [(f'{prefix}{i}', c) for i, c in enumerate(self.schema.key)]

    def _execute(self, query: str) -> Any:
        return self._database.execute(query)

    def _one(self, query: str) -> Any:
        # All rows: DuckDB runs one query at a time.
        rows = self._execute(query).fetchall()
        return rows[0] if rows else None

    def _check_keys(self) -> None:
        names = [name for name, _ in self._named('k')]
        what = f'the key {list(self.schema.key)} of table {self.table!r}'
        null = ' OR '.join(f'{name} IS NULL' for name in names)
        found = self._one(
            f'SELECT min(id), count(*) FROM {self._sql} WHERE {null}'
        )
        if found[1]:
            raise ValueError(
                f'from_tables: {what} must not be null (it is in {found[1]} '
                f'rows, first in row {found[0]})'
            )
        by = ', '.join(names)
        found = self._one(
            f'SELECT min(id), max(id), {by} FROM {self._sql} GROUP BY {by} '
            'HAVING count(*) > 1 ORDER BY 1 LIMIT 1'
        )
        if found is not None:
            raise ValueError(
                f'from_tables: {what} must be in one row (got '
                f'{list(found[2:])} in rows {found[0]} and {found[1]})'
            )

    def times(self) -> tuple[Tensor | None, int]:
        """Returns the time of each row, and how many have none."""
        if not self._time:
            return None, 0
        nulls = self._one(
            f'SELECT count(*) FROM {self._sql} WHERE time IS NULL'
        )[0]
        query = f'SELECT coalesce(time, {NEVER}) FROM {self._sql} ORDER BY id'
        return self._fetch(query, self.num_rows, 1)[0], nulls

    def edges(
        self, number: int, parent: 'KeyTable'
    ) -> tuple[Tensor, dict[str, Any]]:
        """Returns the rows of a foreign key, and the rows they refer to.

        Args:
            number (int): Which foreign key of the schema.
            parent (KeyTable): The table that it refers to.

        Returns:
            Tuple[torch.Tensor, Dict[str, Any]]: int64 ``[2, num_edges]``, in
            the order of rows; and how many values are null or dangle.

        Raises:
            TypeError: If the types of both keys cannot be compared.
        """
        key = self.schema.foreign_keys[number]
        names = [f'f{number}_{j}' for j in range(len(key.columns))]
        self._check_types(key, names, parent)
        on = ' AND '.join(f'c.{f} = p.k{j}' for j, f in enumerate(names))
        both = f'{self._sql} AS c JOIN {parent._sql} AS p ON {on}'
        whole = ' AND '.join(f'c.{f} IS NOT NULL' for f in names)
        known = self._one(
            f'SELECT count(*) FROM {self._sql} AS c WHERE {whole}'
        )
        found = self._one(f'SELECT count(*) FROM {both}')
        report = {
            'edges': found[0],
            'null': self.num_rows - known[0],
            'dangling': known[0] - found[0],
        }
        if report['dangling']:
            values = ', '.join(f'c.{f}' for f in names)
            row, *value = self._one(
                f'SELECT c.id, {values} FROM {self._sql} AS c LEFT JOIN '
                f'{parent._sql} AS p ON {on} WHERE {whole} AND p.id IS NULL '
                'ORDER BY c.id LIMIT 1'
            )
            report['example'] = {'row': row, 'value': value}
        query = f'SELECT c.id, p.id FROM {both} ORDER BY c.id'
        return self._fetch(query, found[0], 2), report

    def _check_types(
        self, key: ForeignKey, names: list[str], parent: 'KeyTable'
    ) -> None:
        own, other = self._types(), parent._types()
        for j, (name, column) in enumerate(
            zip(names, key.columns, strict=True)
        ):
            kinds = own[name], other[f'k{j}']
            texts = [kind == 'VARCHAR' or 'ENUM' in kind for kind in kinds]
            if texts[0] != texts[1]:
                raise TypeError(
                    f'from_tables: column {column!r} of table {self.table!r} '
                    f'must have the type of the key of {parent.table!r}, '
                    f'{kinds[1]} (got {kinds[0]})'
                )

    def _types(self) -> dict[str, str]:
        rows = self._execute(f'DESCRIBE {self._sql}').fetchall()
        return {name: kind for name, kind, *_ in rows}

    def _fetch(self, query: str, count: int, width: int) -> Tensor:
        """Returns the columns of a query: they alone are in memory at once."""
        out = np.empty((width, count), dtype=np.int64)
        first = 0
        for batch in self._database.sql(query).to_arrow_reader(_ROWS):
            last = first + batch.num_rows
            for i in range(width):
                out[i, first:last] = batch.column(i).to_numpy()
            first = last
        return torch.from_numpy(out)

    def key_rows(self) -> Any:
        """Returns the key of each row as an Arrow table, None without one."""
        if not self.schema.key:
            return None
        columns = ', '.join(f'{k} AS {quoted(c)}' for k, c in self._named('k'))
        query = f'SELECT {columns} FROM {self._sql} ORDER BY id'
        return self._database.sql(query).to_arrow_table()
