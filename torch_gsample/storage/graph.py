"""A graph on disk: what it holds, whether it is whole."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, GraphStore
from torch_geometric.data.graph_store import EdgeLayout

from torch_gsample.graph_types import GraphTypes
from torch_gsample.storage.as_matrices import Matrices
from torch_gsample.storage.checksums import (
    CheckedChunks,
    check_checksum,
    check_header,
    read_times,
)
from torch_gsample.storage.format import (
    EDGES,
    HEADER,
    LENGTH,
    NODES,
    OFFSET,
    START,
    RelationMeta,
    malformed,
    read_meta,
)
from torch_gsample.storage.reading import File, ReadAhead
from torch_gsample.storage.write import write_graph


class ChunkedGraph(Matrices, GraphStore):
    """A graph in chunks on disk, of which only the table is in memory.

    It is a :class:`~torch_geometric.data.GraphStore` that never hands out its
    edges: with a ``FeatureStore`` it is the ``data`` of a loader whose
    ``sampler`` is a :class:`RandomReadSampler` or :class:`StreamingSampler`.

    Args:
        path (str or Path): The directory that :meth:`write` made.
        direct (bool, optional): Whether to read by direct I/O, past the page
            cache of the operating system, where the file system can do it.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If a file breaks a rule of the format.

    Example:
        >>> import tempfile
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / 'graph'
        ...     graph = ChunkedGraph.write(path, edge_index, num_nodes=3)
        ...     graph.verify()
        ...     graph.num_nodes, graph.num_edges
        ({None: 3}, {None: 3})
    """

    def __init__(self, path: str | Path, *, direct: bool = False):
        super().__init__()
        self.path, self.direct = Path(path), direct
        self.meta = read_meta(self.path)
        #: For each relation, which chunks were found to be whole.
        self.checked = [
            CheckedChunks(self.path, r) for r in self.meta.relations
        ]

    @classmethod
    def write(
        cls, path: str | Path, data: Any, **kwargs: Any
    ) -> 'ChunkedGraph':
        """Writes a graph; see :func:`write_graph` for its arguments."""
        write_graph(path, data, **kwargs)
        return cls(path)

    @property
    def num_nodes(self) -> dict[str | None, int]:
        """The number of nodes of each type."""
        pairs = zip(self.meta.node_types, self.meta.num_nodes, strict=True)
        return dict(pairs)

    @property
    def num_edges(self) -> dict[Any, int]:
        """The number of edges of each type."""
        return {r.edge_type: r.num_edges for r in self.meta.relations}

    @property
    def num_bytes(self) -> int:
        """The size of all chunks."""
        return sum(self.meta.sizes[r.file] for r in self.meta.relations)

    def sampler_graph(self) -> GraphTypes:
        """Returns types and counts as samplers see them, without edges."""
        return GraphTypes(
            tuple(self.meta.node_types),
            tuple(r.edge_type for r in self.meta.relations),
            tuple(self.meta.num_nodes),
        )

    def node_times(self) -> dict[str | None, Tensor]:
        """Reads the times of nodes, int64 ``[num_nodes]``, and checks them.

        Graphs that were written without a checksum of times are read as
        they are.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If one is broken; it names the file.
        """
        meta, out = self.meta, {}
        for i, name in enumerate(meta.node_times):
            if name is not None:
                times = read_times(
                    self.path / name, meta.num_nodes[i], meta.time_checksums[i]
                )
                out[meta.node_types[i]] = torch.from_numpy(times)
        return out

    def open(self, relation: RelationMeta) -> File:
        """Opens the file of a relation."""
        return File(self.path / relation.file, self.direct)

    def verify(self) -> None:
        """Reads all files, and checks their checksums and structure.

        Warns where times of nodes have no checksum, in graphs that earlier
        versions wrote.

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
            with ReadAhead(file, ranges) as chunks:
                for i, data in enumerate(chunks):
                    check_checksum(file.path, relation, i, data)
                    _check_structure(file.path, relation, i, data)
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
        file = self.open(relation)
        rest, table = 0, relation.chunks
        for i, row in enumerate(table):
            places = relation.places(int(row[NODES]), int(row[EDGES]))
            raw = np.empty(places['neighbor'] - places['offset'], np.uint8)
            File(file.path).read(int(row[OFFSET]) + places['offset'], raw)
            offset = raw.view('<i8')
            _check_offsets(file.path, relation, i, offset)
            degree = np.diff(offset)
            degree[0] += rest
            end = row[START] + row[NODES]
            goes_on = i + 1 < len(table) and table[i + 1, START] < end
            rest = int(degree[-1]) if goes_on else 0
            degree = degree[:-1] if goes_on else degree
            bits = np.ceil(np.log2(degree + 1)).astype(int)
            out += np.bincount(bits, minlength=49)
        return out

    # PyG's store of a graph ##################################################

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Returns the edge types and their sizes."""
        return [
            EdgeAttr(
                r.edge_type, EdgeLayout.CSC, size=(r.num_rows, r.num_cols)
            )
            for r in self.meta.relations
        ]

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        raise NotImplementedError(
            'ChunkedGraph: edges stay on disk; give the loader a '
            "'RandomReadSampler' or 'StreamingSampler' as its 'sampler'"
        )

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError(
            'ChunkedGraph: edges cannot be added; write a new graph by '
            "'ChunkedGraph.write'"
        )

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise NotImplementedError(
            'ChunkedGraph: edges cannot be removed; write a new graph by '
            "'ChunkedGraph.write'"
        )

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({str(self.path)!r}, '
            f'num_nodes={sum(self.meta.num_nodes)}, '
            f'num_edges={sum(self.num_edges.values())})'
        )


def chunk_arrays(
    path: Path, relation: RelationMeta, chunk: int, data: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns the arrays of a chunk, as views of its bytes.

    Raises:
        ValueError: If its header is not what the chunk table says.
    """
    row = relation.chunks[chunk]
    check_header(path, relation, chunk, data[: HEADER.size].tobytes())
    nodes, edges = int(row[NODES]), int(row[EDGES])
    places = relation.places(nodes, edges)
    out = {}
    for name in ('offset', 'neighbor', 'edge_id', 'weight', 'time'):
        if name != 'offset' and relation.widths[name] == 0:
            continue
        dtype = relation.dtype(name)
        count = nodes + 1 if name == 'offset' else edges
        part = data[places[name] : places[name] + count * dtype.itemsize]
        out[name] = part.view(dtype)
    return out


