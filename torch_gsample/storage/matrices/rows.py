"""Writes the rows of a graph on disk: its transpose, next to it.

The columns of a relation come in, the same edges by row go out, in bounded
memory. The ids of its edges are their positions in the columns.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.storage.format import RelationMeta
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.matrices.derived import DerivedFiles, fingerprint
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.new_file import NewFile

#: The name of the relation in rows of earlier releases, instead of a mark.
_EARLIER = 'to'


def rows_path(edges: StoredEdges) -> Path:
    """Returns the path of the rows of a relation."""
    return edges.derived.folder / 'rows'


def has_rows(graph: ChunkedGraph, relation: RelationMeta) -> bool:
    """Returns whether the rows of a relation were written."""
    mark = fingerprint(relation)
    return (DerivedFiles(graph.path, mark).folder / 'rows').exists()


def write_rows(
    edges: StoredEdges, memory_limit: int, chunk_bytes: int
) -> ChunkedGraph:
    """Writes the rows of a relation, unless they exist.

    Args:
        edges (StoredEdges): Its columns.
        memory_limit (int): Bytes to use.
        chunk_bytes (int): See :meth:`ChunkedGraph.write`.

    Raises:
        ImportError: If DuckDB or PyArrow are not installed.
        OSError: If the disk is full.
    """
    path = rows_path(edges)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        work = OwnedFolder(path.parent, '.rows-')
        try:
            file = work.path / 'edges.parquet'
            _write_edges(edges, file)
            with suppress(FileExistsError):  # another process was faster
                ChunkedGraph.write(
                    path,
                    {('col', edges.derived.mark, 'row'): file},
                    num_nodes={'row': edges.num_rows, 'col': edges.num_cols},
                    weight_attr='weight' if edges.has_weight else None,
                    columns=('source', 'target'),
                    memory_limit=memory_limit,
                    chunk_bytes=chunk_bytes,
                )
        finally:
            work.remove()
    return ChunkedGraph(path, direct=edges.graph.direct)


def _write_edges(edges: StoredEdges, file: Path) -> None:
    """Writes the edges of columns, in order, to a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ['neighbor'] + ['weight'] * edges.has_weight
    fields = [('source', pa.int64()), ('target', pa.int64())]
    fields += [('weight', pa.float64())] * edges.has_weight

    def batches() -> Iterator[Any]:
        for first, items in edges.scan(*names):
            rows = items['neighbor'].long()
            at = torch.arange(first, first + len(rows))
            cols = torch.searchsorted(edges.pointers, at, right=True) - 1
            parts = [cols, rows] + [items[n].double() for n in names[1:]]
            yield [pa.array(part.numpy()) for part in parts]

    schema = pa.schema(fields)
    with (
        NewFile(file) as out,  # whose errors name it
        pq.ParquetWriter(out, schema, compression='none') as writer,
    ):
        for arrays in batches():
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def stored_rows(edges: StoredEdges) -> ChunkedGraph | None:
    """Opens the rows of a relation, if they were written.

    Raises:
        ValueError: If they belong to other edges.
    """
    path = rows_path(edges)
    if not path.exists():
        return None
    graph = ChunkedGraph(path, direct=edges.graph.direct)
    [meta] = graph.meta.relations
    shape = meta.num_rows, meta.num_cols, meta.num_edges
    assert meta.edge_type is not None
    if shape != (
        edges.num_cols,
        edges.num_rows,
        edges.num_edges,
    ) or meta.edge_type[1] not in (edges.derived.mark, _EARLIER):
        raise ValueError(
            f'ChunkedGraph: {path} must hold the rows of {edges.path}, of '
            f'{edges.num_edges} edges (got {meta.num_edges}): it was moved, '
            'and you can delete it'
        )
    return graph
