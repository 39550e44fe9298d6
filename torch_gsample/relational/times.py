"""Times of rows as int64, and their checks.

Timestamps become microseconds since 1970 in UTC; integers do not change.
"""

from torch_gsample.relational.iso_times import (
    is_text_of_time,
    is_text_with_zone,
)
from torch_gsample.relational.sources import (
    Source,
    import_duckdb,
    literal,
    quoted,
)

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


class TimeColumn:
    """A column of times of a table.

    Args:
        source (Source): The tables.
        table (str): The table.
        column (str): The column.
        kind (str): Its type.
        zone (str, optional): The time zone of times without one.

    Attributes:
        sql (str): An expression for its time, NULL without one.
        kind (str, optional): ``'integer'``, ``'naive'`` (without a zone) or
            ``'zoned'``; None for texts if all are null.

    Raises:
        TypeError: If the column does not hold times.
        ValueError: If a value is not a time (the error has table, column, row
            and value), or the zone is unknown or not needed.
    """

    def __init__(
        self,
        source: Source,
        table: str,
        column: str,
        kind: str,
        zone: str | None = None,
    ):
        self._source, self._table, self._column = source, table, column
        self._zone, self.kind = zone, None
        if zone is not None:
            self._check_zone(zone)
        self._read(quoted(column), kind)
        if zone is not None and self.kind not in ('naive', None):
            raise ValueError(
                f"from_tables: 'time_zone' of table {table!r} must be that of "
                f'times without one (column {column!r} has {self.kind} times)'
            )
        if zone is not None:
            self.kind = 'zoned'

    def _check_zone(self, zone: str) -> None:
        query = f"SELECT timezone({literal(zone)}, TIMESTAMP '1970-01-01')"
        try:
            self._source.database.execute(query)
        except import_duckdb().NotImplementedException:
            raise ValueError(
                f"from_tables: 'time_zone' of table {self._table!r} must be a "
                f"name such as 'UTC' or 'Europe/Berlin' (got {zone!r})"
            ) from None

    def _read(self, name: str, kind: str) -> None:
        """Finds the expression and the kind of a column of a type."""
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
            self.sql = self._microseconds(name, to)
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
                f'from_tables: column {self._column!r} of table '
                f'{self._table!r} must hold timestamps, dates, integers or '
                f'texts of them (got {kind})'
            )

    def _read_text(self, name: str) -> None:
        """Reads texts in ISO 8601, either all with a time zone or none."""
        zoned = is_text_with_zone(name)
        self._refuse(
            f'NOT {is_text_of_time(name)}',
            'must be a time in ISO 8601, in whole microseconds',
        )
        counts = self._source.database.execute(
            f'SELECT count(*) FILTER ({zoned}), count({name}) '
            f'FROM {self._source.sql[self._table]}'
        ).fetchall()[0]
        if counts[1]:
            self.kind = 'zoned' if counts[0] else 'naive'
        if 0 < counts[0] < counts[1]:
            self._refuse(
                f'NOT ({zoned})', 'must have a zone in all rows or in none'
            )
        to = 'TIMESTAMPTZ' if counts[0] else 'TIMESTAMP'
        self.sql = self._microseconds(name, to)
        self._refuse(
            f'{name} IS NOT NULL AND (try_cast({name} AS {to}) IS NULL OR '
            f'NOT isfinite(try_cast({name} AS {to})))',
            'must be a time',
        )

    def _microseconds(self, name: str, to: str) -> str:
        """Returns an expression for the time of a value of a type."""
        time = f'try_cast({name} AS {to})'
        if self._zone is not None and to == 'TIMESTAMP':
            time = f'try(timezone({literal(self._zone)}, {time}))'
        return f'epoch_us({time})'

    def _refuse(self, wrong: str, rule: str) -> None:
        self._source.refuse(self._table, self._column, wrong, rule)


def kind_of(times: dict[str, TimeColumn]) -> str | None:
    """Returns the kind of all times, after a check that they compare.

    Args:
        times (Dict[str, TimeColumn]): By table.

    Returns:
        str, optional: None if there are none, or all are null.

    Raises:
        ValueError: If only some are integers, or have a time zone.
    """
    tables: dict[str, list[str]] = {}
    for table, time in times.items():
        if time.kind is not None:
            tables.setdefault(time.kind, []).append(table)
    if len(tables) > 1:
        all_of = ', '.join(f'{k} in {t[:20]}' for k, t in tables.items())
        raise ValueError(
            f'from_tables: times of all tables must be of one kind: integers, '
            f'timestamps without a zone or timestamps with one (got {all_of}'
            '); '
            + (
                'convert some of them by SQL'
                if 'integer' in tables
                else f"name the zone of those without one: {{'tables': "
                f"{{{tables['naive'][0]!r}: {{..., 'time_zone': 'UTC'}}}}}}"
            )
        )
    return next(iter(tables), None)
