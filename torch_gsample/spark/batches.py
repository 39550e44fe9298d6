"""Writes sampled edges, nodes and features as one row a batch.

Rows of all kinds that belong to a batch meet in one task, which puts them
together: it holds one mini-batch, as a trainer does.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from torch_gsample.spark.assemble import EDGE, FEATURE, SEED, assemble
from torch_gsample.spark.frames import (
    DataFrame,
    F,
    arrow_udf,
    checked_frame,
    pa,
)
from torch_gsample.spark.jobs import operation

EdgeType = tuple[str, str, str]

#: What tensors hold, as Spark calls it.
_NUMBERS = 'boolean tinyint smallint int bigint float double'.split()
#: The columns that rows of all kinds have.
_COMMON = 'batch kind hop relation tree dst slot src id'.split()


@dataclass(frozen=True)
class BatchTypes:
    """The types of a graph, and what was sampled of it: see :meth:`of`.

    Everything that a reader must know is in it.
    """

    nodes: list[str | None]
    edges: list[Any]
    ends: list[tuple[int, int]]
    hops: int = 0
    disjoint: bool = False
    timed: bool = False
    input_type: int = 0
    num_seeds: int = 0
    batch_size: int = 0

    @classmethod
    def of(cls, edge_types: list[tuple[str, str, str]] | None) -> 'BatchTypes':
        """Returns the types of a graph, node types by first occurrence."""
        if edge_types is None:
            return cls([None], [None], [(0, 0)])
        ends = [t for edge in edge_types for t in (edge[0], edge[2])]
        nodes: list[str | None] = list(dict.fromkeys(ends))
        places = [(nodes.index(e[0]), nodes.index(e[2])) for e in edge_types]
        return cls(nodes, list(edge_types), places)

    @property
    def num_nodes(self) -> int:
        """How many node types there are."""
        return len(self.nodes)

    def sampled(self, **facts: Any) -> 'BatchTypes':
        """Returns these types with what was sampled."""
        return replace(self, **facts)

    def to_json(self, widths: dict[str, int]) -> str:
        """Returns all of it as text.

        Args:
            widths (Dict[str, int]): How many numbers a feature has, by its
                column; -1 if it is no array.
        """
        return json.dumps({**asdict(self), 'widths': widths})


@dataclass
class SampledBatches:
    """What :func:`neighbor_sample` sampled.

    Args:
        seeds (DataFrame): ``batch``, ``position``, ``id`` and, with times,
            ``time``.
        edges (DataFrame): A row for each sampled edge: ``batch``, ``tree``
            (the seed whose tree it is, in disjoint sampling), ``hop``,
            ``relation``, ``slot``, ``src``, ``dst`` and ``id``.
        nodes (List[DataFrame]): For each node type ``batch``, ``tree`` and
            ``node`` of all sampled nodes.
        types (BatchTypes): Names of node and edge types.
    """

    seeds: DataFrame
    edges: DataFrame
    nodes: list[DataFrame]
    types: BatchTypes
    _persisted: list[DataFrame] = field(default_factory=list, repr=False)

    @operation
    def write(
        self,
        path: str,
        features: DataFrame | Mapping[str, DataFrame] | None = None,
        edge_features: DataFrame | Mapping[EdgeType, DataFrame] | None = None,
        mode: str = 'errorifexists',
    ) -> None:
        """Writes Parquet files for :class:`SampledParquetLoader`.

        There is a folder for each batch, with a file of one row.

        Args:
            path (str): A folder in any file system that Spark knows.
            features (DataFrame or Dict, optional): A column ``id`` of nodes,
                and columns of numbers or of arrays of numbers, all of one
                length; for each node type in a heterogeneous graph.
            edge_features (DataFrame or Dict, optional): The same for edges.
            mode (str, optional): What Spark does if ``path`` exists:
                ``'errorifexists'`` or ``'overwrite'``.

        Raises:
            TypeError: If ids are no integers, or features no numbers.
            ValueError: If a column or a type is missing, or ``mode`` unknown.
        """
        if mode not in ('errorifexists', 'overwrite'):
            raise ValueError(
                f"write: 'mode' must be 'errorifexists' or 'overwrite' "
                f'(got {mode!r})'
            )
        types = self.types
        rows, widths = self._rows(features, edge_features)
        long = functools.reduce(
            functools.partial(DataFrame.unionByName, allowMissingColumns=True),
            rows,
        )
        facts, fields = types.to_json(widths), dict(long.dtypes)

        features_first = [f'`{n}`: {_spark_type(fields[n])}' for n in widths]
        columns = [name for name in long.columns if name != 'batch']

        @arrow_udf(f'struct<{", ".join(features_first + _schema(types))}>')
        def put_together(*values: pa.Array) -> pa.StructScalar:
            rows = pa.table(dict(zip(columns, values, strict=True)))
            return assemble(rows, facts)

        one = put_together(*columns).alias('one')
        batches = long.groupBy('batch').agg(one).select('batch', 'one.*')
        batches.write.mode(mode).partitionBy('batch').parquet(path)

    def _rows(
        self,
        features: DataFrame | Mapping[Any, DataFrame] | None,
        edge_features: DataFrame | Mapping[Any, DataFrame] | None,
    ) -> tuple[list[DataFrame], dict[str, int]]:
        """Returns the rows of all kinds, and the widths of features."""
        types = self.types
        rows = [_edge_rows(self.edges), _seed_rows(self.seeds, types)]
        widths: dict[str, int] = {}
        for kind, tables, known in (
            ('node', features, types.nodes),
            ('edge', edge_features, types.edges),
        ):
            for t, table in _by_type(kind, tables, known).items():
                table = checked_frame('write', 'features', table, ['id'])
                widths.update(_widths(table, f'{kind}_{t}_'))
                rows.append(_feature_rows(self, kind, t, table))
        return rows, widths

    def close(self) -> None:
        """Frees the memory in which Spark caches what was sampled."""
        for frame in self._persisted:
            frame.unpersist()


def _schema(types: BatchTypes) -> list[str]:
    """Returns the columns besides features: lists of numbers by type."""
    lists = [f'node_{t}' for t in range(types.num_nodes)]
    lists += [f'num_nodes_{t}' for t in range(types.num_nodes)]
    if types.disjoint:
        lists += [f'tree_{t}' for t in range(types.num_nodes)]
    for r in range(len(types.edges)):
        lists += [f'{name}_{r}' for name in ('row', 'col', 'edge')]
        lists.append(f'num_edges_{r}')
    lists += ['input_id'] + ['seed_time'] * types.timed
    return ['facts: string'] + [f'{name}: array<bigint>' for name in lists]


def _widths(table: DataFrame, prefix: str) -> dict[str, int]:
    """The length of arrays, from the first row of a table."""
    for name, kind in table.dtypes:
        if kind.removeprefix('array<').removesuffix('>') not in _NUMBERS:
            raise TypeError(
                f"write: columns of 'features' must hold numbers or arrays of "
                f'numbers (got {kind} in {name!r})'
            )
    arrays = [n for n, kind in table.dtypes if kind.startswith('array<')]
    first = table.select(*(F.size(n).alias(n) for n in arrays)).head()
    return {
        prefix + name: (first[name] if first else 0) if name in arrays else -1
        for name in table.columns
        if name != 'id'
    }


def _spark_type(field: str) -> str:
    return field if field.startswith('array<') else f'array<{field}>'


def _edge_rows(edges: DataFrame) -> DataFrame:
    return edges.withColumn('kind', F.lit(EDGE)).select(*_COMMON)


def _seed_rows(seeds: DataFrame, types: BatchTypes) -> DataFrame:
    columns = {
        'kind': F.lit(SEED),
        'hop': F.lit(0),
        'relation': F.lit(types.input_type),
        'dst': F.col('id'),
        'slot': F.col('tree'),
        'src': F.col('time') if types.timed else F.lit(0),
        'id': F.col('position'),
    }
    return seeds.withColumns(columns).select(*_COMMON)


def _feature_rows(
    sample: SampledBatches, kind: str, t: int, table: DataFrame
) -> DataFrame:
    """The features of what is in a batch, once for each batch."""
    if kind == 'node':
        items = sample.nodes[t].select('batch', F.col('node').alias('id'))
    else:
        edges = sample.edges.where(F.col('relation') == t)
        items = edges.select('batch', 'id')
    named = {n: f'{kind}_{t}_{n}' for n in table.columns if n != 'id'}
    joined = items.distinct().join(table.withColumnsRenamed(named), 'id')
    zeros = ('hop', 'tree', 'dst', 'slot', 'src')
    return joined.withColumns(
        {
            'kind': F.lit(FEATURE[kind]),
            'relation': F.lit(t),
            **{name: F.lit(0) for name in zeros},
        }
    ).select(*_COMMON, *named.values())


def _by_type(
    kind: str,
    tables: DataFrame | Mapping[Any, DataFrame] | None,
    known: list[Any],
) -> dict[int, DataFrame]:
    """Tables by the number of their type."""
    if tables is None:
        return {}
    given = tables if isinstance(tables, Mapping) else {None: tables}
    for name in given:
        if name not in known:
            raise ValueError(
                f'write: features of {kind}s must be of the types {known} '
                f'(got {name!r})'
            )
    return {known.index(name): table for name, table in given.items()}
