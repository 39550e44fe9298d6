"""How the memory of an inference is shared.

A limit and what is known of a layer come in; bytes of chunks and the number of
threads go out.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from torch_gsample.storage.inference.rows import Rows
from torch_gsample.storage.inference.tiles import Tiles, work

#: The remaining share of the limit may hold all rows of a layer.
_RESIDENT = 0.7
#: The planned share: allocators hold up to a quarter more than is in use.
_USED = 0.8
#: Bytes of a chunk after which its rows are put on disk, at the latest.
_COMMIT = 64 << 20


@dataclass
class Budget:
    """The memory of one layer and type.

    Args:
        limit (int): All of it.
        fixed (Dict[str, int]): Permanent allocations, by name.
        tiles (Tiles): The tiles.
        rows (Dict[Any, Rows]): The rows that are read, by type.
        width (int): Bytes of the widest row that is read or returned.
        extra (int): Bytes of each destination: what is returned, and read of
            earlier layers.
        threads (int): The most threads.
        name (str): The layer.

    Raises:
        ValueError: If the largest tile does not fit; it names its node.
    """

    limit: int
    fixed: dict[str, int]
    tiles: Tiles
    rows: dict[Any, Rows]
    width: int
    extra: int
    threads: int
    name: str

    def __post_init__(self) -> None:
        on_disk = [r for r in self.rows.values() if r.resident is None]
        self._row = sum(r.row_bytes for r in on_disk)
        edges, begin, end = self.tiles.largest()
        most = self._work(edges, end - begin)
        usual = min(
            self._work(self.tiles.max_edges, self.tiles.max_nodes), most
        )
        left = int(_USED * self.limit) - sum(self.fixed.values())
        # Tiles that are computed at a time take half of it at most.
        self.threads = max(min(self.threads, left // 2 // max(usual, 1)), 1)
        self.workspace = max(self.threads * usual, most)
        left -= self.workspace
        whole = sum(len(r) * r.row_bytes for r in on_disk)
        #: Whether all rows of the layer are read at once.
        self.resident = whole <= _RESIDENT * left
        self.marks = 0 if self.resident else 4 * sum(map(len, on_disk))
        left -= whole if self.resident else self.marks
        # One is read while another one is computed.
        self.chunk = left // 2
        size = self._size(edges, end - begin)
        if size > self.chunk:
            need = self.limit + int(2 * (size - self.chunk) / _USED) + 1
            self._refuse(edges, begin, end, size + most, need)
        if self.resident:
            self.chunk = max(min(self.chunk, _COMMIT), size)

    def _work(self, edges: int, count: int) -> int:
        """Returns about what a layer takes for a tile."""
        sources = sum(min(edges, len(r)) for r in self.rows.values())
        return work(self.width, edges, sources, count)

    def _size(self, edges: int, count: int) -> int:
        """Returns what a tile takes in a chunk, at most."""
        sources = sum(min(edges, len(r)) for r in self.rows.values())
        rows = 0 if self.resident else self._row + 8
        of_edges = self.tiles.edge_rows.values()
        features = sum(16 + 2 * r.row_bytes for r in of_edges)
        return (
            (16 + features) * edges
            + (16 + rows) * (sources + count)
            + count * (self.extra + 8)
        )

    def _refuse(
        self, edges: int, begin: int, end: int, size: int, need: int
    ) -> NoReturn:
        what = f'node {begin}'
        if end - begin != 1:
            what = f'{end - begin} nodes from {begin} on'
        parts = ', '.join(f'{v} for {k}' for k, v in self.fixed.items() if v)
        raise ValueError(
            f"infer: 'memory' must be at least {need} bytes (got "
            f'{self.limit}): layer {self.name} computes {what} with {edges} '
            f'in-edges at once, which takes {size} bytes, and another chunk '
            f'is read meanwhile' + (f'; besides, {parts}' if parts else '')
        )


class Gate:
    """Lets threads in while what they take is free.

    Args:
        size (int): Bytes; what takes more enters alone.
    """

    def __init__(self, size: int):
        self._size, self._used = size, 0
        self._changed = threading.Condition()

    @contextmanager
    def enter(self, size: int) -> Iterator[None]:
        """Waits until ``size`` bytes are free."""
        size = min(size, self._size)
        with self._changed:
            self._changed.wait_for(lambda: self._used + size <= self._size)
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()
