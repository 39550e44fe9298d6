"""Schemas of tables: keys, times, and the manifest that declares them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_LARGEST = 1 << 24  # bytes of a manifest
_FIELDS = {
    'file', 'key', 'time', 'time_from', 'time_zone', 'foreign_keys'
}  # fmt: skip


@dataclass(frozen=True)
class ForeignKey:
    """Columns that refer to keys of another table or the same one.

    Args:
        columns (Tuple[str, ...]): The columns.
        table (str): The referenced table.
        to (Tuple[str, ...], optional): The columns of its key; default: in the
            order of the key.
    """

    columns: tuple[str, ...]
    table: str
    to: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the relation."""
        return '_'.join(self.columns)


@dataclass(frozen=True)
class TableSchema:
    """The schema of a table.

    Args:
        key (Tuple[str, ...]): The columns of its primary key; may be empty.
        time (str, optional): The column with the time from which a row exists.
        foreign_keys (Tuple[ForeignKey, ...]): Its foreign keys.
        time_zone (str, optional): The time zone of times that have none.
        time_from (Tuple[str, ...]): The columns of a foreign key: a row has
            the time of the row that it refers to.
        files (Tuple[str, ...]): Its Parquet files, in a folder.
        has_keys (bool): Whether a manifest names its keys; otherwise, they are
            those that the database declares.
    """

    key: tuple[str, ...] = ()
    time: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    time_zone: str | None = None
    time_from: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=(), compare=False)
    has_keys: bool = field(default=True, compare=False, repr=False)


