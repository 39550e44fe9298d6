"""Tables as a graph: rows are nodes, foreign keys are edges with times."""

import tempfile
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from torch_gsample.memory import bytes_of
from torch_gsample.owned_folder import owned_folder
from torch_gsample.relational.keys import KeyTable
from torch_gsample.relational.parent_times import take_times, warn_of_untimed
from torch_gsample.relational.schema import TableSchema, checked_schema
from torch_gsample.relational.sources import Source, open_source
from torch_gsample.relational.times import TimeColumn, kind_of
from torch_gsample.relational.values import ValueReader, Values


@dataclass(frozen=True, eq=False)
class RelationalData:
    """A database as a graph.

    Args:
        data (HeteroData): A node for each row, with ``time`` if its table has
            times, and ``num``, ``cat`` and ``stamp`` of :class:`Values`; and
            both directions of each foreign key as relations
            ``(table, columns, other table)`` and
            ``(other table, 'rev_' + columns, table)``, whose edges have the
            ``time`` of the referring row.
        schema (Dict[str, TableSchema]): The keys and times of each table.
        values (Dict[str, Values]): The columns of each table.
        report (Dict[str, Dict]): By table and foreign key, as
            ``'post.author'``, the number of ``edges`` and of ``null`` and
            ``dangling`` values, with an ``example`` (row and value) of the
            latter; and by table, as ``'post'``, ``rows``, ``null_times``, and
            the ``skipped`` columns.
        time_kind (str, optional): ``'naive'`` or ``'zoned'`` for microseconds
            since 1970 in UTC, ``'integer'``, or None without times.
    """

    data: HeteroData
    schema: dict[str, TableSchema]
    values: dict[str, Values]
    report: dict[str, dict[str, Any]]
    time_kind: str | None
    keys: dict[str, Any] = field(repr=False, default_factory=dict)

    def __repr__(self) -> str:
        rows = (f'{t}={self.data[t].num_nodes}' for t in self.schema)
        keys = sum(len(t.foreign_keys) for t in self.schema.values())
        return f'RelationalData({", ".join(rows)}, foreign_keys={keys})'

    def keys_of(self, table: str, rows: Tensor) -> list[Any]:
        """Returns the keys of rows, as tuples if they have several columns.

        Args:
            table (str): The table.
            rows (torch.Tensor): int64 ``[n]``, its rows.

        Raises:
            KeyError: If the table does not exist.
            IndexError: If a row is out of range.
            ValueError: If the table has no key.
        """
        columns = self._keys(table)
        count = columns.num_rows
        if rows.numel() and not (
            int(rows.min()) >= 0 and int(rows.max()) < count
        ):
            raise IndexError(
                f"RelationalData.keys_of: 'rows' must be in [0, {count}) "
                f'(got {int(rows.min())} to {int(rows.max())})'
            )
        taken = columns.take(rows.cpu().numpy())
        values = [column.to_pylist() for column in taken.columns]
        if len(values) == 1:
            return values[0]
        return list(zip(*values, strict=True))

    def rows_of(self, table: str, keys: list[Any]) -> Tensor:
        """Returns the rows of keys, int64 ``[n]``, -1 for unknown keys.

        Args:
            table (str): The table.
            keys (List): Its keys, as tuples if they have several columns.

        Raises:
            KeyError: If the table does not exist.
            ValueError: If the table has no key.
        """
        columns = self._keys(table)
        if table not in self._rows:
            values = [column.to_pylist() for column in columns.columns]
            own = values[0] if len(values) == 1 else zip(*values, strict=True)
            self._rows[table] = {key: i for i, key in enumerate(own)}
        known = self._rows[table]
        return torch.tensor([known.get(key, -1) for key in keys]).long()

    _rows: dict[str, dict[Any, int]] = field(
        repr=False, init=False, default_factory=dict
    )

    def _keys(self, table: str) -> Any:
        if self.keys[table] is None:
            raise ValueError(
                f'RelationalData: table {table!r} must have a key (it has '
                'none)'
            )
        return self.keys[table]


