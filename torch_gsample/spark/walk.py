"""Random walks over a graph in DataFrames."""

import contextlib
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_gsample.graph_sampling import draws
from torch_gsample.graph_sampling.walkers import WalkState, visited_vertices
from torch_gsample.ops._check import count
from torch_gsample.spark.frames import (
    OWN,
    DataFrame,
    F,
    checked_graph,
    digest,
    pa,
)
from torch_gsample.spark.jobs import described, log, operation
from torch_gsample.spark.jvm_draws import draw, draw_edges
from torch_gsample.spark.operators import SampledGraph, induced
from torch_gsample.spark.ranking import huge_groups, running_sum
from torch_gsample.spark.run_folder import (
    local_folder,
    read_record,
    run_folder,
    write_record,
)
from torch_gsample.storage import ChunkedGraph
from torch_gsample.storage.columns import concat_ranges
from torch_gsample.storage.random_reads import RandomReads

#: Maximum out-edges of a vertex sorted by one task.
_LARGEST = 1 << 20
#: Steps between two checkpoints of a walk.
_STEPS = 10
_CACHE_BYTES = 64 << 20
#: Edges compared with stored ones.
_COMPARED = 16


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
    out_edges: ChunkedGraph | None = None,
    checkpoint: str | Path | None = None,
) -> SampledGraph:
    """Keeps the vertices that walkers visit, and the edges between them.

    See :func:`torch_gsample.graph_sampling.random_walk`. The number of steps
    depends on the graph, so the function runs one job per step before it
    returns. The driver's memory holds only walkers and visited vertices, about
    200 bytes each. Many walkers need few steps.

    Args:
        vertices (DataFrame): See :func:`random_vertex`.
        edges (DataFrame): See :func:`random_vertex`.
        fraction (float): The share of vertices to visit, in [0, 1]; rounded
            up to a whole number of vertices.
        walkers (int, optional): Number of walkers, which start at random
            vertices.
        jump_probability (float, optional): In [0, 1].
        seed (int, optional): See :func:`random_vertex`.
        keep_isolated (bool, optional): See :func:`random_vertex`.
        out_edges (ChunkedGraph, optional): The edges by source: the result of
            :func:`prepare_adjacency` for edges with ``src`` and ``dst``
            exchanged. Then no edge is ranked: the driver reads the edges of
            the walkers' vertices.
        checkpoint (str or Path, optional): A folder in which the walk is saved
            after each tenth step. A call with the same arguments resumes. It
            must be on a file system with locks.

    Raises:
        RuntimeError: If another driver walks with the same ``checkpoint``.
        TypeError: If an argument has the wrong type.
        ValueError: If a column is missing, an argument out of range, a jump
            target shares its id with another vertex, or ``checkpoint`` has
            other arguments.

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
    seed = draws.checked_seed(op, seed)
    if checkpoint is not None:
        local_folder(op, 'checkpoint', checkpoint)
    graph: _Vertices
    if out_edges is None:
        graph = _SparkWalkGraph(vertices, edges, seed)
    else:
        graph = _StoredWalkGraph(vertices, _checked(edges, out_edges), seed)
        graph.check_edges(edges)
    arguments: dict[str, Any] = {
        'fraction': fraction,
        'walkers': walkers,
        'jump_probability': jump_probability,
        'seed': seed,
        'out_edges': out_edges and f'{out_edges.meta.generation:016x}',
    }
    try:
        with contextlib.ExitStack() as stack:
            saved = None
            if checkpoint is not None:
                with described(vertices.sparkSession, 'compare the graph'):
                    arguments['vertices'] = digest(vertices, ['id'])
                    if out_edges is None:
                        arguments['edges'] = digest(
                            edges, ['src', 'dst', 'id']
                        )
                folder = run_folder(op, checkpoint, arguments)
                saved = _SavedWalk(stack.enter_context(folder))
            visited = visited_vertices(
                graph, fraction, walkers, jump_probability, seed, saved
            )
    finally:
        graph.close()
    ids = pa.table({'id': pa.array(visited, pa.int64())})
    kept = vertices.sparkSession.createDataFrame(ids)
    return induced(vertices, edges, kept, keep_isolated)


class _SavedWalk:
    """Saves a walk in a folder, after some steps."""

    def __init__(self, folder: Path):
        self._path = folder / 'walk.json'

    def load(self) -> WalkState | None:
        """See :class:`Checkpoint`."""
        if not self._path.exists():
            return None
        found = read_record('random_walk', self._path)
        found['visited'] = dict.fromkeys(found['visited'])
        found['departures'] = dict(found['departures'])
        return WalkState(**{f.name: found[f.name] for f in fields(WalkState)})

    def save(self, state: WalkState) -> None:
        """See :class:`Checkpoint`."""
        if state.step % _STEPS:
            return
        out = {f.name: getattr(state, f.name) for f in fields(state)}
        out['visited'] = list(state.visited)
        out['departures'] = list(state.departures.items())
        write_record(self._path, out)


def _checked(edges: DataFrame, out_edges: ChunkedGraph) -> ChunkedGraph:
    """Checks a graph of one relation with edge ids for draws."""
    if len(out_edges.meta.relations) != 1 or 'id' not in edges.columns:
        raise ValueError(
            "random_walk: 'out_edges' needs a column 'id' of 'edges' and one "
            f'relation (got {edges.columns} and '
            f'{len(out_edges.meta.relations)})'
        )
    return out_edges


class _Vertices:
    """The vertices of a graph, to which walkers jump."""

    def __init__(self, vertices: DataFrame, seed: int):
        self.seed = seed
        self._spark = vertices.sparkSession
        numbers = draw(vertices, 'id', seed, draws.JUMP_ORDER)
        self._jumps = vertices.select('id', numbers.alias('draw'))
        self._persisted: list[DataFrame] = []
        with described(self._spark, 'count vertices'):
            self.num_vertices = vertices.count()
        self._known: list[int] = []
        self._drawn: list[float] = []

    def close(self) -> None:
        for frame in self._persisted:
            frame.unpersist()

    def follow(self, vertices: list[int], ranks: list[int]) -> list[int]:
        """See :class:`WalkGraph`."""
        raise NotImplementedError

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
        """Rejects duplicate ids, with which a walk would never end."""
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


class _SparkWalkGraph(_Vertices):
    """A graph cached on a cluster during a walk."""

    def __init__(self, vertices: DataFrame, edges: DataFrame, seed: int):
        super().__init__(vertices, seed)
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
        self._steps = 0

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


class _StoredWalkGraph(_Vertices):
    """A graph on disk by source; reads the edges of walkers' vertices."""

    def __init__(self, vertices: DataFrame, graph: ChunkedGraph, seed: int):
        super().__init__(vertices, seed)
        self._reader = RandomReads(graph, _CACHE_BYTES).readers()[0]
        self._size = graph.meta.relations[0].num_cols

    def check_edges(self, edges: DataFrame) -> None:
        """Checks that some edges of a frame are stored, by source.

        Raises:
            ValueError: If one is not.
        """
        with described(self._spark, 'compare edges'):
            rows = edges.select('src', 'dst', 'id').head(_COMPARED)
        for src, dst, id in rows:
            node = torch.tensor([src] * (src < self._size), dtype=torch.int64)
            start, length = self._reader.bounds(node)
            if int(length.sum()) > _LARGEST:
                continue
            targets, ids = self._reader.edges(concat_ranges(start, length))
            if not bool(((targets == dst) & (ids == id)).any()):
                raise ValueError(
                    "random_walk: 'out_edges' must hold 'edges' by source, "
                    "prepared with 'src' and 'dst' exchanged (got none with "
                    f'id {id} from {src} to {dst})'
                )

    def follow(self, vertices: list[int], ranks: list[int]) -> list[int]:
        node, place = np.unique(vertices, return_inverse=True)
        known = torch.from_numpy(node[node < self._size].astype(np.int64))
        start, length = self._reader.bounds(known)
        position = concat_ranges(start, length)
        target, id = self._reader.edges(position)
        drawn = draws.uniform(id.long(), self.seed, draws.EDGE_ORDER)
        column = torch.repeat_interleave(length)
        order = np.lexsort([target.numpy(), drawn.numpy(), column.numpy()])
        # A missing vertex has no edges.
        degree = np.zeros(len(node), np.int64)
        degree[: len(length)] = length.numpy()
        first = np.cumsum(degree) - degree
        rank = np.array(ranks, np.int64)
        found = rank < degree[place]
        out = np.full(len(rank), -1)
        at = order[(first[place] + rank)[found]]
        out[found] = target.numpy()[at]
        return out.tolist()
