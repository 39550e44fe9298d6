"""Files of table rows: columns, keys and dangling foreign keys.

Staged tables come in; feature files and Parquet files of a folder go out.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import torch

from torch_gsample.relational.keys import KeyTable
from torch_gsample.relational.schema import TableSchema, checked_schema
from torch_gsample.relational.schema import read_manifest as read_schema
from torch_gsample.relational.values import ValueReader
from torch_gsample.storage.feature_write import FeatureWriter
from torch_gsample.storage.format import is_sealed, seal
from torch_gsample.storage.new_file import NewFile, write_new

#: Description of the tables of a folder or segment.
TABLES = 'tables.json'
_FORMAT = 'gsample tables'
_LARGEST = 1 << 30  # bytes of a description


def rows_file(table: int, kind: str) -> str:
    """Returns the name of the file of a kind of columns."""
    return f'table-{table}.{kind}.gsf'


def keys_file(table: int) -> str:
    """Returns the name of the file of the keys of rows."""
    return f'table-{table}.keys.parquet'


def dangling_file(table: int, number: int) -> str:
    """Returns the name of the file of a foreign key's dangling values."""
    return f'table-{table}.{number}.dangling.parquet'


def write_values(folder: Path, table: int, values: ValueReader) -> None:
    """Writes the columns of a table in one scan.

    Args:
        folder (Path): The target folder.
        table (int): Index of the table.
        values (ValueReader): Its columns.
    """
    with contextlib.ExitStack() as stack:
        writers = {}
        for kind, array in values.empty(0).items():
            if array.shape[1]:
                name = folder / rows_file(table, kind)
                file = stack.enter_context(NewFile(name))
                writers[kind] = FeatureWriter(file, None)
                writers[kind].add(torch.from_numpy(array))
        for piece in values.pieces():
            for kind, writer in writers.items():
                writer.add(torch.from_numpy(piece[kind]))
        for writer in writers.values():
            writer.finish()


def write_keys(folder: Path, tables: dict[str, KeyTable]) -> None:
    """Writes the keys of all tables, and dangling foreign keys.

    Args:
        folder (Path): The target folder.
        tables (Dict[str, KeyTable]): All tables, in the order of the graph.
    """
    for i, table in enumerate(tables.values()):
        if table.schema.key:
            names = ', '.join(table.key_names)
            query = f'SELECT {names} FROM {table.sql} ORDER BY id'
            table.copy_to(query, folder / keys_file(i))
        for j, key in enumerate(table.schema.foreign_keys):
            query = table.dangling(j, tables[key.table])
            table.copy_to(query, folder / dangling_file(i, j))


def write_description(folder: Path, fields: dict[str, Any]) -> None:
    """Writes the description of tables, with a checksum."""
    text = json.dumps({'format': _FORMAT, 'version': 1, **fields}, default=str)
    write_new(folder / TABLES, seal(json.loads(text)))


def read_description(
    folder: Path,
) -> tuple[dict[str, Any], dict[str, TableSchema]]:
    """Reads the description of tables, and checks it.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it violates the format.
    """
    path = folder / TABLES
    if path.stat().st_size > _LARGEST:
        raise ValueError(
            f'TableFolder: {path} must have at most {_LARGEST} bytes'
        )
    text = path.read_bytes()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f'TableFolder: {path} must be JSON: {error}'
        ) from None
    if not is_sealed(text) or not isinstance(fields, dict):
        raise ValueError(f'TableFolder: the checksum of {path} is wrong')
    version = fields.get('format'), fields.get('version')
    tables = fields.get('tables')
    if version != (_FORMAT, 1) or not isinstance(tables, dict):
        raise ValueError(
            f"TableFolder: {path} must have 'tables' of version 1 of "
            f'{_FORMAT!r} (got {version})'
        )
    for name, entry in tables.items():
        _check_entry(path, name, entry)
    kinds = None, 'integer', 'naive', 'zoned'
    kind = fields.get('time_kind', 'missing')
    if not isinstance(fields.get('report'), dict) or kind not in kinds:
        raise ValueError(
            f"TableFolder: {path} must have a 'report' and a 'time_kind' of "
            f'{kinds}'
        )
    appends = fields.setdefault('appends', None)
    if appends is not None and not (type(appends) is int and appends >= 0):
        raise ValueError(
            f"TableFolder: 'appends' of {path} must be a number of appends "
            f'(got {appends!r})'
        )
    entries = {
        name: {k: entry[k] for k in ('key', 'time', 'foreign_keys')}
        # Not in folders of earlier releases.
        | {k: entry.get(k) for k in ('time_zone', 'time_from')}
        for name, entry in tables.items()
    }
    schema = read_schema({'tables': entries})
    columns = {name: entry['columns'] for name, entry in tables.items()}
    schema = checked_schema(schema, columns)
    _check_report(path, fields['report'], schema)
    return fields, schema


def _check_report(
    path: Path, report: dict[str, Any], schema: dict[str, TableSchema]
) -> None:
    """Checks the counts of tables and foreign keys, which appends update."""
    for table, of in schema.items():
        wanted: dict[str, tuple[str, ...]] = {table: ('rows', 'null_times')}
        for key in of.foreign_keys:
            wanted[f'{table}.{key.name}'] = 'edges', 'null', 'dangling'
        for name, counts in wanted.items():
            found = report.get(name)
            if not isinstance(found, dict) or any(
                type(found.get(count)) is not int or found[count] < 0
                for count in counts
            ):
                raise ValueError(
                    f"TableFolder: 'report' of {path} must have the counts "
                    f'{counts} of {name!r} (got {str(found)[:80]})'
                )


def _check_entry(path: Path, name: str, entry: Any) -> None:
    kinds = {
        'rows': int, 'columns': dict, 'key': list, 'foreign_keys': list,
        'names': dict, 'categories': dict, 'skipped': dict,
    }  # fmt: skip
    valid = isinstance(entry, dict) and 'time' in entry
    valid = valid and all(
        type(entry.get(k)) is kind for k, kind in kinds.items()
    )
    valid = valid and set(entry['names']) == {'num', 'cat', 'stamp'}
    texts = [] if not valid else [*entry['columns'].values()]
    lists = [] if not valid else [*entry['names'].values()]
    lists += [] if not valid else entry['categories'].values()
    valid = valid and all(isinstance(of, list) for of in lists)
    texts += [text for of in lists for text in of] if valid else []
    if not (valid and all(isinstance(text, str) for text in texts)):
        raise ValueError(
            f"TableFolder: table {name!r} of {path} must have a 'time' and "
            f'{[*kinds]} of the right types'
        )
    cats = entry['names']['cat']
    if set(entry['categories']) != set(cats) or entry['rows'] < 0:
        raise ValueError(
            f"TableFolder: table {name!r} of {path} must have 'categories' of "
            f'{cats}, and no negative number of rows'
        )
