"""Conversion of tables to a graph on disk, in bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from torch_gsample.memory import bytes_of, resident_memory
from torch_gsample.owned_folder import owned_folder
from torch_gsample.relational.folder import TableFolder
from torch_gsample.relational.keys import KeyTable
from torch_gsample.relational.row_files import (
    write_description,
    write_keys,
    write_values,
)
from torch_gsample.relational.sources import import_duckdb, open_source
from torch_gsample.relational.tables import Staged, check_dangling
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.sources import (
    Edges,
    GraphSource,
    RelationSource,
    index_width,
)

#: Minimum memory of DuckDB, and its memory beyond its limit: a constant, and a
#: share of the limit (0.27 was measured while sorting 100 million edges).
_DUCKDB, _UNCOUNTED, _UNCOUNTED_PART = 64 << 20, 64 << 20, 0.3


def convert_tables(
    path: str | Path,
    tables: Any,
    manifest: Any = None,
    *,
    memory_limit: int | str = '4GiB',
    whole_process: bool = False,
    max_categories: int = 1000,
    dangling: str = 'report',
    chunk_bytes: int = 32 << 20,
    directories: Sequence[str | Path] = (),
    progress: bool = False,
) -> TableFolder:
    """Writes tables as a graph on disk, and their rows as feature files.

    Graph and samples are those of :func:`from_tables`, but the graph is never
    in memory: DuckDB maps keys and sorts edges, spilling to the disk of
    ``path``, and columns are scanned. The folder appears once it is complete.

    Args:
        path (str or Path): The folder, which must not exist.
        tables (Path or Dict[str, Path]): See :func:`from_tables`.
        manifest (Dict or Path, optional): See :func:`from_tables`.
        memory_limit (int or str, optional): Bytes of all buffers: those of
            DuckDB plus six times ``chunk_bytes``.
        whole_process (bool, optional): Whether ``memory_limit`` limits the
            resident memory of the whole process, including memory in use
            before the call. The returned folder has the times of rows in
            memory, 8 bytes each.
        max_categories (int, optional): See :func:`from_tables`.
        dangling (str, optional): See :func:`from_tables`.
        chunk_bytes (int, optional): See :func:`write_graph`.
        directories (Sequence[str or Path], optional): See
            :func:`write_graph`.
        progress (bool, optional): Whether to show a progress bar.

    Raises:
        FileExistsError: If ``path`` exists.
        OSError: If the disk is full, or a file cannot be read.
        ValueError: See :func:`from_tables`; also if ``memory_limit`` is too
            small for ``chunk_bytes``.

    Example:
        >>> import duckdb, tempfile, torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with duckdb.connect(f'{folder}/shop.duckdb') as database:
        ...         for query in (
        ...             'CREATE TABLE person (name VARCHAR PRIMARY KEY)',
        ...             'CREATE TABLE buy (who VARCHAR REFERENCES person, '
        ...             'price DOUBLE)',
        ...             "INSERT INTO person VALUES ('ann'), ('bob')",
        ...             "INSERT INTO buy VALUES ('bob', 2.5)",
        ...         ):
        ...             _ = database.execute(query)
        ...     shop = convert_tables(
        ...         f'{folder}/graph', f'{folder}/shop.duckdb'
        ...     )
        ...     shop.graph.num_edges['buy', 'who', 'person']
        ...     shop.values['buy'].num[torch.tensor([0])]
        1
        tensor([[2.5000]])
    """
    path = Path(path)
    check_dangling('convert_tables', dangling)
    memory_limit, memory = memory_of(
        'convert_tables', memory_limit, chunk_bytes, whole_process
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        owned_folder(path.parent, f'.{path.name}.tables-') as folder,
        open_source(tables, manifest, memory, str(folder)) as source,
    ):
        staged = Staged.read(source, max_categories)
        report: dict[str, Any] = {t: staged.report(t) for t in staged.keys}
        relations: list[RelationSource] = []
        for table in staged.keys.values():
            relations += _relations(table, staged.keys, report)
        check_dangling('convert_tables', dangling, report)

        def finish(made: Path) -> None:
            for i, values in enumerate(staged.values.values()):
                write_values(made, i, values)
            write_keys(made, staged.keys)
            write_description(made, description(staged, report))
            source.check_unchanged()

        graph = GraphSource(
            {name: table.num_rows for name, table in staged.keys.items()},
            relations,
            {n: t.time_pieces for n, t in staged.keys.items() if t.timed},
            finish=finish,
        )
        ChunkedGraph.write(
            path,
            graph,
            chunk_bytes=chunk_bytes,
            memory_limit=memory_limit,
            directories=directories,
            progress=progress,
        )
    return TableFolder(path)


def memory_of(
    name: str, memory_limit: int | str, chunk_bytes: int, whole: bool = False
) -> tuple[int, int]:
    """Returns the memory of all buffers, and that of DuckDB.

    Raises:
        ValueError: If it is too small for chunks and DuckDB.
    """
    if isinstance(memory_limit, str):
        memory_limit = bytes_of(memory_limit, f"{name}: 'memory_limit'")
    taken, buffers = 0, 6 * chunk_bytes
    if whole:
        import_duckdb()
        taken = resident_memory() + _UNCOUNTED
        share = _UNCOUNTED_PART / (1 + _UNCOUNTED_PART)
        taken += int(max(memory_limit - taken - buffers, 0) * share)
    memory = memory_limit - taken - buffers
    if memory < _DUCKDB:
        has = f', and {taken} that the process has' if whole else ''
        raise ValueError(
            f"{name}: 'memory_limit' must be at least 6 times 'chunk_bytes' "
            f'and {_DUCKDB} for DuckDB{has} (got {memory_limit})'
        )
    return memory_limit - taken, memory


def description(staged: Staged, report: dict[str, Any]) -> dict[str, Any]:
    """Returns the description of a folder's tables."""
    tables = {}
    for name, schema in staged.schema.items():
        keys, values = staged.keys[name], staged.values[name]
        tables[name] = {
            'rows': keys.first + keys.num_rows,
            'columns': keys.columns,
            'key': list(schema.key),
            'time': schema.time,
            'time_zone': schema.time_zone,
            'time_from': list(schema.time_from),
            'foreign_keys': [
                {'columns': list(key.columns), 'table': key.table}
                for key in schema.foreign_keys
            ],
            'names': values.names,
            'categories': values.categories,
            'skipped': values.skipped,
        }
    return {
        'time_kind': staged.time_kind, 'tables': tables, 'report': report
    }  # fmt: skip


