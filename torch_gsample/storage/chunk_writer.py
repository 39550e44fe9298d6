"""Cuts sorted edges into chunks, and writes a graph atomically.

Batches of edges, ascending by destination, come in; a complete directory in
the format of ``docs/storage_format.md`` goes out, or none.
"""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from torch_gsample.owned_folder import OwnedFolder, remove_leftover
from torch_gsample.storage.crc32c import block_checksums, crc32c
from torch_gsample.storage.format import (
    BLOCKS_OF_FILE,
    ITEM,
    META,
    GraphMeta,
    RelationMeta,
    round_up,
)
from torch_gsample.storage.further_files import further_checksums
from torch_gsample.storage.new_file import NewFile, naming, write_new
from torch_gsample.storage.stripes import STRIPE, stripe_text

#: The minimum size of a chunk: its header, a node and a few edges.
MIN_CHUNK_BYTES = 256


#: Marks a directory whose graph is not complete yet.
PENDING = 'pending'


@contextlib.contextmanager
def new_directories(
    path: Path, others: Sequence[Path] = ()
) -> Iterator[list[Path]]:
    """Creates directories that are renamed when all are complete.

    An error removes them. After a crash, ``path`` does not exist; the next
    writer there removes the hidden directories, and other directories that
    were already renamed.

    Args:
        path (Path): The directory that is renamed last.
        others (Sequence[Path]): The others.

    Raises:
        FileExistsError: If one exists.
        ValueError: If two are the same one.
    """
    targets = [*others, path]
    if len({t.resolve() for t in targets}) < len(targets):
        raise ValueError(
            "ChunkedGraph.write: 'path' and 'directories' must differ (got "
            f'{[str(t) for t in targets]})'
        )
    for target in reversed(targets):
        if target != path:
            _remove_orphan(target, path)
        if os.path.lexists(target):
            raise _exists(target, path)
    folders: list[OwnedFolder] = []
    named: list[Path] = []
    try:
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            folders.append(OwnedFolder(target.parent, f'.{target.name}.'))
        made = [folder.path for folder in folders]
        yield [made[-1], *made[:-1]]
        for folder in made:
            if folder != made[-1]:
                (folder / PENDING).touch()
            for name in [*os.listdir(folder), '.']:
                sync(folder / name)
            os.chmod(folder, 0o777 & ~_umask())  # not mkdtemp's mode
        for folder, target in zip(made, targets, strict=True):
            try:
                os.rename(folder, target)
            except OSError as error:  # another writer was faster
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                raise _exists(target, path) from None
            named.append(target)
            sync(target.parent)
        for target in others:
            os.unlink(target / PENDING)
    except BaseException:
        if path not in named:
            for target in named:
                shutil.rmtree(target, ignore_errors=True)
        for owned in folders:
            owned.remove()
        raise
    for owned in folders:
        owned.release()


def _exists(target: Path, path: Path) -> FileExistsError:
    name = 'path' if target == path else 'directories'
    return FileExistsError(
        f'ChunkedGraph.write: {name!r} must not exist yet (got {target})'
    )


