"""The edges of one relation, grouped by destination for draws.

A node's edges are its *column*, as in a CSC matrix, in the order of the local
sampler: by time, if there is one, then by ``id``. Most columns are short and
become one row of arrays. Columns of hubs keep one row per edge, with its
position, so no task holds a whole hub. Only the weights (and times) of a hub
go to one task, which draws by them, packed in bins.
"""

from dataclasses import dataclass, field

from torch_gsample.spark.frames import OWN, Column, DataFrame, F
from torch_gsample.spark.ranking import huge_groups, running_sum
from torch_gsample.spark.selection import (
    Selection,
    select_in_columns,
    select_positions,
)
from torch_gsample.spark.weighted_hubs import pack_columns, select_by_weight

_MIN_TIME = -(2**63)


@dataclass
class Adjacency:
    """The columns of a relation.

    Args:
        edges (DataFrame): ``src``, ``dst``, ``id`` and, if present, ``time``
            and ``weight``.
        timed (bool): Whether there are times.
        weighted (bool): Whether there are weights.
        largest (int): Maximum length of a column in one row.
    """

    edges: DataFrame
    timed: bool
    weighted: bool
    largest: int
    persisted: list[DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._order = ['time', 'id'] if self.timed else ['id']
        self._kept = self._order + ['src'] + ['weight'] * self.weighted
        huge = self._persist(
            huge_groups(self.edges, 'dst', self._order[0], self.largest)
        )
        self.has_hubs, self._huge = huge.head() is not None, huge
        edges = self.edges
        if self.has_hubs:
            self._hubs = self._persist(self._ranked(edges))
            if self.weighted:
                packed = pack_columns(self._hubs, self.timed, self.largest)
                self._packed = self._persist(packed)
            edges = edges.join(F.broadcast(huge), 'dst', 'left_anti')
        rows = F.array_sort(F.collect_list(F.struct(*self._kept)))
        columns = edges.groupBy('dst').agg(rows.alias('rows'))
        self._columns = self._persist(
            columns.select(
                F.col('dst').alias('node'),
                *(F.col(f'rows.{name}').alias(name) for name in self._kept),
            )
        )

    def draw(self, frontier: DataFrame, selection: Selection) -> DataFrame:
        """Selects edges of the distinct nodes of a frontier.

        Args:
            frontier (DataFrame): ``batch``, ``tree``, ``node`` and, with
                times, ``time``.
            selection (Selection): The options of the selection.

        Returns:
            DataFrame: Those columns, ``slot``, and the edges ``src`` and
            ``id``.
        """
        own = ['node', 'time'] if self.timed else ['node']
        nodes = frontier.select(*own).distinct()
        return frontier.join(self._sample(nodes, selection), own)

    def _sample(self, nodes: DataFrame, selection: Selection) -> DataFrame:
        own = nodes.columns
        renamed = {name: OWN + name for name in self._kept}
        short = nodes.join(self._columns.withColumnsRenamed(renamed), 'node')
        out = select_in_columns(short, own, selection)
        if self.has_hubs:
            out = out.union(self._sample_hubs(nodes, selection))
        return out

    def _sample_hubs(
        self, nodes: DataFrame, selection: Selection
    ) -> DataFrame:
        huge = self._huge.select(
            F.col('dst').alias('node'), F.col(OWN + 'size').alias('last')
        )
        hubs = nodes.join(F.broadcast(huge), 'node').withColumn(
            'first', F.lit(0).cast('bigint')
        )
        if self.weighted:
            hubs = hubs.select(*nodes.columns)
            places = select_by_weight(hubs, self._packed, selection)
        else:
            if self.timed:
                hubs = self._in_time(hubs, selection)
            places = select_positions(hubs, nodes.columns, selection)
        edges = self._hubs.select(
            F.col('dst').alias('node'), 'position', 'src', 'id'
        )
        return places.join(edges, ['node', 'position']).select(
            *nodes.columns, 'slot', 'src', 'id'
        )

    def _ranked(self, edges: DataFrame) -> DataFrame:
        hubs = edges.join(F.broadcast(self._huge.select('dst')), 'dst')
        return running_sum(
            hubs,
            'dst',
            self._order,
            F.lit(1).cast('bigint'),
            'position',
            bin_by=self._order[0],
            huge=self._huge,
            largest=self.largest,
        )

    def _in_time(self, hubs: DataFrame, selection: Selection) -> DataFrame:
        """Restricts hubs to the positions visible at each time.

        Times are sorted together with the edges: the number of edges before a
        time is its position.
        """

        def marks(at: Column, side: int, edge: int) -> list[Column]:
            return [
                F.col('node'),
                F.col('time'),
                at.alias('at'),
                F.lit(side).alias('side'),
                F.lit(edge).cast('bigint').alias('edge'),
            ]

        time = F.col('time')
        edges = self._hubs.withColumnRenamed('dst', 'node')
        # The last time comes after the edges of that time, the first before.
        rows = edges.select(marks(time, 0, 1)).union(
            hubs.select(marks(time, 1, 0))
        )
        if selection.time_window is not None:
            window = selection.time_window
            start = F.greatest(time, F.lit(_MIN_TIME + window)) - window
            rows = rows.union(hubs.select(marks(start, -1, 0)))
        placed = running_sum(
            rows,
            'node',
            ['at', 'side'],
            F.col('edge'),
            'before',
            bin_by='at',
            huge=self._huge.withColumnRenamed('dst', 'node'),
            largest=self.largest,
        )
        before = {
            side: F.max(F.when(F.col('side') == side, F.col('before')))
            for side in (-1, 1)
        }
        return (
            placed.where('edge = 0')
            .groupBy('node', 'time')
            .agg(
                F.coalesce(before[-1], F.lit(0)).alias('first'),
                before[1].alias('last'),
            )
        )

    def _persist(self, frame: DataFrame) -> DataFrame:
        self.persisted.append(frame.persist())
        return frame
