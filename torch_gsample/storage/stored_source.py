"""A graph on disk as the source of another one, with its appended edges.

A :class:`ChunkedGraph` comes in; a :class:`GraphSource` with the columns that
samplers see goes out.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from torch_gsample.storage.chunks import check_structure, chunk_arrays
from torch_gsample.storage.format import (
    EDGES,
    LENGTH,
    OFFSET,
    START,
    RelationMeta,
)
from torch_gsample.storage.reading import ReadAhead
from torch_gsample.storage.segments import Appended
from torch_gsample.storage.sources import (
    Edges,
    GraphSource,
    RelationSource,
    index_width,
)

_ROWS = 1 << 20  # edges of a batch


def stored_source(
    graph: Any, node_times: dict[Any, Tensor] | None = None
) -> GraphSource:
    """Returns the edges of a graph on disk, for rewriting.

    Edges keep their ids, and columns the order of their edges.

    Args:
        graph (ChunkedGraph): The graph, with all its segments.
        node_times (Dict[NodeType, torch.Tensor], optional): Its times of
            nodes, if they have been read.
    """
    depth = 1 + len(graph.meta.directories)
    relations, largest = [], 0
    for index, meta in enumerate(graph.meta.relations):
        relations.append(_relation(graph, index))
        largest = max(largest, int(meta.chunks[:, LENGTH].max(initial=0)))
    return GraphSource(
        graph.num_nodes,
        relations,
        {**(graph.node_times() if node_times is None else node_times)},
        (depth + 1) * largest,
    )


def _relation(graph: Any, index: int) -> RelationSource:
    meta, edges = graph.meta.relations[index], graph.segments.edges
    if not edges:
        return RelationSource(
            meta.edge_type,
            meta.num_rows,
            meta.num_cols,
            meta.num_edges,
            meta.widths,
            lambda: _stored_edges(graph, index),
        )
    new, size = edges[index], graph.num_nodes
    ends = meta.edge_type or (None, None, None)
    count = meta.num_edges + len(new.col)
    widths = {**meta.widths, 'neighbor': index_width(size[ends[0]])}
    if widths['edge_id'] or not _ids_are_positions(meta, new):
        widths['edge_id'] = index_width(count)
    return RelationSource(
        meta.edge_type,
        size[ends[0]],
        size[ends[2]],
        count,
        widths,
        lambda: _merged(_stored_edges(graph, index), new),
    )


def _ids_are_positions(meta: RelationMeta, new: Appended) -> bool:
    """Whether appended edges follow those of the file in id order."""
    ids = np.arange(meta.num_edges, meta.num_edges + len(new.col))
    later = not len(new.col) or int(new.col[0]) >= meta.num_cols
    return later and np.array_equal(new.edge_id, ids)


def _merged(stored: Iterator[Edges], new: Appended) -> Iterator[Edges]:
    """Merges appended edges into those of a file, by destination and time.

    At equal destination and time they are last, as in samplers.
    """
    done = first = 0
    for edges in stored:
        col = edges['col']
        if not len(col):
            continue
        edges.setdefault('edge_id', np.arange(first, first + len(col)))
        first += len(col)
        end = int(np.searchsorted(new.col, col[-1]))
        if new.time is not None:
            until = int(np.searchsorted(new.col, col[-1], 'right'))
            same = new.time[end:until]
            end += int(np.searchsorted(same, edges['time'][-1]))
        if end <= done:  # all edges of the file precede the next one
            yield edges
            continue
        part, done = _part(new, done, end), end
        joined = {
            name: np.concatenate([edges[name], part[name]]) for name in part
        }
        keys = [joined[name] for name in ('time', 'col') if name in joined]
        order = np.lexsort(keys)  # stable: edges of the file come first
        yield {name: array[order] for name, array in joined.items()}
    for begin in range(done, len(new.col), _ROWS):
        yield _part(new, begin, min(begin + _ROWS, len(new.col)))


def _part(new: Appended, first: int, last: int) -> Edges:
    out = {
        'col': new.col[first:last],
        'neighbor': new.neighbor[first:last],
        'edge_id': new.edge_id[first:last],
    }
    if new.time is not None:
        out['time'] = new.time[first:last]
    return out


def _stored_edges(graph: Any, index: int) -> Iterator[Edges]:
    """Yields the edges in the file of a relation, in batches."""
    meta = graph.meta.relations[index]
    file = graph.open(meta)
    ranges = meta.chunks[:, [OFFSET, LENGTH]].tolist()
    with ReadAhead(file, ranges) as chunks:
        for i, data in enumerate(chunks):
            graph.checked[index].check(file, i, data)
            check_structure(file.path, meta, i, data)
            arrays = chunk_arrays(file.path, meta, i, data)
            offset, row = arrays.pop('offset'), meta.chunks[i]
            for first in range(0, int(row[EDGES]), _ROWS):
                at = np.arange(first, min(first + _ROWS, int(row[EDGES])))
                col = np.searchsorted(offset, at, 'right') - 1 + row[START]
                # Copied: a chunk's memory is reused while a writer still has
                # its edges.
                yield {
                    'col': col.astype(np.int64),
                    **{name: array[at] for name, array in arrays.items()},
                }
