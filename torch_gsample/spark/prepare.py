"""Writes edges as a graph on disk by all executors, once for many samples.

The input is DataFrames of edges; the output is the folder of a
:class:`~torch_gsample.storage.ChunkedGraph`. Edges are shuffled once, by
ranges of destinations: each task writes the chunks of its range to a file.
This determines headers and checksums, which depend on the position of a chunk
in the whole graph, and tasks copy their files to their positions.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.ops import _check
from torch_gsample.spark.batch_types import BatchTypes, EdgeType
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    checked_relation,
    map_arrow,
    pa,
)
from torch_gsample.spark.jobs import operation, parallelism
from torch_gsample.spark.prepared_parts import (
    copy_parts,
    placed,
    write_part,
)
from torch_gsample.spark.run_folder import local_folder
from torch_gsample.spark.sample_arguments import check_edge_types
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.chunk_writer import (
    MIN_CHUNK_BYTES,
    new_directories,
    write_description,
)
from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.format import (
    LENGTH,
    GraphMeta,
    RelationMeta,
)
from torch_gsample.storage.sources import index_width

_OP = 'prepare_adjacency'
_PART_BYTES = 128 << 20
#: Maximum bytes per chunk.
CHUNK_BYTES = 8 << 20
#: Minimum edges per task.
LEAST_EDGES = 1 << 17
#: Nodes stored for any number of edges, and for each edge; more nodes must be
#: given as ``num_nodes``, as 8 bytes are stored for each.
_MOST_NODES, _MOST_PER_EDGE = 1 << 28, 64


@operation
def prepare_adjacency(
    edges: DataFrame | Mapping[EdgeType, DataFrame],
    path: str | Path,
    *,
    num_nodes: int | Mapping[str, int] | None = None,
    weighted: bool = False,
    timed: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> ChunkedGraph:
    """Stores edges by destination, so that sampling does not shuffle them.

    The folder is that of a :class:`~torch_gsample.storage.ChunkedGraph`: its
    chunk table has the position of each range of nodes, the edges of a hub are
    split over chunks, and each 4-KiB block has a checksum. Executors write it
    in parallel, so they and the driver must share the file system of ``path``.
    It appears once it is complete.

    Args:
        edges (DataFrame or Dict): See :func:`neighbor_sample`.
        path (str or Path): The folder, which must not exist.
        num_nodes (int or Dict, optional): The number of nodes (of each type);
            default: the largest id plus one.
        weighted (bool, optional): Whether to store ``weight``.
        timed (bool, optional): Whether to store ``time``.
        chunk_bytes (int, optional): Maximum size of a chunk in bytes.

    Returns:
        ChunkedGraph: The graph, for :func:`neighbor_sample` and
        :func:`stored_edges`.

    Raises:
        FileExistsError: If ``path`` exists.
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, an argument is out of range, or
            an id is not below ``num_nodes``.

    Example:
        >>> import tempfile
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> edges = spark.createDataFrame(
        ...     [(1, 0, 0), (2, 0, 1)], ['src', 'dst', 'id']
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = prepare_adjacency(edges, f'{folder}/graph')
        ...     graph.num_nodes, graph.num_edges
        ({None: 3}, {None: 2})
    """
    _check.count(_OP, 'chunk_bytes', chunk_bytes, MIN_CHUNK_BYTES)
    known = [*edges] if isinstance(edges, Mapping) else None
    if known is not None:
        check_edge_types(_OP, 'edges', known)
    types = BatchTypes.of(known)
    frames = [
        checked_relation(_OP, frame, weighted, timed)
        for frame in (
            edges.values() if isinstance(edges, Mapping) else [edges]
        )
    ]
    least = _checked_sizes(types, num_nodes)
    folder = local_folder(_OP, 'path', path)
    if os.path.lexists(folder):
        raise FileExistsError(
            f"{_OP}: 'path' must not exist yet (got {str(path)!r})"
        )
    with new_directories(folder) as made:
        sizes, counts = counted(types, frames)
        for t, size in enumerate(least):
            if size < sizes[t]:
                raise ValueError(
                    f"{_OP}: 'num_nodes' must be above all ids (got {size} "
                    f'and the id {sizes[t] - 1})'
                )
        if not least:
            _check_density(types, sizes, counts)
        sizes = least or sizes
        meta = write_relations(made, types, frames, sizes, counts, chunk_bytes)
        write_description(made, meta, folder)
    return ChunkedGraph(folder)


def write_relations(
    made: list[Path],
    types: BatchTypes,
    frames: list[DataFrame],
    sizes: list[int],
    counts: list[int],
    chunk_bytes: int,
    op: str = _OP,
) -> GraphMeta:
    """Writes the chunks of all relations.

    Args:
        made (List[Path]): The folder of the graph.
        types (BatchTypes): Of the graph.
        frames (List[DataFrame]): The edges of each relation, checked.
        sizes (List[int]): The number of nodes of each type.
        counts (List[int]): The number of edges of each relation.
        chunk_bytes (int): Maximum size of a chunk.
        op (str, optional): The operator, for errors.
    """
    none: list[Any] = [None] * len(sizes)
    meta = GraphMeta(types.nodes, sizes, none, none, [])
    meta.generation = secrets.randbits(64)
    for r, (frame, count) in enumerate(zip(frames, counts, strict=True)):
        relation = _relation(types, sizes, count, r, frame)
        _write(op, made[0], meta, relation, frame, chunk_bytes)
        meta.relations.append(relation)
    return meta


def counted(
    types: BatchTypes, frames: list[DataFrame]
) -> tuple[list[int], list[int]]:
    """Returns the number of nodes of each type, and of edges of each."""
    sizes, counts = [0] * types.num_nodes, []
    for ends, frame in zip(types.ends, frames, strict=True):
        row = frame.agg(F.count(F.lit(1)), F.max('src'), F.max('dst')).head()
        assert row is not None
        counts.append(row[0])
        for t, largest in zip(ends, row[1:], strict=True):
            sizes[t] = max(sizes[t], 0 if largest is None else largest + 1)
    return sizes, counts


def _check_density(
    types: BatchTypes, sizes: list[int], counts: list[int]
) -> None:
    """Checks that most ids could have edges, unlike hashed ids.

    Raises:
        ValueError: If offsets of nodes without edges would fill a disk.
    """
    for (_, target), count in zip(types.ends, counts, strict=True):
        most = max(_MOST_NODES, _MOST_PER_EDGE * count)
        if sizes[target] > most:
            raise ValueError(
                f"{_OP}: node ids must be dense, unless 'num_nodes' is given: "
                f'at most {most} for {count} edges, as 8 bytes are stored for '
                f'each (got the id {sizes[target] - 1}); assign_ids(kind='
                f"'dense') makes such ids"
            )


def _checked_sizes(types: BatchTypes, num_nodes: Any) -> list[int]:
    """Returns the given number of nodes of each type, or an empty list."""
    if num_nodes is None:
        return []
    given = num_nodes if isinstance(num_nodes, Mapping) else {None: num_nodes}
    if set(given) != set(types.nodes):
        raise ValueError(
            f"{_OP}: 'num_nodes' must be for the node types {types.nodes} "
            f'(got {num_nodes!r})'
        )
    sizes = [_check.plain_number(given[n]) for n in types.nodes]
    return [_check.count(_OP, 'num_nodes', size, 0) for size in sizes]


def _relation(
    types: BatchTypes,
    sizes: list[int],
    count: int,
    number: int,
    frame: DataFrame,
) -> RelationMeta:
    source, target = types.ends[number]
    has = frame.columns
    widths = {
        'neighbor': index_width(sizes[source]),
        'edge_id': 8,
        'weight': 8 * ('weight' in has),
        'time': 8 * ('time' in has),
    }
    none = np.empty((0, 6), np.int64)
    name = types.edges[number]
    file = f'edges-{number}.bin'
    rows, cols = sizes[source], sizes[target]
    return RelationMeta(name, file, rows, cols, count, widths, none, number)


def _write(
    op: str,
    folder: Path,
    meta: GraphMeta,
    relation: RelationMeta,
    frame: DataFrame,
    chunk_bytes: int,
) -> None:
    """Writes the chunks and the checksums of a relation."""
    parts = _write_parts(op, folder, meta, relation, frame, chunk_bytes)
    pieces = placed(relation, parts, chunk_bytes, meta.alignment)
    relation.chunks = np.concatenate(
        [relation.chunks, *(t for _, t in pieces)]
    )
    size = int(relation.chunks[:, LENGTH].sum())
    for name, length in (
        (relation.file, size),
        (relation.table_file, size // meta.block_bytes * 4),
    ):
        with open(folder / name, 'wb') as file:
            file.truncate(length)
    copy_parts(frame.sparkSession, folder, meta, relation, pieces)
    checksum = meta.file_seed(relation.table_file)
    with open(folder / relation.table_file, 'rb') as table:
        while data := table.read(1 << 24):
            checksum = crc32c(data, checksum)
    relation.checksum = checksum
    # Also those of attempts that failed, or were not needed.
    for path in folder.glob(f'part-{relation.number}-*'):
        path.unlink()


def _write_parts(
    op: str,
    folder: Path,
    meta: GraphMeta,
    relation: RelationMeta,
    frame: DataFrame,
    chunk_bytes: int,
) -> list[Any]:
    """Writes each range of destinations to a file, in its order."""
    order = ['dst', *(['time'] if 'time' in frame.columns else []), 'id']
    bytes_ = relation.num_edges * sum(relation.widths.values())
    parallel = parallelism(frame.sparkSession)
    most = -(-relation.num_edges // LEAST_EDGES)
    parts = max(-(-bytes_ // _PART_BYTES), min(parallel, most), 1)
    alignment = meta.alignment

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from write_part(
            op, folder, relation, batches, chunk_bytes, alignment
        )

    ranges = frame.repartitionByRange(parts, *order)
    schema = 'part long, file string, first long, last long, chunks binary'
    rows = map_arrow(ranges.sortWithinPartitions(*order), write, schema)
    found = sorted(rows.collect())
    return [(r.file, r.first, r.last, bytes(r.chunks)) for r in found]
