"""Connected components by stars: edges shrink to one for each vertex."""

from torch_gsample.spark.frames import DataFrame, F
from torch_gsample.spark.jobs import context_of


def star_forest(links: DataFrame) -> DataFrame:
    """Returns ``node`` and ``root``: the least vertex of its component.

    Large and small stars take turns until nothing changes, in about the
    logarithm of the number of vertices of rounds ("Connected Components in
    MapReduce and Beyond", Kiveris et al., SoCC 2014). A vertex has an edge to
    its root, roots have none. Minima are computed per partition before the
    shuffle, so no task holds the edges of a hub.

    Each round truncates the lineage: in the session's checkpoint folder, if
    set, otherwise on executors.

    Args:
        links (DataFrame): Distinct pairs ``a`` < ``b``.
    """
    edges = links.select(F.col('b').alias('node'), F.col('a').alias('root'))
    before = None
    while True:
        edges = _cut(_small_star(_large_star(edges)))
        mark = edges.agg(
            F.count(F.lit(1)), F.bit_xor(F.xxhash64('node', 'root'))
        ).collect()[0]
        if mark == before:
            return edges
        before = mark


def _large_star(edges: DataFrame) -> DataFrame:
    """Joins the greater neighbours of a vertex to the least one, or to it."""
    back = edges.select(
        F.col('root').alias('node'), F.col('node').alias('root')
    )
    both = edges.union(back)
    least = both.groupBy('node').agg(F.min('root').alias('least'))
    least = least.withColumn('least', F.least('least', 'node'))
    greater = both.where(F.col('root') > F.col('node'))
    return greater.join(least, 'node').select(
        F.col('root').alias('node'), F.col('least').alias('root')
    )


def _small_star(edges: DataFrame) -> DataFrame:
    """Joins a vertex and its lesser neighbours to the least of them."""
    edges = edges.distinct()
    least = edges.groupBy('node').agg(F.min('root').alias('least'))
    lesser = edges.join(least, 'node').where(F.col('root') != F.col('least'))
    moved = lesser.select(
        F.col('root').alias('node'), F.col('least').alias('root')
    )
    kept = least.select('node', F.col('least').alias('root'))
    return moved.union(kept).distinct()


def _cut(frame: DataFrame) -> DataFrame:
    """Computes a frame and truncates its lineage."""
    context = context_of(frame.sparkSession)
    if context is not None and context.getCheckpointDir() is not None:
        return frame.checkpoint()
    return frame.localCheckpoint()
