"""The files of a graph on disk: their contents and checks."""

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.graph_types import GraphTypes
from torch_gsample.path_argument import path_argument
from torch_gsample.storage.checked_blocks import checked_file
from torch_gsample.storage.checksums import VERIFY, read_times
from torch_gsample.storage.chunks import check_offsets, check_structure
from torch_gsample.storage.format import (
    EDGES,
    LENGTH,
    NODES,
    OFFSET,
    START,
    RelationMeta,
)
from torch_gsample.storage.further_files import FurtherFiles
from torch_gsample.storage.meta import read_meta
from torch_gsample.storage.reading import ReadableFile, ReadAhead
from torch_gsample.storage.replaced import (
    check_current,
    identity,
    read_whole,
)
from torch_gsample.storage.segment_list import segment_name
from torch_gsample.storage.segments import Segments, read_segments
from torch_gsample.storage.stripes import open_relation


class StoredGraph:
    """The part of a :class:`ChunkedGraph` without PyG, for tasks on Spark.

    Args:
        path (str or Path): See :class:`ChunkedGraph`.
        direct (bool, optional): See :class:`ChunkedGraph`.
        verify (str, optional): See :class:`ChunkedGraph`.

    Raises:
        OSError: If a file is missing or cannot be read.
        TypeError: If ``path`` is no path.
        ValueError: If a file breaks a rule of the format, or ``verify`` is
            unknown.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        direct: bool = False,
        verify: str = 'once',
    ):
        super().__init__()
        if verify not in VERIFY:
            raise ValueError(
                f"ChunkedGraph: 'verify' must be one of {VERIFY} (got "
                f'{verify!r})'
            )
        self.path = path_argument('ChunkedGraph', 'path', path)
        self.direct = direct
        self._verify = verify
        try:
            read_whole(self.path, self._read)
        except (FileNotFoundError, NotADirectoryError) as error:
            if Path(error.filename or '').parent != self.path:
                raise  # of another directory of the graph
            text = (
                "ChunkedGraph: 'path' must be the folder of a graph (got "
                f'{self.path}), which has this file'
            )
            raise type(error)(error.errno, text, error.filename) from None

    def _read(self) -> None:
        self._identity = identity(self.path)
        self.meta = read_meta(self.path)
        #: The appended segments.
        self.segments: Segments = read_segments(self.path, self.meta)
        further = {**self.meta.further_files, **self.segments.further_files}
        self._further = FurtherFiles(
            self.path, self.meta, further, self._verify
        )
        self._begin_checks()

    def _begin_checks(self) -> None:
        #: For each relation, the parts that were found intact.
        self.checked = [
            checked_file(self.path, self.meta, r, self._verify)
            for r in self.meta.relations
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, 'checked': []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with suppress(FileNotFoundError):  # a copy, before the file exists
            self.check_current()
        self._begin_checks()

    def check_current(self) -> None:
        """Checks that the folder was not replaced since it was opened.

        Raises:
            RuntimeError: If it was, by :func:`compact_tables`.
        """
        check_current(self.path, self._identity, self.meta.generation)

    @property
    def num_nodes(self) -> dict[str | None, int]:
        """The number of nodes of each type."""
        entries = self.segments.entries
        counts = entries[-1]['num_nodes'] if entries else self.meta.num_nodes
        return dict(zip(self.meta.node_types, counts, strict=True))

    @property
    def num_edges(self) -> dict[Any, int]:
        """The number of edges of each type."""
        out = {r.edge_type: r.num_edges for r in self.meta.relations}
        for entry in self.segments.entries:
            for edge_type, count in zip(out, entry['num_edges'], strict=True):
                out[edge_type] += count
        return out

    @property
    def segment_folders(self) -> list[Path]:
        """The folders of appended segments, in order."""
        count = len(self.segments.entries)
        return [self.path / segment_name(i + 1) for i in range(count)]

    def check_file(self, path: Path) -> None:
        """Checks a further file of the graph's folder or of a segment.

        Files of earlier releases have no checksum, and are not checked.

        Args:
            path (Path): The file.

        Raises:
            OSError: If it cannot be read.
            RuntimeError: If the folder was replaced since it was opened.
            ValueError: If it is damaged, or another file; it names the file.
        """
        try:
            self._further.check(path)
        finally:
            self.check_current()

    def refuse_segments(self, name: str) -> None:
        """Raises an error if there are appended edges.

        Args:
            name (str): The caller, which does not read them.

        Raises:
            ValueError: If there are appended edges.
        """
        if self.segments.entries:
            raise ValueError(
                f'{name}: {self.path} must have no appended segments (it has '
                f'{len(self.segments.entries)}): RandomReadSampler reads '
                'them, and compact_tables merges them'
            )

    @property
    def num_bytes(self) -> int:
        """The size of all chunks."""
        return sum(self.meta.sizes[r.file] for r in self.meta.relations)

    @property
    def has_edge_times(self) -> bool:
        """Whether a relation has times."""
        return any(r.widths['time'] > 0 for r in self.meta.relations)

    def sampler_graph(self) -> GraphTypes:
        """Returns types and counts as samplers see them, without edges."""
        return GraphTypes(
            tuple(self.meta.node_types),
            tuple(r.edge_type for r in self.meta.relations),
            tuple(self.num_nodes.values()),
        )

    def node_times(self) -> dict[str | None, Tensor]:
        """Reads the times of nodes, int64 ``[num_nodes]``, and checks them.

        Times without a checksum are not checked.

        Raises:
            OSError: If a file cannot be read.
            RuntimeError: If the folder was replaced since it was opened.
            ValueError: If one is broken; it names the file.
        """
        meta, out = self.meta, {}
        for i, name in enumerate(meta.node_times):
            if name is not None:
                try:
                    new = self.segments.times.get(i)
                    times = read_times(self.path, meta, i, new)
                finally:
                    self.check_current()
                out[meta.node_types[i]] = torch.from_numpy(times)
        return out

    def open(
        self, relation: RelationMeta, direct: bool | None = None
    ) -> ReadableFile:
        """Opens the file of a relation, or those in several directories.

        Args:
            relation (RelationMeta): The relation.
            direct (bool, optional): That of the graph if not given.

        Raises:
            OSError: If one cannot be opened.
            RuntimeError: If the folder was replaced since.
        """
        direct = self.direct if direct is None else direct
        file = open_relation(self.path, self.meta, relation, direct)
        self.check_current()
        return file

    def verify(self) -> None:
        """Reads all files, and checks their checksums and structure.

        Warns if times of nodes have no checksum, as in graphs of earlier
        versions.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If one is broken; it names the file and the offset.
        """
        self.node_times()
        for name, checksum in zip(
            self.meta.node_times, self.meta.time_checksums, strict=True
        ):
            if name is not None and checksum is None:
                warnings.warn(
                    f'ChunkedGraph: {self.path / name} has no checksum: it '
                    'was not checked; write the graph again to get one',
                    stacklevel=2,
                )
        for relation in self.meta.relations:
            ranges = relation.chunks[:, [OFFSET, LENGTH]].tolist()
            file = self.open(relation)
            checked = checked_file(self.path, self.meta, relation, 'always')
            with ReadAhead(file, ranges) as chunks:
                for i, data in enumerate(chunks):
                    checked.check(file, i, data)
                    check_structure(file.path, relation, i, data)
            file.close()

    def degree_histogram(self, relation: RelationMeta) -> np.ndarray:
        """Counts destinations by the number of bits of their degree.

        Returns:
            numpy.ndarray: int64 ``[49]``; item ``i`` counts degrees from
            ``2 ** (i - 1)`` to ``2 ** i - 1``, item 0 those of 0.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If its offsets are malformed.
        """
        out = np.zeros(49, np.int64)
        file = self.open(relation, direct=False)
        rest, table = 0, relation.chunks
        for i, row in enumerate(table):
            places = relation.places(int(row[NODES]), int(row[EDGES]))
            raw = np.empty(places['neighbor'] - places['offset'], np.uint8)
            file.read(int(row[OFFSET]) + places['offset'], raw)
            offset = raw.view('<i8')
            check_offsets(file.path, relation, i, offset)
            degree = np.diff(offset)
            degree[0] += rest
            end = row[START] + row[NODES]
            goes_on = i + 1 < len(table) and table[i + 1, START] < end
            rest = int(degree[-1]) if goes_on else 0
            degree = degree[:-1] if goes_on else degree
            bits = np.ceil(np.log2(degree + 1)).astype(int)
            out += np.bincount(bits, minlength=49)
        return out

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({str(self.path)!r}, '
            f'num_nodes={sum(self.num_nodes.values())}, '
            f'num_edges={sum(self.num_edges.values())})'
        )
