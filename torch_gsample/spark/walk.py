"""Random walks over a graph in DataFrames."""

from itertools import pairwise

from torch_gsample.graph_sampling import draws
from torch_gsample.graph_sampling.walkers import visited_vertices
from torch_gsample.ops._check import count
from torch_gsample.spark.frames import (
    OWN,
    DataFrame,
    F,
    checked_graph,
    draw,
    draw_edges,
    pa,
)
from torch_gsample.spark.jobs import described, log, operation
from torch_gsample.spark.operators import SampledGraph, induced
from torch_gsample.spark.ranking import huge_groups, running_sum

#: Out-edges of a vertex that one task orders.
_LARGEST = 1 << 20


@operation
def random_walk(
    vertices: DataFrame,
    edges: DataFrame,
    fraction: float,
    walkers: int = 1,
    jump_probability: float = 0.1,
    *,
    seed: int | None = None,
    keep_isolated: bool = False,
) -> SampledGraph:
    """Keeps the vertices that walkers visit, and the edges between them.

    See :func:`torch_gsample.graph_sampling.random_walk`. How long walkers
    walk depends on the graph: a job runs for each step, before this function
    returns. Only walkers and visited vertices are in the memory of the
    driver, about 200 bytes for each of them; many walkers need few steps.

    Args:
        vertices (DataFrame): See :func:`random_vertex`.
        edges (DataFrame): See :func:`random_vertex`.
        fraction (float): The share of vertices to visit, in [0, 1]; rounded
            up to a whole number of vertices.
        walkers (int, optional): How many walkers start, at random vertices.
        jump_probability (float, optional): In [0, 1].
        seed (int, optional): See :func:`random_vertex`.
        keep_isolated (bool, optional): See :func:`random_vertex`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a column is missing, an argument out of range, or a
            vertex that walkers jump to has the id of another.

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> vertices = spark.createDataFrame([(i,) for i in range(4)], ['id'])
        >>> edges = spark.createDataFrame(
        ...     [(0, 1), (1, 2), (2, 3), (3, 0)], ['src', 'dst']
        ... )
        >>> random_walk(vertices, edges, 0.75, seed=0).vertices.columns
        ['id']
    """
    op = 'random_walk'
    vertices, edges = checked_graph(op, vertices, edges)
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    walkers = count(op, 'walkers', walkers)
    jump_probability = draws.checked_fraction(
        op, 'jump_probability', jump_probability
    )
    graph = _SparkWalkGraph(vertices, edges, draws.checked_seed(seed))
    try:
        visited = visited_vertices(
            graph, fraction, walkers, jump_probability, graph.seed
        )
    finally:
        graph.close()
    ids = pa.table({'id': pa.array(visited, pa.int64())})
    kept = vertices.sparkSession.createDataFrame(ids)
    return induced(vertices, edges, kept, keep_isolated)


class _SparkWalkGraph:
    """A graph on a cluster, for walkers: it is kept there while they walk."""

    def __init__(self, vertices: DataFrame, edges: DataFrame, seed: int):
        self.seed = seed
        self._spark = vertices.sparkSession
        self._jumps = vertices.select(
            'id', draw('id', seed, draws.JUMP_ORDER).alias('draw')
        )
        self._steps = 0
        self._known: list[int] = []
        self._drawn: list[float] = []
        numbers = draw_edges(edges, seed, draws.EDGE_ORDER)
        drawn = edges.select('src', 'dst', numbers.alias('draw')).persist()
        huge = huge_groups(drawn, 'src', 'draw', _LARGEST).persist()
        with described(self._spark, 'find hubs'):
            has_hubs = huge.head() is not None
        self._edges = running_sum(
            drawn,
            'src',
            ['draw', 'dst'],
            F.lit(1),
            'rank',
            bin_by='draw',
            huge=huge if has_hubs else None,
            largest=_LARGEST,
        ).persist()
        self._persisted = [drawn, huge, self._edges]
        with described(self._spark, 'count vertices'):
            self.num_vertices = vertices.count()

    def close(self) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def follow(self, vertices: list[int], ranks: list[int]) -> list[int]:
        if not vertices:
            return []
        wanted = self._spark.createDataFrame(
            pa.table(
                {
                    'walker': pa.array(range(len(vertices)), pa.int64()),
                    OWN + 'src': pa.array(vertices, pa.int64()),
                    OWN + 'rank': pa.array(ranks, pa.int64()),
                }
            )
        )
        same = (F.col('src') == F.col(OWN + 'src')) & (
            F.col('rank') == F.col(OWN + 'rank')
        )
        found = self._edges.join(F.broadcast(wanted), same)
        reached = [-1] * len(vertices)
        self._steps += 1
        with described(self._spark, f'step {self._steps}'):
            rows = found.select('walker', 'dst').collect()
        for walker, vertex in rows:
            reached[walker] = vertex
        log.info(
            'random_walk: step %d, %d of %d walkers found an edge',
            self._steps,
            len(rows),
            len(vertices),
        )
        return reached

    def jump_targets(self, first: int, last: int) -> list[int]:
        """Fetches vertices by ascending draws, twice as many each time."""
        last = min(last, self.num_vertices)
        while len(self._known) < last:
            wanted = max(1000, 2 * last)
            bound = min(1.0, 1.1 * wanted / self.num_vertices)
            if self._drawn and bound <= self._drawn[-1]:
                bound = 1.0
            with described(self._spark, 'vertices to jump to'):
                rows = self._jumps.where(F.col('draw') < bound).collect()
            pairs = sorted((row.draw, row.id) for row in rows)
            self._drawn = [pair[0] for pair in pairs]
            self._known = [pair[1] for pair in pairs]
            self._check_jumps(bound)
        return self._known[first:last]

    def _check_jumps(self, bound: float) -> None:
        """What walks to each vertex once would never end otherwise."""
        for vertex, next_vertex in pairwise(self._known):
            if vertex == next_vertex:  # equal ids have equal draws
                raise ValueError(
                    f"random_walk: ids of 'vertices' must be unique (got "
                    f'{vertex} twice)'
                )
        if bound == 1 and len(self._known) != self.num_vertices:
            raise ValueError(
                f"random_walk: 'vertices' must be the same at each read (got "
                f'{self.num_vertices} rows, then {len(self._known)})'
            )
