"""Samples the neighbourhoods of all mini-batches at once, by joins."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from torch_gsample import rng
from torch_gsample.graph_sampling.draws import checked_seed
from torch_gsample.ops import _check
from torch_gsample.spark.adjacency import Adjacency
from torch_gsample.spark.batch_types import BatchTypes, EdgeType
from torch_gsample.spark.batches import SampledBatches
from torch_gsample.spark.frames import DataFrame, F
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.sample_arguments import (
    SampleArguments,
    SeedCounts,
    checked_arguments,
    checked_batches,
    count_seeds,
)
from torch_gsample.spark.scratch import prepared_here
from torch_gsample.spark.selection import Selection
from torch_gsample.spark.stored import StoredAdjacency
from torch_gsample.spark.stored_batches import StoredSampling
from torch_gsample.storage import ChunkedGraph

_OP = 'neighbor_sample'
#: Maximum edges of a node in one row.
_LARGEST_COLUMN = 1 << 14


@operation
def neighbor_sample(
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    seeds: DataFrame | tuple[str, DataFrame],
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
    *,
    batch_size: int,
    seed: int | None = None,
    epoch: int = 0,
    weighted: bool = False,
    timed: bool = False,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    disjoint: bool = False,
    largest_column: int = _LARGEST_COLUMN,
    batches: range | None = None,
    split: Literal['batches', 'nodes'] = 'batches',
) -> SampledBatches:
    r"""Samples in-neighbours of the seeds of all batches, hop by hop.

    Every batch equals that of :class:`torch_gsample.NeighborSampler` with the
    same ``seed`` and ``rng_scope='epoch'``: a node draws the same neighbours
    in all batches of an epoch, so it is sampled once for all of them. A
    frontier is joined with its nodes' edges, and the drawn edges with the
    batches. Some jobs run during the call, to find hubs, or
    to prepare the graph.

    Args:
        edges (DataFrame or Dict or ChunkedGraph): Columns ``src``, ``dst``
            and ``id``, the index of the edge in the local graph's
            ``edge_index``; with ``weighted`` also ``weight``, with ``timed``
            also ``time``. A frame for each edge type, in their order, in a
            heterogeneous graph. Or the
            :class:`~torch_gsample.storage.ChunkedGraph` of
            :func:`prepare_adjacency`: then only drawn edges are shuffled.
        seeds (DataFrame or Tuple): Columns ``position``, the position of a
            seed among all seeds, ``id``, its node, and with ``timed`` also
            ``time``. A pair of the node type and this in a heterogeneous
            graph.
        fanouts (List[int] or Dict): Neighbours to sample at each hop; -1 takes
            all.
        batch_size (int): Batch ``i`` has the seeds with positions from
            ``i * batch_size`` on.
        seed (int, optional): Seed of all draws; default: drawn from torch's
            default generator.
        epoch (int, optional): The epoch: each epoch draws different samples.
        weighted (bool, optional): Whether edges are drawn by ``weight``.
        timed (bool, optional): Whether a tree has only edges up to the time of
            its seed. If nodes have times, too, ``time`` must be the later one
            of the edge and its source.
        time_window (int, optional): See
            :func:`torch_gsample.ops.sample_neighbors`.
        temporal_strategy (str, optional): ``'uniform'`` or ``'last'``.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        disjoint (bool, optional): Whether each seed has its own tree; implied
            by ``timed``.
        largest_column (int, optional): Nodes with more edges are hubs: their
            edges are spread over tasks. One task holds the weights of a hub, 8
            bytes an edge.
        batches (range, optional): The contiguous batches to sample; all if not
            given.
        split (str, optional): How tasks divide the work on a stored graph.
            With ``'batches'``, each samples whole batches, and no edge is
            shuffled. With ``'nodes'``, each draws at a range of nodes for all
            batches, and drawn edges are shuffled: it reads edges once, which
            is less if most nodes are visited, or hubs have weights. Samples
            are equal.
            From DataFrames, ``'batches'`` first prepares the graph in a
            temporary folder, if Spark runs in this process and node ids are
            dense. :meth:`SampledBatches.close` removes it. Otherwise, edges
            are joined, as with ``'nodes'``.

    Returns:
        SampledBatches: The sample; write it with :meth:`SampledBatches.write`.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, an argument is out of range, or
            seeds are missing.

    Example:
        >>> import tempfile
        >>> from torch_gsample.spark import SampledParquetLoader, local_session
        >>> spark = local_session()
        >>> edges = spark.createDataFrame([(1, 0, 0)], ['src', 'dst', 'id'])
        >>> seeds = spark.createDataFrame([(0, 0)], ['position', 'id'])
        >>> sample = neighbor_sample(edges, seeds, [2], batch_size=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sample.write(f'{folder}/epoch')
        ...     for batch in SampledParquetLoader(f'{folder}/epoch'):
        ...         print(batch.n_id)
        tensor([0, 1])
        >>> sample.close()
    """
    _check.count(_OP, 'largest_column', largest_column)
    checked = checked_arguments(
        _OP,
        edges,
        seeds,
        fanouts,
        batch_size=batch_size,
        weighted=weighted,
        timed=timed,
        time_window=time_window,
        temporal_strategy=temporal_strategy,
        split=split,
        batches=batches,
    )
    stored = edges if isinstance(edges, ChunkedGraph) else None
    rng.check_key(_OP, 0, epoch)
    return sample_counted(
        checked,
        stored,
        count_seeds(checked, stored),
        batch_size=batch_size,
        key=(checked_seed(_OP, seed), epoch, rng.EPOCH_SCOPE),
        weighted=weighted,
        timed=timed,
        time_window=time_window,
        temporal_strategy=temporal_strategy,
        replace=replace,
        disjoint=disjoint,
        largest_column=largest_column,
        batches=batches,
        split=split,
    )


def sample_counted(
    checked: SampleArguments,
    stored: ChunkedGraph | None,
    counted: SeedCounts,
    *,
    batch_size: int,
    key: tuple[int, int, int],
    batches: range | None,
    weighted: bool,
    timed: bool,
    time_window: int | None,
    temporal_strategy: str,
    replace: bool,
    disjoint: bool,
    split: str,
    largest_column: int = _LARGEST_COLUMN,
) -> SampledBatches:
    """Samples from checked arguments and seeds that were counted.

    Args:
        checked (SampleArguments): Of :func:`checked_arguments`.
        stored (ChunkedGraph, optional): The graph, if it is stored.
        counted (SeedCounts): Of :func:`count_seeds`.
        key (Tuple[int, int, int]): Seed, epoch and :data:`rng.EPOCH_SCOPE`.
        batch_size (int): See :func:`neighbor_sample`, as for all others.
        batches (range, optional): See above.
        weighted (bool): See above.
        timed (bool): See above.
        time_window (int, optional): See above.
        temporal_strategy (str): See above.
        replace (bool): See above.
        disjoint (bool): See above.
        split (str): See above.
        largest_column (int, optional): See above.
    """
    types, input_type = checked.types, checked.input_type
    frames, place, num_seeds = checked.frames, F.col('position'), counted.size
    seeds = checked.seeds.withColumns(
        {'batch': F.floor(place / batch_size), 'tree': place % batch_size}
    )
    batches = checked_batches(batches, -(-num_seeds // batch_size))
    seeds = seeds.where(F.col('batch').between(batches[0], batches[-1]))
    types = types.sampled(
        hops=len(checked.fanouts[0]),
        disjoint=disjoint or timed,
        timed=timed,
        input_type=input_type,
        num_seeds=num_seeds,
        batch_size=batch_size,
    )
    options = (replace, time_window, temporal_strategy)
    graph, scratch = stored, None
    if stored is None and split == 'batches':
        least = {input_type: counted.largest + 1}
        scratch = prepared_here(_OP, types, frames, least)
        graph = None if scratch is None else scratch.graph
    if graph is not None and split == 'batches':
        path, generation = str(graph.path.absolute()), graph.meta.generation
        out = StoredSampling(
            path, generation, key, checked.fanouts, weighted, *options
        ).batches(seeds, types, batches)
        out._scratch = scratch
        return out
    run = _Run(types)
    relations: list[Adjacency | StoredAdjacency] = []
    if stored is not None:
        numbers = range(len(types.edges))
        relations += [StoredAdjacency(stored, r, weighted) for r in numbers]
    for frame in frames:
        columns_of = Adjacency(frame, timed, weighted, largest_column)
        run.persisted += columns_of.persisted
        relations.append(columns_of)
    run.start(seeds)
    run.sample(relations, key, checked.fanouts, options)
    return SampledBatches(
        seeds, run.edges(), run.seen_nodes(), types, batches, run.persisted
    )


class _Run:
    """Frontiers and sampled edges, hop by hop.

    A frontier has ``batch``, ``tree``, ``node`` and, with times, ``time``.
    Frames used twice are cached, so no hop is computed again.
    """

    def __init__(self, types: BatchTypes):
        self._types = types
        self._time = ['time'] if types.timed else []
        self.persisted: list[DataFrame] = []
        self._sampled: list[DataFrame] = []

    def sample(
        self,
        relations: list[Adjacency | StoredAdjacency],
        key: tuple[int, int, int],
        fanouts: list[list[int]],
        options: tuple[Any, ...],
    ) -> None:
        """Samples all hops, each at all relations."""
        for hop in range(self._types.hops):
            self.hop(
                hop,
                [
                    (columns_of, Selection(key, hop, r, fanout[hop], *options))
                    for r, (columns_of, fanout) in enumerate(
                        zip(relations, fanouts, strict=True)
                    )
                ],
            )

    def start(self, seeds: DataFrame) -> None:
        tree = (
            F.col('tree') if self._types.disjoint else F.lit(0).cast('bigint')
        )
        first = seeds.select(
            'batch', tree.alias('tree'), F.col('id').alias('node'), *self._time
        ).distinct()
        self._empty = first.where(F.lit(False))
        self._frontier: list[DataFrame | None] = [None] * self._types.num_nodes
        self._frontier[self._types.input_type] = self._persist(first)
        self._seen: list[list[DataFrame]] = [
            [f] if f is not None else [] for f in self._frontier
        ]

    def hop(
        self,
        hop: int,
        relations: list[tuple[Adjacency | StoredAdjacency, Selection]],
    ) -> None:
        reached: list[list[DataFrame]] = [[] for _ in self._frontier]
        for r, (adjacency, selection) in enumerate(relations):
            source, target = self._types.ends[r]
            frontier = self._frontier[target]
            if frontier is None or selection.fanout == 0:
                continue
            drawn = adjacency.draw(frontier, selection)
            edges = self._persist(
                drawn.withColumns({'hop': F.lit(hop), 'relation': F.lit(r)})
            )
            self._sampled.append(edges)
            node = F.col('src').alias('node')
            reached[source].append(
                edges.select('batch', 'tree', node, *self._time)
            )
        for t, parts in enumerate(reached):
            self._frontier[t] = self._unseen(t, parts)

    def edges(self) -> DataFrame:
        columns = ['batch', 'tree', 'hop', 'relation', 'slot', 'src', 'id']
        parts = [
            part.select(*columns, F.col('node').alias('dst'))
            for part in self._sampled
        ]
        if parts:
            return functools.reduce(DataFrame.union, parts)
        numbers = dict.fromkeys([*columns[2:], 'dst'], F.lit(0))
        return self._empty.withColumns(numbers).select(*columns, 'dst')

    def seen_nodes(self) -> list[DataFrame]:
        return [
            functools.reduce(DataFrame.union, parts, self._empty).select(
                'batch', 'tree', 'node'
            )
            for parts in self._seen
        ]

    def _unseen(self, t: int, parts: list[DataFrame]) -> DataFrame | None:
        """Returns the nodes that no earlier hop reached."""
        if not parts:
            return None
        reached = [part.withColumn('seen', F.lit(0)) for part in parts]
        seen = [part.withColumn('seen', F.lit(1)) for part in self._seen[t]]
        both = functools.reduce(DataFrame.union, reached + seen)
        # A tree has one time, that of its seed.
        times = [F.min(name).alias(name) for name in self._time]
        fresh = (
            both.groupBy('batch', 'tree', 'node')
            .agg(*times, F.max('seen').alias('seen'))
            .where('seen = 0')
            .drop('seen')
        )
        fresh = fresh.select('batch', 'tree', 'node', *self._time)
        self._seen[t].append(self._persist(fresh))
        return fresh

    def _persist(self, frame: DataFrame) -> DataFrame:
        self.persisted.append(frame.persist())
        return frame
