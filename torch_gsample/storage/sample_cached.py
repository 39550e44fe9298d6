"""Batches of which all blocks are cached, sampled by one call of C++.

Seeds come in, a sample goes out; or nothing if a block has to be read.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.graph_types import GraphTypes
from torch_gsample.ops import Sample
from torch_gsample.storage.columns import RelationReader
from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.pooled import empty_vector

_INCOMPLETE, _STOPPED, _NO_MEMORY = 1, 2, 3
_NARROW = 1 << 31
_MOST_INCOMPLETE = 5


class _Relation(ctypes.Structure):
    """A relation of a batch, as C functions receive it."""

    _fields_ = (
        ('blocks', ctypes.c_void_p),
        ('columns', ctypes.c_void_p),
        ('neighbor', ctypes.c_void_p),
        ('edge_id', ctypes.c_void_p),
        ('weight', ctypes.c_void_p),
        ('time', ctypes.c_void_p),
        ('fanouts', ctypes.c_void_p),
        ('src', ctypes.c_int64),
        ('dst', ctypes.c_int64),
    )


class _NodeType(ctypes.Structure):
    """The seeds of a node type."""

    _fields_ = (
        ('num_nodes', ctypes.c_int64),
        ('seeds', ctypes.c_void_p),
        ('seed_time', ctypes.c_void_p),
        ('num_seeds', ctypes.c_int64),
    )


class _Batch(ctypes.Structure):
    """A batch."""

    _fields_ = (
        ('relations', ctypes.c_void_p),
        ('types', ctypes.c_void_p),
        ('key', ctypes.c_void_p),
        ('num_relations', ctypes.c_int64),
        ('num_types', ctypes.c_int64),
        ('num_hops', ctypes.c_int64),
        ('narrow', ctypes.c_int64),
        ('replace', ctypes.c_int64),
        ('disjoint', ctypes.c_int64),
        ('last', ctypes.c_int64),
        ('has_window', ctypes.c_int64),
        ('window', ctypes.c_int64),
        ('threads', ctypes.c_int64),
    )


class _Relations:
    """The relations of batches, as C functions receive them.

    Args:
        readers (List[RelationReader]): Their readers, which must stay open.
        ends (List[List[int]]): The types of their rows and columns.
        fanouts (List[List[int]]): For each relation.
        weighted (bool): Whether to sample by weights, if there are any.
        timed (bool): Whether to sample by times, if there are any.
    """

    def __init__(
        self,
        readers: Sequence[RelationReader],
        ends: list[list[int]],
        fanouts: list[list[int]],
        weighted: bool,
        timed: bool,
    ):
        self._known = fanouts, weighted, timed
        self._fanouts = [(ctypes.c_int64 * len(k))(*k) for k in fanouts]
        self.array = (_Relation * len(readers))(
            *(
                _Relation(
                    *reader.addresses(weighted, timed),
                    ctypes.addressof(k),
                    *end,
                )
                for reader, k, end in zip(
                    readers, self._fanouts, ends, strict=True
                )
            )
        )

    def fits(
        self, fanouts: list[list[int]], weighted: bool, timed: bool
    ) -> bool:
        """Whether a batch has the arguments of these relations."""
        known = self._known
        return known[0] is fanouts and known[1:] == (weighted, timed)


class CachedHops:
    """Samples batches of which all blocks are cached.

    Args:
        graph (GraphTypes): Types and numbers of nodes.
        readers (List[RelationReader]): The reader of each relation, without
            appended edges.
    """

    def __init__(self, graph: GraphTypes, readers: Sequence[RelationReader]):
        types = list(graph.counts)
        self._counts = list(graph.counts.values())
        self._ends = [
            [types.index(end) for end in graph.end_types(edge_type)]
            for edge_type in graph.edge_types
        ]
        self._readers = readers
        self._narrow = max(self._counts, default=0) < _NARROW and all(
            reader.has_narrow_rows for reader in readers
        )
        self._relations: _Relations | None = None  # of the last batch
        # Consecutive batches with a missing block, and batches to skip.
        self._incomplete = self._skipped = 0

    def sample(
        self,
        seeds: list[Tensor],
        seed_time: list[Tensor] | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
        weighted: bool,
    ) -> Sample | None:
        """Returns a sample, or None if a block is missing or malformed.

        After some such batches it returns None for up to 15 of them at once: a
        cache that never has all blocks costs little time.

        Args:
            seeds (List[torch.Tensor]): int64, contiguous, of each type.
            seed_time (List[torch.Tensor], optional): Likewise.
            fanouts (List[List[int]]): For each relation.
            options (Dict[str, Any]): Options of the operators.
            weighted (bool): Whether to sample by weights, if there are any.

        Raises:
            KeyboardInterrupt: On Ctrl-C.
            MemoryError: If there is not enough memory.
        """
        if self._skipped > 0:
            self._skipped -= 1
            return None
        timed = seed_time is not None
        relations = self._relations  # another thread may replace it
        if relations is None or not relations.fits(fanouts, weighted, timed):
            relations = _Relations(
                self._readers, self._ends, fanouts, weighted, timed
            )
            self._relations = relations
        num_types, num_relations = len(seeds), len(fanouts)
        num_hops = len(fanouts[0]) if fanouts else 0
        types = self._types(seeds, seed_time)
        window = options['time_window']
        batch = _Batch(
            ctypes.addressof(relations.array),
            ctypes.addressof(types),
            address(options['key']),
            num_relations,
            num_types,
            num_hops,
            self._narrow,
            options['replace'],
            options['disjoint'],
            options['temporal_strategy'] == 'last',
            window is not None,
            window or 0,
            options['num_threads'],
        )
        sizes = num_types * (num_hops + 1), num_relations * num_hops
        counts = torch.empty(sum(sizes) + num_relations, dtype=torch.int64)
        result = functions().gsample_sample_cached(
            ctypes.byref(batch), ctypes.c_void_p(address(counts))
        )
        if result == _INCOMPLETE:
            self._incomplete = min(self._incomplete + 1, _MOST_INCOMPLETE)
            self._skipped = ((1 << self._incomplete) - 1) // 2
            return None
        _check(result)
        self._incomplete = 0
        counts, found = counts.split_with_sizes([sum(sizes), num_relations])
        for reader, items in zip(self._readers, found.tolist(), strict=True):
            reader.count_found(items)
        nodes, edges = map(sum, map(Tensor.tolist, counts.split(sizes)))
        trees = nodes if options['disjoint'] else 0
        outputs = _written(edges, edges, edges, nodes, trees)
        row, col, edge, node, tree = outputs
        ends = num_types, num_relations, None
        return Sample(row, col, node, edge, tree, counts, *ends)

    def _types(
        self, seeds: list[Tensor], seed_time: list[Tensor] | None
    ) -> Any:
        """Returns the seeds of each type, as C functions receive them."""
        times: Sequence[Tensor | None] = seed_time or [None] * len(seeds)
        columns = zip(self._counts, seeds, times, strict=True)
        return (_NodeType * len(seeds))(
            *(
                _NodeType(size, address(seed), address(time), seed.shape[0])
                for size, seed, time in columns
            )
        )


def _written(*sizes: int) -> list[Tensor]:
    """Returns the outputs of the sample that the thread drew last."""
    outputs = [empty_vector(size) for size in sizes]
    out = (ctypes.c_void_p * len(sizes))(*map(address, outputs))
    _check(functions().gsample_write_cached(out))
    return outputs


def _check(result: int) -> None:
    if result == _STOPPED:
        raise KeyboardInterrupt
    if result == _NO_MEMORY:
        raise MemoryError('NeighborSampler: not enough memory for a batch')


def address(tensor: Tensor | None) -> int | None:
    """Returns the address of a tensor, or None."""
    return None if tensor is None else tensor.data_ptr()