def from_tables(
    tables: Any,
    manifest: Any = None,
    *,
    memory_limit: int | str = '4GiB',
    max_categories: int = 1000,
    dangling: str = 'report',
) -> RelationalData:
    """Creates a graph from tables with keys.

    Rows become nodes, in the order of their table, and foreign keys become
    relations in both directions. DuckDB maps keys of any type to rows, and
    spills to disk beyond ``memory_limit``; the result is in memory. Keys are
    declared by the database (DuckDB, SQLite), by the Parquet files that
    RelBench writes (Robinson et al., `"RelBench: A Benchmark for Deep Learning
    on Relational Databases" <https://arxiv.org/abs/2407.20060>`_), or by a
    ``manifest``.

    Args:
        tables (Path or Dict[str, Path]): A DuckDB or SQLite database; a folder
            of Parquet files, one per table, with an optional
            ``manifest.json``; or a dictionary of Parquet file(s) by table.
        manifest (Dict or Path, optional): The tables to read, with their keys
            and times, instead of the declared ones; see :func:`read_manifest`.
            Databases declare no times. A table without keys in the manifest
            has the declared ones.
        memory_limit (int or str, optional): Memory of DuckDB.
        max_categories (int, optional): Text columns with more distinct values
            are skipped.
        dangling (str, optional): ``'report'`` counts foreign keys without a
            matching key, which have no edge; ``'error'`` raises.

    Raises:
        ImportError: If DuckDB or PyArrow is missing.
        OSError: If a file cannot be read, or is locked.
        RuntimeError: If a file changed during the call.
        TypeError: If columns have incompatible types.
        ValueError: If the manifest is invalid, a key is null or repeated, or a
            time is invalid; the error has table, column and row.

    Example:
        >>> import duckdb, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     database = duckdb.connect(f'{folder}/shop.duckdb')
        ...     for query in (
        ...         'CREATE TABLE person (name VARCHAR PRIMARY KEY)',
        ...         'CREATE TABLE buy (who VARCHAR, day DATE)',
        ...         "INSERT INTO person VALUES ('ann'), ('bob')",
        ...         "INSERT INTO buy VALUES ('bob', '2024-01-31')",
        ...     ):
        ...         _ = database.execute(query)
        ...     database.close()
        ...     shop = from_tables(
        ...         f'{folder}/shop.duckdb',
        ...         {
        ...             'tables': {
        ...                 'person': {'key': 'name'},
        ...                 'buy': {
        ...                     'time': 'day',
        ...                     'foreign_keys': {'who': 'person'},
        ...                 },
        ...             }
        ...         },
        ...     )
        >>> shop.data['buy', 'who', 'person'].edge_index
        tensor([[0],
                [1]])
        >>> shop.keys_of('person', torch.tensor([1]))
        ['bob']
    """
    check_dangling('from_tables', dangling)
    if isinstance(memory_limit, str):
        memory_limit = bytes_of(memory_limit, "from_tables: 'memory_limit'")
    with (
        owned_folder(tempfile.gettempdir(), 'gsample-tables-') as folder,
        open_source(tables, manifest, memory_limit, str(folder)) as source,
    ):
        out = _read(source, max_categories)
        source.check_unchanged()
    check_dangling('from_tables', dangling, out.report)
    return out


def check_dangling(
    name: str, dangling: str, report: dict[str, Any] | None = None
) -> None:
    """Checks the argument ``dangling``, and the keys if it is ``'error'``.

    Raises:
        ValueError: If it is neither value, or keys dangle with ``'error'``.
    """
    if dangling not in ('report', 'error'):
        raise ValueError(
            f"{name}: 'dangling' must be 'report' or 'error' (got "
            f'{dangling!r})'
        )
    for key, found in (report or {}).items():
        if dangling == 'error' and found.get('dangling'):
            example = found['example']
            raise ValueError(
                f'{name}: {key} must refer to rows ({found["dangling"]} '
                f'values do not, first {example["value"]} in row '
                f'{example["row"]})'
            )