def _relations(
    table: KeyTable, tables: dict[str, KeyTable], report: dict[str, Any]
) -> Iterator[RelationSource]:
    """Yields both directions of the foreign keys of a table."""
    name = table.table
    time = ', time' if table.timed else ''
    for i, key in enumerate(table.schema.foreign_keys):
        parent = tables[key.table]
        since = ', since AS time' if table.timed or parent.timed else ''
        sql, found = table.stage_edges(i, parent)
        del found['resolved']  # there are no earlier rows
        report[f'{name}.{key.name}'] = found
        widths = {
            'neighbor': index_width(table.num_rows),
            'edge_id': index_width(found['edges']),
            'weight': 0,
            'time': 8 * table.timed,
        }
        yield RelationSource(
            (name, key.name, key.table),
            table.num_rows,
            parent.num_rows,
            found['edges'],
            widths,
            _sorted_reader(
                table,
                f'SELECT parent AS col, child AS neighbor, rowid AS edge_id'
                f'{time} FROM {sql} ORDER BY parent{time}, rowid',
            ),
        )
        # A row has one parent, so edges are sorted by destination, and the id
        # of an edge is its position.
        yield RelationSource(
            (key.table, f'rev_{key.name}', name),
            parent.num_rows,
            table.num_rows,
            found['edges'],
            {
                'neighbor': index_width(parent.num_rows),
                'edge_id': 0,
                'weight': 0,
                'time': 8 * (table.timed or parent.timed),
            },
            _reader(
                table,
                f'SELECT child AS col, parent AS neighbor{since} FROM {sql}',
            ),
        )


def _sorted_reader(
    table: KeyTable, query: str
) -> Callable[[], Iterator[Edges]]:
    """Returns a reader of a sorted query, which DuckDB spills to disk.

    Sorting into a new table respects DuckDB's memory limit; a sort whose rows
    are streamed exceeds it.
    """

    def batches() -> Iterator[Edges]:
        with table.stored(query) as name:
            yield from _reader(table, f'SELECT * FROM {name}')()

    return batches


def _reader(table: KeyTable, query: str) -> Callable[[], Iterator[Edges]]:
    def batches() -> Iterator[Edges]:
        for batch in table.batches(query):
            names = enumerate(batch.schema.names)
            yield {name: batch.column(i).to_numpy() for i, name in names}

    return batches
