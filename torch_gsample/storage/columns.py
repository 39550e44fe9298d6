"""Columns of a relation on disk: their positions and draws."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.storage.blocks import BlockReader, Items
from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.draw_columns import draw_columns
from torch_gsample.storage.format import (
    EDGES,
    FIRST,
    NODES,
    OFFSET,
    START,
    TORCH,
    RelationMeta,
    malformed,
)
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.pooled import empty_vector
from torch_gsample.storage.segments import Appended


def concat_ranges(start: Tensor, length: Tensor) -> Tensor:
    """Returns ``start[i], ..., start[i] + length[i] - 1`` for each i.

    Example:
        >>> concat_ranges(torch.tensor([7, 2]), torch.tensor([1, 3]))
        tensor([7, 2, 3, 4])
    """
    start, length = start.contiguous(), length.contiguous()
    assert len(length) == 0 or int(length.min()) >= 0
    out = empty_vector(int(length.sum()))
    functions().gsample_concat_ranges(
        ctypes.c_void_p(start.data_ptr()),
        ctypes.c_void_p(length.data_ptr()),
        ctypes.c_int64(len(length)),
        ctypes.c_void_p(out.data_ptr()),
    )
    return out


def pointers_of(length: Tensor) -> Tensor:
    """Returns the running total of lengths, int64 ``[n + 1]``."""
    out = torch.zeros(len(length) + 1, dtype=torch.int64)
    torch.cumsum(length, 0, out=out[1:])
    return out


class Columns(ctypes.Structure):
    """The columns of a relation in chunks, as C functions receive them.

    Args:
        meta (RelationMeta): The relation.
    """

    _fields_ = (
        ('_offset', Items),
        ('_last_node', ctypes.c_void_p),
        ('_first_edge', ctypes.c_void_p),
        ('_num_edges', ctypes.c_void_p),
    )

    def __init__(self, meta: RelationMeta):
        table = np.ascontiguousarray(meta.chunks.T)
        start, first, edges = table[START], table[FIRST], table[EDGES]
        self.arrays = start + table[NODES] - 1, first, edges
        #: The array of each name, with nodes or edges as its keys.
        self.items = {}
        for name, place in meta.places(table[NODES], edges).items():
            if name == 'offset' or meta.widths.get(name, 0) > 0:
                key = start if name == 'offset' else first
                dtype = TORCH[meta.dtype(name).str]
                origin = table[OFFSET] + place - key * dtype.itemsize
                self.items[name] = Items(key, origin, dtype)
        addresses = (array.ctypes.data for array in self.arrays)
        super().__init__(self.items['offset'], *addresses)

    def place(self, node: int) -> int:
        """Returns the offset in the file of the stored offset of a node."""
        chunk = int(np.searchsorted(self.arrays[0], node))
        return int(self.items['offset'].origin[chunk]) + 8 * node


class RelationReader:
    """Reads single columns and edges of one relation.

    Args:
        meta (RelationMeta): The relation.
        blocks (BlockReader): Reads its file.
        appended (Appended, optional): Further edges.
    """

    def __init__(
        self,
        meta: RelationMeta,
        blocks: BlockReader,
        appended: Appended | None = None,
    ):
        self._meta, self._blocks, self._appended = meta, blocks, appended
        self._columns = Columns(meta)
        #: Counts items that were read in place.
        self.count_found = blocks.count_found

    @property
    def has_narrow_rows(self) -> bool:
        """Whether neighbours are int32."""
        return self._columns.items['neighbor'].dtype == torch.int32

    def addresses(self, weighted: bool, timed: bool) -> list[int | None]:
        """Returns what C functions need to read cached blocks in place.

        Args:
            weighted (bool): Whether to read weights, if there are any.
            timed (bool): Whether to read times, if there are any.

        Returns:
            List[int]: The addresses of blocks, columns, neighbours, ids,
            weights and times, or None for arrays that there are not.
        """
        known = self._columns.items
        items = (
            known['neighbor'],
            known.get('edge_id'),
            known.get('weight') if weighted else None,
            known.get('time') if timed else None,
        )
        structures = self._blocks.cached_blocks, self._columns, *items
        return [s if s is None else ctypes.addressof(s) for s in structures]

    def bounds(self, node: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the first edge position and the degree of each node.

        Raises:
            ValueError: If the offsets on disk are malformed.
        """
        start, indptr = self.columns(node)
        return start, indptr.diff()

    def columns(self, node: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the first edge position of each node, and pointers.

        The edges of a node start in its first chunk and end in its last.

        Returns:
            Tuple[torch.Tensor, torch.Tensor]: int64 ``[n]``, and the running
            total of degrees, int64 ``[n + 1]``.

        Raises:
            ValueError: If the offsets on disk are malformed.
        """
        node = node.contiguous()
        start, indptr = empty_vector(len(node)), empty_vector(len(node) + 1)
        if len(node) == 0:
            return start, indptr.zero_()
        found = self._blocks.bounds(self._columns, node)
        wrong = functions().gsample_end_bounds(
            ctypes.byref(self._columns),
            ctypes.c_void_p(node.data_ptr()),
            ctypes.c_int64(len(node)),
            ctypes.c_void_p(found.data_ptr()),
            ctypes.c_void_p(start.data_ptr()),
            ctypes.c_void_p(indptr.data_ptr()),
        )
        if wrong >= 0:
            malformed(
                self._blocks.path,
                self._columns.place(int(node[wrong])),
                'offsets of a chunk must ascend from 0 to its number of edges',
            )
        return start, indptr

    def items(self, name: str, position: Tensor) -> Tensor:
        """Returns items of an array at positions of edges.

        Args:
            name (str): The array.
            position (torch.Tensor): int64 ``[n]``.
        """
        return self._blocks.items(self._columns.items[name], position)

    def ranges(self, name: str, start: Tensor, indptr: Tensor) -> Tensor:
        """Returns the items of columns, concatenated; see :meth:`columns`."""
        return self._blocks.ranges(self._columns.items[name], start, indptr)

    def edges(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the neighbours and ids of edges.

        Raises:
            ValueError: If a neighbour on disk is not a node.
        """
        neighbor = self.items('neighbor', position)
        check_neighbors(self._blocks.path, self._meta, neighbor, position)
        if self._meta.widths['edge_id'] > 0:
            return neighbor, self.items('edge_id', position)
        return neighbor, position

    def draw(
        self,
        relation: int,
        hop: int,
        frontier: Frontier,
        fanout: int,
        options: dict[str, Any],
        weighted: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns pointers, neighbours and ids of edges of a frontier."""
        parts = relation, hop, frontier, fanout, options, weighted
        return self.draw_timed(*parts, with_times=False)[:3]

    def draw_timed(
        self,
        relation: int,
        hop: int,
        frontier: Frontier,
        fanout: int,
        options: dict[str, Any],
        weighted: bool,
        with_times: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Draws at a frontier; also returns the times of edges."""
        if self._appended is not None:
            return self._draw_joined(relation, hop, frontier, fanout, options)
        start, indptr = self.columns(frontier.node)
        timed = frontier.time is not None and self._meta.widths['time'] > 0
        weighted = weighted and self._meta.widths['weight'] > 0
        weight = time = None
        if weighted:
            weight = check_weights(
                self._blocks.path,
                self._meta,
                self.ranges('weight', start, indptr),
                lambda: concat_ranges(start, indptr.diff()),
            )
            weight = ops.cumulate_weights(indptr, weight)
        if timed:
            time = self.ranges('time', start, indptr)
        indptr, position = draw_columns(
            start,
            indptr,
            frontier,
            fanout,
            hop,
            relation,
            options,
            weight,
            time,
        )
        with_times = with_times and self._meta.widths['time'] > 0
        time = self.items('time', position) if with_times else None
        return indptr, *self.edges(position), time

    def _draw_joined(
        self,
        relation: int,
        hop: int,
        frontier: Frontier,
        fanout: int,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Draws at columns that may have appended edges.

        Both parts of a column are merged by time, appended edges last, as in a
        graph written at once, so draws are equal.
        """
        appended, timed = self._appended, self._meta.widths['time'] > 0
        assert appended is not None  # implies no weights
        node = frontier.node.clamp(max=self._meta.num_cols - 1)
        start, length = torch.zeros(2, len(node), dtype=torch.int64)
        if self._meta.num_cols:
            start, length = self.bounds(node)
            length = length.where(node == frontier.node, 0)  # others are new
        begin, count = map(
            torch.from_numpy, appended.bounds(frontier.node.numpy())
        )
        old = concat_ranges(start, length)
        new = concat_ranges(begin, count)
        column = torch.arange(len(node))
        column = torch.cat(
            [column.repeat_interleave(length), column.repeat_interleave(count)]
        )
        order, time = torch.argsort(column, stable=True), None
        if timed:
            assert appended.time is not None
            time = torch.from_numpy(appended.time)[new]
            time = torch.cat([self.items('time', old), time])
            order = torch.argsort(time, stable=True)
            order = order[torch.argsort(column[order], stable=True)]
            time = time[order]
        total = length + count
        indptr = pointers_of(total)
        indptr, position = draw_columns(
            indptr[:-1],
            indptr,
            frontier,
            fanout,
            hop,
            relation,
            options,
            edge_time=None if frontier.time is None else time,
        )
        picked = order[position]
        is_old = picked < len(old)
        neighbor, edge = torch.empty(2, len(picked), dtype=torch.int64)
        neighbor[is_old], edge[is_old] = (
            part.long() for part in self.edges(old[picked[is_old]])
        )
        place = new[picked[~is_old] - len(old)].numpy()
        neighbor[~is_old] = torch.from_numpy(appended.neighbor[place])
        edge[~is_old] = torch.from_numpy(appended.edge_id[place])
        time = None if time is None else time[position]
        return indptr, neighbor, edge, time


def check_neighbors(
    path: Any, meta: RelationMeta, neighbor: Tensor, position: Tensor
) -> None:
    """Checks that neighbours are nodes.

    Args:
        path (Path): The file, for the error.
        meta (RelationMeta): Its relation.
        neighbor (torch.Tensor): ``[n]``.
        position (torch.Tensor): int64 ``[n]``, of their edges.

    Raises:
        ValueError: If one is not a node.
    """
    if len(neighbor) == 0:
        return
    low, high = map(int, torch.aminmax(neighbor))
    if low >= 0 and high < meta.num_rows:
        return
    wrong = (neighbor < 0) | (neighbor >= meta.num_rows)
    malformed(
        path,
        _byte_of(meta, 'neighbor', int(position[wrong][0])),
        f'each neighbour must be in [0, {meta.num_rows}) (got '
        f'{low if low < 0 else high})',
    )


def check_weights(
    path: Any,
    meta: RelationMeta,
    weight: Tensor,
    position: Callable[[], Tensor],
) -> Tensor:
    """Returns weights that are finite and not negative.

    Args:
        path (Path): The file, for the error.
        meta (RelationMeta): Its relation.
        weight (torch.Tensor): ``[n]``.
        position (Callable): Returns those of their edges, int64 ``[n]``, for
            the error.

    Raises:
        ValueError: If one is negative or not finite.
    """
    if len(weight) == 0:
        return weight
    low, high = map(float, torch.aminmax(weight))  # NaN if there is one
    if low >= 0 and high < math.inf:
        return weight
    wrong = ~(weight.isfinite() & (weight >= 0))
    malformed(
        path,
        _byte_of(meta, 'weight', int(position()[wrong][0])),
        'each weight must be finite and not negative (got '
        f'{float(weight[wrong][0])})',
    )


def _byte_of(meta: RelationMeta, name: str, edge: int) -> int:
    """Returns the file offset of an item of an edge."""
    table = meta.chunks
    chunk = int(np.searchsorted(table[:, FIRST], edge, 'right')) - 1
    place = meta.places(int(table[chunk, NODES]), int(table[chunk, EDGES]))
    at = (edge - int(table[chunk, FIRST])) * meta.widths[name]
    return int(table[chunk, OFFSET]) + place[name] + at
