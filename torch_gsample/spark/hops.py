"""Samples the neighbourhoods of all mini-batches at once, by joins."""

import functools
from collections.abc import Mapping, Sequence

from torch_gsample import rng
from torch_gsample.graph_sampling.draws import checked_seed
from torch_gsample.ops import _check
from torch_gsample.spark.adjacency import Adjacency
from torch_gsample.spark.batches import (
    BatchTypes,
    EdgeType,
    SampledBatches,
)
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    checked_frame,
    checked_relation,
)
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.selection import Selection
from torch_gsample.spark.stored import StoredAdjacency
from torch_gsample.storage import ChunkedGraph

_OP = 'neighbor_sample'
#: Edges of a node that one row of the prepared graph holds.
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
) -> SampledBatches:
    r"""Samples in-neighbours of the seeds of all batches, hop by hop.

    Every batch is the one of :class:`torch_gsample.NeighborSampler` for the
    same ``seed``, with ``rng_scope='epoch'``: a node draws the same neighbours
    in all batches of an epoch, and so is sampled once for all of them. A
    frontier is joined to its nodes' edges, and what was drawn to the batches.
    Some jobs run before this returns: they say which nodes are hubs.

    Args:
        edges (DataFrame or Dict or ChunkedGraph): Columns ``src``, ``dst``
            and ``id``, the number of the edge in the local graph's
            ``edge_index``; with ``weighted`` also ``weight``, with ``timed``
            also ``time``. A frame for each edge type, in their order, in a
            heterogeneous graph. Or the
            :class:`~torch_gsample.storage.ChunkedGraph` of
            :func:`prepare_adjacency`: then no edge is shuffled before it is
            drawn.
        seeds (DataFrame or Tuple): Columns ``position``, the place of a seed
            among all seeds, ``id``, its node, and with ``timed`` also
            ``time``. A pair of the node type and this in a heterogeneous
            graph.
        fanouts (List[int] or Dict): Neighbours to sample at each hop; -1 takes
            all.
        batch_size (int): Batch ``i`` has the seeds with positions from
            ``i * batch_size`` on.
        seed (int, optional): Seed of all draws; default: drawn from torch's
            default generator.
        epoch (int, optional): The epoch: other epochs draw other samples.
        weighted (bool, optional): Whether edges are drawn by ``weight``.
        timed (bool, optional): Whether a tree has edges up to the time of its
            seed only. Where nodes have times, too, ``time`` must be the later
            one of the edge and its source.
        time_window (int, optional): See
            :func:`torch_gsample.ops.sample_neighbors`.
        temporal_strategy (str, optional): ``'uniform'`` or ``'last'``.
        replace (bool, optional): Whether an edge may be drawn repeatedly.
        disjoint (bool, optional): Whether each seed has a tree of its own;
            always so with ``timed``.
        largest_column (int, optional): Nodes with more edges are hubs: their
            edges are spread over tasks. Weights of a hub, 8 bytes an edge,
            meet in one.
        batches (range, optional): The batches to sample, one after the
            other; all if not given.

    Returns:
        SampledBatches: To be written with :meth:`SampledBatches.write`.

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
    check = _check.count
    check(_OP, 'batch_size', batch_size)
    check(_OP, 'largest_column', largest_column)
    _check.strategy(_OP, temporal_strategy)
    _check.time_window(_OP, time_window)
    if time_window is not None and not timed:
        raise ValueError(f"{_OP}: 'time_window' needs 'timed'")
    types, all_fanouts = _relations(edges, fanouts)
    disjoint = disjoint or timed
    stored = edges if isinstance(edges, ChunkedGraph) else None
    frames = _checked_edges(edges, weighted, timed)
    input_type, seeds = _checked_seeds(types, seeds, timed)
    key = (checked_seed(seed), epoch, rng.EPOCH_SCOPE)
    rng.make_key(*key)  # checks the epoch
    place = F.col('position')
    sizes = stored.num_nodes if stored is not None else {}
    num_seeds = _num_seeds(seeds, sizes.get(types.nodes[input_type]))
    seeds = seeds.withColumns(
        {'batch': F.floor(place / batch_size), 'tree': place % batch_size}
    )
    batches = _checked_batches(batches, -(-num_seeds // batch_size))
    seeds = seeds.where(F.col('batch').between(batches[0], batches[-1]))
    options = (replace, time_window, temporal_strategy)
    run = _Run(types, timed, disjoint, input_type)
    relations: list[Adjacency | StoredAdjacency] = []
    if stored is not None:
        numbers = range(len(types.edges))
        relations += [StoredAdjacency(stored, r, weighted) for r in numbers]
    for frame in frames:
        columns_of = Adjacency(frame, timed, weighted, largest_column)
        run.persisted += columns_of.persisted
        relations.append(columns_of)
    run.start(seeds)
    for hop in range(len(all_fanouts[0])):
        run.hop(
            hop,
            [
                (columns_of, Selection(key, hop, r, fanout[hop], *options))
                for r, (columns_of, fanout) in enumerate(
                    zip(relations, all_fanouts, strict=True)
                )
            ],
        )
    types = types.sampled(
        hops=len(all_fanouts[0]),
        disjoint=disjoint,
        timed=timed,
        input_type=input_type,
        num_seeds=num_seeds,
        batch_size=batch_size,
    )
    return SampledBatches(
        seeds, run.edges(), run.seen_nodes(), types, batches, run.persisted
    )


class _Run:
    """Frontiers and sampled edges, hop by hop.

    A frontier has ``batch``, ``tree``, ``node`` and, with times, ``time``.
    What is used twice is cached, so that no hop is computed again.
    """

    def __init__(
        self, types: BatchTypes, timed: bool, disjoint: bool, input_type: int
    ):
        self._types, self._timed = types, timed
        self._disjoint, self._input_type = disjoint, input_type
        self._time = ['time'] if timed else []
        self.persisted: list[DataFrame] = []
        self._sampled: list[DataFrame] = []

    def start(self, seeds: DataFrame) -> None:
        tree = F.col('tree') if self._disjoint else F.lit(0).cast('bigint')
        first = seeds.select(
            'batch', tree.alias('tree'), F.col('id').alias('node'), *self._time
        ).distinct()
        self._empty = first.where(F.lit(False))
        self._frontier: list[DataFrame | None] = [None] * self._types.num_nodes
        self._frontier[self._input_type] = self._persist(first)
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
        """Returns the nodes that no hop before has reached."""
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


def _relations(
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
) -> tuple[BatchTypes, list[list[int]]]:
    """Returns types, and the fan-outs of each relation."""
    known: list[EdgeType] | None
    if isinstance(edges, ChunkedGraph):
        names = [relation.edge_type for relation in edges.meta.relations]
        known = [t for t in names if t is not None] or None
    else:
        known = [*edges] if isinstance(edges, Mapping) else None
    if known is None:
        if isinstance(fanouts, Mapping):
            raise ValueError(
                f"{_OP}: 'fanouts' must be a list for a homogeneous graph "
                f'(got a dictionary)'
            )
        each = [_check.fanouts(_OP, 'fanouts', fanouts)]
        return BatchTypes.of(None), each
    if not known:
        raise ValueError(f"{_OP}: 'edges' must have an edge type (got none)")
    by_type = (
        fanouts
        if isinstance(fanouts, Mapping)
        else dict.fromkeys(known, fanouts)
    )
    if set(by_type) != set(known):
        raise ValueError(
            f"{_OP}: 'fanouts' must have the edge types {known} "
            f'(got {list(by_type)})'
        )
    each = [_check.fanouts(_OP, 'fanouts', by_type[t]) for t in known]
    if len({len(fanout) for fanout in each}) > 1:
        raise ValueError(
            f"{_OP}: 'fanouts' must have the same number of hops for each "
            f'edge type (got {each})'
        )
    return BatchTypes.of(known), each


def _checked_edges(
    edges: DataFrame | Mapping[EdgeType, DataFrame] | ChunkedGraph,
    weighted: bool,
    timed: bool,
) -> list[DataFrame]:
    """Returns the frame of each relation; none of a graph that is stored."""
    if isinstance(edges, ChunkedGraph):
        _check_stored(edges, weighted, timed)
        return []
    frames = edges.values() if isinstance(edges, Mapping) else [edges]
    return [checked_relation(_OP, frame, weighted, timed) for frame in frames]


def _check_stored(graph: ChunkedGraph, weighted: bool, timed: bool) -> None:
    """Checks that a stored graph has what is drawn by.

    The edges of a node are stored by time where there are times: positions,
    and so samples, are others than without.
    """
    for relation in graph.meta.relations:
        widths = relation.widths
        if weighted and not widths['weight']:
            raise ValueError(
                f"{_OP}: 'weighted' needs weights in {str(graph.path)!r}"
            )
        if timed != bool(widths['time']):
            raise ValueError(
                f"{_OP}: 'timed' must be {bool(widths['time'])} for "
                f'{str(graph.path)!r}, as it was prepared (got {timed})'
            )


def _checked_seeds(
    types: BatchTypes,
    seeds: DataFrame | tuple[str, DataFrame],
    timed: bool,
) -> tuple[int, DataFrame]:
    """Returns the type of the seeds, and their frame."""
    node_type = None
    if isinstance(seeds, tuple):
        node_type, seeds = seeds
    if node_type not in types.nodes:
        raise ValueError(
            f"{_OP}: the node type of 'seeds' must be one of {types.nodes} "
            f'(got {node_type!r})'
        )
    columns = ['position', 'id'] + ['time'] * timed
    frame = checked_frame(_OP, 'seeds', seeds, columns).select(*columns)
    return types.nodes.index(node_type), frame


def _checked_batches(batches: range | None, count: int) -> range:
    every = range(count)
    if batches is None:
        return every
    if not isinstance(batches, range):
        raise TypeError(
            f"{_OP}: 'batches' must be a range (got {type(batches).__name__})"
        )
    within = len(batches) > 0 and batches[0] >= 0 and batches[-1] < count
    if batches.step != 1 or not within:
        raise ValueError(
            f"{_OP}: 'batches' must be some of {every}, one after the other "
            f'(got {batches})'
        )
    return batches


def _num_seeds(seeds: DataFrame, num_nodes: int | None) -> int:
    """Counts seeds, whose positions must be the numbers below that."""
    place = F.col('position')
    count, distinct, least, greatest, largest = seeds.agg(
        F.count(F.lit(1)),
        F.countDistinct(place),
        F.min(place),
        F.max(place),
        F.max('id'),
    ).collect()[0]
    if count == 0:
        raise ValueError(f"{_OP}: 'seeds' must not be empty")
    if (distinct, least, greatest) != (count, 0, count - 1):
        raise ValueError(
            f"{_OP}: the column 'position' of 'seeds' must hold the numbers "
            f'from 0 to {count - 1}, each once (got {distinct} of them, from '
            f'{least} to {greatest})'
        )
    if num_nodes is not None and largest >= num_nodes:
        raise ValueError(
            f"{_OP}: the column 'id' of 'seeds' must hold nodes of the graph, "
            f'below {num_nodes} (got {largest})'
        )
    return count
