"""Computes one layer for all nodes of one type, chunk by chunk.

Rows and tiles come in; the rows that the layer returns go to a file. One chunk
is read while another one is computed, tiles in threads of their own: torch has
one thread in each, so that no result depends on their number.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.memory import give_back
from torch_gsample.storage.inference import hubs
from torch_gsample.storage.inference.budget import Budget, Gate
from torch_gsample.storage.inference.chunk import Chunk
from torch_gsample.storage.inference.ends import Ends
from torch_gsample.storage.inference.layer_file import LayerFile
from torch_gsample.storage.inference.layers import Layer, Relations
from torch_gsample.storage.inference.packing import Packing
from torch_gsample.storage.inference.rows import Rows
from torch_gsample.storage.inference.tiles import Part, Tile, Tiles
from torch_gsample.storage.read_model import DiskModel


@contextmanager
def one_thread_each(count: int) -> Iterator[ThreadPoolExecutor]:
    """Makes threads in which torch has one thread."""
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(
            count, 'infer', torch.set_num_threads, (1,)
        ) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


@dataclass
class LayerRun:
    """A layer, and what it reads for one type of destinations.

    Args:
        layer (Layer): The layer.
        target (Any): The type of destinations.
        tiles (Tiles): Its tiles.
        rows (Dict[Any, Rows]): The rows that it reads, by type.
        before (List[Rows]): The rows of the destinations after each earlier
            layer, where it reads these.
        missing (Dict[Any, str]): Relations into the type without rows of
            their sources, and the type of these.
        degree (Dict[Tuple, torch.Tensor]): In-degrees of all nodes, by
            relation and whether each has a loop.
        dtype (torch.dtype, optional): What rows are converted to.
        direct (bool): Whether to read past the page cache.
        disk (DiskModel, optional): What reads cost; needed where rows are
            read chunk by chunk.
    """

    layer: Layer
    target: Any
    tiles: Tiles
    rows: dict[Any, Rows]
    before: list[Rows]
    missing: dict[Any, str]
    degree: dict[tuple[Any, bool], Tensor]
    dtype: torch.dtype | None
    direct: bool = False
    disk: DiskModel | None = None

    def __post_init__(self) -> None:
        self._resident: dict[Any, Tensor] = {
            kind: rows.resident
            for kind, rows in self.rows.items()
            if rows.resident is not None
        }
        #: The aggregates of tiles of a hub whose last one is to come.
        self._hub: list[hubs.Aggregates] = []

    def probe(self) -> Tensor | None:
        """Computes the first tile; returns its rows, None if there are none.

        What layers prepare when they are first called, they prepare here, in
        one thread.
        """
        with one_thread_each(1) as pool:
            tile = next(self.tiles.read())
            chunk = Chunk(self.rows, self.target, self._new_marks())
            chunk.tiles.append(tile)
            chunk.cost(tile, 0)
            return pool.submit(self._read_and_compute, chunk).result()

    def _read_and_compute(self, chunk: Chunk) -> Tensor | None:
        needed = chunk.needed()
        chunk.forget()
        self._close(chunk, needed, lambda k, rows: self.rows[k].read(rows))
        return self._compute(chunk, chunk.tiles[0])

    def _new_marks(self) -> dict[Any, Tensor]:
        return {
            kind: torch.full((len(rows),), -1, dtype=torch.int32)
            for kind, rows in self.rows.items()
            if kind not in self._resident
        }

    def _close(
        self,
        chunk: Chunk,
        needed: dict[Any, np.ndarray],
        read: Callable[[Any, np.ndarray], Tensor],
    ) -> None:
        """Reads what the tiles of a chunk need."""
        chunk.read(needed, read)
        chunk.read_edges(self.tiles.edge_rows)
        begin, end = chunk.tiles[0].begin, chunk.tiles[-1].end
        for i, rows in enumerate(self.before):
            chunk.data['before', i] = rows.read(np.arange(begin, end))

    def compute_all(
        self, out: LayerFile, budget: Budget, advance: Callable[[int], None]
    ) -> None:
        """Computes the rows that a file does not have yet.

        Args:
            out (LayerFile): The file.
            budget (Budget): The memory.
            advance (Callable): Is told how many rows were computed.

        Raises:
            OSError: If a file cannot be read or written.
            ValueError: If a file is damaged, or a node does not fit in
                memory; it names the node.
        """
        if budget.resident:
            for kind, rows in self.rows.items():
                if rows.resident is None:
                    self._resident[kind] = rows.read(np.arange(len(rows)))
        gate = Gate(budget.workspace)
        with (
            hubs.hooked(self.layer),
            one_thread_each(budget.threads) as pool,
            one_thread_each(1) as reader,
        ):
            chunks = self._chunks(out, budget)
            coming = reader.submit(next, chunks, None)
            while (chunk := coming.result()) is not None:
                coming = reader.submit(next, chunks, None)
                before = out.rows
                self._put(chunk, out, pool, gate, budget.width)
                advance(out.rows - before)
                give_back()  # what tiles of several threads left in pieces
        out.finish()

    def _cut(self, begin: int, budget: Budget) -> Iterator[Chunk]:
        """Yields chunks, whose rows are not read yet."""
        if begin == self.tiles.num_nodes and begin:
            return
        marks = self._new_marks()
        chunk = Chunk(self.rows, self.target, marks)
        for tile in self.tiles.read(begin):
            cost = chunk.cost(tile, budget.extra)
            if chunk.tiles and chunk.nbytes + cost > budget.chunk:
                yield chunk
                chunk = Chunk(self.rows, self.target, marks)
                cost = chunk.cost(tile, budget.extra)
            chunk.tiles.append(tile)
            chunk.nbytes += cost
        yield chunk

    def _chunks(self, out: LayerFile, budget: Budget) -> Iterator[Chunk]:
        """Yields chunks whose rows are in memory."""
        packed: dict[Any, Packing] = {}
        try:
            if budget.resident:
                chunks = self._cut(out.begun_at, budget)
            else:
                sizes = self._pack(packed, out, budget)
                chunks = self._cut_again(out.begun_at, sizes)
            for i, chunk in enumerate(chunks):
                needed = {
                    k: packing.needed(i) for k, packing in packed.items()
                }
                self._close(
                    chunk,
                    needed,
                    lambda k, rows: packed[k].read(i, rows),  # noqa: B023
                )
                yield chunk
        finally:
            for packing in packed.values():
                packing.close()

    def _cut_again(self, begin: int, sizes: list[int]) -> Iterator[Chunk]:
        """Yields chunks of known numbers of tiles."""
        tiles, marks = self.tiles.read(begin), self._new_marks()
        for size in sizes:
            chunk = Chunk(self.rows, self.target, marks)
            chunk.tiles.extend(islice(tiles, size))
            yield chunk

    def _pack(
        self, packed: dict[Any, Packing], out: LayerFile, budget: Budget
    ) -> list[int]:
        """Copies rows to the order of chunks, where this saves time.

        Returns:
            List[int]: The number of tiles of each chunk.
        """
        assert self.disk is not None
        for kind, rows in self.rows.items():
            if kind not in self._resident:
                packed[kind] = Packing(out.path.parent, rows, self.disk)
        sizes = []
        for chunk in self._cut(out.begun_at, budget):
            sizes.append(len(chunk.tiles))
            for kind, needed in chunk.needed().items():
                packed[kind].add(needed)
            chunk.forget()
        reserved = self.tiles.num_nodes * budget.extra
        for packing in packed.values():
            if packing.pays(budget.chunk, reserved):
                packing.pack(budget.chunk, self.direct)
        return sizes

    def _put(
        self,
        chunk: Chunk,
        out: LayerFile,
        pool: ThreadPoolExecutor,
        gate: Gate,
        width: int,
    ) -> None:
        """Computes a chunk and puts its rows on disk."""

        def compute(tile: Tile) -> Any:
            with gate.enter(tile.work(width)):
                if tile.hub:
                    with torch.no_grad():
                        return hubs.take(self.layer, self._ends(chunk, tile))
                return self._rows_of(chunk, tile)

        for tile, found in zip(
            chunk.tiles, pool.map(compute, chunk.tiles), strict=True
        ):
            rows = found
            if tile.hub:
                self._hub.append(found)
                if not tile.last:
                    continue
                rows = pool.submit(self._finish_hub, chunk, tile).result()
            out.add(rows)
        if out.rows:  # all tiles may be the first ones of a hub
            out.commit()

    def _finish_hub(self, chunk: Chunk, tile: Tile) -> Tensor:
        """Returns the row of a hub, with the edges of all its tiles."""
        joined, self._hub = hubs.join(self.layer, self._hub), []
        with hubs.giving(joined):
            return self._rows_of(chunk, tile)

    def _rows_of(self, chunk: Chunk, tile: Tile) -> Tensor:
        rows = self._compute(chunk, tile)
        if rows is None:
            raise ValueError(
                f'infer: layer {self.layer.name} must return rows of '
                f'{self.target!r} for each of its nodes (it '
                f'returned none from node {tile.begin} on)'
            )
        return rows

    def _compute(self, chunk: Chunk, tile: Tile) -> Tensor | None:
        """Returns the rows of a tile."""
        with torch.no_grad():
            first = chunk.tiles[0].begin
            place = torch.arange(tile.begin - first, tile.end - first)
            before = [
                self._decode(rows, chunk.data['before', i], place)
                for i, rows in enumerate(self.before)
            ]
            own = self._rows_at(chunk, self.target, tile.own)
            ends = self._ends(chunk, tile, own)
            return self._checked(
                self.layer.run(
                    Relations(ends, self.missing), self.target, own, before
                ),
                tile,
            )

    def _ends(
        self, chunk: Chunk, tile: Tile, own: Tensor | None = None
    ) -> dict[Any, Ends]:
        """Returns the rows and edges of a tile by relation."""
        if own is None:
            own = self._rows_at(chunk, self.target, tile.own)
        out: dict[Any, Ends] = {}
        for part in tile.parts:
            shared = part.source == self.target
            at, edge_index = part.numbered(tile.own if shared else None)
            x = self._rows_at(chunk, part.source, at)
            found = chunk.found.get(part.source)
            degree = {
                loops: count[at if found is None else found[at]]
                for (relation, loops), count in self.degree.items()
                if relation == part.relation
            }
            pair = (x, x[: len(own)]) if shared else (x, own)
            more = self._edge_features(part), tile.last
            out[part.relation] = Ends(pair, edge_index, shared, degree, *more)
        return out

    def _edge_features(self, part: Part) -> Tensor | None:
        if part.features is None:
            return None
        x = self.tiles.edge_rows[part.relation].decode(part.features)
        return x if self.dtype is None else x.to(self.dtype)

    def _rows_at(self, chunk: Chunk, kind: Any, at: Tensor) -> Tensor:
        found = self._resident.get(kind)
        stored = chunk.data[kind] if found is None else found
        return self._decode(self.rows[kind], stored, at)

    def _decode(self, rows: Rows, stored: Tensor, place: Tensor) -> Tensor:
        x = rows.decode(stored.index_select(0, place))
        return x if self.dtype is None else x.to(self.dtype)

    def _checked(self, out: Any, tile: Tile) -> Tensor | None:
        if out is None:
            return None
        count = tile.end - tile.begin
        if not isinstance(out, Tensor) or out.shape[:1] != (count,):
            got = list(out.shape) if isinstance(out, Tensor) else type(out)
            raise ValueError(
                f'infer: layer {self.layer.name} must return a tensor with a '
                f'row for each of {count} destinations (got {got})'
            )
        return out
