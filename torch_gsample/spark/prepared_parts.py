"""Writes ranges of edges to parts, and copies them to their positions.

Sorted edges come in, and each task writes the chunks of its range to a file.
The chunks of a relation with headers and checksums, which depend on their
positions, go out.
"""

import os
import pickle
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import TaskContext
from pyspark.sql import SparkSession

from torch_gsample.spark.frames import map_arrow, pa
from torch_gsample.storage.chunk_writer import RelationWriter
from torch_gsample.storage.crc32c import block_checksums
from torch_gsample.storage.format import (
    BLOCKS_OF_FILE,
    EDGES,
    FIRST,
    HEADER,
    LENGTH,
    NODES,
    OFFSET,
    START,
    GraphMeta,
    RelationMeta,
)

#: Names of columns of edges, and of arrays of chunks.
_ARRAYS = {
    'dst': 'col',
    'src': 'neighbor',
    'id': 'edge_id',
    'weight': 'weight',
    'time': 'time',
}

#: The description of a part written by a task.
PART = {
    'part': pa.int64(),
    'file': pa.string(),
    'first': pa.int64(),
    'last': pa.int64(),
    'chunks': pa.binary(),
}


class _PartFile:
    """Takes the chunks of a part; checksums come later."""

    def __init__(self, file: Any):
        self._file = file

    def write(self, chunk: np.ndarray) -> None:
        self._file.write(chunk.data)


def write_part(
    op: str,
    folder: Path,
    relation: RelationMeta,
    batches: Iterator[pa.RecordBatch],
    chunk_bytes: int,
    alignment: int,
) -> Iterator[pa.RecordBatch]:
    """Writes the sorted edges of a task to a file, and yields its row.

    Args:
        op (str): The operator, for errors.
        folder (Path): The folder of the graph.
        relation (RelationMeta): The relation, without chunks.
        batches (Iterator[pyarrow.RecordBatch]): The edges, in order.
        chunk_bytes (int): Maximum size of a chunk.
        alignment (int): Of chunks.
    """
    context = TaskContext.get()
    assert context is not None
    part = context.partitionId()
    # Each attempt of a task has its own file.
    name = f'part-{relation.number}-{part}-{uuid.uuid4().hex}'
    first = last = -1
    before: list[int] | None = None
    with open(folder / name, 'wb') as file:
        for batch in batches:
            if batch.num_rows == 0:
                continue
            arrays = edge_arrays(op, batch)
            before = check_order(op, arrays, before)
            if first < 0:
                first = int(arrays['col'][0])
                writer = RelationWriter(
                    _PartFile(file), relation, chunk_bytes, alignment, first
                )
            last = int(arrays['col'][-1])
            writer.add(**arrays)
        if first >= 0:
            relation.num_cols = last + 1
            writer.finish()
    if first < 0:
        os.unlink(folder / name)
        return
    table = relation.chunks.astype('<i8').tobytes()
    row = (part, name, first, last, table)
    columns = [
        pa.array([value], t)
        for value, t in zip(row, PART.values(), strict=True)
    ]
    yield pa.RecordBatch.from_arrays(columns, [*PART])


def placed(
    relation: RelationMeta,
    parts: list[Any],
    chunk_bytes: int,
    alignment: int,
) -> list[tuple[str | None, np.ndarray]]:
    """Returns the file and the rows of the chunk table of each part.

    Nodes between two parts have no edges: they get separate chunks without a
    file.

    Args:
        relation (RelationMeta): The relation.
        parts (List): The file, first and last node, and chunk table of each.
        chunk_bytes (int): Maximum size of a chunk.
        alignment (int): Of chunks.
    """
    pieces: list[tuple[str | None, np.ndarray]] = []
    node = edges = offset = 0
    ends = [(None, relation.num_cols, relation.num_cols, b'')]
    for file, first, last, table in [*parts, *ends]:
        if first > node:
            gap = _gap(relation, node, first, chunk_bytes, alignment)
            pieces.append((None, gap))
        if file is not None:
            rows = np.frombuffer(table, '<i8').reshape(-1, 6).astype(np.int64)
            pieces.append((file, rows))
            node = last + 1
    for _, rows in pieces:
        rows[:, FIRST] += edges
        rows[:, OFFSET] += offset
        edges += int(rows[:, EDGES].sum())
        offset += int(rows[:, LENGTH].sum())
    return pieces


