"""Random vertices, edges and neighbourhoods of a graph in DataFrames.

Vertices have a column ``id`` and edges ``src`` and ``dst``; other columns are
copied. If edges have an ``id``, it determines their draws. Results are lazy,
and equal those of :mod:`torch_gsample.graph_sampling` for the same seed and
any partitions.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import NamedTuple

from torch_gsample.graph_sampling import draws
from torch_gsample.spark.frames import (
    Column,
    DataFrame,
    checked_graph,
    ends_of,
    members,
)
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.jvm_draws import draw, draw_edges


class SampledGraph(NamedTuple):
    """The selected vertices and edges, with all their columns."""

    vertices: DataFrame
    edges: DataFrame


@operation
def random_vertex(
    vertices: DataFrame,
    edges: DataFrame,
    fraction: float,
    *,
    seed: int | None = None,
    keep_isolated: bool = False,
) -> SampledGraph:
    """Keeps each vertex with a probability, and the edges between them.

    See :func:`torch_gsample.graph_sampling.random_vertex`. The ends of an edge
    determine whether it is kept, so only the removal of isolated vertices
    shuffles data.

    Args:
        vertices (DataFrame): With a column ``id``.
        edges (DataFrame): With columns ``src`` and ``dst``.
        fraction (float): The probability, in [0, 1].
        seed (int, optional): Seed of all draws; default: drawn from torch's
            default generator.
        keep_isolated (bool, optional): Whether to keep vertices without a
            remaining edge.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a column is missing, or ``fraction`` outside [0, 1].

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> vertices = spark.createDataFrame([(i,) for i in range(4)], ['id'])
        >>> edges = spark.createDataFrame(
        ...     [(0, 1), (1, 2), (2, 3), (3, 0)], ['src', 'dst']
        ... )
        >>> sample = random_vertex(vertices, edges, 0.6, seed=4)
        >>> sorted(row.id for row in sample.vertices.collect())
        [1, 2, 3]
    """
    op = 'random_vertex'
    vertices, edges = checked_graph(op, vertices, edges)
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    seed = draws.checked_seed(op, seed)

    edges = _drawn(edges, ['src', 'dst'], seed, fraction)
    vertices = _drawn(vertices, ['id'], seed, fraction)
    return _without_isolated(vertices, edges, keep_isolated)


@operation
def random_edge(
    vertices: DataFrame,
    edges: DataFrame,
    fraction: float,
    *,
    seed: int | None = None,
) -> SampledGraph:
    """Keeps each edge with a probability, and its two ends.

    See :func:`torch_gsample.graph_sampling.random_edge`.

    Args:
        vertices (DataFrame): See :func:`random_vertex`.
        edges (DataFrame): See :func:`random_vertex`. Without an ``id``,
            parallel edges are kept or dropped together.
        fraction (float): The probability, in [0, 1].
        seed (int, optional): See :func:`random_vertex`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a column is missing, or ``fraction`` outside [0, 1].

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> vertices = spark.createDataFrame([(i,) for i in range(4)], ['id'])
        >>> edges = spark.createDataFrame(
        ...     [(0, 1), (1, 2), (2, 3), (3, 0)], ['src', 'dst']
        ... )
        >>> random_edge(vertices, edges, 0.5, seed=5).edges.columns
        ['src', 'dst']
    """
    op = 'random_edge'
    vertices, edges = checked_graph(op, vertices, edges)
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    seed = draws.checked_seed(op, seed)
    edges = edges.where(draw_edges(edges, seed, draws.KEEP) < fraction)
    return _without_isolated(vertices, edges, keep_isolated=False)


@operation
def random_vertex_neighborhood(
    vertices: DataFrame,
    edges: DataFrame,
    fraction: float,
    direction: str = 'both',
    *,
    seed: int | None = None,
    keep_edges: str = 'incident',
    keep_isolated: bool = False,
) -> SampledGraph:
    """Keeps random vertices, their neighbours, and the edges between them.

    See :func:`torch_gsample.graph_sampling.random_vertex_neighborhood`. The
    ends of an edge determine whether it touches a drawn vertex, so only
    vertices are shuffled. ``keep_edges='induced'`` joins the edges with the
    kept vertices, twice.

    Args:
        vertices (DataFrame): See :func:`random_vertex`.
        edges (DataFrame): See :func:`random_vertex`.
        fraction (float): The probability that a vertex is drawn, in [0, 1].
        direction (str, optional): ``'out'``, ``'in'`` or ``'both'``.
        seed (int, optional): See :func:`random_vertex`.
        keep_edges (str, optional): ``'incident'`` or ``'induced'``.
        keep_isolated (bool, optional): See :func:`random_vertex`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If a column is missing, ``fraction`` is outside [0, 1], or
            ``direction`` or ``keep_edges`` is unknown.

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> vertices = spark.createDataFrame([(i,) for i in range(4)], ['id'])
        >>> edges = spark.createDataFrame(
        ...     [(0, 1), (1, 2), (2, 3), (3, 0)], ['src', 'dst']
        ... )
        >>> sample = random_vertex_neighborhood(
        ...     vertices, edges, 0.3, 'out', seed=3
        ... )
        >>> sample.vertices.columns
        ['id']
    """
    op = 'random_vertex_neighborhood'
    vertices, edges = checked_graph(op, vertices, edges)
    direction = draws.checked_direction(op, direction)
    keep_edges = draws.checked_keep_edges(op, keep_edges)
    fraction = draws.checked_fraction(op, 'fraction', fraction)
    seed = draws.checked_seed(op, seed)
    near = {'out': ['src'], 'in': ['dst']}.get(direction, ['src', 'dst'])
    touched = _drawn(edges, near, seed, fraction, or_)
    kept = ends_of(touched)
    if keep_edges == 'induced' or keep_isolated:
        drawn = _drawn(vertices, ['id'], seed, fraction)
        kept = kept.union(drawn.select('id'))
    if keep_edges == 'induced':
        return induced(vertices, edges, kept, keep_isolated)
    return SampledGraph(members(vertices, 'id', kept), touched)


def induced(
    vertices: DataFrame,
    edges: DataFrame,
    kept: DataFrame,
    keep_isolated: bool,
) -> SampledGraph:
    """Keeps the vertices of a column ``id``, and the edges between them."""
    edges = members(members(edges, 'src', kept), 'dst', kept)
    return _without_isolated(
        members(vertices, 'id', kept), edges, keep_isolated
    )


def _drawn(
    frame: DataFrame,
    ids: Sequence[str],
    seed: int,
    fraction: float,
    combine: Callable[[Column, Column], Column] = and_,
) -> DataFrame:
    """The rows whose ids, or one of them, are drawn."""
    numbers = [draw(frame, id, seed, draws.KEEP) for id in ids]
    return frame.where(reduce(combine, [n < fraction for n in numbers]))


def _without_isolated(
    vertices: DataFrame, edges: DataFrame, keep_isolated: bool
) -> SampledGraph:
    if not keep_isolated:
        vertices = members(vertices, 'id', ends_of(edges))
    return SampledGraph(vertices, edges)
