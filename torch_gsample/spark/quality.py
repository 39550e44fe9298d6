"""Compares a sample in DataFrames with the whole graph."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from torch_gsample.graph_sampling import draws
from torch_gsample.graph_sampling.quality import (
    DegreeCounts,
    GraphProperties,
    SampleQuality,
)
from torch_gsample.ops._check import count
from torch_gsample.spark.components import star_forest
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    checked_graph,
    pa,
)
from torch_gsample.spark.jobs import described, operation
from torch_gsample.spark.jvm_draws import draw
from torch_gsample.spark.ranking import huge_groups, running_sum

#: Maximum neighbours of a vertex sorted by one task.
_LARGEST = 1 << 20


@operation
def sample_quality(
    original: tuple[DataFrame, DataFrame],
    sampled: tuple[DataFrame, DataFrame],
    *,
    wedges: int = 20_000,
    seed: int | None = None,
) -> SampleQuality:
    """Compares degrees, clustering, reciprocity and components of two graphs.

    The table is that of :func:`torch_gsample.graph_sampling.sample_quality`;
    :func:`torch_gsample.viz.plot_quality` draws it.

    Args:
        original (Tuple[DataFrame, DataFrame]): Vertices and edges.
        sampled (SampledGraph): The sample.
        wedges (int, optional): See :func:`graph_properties`.
        seed (int, optional): See :func:`graph_properties`.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, or ``wedges`` is not positive.
    """
    op = 'sample_quality'
    pairs = []
    for name, graph in (('original', original), ('sampled', sampled)):
        if len(graph) != 2:
            raise TypeError(
                f"{op}: '{name}' must be a pair of vertices and edges (got "
                f'{len(graph)} items)'
            )
        names = f'{name}[0]', f'{name}[1]'
        pairs.append(checked_graph(op, *graph, names=names))
    seed = draws.checked_seed(op, seed)
    count(op, 'wedges', wedges)
    return SampleQuality(
        *(graph_properties(*p, wedges=wedges, seed=seed) for p in pairs)
    )


@operation
def graph_properties(
    vertices: DataFrame,
    edges: DataFrame,
    *,
    wedges: int = 20_000,
    seed: int | None = None,
) -> GraphProperties:
    r"""Measures a graph: counts, degrees, clustering and components.

    All results are exact except both clusterings, which are the shares of
    sampled wedges (two links at a vertex) closed by a third link ("Wedge
    Sampling for Computing Clustering Coefficients and Triangle Counts on Large
    Graphs", Seshadhri et al., 2014). By Hoeffding's inequality, with :math:`k`
    wedges the error exceeds :math:`\sqrt{\ln(2 / \delta) / 2 k}` with a
    probability of :math:`\delta`: 0.012 in one case of a hundred for 20,000.
    Jobs run during the call; the driver holds the sampled wedges and one row
    per distinct degree.

    Args:
        vertices (DataFrame): With a column ``id``, including all ends of
            edges.
        edges (DataFrame): With columns ``src`` and ``dst``.
        wedges (int, optional): Approximate number of wedges for each
            clustering.
        seed (int, optional): Seed of wedges; default: drawn from torch's
            default generator.

    Raises:
        TypeError: If an argument or a column has the wrong type.
        ValueError: If a column is missing, or ``wedges`` is not positive.
    """
    op = 'graph_properties'
    vertices, edges = checked_graph(op, vertices, edges)
    count(op, 'wedges', wedges)
    seed = draws.checked_seed(op, seed)
    session = vertices.sparkSession
    with described(session, 'count vertices'):
        size = vertices.count()
    with described(session, 'degrees'):
        num_edges, in_degrees, out_degrees, greatest = _degrees(edges, size)
    with _persisted(_links(edges)) as links:
        with described(session, 'reciprocity'):
            num_links, both = links.agg(
                F.count(F.lit(1)),
                F.sum((F.col('up') & F.col('down')).cast('bigint')),
            ).collect()[0]
        with described(session, 'clustering'):
            average, transitivity = _clustering(links, size, wedges, seed)
        with described(session, 'components'):
            joined, largest = _components(links)
    return GraphProperties(
        num_vertices=size,
        num_edges=num_edges,
        in_degrees=in_degrees,
        out_degrees=out_degrees,
        max_degree=greatest,
        reciprocity=2 * (both or 0) / max(num_links + (both or 0), 1),
        average_clustering=average,
        transitivity=transitivity,
        num_components=size - joined,
        largest_component=(largest + 1) / size if size else 0.0,
    )


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    yield frame.persist()
    frame.unpersist()


def _degrees(
    edges: DataFrame, size: int
) -> tuple[int, DegreeCounts, DegreeCounts, int]:
    """Returns the number of edges, both distributions, the most edges."""
    ends = F.array(
        F.struct(F.col('src').alias('id'), F.lit(1).alias('out')),
        F.struct(F.col('dst').alias('id'), F.lit(0).alias('out')),
    )
    both = edges.select(F.inline(ends)).groupBy('id')
    degrees = both.agg(
        F.sum('out').alias('out'), F.sum(1 - F.col('out')).alias('in')
    )
    with _persisted(degrees):
        total = degrees.agg(
            F.sum('out'), F.max(F.col('out') + F.col('in'))
        ).collect()[0]
        found = [
            _counts(degrees.groupBy(name).count().toArrow(), size)
            for name in ('in', 'out')
        ]
    return total[0] or 0, found[0], found[1], total[1] or 0


def _counts(table: pa.Table, size: int) -> DegreeCounts:
    """Counts of degrees; vertices without an edge are in no row."""
    degree, number = (torch.tensor(c.to_numpy()).long() for c in table.columns)
    degree, order = degree.sort()
    number = number[order]
    if (alone := size - int(number.sum())) > 0:
        if not degree.numel() or degree[0] > 0:
            degree = torch.nn.functional.pad(degree, (1, 0))
            number = torch.nn.functional.pad(number, (1, 0))
        number[0] += alone
    return DegreeCounts(degree, number)


def _links(edges: DataFrame) -> DataFrame:
    """Pairs ``a`` < ``b`` with an edge, and in which directions."""
    up = F.col('src') < F.col('dst')
    ends = edges.where('src != dst').groupBy(
        F.least('src', 'dst').alias('a'), F.greatest('src', 'dst').alias('b')
    )
    return ends.agg(F.max(up).alias('up'), F.max(~up).alias('down'))


def _components(links: DataFrame) -> tuple[int, int]:
    """Returns the number of non-roots, and the largest component."""
    sizes = star_forest(links).groupBy('root').count()
    joined, largest = sizes.agg(F.sum('count'), F.max('count')).collect()[0]
    return joined or 0, largest or 0


def _clustering(
    links: DataFrame, size: int, wedges: int, seed: int
) -> tuple[float, float]:
    """Average local clustering, and the transitivity, by wedges."""
    back = links.select(F.col('b').alias('node'), F.col('a').alias('other'))
    both = links.select(F.col('a').alias('node'), F.col('b').alias('other'))
    both = both.union(back)
    degrees = both.groupBy('node').agg(F.count(F.lit(1)).alias('degree'))
    with _persisted(degrees.where('degree > 1')) as centers:
        pairs = F.col('degree').cast('double') * (F.col('degree') - 1)
        number, total = centers.agg(F.count(F.lit(1)), F.sum(pairs)).collect()[
            0
        ]
        if not number:
            return 0.0, 0.0
        each = draw(centers, 'node', seed, draws.VERTEX_WEDGES)
        each = (each < wedges / number).cast('bigint')
        # A vertex gets its share of all wedges, randomly rounded.
        share = pairs * (wedges / total)
        share += draw(centers, 'node', seed, draws.ALL_WEDGES)
        chosen = centers.select(
            'node',
            'degree',
            (each * max(wedges // number, 1)).alias('average'),
            F.floor(share).alias('all'),
        )
        table = chosen.where('average + all > 0').toArrow()
    node, degree, average, all_ = (
        torch.tensor(column.to_numpy()).long() for column in table.columns
    )
    ends = _wedges(node, degree, torch.stack([average, all_]), seed)
    closed = _closed(links, both, *ends)
    first = int(average.sum())
    shares = [
        float(part.double().mean()) if part.numel() else 0.0
        for part in (closed[:first], closed[first:])
    ]
    return shares[0] * number / size, shares[1]


def _wedges(
    node: Tensor, degree: Tensor, counts: Tensor, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the center of each wedge, and the ranks of its two ends.

    Args:
        node (torch.Tensor): Centers, int64 ``[num_centers]``.
        degree (torch.Tensor): How many neighbours they have.
        counts (torch.Tensor): int64 ``[2, num_centers]``: wedges of each for
            both clusterings.
        seed (int): The seed.
    """
    center = torch.repeat_interleave(counts.view(-1))
    first = counts.view(-1).cumsum(0) - counts.view(-1)
    index = torch.arange(center.numel()) - first[center]
    kind, center = center // node.numel(), center % node.numel()
    ids = draws.edge_ids(node[center], 2 * index + kind)
    size = degree[center]
    rank = (draws.uniform(ids, seed, draws.FIRST_NEIGHBOR) * size).long()
    other = draws.uniform(ids, seed, draws.SECOND_NEIGHBOR) * (size - 1)
    other = other.long()
    return node[center], rank, other + (other >= rank)


def _closed(
    links: DataFrame,
    both: DataFrame,
    center: Tensor,
    first: Tensor,
    second: Tensor,
) -> Tensor:
    """Returns which wedges a link closes."""
    session = links.sparkSession
    nodes = pa.table({'node': center.unique().numpy()})
    near = both.join(F.broadcast(session.createDataFrame(nodes)), 'node')
    huge = huge_groups(near, 'node', 'other', _LARGEST)
    ranked = running_sum(
        near,
        'node',
        ['other'],
        F.lit(1),
        'rank',
        bin_by='other',
        huge=huge if huge.head() is not None else None,
        largest=_LARGEST,
    )
    wedge = torch.arange(center.numel())
    columns = {'wedge': wedge, 'node': center, 'rank': first}
    rows = [
        pa.table({k: v.numpy() for k, v in (columns | {'rank': r}).items()})
        for r in (first, second)
    ]
    wanted = session.createDataFrame(pa.concat_tables(rows))
    ends = ranked.join(F.broadcast(wanted), ['node', 'rank']).groupBy('wedge')
    pairs = ends.agg(F.min('other').alias('a'), F.max('other').alias('b'))
    closed = links.join(F.broadcast(pairs), ['a', 'b']).select('wedge')
    out = torch.zeros(center.numel(), dtype=torch.bool)
    out[torch.tensor(closed.toArrow()['wedge'].to_numpy()).long()] = True
    return out
