"""Opens the relations of a graph on disk as matrices."""

from dataclasses import dataclass
from typing import Any

import torch

from torch_gsample.graph_types import GraphTypes
from torch_gsample.memory import bytes_of
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.matrix import StoredMatrix
from torch_gsample.storage.matrices.reads import USUAL_DISK
from torch_gsample.storage.matrices.rows import (
    has_rows,
    stored_rows,
    write_rows,
)
from torch_gsample.storage.matrices.steps import Steps
from torch_gsample.storage.random_reads import RandomReads
from torch_gsample.storage.read_model import DiskModel
from torch_gsample.storage.reading import ENGINES

#: Maximum edges of a column in which an edge is searched.
_LOOKED_UP = 1 << 16


def open_matrices(
    graph: ChunkedGraph,
    cache_bytes: int | str | None = None,
    engine: str = 'auto',
    use_weights: bool = True,
    model: DiskModel | None = None,
) -> dict[Any, StoredMatrix]:
    """Returns the relations of a graph on disk as matrices.

    See :meth:`ChunkedGraph.matrix` for the arguments.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If an argument is invalid (the message names the rule), or
            a file is damaged.
    """
    name = 'ChunkedGraph.matrix'
    graph.refuse_segments(name)
    if engine not in ENGINES:
        raise ValueError(
            f"{name}: 'engine' must be one of {ENGINES} (got {engine!r})"
        )
    if cache_bytes is None:
        cache_bytes = graph.cache_bytes
    cache_bytes = bytes_of(cache_bytes, f"{name}: 'cache_bytes'")
    # Shared by columns and rows.
    cache_bytes //= 1 + any(has_rows(graph, r) for r in graph.meta.relations)
    out, reads = {}, RandomReads(graph, cache_bytes, engine)
    for number, meta in enumerate(graph.meta.relations):
        disk = USUAL_DISK if model is None else model
        edges, rows = StoredEdges(graph, number, reads, None, disk), None
        found = stored_rows(edges)
        if found is not None:
            share = cache_bytes * graph.meta.sizes[meta.file]
            share //= max(graph.num_bytes, 1)
            rows = StoredEdges(
                found,
                0,
                RandomReads(found, share, engine),
                edges.dtypes.get('weight'),
                disk,
            )
        weighted = use_weights and edges.has_weight
        out[meta.edge_type] = StoredMatrix(edges, rows, Steps(weighted))
    return out


@dataclass(frozen=True, eq=False)
class StoredGraph(GraphTypes):
    """Node types and counts of a graph on disk, and its matrices."""

    matrices: dict[Any, StoredMatrix]

    def has_edge(self, edge_type: Any, row: int, col: int, edge: int) -> bool:
        """See :meth:`Graph.has_edge`; does not search ids of large columns."""
        edges = self.matrices[edge_type]._cols
        begin, end = edges.pointers[col : col + 2].tolist()
        if not edges.has_ids:  # the id of an edge is its position
            position = torch.arange(edge, edge + (begin <= edge < end))
        elif end - begin > _LOOKED_UP:
            return True
        else:
            position = torch.arange(begin, end)
            position = position[edges.read('edge_id', position) == edge]
        return bool((edges.read('neighbor', position) == row).any())


def open_programs(
    graph: ChunkedGraph, name: str, weight_attr: str | None
) -> tuple[StoredGraph, dict[Any, Any]]:
    """See :meth:`ChunkedGraph.open_programs`."""
    matrices = open_matrices(graph, use_weights=weight_attr is not None)
    weighted = any(r.widths['weight'] for r in graph.meta.relations)
    if weight_attr is not None and not weighted:
        raise ValueError(
            f"{name}: 'weight_attr' needs a graph on disk that was written "
            f'with weights (got {weight_attr!r})'
        )
    types = graph.sampler_graph()
    parts = types.node_types, types.edge_types, types.num_nodes
    return StoredGraph(*parts, matrices), {**matrices}


def write_all_rows(
    graph: ChunkedGraph, memory_limit: int, chunk_bytes: int
) -> None:
    """See :meth:`ChunkedGraph.write_rows`."""
    graph.refuse_segments('ChunkedGraph.write_rows')
    reads = RandomReads(graph, 0)
    for number in range(len(graph.meta.relations)):
        edges = StoredEdges(graph, number, reads)
        write_rows(edges, memory_limit, chunk_bytes)
