"""Reads graphs in the layouts of GraphFrames and LDBC's benchmarks."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from torch_gsample.spark.frames import OWN, DataFrame, F, check_columns
from torch_gsample.spark.ids import VertexIds, assign_ids, check_kind
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.keys import check_frame
from torch_gsample.spark.sample_arguments import check_edge_types

EdgeType = tuple[str, str, str]


class EncodedGraph(NamedTuple):
    """A graph with int64 ids, and the map to its keys."""

    vertices: DataFrame
    edges: DataFrame
    ids: VertexIds


@operation
def encode_graph(graph: Any, kind: str = 'dense') -> EncodedGraph:
    """Assigns int64 ids to a graph in the layout of GraphFrames.

    Its vertices have a column ``id``, its edges ``src`` and ``dst``, with keys
    of any type; other columns do not change. To convert sampled frames back,
    use ``ids.decode(vertices, {'id': 'id'})`` and
    ``ids.decode(edges, {'src': 'src', 'dst': 'dst'})``, and pass them to
    ``GraphFrame(...)``.

    Args:
        graph (GraphFrame or Tuple[DataFrame, DataFrame]): A graph with
            ``vertices`` and ``edges``, or a pair of frames.
        kind (str, optional): See :func:`assign_ids`.

    Raises:
        TypeError: If ``graph`` is of another type, or keys are of a type that
            :func:`assign_ids` does not support.
        ValueError: If a column is missing, or ``kind`` is unknown.

    Example:
        >>> from torch_gsample.spark import local_session
        >>> spark = local_session()
        >>> vertices = spark.createDataFrame([('ann',), ('bob',)], ['id'])
        >>> edges = spark.createDataFrame([('ann', 'bob')], ['src', 'dst'])
        >>> graph = encode_graph((vertices, edges))
        >>> graph.edges.dtypes
        [('src', 'bigint'), ('dst', 'bigint')]
    """
    op = 'encode_graph'
    if isinstance(graph, tuple) and len(graph) == 2:
        vertices, edges = graph
    elif hasattr(graph, 'vertices') and hasattr(graph, 'edges'):
        vertices, edges = graph.vertices, graph.edges
    else:
        raise TypeError(
            f"{op}: 'graph' must have vertices and edges (got "
            f'{type(graph).__name__})'
        )
    check_frame(op, 'vertices', vertices)
    check_frame(op, 'edges', edges)
    check_columns(op, 'vertices', vertices, ['id'])
    check_columns(op, 'edges', edges, ['src', 'dst'])
    check_kind(op, kind)
    ids = assign_ids(vertices, 'id', kind)
    return EncodedGraph(
        ids.encode(vertices, {'id': 'id'}),
        ids.encode(edges, {'src': 'src', 'dst': 'dst'}),
        ids,
    )


@operation
def read_graphalytics(
    session: SparkSession,
    path: str,
    *,
    weighted: bool = False,
    directed: bool = True,
) -> tuple[DataFrame, DataFrame]:
    """Reads a graph of `LDBC Graphalytics
    <https://ldbcouncil.org/benchmarks/graphalytics/>`_.

    A line of ``path.v`` has the id of a vertex, a line of ``path.e`` the
    source and destination of an edge, and its weight. The job fails on any
    other line and names it.

    Args:
        session (SparkSession): The Spark session.
        path (str): The two files without ``.v`` and ``.e``.
        weighted (bool, optional): Whether edges have weights.
        directed (bool, optional): If false, each edge is added in both
            directions.

    Returns:
        Tuple[DataFrame, DataFrame]: Vertices (``id``) and edges (``src``,
        ``dst``, and ``weight`` if weighted).

    Raises:
        FileNotFoundError: If a file is missing.
        TypeError: If an argument has the wrong type.
    """
    op = 'read_graphalytics'
    fields = 'src BIGINT, dst BIGINT' + ', weight DOUBLE' * weighted
    options = {'sep': ' ', 'mode': 'FAILFAST'}
    vertices = _read(op, session, f'{path}.v', schema='id BIGINT', **options)
    edges = _read(op, session, f'{path}.e', schema=fields, **options)
    if not directed:
        rest = ['weight'] * weighted
        back = edges.select(
            F.col('dst').alias('src'), F.col('src').alias('dst'), *rest
        )
        edges = edges.union(back)
    return vertices, edges


@operation
def read_snb(
    session: SparkSession, folder: str, edge_types: Sequence[EdgeType]
) -> tuple[dict[str, DataFrame], dict[EdgeType, DataFrame]]:
    """Reads tables of the `LDBC Social Network Benchmark
    <https://ldbcouncil.org/benchmarks/snb/>`_.

    It reads both layouts of the generator: ``dynamic/person_0_0.csv`` and
    ``dynamic/Person/part-*.csv``, with a header and ``|`` between columns.
    Source and destination of an edge are the two columns with names that end
    with ``id``.

    Args:
        session (SparkSession): The Spark session.
        folder (str): A folder with ``static`` and ``dynamic``.
        edge_types (List[Tuple[str, str, str]]): Types such as
            ``('person', 'knows', 'person')``, as in the names of files.

    Returns:
        Tuple[Dict[str, DataFrame], Dict[Tuple[str, str, str], DataFrame]]:
        Vertices of each type (``id`` and other columns) and edges of each
        type (``src``, ``dst`` and other columns). Ids are int64; each type
        has its own.

    Raises:
        FileNotFoundError: If the file of a type is missing.
        TypeError: If an argument has the wrong type.
        ValueError: If a file has other columns.
    """
    op = 'read_snb'
    if isinstance(edge_types, str) or not isinstance(edge_types, Sequence):
        raise TypeError(
            f"{op}: 'edge_types' must be a list (got {edge_types!r})"
        )
    check_edge_types(op, 'edge_types', edge_types)
    for edge_type in edge_types:
        if not all(re.fullmatch(r'\w+', name) for name in edge_type):
            raise TypeError(
                f"{op}: 'edge_types' must hold names of letters, digits and "
                f"'_' (got {edge_type!r})"
            )
    types = dict.fromkeys(t for e in edge_types for t in (e[0], e[2]))
    vertices = {t: _snb_table(op, session, folder, t, ['id']) for t in types}
    edges = {
        e: _snb_table(op, session, folder, '_'.join(e), ['src', 'dst'])
        for e in edge_types
    }
    return vertices, edges


def _snb_table(
    op: str,
    session: SparkSession,
    folder: str,
    name: str,
    ids: list[str],
) -> DataFrame:
    """Reads a table, whose first columns that end with ``id`` are ids."""
    path = f'{folder}/*/{{{name},{name}_[0-9]*}}'
    raw = _read(
        op, session, path, header=True, sep='|', mode='FAILFAST', quote=''
    )
    # Spark numbers columns of one name: `Person.id0`, `Person.id1`.
    plain = [re.sub(r'\W', '_', n) for n in raw.columns]
    found = [
        i
        for i, n in enumerate(raw.columns)
        if re.search(r'id\d*$', n, re.IGNORECASE)
    ]
    if len(found) < len(ids):
        raise ValueError(
            f"{op}: '{name}' must have {len(ids)} columns of ids (it has "
            f'{raw.columns})'
        )
    frame = raw.toDF(*(f'{OWN}{i}' for i in range(len(plain))))
    used = found[: len(ids)]
    numbers = [
        F.col(f'{OWN}{i}').cast('bigint').alias(id)
        for i, id in zip(used, ids, strict=True)
    ]
    rest = [
        F.col(f'{OWN}{i}').alias(n)
        for i, n in enumerate(plain)
        if i not in used
    ]
    return frame.select(*numbers, *rest)


def _read(
    op: str, session: SparkSession, path: str, **options: Any
) -> DataFrame:
    try:
        return session.read.csv(path, **options)
    except AnalysisException as error:
        if error.getCondition() != 'PATH_NOT_FOUND':
            raise
        raise FileNotFoundError(f'{op}: no such file: {path}') from error
