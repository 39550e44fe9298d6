"""Sorts edge files larger than memory with DuckDB's external sort.

Parquet, CSV or ``.npy`` files come in; a :class:`GraphSource` goes out.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.duckdb_errors import duckdb_errors
from torch_gsample.storage.sources import (
    Edges,
    GraphSource,
    RelationSource,
    as_paths,
    index_width,
)

_ROWS = 1 << 18  # rows of a batch from DuckDB
_READERS = {
    '.parquet': 'read_parquet',
    '.pq': 'read_parquet',
    '.csv': 'read_csv',
    '.tsv': 'read_csv',
    '.txt': 'read_csv',
    '.gz': 'read_csv',
    '.npy': None,
}


def file_source(
    data: Any,
    num_nodes: int | dict[str, int] | None,
    weight_attr: str | None,
    time_attr: str | None,
    columns: tuple[str, str] | None,
    memory_limit: int,
    folder: Path,
    progress: bool,
) -> GraphSource:
    """Reads edge files.

    Args:
        data (Path or List[Path] or Dict): The file(s), or those of each edge
            type.
        num_nodes (int or Dict, optional): Number of nodes (of each type); one
            more than the largest id if not given.
        weight_attr (str, optional): Name of the column of weights.
        time_attr (str, optional): Name of the column of times.
        columns (Tuple[str, str], optional): Names of the columns of sources
            and destinations; the first two if not given.
        memory_limit (int): Bytes that DuckDB may use.
        folder (Path): DuckDB's temporary folder.
        progress (bool): Whether to show progress.

    Raises:
        ImportError: If DuckDB or PyArrow is missing.
        MemoryError: If DuckDB needs more than ``memory_limit``.
        OSError: If a file cannot be read.
        TypeError: If a column has another type.
        ValueError: If a file is damaged; the error names it.
    """
    database = _connect(memory_limit, folder, progress)
    by_type = data if isinstance(data, dict) else {None: data}
    tables: dict[Any, _Table] = {}
    sizes: dict[Any, int] = {}
    for edge_type, given in by_type.items():
        paths = as_paths(given) or []
        files = ', '.join(map(str, paths))
        ends = (edge_type[0], edge_type[2]) if edge_type else (None, None)
        errors = partial(
            duckdb_errors, 'ChunkedGraph.write', memory_limit, files
        )
        with errors():
            table = _Table(
                database, paths, columns, weight_attr, time_attr, errors
            )
            found = table.largest()
        for node_type, largest in zip(ends, found, strict=True):
            sizes[node_type] = max(sizes.get(node_type, 0), largest + 1)
        tables[edge_type] = table
    if isinstance(num_nodes, dict):
        sizes.update(num_nodes)
    elif num_nodes is not None:
        sizes = dict.fromkeys(sizes, num_nodes)
    relations = [t.source(e, sizes) for e, t in tables.items()]
    return GraphSource(sizes, relations)


def _connect(memory_limit: int, folder: Path, progress: bool) -> Any:
    try:
        import duckdb
        import pyarrow  # noqa: F401  (how rows come back)
    except ImportError as error:
        raise ImportError(
            'ChunkedGraph.write: edge files need DuckDB and PyArrow: '
            "`pip install 'torch_gsample[storage]'`"
        ) from error
    database = duckdb.connect(
        config={
            'memory_limit': f'{memory_limit // 1024}KiB',
            'temp_directory': str(folder / 'sort'),
            'preserve_insertion_order': True,
            'autoinstall_known_extensions': False,
        }
    )
    database.execute(f'SET enable_progress_bar = {str(progress).lower()}')
    return database


class _Table:
    """The files of one edge type as a table of DuckDB."""

    def __init__(
        self,
        database: Any,
        paths: list[Path],
        columns: tuple[str, str] | None,
        weight_attr: str | None,
        time_attr: str | None,
        errors: Callable[[], AbstractContextManager[None]],
    ):
        self._database, self._paths = database, paths
        self._errors = errors
        if not paths:
            raise TypeError(
                "ChunkedGraph.write: 'data' must be a graph, a tensor, "
                'batches of edges, or paths of edge files'
            )
        for path in paths:
            os.stat(path)  # raises an error that names a missing file
        suffixes = {p.suffix.lower() for p in paths}
        if len(suffixes) > 1 or not suffixes <= set(_READERS):
            raise ValueError(
                'ChunkedGraph.write: edge files must be of one kind of '
                f'{sorted(_READERS)} (got {sorted(suffixes)})'
            )
        self._reader = _READERS[suffixes.pop()]
        names = self._names()
        wanted = [*(columns or names[:2])]
        wanted += [n for n in (weight_attr, time_attr) if n is not None]
        missing = [n for n in wanted if n not in names]
        if missing or len(names) < 2:
            raise ValueError(
                f'ChunkedGraph.write: {paths[0]} must have the columns '
                f'{wanted} (it has {names})'
            )
        quoted = ['"' + n.replace('"', '""') + '"' for n in wanted]
        self._row, self._col = quoted[:2]
        self._weight = quoted[2] if weight_attr is not None else None
        self._time = quoted[-1] if time_attr is not None else None
        self._check_types(dict(zip(wanted, quoted, strict=True)), weight_attr)

    def _from(self) -> tuple[str, list[Any]]:
        if self._reader is not None:
            return f'{self._reader}(?)', [[str(p) for p in self._paths]]
        self._database.register('edges', _read_npy(self._paths))
        return 'edges', []

    def _names(self) -> list[str]:
        table, values = self._from()
        return self._query(f'SELECT * FROM {table} LIMIT 0', values).columns

    def _query(self, query: str, values: list[Any]) -> Any:
        return self._database.sql(query, params=values)

    def _check_types(
        self, names: dict[str, str], weight_attr: str | None
    ) -> None:
        table, values = self._from()
        for name, quoted in names.items():
            query = f'SELECT typeof({quoted}) FROM {table} LIMIT 1'
            found = self._query(query, values).fetchall()
            table, values = self._from()
            kind = found[0][0] if found else 'BIGINT'
            number = kind in ('FLOAT', 'DOUBLE') or kind.startswith('DECIMAL')
            integer = kind.endswith('INT') or kind.endswith('INTEGER')
            if not (integer or (number and name == weight_attr)):
                raise TypeError(
                    f'ChunkedGraph.write: column {name!r} of {self._paths[0]} '
                    f'must hold integers (got {kind})'
                )

    def largest(self) -> tuple[int, int]:
        """Returns the largest source and destination, -1 without edges."""
        table, values = self._from()
        items = [self._row, self._col, self._weight, self._time]
        nulls = ' + '.join(f'count(*) - count({i})' for i in items if i)
        query = (
            f'SELECT count(*), {nulls}, min({self._row}), min({self._col}), '
            f'max({self._row}), max({self._col}) FROM {table}'
        )
        count, empty, *ids = self._query(query, values).fetchall()[0]
        self._count = count
        if empty > 0:
            raise ValueError(
                f'ChunkedGraph.write: {self._paths[0]} must have no empty '
                f'fields (it has {empty})'
            )
        if count > 0 and min(ids[:2]) < 0:
            raise IndexError(
                f'ChunkedGraph.write: nodes must not be negative (got '
                f'{min(ids[:2])} in {self._paths[0]})'
            )
        return (ids[2], ids[3]) if count > 0 else (-1, -1)

    def source(self, edge_type: Any, sizes: dict[Any, int]) -> RelationSource:
        """Returns the sorted edges."""
        src, dst = (edge_type[0], edge_type[2]) if edge_type else (None, None)
        widths = {
            'neighbor': index_width(sizes[src]),
            'edge_id': index_width(self._count),
            'weight': 8 * (self._weight is not None),
            'time': 8 * (self._time is not None),
        }
        return RelationSource(
            edge_type, sizes[src], sizes[dst], self._count, widths, self._read
        )

    def _read(self) -> Iterator[Edges]:
        """Reads edges by destination, time and position in the files."""
        table, values = self._from()
        items = {'col': self._col, 'neighbor': self._row}
        items['edge_id'] = 'row_number() OVER () - 1'
        parts = [f'{v}::BIGINT AS {k}' for k, v in items.items()]
        if self._weight:
            parts.append(f'{self._weight}::DOUBLE AS weight')
        if self._time:
            parts.append(f'{self._time}::BIGINT AS time')
        order = 'col, time, edge_id' if self._time else 'col, edge_id'
        query = f'SELECT {", ".join(parts)} FROM {table} ORDER BY {order}'
        with self._errors():
            for batch in self._query(query, values).to_arrow_reader(_ROWS):
                yield {
                    name: batch.column(i).to_numpy(zero_copy_only=False)
                    for i, name in enumerate(batch.schema.names)
                }


def _read_npy(paths: list[Path]) -> Any:
    """Returns rows of ``.npy`` files of shape [2, E] or [E, 2], as Arrow."""
    import pyarrow as pa

    arrays = []
    for path in paths:
        try:
            array = np.load(path, mmap_mode='r', allow_pickle=False)
        except (EOFError, ValueError) as error:
            raise ValueError(f'ChunkedGraph.write: {path}: {error}') from error
        if array.ndim != 2 or 2 not in array.shape or array.dtype.kind != 'i':
            raise ValueError(
                f'ChunkedGraph.write: {path} must hold integers of shape '
                f'[2, num_edges] or [num_edges, 2] (got {array.dtype} '
                f'{list(array.shape)})'
            )
        arrays.append(array if array.shape[0] == 2 else array.T)
    schema = pa.schema([('source', pa.int64()), ('target', pa.int64())])

    def batches() -> Iterator[Any]:
        for array in arrays:
            for first in range(0, array.shape[1], _ROWS):
                part = array[:, first : first + _ROWS].astype(np.int64)
                yield pa.record_batch(list(map(pa.array, part)), schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
