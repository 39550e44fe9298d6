"""Cuts sorted edges into chunks, and writes a graph so that it is whole.

Batches of edges, ascending by destination, come in; a directory in the format
of ``docs/storage.md`` comes out, or nothing.
"""

import contextlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.storage.format import (
    ITEM,
    META,
    GraphMeta,
    RelationMeta,
    round_up,
)

#: The least size of a chunk: its header, a node and a few edges.
MIN_CHUNK_BYTES = 256


@contextlib.contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Makes a directory that gets its name when it is complete.

    An error on the way removes it. After a crash there is nothing under that
    name, and a hidden directory, which the next writer there removes.

    Raises:
        FileExistsError: If ``path`` exists.
    """
    if os.path.lexists(path):
        raise FileExistsError(
            f"ChunkedGraph.write: 'path' must not exist yet (got {path})"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = OwnedFolder(path.parent, f'.{path.name}.')
    made = folder.path
    try:
        yield made
        for name in [*os.listdir(made), '.']:
            sync(made / name)
        os.chmod(made, 0o777 & ~_umask())  # mkdtemp's is the owner's alone
        os.rename(made, path)
        sync(path.parent)
        folder.release()
    except BaseException:
        folder.remove()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync(path: Any) -> None:
    """Waits until a file or folder is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_meta(directory: Path, meta: GraphMeta) -> None:
    """Writes ``meta.json``, the last file of a graph."""
    (directory / META).write_text(meta.dump())


class RelationWriter:
    """Writes the chunks of one relation.

    A chunk takes as many whole nodes as fit in ``chunk_bytes``. The edges of
    a node that does not fit in a chunk of its own are split.

    Args:
        file (IO[bytes]): Where chunks go.
        meta (RelationMeta): The relation; gets its chunk table and its number
            of edges.
        chunk_bytes (int): The most bytes of a chunk before it is padded.
        alignment (int): What chunks are padded to.
    """

    def __init__(
        self,
        file: IO[bytes],
        meta: RelationMeta,
        chunk_bytes: int,
        alignment: int,
    ):
        self._file, self._meta = file, meta
        self._chunk_bytes, self._alignment = chunk_bytes, alignment
        self._names = ['neighbor', 'edge_id', 'weight', 'time']
        self._names = [n for n in self._names if meta.widths[n] > 0]
        self._edge_bytes = sum(meta.widths.values())
        # What every chunk has beside its edges and offsets.
        self._fixed = meta.places(0, 0)['end'] + ITEM * len(self._names)
        self._pending: list[dict[str, np.ndarray]] = []
        self._size = 0  # pending edges
        self._node = 0  # the first node of the next chunk
        self._last = 0  # the last destination that came
        self._table: list[list[int]] = []
        self._offset = 0

    def add(self, col: np.ndarray, **arrays: np.ndarray) -> None:
        """Adds edges.

        Args:
            col (numpy.ndarray): int64 ``[num_edges]``, their destinations,
                ascending from call to call.
            **arrays (numpy.ndarray): ``neighbor`` and what else the relation
                has, ``[num_edges]`` each.

        Raises:
            IndexError: If a node is not in the graph.
            ValueError: If destinations do not ascend.
        """
        if len(col) == 0:
            return
        if int(col[0]) < self._last or bool((col[1:] < col[:-1]).any()):
            raise ValueError(
                'ChunkedGraph.write: edges must be sorted by destination '
                '(they are not)'
            )
        self._last = int(col[-1])
        _check_nodes('destination', col, self._meta.num_cols)
        _check_nodes('source', arrays['neighbor'], self._meta.num_rows)
        part = {
            name: arrays[name].astype(self._meta.dtype(name), copy=False)
            for name in self._names
        }
        self._pending.append({'col': col, **part})
        self._size += len(col)
        self._meta.num_edges += len(col)
        while self._size * self._edge_bytes > self._chunk_bytes:
            self._join()
            self._cut()

    def finish(self) -> None:
        """Writes what is left, and completes the relation."""
        while self._node < self._meta.num_cols:
            self._join()
            self._cut()
        assert self._size == 0
        self._meta.chunks = np.array(self._table, np.int64).reshape(-1, 7)

    def _join(self) -> None:
        if len(self._pending) != 1:
            names = ['col', *self._names]
            empty = {n: np.empty(0, np.int64) for n in names}
            parts = self._pending or [empty]
            self._pending = [
                {n: np.concatenate([p[n] for p in parts]) for n in names}
            ]

    def _cut(self) -> None:
        """Writes the first chunk of what is pending.

        A chunk with the nodes up to i takes 8 bytes for each and those of
        their edges. The last pending node may get further edges, but is only
        reached when all of it has come, as more is pending than fits.
        """
        col = self._pending[0]['col']
        room = self._chunk_bytes - self._fixed
        most = min(self._meta.num_cols - self._node, room // 8)
        seen = int(np.searchsorted(col, self._node + most))
        counts = np.bincount(col[:seen] - self._node, minlength=most)
        edges = np.cumsum(counts)
        cost = 8 * np.arange(1, most + 1) + edges * self._edge_bytes
        nodes = int(np.searchsorted(cost, room, 'right'))
        if nodes > 0:
            count, split = int(edges[nodes - 1]), False
        else:
            nodes, count = 1, (room - 8) // self._edge_bytes
            split = True
        degrees = counts[:nodes] if not split else np.array([count])
        self._write(degrees, count)
        self._node += nodes - split

    def _write(self, degrees: np.ndarray, count: int) -> None:
        part = self._pending[0]
        nodes = len(degrees)
        places = self._meta.places(nodes, count)
        length = round_up(places['end'], self._alignment)
        done = self._table[-1] if self._table else [0] * 7
        row = [self._node, nodes, done[2] + done[3], count]
        row += [self._offset, length, 0]
        self._table.append(row)
        self._meta.chunks = np.array([row])
        data = np.zeros(length, np.uint8)
        header = self._meta.header(0)
        data[: len(header)] = np.frombuffer(header, np.uint8)
        offsets = np.zeros(nodes + 1, '<i8')
        np.cumsum(degrees, out=offsets[1:])
        for name, values in [('offset', offsets)] + [
            (n, part[n][:count]) for n in self._names
        ]:
            raw = np.ascontiguousarray(values).view(np.uint8)
            data[places[name] : places[name] + raw.size] = raw
        row[6] = zlib.crc32(data.data)
        self._file.write(data.data)
        self._offset += length
        self._pending = [{n: v[count:] for n, v in part.items()}]
        self._size -= count


def _check_nodes(name: str, node: np.ndarray, size: int) -> None:
    low, high = int(node.min()), int(node.max())
    if low < 0 or high >= size:
        raise IndexError(
            f'ChunkedGraph.write: each {name} must be in [0, {size}) (got '
            f'{low if low < 0 else high})'
        )