@dataclass
class Staged:
    """Tables of a source, with checked keys and times.

    Args:
        source (Source): The tables.
        schema (Dict[str, TableSchema]): Their keys and times.
        keys (Dict[str, KeyTable]): Of each table.
        values (Dict[str, ValueReader]): Of each table.
        time_kind (str, optional): See :class:`RelationalData`.
    """

    source: Source
    schema: dict[str, TableSchema]
    keys: dict[str, KeyTable]
    values: dict[str, ValueReader]
    time_kind: str | None

    @classmethod
    def read(cls, source: Source, max_categories: int) -> 'Staged':
        """Stages all tables of a source."""
        columns = {name: source.columns(name) for name in source.schema}
        schema = checked_schema(source.schema, columns)
        times = time_columns(source, schema, columns)
        keys, values = {}, {}
        for name, table in schema.items():
            own = columns[name]
            keys[name] = KeyTable(source, name, table, own, times.get(name))
            plain = plain_columns(table, own)
            values[name] = ValueReader(source, name, plain, max_categories)
        take_times('from_tables', keys)
        warn_of_untimed(keys)
        kind = kind_of(times) or ('naive' if times else None)
        return cls(source, schema, keys, values, kind)

    def report(self, table: str) -> dict[str, Any]:
        """Returns counts of the rows of a table."""
        return {
            'rows': self.keys[table].num_rows,
            'null_times': self.keys[table].null_times,
            'skipped': self.values[table].skipped,
        }


def time_columns(
    source: Source,
    schema: dict[str, TableSchema],
    columns: dict[str, dict[str, str]],
) -> dict[str, TimeColumn]:
    """Returns the times of tables with times.

    Raises:
        TypeError: If a column does not hold times.
        ValueError: If a value is invalid.
    """
    out = {}
    for name, table in schema.items():
        if table.time is not None:
            kind = columns[name][table.time]
            zone = table.time_zone
            out[name] = TimeColumn(source, name, table.time, kind, zone)
    return out


def plain_columns(
    schema: TableSchema, columns: dict[str, str]
) -> dict[str, str]:
    """Returns the columns that are neither keys nor the time."""
    linked = {c for key in schema.foreign_keys for c in key.columns}
    linked |= {*schema.key, schema.time or ''}
    return {c: kind for c, kind in columns.items() if c not in linked}


def _read(source: Source, max_categories: int) -> RelationalData:
    """Reads all tables into memory."""
    staged = Staged.read(source, max_categories)
    data = HeteroData()
    report: dict[str, dict[str, Any]] = {}
    values = {}
    for name, table in staged.keys.items():
        own = values[name] = staged.values[name].read(table.num_rows)
        store = data[name]
        store.num_nodes = table.num_rows
        if table.timed:
            store.time = table.times()
        store.num, store.cat, store.stamp = own.num, own.cat, own.stamp
        report[name] = staged.report(name)
    for table in staged.keys.values():
        _read_edges(table, staged.keys, data, report)
    keys = {name: table.key_rows() for name, table in staged.keys.items()}
    return RelationalData(
        data, staged.schema, values, report, staged.time_kind, keys
    )


def _read_edges(
    table: KeyTable,
    tables: dict[str, KeyTable],
    data: HeteroData,
    report: dict[str, dict[str, Any]],
) -> None:
    """Reads both directions of the foreign keys of a table."""
    name = table.table
    for i, key in enumerate(table.schema.foreign_keys):
        edges, found = table.edges(i, tables[key.table])
        report[f'{name}.{key.name}'] = found
        forward = data[name, key.name, key.table]
        backward = data[key.table, f'rev_{key.name}', name]
        forward.edge_index, backward.edge_index = edges, edges.flip(0)
        if 'time' in data[name]:
            forward.time = data[name].time[edges[0]]
            backward.time = forward.time
