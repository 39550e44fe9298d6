"""Prediction tasks: rows, times and labels."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.relational.inputs import (
    Tables,
    num_rows,
    read_column,
    row_times,
)
from torch_gsample.relational.tables import RelationalData
from torch_gsample.relational.times import NEVER
from torch_gsample.relational.values import NULLS, Values


@dataclass(frozen=True, eq=False)
class EntityTask:
    """A label of a row at a time.

    Args:
        table (str): The table of the rows.
        row (torch.Tensor): int64 ``[n]``, its rows.
        time (torch.Tensor): int64 ``[n]``; later rows are excluded.
        label (torch.Tensor, optional): ``[n, ...]``.
        hidden (Tuple[str, ...], optional): Columns of the table that are null
            in the rows of the task, in their batches.

    Raises:
        TypeError: If rows or times are not int64.
        ValueError: If lengths differ.
    """

    table: str
    row: Tensor
    time: Tensor
    label: Tensor | None = None
    hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_items('EntityTask', row=self.row, time=self.time)
        if self.label is not None and len(self.label) != len(self.row):
            raise ValueError(
                f"EntityTask: 'label' must have {len(self.row)} items, one "
                f'for each row (got {len(self.label)})'
            )

    def check(self, tables: Tables) -> None:
        """Checks that the rows exist at their times.

        Raises:
            IndexError: If a row is out of range.
            ValueError: If the table does not exist, or a row is later than
                its time: the error names the item.
        """
        check_rows(tables, 'row', self.table, self.row, self.time)
        for column in self.hidden:
            find_column(tables.values[self.table], self.table, column)


def autocomplete(
    tables: Tables,
    table: str,
    column: str,
    rows: Tensor | None = None,
    *,
    also_hidden: tuple[str, ...] = (),
) -> EntityTask:
    """Creates the task of predicting a column.

    A row is predicted at its own time, from earlier rows. In its batch, its
    cell is null; other rows keep their values, which were known.

    Args:
        tables (RelationalData or TableFolder): The database.
        table (str): The table.
        column (str): The column. Labels are its numbers, codes of categories
            or microseconds.
        rows (torch.Tensor, optional): int64 ``[n]``; default: all. Rows with a
            null value or without a time are skipped.
        also_hidden (Tuple[str, ...], optional): Further columns that reveal
            the value.

    Raises:
        IndexError: If a row is out of range.
        ValueError: If the table or column does not exist.

    Example:
        >>> task = autocomplete(tables, 'review', 'stars')  # doctest: +SKIP
    """
    if table not in tables.schema:
        raise ValueError(
            f'autocomplete: there is no table {table!r} (there are '
            f'{sorted(tables.schema)[:20]})'
        )
    values = tables.values[table]
    kind, i = find_column(values, table, column)
    if rows is None:
        rows = torch.arange(num_rows(tables, table))
    label = read_column(getattr(values, kind), i, rows)
    null = label.isnan() if kind == 'num' else label == NULLS[kind]
    time = torch.full_like(rows, NEVER - 1)
    times = row_times(tables, table)
    if times is not None:
        time = times[rows]
    kept = ~null & (time != NEVER)
    hidden = column, *also_hidden
    return EntityTask(table, rows[kept], time[kept], label[kept], hidden)


def find_column(values: Values, table: str, column: str) -> tuple[str, int]:
    """Returns the kind of a column, and its index within the kind.

    Raises:
        ValueError: If the column does not exist.
    """
    for kind in ('num', 'cat', 'stamp'):
        names = getattr(values, f'{kind}_names')
        if column in names:
            return kind, names.index(column)
    raise ValueError(
        f'EntityTask: table {table!r} must have a column {column!r}, not '
        f'a key (it has {[*values.num_names, *values.cat_names]})'
    )


@dataclass(frozen=True, eq=False)
class LinkTask:
    """Pairs of rows that belong together from a time on.

    Args:
        tables (Tuple[str, str]): The tables of sources and destinations.
        src (torch.Tensor): int64 ``[n]``, the anchors.
        dst (torch.Tensor): int64 ``[n]``, the recommended rows.
        time (torch.Tensor): int64 ``[n]``; later rows are excluded.
        num_negatives (int, optional): Number of negative destinations per
            anchor.

    Raises:
        TypeError: If rows or times are not int64.
        ValueError: If lengths differ, or a count is negative.
    """

    tables: tuple[str, str]
    src: Tensor
    dst: Tensor
    time: Tensor
    num_negatives: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.tables, (tuple, list)) or len(self.tables) != 2:
            raise TypeError(
                "LinkTask: 'tables' must be the tables of sources and "
                f'destinations (got {self.tables!r})'
            )
        _check_items('LinkTask', src=self.src, dst=self.dst, time=self.time)
        _check.count('LinkTask', 'num_negatives', self.num_negatives, 0)

    def check(self, tables: Tables) -> None:
        """Checks that both rows of each pair exist at its time.

        Raises:
            IndexError: If a row is out of range.
            ValueError: See :meth:`EntityTask.check`.
        """
        for name, table, row in zip(
            ('src', 'dst'), self.tables, (self.src, self.dst), strict=True
        ):
            check_rows(tables, name, table, row, self.time)


def _check_items(op: str, **items: Tensor) -> None:
    """Checks that ids and times are int64 vectors of one length."""
    for name, value in items.items():
        _check.check_tensor(op, name, value)
        if value.dtype != torch.int64 or value.dim() != 1:
            raise TypeError(
                f"{op}: '{name}' must be int64, a vector (got {value.dtype} "
                f'{list(value.shape)})'
            )
    (first, values), *others = items.items()
    for name, value in others:
        if len(value) != len(values):
            raise ValueError(
                f"{op}: '{name}' must have {len(values)} items, as '{first}' "
                f'has (got {len(value)})'
            )


def check_rows(
    tables: Tables, name: str, table: str, row: Tensor, time: Tensor
) -> None:
    """Checks that rows exist in their table at a time.

    Raises:
        IndexError: If a row is out of range.
        ValueError: If the table does not exist, or a row is later than its
            time.
    """
    if table not in tables.schema:
        raise ValueError(
            f'RelationalLoader: there is no table {table!r} (there are '
            f'{sorted(tables.schema)[:20]})'
        )
    count, times = num_rows(tables, table), row_times(tables, table)
    wrong = (row < 0) | (row >= count)
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0])
        raise IndexError(
            f"RelationalLoader: '{name}' must be in [0, {count}) (got "
            f'{int(row[i])} in item {i})'
        )
    _warn_if_early(tables, time)
    if times is None:
        return
    late = times[row] > time
    if bool(late.any()):
        i = int(late.nonzero()[0])
        raise ValueError(
            f"RelationalLoader: '{name}' must not be later than 'time' (row "
            f'{int(row[i])} of table {table!r} has time '
            f'{int(times[row[i]])}, item {i} has {int(time[i])})'
        )


def _warn_if_early(tables: Tables, time: Tensor) -> None:
    """Warns if no table has a row as early as a task, as by a wrong unit."""
    if not isinstance(tables, RelationalData) or not time.numel():
        return
    known = [row_times(tables, table) for table in tables.schema]
    firsts = [int(x.min()) for x in known if x is not None and x.numel()]
    if firsts and int(time.max()) < min(firsts):
        unit = '' if tables.time_kind == 'integer' else ' microseconds'
        warnings.warn(
            "RelationalLoader: all rows with times are later than 'time', "
            f'so batches have none (the last is {int(time.max())}, the first '
            f'row has {min(firsts)}{unit})',
            stacklevel=5,
        )
