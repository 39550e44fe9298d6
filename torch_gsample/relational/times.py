"""Times of rows as int64, and their checks.

Timestamps become microseconds since 1970 in UTC; integers do not change.
"""

from typing import Any

from torch_gsample.relational.sources import Source, quoted

#: Time of a row whose time is null: no seed sees it.
NEVER = (1 << 63) - 1
_ZONED = 'TIMESTAMP WITH TIME ZONE'
_NAIVE = 'TIMESTAMP', 'DATE', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS'
_INTEGERS = (
    'TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT '
    'HUGEINT UHUGEINT'
).split()
#: Suffix of a text with a time zone.
_OFFSET = r'(Z|[+-][0-9]{2}(:?[0-9]{2})?)$'


class TimeColumn:
    """A column of times of a table.

    Args:
        source (Source): The tables.
        table (str): The table.
        column (str): The column.
        kind (str): Its type.

    Attributes:
        sql (str): An expression for its time, NULL without one.
        kind (str): ``'integer'``, ``'naive'`` (without a zone) or ``'zoned'``.

    Raises:
        TypeError: If the column does not hold times.
        ValueError: If a value is not a time; the error has table, column, row
            and value.
    """

    def __init__(self, source: Source, table: str, column: str, kind: str):
        self._source, self._table, self._column = source, table, column
        name = quoted(column)
        if kind in _INTEGERS:
            self.kind = 'integer'
            self.sql = f'try_cast({name} AS BIGINT)'
            self._refuse(
                f'{name} IS NOT NULL AND ({self.sql} IS NULL OR '
                f'{self.sql} IN ({NEVER}, {-NEVER - 1}))',
                'must be in int64',
            )
        elif kind in _NAIVE or kind == _ZONED:
            self.kind = 'zoned' if kind == _ZONED else 'naive'
            self.sql = f'epoch_us({name})'
            self._refuse(f'NOT isfinite({name})', 'must be finite')
            if kind == 'TIMESTAMP_NS':
                self._refuse(
                    f'epoch_ns({name}) % 1000 <> 0',
                    'must be whole microseconds',
                )
        elif kind == 'VARCHAR':
            self._read_text(name)
        else:
            raise TypeError(
                f'from_tables: column {column!r} of table {table!r} must hold '
                f'timestamps, dates, integers or texts of them (got {kind})'
            )

    def _read_text(self, name: str) -> None:
        """Reads texts in ISO 8601, either all with a time zone or none."""
        zoned = f"regexp_matches({name}, '{_OFFSET}') AND length({name}) > 10"
        counts = self._source.database.execute(
            f'SELECT count(*) FILTER ({zoned}), count({name}) '
            f'FROM {self._source.sql[self._table]}'
        ).fetchall()[0]
        self.kind = 'zoned' if counts[0] else 'naive'
        if 0 < counts[0] < counts[1]:
            self._refuse(
                f'NOT ({zoned})', 'must have a zone in all rows or in none'
            )
        to = 'TIMESTAMPTZ' if counts[0] else 'TIMESTAMP'
        self.sql = f'epoch_us(try_cast({name} AS {to}))'
        self._refuse(
            f'{name} IS NOT NULL AND (try_cast({name} AS {to}) IS NULL OR '
            f'NOT isfinite(try_cast({name} AS {to})))',
            'must be a time',
        )

    def _refuse(self, wrong: str, rule: str) -> None:
        name = quoted(self._column)
        found = self._source.database.execute(
            'SELECT id, value FROM (SELECT row_number() OVER () - 1 AS id, '
            f'{name}::VARCHAR AS value, {wrong} AS wrong FROM '
            f'{self._source.sql[self._table]}) WHERE wrong ORDER BY id LIMIT 1'
        ).fetchall()
        if found:
            row, value = found[0]
            raise ValueError(
                f'from_tables: column {self._column!r} of table '
                f'{self._table!r} {rule} (got {value!r} in row {row})'
            )


def check_alike(times: dict[str, Any]) -> None:
    """Checks that the times of tables can be compared.

    Args:
        times (Dict[str, TimeColumn]): By table.

    Raises:
        ValueError: If only some are integers, or have a time zone.
    """
    tables: dict[str, str] = {}
    for table, time in times.items():
        tables.setdefault(time.kind, table)
    if len(tables) > 1:
        both = ', '.join(f'{k} in {t!r}' for k, t in tables.items())
        raise ValueError(
            f'from_tables: times of all tables must be of one kind: integers, '
            f'timestamps without a zone or timestamps with one (got {both})'
        )
