"""A converted folder of tables: a graph on disk and rows in files."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_gsample.path_argument import path_argument
from torch_gsample.relational.row_files import (
    TABLES,
    keys_file,
    read_description,
    rows_file,
)
from torch_gsample.relational.sources import import_duckdb, parquet
from torch_gsample.relational.values import Values
from torch_gsample.storage import ChunkedGraph, DiskFeatureStore, FeatureFile
from torch_gsample.storage.replaced import read_whole
from torch_gsample.storage.row_source import JoinedRows, RowSource


class TableFolder:
    """Tables written by :func:`convert_tables`, read from disk.

    It is a snapshot of the folder: reopen it to see rows appended later. After
    :func:`compact_tables`, files opened before remain readable; keys and
    samplers that have not read anything yet raise a ``RuntimeError``.

    Args:
        path (str or Path): The folder.
        verify (str, optional): See :class:`ChunkedGraph`.

    Attributes:
        version (int): Number of appends, including compacted ones.
        graph (ChunkedGraph): Rows as nodes, keys as edges.
        features (DiskFeatureStore): ``num``, ``cat`` and ``stamp`` of tables,
            and ``time``, which is in memory.
        schema (Dict[str, TableSchema]): The keys and times of each table.
        values (Dict[str, Values]): The columns of each table; ``num``, ``cat``
            and ``stamp`` are read by ``values.num[rows]``.
        report (Dict[str, Dict]): See :class:`RelationalData`.
        time_kind (str, optional): See :class:`RelationalData`.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If a file is damaged or violates the format.
    """

    def __init__(self, path: str | Path, *, verify: str = 'once'):
        self.path = path_argument('TableFolder', 'path', path)
        try:
            read_whole(self.path, lambda: self._read(verify))
        except FileNotFoundError as error:
            if Path(error.filename or '').parent != self.path:
                raise
            text = (
                "TableFolder: 'path' must be a folder of convert_tables (got "
                f'{self.path}), which has this file'
            )
            raise type(error)(error.errno, text, error.filename) from None

    def _read(self, verify: str) -> None:
        self.graph = ChunkedGraph(self.path, verify=verify)
        self._folders = [self.path, *self.graph.segment_folders]
        fields, self.schema = read_description(self._folders[-1])
        self.fields = fields
        self.version: int = fields['appends'] or len(self._folders) - 1
        self.report: dict[str, dict[str, Any]] = fields['report']
        self.time_kind: str | None = fields['time_kind']
        rows = {name: t['rows'] for name, t in fields['tables'].items()}
        if rows != self.graph.num_nodes:
            raise ValueError(
                f'TableFolder: {self._folders[-1] / TABLES} must have the '
                f'rows of its graph, {self.graph.num_nodes} (got {rows})'
            )
        self.values: dict[str, Values] = {}
        self.features = DiskFeatureStore()
        self.times = self.graph.node_times()
        for i, name in enumerate(self.schema):
            self.values[name] = self._read_values(i, name, verify)
            if name in self.times:
                self.features.put_tensor(self.times[name], name, 'time', None)
        # Errors of contents name more than that of the checksum.
        self.graph.check_file(self._folders[-1] / TABLES)

    def _read_values(self, number: int, name: str, verify: str) -> Values:
        entry = self.fields['tables'][name]
        parts: list[Any] = []
        kinds = 'num', 'cat', 'stamp'
        for kind in kinds:
            names = entry['names'][kind]
            dtype = torch.float32 if kind == 'num' else torch.int64
            if not names:
                none = torch.empty(entry['rows'], 0, dtype=dtype)
                self.features.put_tensor(none, name, kind, None)
                parts.append(none)
                continue
            files = self.files(rows_file(number, kind))
            rows: list[RowSource] = [
                FeatureFile(file, verify=verify) for file in files
            ]
            for file in files:
                self.graph.check_file(file)
            part = rows[0] if len(rows) == 1 else JoinedRows(rows)
            want = (entry['rows'], len(names)), dtype
            if (tuple(part.shape), part.dtype) != want:
                raise ValueError(
                    f'TableFolder: files up to {files[-1]} must have rows of '
                    f'{want} (got {tuple(part.shape)}, {part.dtype})'
                )
            self.features.put_tensor(part, name, kind, None)
            parts.append(part)
        parts += [entry['names'][kind] for kind in kinds]
        parts += [entry['categories'], entry['skipped']]
        return Values(*parts)

    @property
    def data(self) -> tuple[DiskFeatureStore, ChunkedGraph]:
        """The data of loaders: features and graph."""
        return self.features, self.graph

    def num_rows(self, table: str) -> int:
        """Returns the number of rows of a table."""
        return self.graph.num_nodes[table]

    def keys_sql(self, table: str) -> str:
        """Returns an SQL query for ``id``, ``k0``, ... of all rows.

        Raises:
            ValueError: If the table has no key, or a file is damaged.
        """
        if not self.schema[table].key:
            raise ValueError(
                f'TableFolder: table {table!r} must have a key (it has none)'
            )
        number = list(self.schema).index(table)
        return self.rows_sql(keys_file(number))

    def rows_sql(self, name: str) -> str:
        """Returns an SQL source of the rows of the files of a name.

        Raises:
            ValueError: If a file is damaged.
        """
        files = self.files(name)
        for file in files:
            self.graph.check_file(file)
        return parquet(files)

    def files(self, name: str) -> list[Path]:
        """Returns the files of a name: the graph's, then appended ones."""
        return [folder / name for folder in self._folders]

    def keys_of(self, table: str, rows: Tensor) -> list[Any]:
        """Returns the keys of rows; see :meth:`RelationalData.keys_of`."""
        count = self.num_rows(table)
        if (
            rows.numel()
            and not 0 <= int(rows.min()) <= int(rows.max()) < count
        ):
            raise IndexError(
                f"TableFolder.keys_of: 'rows' must be in [0, {count}) "
                f'(got {int(rows.min())} to {int(rows.max())})'
            )
        found = self._look_up(table, {'id': rows.tolist()}, 'key')
        return [key[0] if len(key) == 1 else key for key in found]

    def rows_of(self, table: str, keys: list[Any]) -> Tensor:
        """Returns the rows of keys; see :meth:`RelationalData.rows_of`."""
        width = len(self.schema[table].key)
        parts = [keys] if width == 1 else zip(*keys, strict=True)
        named = {f'k{j}': list(part) for j, part in enumerate(parts)}
        found = self._look_up(table, named, 'id') if keys else []
        return torch.tensor([row[0] for row in found], dtype=torch.int64)

    def _look_up(self, table: str, by: dict[str, list[Any]], want: str) -> Any:
        """Looks up keys in the key files of a table, by one scan."""
        import pyarrow as pa

        known = self.keys_sql(table)
        width = len(self.schema[table].key)
        names = ', '.join(f't.k{j}' for j in range(width))
        names = 'coalesce(t.id, -1)' if want == 'id' else names
        on = ' AND '.join(f't.{name} = w.{name}' for name in by)
        wanted = pa.table({**by, 'place': range(len(next(iter(by.values()))))})
        try:
            with import_duckdb().connect() as database:
                database.register('wanted', wanted)
                return database.execute(
                    f'SELECT {names} FROM wanted AS w LEFT JOIN {known} AS t '
                    f'ON {on} ORDER BY w.place'
                ).fetchall()
        finally:
            self.graph.check_current()

    def __repr__(self) -> str:
        rows = {name: self.num_rows(name) for name in self.schema}
        return f'{type(self).__name__}({str(self.path)!r}, {rows})'