def _gap(
    relation: RelationMeta, begin: int, end: int, chunk_bytes: int, align: int
) -> np.ndarray:
    """Returns the chunk table of nodes without edges."""
    most = max(chunk_bytes // 8 - 32, 1)
    start = np.arange(begin, end, most)
    rows = np.zeros((len(start), 6), np.int64)
    rows[:, START] = start
    rows[:, NODES] = np.minimum(end - start, most)
    size = relation.places(rows[:, NODES], rows[:, EDGES])['end']
    rows[:, LENGTH] = -(-size // align) * align
    rows[:, OFFSET] = rows[:, LENGTH].cumsum() - rows[:, LENGTH]
    return rows


def copy_parts(
    spark: SparkSession,
    folder: Path,
    meta: GraphMeta,
    relation: RelationMeta,
    pieces: list[tuple[str | None, np.ndarray]],
) -> None:
    """Copies all parts to their positions, each in a task.

    Args:
        spark (SparkSession): The session.
        folder (Path): The folder of the graph.
        meta (GraphMeta): The graph.
        relation (RelationMeta): The relation, with its whole chunk table.
        pieces (List[Tuple[str, numpy.ndarray]]): Of :func:`placed`.
    """
    if not pieces:
        return
    tasks = [
        pickle.dumps((folder, meta, relation, *piece)) for piece in pieces
    ]
    number = pa.array(range(len(tasks)), pa.int32())
    table = pa.table({'part': number, 'task': tasks})
    # Not an RDD: its tasks start separate Python workers, which import torch
    # again.
    rows = spark.createDataFrame(table).repartitionById(len(tasks), 'part')
    map_arrow(rows, _copy_rows, 'part int').collect()


def _copy_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column('task').to_pylist():
            _copy(*pickle.loads(task))
        yield batch.select(['part'])


def _copy(
    folder: Path,
    meta: GraphMeta,
    relation: RelationMeta,
    file: str | None,
    table: np.ndarray,
) -> None:
    """Copies the chunks of a part to their positions in the graph.

    A repeated task writes the same bytes.
    """
    relation.chunks = table
    begin, block = int(table[0, OFFSET]), meta.block_bytes
    base = relation.number * BLOCKS_OF_FILE
    with (
        open(os.devnull if file is None else folder / file, 'rb') as part,
        open(folder / relation.file, 'r+b') as out,
        open(folder / relation.table_file, 'r+b') as checksums,
    ):
        out.seek(begin)
        checksums.seek(begin // block * 4)
        for chunk, (offset, length) in enumerate(
            table[:, [OFFSET, LENGTH]].tolist()
        ):
            data = np.zeros(length, np.uint8)
            part.readinto(data.data)
            header = relation.header(chunk)
            data[: HEADER.size] = np.frombuffer(header, np.uint8)
            out.write(data.data)
            found = block_checksums(
                data, base + offset // block, meta.generation, block
            )
            checksums.write(found.astype('<u4', copy=False).data)
        for written in (out, checksums):
            written.flush()
            os.fsync(written.fileno())


def check_order(
    op: str, arrays: dict[str, np.ndarray], before: list[int] | None
) -> list[int]:
    """Checks that no two edges of a node tie: their order decides draws.

    Args:
        op (str): The operator, for errors.
        arrays (Dict[str, np.ndarray]): A batch of edges, in order.
        before (List[int], optional): The last edge of the batch before it.

    Returns:
        List[int]: The last edge.

    Raises:
        ValueError: If two edges have one id.
    """
    names = [n for n in ('col', 'time', 'edge_id') if n in arrays]
    rows = np.stack([arrays[name] for name in names])
    if before is not None:
        rows = np.concatenate([np.array(before)[:, None], rows], 1)
    same = (rows[:, 1:] == rows[:, :-1]).all(0)
    if same.any():
        node, *_, id = rows[:, 1:][:, same][:, 0]
        raise ValueError(
            f"{op}: the column 'id' of 'edges' must hold distinct numbers "
            f'(got {id} twice, at the node {node})'
        )
    return rows[:, -1].tolist()


def edge_arrays(op: str, batch: pa.RecordBatch) -> dict[str, np.ndarray]:
    """Returns the arrays of a batch of edges, by their names in chunks.

    Args:
        op (str): The operator, for errors.
        batch (pyarrow.RecordBatch): The edges.

    Raises:
        ValueError: If a weight is negative or not finite.
    """
    arrays = {
        _ARRAYS[name]: batch.column(name).to_numpy(zero_copy_only=False)
        for name in batch.schema.names
    }
    if 'weight' in arrays:  # a null is NaN here
        wrong = ~(np.isfinite(arrays['weight']) & (arrays['weight'] >= 0))
        if wrong.any():
            raise ValueError(
                f"{op}: column 'weight' of 'edges' must be finite and not "
                f'negative (got {arrays["weight"][wrong][0]} at the edge '
                f'{arrays["edge_id"][wrong][0]})'
            )
    return arrays
