"""Times of rows as int64, and their checks.

Timestamps become microseconds since 1970 in UTC; integers do not change.
"""

from typing import Any

from torch_gsample.relational.sources import Source, quoted

#: Time of a row whose time is null: no seed sees it.
NEVER = (1 << 63) - 1
#: Types of times with and without a zone.
ZONED = 'TIMESTAMP WITH TIME ZONE'
NAIVE = 'TIMESTAMP', 'DATE', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS'
#: Types of integers.
INTEGERS = (
    'TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT '
    'HUGEINT UHUGEINT'
).split()
#: A text in ISO 8601, of whole microseconds, and its time zone.
_TEXT = (
    r'[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}'
    r'([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?)?'
)
_OFFSET = r'(Z|[+-][0-9]{2}(:?[0-9]{2})?)'


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
        if kind in INTEGERS:
            self.kind = 'integer'
            self.sql = f'try_cast({name} AS BIGINT)'
            self._refuse(
                f'{name} IS NOT NULL AND ({self.sql} IS NULL OR '
                f'{self.sql} IN ({NEVER}, {-NEVER - 1}))',
                'must be in int64',
            )
        elif kind in NAIVE or kind == ZONED:
            self.kind = 'zoned' if kind == ZONED else 'naive'
            to = kind if kind == ZONED else 'TIMESTAMP'
            self.sql = f'epoch_us(try_cast({name} AS {to}))'
            self._refuse(f'NOT isfinite({name})', 'must be finite')
            self._refuse(
                f'{name} IS NOT NULL AND {self.sql} IS NULL',
                'must be microseconds in int64',
            )
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
        zoned = f"regexp_full_match({name}, '{_TEXT}{_OFFSET}')"
        self._refuse(
            f"NOT regexp_full_match({name}, '{_TEXT}{_OFFSET}?')",
            'must be a time in ISO 8601, in whole microseconds',
        )
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
        self._source.refuse(self._table, self._column, wrong, rule)


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
            f'timestamps without a zone or timestamps with one (got {both}); '
            'convert one of them by SQL'
        )
