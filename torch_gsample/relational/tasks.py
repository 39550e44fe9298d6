"""What is predicted of rows, and when: tables of entities, times, labels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample.relational.tables import RelationalData


@dataclass(frozen=True, eq=False)
class EntityTask:
    """A label of a row at a time.

    Args:
        table (str): The table of the rows.
        row (torch.Tensor): int64 ``[n]``, its rows.
        time (torch.Tensor): int64 ``[n]``: nothing later is seen.
        label (torch.Tensor, optional): ``[n, ...]``.
    """

    table: str
    row: Tensor
    time: Tensor
    label: Tensor | None = None

    def check(self, tables: RelationalData) -> None:
        """Checks that the rows are there at their times.

        Raises:
            IndexError: If there is no such row.
            ValueError: If there is no such table, lengths differ, or a row is
                later than its time: the error names the item.
        """
        check_rows(tables, 'row', self.table, self.row, self.time)
        if self.label is not None and len(self.label) != len(self.row):
            raise ValueError(
                f"EntityTask: 'label' must have {len(self.row)} items, one "
                f'for each row (got {len(self.label)})'
            )


@dataclass(frozen=True, eq=False)
class LinkTask:
    """Pairs of rows that belong together from a time on.

    Args:
        tables (Tuple[str, str]): The tables of sources and destinations.
        src (torch.Tensor): int64 ``[n]``, the anchors.
        dst (torch.Tensor): int64 ``[n]``, what is recommended to each.
        time (torch.Tensor): int64 ``[n]``: nothing later is seen.
        num_negatives (int, optional): Further destinations of each anchor.
    """

    tables: tuple[str, str]
    src: Tensor
    dst: Tensor
    time: Tensor
    num_negatives: int = 1

    def check(self, tables: RelationalData) -> None:
        """Checks that both rows of each pair are there at its time.

        Raises:
            IndexError: If there is no such row.
            ValueError: As of :meth:`EntityTask.check`.
        """
        for name, table, row in zip(
            ('src', 'dst'), self.tables, (self.src, self.dst), strict=True
        ):
            check_rows(tables, name, table, row, self.time)


def check_rows(
    tables: RelationalData, name: str, table: str, row: Tensor, time: Tensor
) -> None:
    """Checks that rows are in their table, and there at a time.

    Raises:
        IndexError: If there is no such row.
        TypeError: If one is no integer.
        ValueError: If there is no such table, lengths differ, or a row is
            later than its time.
    """
    if table not in tables.schema:
        raise ValueError(
            f'RelationalLoader: there is no table {table!r} (there are '
            f'{sorted(tables.schema)[:20]})'
        )
    for what, value in ((name, row), ('time', time)):
        if value.dtype != torch.int64 or value.shape != (len(row),):
            raise TypeError(
                f"RelationalLoader: '{what}' must be int64 of shape "
                f'[{len(row)}] (got {value.dtype} {list(value.shape)})'
            )
    store = tables.data[table]
    count = store.num_nodes
    wrong = (row < 0) | (row >= count)
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0])
        raise IndexError(
            f"RelationalLoader: '{name}' must be in [0, {count}) (got "
            f'{int(row[i])} in item {i})'
        )
    if 'time' not in store:
        return
    late = store.time[row] > time
    if bool(late.any()):
        i = int(late.nonzero()[0])
        raise ValueError(
            f"RelationalLoader: '{name}' must not be later than 'time' (row "
            f'{int(row[i])} of table {table!r} is of '
            f'{int(store.time[row[i]])}, item {i} of {int(time[i])})'
        )
