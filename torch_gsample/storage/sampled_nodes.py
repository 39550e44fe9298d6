"""The nodes of a type that a batch sampled, numbered by first occurrence.

Seeds and drawn rows come in; nodes of each hop and local ids go out. A thread
keeps the memory of its last batches (``csrc/storage/take_columns.cpp``).
"""

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.pooled import empty_vector


def address(tensor: Tensor | None) -> ctypes.c_void_p:
    """Returns the address of a contiguous tensor, or null."""
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def joined(parts: list[Tensor]) -> Tensor:
    """Concatenates int64 vectors; a single one is not copied.

    By this thread: a team of torch waits for its members, which other
    processes may hold up, and a batch calls this often.
    """
    if len(parts) == 1:
        return parts[0]
    out = empty_vector(sum(map(len, parts)))
    np.concatenate([p.numpy() for p in parts], out=out.numpy())
    return out


class SampledNodes:
    """The sampled nodes of one type.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, which may repeat.
        num_nodes (int): How many nodes the type has.
        num_trees (int): How many disjoint trees a batch has, or 0.
        first_tree (int): The tree of the first seed.
        expected (int): About how many nodes will be sampled.

    Raises:
        MemoryError: If there is no memory for them.
    """

    def __init__(
        self,
        seeds: Tensor,
        num_nodes: int,
        num_trees: int,
        first_tree: int,
        expected: int,
    ):
        seeds = seeds.contiguous()
        self._functions = functions()
        self._num_nodes = num_nodes
        #: Seeds that occurred before, by which they draw; others are 0.
        self.repeated = torch.empty(len(seeds), dtype=torch.int64)
        self._nodes = self._functions.gsample_begin_nodes(
            address(seeds),
            *map(
                ctypes.c_int64,
                (len(seeds), num_nodes, num_trees, first_tree, expected),
            ),
            address(self.repeated),
        )
        if not self._nodes:
            raise MemoryError(
                f'NeighborSampler: no memory to number {len(seeds)} seeds'
            )
        # Duplicates of seeds are nodes of their own, too.
        self._limit = len(seeds) + num_nodes if num_trees == 0 else 1 << 62
        self._nodes_of_hops = [seeds]
        self._trees_of_hops = None
        if num_trees > 0:
            self._trees_of_hops = [first_tree + torch.arange(len(seeds))]
        self._first_column = 0

    def __del__(self) -> None:
        if getattr(self, '_nodes', None):
            self._functions.gsample_end_nodes(ctypes.c_void_p(self._nodes))

    def __len__(self) -> int:
        return self._first_column + len(self.columns)

    @property
    def columns(self) -> Tensor:
        """int64 ``[n]``, the nodes that the last hop added."""
        return self._nodes_of_hops[-1]

    @property
    def trees(self) -> Tensor | None:
        """int64 ``[n]``, the tree of each column, or None."""
        return None if self._trees_of_hops is None else self._trees_of_hops[-1]

    def take(
        self,
        columns: 'SampledNodes',
        drawn: Any,
        part: slice,
        threads: int,
        out: list[Tensor],
    ) -> None:
        """Adds rows that columns drew, and writes their edges.

        Args:
            columns (SampledNodes): Whose last hop the columns are.
            drawn (Drawn): What each drew.
            part (slice): Some of them, those before are taken.
            threads (int): Number of threads, at most.
            out (List[torch.Tensor]): Rows, columns and ids of all edges of
                this draw, int64.

        Raises:
            AssertionError: If a row is not a node.
            KeyboardInterrupt: If Ctrl-C ended it.
            MemoryError: If there is no memory for further nodes.
        """
        size = self._functions.gsample_num_nodes(ctypes.c_void_p(self._nodes))
        begin, end = drawn.offset[part.start], drawn.offset[part.stop]
        most = min(size + int(end - begin), self._limit)
        row, edge = drawn.row, drawn.edge
        result = self._functions.gsample_take_columns(
            ctypes.c_void_p(self._nodes),
            ctypes.c_int64(self._num_nodes),
            ctypes.c_int64(most),
            ctypes.c_void_p(columns._nodes),
            ctypes.c_int64(columns._first_column),
            address(drawn.start),
            address(drawn.offset),
            *map(ctypes.c_int64, (len(drawn.start), part.start, part.stop)),
            address(row),
            ctypes.c_int64(row.itemsize),
            address(edge),
            ctypes.c_int64(edge.itemsize),
            ctypes.c_int64(len(row)),
            ctypes.c_int64(threads),
            *map(address, out),
        )
        if result == -2:
            raise MemoryError(
                f'NeighborSampler: no memory to number {most} sampled nodes'
            )
        if result == -4:
            raise KeyboardInterrupt
        assert result == -1, 'a draw returned a node that is not in the graph'

    def end_hop(self) -> None:
        """Makes columns of the nodes that were added."""
        self._first_column = len(self)
        size = self._functions.gsample_num_nodes(ctypes.c_void_p(self._nodes))
        node = empty_vector(size - self._first_column)
        tree = None
        if self._trees_of_hops is not None:
            tree = empty_vector(len(node))
            self._trees_of_hops.append(tree)
        self._functions.gsample_copy_nodes(
            ctypes.c_void_p(self._nodes),
            ctypes.c_int64(self._first_column),
            address(node),
            address(tree),
        )
        self._nodes_of_hops.append(node)

    @property
    def first_column(self) -> int:
        """The local id of the first column."""
        return self._first_column

    def all(self) -> tuple[Tensor, Tensor | None, list[int]]:
        """Returns all nodes, their trees, and how many each hop added."""
        counts = list(map(len, self._nodes_of_hops))
        trees = self._trees_of_hops
        return (
            joined(self._nodes_of_hops),
            None if trees is None else joined(trees),
            counts,
        )
