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
from torch_gsample.spark.frames import DataFrame, F, checked_frame
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.selection import Selection

_OP = 'neighbor_sample'
_WEIGHTS = ('tinyint', 'smallint', 'int', 'bigint', 'float', 'double')
#: Edges of a node that one row of the prepared graph holds.
_LARGEST_COLUMN = 1 << 14


@operation
def neighbor_sample(
    edges: DataFrame | Mapping[EdgeType, DataFrame],
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
) -> SampledBatches:
    r"""Samples in-neighbours of the seeds of all batches, hop by hop.

    Every batch is the one of :class:`torch_gsample.NeighborSampler` for the
    same ``seed``, with ``rng_scope='epoch'``: a node draws the same neighbours
    in all batches of an epoch, and so is sampled once for all of them. A
    frontier is joined to its nodes' edges, and what was drawn to the batches.
    Some jobs run before this returns: they say which nodes are hubs.

    Args:
        edges (DataFrame or Dict): Columns ``src``, ``dst`` and ``id``, the
            number of the edge in the local graph's ``edge_index``; with
            ``weighted`` also ``weight``, with ``timed`` also ``time``. A frame
            for each edge type, in their order, in a heterogeneous graph.
        seeds (DataFrame or Tuple): Columns ``position``, the place of a seed
            among all seeds, ``id``, its node, and with ``timed`` also
            ``time``. A pair of the node type and this in a heterogeneous
            graph.
        fanouts (List[int] or Dict): Neighbours to sample at each hop; -1 takes
            all.
        batch_size (int): Batch ``i`` has the seeds with positions from
            ``i * batch_size`` on.
        seed (int, optional): Seed of all draws; drawn from torch's default
            generator if not given.
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
    types, relations, all_fanouts = _relations(edges, fanouts)
    disjoint = disjoint or timed
    columns = _relation_columns(weighted, timed)
    frames = [_checked_relation(frame, columns) for frame in relations]
    input_type, seeds = _checked_seeds(types, seeds, timed)
    key = (checked_seed(seed), epoch, rng.EPOCH_SCOPE)
    rng.make_key(*key)  # checks the epoch
    place = F.col('position')
    num_seeds = _num_seeds(seeds)
    seeds = seeds.withColumns(
        {'batch': F.floor(place / batch_size), 'tree': place % batch_size}
    )
    options = (replace, time_window, temporal_strategy)
    run = _Run(types, timed, disjoint, input_type)
    adjacency = []
    for frame in frames:
        columns_of = Adjacency(frame, timed, weighted, largest_column)
        run.persisted += columns_of.persisted
        adjacency.append(columns_of)
    run.start(seeds)
    for hop in range(len(all_fanouts[0])):
        run.hop(
            hop,
            [
                (columns_of, Selection(key, hop, r, fanout[hop], *options))
                for r, (columns_of, fanout) in enumerate(
                    zip(adjacency, all_fanouts, strict=True)
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
        seeds, run.edges(), run.seen_nodes(), types, run.persisted
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
        self, hop: int, relations: list[tuple[Adjacency, Selection]]
    ) -> None:
        reached: list[list[DataFrame]] = [[] for _ in self._frontier]
        own = ['node', *self._time]
        for r, (adjacency, selection) in enumerate(relations):
            source, target = self._types.ends[r]
            frontier = self._frontier[target]
            if frontier is None or selection.fanout == 0:
                continue
            nodes = frontier.select(*own).distinct()
            drawn = adjacency.sample(nodes, selection)
            edges = self._persist(
                frontier.join(drawn, own).withColumns(
                    {'hop': F.lit(hop), 'relation': F.lit(r)}
                )
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
        if not parts:
            return None
        fresh = functools.reduce(DataFrame.union, parts).distinct()
        if self._seen[t]:
            seen = functools.reduce(DataFrame.union, self._seen[t])
            fresh = fresh.join(seen, ['batch', 'tree', 'node'], 'left_anti')
        self._seen[t].append(self._persist(fresh))
        return fresh

    def _persist(self, frame: DataFrame) -> DataFrame:
        self.persisted.append(frame.persist())
        return frame


def _relations(
    edges: DataFrame | Mapping[EdgeType, DataFrame],
    fanouts: Sequence[int] | Mapping[EdgeType, Sequence[int]],
) -> tuple[BatchTypes, list[DataFrame], list[list[int]]]:
    """Returns types, and the frame and the fan-outs of each relation."""
    if not isinstance(edges, Mapping):
        if isinstance(fanouts, Mapping):
            raise ValueError(
                f"{_OP}: 'fanouts' must be a list for a homogeneous graph "
                f'(got a dictionary)'
            )
        each = [_check.fanouts(_OP, 'fanouts', fanouts)]
        return BatchTypes.of(None), [edges], each
    if not edges:
        raise ValueError(f"{_OP}: 'edges' must have an edge type (got none)")
    by_type = (
        fanouts
        if isinstance(fanouts, Mapping)
        else dict.fromkeys(edges, fanouts)
    )
    if set(by_type) != set(edges):
        raise ValueError(
            f"{_OP}: 'fanouts' must have the edge types {list(edges)} "
            f'(got {list(by_type)})'
        )
    each = [_check.fanouts(_OP, 'fanouts', by_type[t]) for t in edges]
    if len({len(fanout) for fanout in each}) > 1:
        raise ValueError(
            f"{_OP}: 'fanouts' must have the same number of hops for each "
            f'edge type (got {each})'
        )
    return BatchTypes.of(list(edges)), list(edges.values()), each


def _relation_columns(weighted: bool, timed: bool) -> list[str]:
    return ['src', 'dst', 'id'] + ['time'] * timed + ['weight'] * weighted


def _checked_relation(frame: DataFrame, columns: list[str]) -> DataFrame:
    numbers = [name for name in columns if name != 'weight']
    frame = checked_frame(_OP, 'edges', frame, numbers)
    if 'weight' in columns:
        if 'weight' not in frame.columns:
            raise ValueError(
                f"{_OP}: 'edges' must have a column 'weight' (it has "
                f'{frame.columns})'
            )
        kind = dict(frame.dtypes)['weight']
        if kind not in _WEIGHTS and not kind.startswith('decimal'):
            raise TypeError(
                f"{_OP}: column 'weight' of 'edges' must hold numbers (got "
                f'{kind})'
            )
        # As the local sampler: 32-bit numbers are the same in 64 bits.
        frame = frame.withColumn('weight', F.col('weight').cast('double'))
    return frame.select(*columns)


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


def _num_seeds(seeds: DataFrame) -> int:
    """Counts seeds, whose positions must be the numbers below that."""
    place = F.col('position')
    count, distinct, least, greatest = seeds.agg(
        F.count(F.lit(1)), F.countDistinct(place), F.min(place), F.max(place)
    ).collect()[0]
    if count == 0:
        raise ValueError(f"{_OP}: 'seeds' must not be empty")
    if (distinct, least, greatest) != (count, 0, count - 1):
        raise ValueError(
            f"{_OP}: the column 'position' of 'seeds' must hold the numbers "
            f'from 0 to {count - 1}, each once (got {distinct} of them, from '
            f'{least} to {greatest})'
        )
    return count
