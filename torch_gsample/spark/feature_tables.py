"""Checks tables of features, and joins them with the items of batches."""

from collections.abc import Mapping
from typing import Any

from torch_gsample.spark.assemble import FEATURE
from torch_gsample.spark.batch_types import BatchTypes
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    check_columns,
    checked_frame,
    quoted,
)

#: Spark's types for tensors.
_NUMBERS = 'boolean tinyint smallint int bigint float double'.split()
#: Fields of batches that a feature of that name would replace, or be lost to.
_FIELDS = frozenset(
    (
        'batch batch_size blocks e_id edge_index input_id n_id num_edges '
        'num_nodes num_sampled_edges num_sampled_nodes ptr seed_time'
    ).split()
)
#: The columns common to all kinds of rows.
COMMON = 'batch kind hop relation tree dst slot src id'.split()


def checked_tables(
    op: str,
    features: DataFrame | Mapping[Any, DataFrame] | None,
    edge_features: DataFrame | Mapping[Any, DataFrame] | None,
    types: BatchTypes,
) -> dict[str, dict[int, DataFrame]]:
    """Returns the tables of nodes and of edges, by type index.

    Args:
        op (str): The function, for errors.
        features (DataFrame or Dict, optional): Of nodes.
        edge_features (DataFrame or Dict, optional): Of edges.
        types (BatchTypes): Of the sample.

    Raises:
        TypeError: If ids are not integers, or features not numbers.
        ValueError: If a column is missing, a type unknown, or a name taken.
    """
    out = {
        'node': _checked_features(op, 'features', features, types),
        'edge': _checked_features(op, 'edge_features', edge_features, types),
    }
    if types.nodes == [None]:  # a batch has one attribute of a name
        names = [
            {*table.columns} for by in out.values() for table in by.values()
        ]
        both = sorted(set.intersection(*names) - {'id'}) if names[1:] else []
        if both:
            raise ValueError(
                f"{op}: 'features' and 'edge_features' must have different "
                f'columns (got {both} in both)'
            )
    return out


def _checked_features(
    op: str,
    name: str,
    tables: DataFrame | Mapping[Any, DataFrame] | None,
    types: BatchTypes,
) -> dict[int, DataFrame]:
    """Returns tables of features by type index, with ids of int64.

    Args:
        op (str): The function, for errors.
        name (str): ``'features'`` or ``'edge_features'``.
        tables (DataFrame or Dict, optional): The value.
        types (BatchTypes): Of the sample.

    Raises:
        TypeError: If ids are not integers, or features not numbers.
        ValueError: If a column is missing, or a type unknown.
    """
    if tables is None:
        return {}
    known: list[Any] = types.nodes if name == 'features' else types.edges
    out = {}
    given = tables if isinstance(tables, Mapping) else {None: tables}
    for kind, table in given.items():
        if kind not in known:
            raise ValueError(
                f"{op}: '{name}' must be of the types {known} (got {kind!r})"
            )
        table = checked_frame(op, name, table, ['id'])
        check_columns(op, name, table, table.columns)
        if taken := sorted(_FIELDS & {*table.columns}):
            raise ValueError(
                f"{op}: columns of '{name}' must not have names of fields of "
                f'batches (got {taken})'
            )
        for column, held in table.dtypes:
            if held.removeprefix('array<').removesuffix('>') not in _NUMBERS:
                raise TypeError(
                    f"{op}: columns of '{name}' must hold numbers or arrays "
                    f'of numbers (got {held} in {column!r})'
                )
        out[known.index(kind)] = table
    return out


def widths_of(table: DataFrame, prefix: str) -> dict[str, int]:
    """Returns the length of arrays, from the first row of a table.

    Args:
        table (DataFrame): The features.
        prefix (str): Of the names of columns of batches.
    """
    arrays = [n for n, kind in table.dtypes if kind.startswith('array<')]
    first = table.select(*(F.size(quoted(n)).alias(n) for n in arrays)).head()
    return {
        prefix + name: (first[name] if first else 0) if name in arrays else -1
        for name in table.columns
        if name != 'id'
    }


def feature_rows(
    sample: Any, kind: str, t: int, table: DataFrame
) -> DataFrame:
    """Returns the features of a batch's items, once for each batch.

    Args:
        sample (SampledBatches): The batches.
        kind (str): ``'node'`` or ``'edge'``.
        t (int): The index of the type.
        table (DataFrame): Of :func:`checked_tables`.
    """
    if kind == 'node':
        items = sample.nodes[t].select('batch', F.col('node').alias('id'))
    else:
        edges = sample.edges.where(F.col('relation') == t)
        items = edges.select('batch', 'id')
    own = {n: f'{kind}_{t}_{n}' for n in table.columns if n != 'id'}
    joined = items.distinct().join(table.withColumnsRenamed(own), 'id')
    zeros = ('hop', 'tree', 'dst', 'slot', 'src')
    return joined.withColumns(
        {
            'kind': F.lit(FEATURE[kind]),
            'relation': F.lit(t),
            **{name: F.lit(0) for name in zeros},
        }
    ).select(*COMMON, *(F.col(quoted(n)) for n in own.values()))