def _check_offsets(
    path: Path, relation: RelationMeta, chunk: int, offset: np.ndarray
) -> None:
    row = relation.chunks[chunk]
    ascends = bool((offset[1:] >= offset[:-1]).all())
    if offset[0] != 0 or offset[-1] != row[EDGES] or not ascends:
        malformed(
            path,
            int(row[OFFSET]),
            f'offsets of chunk {chunk} must ascend from 0 to {row[EDGES]}',
        )


def _check_structure(
    path: Path, relation: RelationMeta, chunk: int, data: np.ndarray
) -> None:
    arrays = chunk_arrays(path, relation, chunk, data)
    row = relation.chunks[chunk]
    at = int(row[OFFSET])
    _check_offsets(path, relation, chunk, arrays['offset'])
    limits = {'neighbor': relation.num_rows, 'edge_id': 1 << 63}
    for name, limit in limits.items():
        values = arrays.get(name)
        if values is None or len(values) == 0:
            continue
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= limit:
            malformed(
                path,
                at,
                f'each {name} of chunk {chunk} must be in [0, {limit}) (got '
                f'{low if low < 0 else high})',
            )
    weight = arrays.get('weight')
    if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
        malformed(
            path, at, f'a weight of chunk {chunk} is negative or not finite'
        )
    time = arrays.get('time')
    if time is not None:
        first = arrays['offset'][:-1]
        first = first[(first > 0) & (first < len(time))]
        ascends = time[1:] >= time[:-1]
        ascends[first - 1] = True  # between two nodes
        if not ascends.all():
            malformed(path, at, f'times of chunk {chunk} must ascend')
    end = relation.places(int(row[NODES]), int(row[EDGES]))['end']
    if data[end:].any():
        malformed(path, at + end, f'padding of chunk {chunk} must be zero')
