"""The chunked CSC format: the layout of a chunk, and ``meta.json``.

Bytes of a file come in, checked descriptions go out; ``docs/storage.md`` is
the specification. Nothing here trusts a file: what a number would allocate is
checked against the size of the file first.
"""

import json
import os
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

FORMAT = 'gsample chunked CSC'
VERSION = 1
MAGIC = b'gsCSCchk'
META = 'meta.json'

#: magic, version, widths of neighbours, edge ids, weights and times, zero;
#: start node, number of nodes, first edge, number of edges.
HEADER = struct.Struct('<8s6I4q')
#: Counts of nodes and edges stay below it: sums of bytes then fit in int64.
MAX_COUNT = 1 << 48
#: Arrays of a chunk start at multiples of it.
ITEM = 8

#: Columns of the chunk table.
START, NODES, FIRST, EDGES, OFFSET, LENGTH, CHECKSUM = range(7)

_WIDTHS = {
    'neighbor': (4, 8),
    'edge_id': (0, 4, 8),
    'weight': (0, 4, 8),
    'time': (0, 8),
}
_DTYPES = {
    ('offset', 8): '<i8',
    ('weight', 4): '<f4',
    ('weight', 8): '<f8',
}


def malformed(
    path: Any, offset: int, rule: str, name: str = 'ChunkedGraph'
) -> NoReturn:
    """Raises the error of a file that breaks a rule of its format.

    Raises:
        ValueError: Always; it names the file and the offset in it.
    """
    raise ValueError(f'{name}: {path}, offset {offset}: {rule}')


def round_up(value: Any, multiple: int) -> Any:
    """Returns the least multiple that is not below ``value``."""
    return (value + multiple - 1) // multiple * multiple


@dataclass
class RelationMeta:
    """One edge type on disk.

    Args:
        edge_type (Tuple[str, str, str], optional): Its name.
        file (str): Name of the file of its chunks.
        num_rows (int): Number of sources.
        num_cols (int): Number of destinations.
        num_edges (int): Number of edges.
        widths (Dict[str, int]): Bytes of an item of each array, 0 where there
            is none: ``neighbor``, ``edge_id``, ``weight`` and ``time``.
        chunks (numpy.ndarray): int64 ``[num_chunks, 7]``, the chunk table.
    """

    edge_type: tuple[str, str, str] | None
    file: str
    num_rows: int
    num_cols: int
    num_edges: int
    widths: dict[str, int]
    chunks: np.ndarray

    def dtype(self, name: str) -> np.dtype:
        """Returns the dtype of an array."""
        width = 8 if name == 'offset' else self.widths[name]
        return np.dtype(_DTYPES.get((name, width), f'<i{width}'))

    def places(self, nodes: Any, edges: Any) -> dict[str, Any]:
        """Returns where each array starts in a chunk, and its ``end``.

        Args:
            nodes (int or numpy.ndarray): Number of nodes of the chunk(s).
            edges (int or numpy.ndarray): Number of edges.
        """
        at = HEADER.size + 8 * (nodes + 1)
        places = {'offset': HEADER.size + 0 * nodes}
        for name in _WIDTHS:
            places[name] = at
            at = at + round_up(self.widths[name] * edges, ITEM)
        places['end'] = at
        return places

    def header(self, chunk: int) -> bytes:
        """Returns the header that a chunk must have."""
        row = self.chunks[chunk].tolist()
        widths = [self.widths[name] for name in _WIDTHS]
        return HEADER.pack(MAGIC, VERSION, *widths, 0, *row[:OFFSET])


@dataclass
class GraphMeta:
    """A graph on disk: what ``meta.json`` says.

    ``time_checksums`` has the CRC-32 of the times of each node type, or None
    where there are no times, or where an earlier version wrote them.
    """

    node_types: list[str | None]
    num_nodes: list[int]
    node_times: list[str | None]
    time_checksums: list[int | None]
    relations: list[RelationMeta]
    alignment: int = 4096
    sizes: dict[str, int] = field(default_factory=dict)

    def dump(self) -> str:
        """Returns the text of ``meta.json``."""
        relations = []
        for relation in self.relations:
            fields = asdict(relation)
            fields['chunks'] = relation.chunks.tolist()
            relations.append(fields)
        out = {
            'format': FORMAT,
            'version': VERSION,
            'alignment': self.alignment,
            'node_types': self.node_types,
            'num_nodes': self.num_nodes,
            'node_times': self.node_times,
            'time_checksums': self.time_checksums,
            'relations': relations,
        }
        return json.dumps(out)


