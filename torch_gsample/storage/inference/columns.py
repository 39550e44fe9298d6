"""Reads the in-edges of consecutive destinations, from disk or memory.

Ranges of destinations come in; degrees and neighbours go out, in the order in
which the graph has them.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.storage.columns import check_neighbors
from torch_gsample.storage.format import (
    EDGES,
    FIRST,
    NODES,
    OFFSET,
    START,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.graph import ChunkedGraph

#: Destinations whose degrees are read at a time; no tile crosses a multiple.
SLAB = 1 << 16


class MemoryColumns:
    """The columns of a relation in memory.

    Args:
        csc (CSC): The edges.
    """

    def __init__(self, csc: CSC):
        self._csc = csc
        self.num_rows, self.num_cols = csc.num_rows, csc.num_cols
        self.num_edges = csc.num_edges

    def degrees(self, begin: int, end: int) -> tuple[int, np.ndarray]:
        """Returns the position of the first edge, and int64 degrees."""
        offsets = self._csc.indptr[begin : end + 1].long().numpy()
        return int(offsets[0]), np.diff(offsets)

    def neighbors(self, first: int, last: int) -> Tensor:
        """Returns the neighbours of edges, int64 ``[last - first]``."""
        return self._csc.indices[first:last].long()

    def ids(self, first: int, last: int) -> Tensor:
        """Returns the ids of edges, int64 ``[last - first]``."""
        if self._csc.edge_id is None:
            return torch.arange(first, last)
        return self._csc.edge_id[first:last].long()


class DiskColumns:
    """The columns of a relation on disk; chunks are checked before use.

    Args:
        graph (ChunkedGraph): The graph.
        index (int): The number of the relation.
    """

    def __init__(self, graph: ChunkedGraph, index: int):
        self._meta: RelationMeta = graph.meta.relations[index]
        self._checked = graph.checked[index]
        # Ranges are not aligned, as direct reads would need.
        self._file = graph.open(self._meta, direct=False)
        self.num_rows, self.num_cols = self._meta.num_rows, self._meta.num_cols
        self.num_edges = self._meta.num_edges

    def degrees(self, begin: int, end: int) -> tuple[int, np.ndarray]:
        """Returns the position of the first edge, and int64 degrees.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a chunk is damaged; it names file and offset.
        """
        table = self._meta.chunks
        starts, ends = table[:, START], table[:, START] + table[:, NODES]
        out, first_edge = np.zeros(end - begin, np.int64), -1
        for i in np.flatnonzero((starts < end) & (ends > begin)):
            first = max(begin, int(starts[i]))
            last = min(end, int(ends[i]))
            offset = self._items(
                i, 'offset', first - int(starts[i]), last - first + 1
            )
            limit = int(table[i, EDGES])
            if (
                offset[0] < 0
                or offset[-1] > limit
                or (np.diff(offset) < 0).any()
            ):
                malformed(
                    self._file.path,
                    int(table[i, OFFSET]),
                    f'offsets of chunk {i} must ascend from 0 to {limit}',
                )
            if first_edge < 0:
                first_edge = int(table[i, FIRST] + offset[0])
            # A node that fills several chunks has edges in each.
            out[first - begin : last - begin] += np.diff(offset)
        return max(first_edge, 0), out

    def neighbors(self, first: int, last: int) -> Tensor:
        """Returns the neighbours of edges, int64 ``[last - first]``.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a chunk is damaged; it names file and offset.
        """
        out = self._read('neighbor', first, last)
        check_neighbors(
            self._file.path, self._meta, out, torch.arange(first, last)
        )
        return out

    def ids(self, first: int, last: int) -> Tensor:
        """Returns the ids of edges, int64 ``[last - first]``.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a chunk is damaged; it names file and offset.
        """
        if self._meta.widths['edge_id'] == 0:
            return torch.arange(first, last)
        out = self._read('edge_id', first, last)
        wrong = (out < 0) | (out >= self.num_edges)
        if wrong.any():
            malformed(
                self._file.path,
                0,
                f'ids of edges must be in [0, {self.num_edges}) (got '
                f'{int(out[wrong][0])})',
            )
        return out

    def _read(self, name: str, first: int, last: int) -> Tensor:
        """Returns items of edges, int64 ``[last - first]``."""
        table = self._meta.chunks
        begins, ends = table[:, FIRST], table[:, FIRST] + table[:, EDGES]
        parts = [np.empty(0, np.int64)]
        for i in np.flatnonzero((begins < last) & (ends > first)):
            low, high = max(first, int(begins[i])), min(last, int(ends[i]))
            at = low - int(begins[i])
            parts.append(self._items(i, name, at, high - low))
        return torch.from_numpy(np.concatenate(parts, dtype=np.int64))

    def _items(self, chunk: Any, name: str, at: int, count: int) -> np.ndarray:
        """Reads some items of an array of a chunk."""
        row, dtype = self._meta.chunks[chunk], self._meta.dtype(name)
        place = self._meta.places(int(row[NODES]), int(row[EDGES]))[name]
        begin = int(row[OFFSET]) + place + at * dtype.itemsize
        data = np.empty(count * dtype.itemsize, np.uint8)
        self._checked.read_bytes(self._file, begin, data)
        return data.view(dtype)


#: The edges of a relation, by destination.
Columns = MemoryColumns | DiskColumns


def in_degrees(columns: Columns, loops: bool) -> Tensor:
    """Returns the in-degree of each node, by one scan of the edges.

    Args:
        columns (Columns): The edges between nodes of one type.
        loops (bool): Whether each node has one loop in place of its own ones.

    Returns:
        torch.Tensor: int32 ``[num_cols]``.
    """
    out = torch.empty(columns.num_cols, dtype=torch.int32)
    for begin in range(0, columns.num_cols, SLAB):
        end = min(begin + SLAB, columns.num_cols)
        first, degree = columns.degrees(begin, end)
        count = torch.from_numpy(degree)
        if loops:
            count += 1 - _own_loops(columns, begin, first, count)
        out[begin:end] = count
    return out


def _own_loops(
    columns: Columns, begin: int, first: int, degree: Tensor
) -> Tensor:
    """Counts the edges from nodes to themselves."""
    out = torch.zeros_like(degree)
    ends = degree.cumsum(0)
    for at in range(0, int(degree.sum()), 1 << 20):
        last = min(at + (1 << 20), int(ends[-1]))
        edges = torch.arange(at, last)
        node = torch.searchsorted(ends, edges, right=True)
        own = columns.neighbors(first + at, first + last) == node + begin
        out += node[own].bincount(minlength=len(out))
    return out
