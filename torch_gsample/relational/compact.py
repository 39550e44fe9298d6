"""Compaction of a converted folder with appended rows."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_gsample.owned_folder import owned_folder, remove_leftovers
from torch_gsample.relational.convert import memory_of
from torch_gsample.relational.folder import TableFolder
from torch_gsample.relational.row_files import (
    dangling_file,
    keys_file,
    rows_file,
    write_description,
)
from torch_gsample.relational.sources import connect, literal
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.feature_write import FeatureWriter
from torch_gsample.storage.new_file import NewFile
from torch_gsample.storage.replaced import check_exchange, exchange
from torch_gsample.storage.segments import locked
from torch_gsample.storage.stored_source import stored_source

_PIECE = 8 << 20  # bytes of rows that are copied at once


def compact_tables(
    path: str | Path,
    to: str | Path | None = None,
    *,
    memory_limit: int | str = '4GiB',
    whole_process: bool = False,
    chunk_bytes: int = 32 << 20,
    directories: Sequence[str | Path] = (),
    progress: bool = False,
) -> TableFolder:
    """Merges the segments of :func:`append_tables` into one graph.

    Rows, edges, their ids and the ``version`` do not change, so batches do not
    either. Appended edges are no longer held in memory, and all samplers can
    read them. The complete folder replaces the old one in one step: after a
    crash, one of them is whole. Readers of the old folder can use what they
    have opened, but cannot open more of it (see :class:`TableFolder`). Appends
    are refused meanwhile.

    Args:
        path (str or Path): The folder.
        to (str or Path, optional): A new folder, which must not exist. The old
            one then stays as it is.
        memory_limit (int or str, optional): See :func:`convert_tables`.
            Appended edges and the times of all rows need further memory, as
            in a reader.
        whole_process (bool, optional): Whether ``memory_limit`` is that of
            the resident memory of the process, with these; see
            :func:`convert_tables`.
        chunk_bytes (int, optional): See :func:`write_graph`.
        directories (Sequence[str or Path], optional): Further directories of
            ``to``; see :func:`write_graph`.
        progress (bool, optional): Whether to show a progress bar.

    Raises:
        FileExistsError: If ``to`` exists.
        OSError: If another process appends or compacts, a file cannot be read,
            the disk is full, or the file system cannot exchange folders.
        ValueError: If a file is damaged, ``memory_limit`` is too small, or
            ``to`` is missing for a folder with several directories.

    Example:
        >>> compact_tables('graph')  # doctest: +SKIP
        TableFolder('graph', {'person': 3, 'buy': 12})
    """
    path = Path(path).resolve()
    target = path if to is None else Path(to)
    writing = {
        'chunk_bytes': chunk_bytes,
        'directories': directories,
        'progress': progress,
    }
    with locked(path):
        _compact(path, to, target, memory_limit, whole_process, writing)
    return TableFolder(target)


def _compact(
    path: Path,
    to: str | Path | None,
    target: Path,
    memory_limit: int | str,
    whole_process: bool,
    writing: dict[str, Any],
) -> None:
    """Writes ``target``; the old folder is no longer in memory then."""
    name, directories = 'compact_tables', writing['directories']
    old = TableFolder(path)
    if to is None and (old.graph.meta.directories or directories):
        raise ValueError(
            f"{name}: 'to' must be given for several directories (got None "
            f'for {path})'
        )
    limits = memory_of(
        name, memory_limit, writing['chunk_bytes'], whole_process
    )
    if to is None and not old.graph.segments.entries:
        # The old folder, if a process was killed after the exchange.
        remove_leftovers(path.parent)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with owned_folder(target.parent, f'.{target.name}.compact-') as work:
        if to is None:
            check_exchange(name, work)
        made = work / path.name if to is None else target
        source = stored_source(old.graph, old.times)
        source.finish = lambda folder: _write_tables(
            folder, old, limits[1], str(work)
        )
        ChunkedGraph.write(made, source, memory_limit=limits[0], **writing)
        if to is None:
            os.chmod(made, os.stat(path).st_mode & 0o777)
            exchange(made, path)
            sync(path.parent)


def _write_tables(
    folder: Path, old: TableFolder, memory: int, spill: str
) -> None:
    """Writes the rows, the keys and the description of all tables."""
    for i, name in enumerate(old.schema):
        for kind in ('num', 'cat', 'stamp'):
            rows = getattr(old.values[name], kind)
            if isinstance(rows, Tensor):
                continue  # no column, no file
            with NewFile(folder / rows_file(i, kind)) as file:
                writer = FeatureWriter(file, None)
                writer.add(rows[:0])
                for _, piece in rows.scan(_PIECE):
                    writer.add(rows.decode(torch.from_numpy(piece)))
                writer.finish()
    _write_keys(folder, old, memory, spill)
    fields = {k: old.fields[k] for k in ('time_kind', 'tables', 'report')}
    write_description(folder, {**fields, 'appends': old.version})


def _write_keys(
    folder: Path, old: TableFolder, memory: int, spill: str
) -> None:
    """Writes the keys of rows, and foreign keys that still dangle."""
    with connect('compact_tables', memory, spill) as database:
        for i, (name, schema) in enumerate(old.schema.items()):
            queries = {}
            if schema.key:
                queries[keys_file(i)] = f'SELECT * FROM {old.keys_sql(name)}'
            for j, key in enumerate(schema.foreign_keys):
                file = dangling_file(i, j)
                on = ' AND '.join(
                    f'c.f{j}_{n} = p.k{n}' for n in range(len(key.columns))
                )
                queries[file] = (
                    f'SELECT c.* FROM {old.rows_sql(file)} AS c ANTI '
                    f'JOIN {old.keys_sql(key.table)} AS p ON {on} ORDER BY id'
                )
            for file, query in queries.items():
                to = literal(str(folder / file))
                database.execute(f'COPY ({query}) TO {to} (FORMAT parquet)')
