"""Columns of a table as tensors, by inferred type."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.relational.sources import Source, quoted

_ROWS = 1 << 16
_NO_TIME = -(1 << 63)
_TIMES = 'DATE', 'TIMESTAMP'
#: Dtype of columns of each kind.
DTYPES = {'num': np.float32, 'cat': np.int64, 'stamp': np.int64}
#: Value of null.
NULLS = {'num': float('nan'), 'cat': -1, 'stamp': _NO_TIME}
_NUMBERS = (
    'BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER '
    'UBIGINT HUGEINT UHUGEINT FLOAT DOUBLE'
).split()


@dataclass
class Values:
    """The non-key columns of a table, by kind.

    Args:
        num (torch.Tensor): float32 ``[rows, len(num_names)]``; NaN is null.
        cat (torch.Tensor): int64 ``[rows, len(cat_names)]``, an index in
            ``categories``; -1 is null.
        stamp (torch.Tensor): int64 ``[rows, len(stamp_names)]``, microseconds
            since 1970 in UTC; the least int64 is null.
        num_names (List[str]): The names of columns of ``num``.
        cat_names (List[str]): Likewise for ``cat``.
        stamp_names (List[str]): Likewise for ``stamp``.
        categories (Dict[str, List[str]]): The values of each column of
            ``cat``, ascending.
        skipped (Dict[str, str]): Columns without a kind, and the reason.
    """

    num: Tensor
    cat: Tensor
    stamp: Tensor
    num_names: list[str] = field(default_factory=list)
    cat_names: list[str] = field(default_factory=list)
    stamp_names: list[str] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


class ValueReader:
    """Reads the non-key columns of a table piece by piece.

    Args:
        source (Source): The tables.
        table (str): The table.
        columns (Dict[str, str]): Its columns and their types.
        max_categories (int): Text columns with more values are skipped.
        known (Dict[str, List[str]], optional): The categories of columns in
            earlier rows; new values follow them. Other text columns are
            skipped.

    Attributes:
        names (Dict[str, List[str]]): The columns of ``num``, ``cat`` and
            ``stamp``.
        categories (Dict[str, List[str]]): See :class:`Values`.
        skipped (Dict[str, str]): See :class:`Values`.
    """

    def __init__(
        self,
        source: Source,
        table: str,
        columns: dict[str, str],
        max_categories: int,
        known: dict[str, list[str]] | None = None,
    ):
        self._source, self._table = source, table
        self.names: dict[str, list[str]] = {'num': [], 'cat': [], 'stamp': []}
        self.categories: dict[str, list[str]] = {}
        self.skipped: dict[str, str] = {}
        for name, kind in columns.items():
            if kind.endswith(']'):  # a list of numbers, texts or times
                self.skipped[name] = f'the type {kind}'
            elif kind in _NUMBERS or kind.startswith('DECIMAL'):
                self.names['num'].append(name)
            elif kind.startswith(_TIMES):
                source.refuse(
                    table,
                    name,
                    f'isfinite({quoted(name)}) AND '
                    f'try_cast({quoted(name)} AS TIMESTAMP) IS NULL',
                    'must be microseconds in int64',
                )
                self.names['stamp'].append(name)
            elif kind == 'VARCHAR' or kind.startswith('ENUM'):
                self._read_text(name, max_categories, known)
            else:
                self.skipped[name] = f'the type {kind}'

    def _read_text(
        self, name: str, most: int, known: dict[str, list[str]] | None
    ) -> None:
        own = known is not None and name in known
        found = None
        if own or known is None:
            limit = '' if own else f'LIMIT {most + 1}'
            rows = self._source.database.execute(
                f'SELECT DISTINCT {quoted(name)}::VARCHAR AS value FROM '
                f'{self._source.sql[self._table]} WHERE {quoted(name)} IS '
                f'NOT NULL {limit}'
            ).fetchall()
            found = sorted(value for (value,) in rows)
        if found is None or (len(found) > most and not own):
            self.skipped[name] = f'a text with over {most} values'
            return
        old = (known or {}).get(name, [])
        seen = set(old)
        self.categories[name] = [*old, *(v for v in found if v not in seen)]
        self.names['cat'].append(name)

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields ``num``, ``cat`` and ``stamp`` of rows, in their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        casts = {
            'num': '{}::DOUBLE',
            'cat': '{}::VARCHAR',
            'stamp': f'coalesce(epoch_us({{}}), {_NO_TIME})',
        }
        columns = [
            (kind, i, name)
            for kind, names in self.names.items()
            for i, name in enumerate(names)
        ]
        if not columns:
            return
        parts = ', '.join(casts[k].format(quoted(n)) for k, _, n in columns)
        query = f'SELECT {parts} FROM {self._source.sql[self._table]}'
        text = pa.string()
        sets = {n: pa.array(c, text) for n, c in self.categories.items()}
        for batch in self._source.database.sql(query).to_arrow_reader(_ROWS):
            out = self.empty(batch.num_rows)
            pairs = zip(batch.columns, columns, strict=True)
            for column, (kind, i, name) in pairs:
                if kind == 'cat':
                    codes = pc.index_in(column, sets[name], skip_nulls=True)
                    column = pc.fill_null(codes, -1)
                elif kind == 'num':
                    column = pc.fill_null(column, float('nan'))
                out[kind][:, i] = column.to_numpy(zero_copy_only=False)
            yield out

    def empty(self, num_rows: int) -> dict[str, np.ndarray]:
        """Returns uninitialised arrays for rows."""
        return {
            kind: np.empty((num_rows, len(names)), DTYPES[kind])
            for kind, names in self.names.items()
        }

    def read(self, num_rows: int) -> Values:
        """Returns the columns of all rows."""
        out, first = self.empty(num_rows), 0
        for piece in self.pieces():
            last = first + len(piece['num'])
            for kind, array in piece.items():
                out[kind][first:last] = array
            first = last
        parts: list[Any] = [torch.from_numpy(array) for array in out.values()]
        parts += [*self.names.values(), self.categories, self.skipped]
        return Values(*parts)
