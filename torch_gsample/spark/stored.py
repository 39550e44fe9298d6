"""Samples from stored edges, in the tasks that need them.

The input is a frontier. It is shuffled by ranges of nodes, and each task reads
the edges drawn by its nodes from a
:class:`~torch_gsample.storage.ChunkedGraph` on a file system shared by all
executors: those of a node once for all batches. Drawn edges are shuffled.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.spark.frames import (
    OWN,
    DataFrame,
    F,
    map_arrow,
    pa,
    to_tensor,
)
from torch_gsample.spark.selection import Selection
from torch_gsample.storage.chunks import chunk_arrays
from torch_gsample.storage.columns import RelationReader, concat_ranges
from torch_gsample.storage.format import EDGES, LENGTH, NODES, OFFSET, START
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.random_reads import RandomReads
from torch_gsample.storage.stored_graph import StoredGraph

_CACHE_BYTES = 32 << 20
#: Edges of a task's output batch.
_ROWS = 1 << 18


class StoredAdjacency:
    """The columns of a relation on disk.

    Args:
        graph (StoredGraph): The graph.
        number (int): The index of the relation.
        weighted (bool): Whether to draw by weight.
    """

    def __init__(self, graph: StoredGraph, number: int, weighted: bool):
        self._graph, self._number = graph, number
        self._weighted = weighted
        self.persisted: list[DataFrame] = []

    def draw(self, frontier: DataFrame, selection: Selection) -> DataFrame:
        """Selects edges of the nodes of a frontier.

        Args:
            frontier (DataFrame): ``batch``, ``tree``, ``node`` and, with
                times, ``time``.
            selection (Selection): The options.

        Returns:
            DataFrame: Those columns, ``slot``, and the edges ``src`` and
            ``id``.
        """
        spark, graph = frontier.sparkSession, self._graph
        path, generation = str(graph.path.absolute()), graph.meta.generation
        number, weighted = self._number, self._weighted

        def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
            reader = opened(path, generation)[1][number]
            for rows in batches:
                yield from _draw(rows, reader, selection, weighted)

        fields = [*frontier.columns, 'slot', 'src', 'id']
        parts = int(str(spark.conf.get('spark.sql.shuffle.partitions')))
        columns = graph.meta.relations[number].num_cols
        part = F.expr(f'cast(node * {parts} div {columns} as int)')
        ranges = (
            frontier.withColumn(OWN + 'part', part)
            .repartitionById(parts, OWN + 'part')
            .drop(OWN + 'part')
        )
        schema = ', '.join(f'{name} long' for name in fields)
        return map_arrow(ranges, draw, schema)


def opened(
    path: str, generation: int
) -> tuple[StoredGraph, list[RelationReader]]:
    """Opens a graph, once in each worker, and the readers of its relations.

    Args:
        path (str): The folder.
        generation (int): The expected generation.

    Raises:
        ValueError: If the folder has another graph.
    """
    graph, reads = _opened(path, generation)
    return graph, reads.readers()


@lru_cache(maxsize=4)
def _opened(path: str, generation: int) -> tuple[StoredGraph, RandomReads]:
    graph = StoredGraph(path)
    if graph.meta.generation != generation:
        raise ValueError(
            f'neighbor_sample: the graph in {path!r} was replaced by another '
            f'one while it was sampled'
        )
    return graph, RandomReads(graph, _CACHE_BYTES)


def _draw(
    rows: pa.RecordBatch,
    reader: RelationReader,
    selection: Selection,
    weighted: bool,
) -> Iterator[pa.RecordBatch]:
    """Draws once for each node and time, and copies it to all their rows."""
    names = rows.schema.names
    own = {name: to_tensor(rows.column(name)) for name in names}
    node, time = own['node'], own.get('time')
    key = node
    if time is not None:
        times, rank = time.unique(return_inverse=True)
        key = node * max(len(times), 1) + rank
    of, place = key.unique(return_inverse=True)
    if time is not None:
        of, rank = of // max(len(times), 1), of % max(len(times), 1)
        frontier = Frontier(of, None, times[rank])
    else:
        frontier = Frontier(of, None, None)
    indptr, src, id = reader.draw(
        selection.relation,
        selection.hop,
        frontier,
        selection.fanout,
        selection.options(),
        weighted,
    )
    length = indptr.diff()[place]
    start = indptr[:-1][place]
    for part in _parts(length):
        edges = concat_ranges(start[part], length[part])
        count = length[part]
        columns = {
            name: torch.repeat_interleave(value[part], count)
            for name, value in own.items()
        }
        columns['slot'] = edges - torch.repeat_interleave(start[part], count)
        columns['src'], columns['id'] = src[edges].long(), id[edges].long()
        yield pa.RecordBatch.from_pydict(
            {name: value.numpy() for name, value in columns.items()}
        )


def _parts(length: Tensor) -> Iterator[slice]:
    """Cuts rows into parts of about ``_ROWS`` edges."""
    part = (length.cumsum(0) - length) // _ROWS
    counts = part.unique_consecutive(return_counts=True)[1].tolist()
    first = 0
    for count in counts:
        yield slice(first, first + count)
        first += count


def chunk_edges(
    graph: StoredGraph, number: int, chunk: int, names: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the edges of a chunk.

    Args:
        graph (StoredGraph): The graph.
        number (int): The index of the relation.
        chunk (int): The index of the chunk.
        names (List[str]): Of the columns of :func:`stored_edges`.
    """
    relation = graph.meta.relations[number]
    row = relation.chunks[chunk]
    data = np.empty(int(row[LENGTH]), np.uint8)
    file = graph.open(relation, direct=False)
    try:
        file.read(int(row[OFFSET]), data)
        graph.checked[number].check(file, chunk, data)
    finally:
        file.close()
    arrays = chunk_arrays(file.path, relation, chunk, data)
    first = np.arange(int(row[START]), int(row[START] + row[NODES]))
    arrays['dst'] = np.repeat(first, np.diff(arrays['offset']))
    arrays['src'] = arrays['neighbor']
    arrays['id'] = arrays.get(
        'edge_id', np.arange(int(row[2]), int(row[2] + row[EDGES]))
    )
    for at in range(0, int(row[EDGES]), _ROWS):
        yield pa.RecordBatch.from_pydict(
            {
                name: arrays[name][at : at + _ROWS].astype(
                    np.float64 if name == 'weight' else np.int64
                )
                for name in names
            }
        )
