"""Cuts destinations into tiles, and tiles into chunks that fit in memory.

Columns of a graph come in. A tile is what a layer computes in one call: it
depends on the graph and the widths of rows alone, so that what is computed
does not depend on the memory. A chunk is some tiles, and the distinct rows
that they read.
"""

from collections.abc import Callable, Iterator
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


@dataclass
class Part:
    """The edges of a relation into a tile.

    Args:
        relation (Any): The edge type.
        source (Any): The type of sources.
        nodes (torch.Tensor): int64 ``[num_src]``, the distinct sources. Where
            they have the type of destinations, these are the first.
        edge_index (torch.Tensor): int64 ``[2, num_edges]``, local ids.
        edges (torch.Tensor, optional): int64 ``[num_edges]``, the ids of
            edges in the graph, where these have features.
        edge_bytes (int): Bytes of the features of an edge.
    """

    relation: Any
    source: Any
    nodes: Tensor
    edge_index: Tensor
    edges: Tensor | None = None
    edge_bytes: int = 0
    #: The features of edges, as they are stored.
    features: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Its memory, with the features of edges."""
        size = self.nodes.nbytes + self.edge_index.nbytes
        if self.edges is not None:
            size += self.edges.nbytes + len(self.edges) * self.edge_bytes
        return size


@dataclass
class Tile:
    """Destinations ``[begin, end)``, and the edges into them."""

    begin: int
    end: int
    parts: list[Part]
    #: Where the rows of each part, and of destinations, are in the chunk.
    places: list[Tensor] = field(default_factory=list)

    def work(self, row_bytes: int) -> int:
        """Returns about the memory that a layer takes to compute it."""
        count = 2 * (self.end - self.begin)
        for part in self.parts:
            count += part.edge_index.shape[1] + len(part.nodes)
        return COPIES * count * row_bytes

    @property
    def nbytes(self) -> int:
        """Its memory in a chunk, with the places of rows."""
        nodes = sum(part.nodes.nbytes for part in self.parts)
        return sum(part.nbytes for part in self.parts) + nodes


class Tiles:
    """Reads the tiles of one type of destinations.

    Args:
        relations (List[Tuple]): Edge type, type of sources and columns of each
            relation into the destinations.
        target (Any): Their type.
        num_nodes (int): Their number.
        row_bytes (int): Bytes of the widest row that a layer reads.
        edge_rows (Dict[Any, Rows]): The features of edges, by relation.
    """

    def __init__(
        self,
        relations: list[tuple[Any, Any, Columns]],
        target: Any,
        num_nodes: int,
        row_bytes: int,
        edge_rows: dict[Any, Rows],
    ):
        self.edge_rows = edge_rows
        self.relations, self.target = relations, target
        self.num_nodes = num_nodes
        self.max_edges = max(MESSAGES // max(row_bytes, 1), 1)
        self.max_nodes = TILE

    def read(self, begin: int = 0) -> Iterator[Tile]:
        """Yields the tiles from ``begin`` on, where one must begin.

        Of a type without nodes, there is one without destinations.
        """
        if self.num_nodes == 0:
            yield self._tile(0, 0, np.zeros((len(self.relations), 1), int))
        for first, offsets in self._slabs(begin):
            for low, high in self._cut(offsets.sum(0)):
                part = offsets[:, low : high + 1]
                yield self._tile(first + low, first + high, part)

    def largest(self) -> tuple[int, int, int]:
        """Returns the most edges of a tile, and where it begins and ends."""
        best = 0, 0, min(self.num_nodes, self.max_nodes)
        for first, offsets in self._slabs(0):
            total = offsets.sum(0)
            for low, high in self._cut(total):
                edges = int(total[high] - total[low])
                best = max(best, (edges, first + low, first + high))
        return best

    def _cut(self, offset: np.ndarray) -> Iterator[tuple[int, int]]:
        return cut(offset, self.max_edges, self.max_nodes)

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

    def _tile(self, begin: int, end: int, offsets: np.ndarray) -> Tile:
        parts, count = [], end - begin
        for offset, (relation, source, columns) in zip(
            offsets, self.relations, strict=True
        ):
            neighbor = columns.neighbors(int(offset[0]), int(offset[-1]))
            ids = neighbor
            if source == self.target:
                ids = torch.cat([torch.arange(begin, end), neighbor])
            nodes, local = ops.unique_nodes(ids)
            row = local[len(ids) - len(neighbor) :]
            col = torch.repeat_interleave(
                torch.arange(count), torch.from_numpy(np.diff(offset))
            )
            part = Part(relation, source, nodes, torch.stack([row, col]))
            if relation in self.edge_rows:
                part.edges = columns.ids(int(offset[0]), int(offset[-1]))
                part.edge_bytes = self.edge_rows[relation].row_bytes
            parts.append(part)
        return Tile(begin, end, parts)


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


class Chunk:
    """Tiles, and the rows that they read.

    Args:
        rows (Dict[Any, Rows]): The rows of each type.
        target (Any): The type of destinations.
        marks (Dict[Any, torch.Tensor]): For each type whose rows are read
            chunk by chunk int32 ``[num_nodes]``, -1; so again after
            :meth:`close`.
    """

    def __init__(
        self, rows: dict[Any, Rows], target: Any, marks: dict[Any, Tensor]
    ):
        self._rows, self._target, self._marks = rows, target, marks
        self.tiles: list[Tile] = []
        self.nbytes = 0
        #: Rows as they are stored, by type.
        self.data: dict[Any, Tensor] = {}

    def needs(self, tile: Tile) -> list[tuple[Any, Tensor]]:
        """Returns the nodes whose rows a tile reads, with their types."""
        own = self._target, torch.arange(tile.begin, tile.end)
        return [own, *((part.source, part.nodes) for part in tile.parts)]

    def cost(self, tile: Tile, extra: int) -> int:
        """Marks what a tile reads; returns the bytes that it adds.

        Args:
            tile (Tile): The tile.
            extra (int): Bytes of each destination besides.
        """
        size = tile.nbytes + (tile.end - tile.begin) * (extra + 8)
        for kind, nodes in self.needs(tile):
            mark = self._marks.get(kind)
            if mark is not None:
                added = nodes[mark[nodes] < 0]
                mark[added] = 0
                size += len(added) * (self._rows[kind].row_bytes + 8)
        return size

    def needed(self) -> dict[Any, np.ndarray]:
        """Returns the rows of its tiles by type, each once and ascending.

        Marks are left as the places of these rows.
        """
        out = {}
        for kind, mark in self._marks.items():
            nodes = [
                n for t in self.tiles for k, n in self.needs(t) if k == kind
            ]
            mark.fill_(-1)
            for part in nodes:
                mark[part] = 0
            found = (mark == 0).nonzero().view(-1)
            mark[found] = torch.arange(len(found), dtype=torch.int32)
            out[kind] = found.numpy()
        return out

    def read_edges(self, rows: dict[Any, Rows]) -> None:
        """Reads the features of edges, those of a relation together.

        Args:
            rows (Dict[Any, Rows]): The features, by relation.
        """
        for relation, of_edges in rows.items():
            parts = [
                part
                for tile in self.tiles
                for part in tile.parts
                if part.relation == relation and part.edges is not None
            ]
            ids = [part.edges for part in parts if part.edges is not None]
            if ids:
                found = of_edges.read(torch.cat(ids).numpy())
                sizes = [len(part) for part in ids]
                for part, own in zip(parts, found.split(sizes), strict=True):
                    part.features = own

    def forget(self) -> None:
        """Resets the marks, for another chunk."""
        for mark in self._marks.values():
            mark.fill_(-1)

    def read(self, read: Callable[[Any, np.ndarray], Tensor]) -> None:
        """Reads the rows.

        Args:
            read (Callable): Returns rows of a type as they are stored.
        """
        for kind, found in self.needed().items():
            self.data[kind] = read(kind, found)
        for tile in self.tiles:
            for kind, nodes in self.needs(tile):
                mark = self._marks.get(kind)
                place = nodes if mark is None else mark[nodes].long()
                tile.places.append(place)
        self.forget()
