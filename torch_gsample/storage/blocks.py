"""Reads single items of a file, block by block, through a cache.

Positions of items come in, items go out. Only their blocks are read: sorted,
adjacent ones merged into one read, all reads of a call in flight together.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.block_cache import BlockCache
from torch_gsample.storage.checked_blocks import merged
from torch_gsample.storage.checksums import CheckedFile
from torch_gsample.storage.crc32c import BLOCK, functions, pointer
from torch_gsample.storage.pooled import empty_items, empty_vector
from torch_gsample.storage.reading import ReadableFile, page_aligned

#: Blocks read together: the memory of a call in addition to the cache.
GROUP = 8192


class Items(ctypes.Structure):
    """The items of an array of a relation, as C functions receive them.

    Chunk c has the items of keys (nodes or edges) from ``key[c]`` on, and the
    item of key k is at ``origin[c] + k * size`` in the file.

    Args:
        key (numpy.ndarray): int64 ``[num_chunks]``, ascending.
        origin (numpy.ndarray): int64 ``[num_chunks]``.
        dtype (torch.dtype): The dtype of an item, of 4 or 8 bytes.
    """

    _fields_ = (
        ('_key', ctypes.c_void_p),
        ('_origin', ctypes.c_void_p),
        ('_num_chunks', ctypes.c_int64),
        ('_size', ctypes.c_int64),
    )

    def __init__(
        self, key: np.ndarray, origin: np.ndarray, dtype: torch.dtype
    ):
        assert dtype.itemsize in (4, 8), dtype
        assert len(key) == len(origin)
        self.dtype = dtype
        self.key, self.origin = (
            np.ascontiguousarray(array, np.int64) for array in (key, origin)
        )
        super().__init__(
            self.key.ctypes.data,
            self.origin.ctypes.data,
            len(key),
            dtype.itemsize,
        )


@dataclass(frozen=True)
class Runs:
    """Items of edges in a file, grouped into runs within one block.

    Args:
        position (torch.Tensor): int64 ``[n]``, the position of each edge.
            Within a run, offsets differ as positions times the item size.
        offset (numpy.ndarray): int64 ``[num_runs]``, the file offset of the
            first item of each run.
        first (numpy.ndarray): int64 ``[num_runs]``, its index in ``position``.
        length (numpy.ndarray): int64 ``[num_runs]``, the number of items.
    """

    position: Tensor
    offset: np.ndarray
    first: np.ndarray
    length: np.ndarray

    def take(self, index: np.ndarray | slice) -> 'Runs':
        """Returns a subset of the runs."""
        runs = self.offset[index], self.first[index], self.length[index]
        return Runs(self.position, *runs)


class BlockReader:
    """Reads items of one file.

    Args:
        file (ReadableFile): The file.
        size (int): Its size in bytes.
        checked (CheckedFile): Checks blocks.
        cache_bytes (int): Memory of the cache.
        engine (str, optional): See :meth:`File.read_ranges`.
    """

    def __init__(
        self,
        file: ReadableFile,
        size: int,
        checked: CheckedFile,
        cache_bytes: int,
        engine: str = 'auto',
    ):
        self._file, self._size = file, size
        self._checked = checked
        self._engine = engine
        blocks = -(-size // BLOCK)
        self._cache = BlockCache(blocks, cache_bytes // BLOCK)
        self._num_blocks = blocks
        # Memory of reads, one for each thread that reads at a time.
        self._idle: list[np.ndarray] = []
        self._lock = threading.Lock()
        # The indices and offsets of missing items.
        self._missing = torch.empty(2, 0, dtype=torch.int64)
        self.stats: dict[str, Any] = {
            'engine': None,
            'hits': 0,
            'misses': 0,
            'blocks_read': 0,
            'requests': 0,
        }

    @property
    def path(self) -> Any:
        """The file, or the :class:`Stripes` that map offsets to files."""
        return self._file.path

    @property
    def cached_blocks(self) -> ctypes.Structure:
        """The cached blocks, for C functions."""
        return self._cache.blocks

    def gather(self, offset: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Returns the items at offsets in the file.

        Args:
            offset (numpy.ndarray): int64 ``[n]``, multiples of the item size,
                inside the file.
            dtype (numpy.dtype): The items' dtype, of 4 or 8 bytes; ``V4096``
                for whole blocks.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block or chunk that holds some is not whole.
        """
        out = np.empty(len(offset), dtype)
        with self._lock:
            missing = self._cache.find(offset, out)
            self._count(len(offset), len(missing))
        if len(missing) > 0:
            order = missing[np.argsort(offset[missing], kind='stable')]
            self._gather_missing(order, offset[order], out)
        return out

    def items(self, items: Items, key: Tensor) -> Tensor:
        """Returns the items of keys.

        Args:
            items (Items): The array.
            key (torch.Tensor): int64 ``[n]``, keys of the array.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block or chunk that holds some is not whole.
        """
        call = functions().gsample_find_keyed
        return self._find(call, key.shape[0], items, items.dtype, key)

    def ranges(self, items: Items, start: Tensor, indptr: Tensor) -> Tensor:
        """Returns the items of keys ``start[i]``, ..., concatenated.

        Args:
            items (Items): The array.
            start (torch.Tensor): int64 ``[n]``.
            indptr (torch.Tensor): int64 ``[n + 1]``, the running total of the
                numbers of keys.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block or chunk that holds some is not whole.
        """
        call, size = functions().gsample_find_ranges, int(indptr[-1])
        return self._find(call, size, items, items.dtype, start, indptr)

    def bounds(self, columns: Any, node: Tensor) -> Tensor:
        """Returns the stored offsets of nodes and of their ends.

        Args:
            columns (Columns): The columns of the nodes.
            node (torch.Tensor): int64 ``[n]``.

        Returns:
            torch.Tensor: int64 ``[2 * n]``: of each node, where its edges
            start in its first chunk and where they end in its last.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block or chunk that holds some is not whole.
        """
        call, size = functions().gsample_find_bounds, 2 * node.shape[0]
        return self._find(call, size, columns, torch.int64, node)

    def _find(
        self,
        call: Any,
        size: int,
        items: Any,
        dtype: torch.dtype,
        *keys: Tensor,
    ) -> Tensor:
        """Returns items by a C function, and reads those that it misses.

        Args:
            call (Callable): A C function of csrc/storage.
            size (int): Number of items.
            items (Items or Columns): Its second argument.
            dtype (torch.dtype): Of the items.
            *keys (torch.Tensor): int64, its next arguments; the size of the
                first one follows.
        """
        out = empty_items(size, dtype)
        keys = tuple(key.contiguous() for key in keys)
        with self._lock:
            if size > self._missing.shape[1]:
                self._missing = torch.empty(2, size, dtype=torch.int64)
            missing = self._missing
            count = call(
                self._cache.blocks_pointer,
                ctypes.byref(items),
                *(ctypes.c_void_p(key.data_ptr()) for key in keys),
                ctypes.c_int64(keys[0].shape[0]),
                ctypes.c_void_p(out.data_ptr()),
                ctypes.c_void_p(missing.data_ptr()),
                ctypes.c_void_p(missing.data_ptr() + 8 * missing.shape[1]),
            )
            self._count(size, count)
            index, offset = missing[:, :count].numpy()
            if count > 0:  # copies: another thread overwrites `missing`
                order = np.argsort(offset, kind='stable')
                index, offset = index[order], offset[order]
        if count > 0:
            self._gather_missing(index, offset, out.numpy())
        return out

    def edges(self, items: Items, position: Tensor) -> tuple[Tensor, Runs]:
        """Returns the cached items of edges, and the runs of the others.

        Args:
            items (Items): The array.
            position (torch.Tensor): int64 ``[n]``.

        Returns:
            Tuple[torch.Tensor, Runs]: ``[n]``, of which others than the cached
            items are undefined; and the runs of these.
        """
        position = position.contiguous()
        size = position.shape[0]
        out = empty_items(size, items.dtype)
        runs = [empty_vector(size) for _ in range(3)]
        with self._lock:  # before another thread evicts blocks
            count = functions().gsample_copy_edges(
                self._cache.blocks_pointer,
                ctypes.byref(items),
                ctypes.c_void_p(position.data_ptr()),
                ctypes.c_int64(size),
                *(ctypes.c_void_p(x.data_ptr()) for x in (out, *runs)),
            )
            missing = int(runs[2][:count].sum()) if count > 0 else 0
            self._count(size, missing)
        return out, Runs(position, *(x.numpy()[:count] for x in runs))

    def read_runs(
        self, block: np.ndarray, runs: Runs, place: np.ndarray, out: Tensor
    ) -> None:
        """Reads blocks, and copies their items.

        Args:
            block (numpy.ndarray): int64 ``[n]``, ascending, at most ``GROUP``.
            runs (Runs): Items that lie in one block each.
            place (numpy.ndarray): int64 ``[num_runs]``, the position of that
                block in ``block``.
            out (torch.Tensor): Receives the items.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block or chunk that holds some is not whole.
        """
        with self._staged(block) as staging:
            address = staging.ctypes.data + BLOCK * place
            functions().gsample_copy_runs(
                ctypes.c_void_p(runs.position.data_ptr()),
                pointer(runs.offset),
                pointer(runs.first),
                pointer(runs.length),
                pointer(address),
                ctypes.c_int64(len(address)),
                ctypes.c_int64(out.element_size()),
                ctypes.c_void_p(out.data_ptr()),
            )

    def _gather_missing(
        self, index: np.ndarray, offset: np.ndarray, out: np.ndarray
    ) -> None:
        """Reads the blocks of ascending offsets, group by group."""
        block = offset // BLOCK
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        for first in range(0, len(starts), GROUP):
            group = starts[first : first + GROUP]
            last = first + GROUP < len(starts)
            end = int(starts[first + GROUP]) if last else len(block)
            wanted = block[group]
            part = slice(int(group[0]), end)
            place = np.searchsorted(wanted, block[part])
            at = place * BLOCK + offset[part] % BLOCK
            with self._staged(wanted) as staging:
                items = staging.view(out.dtype)
                out[index[part]] = items[at // out.dtype.itemsize]

    @contextmanager
    def _staged(self, block: np.ndarray) -> Iterator[np.ndarray]:
        """Reads ascending blocks into memory, and then caches them.

        Other threads look up and read blocks at the same time: a thread has
        its own memory, and holds no lock while it reads.
        """
        assert 0 < len(block) <= GROUP
        with self._lock:
            staging = self._idle.pop() if self._idle else None
        if staging is None:
            staging = page_aligned(min(GROUP, self._num_blocks) * BLOCK)
        try:
            first, count = merged(block)
            offset, size = first * BLOCK, count * BLOCK
            size[-1] = min(int(size[-1]), self._size - int(offset[-1]))
            engine = self._checked.read_ranges(
                self._file, offset, size, staging, self._engine
            )
            yield staging
            with self._lock:
                self.stats['engine'] = engine
                self.stats['blocks_read'] += len(block)
                self.stats['requests'] += len(first)
                self._cache.insert(block, staging[: len(block) * BLOCK])
        finally:
            self._idle.append(staging)

    def count_found(self, size: int) -> None:
        """Counts items that were read in place."""
        with self._lock:
            self._count(size, 0)

    def _count(self, size: int, missing: int) -> None:
        """Counts items, or blocks, of which some were missing."""
        self.stats['hits'] += size - missing
        self.stats['misses'] += missing
