"""New rows of a converted folder, without a rebuild."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.memory import bytes_of
from torch_gsample.owned_folder import owned_folder
from torch_gsample.relational.convert import description
from torch_gsample.relational.folder import TableFolder
from torch_gsample.relational.keys import KeyTable
from torch_gsample.relational.parent_times import take_times
from torch_gsample.relational.row_files import (
    dangling_file,
    write_description,
    write_keys,
    write_values,
)
from torch_gsample.relational.sources import (
    Source,
    open_source,
    quoted,
)
from torch_gsample.relational.tables import (
    Staged,
    check_dangling,
    plain_columns,
    time_columns,
)
from torch_gsample.relational.times import kind_of
from torch_gsample.relational.values import ValueReader
from torch_gsample.storage.segments import SegmentWriter, append_segment

_TYPE = re.compile(r'[A-Z][A-Z0-9_ ]*(\([0-9, ]+\))?')


def append_tables(
    path: str | Path,
    tables: Any,
    *,
    memory_limit: int | str = '4GiB',
    dangling: str = 'report',
) -> TableFolder:
    """Appends rows to a folder written by :func:`convert_tables`.

    New rows follow those of their tables, in a new segment. Existing data is
    not rewritten; only the key files are scanned. Appends are atomic: readers
    see all new rows once they reopen the folder, or none, and a crash changes
    nothing. Samples equal those of a folder written at once if edge ids do;
    ids follow the order of appends, and a dangling foreign key gets its edge
    when the referenced row is appended.

    Args:
        path (str or Path): The folder.
        tables (Path or Dict[str, Path]): The new rows of some tables, as in
            :func:`from_tables`, with all their columns in the same types. The
            folder defines keys and times.
        memory_limit (int or str, optional): Memory limit of DuckDB. The new
            edges need further memory, also in each reader: 32 bytes per edge
            and direction.
        dangling (str, optional): See :func:`from_tables`.

    Raises:
        FileNotFoundError: If the folder does not exist.
        OSError: If another process appends or compacts, a file cannot be
            read, or the disk is full.
        RuntimeError: If the folder is compacted meanwhile.
        TypeError: If a column has another type than before.
        ValueError: If a key exists already, is null or repeated, a time is
            invalid, or a table or column is unknown; the error names it.

    Example:
        >>> append_tables('graph', 'november.duckdb')  # doctest: +SKIP
        TableFolder('graph', {'person': 3, 'buy': 12})
    """
    path = Path(path)
    check_dangling('append_tables', dangling)
    if isinstance(memory_limit, str):
        memory_limit = bytes_of(memory_limit, "append_tables: 'memory_limit'")
    old = TableFolder(path)
    meta = old.graph.meta
    with (
        append_segment(path, meta) as writer,
        owned_folder(path.parent, f'.{path.name}.tables-') as folder,
        open_source(tables, None, memory_limit, str(folder)) as source,
    ):
        old.graph.check_current()
        if writer.num_nodes != list(old.graph.num_nodes.values()):
            raise BlockingIOError(
                f'append_tables: another process has appended to {path}'
            )
        staged = _stage(old, source)
        report = {t: _add_rows(old, staged, t, writer) for t in staged.keys}
        number = 0
        for name, table in staged.keys.items():
            for i, key in enumerate(table.schema.foreign_keys):
                found = _add_edges(old, staged, name, i, number, writer)
                report[f'{name}.{key.name}'] = found
                number += 2
        check_dangling('append_tables', dangling, report)
        for name, found in report.items():
            if 'resolved' in found:
                report[name] = _joined(old.report[name], found)
        for i, values in enumerate(staged.values.values()):
            write_values(writer.folder, i, values)
        write_keys(writer.folder, staged.keys)
        fields = {**description(staged, report), 'appends': old.version + 1}
        write_description(writer.folder, fields)
        source.check_unchanged()
    return TableFolder(path)


def _joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Returns a foreign key's counts of old and new rows together."""
    resolved = new.pop('resolved')
    out = {**new, **old, 'edges': old['edges'] + new['edges'] + resolved}
    out['null'] = old['null'] + new['null']
    out['dangling'] = old['dangling'] + new['dangling'] - resolved
    if not out['dangling']:
        out.pop('example', None)
    return out


