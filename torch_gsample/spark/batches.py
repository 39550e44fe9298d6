"""Writes sampled edges, nodes and features as one row per batch.

All rows of a batch go to one task, which joins them. Its memory holds one
mini-batch, as in a trainer, and the file that it writes.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch_gsample.ops._check import count
from torch_gsample.spark.assemble import EDGE, SEED, assemble
from torch_gsample.spark.batch_types import BatchTypes, EdgeType
from torch_gsample.spark.feature_tables import (
    COMMON,
    checked_tables,
    feature_rows,
    widths_of,
)
from torch_gsample.spark.frames import (
    OWN,
    DataFrame,
    F,
    map_arrow,
    pa,
)
from torch_gsample.spark.jobs import operation
from torch_gsample.spark.shard_files import (
    Shard,
    file_system,
    num_batches,
    segments,
    write_index,
)

#: Bytes of a file of batches.
SHARD_BYTES = 128 << 20


@dataclass
class SampledBatches:
    """The result of :func:`neighbor_sample`.

    Args:
        seeds (DataFrame): ``batch``, ``position``, ``id`` and, with times,
            ``time``.
        edges (DataFrame): A row for each sampled edge: ``batch``, ``tree``
            (the seed of the tree, in disjoint sampling), ``hop``,
            ``relation``, ``slot``, ``src``, ``dst`` and ``id``.
        nodes (List[DataFrame]): For each node type ``batch``, ``tree`` and
            ``node`` of all sampled nodes.
        types (BatchTypes): Names of node and edge types.
        batches (range): The sampled batches.
        sampling (StoredSampling, optional): Samples a batch of a stored graph
            in the task that writes it; otherwise that task gets rows of
            ``edges``.
    """

    seeds: DataFrame
    edges: DataFrame
    nodes: list[DataFrame]
    types: BatchTypes
    batches: range
    _persisted: list[DataFrame] = field(default_factory=list, repr=False)
    sampling: Any = field(default=None, repr=False)
    _scratch: Any = field(default=None, repr=False)

    @operation
    def write(
        self,
        path: str | Path,
        features: DataFrame | Mapping[str, DataFrame] | None = None,
        edge_features: DataFrame | Mapping[EdgeType, DataFrame] | None = None,
        mode: str = 'errorifexists',
        *,
        shard_bytes: int = SHARD_BYTES,
    ) -> None:
        """Writes Parquet files for :class:`SampledParquetLoader`.

        A file has many batches, with one row group each. ``index.json`` has
        their offsets and checksums; it is written last.

        Args:
            path (str or Path): A folder shared by executors and driver: a
                path, or a URL of ``fsspec``.
            features (DataFrame or Dict, optional): A column ``id`` of nodes,
                and columns of numbers or of arrays of numbers of equal length;
                a dictionary by node type in a heterogeneous graph.
            edge_features (DataFrame or Dict, optional): Likewise for edges.
            mode (str, optional): What to do if ``path`` exists:
                ``'errorifexists'`` or ``'overwrite'``.
            shard_bytes (int, optional): Size at which a file is complete. A
                task holds one file in memory.

        Raises:
            FileExistsError: If ``path`` exists.
            TypeError: If ids are not integers, or features not numbers.
            ValueError: If a column or a type is missing, only some batches
                were sampled, or ``mode`` is unknown.
        """
        if mode not in ('errorifexists', 'overwrite'):
            raise ValueError(
                f"write: 'mode' must be 'errorifexists' or 'overwrite' "
                f'(got {mode!r})'
            )
        count('write', 'shard_bytes', shard_bytes)
        facts, rows = self._to_write(features, edge_features)
        if len(self.batches) < num_batches(facts):
            raise ValueError(
                f'write: all {num_batches(facts)} batches must be sampled; '
                f"'sample_epochs' writes some at a time (got {self.batches})"
            )
        system, root = file_system(path)
        if mode == 'errorifexists' and system.exists(root):
            raise FileExistsError(
                f"write: 'path' must not exist, unless 'mode' is "
                f"'overwrite' (got {str(path)!r})"
            )
        if system.exists(root):
            system.rm(root, recursive=True)
        shards = self._write_shards(str(path), facts, rows, shard_bytes)
        write_index(system, root, facts, shards)

    def _to_write(
        self,
        features: DataFrame | Mapping[str, DataFrame] | None,
        edge_features: DataFrame | Mapping[EdgeType, DataFrame] | None,
    ) -> tuple[dict[str, Any], DataFrame]:
        """Returns the contents of the index, and the rows of all kinds."""
        rows, widths = self._rows(features, edge_features)
        union = functools.partial(
            DataFrame.unionByName, allowMissingColumns=True
        )
        return self.types.facts(widths), functools.reduce(union, rows)

    def _write_shards(
        self,
        path: str,
        facts: dict[str, Any],
        rows: DataFrame,
        shard_bytes: int,
    ) -> list[Any]:
        """Writes shards, and returns their entries of the index."""
        sample = None if self.sampling is None else self.sampling.sample
        file_system(path)[0].makedirs(file_system(path)[1], exist_ok=True)

        def write(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            system, root = file_system(path)
            batches = (
                (number, assemble(part, facts, sample))
                for number, part in segments(parts)
            )
            for entry in _shards(batches, shard_bytes, system, root):
                yield pa.RecordBatch.from_pydict({'entry': [entry]})

        ranges = by_batch(rows, self.batches)
        entries = map_arrow(ranges, write, 'entry string').collect()
        return [json.loads(row.entry) for row in entries]

    def _rows(
        self,
        features: DataFrame | Mapping[Any, DataFrame] | None,
        edge_features: DataFrame | Mapping[Any, DataFrame] | None,
    ) -> tuple[list[DataFrame], dict[str, int]]:
        """Returns the rows of all kinds, and the widths of features."""
        types = self.types
        tables_of = checked_tables('write', features, edge_features, types)
        rows = [seed_rows(self.seeds, types)]
        if self.sampling is None:
            rows.append(_edge_rows(self.edges))
        widths: dict[str, int] = {}
        count = sum(len(tables) for tables in tables_of.values())
        if self.sampling is not None and count > 1:
            # Each use of nodes and edges samples them again.
            self._persisted.append(self.edges.persist())
        for kind, tables in tables_of.items():
            for t, table in tables.items():
                widths.update(widths_of(table, f'{kind}_{t}_'))
                rows.append(feature_rows(self, kind, t, table))
        return rows, widths

    def close(self) -> None:
        """Frees Spark's cache of the sample, and its graph on disk."""
        for frame in self._persisted:
            frame.unpersist()
        if self._scratch is not None:
            self._scratch.remove()