def read_manifest(manifest: Any) -> dict[str, TableSchema]:
    """Reads a manifest: a dictionary, or the path of a JSON file.

    Args:
        manifest (Dict or Path): ``{'tables': {name: {'key': ..., 'time': ...,
            'foreign_keys': {column: table}, 'file': ..., 'time_zone': ...,
            'time_from': column}}}``, all optional. A
            key of several columns is a list; a foreign key of several is an
            item ``{'columns': [...], 'table': ...}`` of a list. A table
            without ``key`` and ``foreign_keys`` has the declared ones.

    Raises:
        OSError: If the file cannot be read.
        TypeError: If it is neither.
        ValueError: If the manifest is invalid; the error names the table.
    """
    name = 'manifest'
    if not isinstance(manifest, Mapping):
        if not isinstance(manifest, str | Path):
            raise TypeError(
                "from_tables: 'manifest' must be a dictionary or a path (got "
                f'{type(manifest).__name__})'
            )
        path = Path(manifest)
        name = str(path)
        if path.stat().st_size > _LARGEST:
            raise ValueError(
                f'from_tables: {path} must have at most {_LARGEST} bytes'
            )
        try:
            manifest = json.loads(path.read_bytes(), object_pairs_hook=_once)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f'from_tables: {path} must be JSON: {error}'
            ) from None
    tables = manifest.get('tables') if isinstance(manifest, Mapping) else None
    if not isinstance(tables, Mapping):
        raise ValueError(
            f"from_tables: {name} must have an object 'tables' (got "
            f'{type(tables).__name__})'
        )
    return {
        _text(table, f'a table of {name}'): _read_table(table, entry)
        for table, entry in tables.items()
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object of JSON whose names are all different."""
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'the name {twice!r} occurs twice')
    return out


def _read_table(table: str, entry: Any) -> TableSchema:
    if not isinstance(entry, Mapping) or not set(entry) <= _FIELDS:
        raise ValueError(
            f'from_tables: table {table!r} must have a manifest with '
            f'{sorted(_FIELDS)} (got {_short(entry)})'
        )
    time, zone = (
        value if value is None else _text(value, f'{key!r} of table {table!r}')
        for key, value in ((k, entry.get(k)) for k in ('time', 'time_zone'))
    )
    if zone is not None and time is None:
        raise ValueError(
            f"from_tables: 'time_zone' of table {table!r} needs a 'time'"
        )
    parent = _names(entry.get('time_from'), f"'time_from' of table {table!r}")
    if parent and time is not None:
        raise ValueError(
            f"from_tables: table {table!r} must have a 'time' or a "
            "'time_from' (got both)"
        )
    return TableSchema(
        _names(entry.get('key'), f"'key' of table {table!r}"),
        time,
        _foreign_keys(table, entry.get('foreign_keys')),
        zone,
        parent,
        _names(entry.get('file'), f"'file' of table {table!r}"),
        has_keys='key' in entry or 'foreign_keys' in entry,
    )


def _foreign_keys(table: str, keys: Any) -> tuple[ForeignKey, ...]:
    what = f"'foreign_keys' of table {table!r}"
    if keys is None:
        return ()
    if isinstance(keys, Mapping):
        keys = [{'columns': c, 'table': t} for c, t in keys.items()]
    if not isinstance(keys, list | tuple):
        raise ValueError(f'from_tables: {what} must be an object or a list')
    out = []
    for key in keys:
        if not isinstance(key, Mapping) or set(key) != {'columns', 'table'}:
            raise ValueError(
                f"from_tables: {what} must have 'columns' and 'table' (got "
                f'{_short(key)})'
            )
        columns = _names(key['columns'], what)
        if not columns:
            raise ValueError(f'from_tables: {what} must have columns')
        out.append(ForeignKey(columns, _text(key['table'], what)))
    return tuple(out)


def _names(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    items = value if isinstance(value, list | tuple) else [value]
    out = tuple(_text(item, what) for item in items)
    if len(set(out)) < len(out):
        raise ValueError(
            f'from_tables: {what} must be different names (got {list(out)})'
        )
    return out


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value or '\0' in value:
        raise ValueError(
            f'from_tables: {what} must be a name (got {_short(value)})'
        )
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f'{text[:77]}...'


def checked_schema(
    tables: Mapping[str, TableSchema], columns: Mapping[str, Iterable[str]]
) -> dict[str, TableSchema]:
    """Checks that the keys of tables refer to existing columns.

    Args:
        tables (Dict[str, TableSchema]): The schema of each table.
        columns (Dict[str, List[str]]): The columns of each table.

    Raises:
        ValueError: If a column or table is missing, a foreign key does not
            refer to the key of a table, or two have the same name.
    """
    out = {}
    for name, table in tables.items():
        own = [*table.key, *([table.time] if table.time else [])]
        own += [c for key in table.foreign_keys for c in key.columns]
        for column in own:
            if column not in columns[name]:
                raise ValueError(
                    f'from_tables: table {name!r} has no column {column!r} '
                    f'(it has {_short(list(columns[name]))})'
                )
        keys = [_resolved(name, key, tables) for key in table.foreign_keys]
        known = [key.columns for key in table.foreign_keys]
        if table.time_from and table.time_from not in known:
            raise ValueError(
                f"from_tables: 'time_from' of table {name!r} must be the "
                f'columns of a foreign key, one of {known} (got '
                f'{table.time_from})'
            )
        out[name] = replace(table, foreign_keys=tuple(keys))
    _check_names(out)
    return out


def _check_names(tables: Mapping[str, TableSchema]) -> None:
    """Checks that relations, and entries of the report, differ in names."""
    seen: set[Any] = set(tables)
    for name, table in tables.items():
        for key in table.foreign_keys:
            names = (
                f'{name}.{key.name}',
                (name, key.name, key.table),
                (key.table, f'rev_{key.name}', name),
            )
            for own in names:
                if own in seen:
                    raise ValueError(
                        f"from_tables: 'foreign_keys' of table {name!r} must "
                        f'not use the name {own!r} again; omit one of them '
                        'in a manifest, or rename its columns or tables'
                    )
                seen.add(own)


def with_declared_keys(
    tables: Mapping[str, TableSchema], declared: Mapping[str, TableSchema]
) -> dict[str, TableSchema]:
    """Returns a manifest's schemas with the declared keys, if it names none.

    Args:
        tables (Dict[str, TableSchema]): The schemas of the manifest.
        declared (Dict[str, TableSchema]): Those of the database.
    """
    out = {}
    for name, table in tables.items():
        if not table.has_keys:
            found = declared[name].foreign_keys
            keys = tuple(key for key in found if key.table in tables)
            own = declared[name].key
            table = replace(table, key=own, foreign_keys=keys)
        out[name] = replace(table, has_keys=True)
    return out


def same_case(
    tables: Mapping[str, TableSchema], columns: Mapping[str, Iterable[str]]
) -> dict[str, TableSchema]:
    """Returns declared schemas with names as tables and columns have them.

    Databases ignore case in declarations of keys.

    Args:
        tables (Dict[str, TableSchema]): The schema of each table.
        columns (Dict[str, List[str]]): The columns of each table.
    """
    known = {name.lower(): name for name in tables}
    spelled = {
        name: {column.lower(): column for column in columns[name]}
        for name in tables
    }

    def of(table: str, names: tuple[str, ...]) -> tuple[str, ...]:
        own = spelled.get(table, {})
        return tuple(own.get(name.lower(), name) for name in names)

    out = {}
    for name, table in tables.items():
        keys = []
        for key in table.foreign_keys:
            other = key.table
            if other not in tables:
                other = known.get(other.lower(), other)
            keys.append(
                ForeignKey(of(name, key.columns), other, of(other, key.to))
            )
        out[name] = replace(
            table, key=of(name, table.key), foreign_keys=tuple(keys)
        )
    return out


def _resolved(
    name: str, key: ForeignKey, tables: Mapping[str, TableSchema]
) -> ForeignKey:
    """Returns a foreign key in the column order of the referenced key."""
    what = f'{key.name!r} of table {name!r}'
    if key.table not in tables:
        raise ValueError(
            f'from_tables: {what} must refer to an existing table (got '
            f'{key.table!r})'
        )
    want = tables[key.table].key
    to = key.to or want
    if len(key.columns) != len(want) or sorted(to) != sorted(want):
        raise ValueError(
            f'from_tables: {what} must refer to the key {list(want)} of '
            f'{key.table!r} (got columns {list(key.columns)} to {list(to)})'
        )
    by_target = dict(zip(to, key.columns, strict=True))
    return ForeignKey(tuple(by_target[c] for c in want), key.table)
