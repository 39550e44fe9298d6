"""Reads ``meta.json``, which describes a graph in chunks.

Its text comes in, a checked description goes out. Files are not trusted: a
number is compared with the file sizes before anything of its size is
allocated.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.format import (
    CHECKSUM,
    EDGES,
    FIRST,
    FORMAT,
    LENGTH,
    MAX_COUNT,
    META,
    NODES,
    OFFSET,
    START,
    VERSIONS,
    WIDTHS,
    GraphMeta,
    RelationMeta,
    is_sealed,
    malformed,
    round_up,
)
from torch_gsample.storage.stripes import check_stripes

Check = Callable[[bool, str], None]


def read_meta(path: Path) -> GraphMeta:
    """Reads and checks ``meta.json`` of a directory.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If it breaks a rule of the format.
    """
    file = path / META
    text = file.read_bytes()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = getattr(error, 'pos', 0)
        malformed(file, at, f'it is no JSON text ({error})')

    def check(valid: bool, rule: str) -> None:
        if not valid:
            malformed(file, 0, rule)

    check(isinstance(fields, dict), 'it must hold an object')
    check(
        fields.get('format') == FORMAT,
        f"'format' must be {FORMAT!r} (got {fields.get('format')!r})",
    )
    version = fields.get('version')
    check(
        version in VERSIONS and type(version) is int,
        f"'version' must be one of {VERSIONS} (got {version!r})",
    )
    check(
        is_sealed(text) if version > 1 else 'generation' not in fields,
        'its checksum is wrong',
    )
    meta = _read_fields(fields, check)
    check_stripes(path, meta)
    for name in [r.file for r in meta.relations] + meta.node_times:
        check(
            name is None
            or (
                isinstance(name, str)
                and os.path.basename(name) == name != ''
                and '\0' not in name
            ),
            f'{name!r} is no name of a file in the directory',
        )
        if name is not None:
            meta.sizes[name] = os.stat(path / name).st_size
    for relation in meta.relations:
        check(relation.file is not None, 'None is no name of a file of edges')
        sizes = [os.stat(f).st_size for f in meta.files(path, relation)]
        meta.sizes[relation.file] = sum(sizes)
        _check_table(relation, meta, check)
        for i, size in enumerate(sizes):
            want = int(relation.chunks[i :: len(sizes), LENGTH].sum())
            if size != want:
                malformed(
                    meta.files(path, relation)[i],
                    min(size, want),
                    f'its size must be {want} (got {size})',
                )
    for name, size in zip(meta.node_times, meta.num_nodes, strict=True):
        if name is not None and meta.sizes[name] != 8 * size:
            malformed(
                path / name,
                meta.sizes[name],
                f'its size must be {8 * size}, 8 bytes for each node',
            )
    return meta


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


def _is_checksum(value: Any) -> bool:
    return _count(value) and value < 1 << 32


def are_file_checksums(value: Any) -> bool:
    """Returns whether a value has a checksum for each of some files."""
    return isinstance(value, dict) and all(map(_is_checksum, value.values()))


def _read_fields(fields: dict[str, Any], check: Check) -> GraphMeta:
    types = fields.get('node_types')
    counts = fields.get('num_nodes')
    times = fields.get('node_times')
    relations = fields.get('relations')
    alignment = fields.get('alignment')
    lists = types, counts, times, relations
    check(
        all(isinstance(item, list) for item in lists)
        and len(types) == len(counts) == len(times),  # type: ignore[arg-type]
        "'node_types', 'num_nodes' and 'node_times' must be lists of one "
        "length, and 'relations' a list",
    )
    types, counts, times, relations = cast(list[list[Any]], lists)
    check(
        types == [None]
        or (
            all(isinstance(t, str) for t in types)
            and len(set(types)) == len(types)
        ),
        "'node_types' must be different names, or null alone",
    )
    check(all(map(_count, counts)), "'num_nodes' must be in [0, 2^48)")
    check(
        type(alignment) is int
        and 512 <= alignment <= 1 << 20
        and alignment & (alignment - 1) == 0,
        f"'alignment' must be a power of 2 from 512 to 2^20 (got "
        f'{alignment!r})',
    )
    check(
        all(t is None or isinstance(t, str) for t in times),
        "'node_times' must hold names of files, or null",
    )
    # Absent in earlier versions.
    checksums = fields.get('time_checksums', [None] * len(types))
    check(
        isinstance(checksums, list)
        and len(checksums) == len(types)
        and all(c is None or _is_checksum(c) for c in checksums),
        "'time_checksums' must hold null or 32 bits for each node type",
    )
    assert type(alignment) is int
    sizes = dict(zip(types, counts, strict=True))
    columns = 6 if fields['version'] > 1 else 7
    read = [
        _read_relation(r, i, sizes, columns, check)
        for i, r in enumerate(relations)
    ]
    edge_types = [r.edge_type for r in read]
    check(
        len(set(edge_types)) == len(edge_types),
        "'relations' must have different edge types",
    )
    meta = GraphMeta(types, counts, times, checksums, read, alignment)
    meta.version = fields['version']
    if meta.version > 1:
        _read_second(fields, meta, check)
    return meta


def _read_second(
    fields: dict[str, Any], meta: GraphMeta, check: Check
) -> None:
    """Reads the fields added in version 2."""
    generation = fields.get('generation')
    check(
        isinstance(generation, str)
        and re.fullmatch('[0-9a-f]{16}', generation) is not None,
        f"'generation' must have 16 hexadecimal digits (got {generation!r})",
    )
    directories = fields.get('directories')
    check(
        isinstance(directories, list)
        and all(
            isinstance(d, str) and os.path.isabs(d) and '\0' not in d
            for d in directories
        ),
        f"'directories' must be absolute paths (got {directories!r})",
    )
    files = fields.get('files', {})
    check(
        are_file_checksums(files),
        "'files' must have a name and 32 bits for each further file",
    )
    meta.further_files = cast(dict[str, int], files)
    meta.generation = int(cast(str, generation), 16)
    meta.directories = cast(list[str], directories)
    check(
        not directories or meta.alignment >= BLOCK,
        f"'alignment' must be at least {BLOCK} for several directories (got "
        f'{meta.alignment})',
    )
    pairs = zip(meta.node_times, meta.time_checksums, strict=True)
    check(
        all((time is None) == (checksum is None) for time, checksum in pairs)
        and all(_is_checksum(r.checksum) for r in meta.relations),
        "'time_checksums' and 'checksum' must be there for each file",
    )


def _read_relation(
    fields: Any,
    number: int,
    sizes: dict[Any, int],
    columns: int,
    check: Check,
) -> RelationMeta:
    check(isinstance(fields, dict), 'a relation must be an object')
    edge_type = _read_edge_type(fields.get('edge_type'), sizes, check)
    src, dst = (edge_type[0], edge_type[2]) if edge_type else (None, None)
    counts = [fields.get(k) for k in ('num_rows', 'num_cols', 'num_edges')]
    check(
        all(map(_count, counts)) and counts[:2] == [sizes[src], sizes[dst]],
        f"'num_rows', 'num_cols' and 'num_edges' of {edge_type} must be in "
        f'[0, 2^48) and fit the node types (got {counts})',
    )
    widths = fields.get('widths')
    check(
        isinstance(widths, dict)
        and set(widths) == set(WIDTHS)
        and all(
            type(widths[k]) is int and widths[k] in allowed
            for k, allowed in WIDTHS.items()
        ),
        f"'widths' must say {WIDTHS} (got {widths!r})",
    )
    table = fields.get('chunks')
    check(
        isinstance(table, list)
        and all(
            isinstance(row, list)
            and len(row) == columns
            and all(map(_count, row))
            for row in table
        ),
        f"'chunks' must have {columns} numbers in [0, 2^48) for each chunk",
    )
    chunks = np.array(table, dtype=np.int64).reshape(-1, columns)
    rows, cols, edges = map(int, counts)
    name: Any = fields.get('file')
    assert isinstance(widths, dict)
    check(
        widths['neighbor'] == 8 or rows <= 1 << 31,
        f"{rows} nodes do not fit in 'neighbor' of 4 bytes",
    )
    return RelationMeta(
        edge_type,
        name,
        rows,
        cols,
        edges,
        widths,
        chunks,
        number,
        fields.get('checksum'),
    )


def _read_edge_type(
    names: Any, sizes: dict[Any, int], check: Check
) -> tuple[str, str, str] | None:
    if None in sizes:
        check(names is None, "'edge_type' must be null (got a name)")
        return None
    check(
        isinstance(names, list)
        and len(names) == 3
        and all(isinstance(part, str) for part in names)
        and names[0] in sizes
        and names[2] in sizes,
        f"'edge_type' must name two node types (got {names!r})",
    )
    src, name, dst = names
    return src, name, dst


def _check_table(
    relation: RelationMeta, meta: GraphMeta, check: Check
) -> None:
    """Checks that chunks follow each other in nodes, edges and bytes.

    A chunk starts after the previous chunk's last node, or continues the edges
    of that node.
    """
    table, name = relation.chunks, relation.file

    def rows(valid: np.ndarray, rule: str) -> None:
        if not valid.all():
            at = int(np.argmin(valid))
            check(False, f'chunk {at} of {name}: {rule}')

    ends = table[:, START] + table[:, NODES]
    if len(table) == 0:
        check(
            relation.num_cols == 0 == relation.num_edges == meta.sizes[name],
            f'{name} must have chunks',
        )
        return
    rows(table[:, NODES] > 0, 'it must have a node')
    before = np.concatenate([[0], ends[:-1]])
    gap = before - table[:, START]
    rows(
        (gap == 0) | (gap == 1),
        'it must start at the node where the chunk before ends',
    )
    check(
        int(ends[-1]) == relation.num_cols,
        f'the chunks of {name} must end at node {relation.num_cols} '
        f'(got {int(ends[-1])})',
    )
    for start, size, total in (
        (FIRST, EDGES, relation.num_edges),
        (OFFSET, LENGTH, meta.sizes[name]),
    ):
        sums = np.cumsum(table[:, size])
        what = 'edge' if start == FIRST else 'byte'
        rows(
            (table[:, start] == sums - table[:, size]) & (sums >= 0),
            f'it must start at the {what} where the chunk before ends',
        )
        check(
            int(sums[-1]) == total,
            f'the chunks of {name} must end at {what} {total} '
            f'(got {int(sums[-1])})',
        )
    size = relation.places(table[:, NODES], table[:, EDGES])['end']
    rows(
        table[:, LENGTH] == round_up(size, meta.alignment),
        f'its length must be what it holds, a multiple of {meta.alignment}',
    )
    if meta.version == 1:
        rows(table[:, CHECKSUM] < 1 << 32, 'its checksum must have 32 bits')
