"""Some tiles, and the distinct rows that they read.

Tiles come in one by one. What each one adds is counted by a mark for each row;
then each row is read once, and edges point to rows in memory.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.inference.rows import Rows
from torch_gsample.storage.inference.tiles import Tile


class Chunk:
    """Tiles, and the rows that they read.

    Args:
        rows (Dict[Any, Rows]): The rows of each type.
        target (Any): The type of destinations.
        marks (Dict[Any, torch.Tensor]): For each type whose rows are read
            chunk by chunk int32 ``[num_nodes]``, -1; so again after
            :meth:`read` and :meth:`forget`.
    """

    def __init__(
        self, rows: dict[Any, Rows], target: Any, marks: dict[Any, Tensor]
    ):
        self._rows, self._target, self._marks = rows, target, marks
        self._counts = dict.fromkeys(marks, 0)
        self.tiles: list[Tile] = []
        self.nbytes = 0
        #: Rows as they are stored, and their nodes, by type.
        self.data: dict[Any, Tensor] = {}
        self.found: dict[Any, Tensor] = {}

    def cost(self, tile: Tile, extra: int) -> int:
        """Marks what a tile reads; returns the bytes that it adds.

        Args:
            tile (Tile): The tile.
            extra (int): Bytes of each destination besides.
        """
        size = tile.nbytes + (tile.end - tile.begin) * (extra + 8)
        own = torch.arange(tile.begin, tile.end)
        needs = [(part.source, part.neighbor) for part in tile.parts]
        for kind, nodes in [(self._target, own), *needs]:
            if kind in self._marks:
                added = _mark(nodes, self._marks[kind])
                self._counts[kind] += added
                size += added * (self._rows[kind].row_bytes + 8)
        return size

    def needed(self) -> dict[Any, np.ndarray]:
        """Returns the marked rows by type, ascending.

        Marks are left as the positions of these rows.
        """
        return {
            kind: _number(mark, self._counts[kind])
            for kind, mark in self._marks.items()
        }

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

    def read(
        self,
        needed: dict[Any, np.ndarray],
        read: Callable[[Any, np.ndarray], Tensor],
    ) -> None:
        """Reads the rows, and lets edges point to them.

        Args:
            needed (Dict[Any, numpy.ndarray]): What :meth:`needed` returned.
            read (Callable): Returns rows of a type as they are stored.
        """
        for kind, found in needed.items():
            self.data[kind] = read(kind, found)
            self.found[kind] = torch.from_numpy(found)
            place = torch.arange(len(found), dtype=torch.int32)
            self._marks[kind][self.found[kind]] = place
        for tile in self.tiles:
            own = torch.arange(tile.begin, tile.end)
            tile.own = self._places(self._target, own)
            for part in tile.parts:
                part.neighbor = self._places(part.source, part.neighbor)
        self.forget()

    def _places(self, kind: Any, nodes: Tensor) -> Tensor:
        mark = self._marks.get(kind)
        return nodes if mark is None else mark[nodes].long()


def _mark(nodes: Tensor, mark: Tensor) -> int:
    """Marks rows with 0; returns how many were not marked yet.

    Example:
        >>> mark = torch.full((4,), -1, dtype=torch.int32)
        >>> _mark(torch.tensor([2, 0, 2]), mark), mark
        (2, tensor([ 0, -1,  0, -1], dtype=torch.int32))
    """
    function = functions().gsample_mark_rows
    nodes = nodes.contiguous()
    added = function(
        ctypes.c_void_p(nodes.data_ptr()),
        ctypes.c_int64(len(nodes)),
        ctypes.c_void_p(mark.data_ptr()),
        ctypes.c_int64(len(mark)),
    )
    if added < 0:
        raise IndexError(
            f'infer: nodes must be in [0, {len(mark)}) (got '
            f'{int(nodes.min())} to {int(nodes.max())})'
        )
    return int(added)


def _number(mark: Tensor, count: int) -> np.ndarray:
    """Replaces marks by consecutive numbers; returns the marked rows.

    Example:
        >>> mark = torch.tensor([0, -1, 0], dtype=torch.int32)
        >>> _number(mark, 2), mark
        (array([0, 2]), tensor([ 0, -1,  1], dtype=torch.int32))
    """
    out = np.empty(count, np.int64)
    functions().gsample_number_rows(
        ctypes.c_void_p(mark.data_ptr()),
        ctypes.c_int64(len(mark)),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_int64(count),
    )
    return out