def by_batch(rows: DataFrame, batches: range) -> DataFrame:
    """Partitions rows by ranges of batches, in order.

    Args:
        rows (DataFrame): With a column ``batch``.
        batches (range): The batches that occur.
    """
    spark = rows.sparkSession
    parts = int(str(spark.conf.get('spark.sql.shuffle.partitions')))
    parts, count = min(parts, len(batches)), len(batches)
    part = F.expr(
        f'cast((batch - {batches.start}) * {parts} div {count} as int)'
    )
    return (
        rows.withColumn(OWN + 'part', part)
        .repartitionById(parts, OWN + 'part')
        .drop(OWN + 'part')
        .sortWithinPartitions('batch')
    )


def _shards(
    batches: Iterator[tuple[int, pa.Table]],
    shard_bytes: int,
    system: Any,
    folder: str,
) -> Iterator[str]:
    """Writes the batches of a task, and yields an entry for each shard."""
    shard: Shard | None = None
    for number, row in batches:
        if shard is None:
            shard = Shard(number)
        shard.add(row)
        if shard.size >= shard_bytes:
            yield json.dumps(shard.write(system, folder))
            shard = None
    if shard is not None:
        yield json.dumps(shard.write(system, folder))


def _edge_rows(edges: DataFrame) -> DataFrame:
    return edges.withColumn('kind', F.lit(EDGE)).select(*COMMON)


def seed_rows(seeds: DataFrame, types: BatchTypes) -> DataFrame:
    """Returns the rows of seeds for the tasks of batches."""
    columns = {
        'kind': F.lit(SEED),
        'hop': F.lit(0),
        'relation': F.lit(types.input_type),
        'dst': F.col('id'),
        'slot': F.col('tree'),
        'src': F.col('time') if types.timed else F.lit(0),
        'id': F.col('position'),
    }
    return seeds.withColumns(columns).select(*COMMON)
