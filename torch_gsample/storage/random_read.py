"""Samples a graph on disk batch by batch, reading only the needed blocks."""

import os
from typing import Any

from torch import Tensor
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

from torch_gsample.locks import new_lock
from torch_gsample.memory import bytes_of
from torch_gsample.ops import Sample
from torch_gsample.options import (
    DiskOptions,
    TimeBound,
    TimeInclusive,
    checked_names,
)
from torch_gsample.samplers.neighbor.edge_bound import Select
from torch_gsample.samplers.neighbor.node_wise import NumNeighborsType
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.blocks import BlockReader
from torch_gsample.storage.columns import RelationReader
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.hops import Draw, Frontier
from torch_gsample.storage.reading import ENGINES
from torch_gsample.storage.sample_cached import CachedHops
from torch_gsample.storage.sampler import DiskSampler
from torch_gsample.storage.segments import Appended

_opening = new_lock()


class RandomReads:
    """The open files of a graph, separate for each process.

    Args:
        graph (ChunkedGraph): The graph.
        cache_bytes (int): Total memory of all caches.
        engine (str, optional): See :meth:`File.read_ranges`.
    """

    def __init__(
        self, graph: ChunkedGraph, cache_bytes: int, engine: str = 'auto'
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


class RandomReadSampler(DiskSampler):
    r"""Samples a graph on disk by reading the blocks that a batch needs.

    Like RingSampler, it first draws positions, which needs only the offsets
    of columns. Then it reads the 4-KiB blocks with these positions, sorted
    and merged, all in flight at once: by io_uring, or by threads if the
    kernel refuses it. Blocks are cached. Weighted and temporal sampling read
    the weights or times of whole columns.

    Samples equal those of a :class:`NeighborSampler` of the same seed. It
    needs no preparation; :class:`StreamingSampler` is faster if an epoch
    touches much of the graph.

    Args:
        graph (ChunkedGraph): The graph.
        num_neighbors (NumNeighbors or List[int] or Dict): See
            :class:`NeighborSampler`.
        cache_bytes (int or str, optional): Memory for blocks, in each
            process.
        engine (str, optional): ``'io_uring'``, ``'threads'``, or ``'auto'``:
            the first one that works.
        time_bound (str, optional): See :class:`NeighborSampler`, as for
            ``time_inclusive``. With an open end, times of edges must be
            greater than the least int64.
        time_inclusive (str, optional): See above.
        **options (optional): All others are as in :class:`DiskSampler`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> import tempfile, torch
        >>> from torch_geometric.sampler import NodeSamplerInput
        >>> edge_index = torch.tensor([[1, 2, 2], [0, 0, 1]])
        >>> folder = tempfile.TemporaryDirectory()
        >>> graph = ChunkedGraph.write(f'{folder.name}/graph', edge_index)
        >>> sampler = RandomReadSampler(graph, [2, 1], seed=0)
        >>> inputs = NodeSamplerInput(None, torch.tensor([0]))
        >>> sampler.sample_from_nodes(inputs).node
        tensor([0, 1, 2])
        >>> folder.cleanup()
    """

    overlaps_reads = True

    @checked_names
    def __init__(
        self,
        graph: ChunkedGraph,
        num_neighbors: NumNeighborsType,
        subgraph_type: SubgraphType | str = 'directional',
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = 'uniform',
        *,
        cache_bytes: int | str = 256 << 20,
        engine: str = 'auto',
        time_bound: TimeBound = 'seed',
        time_inclusive: TimeInclusive = 'both',
        **options: Unpack[DiskOptions],
    ):
        base = subgraph_type, replace, disjoint, temporal_strategy
        self.interval = TimeInterval(time_bound, time_inclusive)
        super().__init__(graph, num_neighbors, *base, **options)
        if engine not in ENGINES:
            raise ValueError(
                f"RandomReadSampler: 'engine' must be one of {ENGINES} (got "
                f'{engine!r})'
            )
        size = bytes_of(cache_bytes, "RandomReadSampler: 'cache_bytes'")
        self._reads = RandomReads(graph, size, engine)

    def begin_batch(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Draw:
        """Returns the function that draws at the frontiers of a batch."""
        readers = self._reads.readers()

        def draw(relation: int, hop: int, frontier: Frontier) -> Drawn:
            columns = readers[relation].draw(
                relation,
                hop,
                frontier,
                fanouts[relation][hop],
                options,
                self.use_weights,
            )
            return Drawn.of_columns(*columns)

        return draw

    def sample_cached(
        self,
        seeds: list[Tensor],
        seed_time: list[Tensor] | None,
        fanouts: list[list[int]],
        options: dict[str, Any],
    ) -> Sample | None:
        """Samples a batch of which all blocks are cached."""
        hops = self._reads.cached_hops()
        if hops is None:
            return None
        return hops.sample(
            seeds, seed_time, fanouts, options, self.use_weights
        )

    def select_edges(
        self, fanouts: list[list[int]], options: dict[str, Any]
    ) -> Select:
        """Returns the selection of edges whose times bound later hops."""
        readers = self._reads.readers()

        def select(
            relation: int,
            hop: int,
            node: Tensor,
            root: Tensor | None,
            latest: Tensor,
        ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
            return readers[relation].draw_timed(
                relation,
                hop,
                Frontier(node, root, latest),
                fanouts[relation][hop],
                options,
                self.use_weights,
            )

        return select

    def stats(self) -> dict[str, Any]:
        """Returns counts of this process.

        Returns:
            Dict[str, Any]: The keys of :meth:`KeyedSampler.stats`, and
            ``hits`` and ``misses`` (items in the cache or not), ``hit_rate``,
            ``blocks_read``, ``requests`` (merged reads) and ``engine``.
        """
        return {**super().stats(), **self._reads.stats()}