def read_meta(path: Path) -> GraphMeta:
    """Reads and checks ``meta.json`` of a directory.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If it breaks a rule of the format.
    """
    file = path / META
    try:
        fields = json.loads(file.read_bytes())
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
    check(
        fields.get('version') == VERSION,
        f"'version' must be {VERSION} (got {fields.get('version')!r})",
    )
    meta = _read_fields(fields, check)
    names: list[Any] = [r.file for r in meta.relations]
    names += [t for t in meta.node_times if t is not None]
    for name in names:
        check(
            isinstance(name, str)
            and os.path.basename(name) == name != ''
            and '\0' not in name,
            f'{name!r} is no name of a file in the directory',
        )
        meta.sizes[name] = os.stat(path / name).st_size
    for relation in meta.relations:
        _check_table(relation, meta, check)
    for name, size in zip(meta.node_times, meta.num_nodes, strict=True):
        if name is not None and meta.sizes[name] != 8 * size:
            malformed(
                path / name,
                meta.sizes[name],
                f'its size must be {8 * size}, 8 bytes for each node',
            )
    return meta


Check = Callable[[bool, str], None]


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < MAX_COUNT


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
    # Earlier versions wrote none.
    checksums = fields.get('time_checksums', [None] * len(types))
    check(
        isinstance(checksums, list)
        and len(checksums) == len(types)
        and all(c is None or (_count(c) and c < 1 << 32) for c in checksums),
        "'time_checksums' must hold null or 32 bits for each node type",
    )
    assert type(alignment) is int
    sizes = dict(zip(types, counts, strict=True))
    read = [_read_relation(r, sizes, check) for r in relations]
    edge_types = [r.edge_type for r in read]
    check(
        len(set(edge_types)) == len(edge_types),
        "'relations' must have different edge types",
    )
    return GraphMeta(types, counts, times, checksums, read, alignment)


def _read_relation(
    fields: Any, sizes: dict[Any, int], check: Check
) -> RelationMeta:
    check(isinstance(fields, dict), 'a relation must be an object')
    edge_type = fields.get('edge_type')
    if None in sizes:
        check(edge_type is None, "'edge_type' must be null (got a name)")
        src, dst = None, None
    else:
        check(
            isinstance(edge_type, list)
            and len(edge_type) == 3
            and all(isinstance(part, str) for part in edge_type)
            and edge_type[0] in sizes
            and edge_type[2] in sizes,
            f"'edge_type' must name two node types (got {edge_type!r})",
        )
        edge_type = tuple(edge_type)
        src, dst = edge_type[0], edge_type[2]
    counts = [fields.get(k) for k in ('num_rows', 'num_cols', 'num_edges')]
    check(
        all(map(_count, counts)) and counts[:2] == [sizes[src], sizes[dst]],
        f"'num_rows', 'num_cols' and 'num_edges' of {edge_type} must be in "
        f'[0, 2^48) and fit the node types (got {counts})',
    )
    widths = fields.get('widths')
    check(
        isinstance(widths, dict)
        and set(widths) == set(_WIDTHS)
        and all(
            type(widths[k]) is int and widths[k] in allowed
            for k, allowed in _WIDTHS.items()
        ),
        f"'widths' must say {_WIDTHS} (got {widths!r})",
    )
    table = fields.get('chunks')
    check(
        isinstance(table, list)
        and all(
            isinstance(row, list) and len(row) == 7 and all(map(_count, row))
            for row in table
        ),
        "'chunks' must have seven numbers in [0, 2^48) for each chunk",
    )
    chunks = np.array(table, dtype=np.int64).reshape(-1, 7)
    rows, cols, edges = map(int, counts)
    name: Any = fields.get('file')
    assert isinstance(widths, dict)
    check(
        widths['neighbor'] == 8 or rows <= 1 << 31,
        f"{rows} nodes do not fit in 'neighbor' of 4 bytes",
    )
    return RelationMeta(edge_type, name, rows, cols, edges, widths, chunks)


def _check_table(
    relation: RelationMeta, meta: GraphMeta, check: Check
) -> None:
    """Checks that chunks follow each other in nodes, edges and bytes.

    A chunk starts where the one before ends, or with the node in which it
    ends: then the edges of that node go on.
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
    rows(table[:, CHECKSUM] < 1 << 32, 'its checksum must have 32 bits')