def _remove_orphan(directory: Path, path: Path) -> None:
    """Removes the remains of a killed writer of the graph at ``path``.

    A writer creates ``path`` in its last step, and it does not exist.
    """
    if os.path.lexists(path):
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found = json.loads((directory / STRIPE).read_bytes())
        pending = (directory / PENDING).exists()
        if pending and found.get('graph') == str(path.absolute()):
            remove_leftover(directory)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync(path: Any) -> None:
    """Waits until a file or folder is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(fd)
    finally:
        os.close(fd)


def write_description(
    folders: list[Path], meta: GraphMeta, path: Path
) -> None:
    """Writes the descriptions of directories, the last files of a graph.

    That of the graph has the checksums of further files in its directory.

    Args:
        folders (List[Path]): The directories, that of the graph first.
        meta (GraphMeta): The graph.
        path (Path): The final path of its directory.
    """
    for number, folder in enumerate(folders[1:], 1):
        text = stripe_text(meta, number, path.absolute())
        write_new(folder / STRIPE, text)
    described = {name for name in meta.node_times if name is not None}
    for relation in meta.relations:
        described |= {relation.file, relation.table_file}
    meta.further_files = further_checksums(folders[0], described, meta)
    write_new(folders[0] / META, meta.dump())


class ChunkSink(Protocol):
    """Receives chunks in order."""

    def write(self, chunk: np.ndarray) -> None:
        """Writes a chunk, uint8."""


class ChunkFiles:
    """The files of a relation: chunks in turn, and checksums of blocks.

    Args:
        folders (List[Path]): The directories, that of the graph first.
        meta (GraphMeta): The graph.
        relation (RelationMeta): The relation; gets a checksum.
    """

    def __init__(
        self, folders: list[Path], meta: GraphMeta, relation: RelationMeta
    ):
        self._meta, self._relation = meta, relation
        self._chunks = self._blocks = 0
        self._crc = meta.file_seed(relation.table_file)
        with contextlib.ExitStack() as stack:
            self._files = [
                stack.enter_context(NewFile(folder / relation.file))
                for folder in folders
            ]
            self._table = stack.enter_context(
                NewFile(folders[0] / relation.table_file)
            )
            self._stack = stack.pop_all()

    def __enter__(self) -> 'ChunkFiles':
        return self

    def __exit__(self, *_: Any) -> None:
        self._stack.close()
        self._relation.checksum = self._crc

    def write(self, chunk: np.ndarray) -> None:
        """Writes a chunk, uint8."""
        file = self._files[self._chunks % len(self._files)]
        file.write(chunk.data)
        found = block_checksums(
            chunk,
            self._relation.number * BLOCKS_OF_FILE + self._blocks,
            self._meta.generation,
            self._meta.block_bytes,
        ).astype('<u4', copy=False)
        self._table.write(found.data)
        self._crc = crc32c(found.view(np.uint8), self._crc)
        self._chunks += 1
        self._blocks += len(found)


class RelationWriter:
    """Writes the chunks of one relation.

    A chunk takes as many whole nodes as fit in ``chunk_bytes``. The edges of a
    node that exceeds a chunk are split.

    Args:
        file (ChunkSink): Receives the chunks.
        meta (RelationMeta): The relation; gets its chunk table and its number
            of edges.
        chunk_bytes (int): The maximum bytes of a chunk, without padding.
        alignment (int): Chunks are padded to a multiple of it.
        first_node (int, optional): The first destination.
    """

    def __init__(
        self,
        file: ChunkSink,
        meta: RelationMeta,
        chunk_bytes: int,
        alignment: int,
        first_node: int = 0,
    ):
        self._file, self._meta = file, meta
        self._chunk_bytes, self._alignment = chunk_bytes, alignment
        self._names = ['neighbor', 'edge_id', 'weight', 'time']
        self._names = [n for n in self._names if meta.widths[n] > 0]
        self._edge_bytes = sum(meta.widths.values())
        # Fields of every chunk, in addition to edges and offsets.
        self._fixed = meta.places(0, 0)['end'] + ITEM * len(self._names)
        self._pending: list[dict[str, np.ndarray]] = []
        self._size = 0  # pending edges
        self._node = first_node  # the first node of the next chunk
        self._last = first_node  # the last destination so far
        self._table: list[list[int]] = []
        self._offset = 0

    def add(self, col: np.ndarray, **arrays: np.ndarray) -> None:
        """Adds edges.

        Args:
            col (numpy.ndarray): int64 ``[num_edges]``, their destinations,
                ascending from call to call.
            **arrays (numpy.ndarray): ``neighbor`` and the other arrays of the
                relation, ``[num_edges]`` each.

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
        """Writes the remaining edges, and completes the relation."""
        while self._node < self._meta.num_cols:
            self._join()
            self._cut()
        assert self._size == 0
        self._meta.chunks = np.array(self._table, np.int64).reshape(-1, 6)

    def _join(self) -> None:
        if len(self._pending) != 1:
            names = ['col', *self._names]
            empty = {n: np.empty(0, np.int64) for n in names}
            parts = self._pending or [empty]
            self._pending = [
                {n: np.concatenate([p[n] for p in parts]) for n in names}
            ]

    def _cut(self) -> None:
        """Writes the first chunk of the pending edges.

        A chunk with the nodes up to i takes 8 bytes for each and those of
        their edges. The last pending node may get further edges, but more is
        pending than fits: the cut reaches that node only when it is complete.
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
        done = self._table[-1] if self._table else [0] * 6
        row = [self._node, nodes, done[2] + done[3], count]
        row += [self._offset, length]
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
        self._file.write(data)
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
