"""Columns of a table as tensors, by types that are inferred."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.relational.sources import Source, quoted

_ROWS = 1 << 16
_NO_TIME = -(1 << 63)
_TIMES = 'DATE', 'TIMESTAMP'
_NUMBERS = (
    'BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER '
    'UBIGINT HUGEINT UHUGEINT FLOAT DOUBLE'
).split()


@dataclass
class Values:
    """The columns of a table that are no keys, by their kind.

    Args:
        num (torch.Tensor): float32 ``[rows, len(num_names)]``; NaN is null.
        cat (torch.Tensor): int64 ``[rows, len(cat_names)]``, an index in
            ``categories``; -1 is null.
        stamp (torch.Tensor): int64 ``[rows, len(stamp_names)]``, microseconds
            since 1970 in UTC; the least int64 is null.
        num_names (List[str]): The names of columns of ``num``.
        cat_names (List[str]): Of ``cat``.
        stamp_names (List[str]): Of ``stamp``.
        categories (Dict[str, List[str]]): The values of each column of
            ``cat``, ascending.
        skipped (Dict[str, str]): Columns that are in none, and why.
    """

    num: Tensor
    cat: Tensor
    stamp: Tensor
    num_names: list[str] = field(default_factory=list)
    cat_names: list[str] = field(default_factory=list)
    stamp_names: list[str] = field(default_factory=list)
    categories: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def read_values(
    source: Source,
    table: str,
    columns: dict[str, str],
    num_rows: int,
    max_categories: int,
) -> Values:
    """Reads columns of a table.

    Args:
        source (Source): The tables.
        table (str): The table.
        columns (Dict[str, str]): Its columns and their types.
        num_rows (int): Number of its rows.
        max_categories (int): A text with more values is skipped.
    """
    kinds: dict[str, list[str]] = {'num': [], 'cat': [], 'stamp': []}
    categories: dict[str, list[str]] = {}
    skipped: dict[str, str] = {}
    for name, kind in columns.items():
        if kind in _NUMBERS or kind.startswith('DECIMAL'):
            kinds['num'].append(name)
        elif kind.startswith(_TIMES):
            kinds['stamp'].append(name)
        elif kind == 'VARCHAR' or kind.startswith('ENUM'):
            found = _categories(source, table, name, max_categories)
            if found is None:
                skipped[name] = f'a text with over {max_categories} values'
            else:
                kinds['cat'].append(name)
                categories[name] = found
        else:
            skipped[name] = f'the type {kind}'
    arrays = {
        'num': np.empty((num_rows, len(kinds['num'])), np.float32),
        'cat': np.empty((num_rows, len(kinds['cat'])), np.int64),
        'stamp': np.empty((num_rows, len(kinds['stamp'])), np.int64),
    }
    _fill(source, table, kinds, categories, arrays)
    num, cat, stamp = (torch.from_numpy(a) for a in arrays.values())
    names = kinds['num'], kinds['cat'], kinds['stamp']
    return Values(num, cat, stamp, *names, categories, skipped)


def _categories(
    source: Source, table: str, name: str, most: int
) -> list[str] | None:
    rows = source.database.execute(
        f'SELECT DISTINCT {quoted(name)}::VARCHAR AS value FROM '
        f'{source.sql[table]} WHERE value IS NOT NULL LIMIT {most + 1}'
    ).fetchall()
    return None if len(rows) > most else sorted(value for (value,) in rows)


def _fill(
    source: Source,
    table: str,
    kinds: dict[str, list[str]],
    categories: dict[str, list[str]],
    arrays: dict[str, Any],
) -> None:
    """Reads all columns batch by batch, in the order of rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    casts = {
        'num': '{}::DOUBLE',
        'cat': '{}::VARCHAR',
        'stamp': f'coalesce(epoch_us({{}}), {_NO_TIME})',
    }
    wanted = [(k, i, n) for k, of in kinds.items() for i, n in enumerate(of)]
    if not wanted:
        return
    parts = ', '.join(casts[k].format(quoted(n)) for k, _, n in wanted)
    query = f'SELECT {parts} FROM {source.sql[table]}'
    sets = {n: pa.array(c, pa.string()) for n, c in categories.items()}
    first = 0
    for batch in source.database.sql(query).to_arrow_reader(_ROWS):
        last = first + batch.num_rows
        for column, (kind, i, name) in zip(batch.columns, wanted, strict=True):
            if kind == 'cat':
                codes = pc.index_in(column, sets[name], skip_nulls=True)
                column = pc.fill_null(codes, -1)
            elif kind == 'num':
                column = pc.fill_null(column, float('nan'))
            arrays[kind][first:last, i] = column.to_numpy(zero_copy_only=False)
        first = last
