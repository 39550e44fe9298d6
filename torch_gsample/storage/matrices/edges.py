"""The edges of one relation on disk, read by matrices.

Positions of edges come in, their stored values go out.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.blocks import BLOCK, BlockReader
from torch_gsample.storage.columns import (
    Columns,
    check_neighbors,
    check_weights,
)
from torch_gsample.storage.format import (
    EDGES,
    FIRST,
    NODES,
    OFFSET,
    START,
    TORCH,
    malformed,
)
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.matrices.derived import DerivedFiles, fingerprint
from torch_gsample.storage.matrices.reads import (
    USUAL_DISK,
    ReadCounts,
    read_items,
)
from torch_gsample.storage.matrices.shared_vector import SharedVector
from torch_gsample.storage.random_reads import RandomReads
from torch_gsample.storage.read_model import DiskModel

#: Bytes of one read of a scan.
_PIECE = 16 << 20
#: Edges of one piece of a scan.
SCAN_EDGES = 1 << 18

#: Number of results of reductions cached in memory.
_KNOWN = 4

#: The edges that programs read, by the number in their handle.
_OPENED: WeakValueDictionary[int, 'StoredEdges'] = WeakValueDictionary()
_numbers = itertools.count()


class StoredEdges:
    """The edges of a relation on disk, by column.

    Memory holds only the column pointers, 8 bytes a node.

    Args:
        graph (ChunkedGraph): The graph.
        number (int): The index of the relation.
        reads (RandomReads): The open files and their cache.
        weight (torch.dtype, optional): The dtype of weights; the stored one if
            not given.
        model (DiskModel, optional): The disk model for planning reads.
    """

    def __init__(
        self,
        graph: ChunkedGraph,
        number: int,
        reads: RandomReads,
        weight: torch.dtype | None = None,
        model: DiskModel = USUAL_DISK,
    ):
        self.graph, self.number, self.reads = graph, number, reads
        self.meta = graph.meta.relations[number]
        self.derived = DerivedFiles(graph.path, fingerprint(self.meta))
        meta = self.meta
        self.num_rows, self.num_cols = meta.num_rows, meta.num_cols
        self.num_edges = meta.num_edges
        self.has_weight = meta.widths['weight'] > 0
        #: Whether edge ids are stored; otherwise they are positions.
        self.has_ids = meta.widths['edge_id'] > 0
        #: The dtype of each array after reading.
        self.dtypes = {'edge_id': torch.int64}
        for name in ('neighbor', 'weight'):
            if meta.widths[name] > 0:
                self.dtypes[name] = TORCH[meta.dtype(name).str]
        if weight is not None:
            self.dtypes['weight'] = weight
        #: int64 ``[1]``, the handle of these edges in captured programs.
        self.handle = torch.tensor([next(_numbers)])
        _OPENED[int(self.handle)] = self
        #: int64 ``[num_cols + 1]``, the start of each column.
        self.pointers = self.derived.vector('pointers', self._read_pointers)
        self._check_pointers()
        self._columns = Columns(meta)
        #: The disk model for planning reads, and read counters.
        self.model, self.counts = model, ReadCounts()
        #: Cached results of reductions, in memory.
        self.known: dict[str, SharedVector] = {}

    def __reduce__(self) -> Any:
        weight = self.dtypes.get('weight')
        parts = self.graph, self.number, self.reads, weight, self.model
        return StoredEdges, parts

    @property
    def path(self) -> Path:
        """The file."""
        return self.graph.path / self.meta.file

    def remember(self, name: str, value: SharedVector) -> None:
        """Caches a result of a reduction; keeps the last few."""
        self.known[name] = value
        for old in list(self.known)[:-_KNOWN]:
            self.known.pop(old, None)

    def read(self, name: str, position: Tensor) -> Tensor:
        """Reads and checks items at positions of edges.

        Args:
            name (str): ``'neighbor'``, ``'edge_id'`` or ``'weight'``.
            position (torch.Tensor): int64 ``[n]``, in any order.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not as it was written.
        """
        if position.numel() == 0:
            return torch.empty(0, dtype=self.dtypes[name])
        items = read_items(
            self.reads.files()[self.number],
            self._columns.items[name],
            position,
            self.model,
            self.counts,
        )
        return self._checked(name, items, position)

    def _checked(self, name: str, items: Tensor, position: Any) -> Tensor:
        path = self.path
        if name == 'neighbor':
            check_neighbors(path, self.meta, items, position)
        elif name == 'weight':
            check_weights(path, self.meta, items, lambda: position)
        return items.to(self.dtypes[name])

    def scan(self, *names: str) -> Iterator[tuple[int, dict[str, Tensor]]]:
        """Reads all edges once, in order, in bounded memory.

        Yields:
            Tuple[int, Dict[str, torch.Tensor]]: The position of the first
            edge, and the items of a piece.
        """
        blocks = self._uncached()
        for row in self.meta.chunks:
            places = self.meta.places(int(row[NODES]), int(row[EDGES]))
            for begin in range(0, int(row[EDGES]), SCAN_EDGES):
                end = min(begin + SCAN_EDGES, int(row[EDGES]))
                first = int(row[FIRST]) + begin
                position = torch.arange(first, first + end - begin)
                out = {}
                for name in names:
                    dtype = self.meta.dtype(name)
                    at = int(row[OFFSET]) + places[name]
                    raw = _read_bytes(
                        blocks,
                        at + begin * dtype.itemsize,
                        at + end * dtype.itemsize,
                    )
                    items = torch.from_numpy(raw.view(dtype))
                    out[name] = self._checked(name, items, position)
                yield first, out

    def _uncached(self) -> BlockReader:
        graph, meta = self.graph, self.meta
        return BlockReader(
            graph.open(meta),
            graph.meta.sizes[meta.file],
            graph.checked[self.number],
            0,
        )

    def _read_pointers(self) -> Tensor:
        meta = self.meta
        out = np.zeros(meta.num_cols + 1, np.int64)
        out[-1] = meta.num_edges
        blocks = self._uncached()
        # A node in two chunks starts in the first one.
        for i in reversed(range(len(meta.chunks))):
            row = meta.chunks[i]
            nodes, edges = int(row[NODES]), int(row[EDGES])
            at = int(row[OFFSET]) + meta.places(nodes, edges)['offset']
            for begin in range(0, nodes, _PIECE // 8):
                end = min(begin + _PIECE // 8, nodes)
                raw = _read_bytes(blocks, at + 8 * begin, at + 8 * (end + 1))
                offset = raw.view('<i8')
                valid = offset[0] >= 0 and offset[-1] <= edges
                if not valid or bool((offset[1:] < offset[:-1]).any()):
                    malformed(
                        blocks.path,
                        at + 8 * begin,
                        f'offsets of chunk {i} must ascend from 0 to {edges}',
                    )
                first = int(row[START]) + begin
                out[first : first + end - begin] = offset[:-1] + row[FIRST]
        return torch.from_numpy(out)

    def _check_pointers(self) -> None:
        pointers, meta = self.pointers, self.meta
        valid = (
            pointers.shape == (meta.num_cols + 1,)
            and int(pointers[0]) == 0
            and int(pointers[-1]) == meta.num_edges
            and not bool((pointers[1:] < pointers[:-1]).any())
        )
        if not valid:
            malformed(
                self.path,
                0,
                f'offsets of nodes must ascend from 0 to {meta.num_edges}',
            )


def edges_of(handle: Tensor) -> StoredEdges:
    """Returns the edges of a handle.

    Raises:
        RuntimeError: If their matrices were freed.
    """
    found = _OPENED.get(int(handle))
    if found is None:
        raise RuntimeError(
            'SparseSample: the graph on disk of a compiled program '
            'is closed: keep a reference to its matrix'
        )
    return found


def _read_bytes(blocks: BlockReader, begin: int, end: int) -> np.ndarray:
    """Returns the bytes of a range, from whole blocks."""
    first = begin // BLOCK
    offset = np.arange(first, -(-end // BLOCK)) * BLOCK
    data = blocks.gather(offset, np.dtype(f'V{BLOCK}')).view(np.uint8)
    return data[begin - first * BLOCK : end - first * BLOCK]
