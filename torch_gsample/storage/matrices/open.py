"""Opens the relations of a graph on disk as matrices."""

from typing import Any

from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.matrix import StoredMatrix
from torch_gsample.storage.matrices.rows import stored_rows, write_rows
from torch_gsample.storage.matrices.steps import Steps
from torch_gsample.storage.random_read import RandomReads
from torch_gsample.storage.reading import ENGINES

#: Memory of the cache of blocks, if it is not given.
CACHE_BYTES = 256 << 20


def open_matrices(
    graph: ChunkedGraph,
    cache_bytes: int = CACHE_BYTES,
    engine: str = 'auto',
    use_weights: bool = True,
) -> dict[Any, StoredMatrix]:
    """Returns the relations of a graph on disk as matrices.

    See :meth:`ChunkedGraph.matrix` for the arguments.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If an argument breaks a rule that is named, or a file is
            not as it was written.
    """
    name = 'ChunkedGraph.matrix'
    if engine not in ENGINES:
        raise ValueError(
            f"{name}: 'engine' must be one of {ENGINES} (got {engine!r})"
        )
    if isinstance(cache_bytes, bool) or cache_bytes < 0:
        raise ValueError(
            f"{name}: 'cache_bytes' must not be negative (got {cache_bytes})"
        )
    out, reads = {}, RandomReads(graph, cache_bytes // 2, engine)
    for number, meta in enumerate(graph.meta.relations):
        edges, rows = StoredEdges(graph, number, reads), None
        found = stored_rows(edges)
        if found is not None:
            share = cache_bytes // 2 * graph.meta.sizes[meta.file]
            share //= max(graph.num_bytes, 1)
            rows = StoredEdges(
                found,
                0,
                RandomReads(found, share, engine),
                edges.dtypes.get('weight'),
            )
        weighted = use_weights and edges.has_weight
        out[meta.edge_type] = StoredMatrix(edges, rows, Steps(weighted))
    return out


def write_all_rows(
    graph: ChunkedGraph, memory_limit: int, chunk_bytes: int
) -> None:
    """See :meth:`ChunkedGraph.write_rows`."""
    reads = RandomReads(graph, 0)
    for number in range(len(graph.meta.relations)):
        edges = StoredEdges(graph, number, reads)
        write_rows(edges, memory_limit, chunk_bytes)