def _stage(old: TableFolder, source: Source) -> Staged:
    """Checks the new rows, and numbers them."""
    for name in source.sql:
        if name not in old.schema:
            raise ValueError(
                f'append_tables: table {name!r} must exist in the folder '
                f'(it has {sorted(old.schema)[:20]})'
            )
    columns = {}
    for name, entry in old.fields['tables'].items():
        columns[name] = entry['columns']
        if name in source.sql:
            _check_columns(name, entry['columns'], source.columns(name))
            continue
        source.sql[name] = _no_rows(columns[name])
    times = time_columns(source, old.schema, columns)
    kind = kind_of({n: t for n, t in times.items() if source.num_rows(n)})
    if kind not in (None, old.time_kind):
        raise ValueError(
            f'append_tables: times must be {old.time_kind}, as in the '
            f'folder (got {kind})'
        )
    keys, values = {}, {}
    for name, schema in old.schema.items():
        known = old.keys_sql(name) if schema.key else None
        time = times.get(name)
        keys[name] = KeyTable(
            source,
            name,
            schema,
            columns[name],
            time,
            old.num_rows(name),
            known,
        )
        plain = plain_columns(schema, columns[name])
        values[name] = ValueReader(
            source, name, plain, 0, old.values[name].categories
        )
        values[name].skipped = dict(old.values[name].skipped)
    take_times('append_tables', keys)
    return Staged(source, old.schema, keys, values, old.time_kind)


def _no_rows(columns: dict[str, str]) -> str:
    """Returns a query without rows, for a table without new rows."""
    # The types come from a file: only plain type names become SQL.
    parts = [
        f'NULL::{kind if _TYPE.fullmatch(kind) else "VARCHAR"} AS {quoted(c)}'
        for c, kind in columns.items()
    ]
    return f'(SELECT {", ".join(parts)} WHERE false)'


def _check_columns(
    table: str, want: dict[str, str], got: dict[str, str]
) -> None:
    for column, kind in want.items():
        if column not in got:
            raise ValueError(
                f'append_tables: table {table!r} has no column {column!r}'
            )
        if got[column] != kind:
            raise TypeError(
                f'append_tables: column {column!r} of table {table!r} must '
                f'have the type {kind} of the folder (got {got[column]})'
            )
    for column in got:
        if column not in want:
            raise ValueError(
                f'append_tables: column {column!r} of table {table!r} must '
                f'exist in the folder (it has {[*want]})'
            )


def _add_rows(
    old: TableFolder, staged: Staged, name: str, writer: SegmentWriter
) -> dict[str, Any]:
    """Adds the rows of a table as nodes; returns the total counts."""
    table = staged.keys[name]
    number = list(old.schema).index(name)
    writer.add_nodes(number, table.num_rows, table.time_pieces)
    out = dict(old.report[name])
    out['rows'] += table.num_rows
    out['null_times'] += table.null_times
    return out


def _add_edges(
    old: TableFolder,
    staged: Staged,
    name: str,
    key: int,
    relation: int,
    writer: SegmentWriter,
) -> dict[str, Any]:
    """Adds the edges of a foreign key in both directions."""
    table: KeyTable = staged.keys[name]
    parent = staged.keys[table.schema.foreign_keys[key].table]
    number = list(old.schema).index(name)
    dangling = old.rows_sql(dangling_file(number, key))
    sql, found = table.stage_edges(key, parent, dangling)
    first = writer.num_edges[relation]

    def edges(*names: str) -> Iterator[dict[str, np.ndarray]]:
        query = f'SELECT {", ".join(names)} FROM {sql}'
        for batch in table.batches(query):
            arrays = [column.to_numpy() for column in batch.columns]
            fields = 'col', 'neighbor', 'edge_id', 'time'
            yield dict(zip(fields, arrays, strict=False))

    edge_id = f'rowid + {first}'
    time = ['time'] * table.timed
    since = ['since'] * (table.timed or parent.timed)
    writer.add_edges(relation, edges('parent', 'child', edge_id, *time))
    writer.add_edges(relation + 1, edges('child', 'parent', edge_id, *since))
    return found
