"""The sampled nodes of a type, numbered by first occurrence.

Seeds and drawn rows come in; nodes of each hop and local ids go out. A thread
reuses the memory of its last batches (``csrc/storage/take_columns.cpp``).
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

    This thread copies alone: torch's team would wait for members that other
    processes delay, and a batch calls this often.
    """
    if len(parts) == 1:
        return parts[0]
    out = empty_vector(sum(map(len, parts)))
    np.concatenate([p.numpy() for p in parts], out=out.numpy())
    return out


class SampledNodes:
    """The sampled nodes of one type.

    Args:
        seeds (torch.Tensor): int64 ``[num_seeds]``, may repeat.
        num_nodes (int): Number of nodes of the type.
        num_trees (int): Number of disjoint trees, or 0.
        first_tree (int): The tree of the first seed.
        expected (int): The expected number of sampled nodes.

    Raises:
        MemoryError: If there is not enough memory.
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
        #: Positions of repeated seeds, which distinguish their draws; others
        #: are 0.
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
                f'NeighborSampler: not enough memory for {len(seeds)} seeds'
            )
        # Repeated seeds are separate nodes.
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
        """int64 ``[n]``, the nodes added by the last hop."""
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
        """Adds drawn rows, and writes their edges.

        Args:
            columns (SampledNodes): The destinations; the columns are their
                last hop.
            drawn (Drawn): The draws of columns.
            part (slice): The columns to take; earlier ones are done.
            threads (int): Maximum number of threads.
            out (List[torch.Tensor]): Rows, columns and ids of all edges of
                this draw, int64.

        Raises:
            AssertionError: If a row is not a node.
            KeyboardInterrupt: On Ctrl-C.
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
                f'NeighborSampler: not enough memory for {most} nodes'
            )
        if result == -4:
            raise KeyboardInterrupt
        assert result == -1, 'a draw returned a node that is not in the graph'

    def end_hop(self) -> None:
        """Makes the added nodes the columns of the next hop."""
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
        """Returns all nodes, their trees, and the number added by each hop."""
        counts = list(map(len, self._nodes_of_hops))
        trees = self._trees_of_hops
        return (
            joined(self._nodes_of_hops),
            None if trees is None else joined(trees),
            counts,
        )
