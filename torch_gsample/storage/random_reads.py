"""Readers of the columns of a graph on disk, with a cache of its blocks."""

import os
from typing import Any

from torch_gsample.locks import new_lock
from torch_gsample.storage.blocks import BlockReader
from torch_gsample.storage.columns import RelationReader
from torch_gsample.storage.sample_cached import CachedHops
from torch_gsample.storage.segments import Appended
from torch_gsample.storage.stored_graph import StoredGraph

_opening = new_lock()


class RandomReads:
    """The open files of a graph, separate for each process.

    Args:
        graph (StoredGraph): The graph.
        cache_bytes (int): Total memory of all caches.
        engine (str, optional): See :meth:`File.read_ranges`.
    """

    def __init__(
        self, graph: StoredGraph, cache_bytes: int, engine: str = 'auto'
    ):
        self._graph, self._cache_bytes = graph, cache_bytes
        self._engine = engine
        self._process = -1
        self._blocks: list[BlockReader] = []
        self._readers: list[RelationReader] = []
        self._hops: CachedHops | None = None

    def readers(self) -> list[RelationReader]:
        """Returns a reader for each relation.

        A forked process creates its own: it must not share its parent's locks.
        """
        if self._process != os.getpid():
            with _opening:  # threads share one cache
                self._open()
        return self._readers

    def _open(self) -> None:
        if self._process != os.getpid():
            graph = self._graph
            total = max(graph.num_bytes, 1)
            self._blocks = [
                BlockReader(
                    graph.open(meta),
                    graph.meta.sizes[meta.file],
                    checked,
                    self._cache_bytes * graph.meta.sizes[meta.file] // total,
                    self._engine,
                )
                for meta, checked in zip(
                    graph.meta.relations, graph.checked, strict=True
                )
            ]
            none: list[Appended | None] = [None] * len(self._blocks)
            appended = [*graph.segments.edges] or none
            self._readers = [
                RelationReader(*parts)
                for parts in zip(
                    graph.meta.relations, self._blocks, appended, strict=True
                )
            ]
            whole = not graph.segments.edges
            types = graph.sampler_graph()
            self._hops = CachedHops(types, self._readers) if whole else None
            self._process = os.getpid()

    def cached_hops(self) -> CachedHops | None:
        """Returns what samples cached blocks, unless edges were appended."""
        self.readers()
        return self._hops

    def files(self) -> list[BlockReader]:
        """Returns the block reader of each relation."""
        self.readers()
        return self._blocks

    def stats(self) -> dict[str, Any]:
        """Returns the read counters of this process."""
        self.readers()
        keys = 'hits', 'misses', 'blocks_read', 'requests'
        out: dict[str, Any] = {
            key: sum(b.stats[key] for b in self._blocks) for key in keys
        }
        items = out['hits'] + out['misses']
        out['hit_rate'] = out['hits'] / items if items else 0.0
        engines = {b.stats['engine'] for b in self._blocks} - {None}
        out['engine'] = ', '.join(sorted(engines)) or None
        return out

    def __getstate__(self) -> dict[str, Any]:
        kept = {'_process': -1, '_blocks': [], '_readers': []}
        kept['_hops'] = None
        return {**self.__dict__, **kept}
