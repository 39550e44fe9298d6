"""The arrays of a chunk and their invariants."""

from typing import Any

import numpy as np

from torch_gsample.storage.checksums import check_header
from torch_gsample.storage.format import (
    EDGES,
    HEADER,
    NODES,
    OFFSET,
    RelationMeta,
    malformed,
)


def chunk_arrays(
    path: Any, relation: RelationMeta, chunk: int, data: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns the arrays of a chunk, as views of its bytes.

    Raises:
        ValueError: If its header does not match the chunk table.
    """
    row = relation.chunks[chunk]
    check_header(path, relation, chunk, data[: HEADER.size].tobytes())
    nodes, edges = int(row[NODES]), int(row[EDGES])
    places = relation.places(nodes, edges)
    out = {}
    for name in ('offset', 'neighbor', 'edge_id', 'weight', 'time'):
        if name != 'offset' and relation.widths[name] == 0:
            continue
        dtype = relation.dtype(name)
        count = nodes + 1 if name == 'offset' else edges
        part = data[places[name] : places[name] + count * dtype.itemsize]
        out[name] = part.view(dtype)
    return out


def check_offsets(
    path: Any, relation: RelationMeta, chunk: int, offset: np.ndarray
) -> None:
    """Checks the offsets of a chunk's columns.

    Raises:
        ValueError: If offsets do not ascend from 0 to the number of edges.
    """
    row = relation.chunks[chunk]
    ascends = bool((offset[1:] >= offset[:-1]).all())
    if offset[0] != 0 or offset[-1] != row[EDGES] or not ascends:
        malformed(
            path,
            int(row[OFFSET]),
            f'offsets of chunk {chunk} must ascend from 0 to {row[EDGES]}',
        )


def check_structure(
    path: Any, relation: RelationMeta, chunk: int, data: np.ndarray
) -> None:
    """Checks offsets, ids, weights, times and padding of a chunk.

    Raises:
        ValueError: If one is malformed, with the file and the offset.
    """
    arrays = chunk_arrays(path, relation, chunk, data)
    row = relation.chunks[chunk]
    at = int(row[OFFSET])
    check_offsets(path, relation, chunk, arrays['offset'])
    limits = {'neighbor': relation.num_rows, 'edge_id': 1 << 63}
    for name, limit in limits.items():
        values = arrays.get(name)
        if values is None or len(values) == 0:
            continue
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= limit:
            malformed(
                path,
                at,
                f'each {name} of chunk {chunk} must be in [0, {limit}) (got '
                f'{low if low < 0 else high})',
            )
    weight = arrays.get('weight')
    if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
        malformed(
            path, at, f'a weight of chunk {chunk} is negative or not finite'
        )
    time = arrays.get('time')
    if time is not None:
        first = arrays['offset'][:-1]
        first = first[(first > 0) & (first < len(time))]
        ascends = time[1:] >= time[:-1]
        ascends[first - 1] = True  # between two nodes
        if not ascends.all():
            malformed(path, at, f'times of chunk {chunk} must ascend')
    end = relation.places(int(row[NODES]), int(row[EDGES]))['end']
    if data[end:].any():
        malformed(path, at + end, f'padding of chunk {chunk} must be zero')
