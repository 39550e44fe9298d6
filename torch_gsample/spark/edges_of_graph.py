"""Reads the edges of a graph on disk as a DataFrame.

A :class:`~torch_gsample.storage.ChunkedGraph` comes in; the edges of its
chunks, each read by a task, go out.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from torch_gsample.spark.frames import DataFrame, map_arrow, pa
from torch_gsample.spark.jobs import operation, parallelism
from torch_gsample.spark.stored import chunk_edges, opened
from torch_gsample.storage import ChunkedGraph


@operation
def stored_edges(
    spark: SparkSession, graph: ChunkedGraph, edge_type: Any = None
) -> DataFrame:
    """Returns the edges of a stored graph, in the order of destinations.

    They are an input of the operators for whole graphs. Each task reads some
    chunks.

    Args:
        spark (SparkSession): The session.
        graph (ChunkedGraph): A graph written by :func:`prepare_adjacency` or
            :meth:`ChunkedGraph.write`.
        edge_type (Tuple[str, str, str], optional): The relation, in a graph
            with types.

    Returns:
        DataFrame: ``src``, ``dst``, ``id`` and, if stored, ``weight`` and
        ``time``.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If the relation does not exist.

    Example:
        >>> import tempfile, torch
        >>> from torch_gsample.spark import local_session
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph = ChunkedGraph.write(f'{folder}/graph', edge_index)
        ...     edges = stored_edges(local_session(), graph)
        ...     sorted(tuple(row) for row in edges.collect())
        [(1, 0, 0), (2, 0, 1), (2, 1, 2)]
    """
    known = [relation.edge_type for relation in graph.meta.relations]
    if edge_type not in known:
        raise ValueError(
            f"stored_edges: 'edge_type' must be one of {known} (got "
            f'{edge_type!r})'
        )
    number = known.index(edge_type)
    relation = graph.meta.relations[number]
    kinds = {'src': 'long', 'dst': 'long', 'id': 'long'}
    for name, kind in (('weight', 'double'), ('time', 'long')):
        if relation.widths[name]:
            kinds[name] = kind
    path, generation = str(graph.path.absolute()), graph.meta.generation

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        own = opened(path, generation)[0]
        for rows in batches:
            for chunk in rows.column(0).to_pylist():
                yield from chunk_edges(own, number, chunk, [*kinds])

    chunks = len(relation.chunks)
    parallel = max(min(4 * parallelism(spark), chunks), 1)
    parallel = max(parallel, graph.meta.sizes[relation.file] >> 27)
    schema = ', '.join(f'{name} {kind}' for name, kind in kinds.items())
    return map_arrow(spark.range(0, chunks, 1, parallel), read, schema)
