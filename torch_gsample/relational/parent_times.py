"""Times of rows from the rows that they refer to, as lines of an order."""

import inspect
import warnings
from typing import Any

from torch_gsample.relational.keys import KeyTable


def take_times(op: str, tables: dict[str, KeyTable]) -> None:
    """Gives rows the times of the rows that they refer to.

    Args:
        op (str): The function that reads them, for messages.
        tables (Dict[str, KeyTable]): All tables.

    Raises:
        ValueError: If a table takes times from one that has none.
    """
    waiting = {}
    for name, table in tables.items():
        for i, key in enumerate(table.schema.foreign_keys):
            if key.columns == table.schema.time_from:
                waiting[name] = i, key.table
    while waiting:
        ready = [n for n, (_, other) in waiting.items() if tables[other].timed]
        if not ready:
            ends = [n for n, (_, to) in waiting.items() if to not in waiting]
            name = (ends or [*waiting])[0]
            raise ValueError(
                f"{op}: 'time_from' of table {name!r} must refer to a "
                'table with times, and not in a circle (got '
                f'{waiting[name][1]!r})'
            )
        for name in ready:
            number, other = waiting.pop(name)
            tables[name].take_times(number, tables[other])
            _warn_of_dangling(op, tables[name], number, tables[other])


def warn_of_untimed(tables: dict[str, KeyTable]) -> None:
    """Warns of tables without times that refer to one with times."""
    for name, table in tables.items():
        for key in () if table.timed else table.schema.foreign_keys:
            if tables[key.table].timed:
                _warn(
                    f'from_tables: table {name!r} has no time, but refers to '
                    f'{key.table!r}, which has: its rows are always visible, '
                    'also before the row that they refer to. Name a time, or '
                    f"{{'tables': {{{name!r}: {{..., 'time_from': "
                    f'{_names(key.columns)}}}}}}}',
                )
                break


def _warn_of_dangling(
    op: str, table: KeyTable, number: int, parent: KeyTable
) -> None:
    """Warns of rows without a time, as they refer to no row."""
    query = table.dangling(number, parent)
    count = _number(table, f'SELECT count(*) FROM ({query})')
    if count:
        found = table.report(number, parent, count, 0)['example']
        key = _names(table.schema.foreign_keys[number].columns)
        _warn(
            f"{op}: 'time_from' of table {table.table!r} must refer to "
            f'rows: {count} of its {table.num_rows} rows are never visible, '
            f'because their {key} refers to none (first {found["value"]} in '
            f'row {found["row"]})'
        )


def _number(table: KeyTable, query: str) -> int:
    """Returns the only number of a query."""
    (number,) = (
        value.as_py()
        for batch in table.batches(query)
        for value in batch.column(0)
    )
    return int(number)


def _warn(text: str) -> None:
    """Warns at the line of the first caller outside of this package."""
    package = __name__.partition('.')[0]
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get('__name__', '').startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level + 1)


def _names(columns: tuple[str, ...]) -> Any:
    """Returns columns as a manifest has them."""
    return repr(columns[0] if len(columns) == 1 else list(columns))
