"""Cuts destinations into tiles, and tiles into chunks that fit in memory.

Columns of a graph come in. A tile is what a layer computes in one call: it
depends on the graph and the widths of rows alone, so that what is computed
does not depend on the memory. A chunk is some tiles, and the distinct rows
that they read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.storage.inference.columns import SLAB, Columns
from torch_gsample.storage.inference.rows import Rows

#: The most destinations of a tile.
TILE = 1 << 13
#: About the most bytes of a tile's messages: one row for each edge.
MESSAGES = 4 << 20
#: A layer in PyG has about as many copies of its messages at a time.
COPIES = 3
#: Tiles whose edges are read together, about.
READ_TOGETHER = 16
#: Bytes of an edge and of a node while a tile is numbered.
NUMBERING = 40


@dataclass
class Part:
    """The edges of a relation into a tile.

    Args:
        relation (Any): The edge type.
        source (Any): The type of sources.
        neighbor (torch.Tensor): int64 ``[num_edges]``, the source of each
            edge: first its node, later its row in the chunk.
        offset (torch.Tensor): int64 ``[num_dst + 1]``, where the edges of each
            destination start.
        edges (torch.Tensor, optional): int64 ``[num_edges]``, the ids of
            edges in the graph, where these have features.
        edge_bytes (int): Bytes of the features of an edge.
    """

    relation: Any
    source: Any
    neighbor: Tensor
    offset: Tensor
    edges: Tensor | None = None
    edge_bytes: int = 0
    #: The features of edges, as they are stored.
    features: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Its memory, with the features of edges."""
        size = self.neighbor.nbytes + self.offset.nbytes
        if self.edges is not None:
            size += self.edges.nbytes + len(self.edges) * self.edge_bytes
        return size

    def numbered(self, own: Tensor | None) -> tuple[Tensor, Tensor]:
        """Numbers the sources by first occurrence.

        Args:
            own (torch.Tensor, optional): int64 ``[num_dst]``, destinations
                of the type of sources, which are then the first ones.

        Returns:
            Tuple[torch.Tensor, torch.Tensor]: int64 ``[num_src]``, the
            distinct sources, and ``edge_index`` in local ids.
        """
        ids = self.neighbor
        if own is not None:
            ids = torch.cat([own, ids])
        nodes, local = ops.unique_nodes(ids)
        row = local[len(ids) - len(self.neighbor) :]
        count = len(self.offset) - 1
        col = torch.repeat_interleave(torch.arange(count), self.offset.diff())
        return nodes, torch.stack([row, col])


@dataclass
class Tile:
    """Destinations ``[begin, end)``, and the edges into them.

    Those of a hub may be dealt over several tiles, of which only the last one
    is ``last``.
    """

    begin: int
    end: int
    parts: list[Part]
    hub: bool = False
    last: bool = True
    #: The positions of the rows of destinations in the chunk.
    own: Tensor = field(default_factory=lambda: torch.empty(0).long())

    def work(self, row_bytes: int) -> int:
        """Returns about the memory that a layer takes to compute it."""
        edges = sum(len(part.neighbor) for part in self.parts)
        return work(row_bytes, edges, edges, self.end - self.begin)

    @property
    def nbytes(self) -> int:
        """Its memory in a chunk."""
        own = 8 * (self.end - self.begin)
        return own + sum(part.nbytes for part in self.parts)


def work(row_bytes: int, edges: int, sources: int, count: int) -> int:
    """Returns about the memory that a layer takes to compute a tile.

    Args:
        row_bytes (int): Bytes of the widest row.
        edges (int): The edges of the tile.
        sources (int): The distinct sources, at most.
        count (int): The destinations.
    """
    rows = edges + sources + 2 * count
    numbered = edges + max(edges, sources) + 2 * count
    return COPIES * row_bytes * rows + NUMBERING * numbered


@dataclass
class _Cut:
    """Destinations of a slab, and positions ``[R, 2]`` of their edges."""

    low: int
    high: int
    spans: np.ndarray
    hub: bool = False
    last: bool = True

    @property
    def num_edges(self) -> int:
        return int((self.spans[:, 1] - self.spans[:, 0]).sum())


