"""Edges and nodes that were appended to a graph on disk.

A segment is a subfolder of the graph's folder with new edges of relations and
the times of new nodes; existing files do not change. ``segments.json`` lists
the segments and is replaced atomically, so readers see a whole segment or
nothing. Appended edges are in memory, sorted by destination.
"""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.format import (
    GraphMeta,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.further_files import further_checksums
from torch_gsample.storage.new_file import NewFile
from torch_gsample.storage.segment_list import (
    SEGMENTS,
    mark_listed,
    publish,
    read_list,
    segment_name,
)

_ARRAYS = 'col', 'neighbor', 'edge_id', 'time'


@dataclass
class Appended:
    """The appended edges of a relation, sorted by destination and time.

    Args:
        col (numpy.ndarray): int64 ``[num_edges]``, like all others.
        neighbor (numpy.ndarray): Their sources.
        edge_id (numpy.ndarray): Their ids.
        time (numpy.ndarray, optional): Their times.
    """

    col: np.ndarray
    neighbor: np.ndarray
    edge_id: np.ndarray
    time: np.ndarray | None

    def bounds(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the first edge position and the degree of each node."""
        begin = np.searchsorted(self.col, node)
        return begin, np.searchsorted(self.col, node, 'right') - begin


@dataclass
class Segments:
    """All segments of a graph.

    Args:
        entries (List[Dict]): The entry of each in ``segments.json``.
        edges (List[Appended]): The edges of each relation.
        times (Dict[int, numpy.ndarray]): int64, the times of new nodes, by
            type index.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    edges: list[Appended] = field(default_factory=list)
    times: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def further_files(self) -> dict[str, int]:
        """The checksums of further files, by their paths in the graph."""
        return {
            f'{segment_name(number)}/{name}': checksum
            for number, entry in enumerate(self.entries, 1)
            for name, checksum in entry.get('files', {}).items()
        }


def read_segments(path: Path, meta: GraphMeta) -> Segments:
    """Reads the segments of a graph, and checks them.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If a file is damaged, or breaks a rule of the format.
    """
    entries = read_list(path, meta)
    if not entries:
        return Segments()
    parts: list[list[np.ndarray]] = [[] for _ in meta.relations]
    times: dict[int, list[np.ndarray]] = {
        i: [] for i, name in enumerate(meta.node_times) if name is not None
    }
    before = list(meta.num_nodes)
    for number, entry in enumerate(entries, 1):
        folder = path / segment_name(number)
        for i, part in enumerate(parts):
            part.append(_read_edges(folder, meta, entry, i))
        for i, part in times.items():
            count = entry['num_nodes'][i] - before[i]
            name, crc = f'time-{i}.bin', entry['time_checksums'][i]
            part.append(_read_array(folder / name, meta, count, crc))
        before = entry['num_nodes']
    sizes = dict(zip(meta.node_types, before, strict=True))
    edges = []
    for relation, part in zip(meta.relations, parts, strict=True):
        found = np.concatenate(part, 1)
        _check_edges(path, relation, found, sizes)
        keys = found[[2, 3, 0]] if len(found) == 4 else found[[2, 0]]
        found = found[:, np.lexsort(keys)]
        time = found[3] if len(found) == 4 else None
        edges.append(Appended(found[0], found[1], found[2], time))
    joined = {i: np.concatenate(part) for i, part in times.items()}
    return Segments(entries, edges, joined)


def _read_array(
    path: Path, meta: GraphMeta, count: int, checksum: int
) -> np.ndarray:
    """Reads int64 items of a file of a segment."""
    size = os.stat(path).st_size
    if size != 8 * count:
        malformed(path, min(size, 8 * count), f'its size must be {8 * count}')
    data = np.fromfile(path, '<i8')
    name = f'{path.parent.name}/{path.name}'
    if len(data) != count or meta.file_checksum(name, data) != checksum:
        malformed(path, 0, 'its checksum is wrong')
    return data.astype(np.int64, copy=False)


def _read_edges(
    folder: Path, meta: GraphMeta, entry: dict[str, Any], relation: int
) -> np.ndarray:
    """Reads the edges of a relation in a segment, ``[3 or 4, num_edges]``."""
    rows = 4 if meta.relations[relation].widths['time'] else 3
    count, crc = (
        entry['num_edges'][relation],
        entry['edge_checksums'][relation],
    )
    path = folder / f'edges-{relation}.bin'
    return _read_array(path, meta, rows * count, crc).reshape(rows, count)


def _check_edges(
    path: Path,
    relation: RelationMeta,
    edges: np.ndarray,
    sizes: dict[Any, int],
) -> None:
    src, dst = _ends(relation)
    first, count = relation.num_edges, edges.shape[1]
    for name, values, low, high in (
        ('destination', edges[0], 0, sizes[dst]),
        ('source', edges[1], 0, sizes[src]),
        ('edge id', edges[2], first, first + count),
    ):
        if count and not low <= values.min() <= values.max() < high:
            malformed(
                path / SEGMENTS,
                0,
                f'each {name} of {relation.edge_type} must be in [{low}, '
                f'{high}) (got {values.min()} to {values.max()})',
            )


def _ends(relation: RelationMeta) -> tuple[Any, Any]:
    edge_type = relation.edge_type
    return (edge_type[0], edge_type[2]) if edge_type else (None, None)


@contextlib.contextmanager
def append_segment(path: Path, meta: GraphMeta) -> Iterator['SegmentWriter']:
    """Appends a segment; readers see it when it is complete.

    An error or a crash leaves the graph unchanged; the next call removes
    remains.

    Args:
        path (Path): The directory of the graph.
        meta (GraphMeta): Its description.

    Raises:
        OSError: If another process appends, or the disk is full.
    """
    with locked(path):
        segments = read_segments(path, meta)
        name = segment_name(len(segments.entries) + 1)
        folder = OwnedFolder(path, f'.{name}.')
        try:
            writer = SegmentWriter(folder.path, name, meta, segments)
            yield writer
            writer.finish()
            for file in [*os.listdir(folder.path), '.']:
                sync(folder.path / file)
            os.chmod(folder.path, os.stat(path).st_mode & 0o777)
            shutil.rmtree(path / name, ignore_errors=True)  # left by a crash
            os.rename(folder.path, path / name)
        except BaseException:
            folder.remove()
            raise
        folder.release()
        publish(path, meta, [*segments.entries, writer.entry])
        mark_listed(path, len(segments.entries) + 1)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks the directory of a graph for a change.

    Raises:
        BlockingIOError: If another process changes or replaced it.
    """
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _takes(lock, path):
            raise BlockingIOError(
                f'ChunkedGraph: another process appends to {path} or '
                'compacts it'
            )
        yield
    finally:
        os.close(lock)


def _takes(lock: int, path: Path) -> bool:
    """Locks a directory, unless it is locked or was renamed."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.path.samestat(os.fstat(lock), os.stat(path))


class SegmentWriter:
    """Writes the files of a segment.

    Args:
        folder (Path): The folder.
        name (str): The final name of the folder.
        meta (GraphMeta): The graph.
        segments (Segments): The earlier segments.

    Attributes:
        folder (Path): Callers may add files.
        num_nodes (List[int]): The earlier number of nodes of each type.
        num_edges (List[int]): The earlier number of edges of each relation.
        entry (Dict[str, Any]): The description of the segment.
    """

    def __init__(
        self, folder: Path, name: str, meta: GraphMeta, segments: Segments
    ):
        self.folder, self._name, self._meta = folder, name, meta
        self._arrays: set[str] = set()
        entries = segments.entries
        self.num_nodes = list(
            entries[-1]['num_nodes'] if entries else meta.num_nodes
        )
        self.num_edges = [
            r.num_edges + sum(entry['num_edges'][i] for entry in entries)
            for i, r in enumerate(meta.relations)
        ]
        self.entry: dict[str, Any] = {
            'num_nodes': list(self.num_nodes),
            'num_edges': [0] * len(meta.relations),
            'edge_checksums': [0] * len(meta.relations),
            'time_checksums': [0] * len(meta.node_types),
        }
        for i in range(len(meta.relations)):
            self.add_edges(i, [])
        for i in range(len(meta.node_types)):
            self.add_nodes(i, 0, lambda: iter(()))

    def add_edges(
        self, relation: int, batches: Iterable[dict[str, np.ndarray]]
    ) -> None:
        """Writes the edges of a relation; holds them in memory.

        Args:
            relation (int): Its index.
            batches (Iterable[Dict[str, numpy.ndarray]]): ``col``,
                ``neighbor``, ``edge_id`` and, if it has times, ``time``.
        """
        timed = self._meta.relations[relation].widths['time'] > 0
        names = _ARRAYS[: 3 + timed]
        parts = [[batch[name] for name in names] for batch in batches]
        none = [np.empty(0, np.int64)] * len(names)
        arrays = [np.concatenate(of) for of in zip(none, *parts, strict=True)]
        data = np.stack(arrays).astype('<i8', copy=False)
        crc = self._write(f'edges-{relation}.bin', iter([data]))
        self.entry['num_edges'][relation] = data.shape[1]
        self.entry['edge_checksums'][relation] = crc

    def add_nodes(
        self,
        node_type: int,
        count: int,
        times: Callable[[], Iterator[np.ndarray]],
    ) -> None:
        """Adds nodes of a type, with times if the type has them."""
        self.entry['num_nodes'][node_type] = self.num_nodes[node_type] + count
        if self._meta.node_times[node_type] is not None:
            crc = self._write(f'time-{node_type}.bin', times())
            self.entry['time_checksums'][node_type] = crc

    def finish(self) -> None:
        """Describes the files that callers added."""
        self.entry['files'] = further_checksums(
            self.folder, self._arrays, self._meta, f'{self._name}/'
        )

    def _write(self, name: str, pieces: Iterator[np.ndarray]) -> int:
        """Writes an array; returns its checksum."""
        self._arrays.add(name)
        crc = self._meta.file_seed(f'{self._name}/{name}')
        with NewFile(self.folder / name) as file:
            for piece in pieces:
                data = np.ascontiguousarray(piece, '<i8')
                file.write(data.data)
                crc = crc32c(data.view(np.uint8).reshape(-1), crc)
        return crc
