"""Samples a graph on disk batch by batch, reading only the needed blocks."""

from typing import Any

from torch import Tensor
from torch_geometric.sampler.base import SubgraphType
from typing_extensions import Unpack

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
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.hops import Draw, Frontier
from torch_gsample.storage.random_reads import RandomReads
from torch_gsample.storage.reading import ENGINES
from torch_gsample.storage.sampler import DiskSampler


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
