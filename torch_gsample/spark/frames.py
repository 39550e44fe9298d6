"""DataFrame functions of all operators: checks, parts of a graph."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.spark.session import require_pyspark

require_pyspark()

import pyarrow as pa  # noqa: E402
from pyspark.sql import Column, DataFrame  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from pyspark.sql.udf import UserDefinedFunction  # noqa: E402
from pyspark.util import PythonEvalType  # noqa: E402

from torch_gsample.spark.jobs import context_of, operation  # noqa: E402

INTEGERS = ('tinyint', 'smallint', 'int', 'bigint')
_WEIGHTS = (*INTEGERS, 'float', 'double')

#: Functions that make integers of other values, by column.
_HINTS = {
    **dict.fromkeys(('id', 'src', 'dst'), '; assign_ids maps other keys'),
    'time': '; unix_seconds and unix_micros convert timestamps',
}

#: Prefix of internal column names.
OWN = '__gsample_'


def checked_frame(
    op: str,
    name: str,
    frame: DataFrame,
    columns: Sequence[str],
    guard: bool = True,
) -> DataFrame:
    """Returns a frame whose named columns are int64.

    Args:
        op (str): The operator, for errors.
        name (str): The argument.
        frame (DataFrame): The value.
        columns (List[str]): Ids, or ``'time'``.
        guard (bool, optional): Whether a job fails on a null or negative id.
            Joins would drop it silently.

    Raises:
        TypeError: If it is not a DataFrame, or a column holds no integers.
        ValueError: If a column is missing.
    """
    if not isinstance(frame, DataFrame):
        raise TypeError(
            f"{op}: '{name}' must be a Spark DataFrame (got "
            f'{type(frame).__name__})'
        )
    types = dict(frame.dtypes)
    check_columns(op, name, frame, columns)
    for column in columns:
        if types[column] not in INTEGERS:
            raise TypeError(
                f"{op}: column '{column}' of '{name}' must hold integers "
                f'(got {types[column]}){_HINTS.get(column, "")}'
            )
    casts = {c: F.col(c).cast('bigint') for c in columns}
    if guard:
        casts = {c: _guarded(op, name, c, casts) for c in columns}
    return frame.withColumns(casts)


def check_columns(
    op: str, name: str, frame: DataFrame, columns: Sequence[str]
) -> None:
    """Checks that a frame has some columns, each once.

    Spark ignores the case of names, unless ``spark.sql.caseSensitive`` is set.

    Raises:
        ValueError: If one is missing, or Spark finds several.
    """
    every = frame.columns
    for column in columns:
        if column not in every:
            raise ValueError(
                f"{op}: '{name}' must have a column '{column}' (it has "
                f'{every})'
            )
        twice = [n for n in every if n.lower() == column.lower()]
        if len(twice) > twice.count(column):
            conf = frame.sparkSession.conf.get('spark.sql.caseSensitive')
            if str(conf).lower() == 'true':
                twice = [column] * twice.count(column)
        if len(twice) > 1:
            raise ValueError(
                f"{op}: '{name}' must have one column '{column}' (it has "
                f'{twice})'
            )


def quoted(name: str) -> str:
    """Quotes the name of a column, which may contain dots."""
    return '`' + name.replace('`', '``') + '`'


def _guarded(
    op: str, name: str, column: str, row: dict[str, Column]
) -> Column:
    """Adds checks for nulls and negative ids.

    The job's error shows the values of the row.
    """
    value, time = row[column], column == 'time'
    rule = 'null' if time else 'null or negative'
    text = f"{op}: column '{column}' of '{name}' must not be {rule} (got %s"
    others = row.values() if len(row) > 1 else ()
    if others:
        text += ', in the row ' + ', '.join(f'{other}=%s' for other in row)
    # One function: each use of the column has all of this in its plan.
    shown = F.format_string(text + ')', value, *others)
    valid = value.isNotNull() if time else value >= 0
    return F.when(valid, value).otherwise(F.raise_error(shown).cast('bigint'))


def checked_relation(
    op: str, frame: DataFrame, weighted: bool, timed: bool
) -> DataFrame:
    """Returns ``src``, ``dst``, ``id``, ``time`` and ``weight`` of edges.

    Args:
        op (str): The operator, for errors.
        frame (DataFrame): The edges.
        weighted (bool): Whether they have weights, which become float64.
        timed (bool): Whether they have times.

    Raises:
        TypeError: If a column has the wrong type.
        ValueError: If a column is missing.
    """
    numbers = ['src', 'dst', 'id'] + ['time'] * timed
    frame = checked_frame(op, 'edges', frame, numbers)
    if weighted:
        check_columns(op, 'edges', frame, ['weight'])
        kind = dict(frame.dtypes)['weight']
        if kind not in _WEIGHTS and not kind.startswith('decimal'):
            raise TypeError(
                f"{op}: column 'weight' of 'edges' must hold numbers (got "
                f'{kind})'
            )
        # As in the local sampler; float64 represents 32-bit numbers exactly.
        frame = frame.withColumn('weight', F.col('weight').cast('double'))
    return frame.select(*numbers, *['weight'] * weighted)


def checked_graph(
    op: str,
    vertices: DataFrame,
    edges: DataFrame,
    guard: bool = True,
    names: tuple[str, str] = ('vertices', 'edges'),
) -> tuple[DataFrame, DataFrame]:
    """Returns vertices (``id``) and edges (``src``, ``dst``), checked.

    Raises:
        TypeError: If one is not a DataFrame, or a column holds no integers.
        ValueError: If a column is missing.
    """
    columns = ['src', 'dst']
    if isinstance(edges, DataFrame) and 'id' in edges.columns:
        columns.append('id')
    return (
        checked_frame(op, names[0], vertices, ['id'], guard),
        checked_frame(op, names[1], edges, columns, guard),
    )


@operation
def check_graph(vertices: DataFrame, edges: DataFrame) -> None:
    """Checks a graph for errors that would make samples wrong.

    Operators only make checks that need no job; this function runs jobs.

    Args:
        vertices (DataFrame): With a column ``id``.
        edges (DataFrame): With columns ``src``, ``dst`` and optionally ``id``.

    Raises:
        TypeError: If ids are no integers.
        ValueError: If a column is missing, there is no vertex or no edge, an
            id is null or negative, two vertices or two edges have one id, or
            an edge refers to a vertex that does not exist.
    """
    op = 'check_graph'
    vertices, edges = checked_graph(op, vertices, edges, guard=False)
    numbered = ['id'] if 'id' in edges.columns else []
    for name, frame, columns in (
        ('vertices', vertices, ['id']),
        ('edges', edges, ['src', 'dst', *numbered]),
    ):
        _check_ids(op, name, frame, columns)
    ids = vertices.select(F.col('id').alias(OWN + 'id'))
    absent = (
        ends_of(edges)
        .join(ids, F.col('id') == F.col(OWN + 'id'), 'left_anti')
        .head()
    )
    if absent is not None:
        raise ValueError(
            f"{op}: the ends of 'edges' must be in 'vertices' (got "
            f'{absent[0]})'
        )


def _check_ids(
    op: str, name: str, frame: DataFrame, columns: list[str]
) -> None:
    bad = [F.col(c).isNull() | (F.col(c) < 0) for c in columns]
    row = frame.agg(
        F.count(F.lit(1)), *(F.count(F.when(b, 1)) for b in bad)
    ).collect()[0]
    if row[0] == 0:
        raise ValueError(f"{op}: '{name}' must not be empty")
    for column, count in zip(columns, row[1:], strict=True):
        if count:
            raise ValueError(
                f"{op}: column '{column}' of '{name}' must not hold nulls "
                f'or negative ids (got {count} of them)'
            )
    if 'id' not in columns:
        return
    twice = frame.groupBy('id').count().where('count > 1').head()
    if twice is not None:
        raise ValueError(
            f"{op}: ids of '{name}' must be unique (got {twice[0]} "
            f'{twice[1]} times)'
        )


def digest(frame: DataFrame, columns: Sequence[str]) -> list[int]:
    """Returns the number of rows, and a hash of all that ignores their order.

    Args:
        frame (DataFrame): The frame.
        columns (List[str]): Columns of integers; those that it does not have
            are left out.
    """
    count, total = frame.agg(*digest_columns(frame, columns)).collect()[0]
    return [count, int(total or 0)]


def digest_columns(frame: DataFrame, columns: Sequence[str]) -> list[Column]:
    """Returns the aggregates of :func:`digest`, with the same arguments."""
    known = [F.col(c).cast('bigint') for c in columns if c in frame.columns]
    # A sum, as rows that occur twice cancel out in an exclusive or.
    hashed = F.xxhash64(*known).cast('decimal(38, 0)')
    return [F.count(F.lit(1)), F.sum(hashed)]


def to_tensor(ids: pa.Array) -> Tensor:
    """Copies an Arrow array of ids to a tensor."""
    return torch.tensor(ids.to_numpy(zero_copy_only=False))


def arrow_udf(result: str) -> Callable[[Callable[..., Any]], Any]:
    """Turns a function of Arrow arrays into a column function.

    Its annotations distinguish rows and groups, which the types of
    :func:`pyspark.sql.functions.arrow_udf` do not express.
    """
    return F.arrow_udf(result)  # type: ignore[call-overload]


def map_arrow(
    frame: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str,
) -> DataFrame:
    """Maps the Arrow batches of each partition.

    Like ``DataFrame.mapInArrow``, which requires pandas without using it, as
    all of Spark Connect does.
    """
    if context_of(frame.sparkSession) is None:
        return frame.mapInArrow(function, schema)
    udf = UserDefinedFunction(
        function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column: Any = udf(*(frame[quoted(name)] for name in frame.columns))
    inner: Any = frame
    mapped = inner._jdf.mapInArrow(column._jc, False, None)
    return type(inner)(mapped, frame.sparkSession)


def ends_of(edges: DataFrame) -> DataFrame:
    """Returns the ends of edges as a column ``id``."""
    ends = F.explode(F.array('src', 'dst'))  # edges are read once
    return edges.select(ends.alias('id')).distinct()


def members(frame: DataFrame, column: str, ids: DataFrame) -> DataFrame:
    """Returns the rows whose column value is in ``ids``."""
    ids = ids.select(F.col('id').alias(OWN + 'id'))
    return frame.join(ids, F.col(column) == F.col(OWN + 'id'), 'left_semi')