class Tiles:
    """Reads the tiles of one type of destinations.

    Args:
        relations (List[Tuple]): Edge type, type of sources and columns of each
            relation into the destinations.
        target (Any): Their type.
        num_nodes (int): Their number.
        row_bytes (int): Bytes of the widest row that a layer reads.
        edge_rows (Dict[Any, Rows]): The features of edges, by relation.
        split (bool, optional): Whether hubs are dealt over several tiles.
    """

    def __init__(
        self,
        relations: list[tuple[Any, Any, Columns]],
        target: Any,
        num_nodes: int,
        row_bytes: int,
        edge_rows: dict[Any, Rows],
        split: bool = False,
    ):
        self.edge_rows = edge_rows
        self.relations, self.target = relations, target
        self.num_nodes, self._split = num_nodes, split
        self.max_edges = max(MESSAGES // max(row_bytes, 1), 1)
        self.max_nodes = TILE

    @property
    def memory(self) -> int:
        """Bytes of edges that are read together, with copies of them."""
        edges = sum(columns.num_edges for _, _, columns in self.relations)
        return 24 * min((READ_TOGETHER + 1) * self.max_edges, edges)

    def read(self, begin: int = 0) -> Iterator[Tile]:
        """Yields the tiles from ``begin`` on, where one must begin.

        Of a type without nodes, there is one without destinations.
        """
        if self.num_nodes == 0:
            spans = np.zeros((len(self.relations), 2), int)
            empty = np.zeros((len(self.relations), 1), int)
            yield from self._tiles(0, empty, [_Cut(0, 0, spans)])
        for first, offsets in self._slabs(begin):
            group: list[_Cut] = []
            edges = 0
            for part in self._cut(offsets):
                group.append(part)
                edges += part.num_edges
                if edges >= READ_TOGETHER * self.max_edges:
                    yield from self._tiles(first, offsets, group)
                    group, edges = [], 0
            if group:
                yield from self._tiles(first, offsets, group)

    def largest(self) -> tuple[int, int, int]:
        """Returns the most edges of a tile, and where it begins and ends."""
        best = 0, 0, min(self.num_nodes, self.max_nodes)
        for first, offsets in self._slabs(0):
            for part in self._cut(offsets):
                found = part.num_edges, first + part.low, first + part.high
                best = max(best, found)
        return best

    def _cut(self, offsets: np.ndarray) -> Iterator[_Cut]:
        """Yields the tiles of a slab; those of a hub have one node."""
        total = offsets.sum(0)
        for low, high in cut(total, self.max_edges, self.max_nodes):
            spans = offsets[:, [low, high]]
            edges = int(total[high] - total[low])
            if not self._split or edges <= self.max_edges:
                yield _Cut(low, high, spans)
                continue
            # Edges of one relation after those of another one.
            ends = np.cumsum(spans[:, 1] - spans[:, 0])[:, None]
            starts = spans[:, :1] - (ends - np.diff(spans))
            for at in range(0, edges, self.max_edges):
                ends_at = min(at + self.max_edges, edges)
                piece = np.array([[at, ends_at]]) + starts
                piece = np.clip(piece, spans[:, :1], spans[:, 1:])
                yield _Cut(low, high, piece, True, ends_at == edges)

    def _slabs(self, begin: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yields where the edges of consecutive nodes start, by relation."""
        while begin < self.num_nodes:
            end = min((begin // SLAB + 1) * SLAB, self.num_nodes)
            offsets = np.zeros((len(self.relations), end - begin + 1), int)
            for i, (_, _, columns) in enumerate(self.relations):
                offsets[i, 0], degree = columns.degrees(begin, end)
                offsets[i, 1:] = offsets[i, 0] + np.cumsum(degree)
            yield begin, offsets
            begin = end

    def _tiles(
        self, first: int, offsets: np.ndarray, group: list[_Cut]
    ) -> Iterator[Tile]:
        """Yields tiles, whose edges are read at once."""
        spans = np.stack([group[0].spans[:, 0], group[-1].spans[:, 1]], 1)
        read: list[tuple[int, Tensor, Tensor | None]] = []
        for (low, high), (relation, _, columns) in zip(
            spans.tolist(), self.relations, strict=True
        ):
            neighbor, ids = columns.neighbors(low, high), None
            if relation in self.edge_rows:
                ids = columns.ids(low, high)
            read.append((low, neighbor, ids))
        for item in group:
            parts = [
                self._part(i, item, offsets, *found)
                for i, found in enumerate(read)
            ]
            begin, end = first + item.low, first + item.high
            yield Tile(begin, end, parts, item.hub, item.last)

    def _part(
        self,
        i: int,
        item: _Cut,
        offsets: np.ndarray,
        start: int,
        neighbor: Tensor,
        ids: Tensor | None,
    ) -> Part:
        relation, source, _ = self.relations[i]
        low, high = item.spans[i].tolist()
        part = slice(low - start, high - start)
        offset = offsets[i, item.low : item.high + 1].clip(low, high) - low
        out = Part(relation, source, neighbor[part], torch.from_numpy(offset))
        if ids is not None:
            out.edges = ids[part]
            out.edge_bytes = self.edge_rows[relation].row_bytes
        return out


def cut(
    offset: np.ndarray, max_edges: int, max_nodes: int
) -> Iterator[tuple[int, int]]:
    """Yields ranges of columns, each as long as its limits let it.

    Where one begins depends on the columns before it in no other way.

    Args:
        offset (numpy.ndarray): int64 ``[n + 1]``, where columns start.
        max_edges (int): The most edges of a range of several columns.
        max_nodes (int): The most columns.

    Example:
        >>> list(cut(np.array([0, 2, 4, 9, 10]), 5, 9))
        [(0, 2), (2, 3), (3, 4)]
    """
    low, size = 0, len(offset) - 1
    while low < size:
        high = int(np.searchsorted(offset, offset[low] + max_edges, 'right'))
        high = min(max(high - 1, low + 1), low + max_nodes, size)
        yield low, high
        low = high
